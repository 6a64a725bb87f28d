"""Optimizers on sparse gradients: torch's where torch has them, the dense trajectory elsewhere; clipping."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import openwork as ow
from openwork.torch import optim, rows_matmul

Rows = list[int]
EVERY: list[Rows] = [[0, 3, 7]] * 8
EPS = 1e-14
"""Small: Adam on dense gradients adds it elsewhere."""
SOME: list[Rows] = [[0, 3], [3, 7, 7], [], [0, 9, 1], [3], [0, 3, 9]]


def start() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(12, 3))


def gradients(steps: list[Rows]) -> list[torch.Tensor]:
    """Sparse gradients, uncoalesced where rows are named twice."""
    rng = torch.Generator().manual_seed(1)
    return [
        torch.sparse_coo_tensor(
            torch.tensor([rows], dtype=torch.int64),
            torch.randn(len(rows), 3, generator=rng, dtype=torch.float64),
            (12, 3),
        )
        for rows in steps
    ]


def trajectory(make: Any, steps: list[Rows], dense: bool = False) -> tuple[list[torch.Tensor], Any]:
    p = start()
    optimizer = make([p])
    seen = []
    for g in gradients(steps):
        p.grad = g.to_dense() if dense else g
        optimizer.step()
        seen.append(p.detach().clone())
    return seen, optimizer


SAME: dict[str, tuple[Any, Any]] = {
    "sgd": (lambda p: optim.SGD(p, 0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "maximize": (lambda p: optim.SGD(p, 0.1, maximize=True), lambda p: torch.optim.SGD(p, 0.1, maximize=True)),
    "momentum": (lambda p: optim.SGD(p, 0.1, 0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9)),
    "dampening": (lambda p: optim.SGD(p, 0.1, 0.9, 0.3), lambda p: torch.optim.SGD(p, 0.1, 0.9, 0.3)),
    "nesterov": (
        lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True),
    ),
    "adagrad": (
        lambda p: optim.Adagrad(p, 0.1, 0.05, initial_accumulator_value=0.2),
        lambda p: torch.optim.Adagrad(p, 0.1, 0.05, initial_accumulator_value=0.2),
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dense", [False, True])
def test_steps_are_torchs_on_the_same_gradients(name: str, dense: bool) -> None:
    mine, theirs = SAME[name]
    for got, want in zip(trajectory(mine, SOME, dense)[0], trajectory(theirs, SOME, dense)[0], strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", SAME)
def test_without_weight_decay_steps_are_those_of_dense_gradients(name: str) -> None:
    mine, theirs = SAME[name]
    for got, want in zip(trajectory(mine, SOME)[0], trajectory(theirs, SOME, dense=True)[0], strict=True):
        torch.testing.assert_close(got, want)


def test_adam_counts_all_steps_as_torch_does() -> None:
    steps = [rows for rows in SOME if rows]  # torch's goes wrong on gradients without entries in some versions
    got, _ = trajectory(lambda p: optim.SparseAdam(p, 0.1, steps="all"), steps)
    want, _ = trajectory(lambda p: torch.optim.SparseAdam(p, 0.1), steps)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)
    defaults = optim.SparseAdam([start()]).defaults
    known = torch.optim.SparseAdam([start()]).defaults
    assert {k: defaults[k] for k in known if k in defaults} == {k: v for k, v in known.items() if k in defaults}
    assert {"lr", "betas", "eps"} <= set(known) & set(defaults)


def test_adam_corrects_a_row_by_its_own_steps() -> None:
    """A row moves as if the parameter were that row, and had seen its gradients only."""
    got = trajectory(lambda p: optim.SparseAdam(p, 0.1, eps=EPS, weight_decay=0.2), SOME)[0][-1]
    for row in range(12):
        alone = torch.nn.Parameter(start().detach()[row : row + 1].clone())
        reference = torch.optim.Adam([alone], 0.1, eps=EPS, weight_decay=0.2)
        for g, rows in zip(gradients(SOME), SOME, strict=True):
            if row in rows:
                alone.grad = g.to_dense()[row : row + 1]
                reference.step()
        torch.testing.assert_close(got[row], alone.detach()[0])


DECAYED: dict[str, tuple[Any, Any]] = {
    "sgd": (lambda p: optim.SGD(p, 0.1, weight_decay=0.3), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.3)),
    "nesterov": (
        lambda p: optim.SGD(p, 0.1, 0.9, weight_decay=0.3, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.3, nesterov=True),
    ),
    "maximize": (
        lambda p: optim.SGD(p, 0.1, 0.9, weight_decay=0.3, maximize=True),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.3, maximize=True),
    ),
    "adagrad": (
        lambda p: optim.Adagrad(p, 0.1, weight_decay=0.3),
        lambda p: torch.optim.Adagrad(p, 0.1, weight_decay=0.3),
    ),
    "adam": (
        lambda p: optim.SparseAdam(p, 0.1, eps=EPS, weight_decay=0.3),
        lambda p: torch.optim.Adam(p, 0.1, eps=EPS, weight_decay=0.3),
    ),
}


class CallsOfTorch(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operations that torch carries out."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


def test_a_small_step_has_no_needless_operations() -> None:
    """Small steps take the time of their calls: 30 in torch's SparseAdam, whose seven on sparse tensors are long."""
    most = {
        optim.SparseAdam: 31, lambda p: optim.SparseAdam(p, steps="all"): 21, optim.Adagrad: 18, optim.SGD: 3,
    }  # fmt: skip
    for make, calls in most.items():
        p = start()
        (p.grad,) = (g.coalesce() for g in gradients([[0, 3]]))
        optimizer = make([p])
        optimizer.step()
        with CallsOfTorch() as counted:
            optimizer.step()
        assert 0 < counted.count <= calls


@pytest.mark.parametrize("name", DECAYED)
def test_weight_decay_is_that_of_dense_gradients_at_rows_of_every_step(name: str) -> None:
    mine, theirs = DECAYED[name]
    got, want = trajectory(mine, EVERY)[0][-1], trajectory(theirs, EVERY, dense=True)[0][-1]
    torch.testing.assert_close(got[[0, 3, 7]], want[[0, 3, 7]])
    others = [k for k in range(12) if k not in (0, 3, 7)]
    assert torch.equal(got[others], start().detach()[others])
    assert not torch.allclose(want[others], start().detach()[others])
    all_dense, reference = trajectory(mine, SOME, dense=True)[0][-1], trajectory(theirs, SOME, dense=True)[0][-1]
    torch.testing.assert_close(all_dense, reference)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_momentum_buffer_has_each_row_once(weight_decay: float) -> None:
    _, optimizer = trajectory(lambda p: optim.SGD(p, 0.1, 0.9, weight_decay=weight_decay), SOME * 20)
    (state,) = optimizer.state.values()
    assert state["momentum_buffer"].is_coalesced()
    assert state["momentum_buffer"].indices()[0].tolist() == [0, 1, 3, 7, 9]


@pytest.mark.parametrize("name", DECAYED)
def test_training_goes_on_from_a_state_dict(name: str) -> None:
    make = DECAYED[name][0]
    whole, _ = trajectory(make, SOME)
    p = start()
    first = make([p])
    for k, g in enumerate(gradients(SOME)):
        if k == 3:
            saved = copy.deepcopy(first.state_dict())
            first = make([p])
            first.load_state_dict(saved)
        p.grad = g
        first.step()
    assert torch.equal(p.detach(), whole[-1])


@pytest.mark.parametrize("name", DECAYED)
@pytest.mark.parametrize("first_dense", [False, True])
def test_dense_and_sparse_gradients_may_alternate(name: str, first_dense: bool) -> None:
    mine, theirs = start(), start()
    first, second = (make([p]) for make, p in zip([DECAYED[name][0], DECAYED[name][1]], [mine, theirs], strict=True))
    for k, g in enumerate(gradients([list(range(12))] * 5)):
        mine.grad = g.to_dense() if k % 2 == first_dense else g
        theirs.grad = g.to_dense()
        first.step()
        second.step()
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", [*SAME, "adam"])
def test_parameters_of_rank_zero_and_gradients_sparse_in_every_dimension(name: str) -> None:
    make = DECAYED[name][0] if name == "adam" else SAME[name][0]
    scalar, p, q = torch.nn.Parameter(torch.tensor(2.0)), start(), start()
    optimizers = [make([scalar, p]), make([q])]
    for g in gradients(SOME[:2]):
        scalar.grad = torch.tensor(1.0)
        p.grad, q.grad = g.to_dense().to_sparse(), g.coalesce()
        for o in optimizers:
            o.step()
    assert scalar.item() != 2
    torch.testing.assert_close(p, q)


def test_clipping_is_that_of_dense_gradients() -> None:
    for norm in (1.0, 2.0, float("inf")):
        for limit in (0.5, 100.0):
            sparse, dense, other, again = start(), start(), start(), start()
            g = gradients(SOME)[1]
            sparse.grad, dense.grad = g, g.to_dense()
            other.grad, again.grad = torch.ones(12, 3).double(), torch.ones(12, 3).double()
            got = optim.clip_grad_norm_([sparse, other], limit, norm)
            want = torch.nn.utils.clip_grad_norm_([dense, again], limit, norm)
            torch.testing.assert_close(got, want)
            assert sparse.grad.layout == torch.sparse_coo
            torch.testing.assert_close(sparse.grad.to_dense(), dense.grad)
            torch.testing.assert_close(other.grad, again.grad)
            optim.clip_grad_value_([sparse, other], 0.1)
            torch.testing.assert_close(sparse.grad.to_dense(), dense.grad.clamp(-0.1, 0.1))
            assert other.grad.max() <= 0.1
    assert optim.clip_grad_norm_(start(), 1.0) == 0
    p = start()
    p.grad = torch.sparse_coo_tensor([[1]], [[float("nan")] * 3], (12, 3), dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"the norm of order 2\.0 of the gradients is nan"):
        optim.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)


def test_gradients_of_products_are_taken_and_schedulers_and_hooks_work() -> None:
    p, t = start(), ow.sparse_coo_tensor(torch.tensor([[0, 1, 1], [3, 3, 5]]), torch.ones(3).double(), (2, 12))
    optimizer = optim.SGD([p], 0.1, momentum=0.9, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    calls: list[int] = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    losses = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (rows_matmul(t, p) - 1).square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        losses.append(optimizer.step(closure).item())
        scheduler.step()
    assert losses[-1] < 0.5 * losses[0]
    assert len(calls) == 3
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0125)


def test_refusals() -> None:
    with pytest.raises(ow.ShapeError, match="SGD: lr=-1\n  expected: lr >= 0"):
        optim.SGD([start()], -1)
    with pytest.raises(ow.ShapeError, match="SGD: nesterov with momentum=0"):
        optim.SGD([start()], 1, nesterov=True)
    with pytest.raises(ow.ShapeError, match="betas"):
        optim.SparseAdam([start()], 1, (0.9, 1.0))
    with pytest.raises(ow.ShapeError, match="steps='each'"):
        optim.SparseAdam([start()], 1, steps="each")
    p = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    p.grad = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(ow.UnsupportedError, match="view_as_real"):
        optim.Adagrad([p]).step()
    q = torch.nn.Parameter(torch.eye(2).to_sparse_csr())
    q.grad = torch.eye(2).to_sparse_csr()
    with pytest.raises(ow.UnsupportedError, match=r"a gradient of torch\.sparse_csr"):
        optim.SGD([q], 0.1).step()

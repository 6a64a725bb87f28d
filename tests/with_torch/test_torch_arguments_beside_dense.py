"""torch's functions with arguments that are seldom given -> torch's own results and gradients of dense tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)
X = np.round(RNG.normal(size=(4, 6)), 2) * (RNG.random((4, 6)) < 0.6)
Y = np.round(RNG.normal(size=(4, 6)), 2) * (RNG.random((4, 6)) < 0.6)
CUBE = np.round(RNG.normal(size=(2, 3, 4)), 2) * (RNG.random((2, 3, 4)) < 0.7)
SQUARE = X[:, :4] + 3 * np.eye(4)
STACK = np.stack([SQUARE, SQUARE.T])
SCALAR = np.array(2.5)
OPERANDS = {"X": X, "Y": Y, "CUBE": CUBE, "SQUARE": SQUARE, "STACK": STACK, "SCALAR": SCALAR, "ROW": X[0]}
B = torch.from_numpy(RNG.normal(size=(4, 2)))
ROWS = torch.from_numpy(RNG.normal(size=(2, 6)))
INDEX = torch.tensor([[0, 2, 1, 0, 3, 1], [3, 3, 0, 1, 0, 2]])

CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    # norms
    **{f"vector_norm {p} {d} {k}": ("X", lambda x, p=p, d=d, k=k: torch.linalg.vector_norm(x, p, d, k))
       for p in (0, 0.5, 1, 2, 3, math.inf, -math.inf) for d, k in ((None, False), (0, True), ((0, 1), True), (-1, False))},
    **{f"matrix_norm {p} {d} {k}": ("CUBE", lambda x, p=p, d=d, k=k: torch.linalg.matrix_norm(x, p, d, k))
       for p in ("fro", 1, -1, math.inf, -math.inf) for d, k in (((-2, -1), False), ((0, 2), True), ((2, 0), False))},
    "norm of one dimension": ("CUBE", lambda x: torch.linalg.norm(x, 1, [1])),
    "norm of a matrix": ("X", lambda x: torch.linalg.norm(x, 1)),
    "norm of a matrix, kept": ("X", lambda x: torch.linalg.norm(x, math.inf, None, True)),
    "norm of a vector": ("ROW", lambda x: torch.linalg.norm(x, 3)),
    "normalize": ("CUBE", lambda x: torch.nn.functional.normalize(x, 1.0, 2, 0.5)),
    "cosine_similarity": ("X", lambda x, y: torch.cosine_similarity(x, y, 0, 0.3)),
    "pairwise_distance": ("X", lambda x, y: torch.pairwise_distance(x, y, 3.0, 0.2, True)),
    "dist": ("X", lambda x, y: torch.dist(x, y, 3)),
    "renorm": ("CUBE", lambda x: torch.renorm(x, 1, -2, 1.5)),
    # reductions
    "count_nonzero": ("CUBE", lambda x: torch.count_nonzero(x, (0, 2))),
    "count_nonzero of one": ("CUBE", lambda x: torch.count_nonzero(x, -1)),
    "mean of a number": ("SCALAR", lambda x: torch.mean(x, 0, True)),
    "sum of no dimensions": ("X", lambda x: torch.sum(x, [], True)),
    "mean in another dtype": ("X", lambda x: torch.mean(x, -1, True, dtype=torch.float32)),
    "var of a number kept": ("SCALAR", lambda x: torch.var(x, 0, correction=0, keepdim=True)),
    "var of no dimensions": ("X", lambda x: torch.var(x.detach(), [], correction=2, keepdim=True)),
    "var unbiased": ("X", lambda x: torch.var(x, False)),
    "std_mean": ("X", lambda x: torch.std_mean(x, 1, True, True)),
    "std_mean of all": ("X", lambda x: torch.std_mean(x, False)),
    "var_mean of no correction": ("X", lambda x: torch.var_mean(x, (0, 1), correction=None)),
    "aminmax": ("X", lambda x: torch.aminmax(x, dim=-1, keepdim=True)),
    "aminmax of all": ("X", lambda x: torch.aminmax(x)),
    "aminmax of a number": ("SCALAR", lambda x: torch.aminmax(x, dim=0, keepdim=True)),
    # statistics
    "cov of a vector": ("ROW", lambda x: torch.cov(x, correction=0)),
    "cov with weights": ("X", lambda x: torch.cov(x, correction=2, fweights=torch.tensor([1, 2, 1, 3, 1, 2]), aweights=torch.tensor([0.5, 1, 2, 1, 0.25, 3]))),
    "cov with counts": ("X", lambda x: torch.cov(x, fweights=torch.tensor([1, 2, 1, 3, 1, 2]))),
    "corrcoef": ("X", lambda x: torch.corrcoef(x)),
    "corrcoef of a vector": ("ROW", lambda x: torch.corrcoef(x)),
    # products
    "cross": ("CUBE", lambda x: torch.linalg.cross(x, torch.arange(1.0, 4.0, dtype=x.dtype).reshape(1, 3, 1), dim=1)),
    "cross from the end": ("CUBE", lambda x: torch.cross(x, torch.flip(x, (2,)) + x, dim=-2)),
    "addmm": ("SQUARE", lambda x: torch.addmm(B, x, B, beta=0.5, alpha=-2)),
    "addmm without": ("SQUARE", lambda x: torch.addmm(B * math.nan, x, B, beta=0)),
    "addmv": ("SQUARE", lambda x: torch.addmv(B[:, 0], x, B[:, 1], beta=3, alpha=0.5)),
    "addbmm": ("STACK", lambda x: torch.addbmm(B, x, torch.stack([B, 2 * B]), beta=0.5, alpha=-1)),
    "tensordot of pairs": ("CUBE", lambda x: torch.tensordot(x, torch.ones(1, 4, 5, dtype=x.dtype), ([1, 2], [0, 1]))),
    "tensordot of pairs, the other way": ("CUBE", lambda x: torch.tensordot(x[:, :1], torch.ones(3, 4, 5, dtype=x.dtype), ([1, 2], [0, 1]))),
    "tensordot of one": ("CUBE", lambda x: torch.tensordot(x, torch.ones(4, 5, dtype=x.dtype), 1)),
    # shapes
    "flatten": ("CUBE", lambda x: torch.flatten(x, 1)),
    "flatten to the middle": ("CUBE", lambda x: torch.flatten(x, 0, 1)),
    "flatten one": ("CUBE", lambda x: torch.flatten(x, -2, -2)),
    "flatten a number": ("SCALAR", lambda x: torch.flatten(x)),
    "pad and crop": ("CUBE", lambda x: torch.nn.functional.pad(x, (1, -1, -2, 3))),
    "pad nothing": ("CUBE", lambda x: torch.nn.functional.pad(x, (0, 0, 2, 0))),
    "pad the first dimension": ("CUBE", lambda x: torch.nn.functional.pad(x, (0, 1, 0, 0, -1, 2))),
    "block_diag": ("X", lambda x, y: torch.block_diag(x, y[:2], y[0], x[:, :1])),
    "broadcast_tensors": ("X", lambda x, y: torch.broadcast_tensors(x, y[:1], y[:, :1])),
    "unflatten": ("X", lambda x: x.unflatten(-1, (2, -1))),
    "glu": ("X", lambda x: torch.nn.functional.glu(x, 0)),
    "prelu of channels": ("CUBE", lambda x: torch.nn.functional.prelu(x, torch.tensor([0.1, 0.2, 0.3], dtype=x.dtype))),
    "prelu of columns": ("X", lambda x: torch.nn.functional.prelu(x, torch.arange(6, dtype=x.dtype))),
    "prelu of one": ("CUBE", lambda x: torch.nn.functional.prelu(x, torch.tensor([0.1], dtype=x.dtype))),
    # places
    "index_add": ("X", lambda x: torch.index_add(x, 0, torch.tensor([1, 1]), ROWS, alpha=-2)),
    "index_add of columns": ("X", lambda x: torch.index_add(x, -1, torch.tensor([5, 0]), B[:, :2])),
    "index_copy": ("X", lambda x: torch.index_copy(x, 0, torch.tensor([3, 1]), ROWS)),
    "index_fill": ("X", lambda x: torch.index_fill(x, 1, torch.tensor([0, 5]), -1.5)),
    "index_put": ("X", lambda x: torch.index_put(x, (torch.tensor([2, 0]), torch.tensor([1, 5])), B[:2, 0])),
    "index_put, added": ("X", lambda x: torch.index_put(x, (torch.tensor([2, 2]),), ROWS, True)),
    "scatter": ("X", lambda x: torch.scatter(x, 0, INDEX[:, :4].clamp(max=3), ROWS)),
    "scatter a value": ("X", lambda x: torch.scatter(x, 1, torch.tensor([[5], [0], [2]]), 7.0)),
    "scatter_add": ("X", lambda x: torch.scatter_add(x, 0, INDEX, ROWS)),
    # order
    "sort": ("X", lambda x: torch.sort(x, 0, True).values),
    "topk": ("SQUARE", lambda x: torch.topk(x + torch.arange(16).reshape(4, 4) / 64, 2, 0, False).values),
    "argmax of all": ("X", lambda x: torch.argmax(x)),
    "argmin kept": ("X", lambda x: torch.argmin(x, 0, True)),
    # solvers
    "solve": ("SQUARE", lambda x: torch.linalg.solve(x, B)),
    "solve for a vector": ("SQUARE", lambda x: torch.linalg.solve(x, B[:, 0])),
    "solve a stack": ("STACK", lambda x: torch.linalg.solve(x, B)),
}  # fmt: skip


def leaf(name: str, format: str | None) -> Any:
    data = torch.from_numpy(OPERANDS[name].copy())
    if format is None:
        return data.requires_grad_()
    known = format if data.ndim == 2 else "dense" if not data.ndim else "coo"
    return ow.asarray(data, format=known).requires_grad_()


def dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, ow.Tensor) else x


def called(name: str, format: str | None) -> tuple[list[Any], list[Any]]:
    """The call's results and the gradients of its operands, as NumPy arrays."""
    first, function = CALLS[name]
    leaves = [leaf(first, format)] + [leaf("Y", format)] * (function.__code__.co_argcount - len(function.__defaults__ or ()) > 1)  # fmt: skip
    found = function(*leaves)
    results = [dense(x) for x in (found if isinstance(found, tuple) else (found,))]
    recorded = [x for x in results if x.requires_grad]
    gradients = []
    if recorded:
        sum((x * torch.linspace(0.5, 2, x.numel(), dtype=x.dtype).reshape(x.shape)).sum() for x in recorded).backward()
        for x in leaves:
            grad = torch.zeros(x.shape, dtype=x.dtype) if x.grad is None else dense(x.grad)
            stored = torch.ones_like(grad) if format is None else dense(ow.pattern(x.detach()))
            gradients.append((grad.numpy(), stored.numpy().astype(bool)))
    return [x.detach().numpy() for x in results], gradients


@pytest.mark.thin(12)
@pytest.mark.parametrize("format", ["csr", "dense", "bsr(2, 2)"])
@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_of_dense_tensors(name: str, format: str) -> None:
    results, gradients = called(name, format)
    wanted, wanted_gradients = called(name, None)
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
    assert len(gradients) == len(wanted_gradients)
    for (got, stored), (want, _) in zip(gradients, wanted_gradients, strict=True):
        np.testing.assert_allclose(got[stored], want[stored], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("format", ["csr", "dense", "coo"])
@pytest.mark.parametrize("limits", [(-1.5, 1.5), (None, 1.0), (0.5, None), (1.0, -1.0)])
def test_limits_pass_the_gradient_of_what_is_equal_to_them(limits: tuple[Any, Any], format: str) -> None:
    x = np.array([[-1.5, 1.5, 1.0, 3.0], [0.0, -1.0, 0.5, np.nan]])
    for function in (ow.clip, torch.clamp, lambda t, *bounds: t.clip(*bounds)):
        t = ow.asarray(torch.from_numpy(x.copy()), format=format).requires_grad_()
        a = torch.from_numpy(x.copy()).requires_grad_()
        for result in (function(t, *limits), torch.clamp(a, *limits)):
            np.testing.assert_array_equal(dense(result).detach().numpy(), np.clip(x, *limits))
            result.nansum().backward()
        stored = ow.pattern(t.detach()).to_dense().numpy().astype(bool)
        np.testing.assert_array_equal(t.grad.to_dense().numpy()[stored], a.grad.numpy()[stored])


AT = torch.tensor([0, 1])
DIMENSIONS: dict[str, Callable[[Any, int], Any]] = {
    "index_add": lambda t, d: torch.index_add(t, d, AT, t[:2] if d in (0, -2) else t[:, :2]),
    "index_copy": lambda t, d: torch.index_copy(t, d, AT, t[:2] if d in (0, -2) else t[:, :2]),
    "index_fill": lambda t, d: torch.index_fill(t, d, AT, 0.5),
    "index_select": lambda t, d: torch.index_select(t, d, AT),
    "scatter": lambda t, d: torch.scatter(t, d, AT[None], 2.0),
    "scatter_add": lambda t, d: torch.scatter_add(t, d, AT[None], torch.ones(1, 2, dtype=torch.float64)),
    "gather": lambda t, d: torch.gather(t, d, AT[None]),
    "take_along_dim": lambda t, d: torch.take_along_dim(t, AT[None], d),
    "select_scatter": lambda t, d: torch.select_scatter(t, torch.ones(t.shape[1 - d % 2], dtype=torch.float64), d, 1),
    "slice_scatter": lambda t, d: torch.slice_scatter(t, torch.ones((1, 6) if d % 2 == 0 else (4, 1), dtype=torch.float64), d, 0, 1),
    "diagonal_scatter": lambda t, d: torch.diagonal_scatter(t, torch.ones(4, dtype=torch.float64), 0, d, 1 - d % 2),
    "renorm": lambda t, d: torch.renorm(t, 2, d, 0.5),
    "cross": lambda t, d: torch.cross(t[:3, :3], torch.ones(3, 3, dtype=torch.float64), dim=d),
    "select": lambda t, d: torch.select(t, d, 1),
    "narrow": lambda t, d: torch.narrow(t, d, 1, 2),
    "unbind": lambda t, d: torch.unbind(t, d)[1],
    "chunk": lambda t, d: torch.chunk(t, 2, d)[1],
    "split": lambda t, d: torch.split(t, 2, d)[1],
    "diff": lambda t, d: torch.diff(t, dim=d),
    "cumsum": lambda t, d: torch.cumsum(t, d),
    "logcumsumexp": lambda t, d: torch.logcumsumexp(t, d),
    "flip": lambda t, d: torch.flip(t, (d,)),
    "roll": lambda t, d: torch.roll(t, 1, d),
    "repeat_interleave": lambda t, d: torch.repeat_interleave(t, 2, d),
    "unsqueeze": lambda t, d: torch.unsqueeze(t, d),
    "squeeze": lambda t, d: torch.squeeze(t, d),
    "swapaxes": lambda t, d: torch.swapaxes(t, d, 0),
    "movedim": lambda t, d: torch.movedim(t, d, 0),
    "stack": lambda t, d: torch.stack([t, t], d),
    "cat": lambda t, d: torch.cat([t, t], d),
    "sort": lambda t, d: torch.sort(t, d).values,
    "topk": lambda t, d: torch.topk(t, 2, d).values,
    "kthvalue": lambda t, d: torch.kthvalue(t, 2, d).values,
    "median": lambda t, d: torch.median(t, d).values,
    "argmax": lambda t, d: torch.argmax(t, d),
    "softmax": lambda t, d: torch.softmax(t, d),
    "log_softmax": lambda t, d: torch.log_softmax(t, d),
    "logsumexp": lambda t, d: torch.logsumexp(t, d),
    "amax": lambda t, d: torch.amax(t, d),
    "var": lambda t, d: torch.var(t, d),
    "norm": lambda t, d: torch.linalg.vector_norm(t, 2, d),
    "normalize": lambda t, d: torch.nn.functional.normalize(t, dim=d),
    "cosine_similarity": lambda t, d: torch.cosine_similarity(t, t + 1, d),
    "glu": lambda t, d: torch.nn.functional.glu(t, d),
    "count_nonzero": lambda t, d: torch.count_nonzero(t, d),
    "all": lambda t, d: torch.all(t, d),
}  # fmt: skip


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", DIMENSIONS)
def test_dimensions_that_torch_refuses_are_refused(name: str) -> None:
    function, a = DIMENSIONS[name], torch.from_numpy(X.copy())
    t = ow.asarray(a, format="dense" if "softmax" in name else "csr")
    for d in (0, 1, -1, -2, 2, -3, 5):
        try:
            want = function(a, d)
        except (IndexError, RuntimeError):
            with pytest.raises((IndexError, RuntimeError, ow.ShapeError)):
                function(t, d)
        else:
            np.testing.assert_allclose(dense(function(t, d)).numpy(), want.numpy(), atol=1e-6)

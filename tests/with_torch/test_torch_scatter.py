"""Functions of torch that reduce into indexed elements, and invalid coordinates: beside those of dense tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import openwork as ow

pytestmark = [  # torch calls one a beta, the other deprecated
    pytest.mark.filterwarnings("ignore:index_reduce:UserWarning"),
    pytest.mark.filterwarnings("ignore:The reduce argument:UserWarning"),
]

close = torch.testing.assert_close
BASE = torch.tensor([[0.0, 1.5, 0, -2, 0], [0] * 5, [0.5, 3, 0, 4, 0], [0, 0, -1, 0, 2]], dtype=torch.float64)
SRC = torch.linspace(-1, 2, 20, dtype=torch.float64).reshape(4, 5)
AT = torch.tensor([[0, 2, 2, 1], [3, 2, 0, 0], [3, 3, 1, 1]])
ROWS = torch.tensor([2, 0, 2, 3])
FORMATS = ["csr", *[pytest.param(f, marks=pytest.mark.slow) for f in ("coo", "bsr(2, 2)", "csc", "bitmap", "dense")]]

WRITES: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    **{
        f"scatter_reduce {r} {d} {own}": lambda t, s, r=r, d=d, own=own: torch.scatter_reduce(
            t, d, AT, s[:3, :4], r, include_self=own
        )
        for r in ("sum", "prod", "mean", "amax", "amin")
        for d in (0, -1)
        for own in (True, False)
    },
    **{
        f"index_reduce {r} {own}": lambda t, s, r=r, own=own: torch.index_reduce(t, 0, ROWS, s, r, include_self=own)
        for r in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "index_reduce of columns": lambda t, s: torch.index_reduce(t, 1, ROWS, s[:, :4], "prod"),
    "method": lambda t, s: t.scatter_reduce(1, AT, s[:3, :4], "prod"),
}
NO_GRADIENT: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "multiply": lambda t, s: torch.scatter(t, 0, AT, s, reduce="multiply"),
    "multiply by a number": lambda t, s: torch.scatter(t, 1, AT, 2.5, reduce="multiply"),
    "add": lambda t, s: torch.scatter(t, 1, AT, s, reduce="add"),
    "in place": lambda t, s: t.clone().scatter_reduce_(0, AT, s, "amax"),
    "none": lambda t, s: torch.scatter_reduce(t, 0, AT[:0], s, "amax"),
}


def dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, ow.Tensor) else x


@pytest.mark.ci
@pytest.mark.parametrize("spec", FORMATS)
def test_reduced_into_elements(spec: str) -> None:
    stored = ow.asarray(BASE, format=spec)
    mask = stored.with_values(torch.ones_like(stored.values)).to_dense() != 0
    for name, f in WRITES.items():
        a, b = ow.asarray(BASE, format=spec).requires_grad_(), BASE.clone().requires_grad_()
        s, t = SRC.clone().requires_grad_(), SRC.clone().requires_grad_()
        got, want = f(a, s), f(b, t)
        close(dense(got), want, msg=name)
        (dense(got) * SRC).sum().backward()
        (want * SRC).sum().backward()
        close(s.grad, t.grad)
        close(a.grad.to_dense(), torch.where(mask, b.grad, 0))
    for f in NO_GRADIENT.values():
        close(dense(f(ow.asarray(BASE, format=spec), SRC)), f(BASE, SRC))
    integers = (BASE * 2).to(torch.int64)
    for r in ("sum", "prod", "mean", "amax", "amin"):
        want = integers.scatter_reduce(0, AT, SRC[:3, :4].mul(5).to(torch.int64), r)
        close(
            dense(ow.asarray(integers, format=spec).scatter_reduce(0, AT, SRC[:3, :4].mul(5).to(torch.int64), r)), want
        )


INVALID: dict[str, Callable[[Any], Any]] = {
    "scatter below 0": lambda t: torch.scatter(t, 0, torch.tensor([[-1]]), SRC),
    "scatter beyond": lambda t: torch.scatter(t, 0, torch.tensor([[4]]), SRC),
    "scatter of another rank": lambda t: torch.scatter(t, 0, torch.tensor([1]), SRC),
    "scatter too wide": lambda t: torch.scatter(t, 0, torch.zeros(2, 7, dtype=torch.int64), torch.ones(2, 7).double()),
    "scatter of few": lambda t: torch.scatter(t, 0, torch.zeros(3, 3, dtype=torch.int64), SRC[:2, :2]),
    "scatter reduce": lambda t: torch.scatter(t, 0, AT, SRC, reduce="amax"),
    "scatter_reduce reduce": lambda t: torch.scatter_reduce(t, 0, AT, SRC, "multiply"),
    "scatter of another dtype": lambda t: torch.scatter(t, 0, AT, SRC.float()),
    "index_reduce of another shape": lambda t: torch.index_reduce(t, 0, torch.tensor([0]), SRC, "prod"),
    "index_reduce below 0": lambda t: torch.index_reduce(t, 0, torch.tensor([-1]), SRC[:1], "prod"),
    "index_reduce sum": lambda t: torch.index_reduce(t, 0, torch.tensor([1]), SRC[:1], "sum"),
    "index_add below 0": lambda t: torch.index_add(t, 0, torch.tensor([-1]), SRC[:1]),
    "index_add of another dtype": lambda t: torch.index_add(t, 0, torch.tensor([1]), SRC[:1].float()),
    "index_copy below 0": lambda t: torch.index_copy(t, 0, torch.tensor([-1]), SRC[:1]),
    "index_copy of another dtype": lambda t: torch.index_copy(t, 0, torch.tensor([1]), SRC[:1].float()),
    "gather below 0": lambda t: torch.gather(t, 0, torch.tensor([[-1]])),
    "index_select below 0": lambda t: torch.index_select(t, 0, torch.tensor([-1])),
    "index_select beyond": lambda t: torch.index_select(t, 1, torch.tensor([5])),
}


@pytest.mark.parametrize("spec", FORMATS)
def test_refused_as_torch_refuses(spec: str) -> None:
    for name, f in INVALID.items():
        for t in (BASE, ow.asarray(BASE, format=spec)):
            with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)):
                pytest.fail(f"{name}: {f(t)}")

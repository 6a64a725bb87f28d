"""Arguments of wrappers that samples of the default suite left out: against torch on the dense tensor, gradients too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch_opinfo import dense, flat, same

import openwork as ow

X = torch.tensor([[0.0, 0.5, 0, -0.25], [0.75, 0, 0.125, 0], [0.3, 0, 0, 0.9]], dtype=torch.float64)
V = torch.tensor([0.0, 2, 0, 3, -1, 0], dtype=torch.float64)
C = torch.complex(X, X.flip(1) * (X != 0))
D = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)

CASES: dict[str, tuple[torch.Tensor, Callable[[Any], Any]]] = {
    "cov of complex": (C, torch.cov),
    "cov, correction": (X, lambda t: torch.cov(t, correction=0)),
    "corrcoef of complex": (C, torch.corrcoef),
    "diff": (X, torch.diff),
    "diff, n": (X, lambda t: torch.diff(t, 2)),
    "diff, dim": (X, lambda t: torch.diff(t, dim=0)),
    "diff, prepend": (X, lambda t: torch.diff(t, prepend=t)),
    "topk of rank 0": (torch.tensor(2.0), lambda t: torch.topk(t, 1)),
    "sort of rank 0": (torch.tensor(2.0), lambda t: torch.sort(t).values),
    "quantile, lower, inf": (torch.tensor([0, torch.inf, 0, 3.0]), lambda t: torch.quantile(t, 0.7, interpolation="lower")),
    "quantile, nearest": (V, lambda t: torch.quantile(t, 0.3, interpolation="nearest")),
    "trapezoid over a dense x": (X, lambda t: torch.trapezoid(t, D.cumsum(1))),
    "trapezoid of a dense y": (X, lambda t: torch.trapezoid(D, t)),
    "trapezoid, dx": (X, lambda t: torch.trapezoid(t, dx=0.5, dim=0)),
    "tensordot, lists": (X, lambda t: torch.tensordot(t, D, dims=([0, 1], [0, 1]))),
    "tensordot, one": (X, lambda t: torch.tensordot(t, D, dims=([1], [1]))),
    "tensordot, none": (X, lambda t: torch.tensordot(t, D, 0)),
    "isin": (X, lambda t: torch.isin(t, torch.tensor([0.5, 0.9], dtype=torch.float64))),
    "isin, 0": (X, lambda t: torch.isin(t, torch.tensor([0.0, 0.5], dtype=torch.float64))),
    "isin, inverted": (X, lambda t: torch.isin(t, torch.tensor([0.5], dtype=torch.float64), invert=True)),
    "nonzero_static": (X, lambda t: torch.nonzero_static(t, size=8)),
    "nonzero_static, fill": (X, lambda t: torch.nonzero_static(t, size=8, fill_value=7)),
    "nonzero_static, fewer": (X, lambda t: torch.nonzero_static(t, size=2)),
    **{f"matrix_norm {o}, keepdim {k}": (X, lambda t, o=o, k=k: torch.linalg.matrix_norm(t, o, keepdim=k))
       for o in ("fro", 1, -1, torch.inf, -torch.inf) for k in (False, True)},
    "matrix_norm, dims": (X, lambda t: torch.linalg.matrix_norm(t, 1, dim=(1, 0))),
    "prelu at 0": (X, lambda t: F.prelu(t, torch.tensor([0.25], dtype=torch.float64))),
    "prelu by channel": (X, lambda t: F.prelu(t, torch.tensor([0.25, 0.5, 1, 2], dtype=torch.float64))),
    "block_diag": (X, lambda t: torch.block_diag(t, t)),
    "einsum, summed apart": (X, lambda t: torch.einsum("ij,kl->ik", t, D)),
    "einsum, summed apart, both": (X, lambda t: torch.einsum("ij,kl->ik", t, t)),
    "einsum of a list": (X, lambda t: torch.einsum("ij,ij->i", [t, D])),
    "float32 by float64": (X.float(), lambda t: t * D),
    "float64 by float32": (X, lambda t: t * D.float()),
    "float32 plus a sparse float64": (X.float(), lambda t: t + t.double() * t),
    "diag_embed": (V, torch.diag_embed),
    "diag_embed, offset": (V, lambda t: torch.diag_embed(t, 1)),
    "aliases": (X, lambda t: (torch.multiply(t, t), torch.subtract(t, D), torch.absolute(t), torch.negative(t), torch.fix(t))),
    "div, modes": (X, lambda t: (torch.div(t, 0.3, rounding_mode="floor"), torch.div(t, 0.3, rounding_mode="trunc"))),
    "add, alpha": (X, lambda t: (torch.add(t, t, alpha=2), torch.sub(t, D, alpha=3), torch.rsub(t, t, alpha=2))),
    "sum, lists": (X, lambda t: (torch.sum(t, [0, 1]), torch.sum(t, (-1,), True), torch.mean(t, [0]), torch.amax(t, (0, 1)))),
    "var, arguments": (X, lambda t: (torch.var(t, 1, unbiased=False), torch.std(t, dim=0, correction=2), torch.var(t, False))),
    "permute, lists": (X, lambda t: (torch.permute(t, [1, 0]), torch.movedim(t, 0, -1), torch.swapdims(t, 0, 1))),
    "roll and flip": (X, lambda t: (torch.roll(t, 1), torch.roll(t, (1, 2), (0, 1)), torch.flip(t, [0]))),
    "cumsum of rank 0": (torch.tensor(2.0), lambda t: (torch.cumsum(t, 0), torch.sum(t, 0), torch.amax(t, 0))),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    x, function = CASES[name]
    plain = x.clone().requires_grad_()
    leaf = x.clone().requires_grad_()
    t = ow.asarray(leaf, format="coo" if x.ndim else None)
    got, want = function(t), function(plain)
    assert same(got, want, 1e-6 if x.dtype == torch.float32 else 1e-9) == ""

    def loss(result: Any) -> torch.Tensor | None:
        parts = [y for y in map(dense, flat(result)) if isinstance(y, torch.Tensor) and y.requires_grad]
        return (
            sum((y.abs() * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum() for y in parts) if parts else None
        )

    mine, theirs = loss(got), loss(want)
    assert (mine is None) == (theirs is None)
    if theirs is not None and "complex" not in name and "sort" not in name:
        a, b = torch.autograd.grad(mine, leaf)[0], torch.autograd.grad(theirs, plain)[0]
        kept = (x != 0) & b.isfinite()
        torch.testing.assert_close(a[kept], b[kept])


def test_a_value_that_is_zeroed_after_its_use() -> None:
    """With `grad="dense"` backward uses the operands as they were when they were used."""
    leaf, plain = X.clone().requires_grad_(), X.clone().requires_grad_()
    t = ow.asarray(leaf, format="csr", grad="dense") * 1
    squared = t * t
    t.zero_()
    assert t.to_dense().count_nonzero() == 0
    squared.to_dense().sum().backward()
    (plain * plain).sum().backward()
    assert torch.equal(leaf.grad, plain.grad)


def test_fill_values_that_have_no_place_are_refused() -> None:
    with pytest.raises(ow.UnsupportedError, match="diag_embed"):
        torch.diag_embed(ow.asarray(V, format="coo") + 1)


def test_masked_arguments() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    m = ow.masked_tensor(x, x % 3 != 0)
    n = m.filled(-1).to_dense()
    assert torch.equal(m.transpose((1, 0, 2)).filled(-1).to_dense(), n.permute(1, 0, 2))
    assert torch.equal(m.permute([2, 0, 1]).filled(-1).to_dense(), n.permute(2, 0, 1))
    for d in (0, 1, 2, -1):
        want = torch.softmax(x.masked_fill(x % 3 == 0, -torch.inf), d)
        for got in (m.softmax(dim=d), m.softmax(d), torch.softmax(m, dim=d), torch.softmax(m, d)):
            torch.testing.assert_close(got.filled(0).to_dense(), want.nan_to_num(0))
    v = ow.masked_tensor(np.array([1.0, 2, 3]), np.array([True, False, True]))
    listed = [1, 2, 3]
    assert (v + listed).compressed().tolist() == [2, 6]
    assert (listed + v).compressed().tolist() == [2, 6]
    assert (v * (1, 2, 3)).compressed().tolist() == [1, 9]
    assert ow.result_type(v, ow.int8) == np.dtype("float64")
    assert ow.result_type(v.astype("float32"), ow.int8) == np.dtype("float32")
    assert ow.can_cast(v, ow.float64) is True
    assert ow.can_cast(v, ow.float32) is False

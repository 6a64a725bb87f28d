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


def compare(name: str, x: torch.Tensor, function: Callable[[Any], Any], recorded: bool = True) -> None:
    """The values, and where recorded the gradients at the stored elements, of a call on a Tensor and on the dense tensor."""
    plain = x.clone().requires_grad_(recorded)
    leaf = x.clone().requires_grad_(recorded)
    t = ow.asarray(leaf, format="coo" if x.ndim else None)
    got, want = function(t), function(plain)
    assert same(got, want, 1e-6 if x.dtype == torch.float32 else 1e-9) == "", name

    def loss(result: Any) -> torch.Tensor | None:
        parts = [y for y in map(dense, flat(result)) if isinstance(y, torch.Tensor) and y.requires_grad]
        return (
            sum((y.abs() * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum() for y in parts) if parts else None
        )

    mine, theirs = loss(got), loss(want)
    assert (mine is None) == (theirs is None), name
    if theirs is not None and "complex" not in name and "sort" not in name:
        a, b = torch.autograd.grad(mine, leaf)[0], torch.autograd.grad(theirs, plain)[0]
        kept = (x != 0) & b.isfinite()
        torch.testing.assert_close(a[kept], b[kept], msg=lambda text: f"{name}: {text}")


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    compare(name, *CASES[name])


PLACES = torch.tensor([[0, 3, 1], [2, 1, 0], [1, 0, 3]])
LESS = X.abs() < 0.4
CLASSES = torch.tensor([1, 0, 3])
SHARES = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0, 0, 0.5, 0.5]], dtype=torch.float64)
ROW = torch.tensor([0.5, 1, 2, 4], dtype=torch.float64)
SCALAR = torch.tensor(2.0, dtype=torch.float64)
SQUARE = torch.tensor([[2.0, 0, 0.5], [0, 3, 0], [0.25, 0, 4]], dtype=torch.float64)
STACK = torch.stack([X, X.flip(1)])
ZERO = torch.tensor([0])

WRAPPERS: dict[str, tuple[torch.Tensor, Callable[[Any], Any]]] = {
    "unflatten": (X, lambda t: (torch.unflatten(t, 1, (2, 2)), torch.unflatten(t, -1, [2, -1]), torch.unflatten(t, 0, (-1, 3)))),
    "expand and repeat": (X, lambda t: (t[:, :1].expand(-1, 4), t[:1].expand(2, 3, -1), t.repeat(2, 1), t.repeat(2, 1, 3))),
    "take_along_dim": (X, lambda t: (torch.take_along_dim(t, PLACES), torch.take_along_dim(t, PLACES, 1), torch.gather(t, 1, PLACES))),
    "rot90": (X, lambda t: tuple(torch.rot90(t, k, d) for k in range(4) for d in ((0, 1), (1, 0)))),
    "rot90 of a stack": (STACK, lambda t: tuple(torch.rot90(t, k, d) for k in (1, 2, 3) for d in ((1, 2), (0, 2)))),
    "unfold": (X, lambda t: (t.unfold(1, 2, 1), t.unfold(0, 2, 1), t.unfold(1, 2, 2), t.unfold(-1, 3, 2))),
    "pad": (X, lambda t: (F.pad(t, (1, 2)), F.pad(t, (-1, 1, 2, 0)), F.pad(t, (0, -1), value=0), F.pad(t, (1, 0), "constant", None))),
    "pad, modes": (X, lambda t: tuple(F.pad(t, p, m) for m in ("circular", "replicate", "reflect") for p in ((1, 2), (3, 0)))),
    "diag_embed, planes": (X, lambda t: (torch.diag_embed(t, 1, 2, 0), torch.diag_embed(t, -1, 0, 1), torch.diag_embed(t, dim1=1, dim2=0))),
    "atleast of several": (V, lambda t: (torch.atleast_2d(t, t * 2), torch.atleast_1d((t, t)), torch.atleast_3d([t]))),
    "column_stack": (V, lambda t: (torch.column_stack([t, t.reshape(6, 1), t]), torch.column_stack((t, V)))),
    "broadcast_tensors": (X, lambda t: (torch.broadcast_tensors(t, D[0]), torch.broadcast_tensors(t[:, :1], t[:1]))),
    "meshgrid": (V, lambda t: (torch.meshgrid(t, t[1:3], ROW, indexing="xy"), torch.meshgrid([t, ROW], indexing="ij"))),
    "products of vectors": (V, lambda t: (torch.cartesian_prod(t, t[:2]), torch.cartesian_prod(t), torch.cartesian_prod(ROW, t))),
    "combinations": (V, lambda t: (torch.combinations(t), torch.combinations(t, 3), torch.combinations(t, 2, True))),
    "index writes": (X, lambda t: (
        torch.index_add(t, 0, torch.tensor([2, 0, 2]), D), torch.index_add(t, 1, ZERO, D[:, :1], alpha=2),
        torch.index_copy(t, 1, torch.tensor([3, 0]), D[:, :2]), torch.index_fill(t, 0, torch.tensor([1]), 7))),
    "index_put": (X, lambda t: (
        torch.index_put(t, (ZERO, ZERO + 1), SCALAR), torch.index_put(t, (torch.tensor([0, 0]), torch.tensor([1, 1])), ROW[:2], True))),
    "scatter": (X, lambda t: (
        torch.scatter(t, 1, PLACES[:, :2], D), torch.scatter(t, 1, PLACES, 5.0), torch.scatter_add(t, 0, PLACES % 3, D),
        torch.scatter(t, 0, ZERO[:0].reshape(0, 0), D))),
    "put": (X, lambda t: (
        t.put(PLACES[:1], D[:1, :3].clone()), t.put(torch.tensor([0, 0, 5]), ROW[:3], True), t.put(ZERO[:0], ROW[:0]))),
    "masked": (X, lambda t: (
        torch.masked_scatter(t, LESS, D), torch.masked_select(t, LESS), torch.masked_fill(t, LESS, 0.0),
        torch.masked_fill(t, LESS[0], SCALAR), torch.masked_select(t, LESS[:1]))),
    "scatters of slices": (X, lambda t: (
        torch.select_scatter(t, ROW, 0, 1), torch.select_scatter(t, ROW[:3], -1, 2), torch.slice_scatter(t, D[:, :2], 1, 0, 4, 2),
        torch.diagonal_scatter(t, ROW[:3]), torch.diagonal_scatter(t, ROW[:3], 1), torch.diagonal_scatter(t, ROW[:2], -1, 0, 1))),
    "diagonal_scatter of a stack": (STACK, lambda t: (
        torch.diagonal_scatter(t, D[:2, :3], 0, 1, 2), torch.diagonal_scatter(t, D[:, :2], 1, 0, 2))),
    "rank 0": (SCALAR, lambda t: (
        torch.gather(t, 0, ZERO), t.unfold(0, 1, 1), torch.masked_select(t, t > 1), torch.scatter(t, 0, ZERO, ROW[:1]),
        torch.index_add(t, 0, ZERO, ROW[0]), torch.index_copy(t, 0, ZERO, ROW[0]), torch.index_fill(t, 0, ZERO, 3.0),
        torch.masked_scatter(t, t > 1, ROW), torch.column_stack([t, t]))),
    "orders of rank 0": (SCALAR, lambda t: (
        torch.max(t, 0), torch.min(t, 0, True), torch.argmax(t), torch.argmin(t, 0), torch.argsort(t), torch.kthvalue(t, 1),
        torch.median(t, 0), torch.quantile(t, 0.5), torch.quantile(t, 0.5, keepdim=True), torch.aminmax(t, dim=0))),
    "orders": (X, lambda t: (
        torch.argsort(t[:, :2], 0), torch.kthvalue(t, 4, 1), torch.kthvalue(t[:, :1], 3, 0, True), torch.median(t, 1), torch.median(t),
        torch.msort(t), torch.aminmax(t, dim=1, keepdim=True), torch.topk(t, 2, 0, largest=False).values)),
    "quantiles": (X, lambda t: (
        torch.quantile(t, ROW / 4, keepdim=True), torch.quantile(t, ROW / 4, 0, True), torch.quantile(t, 0.3, 1, True),
        torch.quantile(t, 0.3, interpolation="midpoint"), torch.quantile(t, ROW[:2] / 3, 1, interpolation="higher"))),
    "isin of sparse elements": (X, lambda t: (
        torch.isin(t, t[1]), torch.isin(D, t), torch.isin(D, t, invert=True), torch.isin(t, t[0], invert=True))),
    "bucketize": (X, lambda t: (
        torch.bucketize(t, ROW - 0.5), torch.bucketize(t, ROW - 1, right=True), torch.bucketize(t, ROW, out_int32=True))),
    "searchsorted": (V.sort().values, lambda t: (
        torch.searchsorted(t, D), torch.searchsorted(t, ROW, side="right"), torch.searchsorted(t, ROW, out_int32=True, right=True),
        torch.searchsorted(t, 2.0))),
    "nonzero of all": (X, lambda t: (torch.nonzero(t + 1), torch.nonzero(t + 1, as_tuple=True), torch.argwhere(t))),
    "trapezoid over a vector": (X, lambda t: (
        torch.trapezoid(t, ROW), torch.trapezoid(t, ROW[:3], dim=0), torch.cumulative_trapezoid(t), torch.trapezoid(t, t[0]),
        torch.cumulative_trapezoid(t, ROW[:3], dim=0), torch.cumulative_trapezoid(t, dx=0.5, dim=0))),
    "norms": (X, lambda t: (
        torch.norm(t, torch.inf), torch.norm(t, -torch.inf, 1), torch.norm(t, torch.inf, 0, True), torch.norm(t, 0, 0),
        torch.norm(t, 3, [0, 1]), torch.norm(t, 0.5, 1), torch.linalg.norm(t, 1), torch.linalg.norm(t, -torch.inf, keepdim=True),
        torch.linalg.norm(t, 1, 0), torch.linalg.norm(t, dtype=torch.float64), torch.linalg.vector_norm(t, 1, (0, 1), True))),
    "distances": (X, lambda t: (
        F.normalize(t), F.normalize(t, 1, 0), F.normalize(t, eps=2.0), F.cosine_similarity(t, D), F.cosine_similarity(D, t, 0),
        F.cosine_similarity(t.detach(), D[:1], eps=5.0), F.pairwise_distance(t, D), F.pairwise_distance(D, t, 1, keepdim=True),
        torch.dist(t, D), torch.dist(t, t * 2, 1), torch.dist(D, t, 3), torch.renorm(t, 2, 0, 0.4))),
    "statistics of a vector": (V, lambda t: (torch.cov(t), torch.cov(t, correction=0), torch.corrcoef(t))),
    "glu": (X, lambda t: (F.glu(t), F.glu(t, 1))),
    "prelu of a stack": (STACK, lambda t: (F.prelu(t, ROW[:3]), F.prelu(t, ROW[:1]))),
    "addr": (V[:3], lambda t: (torch.addr(D, t, ROW, beta=2, alpha=3), torch.addr(D, t, ROW, beta=0), torch.outer(ROW, t))),
    "multi_dot": (X, lambda t: (torch.linalg.multi_dot([t, t.mT, D]), torch.linalg.multi_dot([ROW[:3], t, D.mT]))),
    "diagonals": (STACK, lambda t: (torch.linalg.diagonal(t, offset=1), torch.linalg.diagonal(t, dim1=0, dim2=1))),
    "solve": (SQUARE, lambda t: (
        torch.linalg.solve(t, D), torch.linalg.solve(t, D.mT, left=False), torch.linalg.solve(t, ROW[:3]),
        torch.linalg.solve_triangular(t, D, upper=True), torch.linalg.solve_triangular(t, D, upper=False, unitriangular=True),
        torch.linalg.solve_triangular(t, D.mT, upper=False, left=False),
        torch.linalg.solve_triangular(t, D.mT, upper=True, left=False, unitriangular=True))),
    "constants": (X, lambda t: (
        torch.zeros_like(t), torch.ones_like(t), torch.full_like(t, 3), torch.ones_like(t, dtype=torch.float32), torch.fill(t.detach(), 2), torch.fill(t.detach(), SCALAR),
        t.new_full((2, 3), 1.5), t.new_zeros(2, 3), t.new_ones((2,), dtype=torch.int64))),
    "bilinear": (X, lambda t: (F.bilinear(t, D, STACK.mT @ D), F.bilinear(D, t, STACK.mT @ D, ROW[:2]))),
    "cross_entropy": (X, lambda t: (
        F.cross_entropy(t, CLASSES), F.cross_entropy(t, CLASSES, ROW, reduction="sum"), F.cross_entropy(t, CLASSES, ROW),
        F.cross_entropy(t, CLASSES, ignore_index=3), F.cross_entropy(t, CLASSES, reduction="none", label_smoothing=0.2),
        F.cross_entropy(t, CLASSES, ROW, ignore_index=0, label_smoothing=0.1), F.cross_entropy(t, SHARES),
        F.cross_entropy(t, SHARES, ROW, label_smoothing=0.3, reduction="sum"), F.cross_entropy(t[0], CLASSES[0]))),
    "cross_entropy of a stack": (STACK, lambda t: (
        F.cross_entropy(t, PLACES[:2, [0, 1, 2, 0]] % 3, ROW[:3]), F.cross_entropy(t, PLACES[:2, [0, 1, 2, 0]] % 3, reduction="none"),
        F.cross_entropy(t, PLACES[:2, [0, 1, 2, 0]] % 3, ROW[:3], label_smoothing=0.2), F.cross_entropy(t, STACK.abs(), ROW[:3]))),
    "nll_loss": (X, lambda t: (
        F.nll_loss(t, CLASSES), F.nll_loss(t, CLASSES, ROW), F.nll_loss(t, CLASSES, ROW, ignore_index=0, reduction="sum"),
        F.nll_loss(t, CLASSES, reduction="none"), F.nll_loss(t[1], CLASSES[0]))),
    "triplet_margin_loss": (X, lambda t: (
        F.triplet_margin_loss(t, D, D.flip(0)), F.triplet_margin_loss(D, t, D.flip(0), 2.0, 1, swap=True, reduction="sum"),
        F.triplet_margin_loss(D, t, t * 2, reduction="none"),
        F.triplet_margin_with_distance_loss(t, D, D.flip(1), distance_function=lambda a, b: (a - b).abs().sum(1)))),
    "kl_div": (X, lambda t: (F.kl_div(t, SHARES, reduction="batchmean"), F.kl_div(t, SHARES, reduction="none"))),
    "losses of tensors by name": (X, lambda t: (
        F.mse_loss(t, target=SHARES), F.binary_cross_entropy_with_logits(t, pos_weight=D.abs(), weight=SHARES.abs(), target=SHARES))),
    "addbmm": (STACK, lambda t: (
        torch.addbmm(D @ D.mT, t, t.mT, beta=2, alpha=3), torch.baddbmm(D[:, :3], t, STACK.mT, beta=0), torch.addbmm(D @ D.mT, t, STACK.mT))),
    "dot and inner": (V, lambda t: (torch.dot(t, V), torch.inner(t, V), torch.vdot(V, t))),
    "in place of a dense tensor": (X, lambda t: (D.clone().add_(t.detach()), D.clone().mul_(t.detach()), D.clone().sub_(t.detach(), alpha=2))),
    "into a dense tensor": (X, lambda t: (torch.neg(t.detach(), out=torch.empty(3, 4, dtype=torch.float64)),)),
}  # fmt: skip


def test_wrappers() -> None:
    """Every wrapper that the samples above do not reach, on one layout; every second one with gradients."""
    for k, (name, (x, function)) in enumerate(WRAPPERS.items()):
        compare(name, x, function, recorded=k % 2 == 0)


def test_every_argument_of_reductions() -> None:
    """Dimensions, orders, corrections and kept dimensions: torch's result, or an error where torch has one."""

    def attempt(function: Callable[[Any], Any], x: Any) -> Any:
        try:
            return function(x)
        except (RuntimeError, IndexError, ValueError):
            return None

    tries: list[Callable[[Any], Any]] = []
    for keepdim in (False, True):
        for dim in (None, 0, -1, 1, 2):
            tries += [lambda t, d=dim, k=keepdim: (torch.argmax(t, d, k), torch.argmin(t, d, k))]
            tries += [
                lambda t, d=dim, k=keepdim, c=c: (
                    torch.var(t, d, correction=c, keepdim=k),
                    torch.std(t, d, correction=c, keepdim=k),
                )
                for c in (0, 1, None)
            ]
        for dim in (None, 0, (-1,), (1, 0), (-2, -1), (0, 2), (0, -2), (1, 1)):
            tries += [
                lambda t, o=o, d=dim, k=keepdim: torch.linalg.norm(t, o, d, k) for o in (None, 1, -torch.inf, "fro")
            ]
    tries += [lambda t, a=a, b=b: torch.flatten(t, a, b) for a in (0, 1, -1) for b in (0, 1, -1, -2)]
    tries += [
        lambda t, dims=dims: torch.tensordot(t, X[:1], dims) for dims in (([0], [0]), ([1], [1]), ([0, 1], [0, 1]))
    ]
    tries += [lambda t: torch.tensordot(t[:1], X, ([0], [0]))]
    for x in (X, STACK, V):
        t = ow.asarray(x.clone()).asformat("coo")
        for k, function in enumerate(tries):
            got, want = attempt(function, t), attempt(function, x)
            assert (got is None) == (want is None), (x.shape, k)
            assert want is None or same(got, want, 1e-9) == "", (x.shape, k)


def test_of_the_dense_format() -> None:
    """Wrappers have a way of their own for Tensors of dense formats."""
    for name, (x, function) in (CASES | WRAPPERS).items():
        wrong = same(function(ow.asarray(x.clone())), function(x.clone()), 1e-6 if x.dtype == torch.float32 else 1e-9)
        assert wrong == "", name


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
    with pytest.raises(ValueError, match="scatter: reduce"):
        torch.scatter(ow.asarray(X, format="csr"), 1, PLACES, D, reduce="max")
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


def test_what_is_no_function_of_ours_is_refused_however_it_is_called() -> None:
    for call in (lambda t: torch.fft.fft(input=t), lambda t: torch.fft.fft(t)):
        with pytest.raises(ow.UnsupportedError, match="does not take an openwork Tensor"):
            call(ow.asarray(X, format="csr"))

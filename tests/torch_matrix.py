"""Operations on tensors over torch buffers, by layout: values and gradients against torch on dense tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import openwork as ow
from openwork.ops.indexing.taking import values_at

LAYOUTS: dict[str, tuple[str, tuple[int, ...]]] = {
    "coo": ("coo", (4, 6)),
    "csr": ("csr", (4, 6)),
    "csc": ("csc", (4, 6)),
    "bsr": ("bsr(2, 3)", (4, 6)),
    "ragged bsr": ("bsr(3, 4)", (4, 6)),
    "bsc": ("bsc(2, 3)", (4, 6)),
    "dcsr": ("dcsr", (4, 6)),
    "dia": ("dia", (4, 6)),
    "ell": ("ell(6)", (4, 6)),
    "bitmap": ("bitmap", (4, 6)),
    "uncoalesced coo": (
        "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
        (4, 6),
    ),
    "hybrid": ("(i, j) -> (i : compressed, j : dense)", (4, 6)),
    "dense": ("dense", (4, 6)),
}
"""Layouts of matrices: format and shape."""

STACKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "batched csr": ("(b, i, j) -> (b : batch, i : dense, j : compressed)", (2, 4, 6)),
    "batched bsr": (
        "(b, i, j) -> (b : batch, i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)",
        (2, 4, 6),
    ),
    "hybrid csr": ("(i, j, k) -> (i : dense, j : compressed, k : dense)", (2, 4, 6)),
    "hybrid coo": ("(i, j, k) -> (i : compressed(nonunique), j : singleton, k : dense)", (2, 4, 6)),
    "coo": ("coo", (2, 4, 6)),
    "csf": ("csf", (2, 4, 6)),
}
"""Layouts of stacks of matrices."""


@dataclass(frozen=True)
class Case:
    """A tensor, the dense tensor of the same elements, and how the gradients of both compare."""

    tensor: ow.Tensor
    dense: torch.Tensor

    @property
    def own_gradient(self) -> torch.Tensor:
        """The gradient of the stored elements; padding has none."""
        grad = self.tensor.values.grad
        assert grad is not None
        return torch.where(self._present, grad, 0)

    @property
    def dense_gradient(self) -> torch.Tensor:
        """The gradient of the dense tensor at the stored elements."""
        assert self.dense.grad is not None
        return values_at(ow.asarray(self.dense.grad), self.tensor.detach()._storage)

    @property
    def _present(self) -> torch.Tensor:
        ones = ow.asarray(torch.ones(self.tensor.shape, dtype=torch.bool))
        return values_at(ones, self.tensor.detach()._storage)


def make(spec: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0) -> Case:
    """A case whose stored values are all different and far from each other, from 0 and from 1."""
    generator = torch.Generator().manual_seed(seed)
    count = shape[-1] * shape[-2] * (shape[0] if len(shape) > 2 else 1)
    values = 0.2 + 0.7 * torch.randperm(count, generator=generator).reshape(shape) / count
    keep = torch.rand(shape[-2:], generator=generator) < 0.5
    keep[0, 0] = keep[1, 0] = True
    signs = torch.rand(shape, generator=generator) < 0.3
    dense = torch.where(keep, torch.where(signs, -values, values), 0.0)
    dense = dense.to(torch.float64)
    if dtype.is_complex:
        dense = torch.complex(dense, dense.flip(-1) * (dense != 0))
    return leaves(ow.asarray(dense.to(dtype)).asformat(ow.format(spec, len(shape))))


def leaves(t: ow.Tensor) -> Case:
    """The tensor and its dense counterpart, both leaves; of an uncoalesced one some elements are stored twice."""
    if not t.format.is_unique:
        halves = t._storage.with_values(t.values * 0.5)
        row, column = (torch.cat([c, c]) for c in t._storage.crd)
        pos = torch.tensor([0, len(row)])
        t = ow.assemble(
            t.format, t.shape, pos={0: pos}, crd={0: row, 1: column}, values=torch.cat([halves.values, halves.values])
        )
    t = t.clone()
    dense = t.to_dense().clone().requires_grad_()
    return Case(t.requires_grad_(), dense)


def plain(x: Any) -> torch.Tensor:
    """A result as a dense torch tensor."""
    found: torch.Tensor = x.to_dense() if isinstance(x, ow.Tensor) else x
    return found


def compare(got: Any, want: torch.Tensor, tolerance: float = 1e-9) -> None:
    got = plain(got)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def check(case: Case, mine: Callable[[Any], Any], theirs: Callable[[Any], Any], tolerance: float = 1e-9) -> None:
    """The same value, and the same gradient at the stored elements."""
    got, want = plain(mine(case.tensor)), theirs(case.dense)
    compare(got, want, tolerance)
    if not (want.is_floating_point() or want.is_complex()):
        assert not got.requires_grad
        return
    weights = torch.linspace(0.5, 1.5, want.numel(), dtype=torch.float64).reshape(want.shape).to(want.dtype)
    (got * weights).sum().abs().backward()
    (want * weights).sum().abs().backward()
    torch.testing.assert_close(case.own_gradient, case.dense_gradient, rtol=tolerance, atol=tolerance)


X = torch.linspace(-1.0, 1.0, 18, dtype=torch.float64).reshape(6, 3)
"""A dense operand."""

UNARY = {
    "abs": (ow.abs, torch.abs), "asin": (ow.asin, torch.asin), "atan": (ow.atan, torch.atan), "ceil": (ow.ceil, torch.ceil),
    "cos": (ow.cos, torch.cos), "cosh": (ow.cosh, torch.cosh), "exp": (ow.exp, torch.exp), "expm1": (ow.expm1, torch.expm1),
    "floor": (ow.floor, torch.floor), "log1p": (ow.log1p, torch.log1p), "neg": (ow.negative, torch.neg),
    "round": (ow.round, torch.round), "sign": (ow.sign, torch.sign), "sin": (ow.sin, torch.sin), "sinh": (ow.sinh, torch.sinh),
    "square": (ow.square, torch.square), "tan": (ow.tan, torch.tan), "tanh": (ow.tanh, torch.tanh), "trunc": (ow.trunc, torch.trunc),
    "asinh": (ow.asinh, torch.asinh), "atanh": (ow.atanh, torch.atanh), "acos": (ow.acos, torch.acos),
    "sqrt of abs + 1": (lambda t: ow.sqrt(ow.abs(t) + 1), lambda d: torch.sqrt(d.abs() + 1)),
    "log of abs + 1": (lambda t: ow.log(ow.abs(t) + 1), lambda d: torch.log(d.abs() + 1)),
    "log2 and log10": (lambda t: ow.log2(t + 2) + ow.log10(t + 2), lambda d: torch.log2(d + 2) + torch.log10(d + 2)),
    "reciprocal": (lambda t: ow.reciprocal(t + 2), lambda d: 1 / (d + 2)),
    "power": (lambda t: t**3, lambda d: d**3),
    "scaled": (lambda t: 2 * t / 3, lambda d: 2 * d / 3),
    "clamp": (lambda t: ow.clip(t, -0.4, 0.5), lambda d: d.clamp(-0.4, 0.5)),
    "relu": (lambda t: ow.maximum(t, 0.05), lambda d: d.clamp(min=0.05)),
    "greater": (lambda t: t > 0.3, lambda d: d > 0.3),
}  # fmt: skip

BINARY = {
    "sum": lambda t: t + t * t,
    "difference": lambda t: t - 2 * t,
    "product": lambda t: t * (t + 2),
    "quotient": lambda t: t / (t + 2),
    "mixed formats": lambda t: (t.asformat("coo") if isinstance(t, ow.Tensor) else t) + t,
    "broadcast dense": lambda t: t * X[:, 0],
    "divided by dense": lambda t: t / (X[:, 0] + 3),
    "plus dense": lambda t: t + X[:, 0],
    "row broadcast": lambda t: t * t[:1],
}

PRODUCTS = {
    "spmm": lambda t: t @ X,
    "spmv": lambda t: t @ X[:, 0],
    "left": lambda t: X.T @ t.mT,
    "spgemm": lambda t: t @ (2 * t).mT,
    "gram": lambda t: t.mT @ t,
    "outer": lambda t: (ow.outer if isinstance(t, ow.Tensor) else lambda a, b: torch.outer(a.reshape(-1), b))(
        t, X[:, 0]
    ),
}

STRUCTURAL = {
    "transpose": (lambda t: t.mT, lambda d: d.mT),
    "row": (lambda t: t[..., 1, :], lambda d: d[..., 1, :]),
    "slice": (lambda t: t[..., 1:3, ::2], lambda d: d[..., 1:3, ::2]),
    "gather": (lambda t: t[..., [2, 0, 2]], lambda d: d[..., [2, 0, 2]]),
    "flip": (lambda t: ow.flip(t, axis=-1), lambda d: d.flip(-1)),
    "roll": (lambda t: ow.roll(t, 2, axis=-1), lambda d: d.roll(2, -1)),
    "reshape": (lambda t: ow.reshape(t, (-1, 8)), lambda d: d.reshape(-1, 8)),
    "expand": (lambda t: ow.broadcast_to(t[..., :1], t.shape), lambda d: d[..., :1].expand(d.shape)),
    "tril": (lambda t: ow.tril(t), lambda d: d.tril()),
    "triu": (lambda t: ow.triu(t, k=1), lambda d: d.triu(1)),
    "diagonal": (lambda t: ow.diagonal(t), lambda d: d.diagonal(dim1=-2, dim2=-1)),
    "concat": (lambda t: ow.concat([t, 2 * t], axis=-1), lambda d: torch.cat([d, 2 * d], -1)),
    "stack": (lambda t: ow.stack([t, 2 * t]), lambda d: torch.stack([d, 2 * d])),
    "take": (lambda t: ow.take(t, [1, 1, 0], axis=-2), lambda d: d[..., [1, 1, 0], :]),
    "repeat": (lambda t: ow.repeat(t, 2, axis=-1), lambda d: d.repeat_interleave(2, -1)),
    "tile": (lambda t: ow.tile(t, 2), lambda d: torch.cat([d, d], -1)),
    "clone": (lambda t: t.clone(), lambda d: d.clone()),
    "to dcsr or csf": (lambda t: t.asformat("csf"), lambda d: d),
    "coalesce": (lambda t: t.coalesce(), lambda d: d),
}

REDUCTIONS = {
    "sum": (lambda t: t.sum(-1), lambda d: d.sum(-1)),
    "sum of all": (lambda t: t.sum(), lambda d: d.sum()),
    "mean": (lambda t: t.mean(-2), lambda d: d.mean(-2)),
    "amax": (lambda t: t.max(axis=-1), lambda d: d.amax(-1)),
    "amin": (lambda t: t.min(), lambda d: d.amin()),
    "prod": (lambda t: (t + 1).prod(-1), lambda d: (d + 1).prod(-1)),
    "prod with zeros": (lambda t: t.prod(-2), lambda d: d.prod(-2)),
    "var": (lambda t: t.var(axis=-1), lambda d: d.var(-1, correction=0)),
    "std": (lambda t: (t + 1).std(axis=-1), lambda d: (d + 1).std(-1, correction=0)),
}

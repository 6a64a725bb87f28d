"""Recorded operations on structures that have met: what is kept of them gives the values and gradients of dense ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import openwork as ow  # noqa: E402
from openwork.storage.specified import coordinates  # noqa: E402

RNG = np.random.default_rng(3)
X, Y = (np.where(RNG.random((7, 7)) < 0.4, RNG.random((7, 7)) + 0.5, 0.0) for _ in range(2))
L, R = (torch.tensor(RNG.random(n)) for n in ((7, 3), (3, 7)))
FORMATS = ["csr", "csc", "coo", "bsr(2, 2)"]


def softmax(x: Any, pattern: Any) -> Any:
    rows = torch.where(pattern, x, -torch.inf)
    return torch.where(pattern, torch.softmax(rows, 1), 0.0).nan_to_num()


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a + b": (lambda a, b: a + b, lambda a, b, _: a + b),
    "a - b": (lambda a, b: a - b, lambda a, b, _: a - b),
    "a * b": (lambda a, b: a * b, lambda a, b, _: a * b),
    "maximum": (lambda a, b: torch.maximum(a, b), lambda a, b, _: torch.maximum(a, b)),
    "a + b, fill 1": (lambda a, b: (a + 1) + (b + 1), lambda a, b, _: a + b + 2),
    "a * b + a": (
        lambda a, b: ow.pointwise("A * B + A", {"A": a, "B": b}), lambda a, b, _: a * b + a,
    ),
    "a @ b": (lambda a, b: a @ b, lambda a, b, _: a @ b),
    "a @ a.T": (lambda a, b: a @ a.T, lambda a, b, _: a @ a.T),
    "a * 2": (lambda a, b: a * 2, lambda a, b, _: a * 2),
    "3 * a": (lambda a, b: 3 * a, lambda a, b, _: 3 * a),
    "a / 4": (lambda a, b: a / 4, lambda a, b, _: a / 4),
    "softmax": (lambda a, b: torch.softmax(a, 1), lambda a, b, pattern: softmax(a, pattern)),
    "row sums": (lambda a, b: torch.sum(a, 1), lambda a, b, _: a.sum(1)),
    "column sums": (lambda a, b: a.sum(0), lambda a, b, _: a.sum(0)),
    "means": (lambda a, b: torch.mean(a, 1), lambda a, b, _: a.mean(1)),
    "least": (lambda a, b: ow.min(a, axis=1), lambda a, b, _: a.amin(1)),
    "sddmm": (
        lambda a, b: ow.sddmm(a, a @ R.T, R) * a, lambda a, b, pattern: (a @ R.T @ R) * a,
    ),
}  # fmt: skip


def dense_of(t: Any) -> Any:
    return t.to_dense() if isinstance(t, ow.Tensor) else t


@pytest.mark.thin(77)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_again(name: str, format: str, dtype: Any) -> None:
    """Four times with other values: results, gradients of both operands, and of the first gradient's squares."""
    ours, theirs = CALLS[name]
    first, second = (ow.asarray(torch.tensor(z, dtype=dtype), format=format) for z in (X, Y))
    patterns = []
    for t in (first, second):
        pattern = torch.zeros(7, 7, dtype=torch.bool)
        pattern[tuple(coordinates(t._storage)[0])] = True
        patterns.append(pattern)
    if name == "sddmm" and dtype is torch.float32:
        pytest.skip("the factors are float64")
    for k in range(4):
        a, b = (t.with_values((t.values * (1 + k)).detach()).requires_grad_() for t in (first, second))
        p, q = (t.to_dense().detach().requires_grad_() for t in (a, b))
        found, wanted = dense_of(ours(a, b)), theirs(p, q, patterns[0])
        torch.testing.assert_close(found, wanted)
        weights = torch.arange(found.numel(), dtype=dtype).reshape(found.shape) / found.numel()
        g = torch.autograd.grad((found * weights).sum(), (a.values, b.values), create_graph=True, allow_unused=True)
        h = torch.autograd.grad((wanted * weights).sum(), (p, q), create_graph=True, allow_unused=True)
        for t, pattern, x, y in zip((a, b), patterns, g, h, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                torch.testing.assert_close(dense_of(t.with_values(x)), y * pattern)
        if k == 3 and h[0].requires_grad:
            again = torch.autograd.grad((g[0] ** 2).sum(), (a.values, b.values), allow_unused=True)
            squares = ((h[0] * patterns[0]) ** 2).sum()
            wanted_again = torch.autograd.grad(squares, (p, q), allow_unused=True)
            for t, pattern, x, y in zip((a, b), patterns, again, wanted_again, strict=True):
                if x is not None:
                    torch.testing.assert_close(dense_of(t.with_values(x)), y * pattern)
        with torch.no_grad():
            torch.testing.assert_close(dense_of(ours(a, b)), wanted)


def test_products_of_huge_extents() -> None:
    """Places of results are found by keys of their coordinates: these have none that fit."""
    a = ow.sparse_coo_tensor([[0, 8], [0, 0]], torch.tensor([1.0, 2.0]), (16, 3), is_coalesced=True).requires_grad_()
    b = ow.sparse_coo_tensor([[0, 1], [5, 6]], torch.tensor([3.0, 4.0]), (3, 2**61), is_coalesced=True).requires_grad_()
    for _ in range(4):
        c = a @ b
        assert (c.item(0, 5), c.item(8, 5)) == (3.0, 6.0)
        first, second = torch.autograd.grad((c.values * torch.tensor([1.0, 10.0])).sum(), (a.values, b.values))
        assert (first.tolist(), second.tolist()) == ([3.0, 30.0], [21.0, 0.0])


@pytest.mark.thin(6)
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("size", [(4, 5, 6), (40, 300, 1), (300, 90, 120), (1, 1, 1), (3, 0, 4)])
def test_gradients_of_matrix_products(size: tuple[int, int, int], dtype: torch.dtype, index: torch.dtype) -> None:
    """By one walk of the terms; of either factor alone, of both, and once more."""
    m, k, n = size
    x, y = (torch.randn(s, dtype=dtype) * (torch.rand(s) < 0.3) / 10 for s in ((m, k), (k, n)))
    weights = torch.randn(m, n, dtype=dtype)
    close = partial(torch.testing.assert_close, **({"rtol": 1e-3, "atol": 1e-4} if dtype == torch.float32 else {}))
    for recorded in ((True, True), (True, False), (False, True)):
        tensors, dense, inputs, wanted_inputs, at = [], [], [], [], []
        for z, is_recorded in zip((x, y), recorded, strict=True):
            t = ow.asarray(z, format="csr")
            t = ow.sparse_csr_tensor(t.pos(1).to(index), t.crd(1).to(index), t.values, t.shape)
            tensors.append(t.requires_grad_(is_recorded))
            dense.append(z.clone().requires_grad_(is_recorded))
            if is_recorded:
                inputs.append(t.values)
                wanted_inputs.append(dense[-1])
                at.append(tuple(t.detach().asformat("coo").indices().long()))
        product, wanted = dense_of(tensors[0] @ tensors[1]), dense[0] @ dense[1]
        close(product, wanted)
        loss, wanted_loss = ((w * weights).abs().pow(2).sum() for w in (product, wanted))
        plain = torch.autograd.grad(loss, inputs, retain_graph=True)
        found = torch.autograd.grad(loss, inputs, create_graph=True)
        expected = torch.autograd.grad(wanted_loss, wanted_inputs, create_graph=True)
        expected = tuple(e[i] for e, i in zip(expected, at, strict=True))
        again = torch.autograd.grad(sum(g.abs().pow(2).sum() for g in found), inputs)
        wanted_again = torch.autograd.grad(sum(e.abs().pow(2).sum() for e in expected), wanted_inputs)
        for p, g, e, h, w, i in zip(plain, found, expected, again, wanted_again, at, strict=True):
            close(p, e)
            close(g, e)
            close(h, w[i])


@pytest.mark.parametrize("name", ["a + b", "a * b", "a @ b"])
def test_results_are_watched(name: str) -> None:
    """Somebody who writes to the indices of a result spoils no later one."""
    ours, theirs = CALLS[name]
    a, b = (ow.asarray(torch.tensor(z), format="csr").requires_grad_() for z in (X, Y))
    for _ in range(4):
        found = ours(a, b)
    found.crd(1).zero_()
    torch.testing.assert_close(dense_of(ours(a, b)), theirs(torch.tensor(X), torch.tensor(Y), None))


@pytest.mark.parametrize("name", ["a * b", "a * b + a"])
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_factors_that_are_not_finite(name: str, value: float) -> None:
    ours, theirs = CALLS[name]
    a, b = (ow.asarray(torch.tensor(z), format="csr").requires_grad_() for z in (X, Y))
    for k in range(5):
        if k == 3:
            with torch.no_grad():
                a.values[2] = value
        torch.testing.assert_close(dense_of(ours(a, b)), theirs(dense_of(a), dense_of(b), None), equal_nan=True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["a + b", "a * b", "a @ b", "a * 2", "softmax", "row sums", "means"])
def test_transforms_and_tangents(name: str) -> None:
    """After calls that keep something: transforms and tangents see values of their own."""
    ours, theirs = CALLS[name]
    a, b = (ow.asarray(torch.tensor(z), format="csr").requires_grad_() for z in (X, Y))
    pattern = torch.tensor(X != 0)
    for _ in range(4):
        dense_of(ours(a, b)).sum().backward()
    x, direction = a.values.detach(), torch.linspace(0, 1, len(a.values), dtype=torch.float64)

    def of_values(v: Any) -> Any:
        return dense_of(ours(a.with_values(v), b.detach()))

    def of_dense(v: Any) -> Any:
        return theirs(torch.zeros(7, 7, dtype=v.dtype).masked_scatter(pattern, v), torch.tensor(Y), pattern)

    for found, wanted in zip(*(torch.func.jvp(f, (x,), (direction,)) for f in (of_values, of_dense)), strict=True):
        torch.testing.assert_close(found, wanted)
    grads = (torch.func.grad(lambda v: (f(v) ** 2).sum())(x) for f in (of_values, of_dense))  # noqa: B023
    torch.testing.assert_close(*grads)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, direction)
        tangents = [torch.autograd.forward_ad.unpack_dual(f(dual)).tangent for f in (of_values, of_dense)]
        torch.testing.assert_close(*tangents)


def test_sampled_products_of_other_strides_and_dtypes() -> None:
    """What is kept of one shape is not taken for another: transposed factors, expanded ones, one column, two dtypes."""
    mask = ow.asarray(torch.tensor(X), format="csr")
    wide = torch.tensor(RNG.random((14, 6)))
    cases = [
        (L, R), (R.T, L.T), (L[:, :1], R[:1]), (L[:, :1].expand(7, 3), R), (wide[::2, ::2], R), (L.float(), R.float()),
        (L, R.float()), (L[:, :0], R[:0]),
    ]  # fmt: skip
    for a, b in cases:
        for k in range(4):
            p, q = (z.clone(memory_format=torch.preserve_format).mul_(k + 1) if z.numel() else z for z in (a, b))
            p, q = (z.requires_grad_() if k == 3 and z.is_leaf else z for z in (p, q))
            wanted = (p @ q.to(p.dtype)).to(torch.promote_types(p.dtype, q.dtype)) * torch.tensor(X != 0)
            found = ow.sddmm(mask, p, q)
            torch.testing.assert_close(found.to_dense(), wanted, check_dtype=False, rtol=1e-5, atol=1e-5)


def test_sampled_products_of_factors_that_are_not_strided() -> None:
    mask, x = ow.asarray(torch.tensor(X), format="csr"), torch.tensor(Y)
    wanted = (x @ x) * torch.tensor(X != 0)
    for factor in (x.to_sparse_csr(), x.to_sparse(), ow.asarray(x), ow.asarray(x, format="csc"), x.numpy(), Y.tolist()):
        for _ in range(3):
            torch.testing.assert_close(torch.as_tensor(ow.sddmm(mask, factor, factor).to_dense()), wanted)

"""Merges and sampled products that torch records, whose values are those of kernels, and gradients the dense ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import openwork as ow  # noqa: E402
from openwork.compiler.derivative import gradients_of  # noqa: E402
from openwork.ir.loop import Var  # noqa: E402
from openwork.ir.ops import op  # noqa: E402
from openwork.ir.types import Type  # noqa: E402
from openwork.torch.gradients import merges  # noqa: E402
from openwork.torch.gradients.pointwise import evaluate  # noqa: E402

RNG = np.random.default_rng(11)
X, Y = (np.where(RNG.random((5, 6)) < 0.5, RNG.random((5, 6)) + 0.5, 0.0) for _ in range(2))
OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (operator.add, torch.add),
    "sub": (operator.sub, torch.sub),
    "mul": (operator.mul, torch.mul),
    "div": (operator.truediv, torch.div),
    "max": (ow.maximum, torch.maximum),
    "min": (ow.minimum, torch.minimum),
}


def pair(format: str, dtype: Any, x: np.ndarray[Any, Any], fill: float) -> tuple[Any, Any]:
    """A leaf of ours with this fill value, and the dense one of torch's."""
    dense = torch.tensor(np.where(x == 0, fill, x), dtype=dtype)
    return ow.asarray(dense.clone(), format=format, fill_value=fill).requires_grad_(), dense.requires_grad_()


def stored(t: Any, dense: Any) -> Any:
    """The elements of a dense tensor at the stored ones of a Tensor, in their order."""
    numbers = torch.arange(1.0, len(t.values) + 1, dtype=torch.float64)
    at = ow.Tensor._from_storage(t._storage.with_values(numbers, 0.0)).to_dense().long()
    out = dense.new_zeros(len(t.values) + 1)
    out[at.reshape(-1)] = dense.reshape(-1)
    return out[1:]


@pytest.mark.thin(18)
@pytest.mark.parametrize("formats", [("csr", "coo"), ("csc", "csr")], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("fills", [(0.0, 0.0), (1.0, 2.0)], ids=str)
def test_values_and_gradients(formats: tuple[str, str], dtype: Any, fills: tuple[float, float]) -> None:
    (a, x), (b, y) = (pair(f, dtype, z, fill) for f, z, fill in zip(formats, (X, Y), fills, strict=True))
    for name, (ours, theirs) in OPS.items():
        if name == "div" and not fills[1]:
            continue
        for _ in range(4):
            c, d = ours(a, b), theirs(x, y)
            torch.testing.assert_close(c.to_dense(), d)
            weights = torch.rand(len(c.values), dtype=dtype)
            dense_weights = ow.Tensor._from_storage(c._storage.with_values(weights, 0.0)).to_dense()
            got = torch.autograd.grad((c.values * weights).sum(), (a.values, b.values))
            want = torch.autograd.grad((d * dense_weights).sum(), (x, y))
            for t, g, w in zip((a, b), got, want, strict=True):
                torch.testing.assert_close(g, stored(t, w))


def test_nothing_stored_and_gradients_that_are_views() -> None:
    """Merges of which nothing, or one operand, has elements; a gradient that is the negative of what is in memory."""
    for x, y in ((0 * X, 0 * Y), (X, 0 * Y), (0 * X, Y), (X, Y)):
        (a, da), (b, db) = pair("csr", torch.float64, x, 0.0), pair("csr", torch.float64, y, 0.0)
        for ours, theirs in ((operator.add, torch.add), (operator.mul, torch.mul)):
            for _ in range(4):
                c, d = ours(a, b), theirs(da, db)
                weights = torch.arange(1.0, 1 + len(c.values), dtype=torch.float64)
                dense = ow.Tensor._from_storage(c._storage.with_values(weights, 0.0)).to_dense()
                want = torch.autograd.grad(d, (da, db), -dense)
                got = torch.autograd.grad(c.values, (a.values, b.values), torch._neg_view(weights))
                for t, g, w in zip((a, b), got, want, strict=True):
                    torch.testing.assert_close(g, stored(t, w))
    with torch.no_grad():
        assert not (a * b).requires_grad
    torch.testing.assert_close((a.detach() * b.detach()).to_dense(), d.detach())


MIXED = [(torch.float16, torch.float16), (torch.float32, torch.float64), (torch.int64, torch.float32), (torch.complex64, torch.float64)]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtypes", MIXED, ids=str)
def test_dtypes_without_a_launch(dtypes: tuple[Any, Any]) -> None:
    a, b = (ow.asarray(torch.tensor(z).mul(4).to(d), format="csr") for z, d in zip((X, Y), dtypes, strict=True))
    x, y = (t.to_dense() for t in (a, b))
    a, b, x, y = (t.requires_grad_() if t.dtype.is_floating_point or t.dtype.is_complex else t for t in (a, b, x, y))
    for ours, theirs in ((operator.add, torch.add), (operator.mul, torch.mul)):
        for _ in range(4):
            c, d = ours(a, b), theirs(x, y)
            torch.testing.assert_close(c.to_dense(), d)
            got = torch.autograd.grad(c.values.abs().sum(), [t.values for t in (a, b) if t.requires_grad])
            want = torch.autograd.grad(d.abs().sum(), [t for t in (x, y) if t.requires_grad])
            for t, g, w in zip([t for t in (a, b) if t.requires_grad], got, want, strict=True):
                torch.testing.assert_close(
                    g.to(torch.complex128), stored(t, w.to(torch.complex128)), rtol=1e-3, atol=1e-3
                )


def test_gradients_of_gradients() -> None:
    (a, _), (b, _) = pair("csr", torch.float64, X, 1.0), pair("coo", torch.float64, Y, 2.0)
    for name, (ours, _) in OPS.items():

        def values(u: Any, v: Any, ours: Any = ours) -> Any:
            parts = (ow.Tensor._from_storage(t._storage.with_values(z)) for t, z in ((a, u), (b, v)))
            return ours(*parts).values

        for _ in range(3):
            values(a.values, b.values)
        if name == "div":
            assert torch.autograd.gradgradcheck(values, (a.values, b.values))
        batch = torch.eye(len(values(a.values, b.values)), dtype=torch.float64)
        out = values(a.values, b.values)
        rows = torch.autograd.grad(out, a.values, batch, is_grads_batched=True)[0]
        again = values(a.values, b.values)
        for k in (0, len(batch) - 1):
            torch.testing.assert_close(rows[k], torch.autograd.grad(again, a.values, batch[k], retain_graph=True)[0])


def test_what_is_saved_and_what_changes() -> None:
    """A sum saves no operand; a product those that gradients are wanted for the other's; infinities and written indices
    are seen at every call."""
    (a, _), (b, _) = pair("csr", torch.float64, X, 0.0), pair("coo", torch.float64, Y, 0.0)
    plain = ow.asarray(b.detach())
    for _ in range(4):
        total, product, one = a + b, a * b, a * plain
    with torch.no_grad():
        a.values.mul_(1.0)
    torch.autograd.grad(total.values.sum(), a.values)
    torch.autograd.grad(one.values.sum(), a.values)  # of A alone: B is saved
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(product.values.sum(), b.values)
    (a * b).crd(1).zero_()
    torch.testing.assert_close((a * b).to_dense().detach(), a.to_dense().detach() * b.to_dense().detach())
    with torch.no_grad():
        a.values.fill_(torch.inf)
    want = a.to_dense().detach() * b.to_dense().detach()
    assert torch.isnan(want).any()
    for _ in range(2):
        torch.testing.assert_close((a * b).to_dense().detach(), want, equal_nan=True)


def test_a_value_at_several_elements_has_the_sum_of_their_gradients() -> None:
    column, y = pair("csr", torch.float64, X[:, :1] + (X[:, :1] == 0) * [[0], [1], [0], [1], [1]], 0.0)
    b, z = pair("csr", torch.float64, Y, 0.0)
    for _ in range(4):
        c, d = column * b, y * z
        got = torch.autograd.grad(c.values.sum(), (column.values, b.values))
        want = torch.autograd.grad(d.sum(), (y, z))
        for t, g, w in zip((column, b), got, want, strict=True):
            torch.testing.assert_close(g, stored(t, w))


@pytest.mark.thin(9)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128, torch.int32], ids=str)
@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("format", ["csr", "csc", "bsr(1, 2)"])
def test_sampled_products(dtype: Any, inner: int, format: str) -> None:
    mask = ow.asarray(torch.tensor(X), format=format)
    pattern = ow.Tensor._from_storage(mask._storage.with_values(torch.ones_like(mask.values))).to_dense() != 0
    records = dtype.is_floating_point or dtype.is_complex
    for k in range(4):
        p, q = (torch.tensor(RNG.random(s) * 3 + k).to(dtype) for s in ((5, inner), (inner, 6)))
        if k == 3:
            p, q = p.t().contiguous().t(), q.t().contiguous().t()
        operands = [p.requires_grad_(records), q.requires_grad_(records)]
        got, want = ow.sddmm(mask, p, q), (p @ q) * pattern
        torch.testing.assert_close(got.to_dense(), want)
        assert got.values.dtype == dtype
        if records:
            weights = torch.rand(5, 6, dtype=torch.float64).to(dtype)
            ours = torch.autograd.grad((got.to_dense() * weights).sum().abs(), operands)
            for g, w in zip(ours, torch.autograd.grad((want * weights).sum().abs(), operands), strict=True):
                torch.testing.assert_close(g, w)


def test_derivatives_of_expressions() -> None:
    """Each rule, and a nested expression, against torch's; an operation without a rule has none."""
    a, b, g = (Var(n, Type("f64")) for n in "abg")
    exprs = [op(n, a, b) for n in ("add", "sub", "mul", "div", "min", "max")]
    exprs += [op(n, a) for n in ("neg", "square", "sqrt", "exp", "log", "sin", "cos")]
    exprs.append(op("mul", op("max", a, b), op("sub", a, op("exp", op("neg", a)))))
    values = {"a": torch.tensor([0.5, 1.0, 2.0, torch.nan]), "b": torch.tensor([1.0, 1.0, 0.25, 1.0])}
    values = {n: v.double().requires_grad_() for n, v in values.items()}
    seed = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    for e in exprs:
        found = gradients_of(e, g)
        assert found is not None
        names = sorted(found)
        want = torch.autograd.grad(evaluate(e, values), [values[n] for n in names], seed)
        for n, w in zip(names, want, strict=True):
            torch.testing.assert_close(evaluate(found[n], values | {"g": seed}), w, equal_nan=True)
    assert gradients_of(op("hypot", a, b), g) is None
    assert gradients_of(op("select", op("lt", a, b), a, b), g) is None


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("weight", [float("inf"), -float("inf"), float("nan")])
def test_an_operand_that_is_not_the_extreme_has_no_gradient(name: str, weight: float) -> None:
    """Of however large a gradient: 0 times infinity is NaN."""
    x, y = np.array([[1.0, 2.0, 0.0, 3.0]]), np.array([[2.0, 1.0, 4.0, 3.0]])
    (a, da), (b, db) = pair("csr", torch.float64, x, 0.0), pair("coo", torch.float64, y, 0.0)
    ours, theirs = OPS[name]
    want = torch.autograd.grad(theirs(da, db), (da, db), torch.full((1, 4), weight, dtype=torch.float64))
    for _ in range(4):
        out = ours(a, b).values
        found = torch.autograd.grad(out, (a.values, b.values), torch.full_like(out, weight))
        for t, g, w in zip((a, b), found, want, strict=True):
            torch.testing.assert_close(g, stored(t, w), equal_nan=True)


@pytest.mark.parametrize("name", ["add", "mul", "max"])
def test_the_graph_keeps_no_values_of_large_operands_that_gradients_do_not_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients are the same by placeholders, which have one element of memory."""
    ours, theirs = OPS[name]
    grads = []
    for kept in (1 << 20, 0):
        monkeypatch.setattr(merges, "KEPT", kept)
        (a, x), (b, y) = (pair("csr", torch.float64, z, 0.0) for z in (X, Y))
        found = ours(a, b)
        sizes = [s.values.untyped_storage().nbytes() for s in found.values.grad_fn.rule.operands]
        assert (sizes == [8, 8]) is (kept == 0)
        found.values.sum().backward()
        grads.append((a.values.grad, b.values.grad))
        theirs(x, y).sum().backward()
        torch.testing.assert_close(a.values.grad, stored(a, x.grad))
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second)

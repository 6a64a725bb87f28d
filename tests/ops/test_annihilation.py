"""An unspecified zero meets infinity or NaN: NumPy's result, or zero where that is asked for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matrix import FORMATS, same, tensor

import openwork as ow
from openwork.compiler.fill import Regions
from openwork.compiler.nonfinite_guard import nonfinite_guard
from openwork.ir.index_text import parse_expression
from openwork.ir.ops import const
from openwork.ops.elementwise import nonfinite_products
from openwork.runtime.coiterate.types import typed
from openwork.runtime.zero_annihilation import bounded

INF, NAN = np.inf, np.nan
X = np.array([[0, 1.0, 0, 7], [2, 0, 3, 0], [0, 0, 0, 0]])
Y = np.array([[INF, 1, 0, 2], [NAN, 0, 5, INF], [-INF, 0, 0, 0]])
SPARSE = [f for f in FORMATS[2] if not f.startswith(("dense", "nm")) and "// 16" not in f]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


PAIRS = [(f, SPARSE[(k + 3) % len(SPARSE)]) for k, f in enumerate(SPARSE)]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("first", "second"), PAIRS[::4])
def test_numpy_decides(first: str, second: str) -> None:
    a, b = tensor(X, first), tensor(Y, second)
    same(a * b, X * Y)
    same(a * Y, X * Y)
    assert (a * b).format.is_unique


@pytest.mark.parametrize(
    ("first", "second"), [("csr", "coo"), *(pytest.param(*p, marks=pytest.mark.slow) for p in PAIRS)]
)
def test_numpy_decides_on_operands_of_any_kind(first: str, second: str) -> None:
    a, b = tensor(X, first), tensor(Y, second)
    same(b * a, Y * X)
    for dense in (Y, Y[:1], Y[:, :1], Y[1], Y[:, 1:2], np.asfortranarray(Y)):
        same(a * dense, X * dense)
        same(dense * a, dense * X)
        same(a / dense, X / dense)
        same(a // dense, X // dense)
        same(a % dense, X % dense)


def test_a_zero_annihilates_where_asked() -> None:
    a, b = tensor(X, "csr"), tensor(Y, "csr")
    want = np.where(X != 0, X * Y, 0)
    same(ow.multiply(a, b, zero_annihilates=True), np.where(Y != 0, want, 0))
    same(ow.multiply(a, Y, zero_annihilates=True), want)
    same(ow.divide(a, Y, zero_annihilates=True), np.where(X != 0, X / Y, 0))
    got = ow.pointwise("A * B", {"A": a, "B": b}, zero_annihilates=True)
    same(got, np.where(Y != 0, want, 0))
    assert got.nse == 4


def test_sums_of_products_are_over_what_is_specified() -> None:
    """As in SciPy and torch: what is not specified is no term of a sum."""
    a, b = tensor(X, "csr"), tensor(Y, "csc")
    same(a @ np.array([NAN, 1, 1, 1]), np.array([8, NAN, 0]))
    inside = (X != 0).astype(int) @ (Y.T != 0) > 0
    same((a @ b.T).to_numpy() != 0, inside & ~((X != 0) & (Y == 0)).all(1, keepdims=True))
    same(ow.einsum("ij,ij->ij", a, b), np.where((X != 0) & (Y != 0), X * Y, 0))


def exp(x: np.ndarray) -> np.ndarray:
    """That of kernels, which is NumPy's but for the last bit: tests/codegen/test_exponential.py."""
    return ow.pointwise("exp(B)", {"B": ow.asarray(x, format="csc")}).to_numpy()


EXPRESSIONS = {
    "A * (B + C)": lambda a, b, c: a * (b + c),
    "A * exp(B)": lambda a, b, c: a * exp(b),
    "A * B * C": lambda a, b, c: a * b * c,
    "A * B + C": lambda a, b, c: a * b + c,
    "A * (B == 0) - C": lambda a, b, c: a * (b == 0) - c,
    "A * (B / 2 - C ** 2)": lambda a, b, c: a * (b / 2 - c**2),
    "select(A > 0, B * C, C)": lambda a, b, c: np.where(a > 0, b * c, c),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("large", [1.0, 1e160, 1e308, INF])
def test_expressions(text: str, large: float) -> None:
    """Sums and products that overflow count too."""
    arrays = [X, np.where(Y > 1, large, 0), np.where(np.roll(Y, 1, 0) > 0, large, 0)]
    tensors = {n: tensor(a, f) for n, a, f in zip("ABC", arrays, ("csr", "csc", "coo"), strict=True)}
    same(ow.pointwise(text, tensors), EXPRESSIONS[text](*arrays))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "complex128", "int8", "bool"])
def test_dtypes(dtype: str) -> None:
    a = tensor(X.astype("float32"), "csr")
    b = np.where(np.isfinite(Y), Y, 0).astype(dtype)
    for found in (
        b,
        np.where(Y == INF, np.int64(30000), b).astype(dtype),
        *([Y.astype(dtype)] if dtype[0] in "fc" else []),
    ):
        same(a * tensor(found, "csr"), a.to_numpy() * found)
        same(a * found, a.to_numpy() * found)


def test_other_ranks_and_nothing() -> None:
    for shape in ((0,), (3, 0), (2, 1, 3)):
        a = np.zeros(shape)
        same(tensor(a, "coo") * np.full(shape, INF), a * np.full(shape, INF))
        same(tensor(a, "csf") * tensor(np.full(shape, INF), "coo"), a * np.full(shape, INF))
    same(tensor(np.array(0.0), "() -> ()") * tensor(np.array(2.0), "() -> ()"), np.array(0.0))
    batched = ow.asarray(np.stack([np.eye(3)] * 2)).asformat(ow.format("csr", 3, batch=1))
    same(batched * np.full((3, 3), INF), batched.to_numpy() * INF)


def test_elements_that_numpy_has_as_zero_are_not_stored() -> None:
    a, b = tensor(X, "csr"), tensor(np.where(Y == INF, INF, Y == 5), "csr")
    assert (a * b).nse == np.count_nonzero(X * b.to_numpy())


@pytest.mark.parametrize("n", [0, 1, 100, 5000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128", "int64", "uint8"])
def test_bounded(n: int, dtype: str) -> None:
    x = np.ones(n, dtype)
    assert bounded(x, 1e4)
    bad = [1e4 + 32] if dtype == "float16" else [] if dtype == "uint8" else [1e5]
    bad += [INF, -INF, NAN] if x.dtype.kind in "fc" else []
    for value, at in itertools.product(bad, {0, n // 2, n - 1} if n else ()):
        x[at] = value
        assert not bounded(x, 1e4)
        assert not np.isinf(value) or not bounded(x, 9e307)
        x[at] = 1
    assert bounded(0 * x, 0) == (n == 0)


def test_zeros_and_infinity_where_no_bound_is_known_or_a_large_one() -> None:
    a, b = tensor(np.zeros(3), "coo"), tensor(np.array([INF, 2, 0]), "coo")
    same(ow.pointwise("B * (A < 0)", {"A": a, "B": b}), b.to_numpy() * (np.zeros(3) < 0))
    blocks = ow.asarray(np.full((4, 7), NAN), format="bsr(4, 4)", fill_value=NAN)
    nothing = np.zeros((4, 7))
    dense = {"A": blocks, "B": tensor(nothing, "csr"), "C": tensor(nothing, "dense")}
    same(ow.pointwise("A * B + C", dense), np.full((4, 7), NAN))
    zero = tensor(np.array(0.0), "() -> ()")
    same(ow.pointwise("B // B * (A > 1)", {"A": a, "B": zero}), np.full(3, NAN))


LIMITS = [
    ("A + B", {}, "f64", None), ("A * 2", {}, "f64", None), ("A * B", {}, "i32", None),
    ("A * B", {}, "f64", 1e154), ("A * B", {}, "f32", 1e19), ("A * B", {}, "f16", 100), ("A * B * C", {}, "f64", 1e102),
    ("A * (B * 1000000.0)", {}, "f64", 1e151), ("A * exp(B)", {}, "f64", 0), ("A * (B == 0)", {}, "f64", 1e300),
    ("A * (B * nan)", {}, "f64", 0), ("A * (B / nan)", {}, "f64", 0), ("A * (B / 4)", {}, "f64", 1e153), ("A * (B / 0)", {}, "f64", 0),
    ("A * (B ** 5)", {}, "f64", 0), ("A * B * C", {}, "c64", 1e12), ("A * where(B > 0, B, C)", {}, "f64", 1e102), ("A * square(B)", {}, "f64", 1e102),
    ("A * (B + C)", {"C": INF}, "f64", 0), ("A * B", {"B": 1.0}, "f64", 1e154), ("A ** 2 * B", {}, "f64", 1e102),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fills", "scalar", "limit"), LIMITS)
def test_how_large_values_may_be(text: str, fills: dict[str, float], scalar: str, limit: float | None) -> None:
    names = [n for n in "ABC" if n in text]
    e = typed(parse_expression(text), dict.fromkeys(names, scalar))
    found = nonfinite_guard(Regions(e, {n: const(fills.get(n, 0), scalar) for n in names}))
    if not limit:
        assert found == limit
    else:
        assert found is not None
        assert limit <= found < 1e9 * limit


def test_the_dense_operand_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(nonfinite_products, "bounded", lambda x, limit: looked.append(x.size) or bounded(x, limit))
    a = tensor(X, "csr")
    assert (a * X).nse == 4
    assert looked == [X.size]
    ow.multiply(a, X, zero_annihilates=True)
    assert len(looked) == 1


@pytest.mark.parametrize("format", ["csr", "bitmap"])
def test_what_is_computed_where_fewer_operands_are(format: str) -> None:
    """Where A and B are absent, inf * 0 is a NaN of the result; where A alone is present, it is no element."""
    draw = np.random.default_rng(0)
    a, b, c = (np.where(draw.random((5, 6)) < 0.5, 0, draw.integers(1, 5, (5, 6)).astype(float)) for _ in range(3))
    B, C = (ow.asarray(x, format=format) for x in (b, c))
    for fill in (np.inf, np.nan):
        filled = np.where(a == 0, fill, a)
        A = ow.where(ow.asarray(a, format=format) == 0, fill, ow.asarray(a, format=format)).asformat(format)
        assert A.format.name == format
        got = ow.pointwise("where(C, A * B, 0.0)", {"A": A, "B": B, "C": C})
        np.testing.assert_array_equal(got.to_numpy(), np.where(c != 0, filled * b, 0))

"""A fill value is an argument of a kernel: another one of its kind compiles nothing, and every kind is NumPy's."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import cache

X = np.array([[1.0, 2, 0], [0, 3, 4], [5, 0, 0], [0, 0, 0]])
Y = np.array([[0.0, 2, 7], [0, 0, 4], [5, 1, 0], [0, 0, 8]])
OPERATIONS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.eq, np.maximum, np.minimum,
    np.hypot, np.copysign, np.arctan2, operator.floordiv, operator.mod,
)  # fmt: skip


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of kernels that were not known; nothing is kept of what earlier tests have prepared."""
    ow.clear_caches()
    found: list[str] = []
    known = cache.get

    def get(key: str, build: Any) -> Any:
        def noted() -> Any:
            found.append(key)
            return build()

        if key not in seen:
            seen.add(key)
            found.append(key)
        return known(key, build)

    seen: set[str] = set()
    monkeypatch.setattr(cache, "get", get)
    return found


def with_fill(x: Any, fill: float, spec: str = "csr", dtype: str = "float64") -> tuple[ow.Tensor, Any]:
    dense = np.where(x == 0, fill, x).astype(dtype)
    return ow.asarray(dense, format=spec, fill_value=fill), dense


@pytest.mark.parametrize("like", ["numpy", "torch"])
@pytest.mark.parametrize(("fill", "dtype"), [(0.1, "float64"), (2**40 + 1, "int64"), (0.1 + 0.2j, "complex128")])
def test_fill_values_keep_their_digits_beside_dense_arrays(fill: Any, dtype: str, like: str) -> None:
    x = np.where(X == 0, fill, X).astype(dtype)
    a = ow.asarray(ow.asarray(x, format="csr", fill_value=fill), like=like)
    y = np.asarray(ow.asarray(Y.astype(dtype)).to_numpy())
    other = ow.asarray(ow.asarray(y), like=like)
    for op in (operator.add, operator.sub):
        np.testing.assert_array_equal(np.asarray(op(a, other.to_dense())), op(x, y))
        np.testing.assert_array_equal(np.asarray(op(other.to_dense(), a)), op(y, x))


@pytest.mark.thin(5, rest="ci")
@pytest.mark.parametrize("op", OPERATIONS)
def test_another_fill_value_compiles_nothing(op: Any, compiled: list[str]) -> None:
    counts = []
    for k in (1.5, 2.25, 7.0, 3e5, 11.0):
        for fills in ((k, 0.0), (k, k + 1), (0.0, k)):
            (a, x), (b, y) = with_fill(X, fills[0]), with_fill(Y, fills[1])
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(op(a, b).to_numpy(), op(x, y), rtol=1e-14)
        counts.append(len([key for key in compiled if key.startswith("merge")]))
    assert counts[0] == counts[-1], counts


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_other_dtypes(dtype: str, compiled: list[str]) -> None:
    counts = []
    for k in (2, 3, 9, 1000):
        (a, x), (b, y) = with_fill(X, k, dtype=dtype), with_fill(Y, k + 1, dtype=dtype)
        np.testing.assert_array_equal((a + b).to_numpy(), x + y)
        np.testing.assert_array_equal((a * b).to_numpy(), x * y)
        counts.append(len([key for key in compiled if key.startswith("merge")]))
    assert counts[0] == counts[-1], counts


KINDS = (0.0, -0.0, 2.5, -3.5, np.inf, np.nan)


@pytest.mark.thin(3)
@pytest.mark.parametrize("op", [operator.add, operator.truediv, np.minimum])
def test_every_pair_of_kinds(op: Any) -> None:
    for fills in itertools.product(KINDS, KINDS):
        (a, x), (b, y) = with_fill(X, fills[0]), with_fill(Y, fills[1])
        with np.errstate(all="ignore"):
            got = op(a, b)
            np.testing.assert_array_equal(got.to_numpy(), op(x, y), err_msg=str(fills))


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", ["coo", "dcsr", "csc", "bitmap", "bsr(2,2)", "dia", "dense"])
def test_formats(spec: str) -> None:
    for fills in ((2.5, 0.0), (2.5, -7.0), (0.0, 4.0)):
        (a, x), (b, y) = with_fill(X, fills[0], spec), with_fill(Y, fills[1])
        for op in (operator.add, operator.mul, operator.lt):
            got = op(a, b)
            np.testing.assert_array_equal(got.to_numpy(), op(x, y))
            want = op(np.array([fills[0]]), np.array([fills[1]]))[0]
            assert got.fill_value == want or spec == "dense"


def test_three_operands_and_broadcasting() -> None:
    for k in (2.0, 3.0):
        (a, x), (b, y) = with_fill(X, k), with_fill(Y, -k)
        c, z = with_fill(np.array([0.0, 3.0, 0.0]), k + 1, "coo")
        np.testing.assert_array_equal((a + c).to_numpy(), x + z)
        got = ow.pointwise("A[i, j] * B[i, j] + C[j]", {"A": a, "B": b, "C": c})
        np.testing.assert_array_equal(got.to_numpy(), x * y + z)
        np.testing.assert_array_equal(ow.where(a > 1, b, c).to_numpy(), np.where(x > 1, y, z))


@pytest.mark.parametrize("text", ["(D / B) * (B // D) + E", "(B / D) * (D / B) - E", "(D / B) * B + E"])
def test_fill_values_that_make_nan_together_do_so_beside_elements(text: str) -> None:
    """(1 / 0) * (0 // 1) is NaN where E alone is stored, though the fill value 1 is an argument of the kernel."""
    b, d, e = np.array([0.0, 2.0, 0.0]), np.array([1.0, 3.0, 1.0]), np.array([3.0, 4.0, 0.0])
    operands = {
        "B": ow.asarray(b, format="bitmap"), "D": ow.asarray(d, format="bitmap", fill_value=1.0),
        "E": ow.asarray(e, format="coo"),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        expected = eval(text, {"B": b, "D": d, "E": e})
        result = ow.pointwise(text, operands)
    np.testing.assert_array_equal(result.to_numpy(), expected)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex64"])
def test_a_fill_value_is_of_the_kind_of_the_elements(dtype: str) -> None:
    """0 beside floats is 0.0: text, pickles and lazy expressions show which."""
    a = ow.asarray(X.astype(dtype), format="csr")
    dense = ow.asarray(np.ones(X.shape, dtype))
    kind = type(a.fill_value)
    results = [
        a * dense,
        dense * a,
        a * np.ones(X.shape, dtype),
        ow.sddmm(a, np.ones((4, 2), dtype), np.ones((2, 3), dtype)),
    ]
    results += [ow.where(a != 0, a, a), a.with_values(a.values, fill_value=0)]
    assert [type(r.fill_value) for r in results if r.dtype == a.dtype] == [kind] * len(results)

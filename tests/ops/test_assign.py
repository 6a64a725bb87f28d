"""Setting elements, by name and in pure form: every format against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.errors import DTypeError, ShapeError, UnsupportedError

ALL = slice(None)
A = dense_array((8, 12), 3)
ROW = dense_array((4,), 9)
UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
SHORT: list[tuple[Any, Any]] = [
    ((2, 3), 5), ((slice(None, None, 2), slice(9, 1, -3)), np.arange(12).reshape(4, 3)), (([1, 1, 3], [2, 2, 0]), [4, 5, 6]),
    (A > 2, 9),
]  # fmt: skip
LONG: list[tuple[Any, Any]] = [
    *SHORT, (slice(1, 5), 0), ((ALL, 2), 7), ([1, 1, 3], np.arange(36).reshape(3, 12)), ((ALL, [1, 2]), 2), (..., 1),
    ((np.array([[0], [2]]), [1, 3, 3]), [[1, 2, 3], [4, 5, 6]]), ((0, None), 3), (slice(3, 3), 8), ([], 1),
    ((slice(4, 6), 3), [[1, 2]]), (0, np.arange(12)[None, None]), ((None, 3, ..., [0, 0]), [[1], [2]]),
]  # fmt: skip


def expected(array: np.ndarray[Any, Any], key: Any, values: Any, op: str) -> np.ndarray[Any, Any]:
    out = array.copy()
    if op == "set":
        out[key] = values
    else:
        UFUNCS[op].at(out, key, values)
    return out


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("spec", FORMATS[2])
def test_every_format(spec: str) -> None:
    t = tensor(A, spec)
    for key, values in SHORT:
        got = t.at[key].set(values)
        same(got, expected(A, key, values, "set"))
        assert got.format.is_unique
        assert got.format.is_ordered


@pytest.mark.thin(6)
@pytest.mark.parametrize("op", ["set", *UFUNCS])
@pytest.mark.parametrize("spec", ["csr", "coo", "dense"])
def test_every_key(spec: str, op: str) -> None:
    t = tensor(A, spec)
    for key, values in LONG:
        shape = np.shape(A[key])
        if op != "set" and len(np.shape(values)) > len(shape):
            continue
        same(getattr(t.at[key], op)(values), expected(A, key, np.asarray(values), op))


def test_by_name() -> None:
    for spec in ("csr", "csc", "coo", "dense", "dia"):
        t, want = tensor(A, spec), A.copy()
        before = t.T
        t[1, 2], want[1, 2] = 7, 7
        t[3], want[3] = 0, 0
        t[t > 3] = 1  # type: ignore[operator]
        want[want > 3] = 1
        same(t, want)
        same(before, A.T)
        t[[0, 0], [1, 1]] += 1
        want[[0, 0], [1, 1]] += 1
        same(t, want)


def test_sparse_values() -> None:
    t = tensor(A, "csr")
    row = tensor(ROW, "coo")
    same(t.at[2:6, 3].set(row), expected(A, (slice(2, 6), 3), ROW, "set"))
    same(t.at[:, 4:8].set(row), expected(A, (ALL, slice(4, 8)), ROW, "set"))
    same(t.at[:, 4:8].add(row), expected(A, (ALL, slice(4, 8)), ROW, "add"))
    same(t.at[::-1].set(tensor(A, "dia")), A[::-1])
    other = ow.asarray(np.where(ROW > 0, ROW, 1.0), format="coo", fill_value=1.0)
    same(t.at[0, :4].set(other), expected(A, (0, slice(4)), other.to_numpy(), "set"))
    huge = ow.assemble("coo", (2**20,), crd={0: [3]}, values=[1.0])
    ones = ow.assemble("coo", (2**20,), crd={0: [3]}, values=[2.0], fill_value=1.0)
    with pytest.raises(UnsupportedError, match=r"of fill value 0.0 .* fill value 1.0 would store 8388608 bytes"):
        huge.at[:].set(ones)


@pytest.mark.parametrize("fill", [2.0, float("nan")])
def test_fill_values_stay(fill: float) -> None:
    array = np.where(A > 0, A, fill)
    t = ow.asarray(array, format="csr", fill_value=fill)
    for op in ("set", *UFUNCS):
        for key, values in SHORT[:3]:
            got = getattr(t.at[key], op)(values)
            same(got, expected(array, key, np.asarray(values), op))
            np.testing.assert_equal(got.fill_value, fill)
    assert t.at[1:3].set(fill).nse == t.nse - t[1:3].nse


def test_what_equals_the_fill_value_is_not_stored() -> None:
    t = tensor(A, "csr")
    assert t.at[2].set(0).nse == t.nse - t[2].nse
    assert t.at[:].set(np.zeros((8, 12))).nse == 0
    assert t.at[0, 0].set(0).at[0, 0].set(3).nse == t.at[0, 0].set(3).nse


def test_dtypes() -> None:
    for dtype in ("bool", "int32", "uint8", "float16", "complex64"):
        array = A.astype(dtype)
        same(tensor(array, "csr").at[1:3, ::2].set(1), expected(array, (slice(1, 3), slice(None, None, 2)), 1, "set"))
    same(tensor(A, "csr").astype("int64").at[1].set(2.7), expected(A.astype(np.int64), 1, 2, "set"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_numbers_that_an_integer_dtype_does_not_hold(dtype: str) -> None:
    """They are refused as NumPy refuses them, at the bounds and beyond; fractions are cut."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for format in ("coo", "dense"):
        t = ow.asarray(np.array([0, 1, 0], dtype), format=format)
        for value in (low, high, [low, 1, high], [2, 1.5, 0], np.int64(7)):
            want = t.to_numpy().copy()
            want[:] = value
            np.testing.assert_array_equal(t.at[:].set(value).to_numpy(), want)
        too_large = (low - 1, high + 1, [0, high + 1, 0], ((0, 1, low - 1),), 1e300, np.nan, -np.inf, 2**70)
        for value in (*too_large, *([np.int64(300), np.int16(-200)] if dtype == "int8" else ())):
            with pytest.raises(OverflowError, match=r"does not fit (i|u)\d+: (.|\n)*help: "):
                t[:] = value
            with pytest.raises(OverflowError, match="setting elements"):
                t.at[:].add(value)
        for value in (low - 1, high + 1):
            with pytest.raises(DTypeError, match="does not fit"):
                ow.pad(t, 1, constant_values=value)
        assert ow.pad(t, 1, constant_values=high).to_numpy()[0] == high


def test_errors() -> None:
    t = tensor(A, "csr")
    with pytest.raises(ShapeError, match=r"could not broadcast input array from shape \(3,\) into shape \(12,\)"):
        t[0] = [1, 2, 3]
    with pytest.raises(IndexError, match="index 8 is out of bounds for axis 0 with size 8"):
        t[8] = 1
    with pytest.raises(TypeError, match="imaginary"):
        t[0] = 1j


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_sets(data: st.DataObject) -> None:
    def part(n: int) -> Any:
        bound = st.integers(-n, n)
        return data.draw(
            st.one_of(
                st.integers(0, n - 1),
                st.builds(slice, bound, bound, st.sampled_from([1, -1, 2])),
                st.lists(st.integers(0, n - 1), min_size=2, max_size=2),
            )
        )

    key = (part(8), part(12))
    shape = A[key].shape
    values = dense_array(data.draw(st.sampled_from([shape, shape[1:], ()])), 8)
    same(tensor(A, "csr").at[key].set(values), expected(A, key, values, "set"))


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_few_places_of_a_large_matrix(value: float) -> None:
    """Keys are looked up by search where a table of all places would be much longer."""
    draw = np.random.default_rng(0)
    rows, columns = draw.integers(0, 300, (2, 200))
    want = np.zeros((300, 300))
    want[rows, columns] = 1
    t = ow.asarray(want, format="csr")
    t[rows[:20], columns[:20]] = value
    want[rows[:20], columns[:20]] = value
    np.testing.assert_array_equal(t.to_numpy(), want)


LOOSE = ("csr(nonunique, unordered)", "coo(unordered)", "csr(unordered)", "(i, j) -> (j : batch, i : dense)")


@pytest.mark.parametrize("spec", LOOSE)
@pytest.mark.parametrize("like", ["numpy", "torch"])
def test_the_format_stays_where_it_promises_less(spec: str, like: str) -> None:
    t = ow.asarray(ow.asarray(A, format="coo").asformat(ow.format(spec, 2)), like=like)
    format, dense = t.format, A.copy()
    for key, value in (((2, 3), 5.0), ((slice(None), 1), 0.0), (0, 2.0)):
        t[key] = value
        dense[key] = value
        assert t.format == format
    t += t
    assert t.format == format
    np.testing.assert_array_equal(t.to_numpy(), 2 * dense)
    t.eliminate_zeros()
    assert t.format == format
    np.add.at(t, (0, [1, 1]), 1.0)
    assert t.format == format
    np.subtract.at(t, (0, [1, 1]), 1.0)
    t.resize(9, 11)
    assert t.format == format or "batch" in spec  # which a resized tensor has no more
    np.testing.assert_array_equal(t.to_numpy()[:8], 2 * dense[:, :11])


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "bitmap", "dense"])
def test_an_element_that_is_stored(format: str) -> None:
    """It is written where it lies, so that what shares the values sees it; any other way gives the same elements."""
    dense = np.array([[0, 2.0, 0], [3.0, 0, 4.0]])
    t = ow.asarray(dense, format=format)
    turned, structure = t.T, t._storage.structure
    t[1, 2], dense[1, 2] = 7, 7
    assert t._storage.structure is structure or format in ("dense", "bitmap")
    same(t, dense)
    same(turned, dense.T)
    for key, value in [((0, -2), 2.5), ((1, 0), 0), ((0, 0), 1.5), ((1, 2), np.nan), ((-1, -1), True), ((1, 2), 1e300)]:
        t[key] = dense[key] = value
        same(t, dense)
        t.check()
    with pytest.raises(IndexError, match="out of bounds for axis 1"):
        t[1, 3] = 1.0

"""What other libraries hold, as a Tensor: sparse stays sparse, or is refused with a remedy; nothing is dense in silence."""

from __future__ import annotations

import array
import collections
import decimal
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow

DENSE = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])


def equal(t: Any, dense: Any) -> None:
    np.testing.assert_array_equal(t.to_numpy() if isinstance(t, ow.Tensor) else t, dense)


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


def frame(pd: Any, fill: Any = 0.0, dtype: str = "float64", dense: np.ndarray = DENSE) -> Any:
    columns = {
        f"c{k}": pd.arrays.SparseArray(dense[:, k].astype(dtype), fill_value=fill) for k in range(dense.shape[1])
    }
    return pd.DataFrame(columns)


def test_sparse_frames(pd):
    for dtype in ("float64", "float32", "int64", "bool"):
        t = ow.asarray(frame(pd, np.zeros(1, dtype)[0], dtype))
        assert (t.format.name, t.nse, t.dtype, t.fill_value) == ("csc", 2, np.dtype(dtype), 0)
        equal(t, DENSE.astype(dtype))
    holes = np.where(DENSE == 0, np.nan, DENSE)
    t = ow.asarray(frame(pd, np.nan, dense=holes))
    assert t.nse == 2
    assert np.isnan(t.fill_value)
    equal(t, holes)
    equal(ow.asarray(frame(pd), format="csr"), DENSE)
    assert ow.asarray(frame(pd), dtype="float32").dtype == np.float32
    equal(ow.asarray(frame(pd).iloc[:0]), DENSE[:0])


def test_sparse_columns(pd):
    column = frame(pd)["c1"]
    for obj in (column, column.array, pd.Index(column.array), column.astype(pd.SparseDtype("float64", 0.0))):
        t = ow.asarray(obj)
        assert (t.format, t.nse, t.fill_value) == (ow.format("coo", 1), 1, 0)
        equal(t, DENSE[:, 1])
    ones = pd.arrays.SparseArray([1, 1, 5, 1], fill_value=1)
    t = ow.asarray(ones)
    assert (t.nse, t.fill_value) == (1, 1)
    equal(t, [1, 1, 5, 1])
    block = pd.arrays.SparseArray([0.0, 3, 4, 0], fill_value=0.0, kind="block")
    equal(ow.asarray(block), [0, 3, 4, 0])
    assert ow.asarray(block).nse == 2


def test_frames_that_are_no_tensor(pd):
    mixed = frame(pd)
    mixed["d"] = [1.0, 2.0, 3.0]
    with pytest.raises(ow.UnsupportedError, match=r"column 'd' of the frame is dense, others are sparse\n  help:"):
        ow.asarray(mixed)
    other = frame(pd)
    other["d"] = pd.arrays.SparseArray([1.0, 1, 2], fill_value=1.0)
    with pytest.raises(ow.UnsupportedError, match=r"fill values 0.0, 1.0\n  help:"):
        ow.asarray(other)
    with pytest.raises(ow.UnsupportedError, match="dense"):
        ow.asarray(mixed, format="csr")
    for wrong in (pd.DataFrame({"a": ["x", "y"]}), pd.Series(["a", "b"], dtype="category"),
                  pd.Series([True, None], dtype="boolean"), pd.Series(pd.to_datetime(["2020-01-01"]))):  # fmt: skip
        with pytest.raises(ow.DTypeError, match="not numbers"):
            ow.asarray(wrong)


def test_dense_frames(pd):
    equal(ow.asarray(pd.DataFrame(DENSE)), DENSE)
    equal(ow.asarray(pd.Series([1, 2], dtype="Int64")), [1, 2])
    equal(ow.asarray(pd.array([1.5, 2], dtype="Float64")), [1.5, 2])
    equal(ow.asarray(pd.Index([1, 2])), [1, 2])


def test_sparse_frames_are_operands(pd):
    t = ow.asarray(np.ones((3, 2)), format="csr")
    assert not (t * frame(pd)).format.is_dense
    equal(t * frame(pd), DENSE)
    equal(ow.add(frame(pd), t), DENSE + 1)
    assert not (t.T @ frame(pd)).format.is_dense
    equal(t.T @ frame(pd), np.ones((2, 3)) @ DENSE)
    equal(ow.sum(frame(pd)), 3.0)


class Labelled:
    """As xarray's arrays: labels around an array of any kind, dense where NumPy asks."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        data = self.data
        return np.asarray(data.toarray() if hasattr(data, "toarray") else data)


class Coordinates:
    """A sparse matrix of somebody else's, which SciPy's coordinates are had of."""

    def tocoo(self) -> Any:
        return sp.coo_array(DENSE)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return DENSE


class Chunks:
    """As dask's arrays: computed when asked for, and said beforehand what it will be."""

    def __init__(self, held: Any) -> None:
        self.held, self._meta = held, held[:0]

    def __dask_graph__(self) -> dict[str, Any]:
        return {}

    def compute(self) -> Any:
        return self.held

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        held = self.held
        return np.asarray(held.toarray() if hasattr(held, "toarray") else held)


@pytest.mark.parametrize(
    "make", [Labelled, Chunks, lambda held: Labelled(Labelled(held)), lambda held: Labelled(Chunks(held))]
)
def test_sparse_inside(make):
    for held in (sp.csr_array(DENSE), sp.csc_matrix(DENSE), ow.asarray(DENSE, format="csr")):
        t = ow.asarray(make(held))
        assert (t.format.is_dense, t.nse) == (False, 2)
        equal(t, DENSE)
        assert not (ow.asarray(np.ones((3, 2)), format="csr") * make(held)).format.is_dense
    assert ow.asarray(make(DENSE)).format.is_dense
    equal(ow.asarray(make(DENSE)), DENSE)


def test_whatever_has_coordinates():
    t = ow.asarray(Coordinates())
    assert (t.format.is_dense, t.nse) == (False, 2)
    equal(t, DENSE)


def test_subclasses_of_scipys():
    class Mine(sp.csr_array):
        pass

    class Old(sp.coo_matrix):
        pass

    for made in (Mine(DENSE), Old(DENSE)):
        assert ow.asarray(made).nse == 2
        equal(ow.asarray(made), DENSE)


def test_lists_of_sparse_arrays():
    for item in (sp.csr_array(DENSE), ow.asarray(DENSE, format="csr")):
        for several in ([item], (item, item), [[item]]):
            with pytest.raises(ow.UnsupportedError, match=r"a list of sparse arrays .*\n  help: openwork\.stack"):
                ow.asarray(several)
    equal(ow.asarray([np.ones(2), np.zeros(2)]), [[1, 1], [0, 0]])


def test_masked_arrays_of_numpy():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    t = ow.asarray(np.ones((3, 2)), format="csr")
    for call in (ow.asarray, lambda m: ow.add(t, m), lambda m: ow.matmul(t, m), lambda m: t + m, lambda m: t @ m,
                 lambda m: ow.einsum("ij,j", t, m)):  # fmt: skip
        with pytest.raises(ow.UnsupportedError, match=r"without a value|dense array"):
            call(masked)
    equal(ow.asarray(np.ma.array([1.0, 2.0])), [1, 2])
    equal(t + np.ma.array([1.0, 2.0]), np.ones((3, 2)) + np.array([1, 2]))


BUFFERS: tuple[tuple[Any, Any], ...] = (
    (np.array([[1, 2]]).view(np.matrix), [[1, 2]]), (memoryview(array.array("d", [1, 2])), [1, 2]), (array.array("i", [1, 2]), [1, 2]),
    (bytearray(b"ab"), [97, 98]), (memoryview(b"ab"), [97, 98]), (range(3), [0, 1, 2]),
    (collections.deque([1, 2]), [1, 2]), (np.ones(2).view(np.recarray), [1, 1]), (np.array([1], ">f8"), [1]),
    (np.float32(2), 2), (True, True), ([], []), ([[]], [[]]),
)  # fmt: skip


@pytest.mark.parametrize(("obj", "expected"), BUFFERS, ids=lambda x: type(x).__name__)
def test_buffers(obj, expected):
    equal(ow.asarray(obj), expected)


def test_array_interface():
    class Interface:
        held = np.eye(2)
        __array_interface__ = held.__array_interface__

    equal(ow.asarray(Interface()), np.eye(2))


@pytest.mark.parametrize("obj", [
    "ab", b"ab", ["a"], [None], [1, None], np.datetime64("2020"), np.array([1], "m8[s]"), np.array([1, 2], object),
    np.zeros(2, [("a", int)]), 10**30, np.array(["x"]), [object()], np.zeros(1, "V4"),
], ids=lambda x: repr(x).split(" at 0x")[0])  # fmt: skip
def test_what_is_no_number(obj):
    with pytest.raises(ow.DTypeError, match=r"asarray: .* are not numbers\n  help:"):
        ow.asarray(obj)


@pytest.mark.parametrize("obj", [
    (x for x in [1]), {1, 2}, {1: 2}, {}.keys(), map(int, "12"), iter([1]), None, object(), decimal.Decimal(1), int,
    np.float64, ow.Tensor, ow.asarray, np.random.default_rng(0), Ellipsis, slice(1),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_what_is_no_array(obj):
    with pytest.raises(ow.UnsupportedError, match=r"asarray: \w+ is not an array\n  supported:"):
        ow.asarray(obj)

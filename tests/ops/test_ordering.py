"""Sorting, searching, places and differences, on every format, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow

ALL = [(rank, spec) for rank in (1, 2, 3, 4) for spec in FORMATS[rank]]
PLACES = {1: (7,), 2: (7, 11), 3: (4, 6, 5), 4: (3, 4, 2, 5)}
FILLS = (0.0, 1.5, np.nan)
DTYPES = ("bool", "int8", "uint8", "uint64", "int64", "float16", "float32", "float64")


def array(rank: int, fill: float, seed: int = 0) -> np.ndarray[Any, Any]:
    """Values of both signs, ties, NaN, and mostly `fill`."""
    a = dense_array(PLACES[rank], seed) - 2
    a[a == -1] = np.nan
    return np.where(dense_array(PLACES[rank], seed) == 0, fill, a)


def made(a: np.ndarray[Any, Any], spec: str, fill: float) -> ow.Tensor:
    if spec.startswith("dense"):
        return ow.asarray(a).asformat(ow.format(spec, a.ndim))
    if "nm(" in spec:
        pytest.skip("holds a fixed number of elements")
    return ow.asarray(a, format="coo", fill_value=fill).asformat(ow.format(spec, a.ndim))


def order(a: np.ndarray[Any, Any], axis: int, descending: bool) -> np.ndarray[Any, Any]:
    """NumPy's stable order; the descending one is that of the reversed fibre, reversed."""
    if not descending:
        return np.argsort(a, axis=axis, kind="stable")
    turned = np.flip(np.argsort(np.flip(a, axis), axis=axis, kind="stable"), axis)
    return np.asarray(a.shape[axis] - 1 - turned)


@pytest.mark.thin(9)
@pytest.mark.parametrize(("rank", "spec"), ALL)
def test_sort_and_argsort(rank: int, spec: str) -> None:
    for fill in FILLS:
        a = array(rank, fill)
        t = made(a, spec, fill)
        for axis in (0, -1):
            for descending in (False, True):
                want = order(a, axis, descending)
                got = ow.sort(t, axis=axis, descending=descending)
                same(got, np.take_along_axis(a, want, axis))
                assert got.format.is_dense == t.format.is_dense
                assert got.format.is_unique
                assert got.format.is_ordered
                same(ow.argsort(t, axis=axis, descending=descending), want)
        if spec in ("coo", "csr", "csc", "csf"):
            assert got.nse == t.nse
            assert got.format == t.format


@pytest.mark.thin(35)
@pytest.mark.parametrize(("rank", "spec"), ALL)
def test_nonzero_searchsorted_and_diff(rank: int, spec: str) -> None:
    sorted_vector = np.sort(np.r_[np.arange(-3.0, 3), 0, 0, 0, 1.5])
    for fill in FILLS:
        a = array(rank, fill)
        t = made(a, spec, fill)
        for got, want in zip(ow.nonzero(t), np.nonzero(a), strict=True):
            same(got, want)
        found = ow.searchsorted(ow.asarray(sorted_vector, format="coo"), t, side="right")
        same(found, np.searchsorted(sorted_vector, a, "right"))
        assert found.format.is_dense == t.format.is_dense
        same(ow.diff(t, axis=0), np.diff(a, axis=0))
        same(ow.diff(t, n=2, prepend=t), np.diff(a, n=2, prepend=a))
        assert ow.diff(t).format.is_dense == t.format.is_dense


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_dtypes(spec: str, dtype: str) -> None:
    a = dense_array((7, 11), 5, dtype)
    if dtype == "uint64":
        a[a == 3] = 2**63 + 5
    t = tensor(a, spec)
    same(ow.sort(t), np.sort(a))
    same(ow.sort(t, axis=0, descending=True), np.flip(np.sort(a, axis=0), 0))
    same(ow.argsort(t), np.argsort(a, kind="stable"))
    same(ow.nonzero(t)[1], np.nonzero(a)[1])
    same(ow.searchsorted(ow.sort(t[0]), t), np.searchsorted(np.sort(a[0]), a))
    same(ow.diff(t), np.diff(a))


def test_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    a = torch.tensor([[3.0, 0, -2, 0], [0, 0, 5, 1]], dtype=torch.bfloat16)
    t = ow.asarray(a.to_sparse_csr())
    assert ow.sort(t).to_dense().equal(torch.sort(a).values)
    assert ow.argsort(ow.asarray(a), stable=True).to_dense().equal(torch.argsort(a, stable=True))


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (1, 1), (5, 1)])
def test_empty_and_small(shape: tuple[int, ...]) -> None:
    t = ow.full(shape, 1.5, format="coo")
    a = np.full(shape, 1.5)
    for axis in range(len(shape)):
        same(ow.sort(t, axis=axis), a)
        same(ow.argsort(t, axis=axis), np.argsort(a, axis=axis))
        same(ow.diff(t, axis=axis, n=3), np.diff(a, axis=axis, n=3))
    for got, want in zip(ow.nonzero(t), np.nonzero(a), strict=True):
        same(got, want)


def test_duplicates_count_as_their_sum() -> None:
    t = ow.sparse_coo_tensor([[0, 0, 1], [2, 2, 0]], [1.0, 2.0, -1.0], (2, 4), is_coalesced=False)
    a = t.to_numpy()
    same(ow.sort(t), np.sort(a))
    same(ow.nonzero(t)[0], np.nonzero(a)[0])
    same(ow.searchsorted(np.arange(4.0), t), np.searchsorted(np.arange(4.0), a))


def test_fibres_beyond_64_bits_are_sorted() -> None:
    """Shapes whose size has no 64-bit number: nothing is multiplied out."""
    big = 2**31
    t = ow.sparse_coo_tensor([[5, 5, big - 1], [7, 7, 0], [3, big - 1, 9]], [2.0, -1.0, 4.0], (big, big, big))
    got = ow.sort(t)
    assert got.shape == t.shape
    assert [got[5, 7, 0], got[5, 7, big - 1], got[big - 1, 0, big - 1]] == [-1.0, 2.0, 4.0]


def test_sorter_and_sides() -> None:
    a = np.array([3.0, 0, 0, -1, 0, 8, np.nan])
    for spec in ("dense", "coo", "bitmap"):
        t = tensor(a, spec)
        by = ow.argsort(t)
        for side in ("left", "right"):
            got = ow.searchsorted(t, ow.asarray(a), side=side, sorter=by)
            same(got, np.searchsorted(a, a, side, sorter=np.argsort(a)))  # type: ignore[call-overload]
    sparse = ow.searchsorted(ow.asarray(np.sort(a), format="coo"), tensor(a, "coo"))
    assert sparse.fill_value == 1
    assert sparse.nse == tensor(a, "coo").nse


values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan])


@pytest.mark.ci
@given(st.lists(st.lists(values, min_size=4, max_size=4), min_size=0, max_size=5), values, st.booleans())
@settings(max_examples=60)
def test_laws(rows: list[list[float]], fill: float, descending: bool) -> None:
    a = np.array(rows).reshape(len(rows), 4)
    t = ow.asarray(a, format="coo", fill_value=fill)
    once = ow.sort(t, descending=descending)
    same(once, np.take_along_axis(a, order(a, 1, descending), 1))
    same(ow.sort(once, descending=descending), once.to_numpy())
    same(ow.take_along_axis(t, ow.argsort(t, descending=descending)), once.to_numpy())
    assert once.nse == t.nse
    found = ow.nonzero(t)
    assert found[0].shape == (int(np.count_nonzero(a)),)
    assert all(x != 0 for x in a[tuple(c.to_numpy() for c in found)])


def test_gradients_go_where_elements_came_from() -> None:
    torch = pytest.importorskip("torch")
    a = torch.tensor([[0.0, 3, -2, 1], [5, 0, 0, -1]], dtype=torch.float64)
    weights = torch.arange(8.0, dtype=torch.float64).reshape(2, 4)
    for given_as in (a, a.to_sparse_csr()):
        t = ow.asarray(given_as).requires_grad_()
        (ow.sort(t).to_dense() * weights).sum().backward()
        dense = a.clone().requires_grad_()
        (torch.sort(dense).values * weights).sum().backward()
        assert t.grad is not None
        got = t.grad.to_dense()
        assert got[a != 0].equal(dense.grad[a != 0])
    t = ow.asarray(a.to_sparse_csr()).requires_grad_()
    (ow.diff(t).to_dense() ** 2).sum().backward()
    dense = a.clone().requires_grad_()
    (torch.diff(dense) ** 2).sum().backward()
    assert t.grad is not None
    assert t.grad.to_dense()[a != 0].equal(dense.grad[a != 0])


def test_errors() -> None:
    t = ow.eye(3)
    with pytest.raises(ow.DTypeError, match=r"sort of a complex tensor: (.|\n)*help: take abs\(\) first"):
        ow.sort(ow.eye(3, dtype="complex64"))
    with pytest.raises(ow.ShapeError, match=r"argsort: axis 2 is out of bounds(.|\n)*help: axes go from -2 to 1"):
        ow.argsort(t, axis=2)
    with pytest.raises(IndexError, match="sort: axis -1 is out of bounds for array of dimension 0"):
        ow.sort(ow.asarray(1.0))
    with pytest.raises(ow.ShapeError, match=r"searchsorted: expected a vector to search; got shape \(3, 3\)"):
        ow.searchsorted(t, t)
    with pytest.raises(ow.ShapeError, match=r"sorter of shape \(2,\) for 3 elements\n  help: use argsort"):
        ow.searchsorted(t[0], t, sorter=np.arange(2))
    with pytest.raises(ValueError, match="side is 'left' or 'right'; got 'middle'"):
        ow.searchsorted(t[0], t, side="middle")
    with pytest.raises(ow.ShapeError, match=r"nonzero: a tensor of rank 0 (.|\n)*help: reshape it to \(1,\)"):
        ow.nonzero(ow.asarray(1.0))
    with pytest.raises(ow.ShapeError, match="diff: n=-1 differences\n  expected: 0 or more"):
        ow.diff(t, n=-1)
    with pytest.raises(ow.UnsupportedError, match=r"fill values 1.0 and 0.0 differ\n  help: make one of them dense"):
        ow.diff(t, prepend=ow.full((3, 3), 1.0, format="csr"))


def test_topk_of_few_elements() -> None:
    """Fewer elements than fibres: most of what is chosen is unspecified, in the order of coordinates."""
    for shape, places in (((9, 6), ((8, 2), (5, 1), (7, 0))), ((6, 9), ((0, 8), (5, 8))), ((4, 3), ())):
        a = np.zeros(shape)
        for n, at in enumerate(places):
            a[at] = (-2, 3, 1)[n]
        for spec in ("csr", "coo", "csc"):
            t = ow.asarray(a, format="coo").asformat(spec)
            for axis in (0, 1):
                for largest in (False, True):
                    want = np.argsort(-a if largest else a, axis=axis, kind="stable").take(range(3), axis)
                    values, indices = ow.topk(t, 3, axis=axis, largest=largest)
                    same(indices, want)
                    same(values, np.take_along_axis(a, want, axis))


@pytest.mark.parametrize("skip", [False, True])
def test_quantiles_of_nothing_are_nan(skip: bool) -> None:
    found = (ow.nanquantile if skip else ow.quantile)(ow.zeros((2, 0)), [0.25, 0.5], axis=1)
    assert found.shape == (2, 2)
    assert np.isnan(found.to_numpy()).all()

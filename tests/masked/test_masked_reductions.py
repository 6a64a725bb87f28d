"""Reductions of masked tensors against numpy.ma and the nan-functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_cases import FEW, MOST, SHAPES, agree, arrays, made, reference

import openwork as ow
from openwork.runtime.full_sum import total

AXES = {1: (None, 0), 2: (None, 0, 1, (0, 1)), 3: (None, 0, 2, (0, 2)), 4: (1, (0, 3))}


def check(m: ow.MaskedTensor, a: Any, axis: Any) -> None:
    """Every reduction over one choice of axes."""
    agree(m.sum(axis), a.sum(axis))
    agree(m.prod(axis), a.prod(axis))
    agree(m.mean(axis), a.mean(axis), exact=False)
    agree(m.amin(axis), a.min(axis))
    agree(m.amax(axis), a.max(axis))
    agree(m.var(axis), a.var(axis), exact=False)
    agree(m.std(axis, keepdims=True), a.std(axis, keepdims=True), exact=False)
    agree(m.any(axis), a.astype(bool).any(axis))
    agree(m.all(axis), a.astype(bool).all(axis))
    agree(m.count(axis), np.ma.asarray(a.count(axis)))


@pytest.mark.thin(3)
@pytest.mark.parametrize(("rank", "spec"), MOST, ids=lambda x: str(x))
def test_every_format(rank: int, spec: str) -> None:
    data, bits = arrays(SHAPES[rank][0], mask=0.25)
    for axis in AXES[rank][:2] if (rank, spec) != (2, "csr") else AXES[rank]:
        check(made(data, bits, spec), reference(data, bits), axis)


@pytest.mark.ci
@given(
    st.sampled_from(("bool", "int8", "uint8", "int64", "float32", "float64", "complex128")),
    st.sampled_from(("all", "none", "one", 0.3)),
    st.sampled_from(FEW),
    st.integers(0, 9),
)
@settings(max_examples=20)
def test_dtypes_and_masks(dtype: str, mask: Any, case: tuple[int, str], seed: int) -> None:
    rank, spec = case
    data, bits = arrays(SHAPES[rank][0], seed, dtype, mask)
    m, a = made(data, bits, spec), reference(data, bits)
    agree(m.sum(0), a.sum(0))
    agree(m.sum(), a.sum())
    means = a.mean(-1)  # of float32 to a scalar, numpy.ma gives float64
    agree(
        m.mean(-1), means if means is np.ma.masked else np.ma.asarray(means).astype(str(m.mean(-1).dtype)), exact=False
    )
    if dtype != "complex128":
        agree(m.amax(0), a.max(0))


@pytest.mark.thin(6)
@pytest.mark.parametrize("spec", ["dense", "csr", "bsr(2, 3)", "coo"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_nan_functions(spec: str, axis: Any) -> None:
    data, bits = arrays((8, 12))
    data = data + np.random.default_rng(3).random((8, 12))
    bits[:, 3] = True
    bits[2] = True
    hidden = np.where(bits, data, np.nan)
    m = made(data, bits, spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for got, want in (
            (m.sum(axis), np.nansum), (m.prod(axis), np.nanprod), (m.mean(axis), np.nanmean), (m.var(axis), np.nanvar),
            (m.amin(axis), np.nanmin), (m.median(axis), np.nanmedian),
        ):  # fmt: skip
            seen = bits.any(axis)
            np.testing.assert_allclose(got.to_numpy(0)[seen], want(hidden, axis)[seen])
        filled = np.where(bits, data, np.inf)
        agree(m.argmin(axis), reference(filled.argmin(axis), np.asarray(bits.any(axis))))
        powers = np.log(np.sum(np.where(bits, np.exp(data), 0), axis))
        np.testing.assert_allclose(m.logsumexp(axis).to_numpy(-np.inf), powers)
        norms = np.sqrt(np.sum(np.where(bits, data**2, 0), axis))
        np.testing.assert_allclose(m.norm(axis=axis).to_numpy(0), norms)
        np.testing.assert_allclose(m.norm(np.inf, axis).to_numpy(0), np.nan_to_num(np.nanmax(np.abs(hidden), axis)))


@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_spread_of_complex_numbers_and_sums_of_exponentials_of_integers(spec: str) -> None:
    data, bits = arrays((4, 6), dtype="complex128")
    data = data + 1j * arrays((4, 6), 1)[0]
    bits[:2] = bits[:, :2] = True
    m, a = made(data, bits, spec), reference(data, bits)
    for axis in (None, 0, 1):
        agree(m.var(axis), np.ma.asarray(a.var(axis)), exact=False)
        agree(m.std(axis), np.ma.asarray(a.std(axis)), exact=False)
        agree(ow.var(m, axis=axis, correction=1), np.ma.asarray(a.var(axis, ddof=1)), exact=False)
        for dtype in ("int8", "uint16", "int64", "bool"):
            n = np.abs(data.real).astype(dtype)
            want = np.log(np.sum(np.where(bits, np.exp(n.astype(float)), 0), axis))
            agree(made(n, bits, spec).logsumexp(axis), np.ma.asarray(want), exact=False)


def test_a_type_to_compute_in() -> None:
    """A mean, an extreme or a spread in another type is that of the tensor of this type."""
    data, bits = arrays((4, 6), dtype="int64")
    bits[:, :3] = True
    m, a = made(data, bits), reference(data.astype("float32"), bits)
    for name in ("mean", "var", "std", "sum", "prod"):
        got = getattr(ow, name)(m, axis=1, dtype="float32")
        agree(got, np.ma.asarray(getattr(a, name)(1)).astype("float32"), exact=False)
    agree(ow.var(m, axis=1, ddof=2), a.astype("float64").var(1, ddof=2), exact=False)
    for refused in (lambda: ow.max(m, explicit=True), lambda: ow.sum(m, grad="dense")):
        with pytest.raises(ow.UnsupportedError, match="= of a masked tensor\n  help: leave it out"):
            refused()


def test_values_of_missing_elements_take_no_part() -> None:
    data = np.array([[np.nan, 1.0], [np.inf, np.nan]])
    bits = np.array([[False, True], [False, False]])
    for f in ("dense", "csr", "bsr(2, 2)"):
        m = made(data, bits, f)
        assert m.sum().item() == m.prod().item() == m.amax().item() == m.logsumexp().item() == 1
        assert str(m.sum(1)) == "MaskedTensor(\n  [  1.0000,       --]\n)"
        assert m.var(1).nse == 1
        assert m.var(1, correction=1).nse == 1


def test_infinite_elements_are_found() -> None:
    m = made(np.array([[np.inf, 1], [2, 3.0]]), np.array([[True, False], [False, False]]), "csr")
    assert m.argmin().item() == 0
    assert m.argmin(0).compressed().tolist() == [0]
    assert m.amin().item() == np.inf


def test_running_sums() -> None:
    data, bits = arrays((8, 12))
    a = reference(data, bits)
    for f in ("dense", "csr", "coo", "csc", "bsr(2, 3)", "dia"):
        m = made(data, bits, f)
        for axis in (0, 1):
            agree(m.cumsum(axis), a.cumsum(axis))
            agree(m.cumprod(axis), a.cumprod(axis))
            assert m.cumsum(axis).format == m.format
    with pytest.raises(ow.ShapeError, match="needs an axis"):
        m.cumsum()


def test_order() -> None:
    data, bits = arrays((6, 9), dtype="int64")
    data[1, 1] = 9
    a = reference(data, bits)
    for f in ("dense", "csr", "csc"):
        m = made(data, bits, f)
        for axis in (0, 1):
            agree(m.sort(axis), np.ma.sort(a, axis, fill_value=100))
            agree(m.sort(axis, descending=True), -np.ma.sort(-a, axis, fill_value=100))
            places = m.argsort(axis)
            taken = np.take_along_axis(data, np.minimum(places.to_numpy(0), data.shape[axis] - 1), axis)
            agree(reference_of(taken, places), np.ma.sort(a, axis, fill_value=100))
        largest, where = m.topk(3)
        agree(largest, -np.ma.sort(-a, 1, fill_value=100)[:, :3])
        assert where.shape == (6, 3)
        agree(m.unique(), np.ma.unique(a))
        for got, want in zip(m.nonzero(), np.nonzero(a.filled(0)), strict=True):
            np.testing.assert_array_equal(got, want)


def reference_of(data: Any, like: ow.MaskedTensor) -> ow.MaskedTensor:
    return ow.masked_tensor(data, like.get_mask().to_numpy())


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["dense", "csr", "bsr(2, 2)", "dia"])
def test_no_elements(spec: str) -> None:
    m = made(np.zeros((0, 4)), np.zeros((0, 4), np.bool_), spec)
    for got in (m.sum(0), m.amax(0), m.mean(0), m.argmin(0), m.median(0)):
        assert got.shape == (4,)
        assert got.nse == 0
    assert m.sum().nse == m.unique().size == m.sort(0).nse == m.cumsum(1).nse == 0
    assert (m.T @ m).nse == 0
    assert m.count().item() == 0
    assert str(m) == "MaskedTensor(\n  []\n)"


def test_refusals() -> None:
    m = made(*arrays((3, 4), dtype="complex128"))
    with pytest.raises(ow.DTypeError, match="not ordered"):
        m.amax()
    with pytest.raises(ow.DTypeError, match="not ordered"):
        m.argmax()
    with pytest.raises(ow.DTypeError, match="not ordered"):
        m.sort(0)
    with pytest.raises(ow.DTypeError, match="logsumexp of a complex tensor"):
        m.logsumexp()
    with pytest.raises(ow.ShapeError, match="axis 2 of a tensor of rank 2"):
        m.sum(2)


@pytest.fixture
def threads_kept() -> Iterator[None]:
    """The number of threads is what it was afterwards."""
    before = ow.get_num_threads()
    yield
    ow.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_long_totals(dtype: str, threads_kept: None) -> None:
    """The kernel that sums by bits, which short arrays do not reach."""
    data, bits = arrays((40_000,), dtype=dtype)
    want = data[bits].sum(dtype="float64" if dtype[0] == "f" else "int64")
    assert total(data, {"f": "f64", "i": "i64"}[dtype[0]], bits) == want
    m = ow.masked_tensor(data, bits)
    assert m.sum().item() == want
    for threads in (1, 2):
        ow.set_num_threads(threads)
        assert m.amax().item() == data[bits].max()
        assert m.amin().item() == data[bits].min()
    if dtype[0] == "f":
        data[np.flatnonzero(bits)[7]] = np.nan
        assert np.isnan(ow.masked_tensor(data, bits).amax().item())
        data[:] = np.nan
        assert ow.masked_tensor(data, ~bits & bits).amax().nse == 0
        data[bits] = -np.inf
        assert ow.masked_tensor(data, bits).amax().item() == -np.inf

"""What NumPy's users write of arrays: methods, arguments and functions on Tensors, as on the dense arrays."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy_results import same as same_but_for

import openwork as ow

same = partial(same_but_for, single=1e-6)

RNG = np.random.default_rng(6)
X = np.where(RNG.random((4, 5)) < 0.5, RNG.integers(-4, 5, (4, 5)) / 2, 0.0)
V = np.array([0.0, 2.5, 0.0, -1.0, 3.0, 0.0])
W = np.array([0, 2, 0, 1, 3, 0])
N = np.where(X > 0.5, np.nan, X)
FORMATS = ("csr", "coo", "dense", "dia", "csc")


def made(x: Any, format: str) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    return ow.asarray(x.copy(), format=format if x.ndim == 2 or format == "dense" else "coo")


def quietly(function: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function()


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "where": lambda a, v, w: np.where(a),
    "argwhere": lambda a, v, w: np.argwhere(a > 0),
    "flatnonzero": lambda a, v, w: np.flatnonzero(a),
    "round": lambda a, v, w: np.round(a, 1),
    "around, negative": lambda a, v, w: np.around(a * 100, decimals=-2),
    "round of integers": lambda a, v, w: np.round(w * 7, -1),
    "pad": lambda a, v, w: np.pad(a, 1),
    "pad with values": lambda a, v, w: np.pad(a, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4))),
    "pad, edge": lambda a, v, w: np.pad(a, (2, 1), mode="edge"),
    "pad, edge of columns": lambda a, v, w: np.pad(a, ((0, 0), (1, 2)), mode="edge"),
    "real_if_close of what is not close": lambda a, v, w: np.real_if_close(a + 0.5j, tol=1.5),
    "real_if_close of what is closer than 1": lambda a, v, w: np.real_if_close(a + 0.5j, tol=1),
    "compress of all": lambda a, v, w: np.compress(np.arange(20) % 3 == 0, a),
    "compress of a few": lambda a, v, w: np.compress([True, False, True], a),
    "nanargmax of integers": lambda a, v, w: np.nanargmax(w, keepdims=True),
    "nanargmin of integers": lambda a, v, w: np.nanargmin(w, axis=0),
    "pad with NaN": lambda a, v, w: np.pad(a, ((0, 1), (2, 0)), constant_values=np.nan),
    "pad, wrap": lambda a, v, w: np.pad(v, 8, "wrap"),
    "quantile": lambda a, v, w: np.quantile(a, [0.25, 0.5], axis=0),
    "quantile of all": lambda a, v, w: np.quantile(a, 0.4, keepdims=True),
    "quantile of integers": lambda a, v, w: np.quantile(w, 0.4),
    "quantile in single precision": lambda a, v, w: np.quantile(a.astype(np.float32), 0.4, axis=1),
    "percentile": lambda a, v, w: np.percentile(a, 30, axis=(0, 1)),
    "interp": lambda a, v, w: np.interp(a, [-2.0, 0, 2], [5.0, 1, 3], left=9.0),
    "average": lambda a, v, w: np.average(a, axis=1, weights=np.arange(1.0, 6)),
    "ptp": lambda a, v, w: np.ptp(a, axis=0),
    "unique": lambda a, v, w: np.unique(a, return_index=True, return_inverse=True, return_counts=True),
    "union1d": lambda a, v, w: np.union1d(a, v),
    "intersect1d": lambda a, v, w: np.intersect1d(a, v),
    "setdiff1d": lambda a, v, w: np.setdiff1d(a, v),
    "setxor1d": lambda a, v, w: np.setxor1d(a, v),
    "isin": lambda a, v, w: np.isin(a, v),
    "histogram": lambda a, v, w: np.histogram(a, bins=4),
    "bincount": lambda a, v, w: np.bincount(w),
    "trapezoid": lambda a, v, w: np.trapezoid(a, axis=0),
    "ediff1d": lambda a, v, w: np.ediff1d(v, to_begin=1.0),
    "compress": lambda a, v, w: np.compress([True, False, True], a, axis=0),
    "extract": lambda a, v, w: np.extract(a > 0, a),
    "select": lambda a, v, w: np.select([a > 1, a < 0], [a, -a], 0.5),
    "choose": lambda a, v, w: np.choose(w % 2, [v, w * 10.0]),
    "digitize": lambda a, v, w: np.digitize(a, [-1.0, 0.5, 1.5]),
    "nan_to_num": lambda a, v, w: np.nan_to_num(a / a),
    "real_if_close": lambda a, v, w: np.real_if_close(a + 0j),
    "sinc": lambda a, v, w: np.sinc(a),
    "angle": lambda a, v, w: np.angle(a),
    "split": lambda a, v, w: np.split(a, 2),
    "array_split": lambda a, v, w: np.array_split(a, 3, axis=1),
    "hsplit": lambda a, v, w: np.hsplit(a, [1, 3]),
    "vstack": lambda a, v, w: np.vstack([a, a[:1]]),
    "vstack of vectors": lambda a, v, w: np.vstack([v, w]),
    "hstack": lambda a, v, w: np.hstack([v, w]),
    "dstack": lambda a, v, w: np.dstack([a, a]),
    "column_stack": lambda a, v, w: np.column_stack([v, w]),
    "block": lambda a, v, w: np.block([[a, a], [a, np.ones((4, 5))]]),
    "append": lambda a, v, w: np.append(a, a, axis=1),
    "append, flat": lambda a, v, w: np.append(v, 3.0),
    "delete": lambda a, v, w: np.delete(a, [0, 2], axis=1),
    "insert": lambda a, v, w: np.insert(a, 2, 7.0, axis=1),
    "insert several": lambda a, v, w: np.insert(v, [1, 4], [7.0, 8.0]),
    "insert the same in every row": lambda a, v, w: np.insert(a, [1, 3], [7.0, 8.0], axis=1),
    "insert several at one place": lambda a, v, w: np.insert(a, [1], [7.0, 8.0], axis=1),
    "insert a column of each": lambda a, v, w: np.insert(a, [1, 3], np.arange(4.0)[:, None], axis=-1),
    "insert rows at one place": lambda a, v, w: np.insert(a, 1, np.arange(10.0).reshape(2, 5), axis=0),
    "insert nothing": lambda a, v, w: np.insert(a, [], 7.0, axis=0),
    "insert beside a mask": lambda a, v, w: np.insert(a, np.array([False, True, False, False, False]), 7.0, axis=1),
    "delete nothing": lambda a, v, w: np.delete(a, [], axis=1),
    "partition": lambda a, v, w: np.partition(a, range(5)),
    "real_if_close of integers": lambda a, v, w: np.real_if_close(w),
    "pad by a dict": lambda a, v, w: np.pad(a, {-1: 2, 0: (1, 0)}),
    "pad by a dict of one": lambda a, v, w: np.pad(a, {0: 1}),
    "pad by nothing": lambda a, v, w: np.pad(a, 0),
    "nansum of integers": lambda a, v, w: np.nansum(w, where=np.arange(6) > 1, initial=3),
    "nanmin with initial": lambda a, v, w: np.nanmin(a, axis=1, initial=0.25),
    "nansum with initial": lambda a, v, w: np.nansum(a, axis=0, initial=2.5),
    "nanprod with initial": lambda a, v, w: np.nanprod(a + 1, axis=0, initial=2.5),
    "nanmean of numbers": lambda a, v, w: np.nanmean(a, axis=1, keepdims=True),
    "nanmean of integers": lambda a, v, w: np.nanmean(w),
    "nanmax of integers": lambda a, v, w: np.nanmax(w, initial=1),
    "dtype of a ufunc": lambda a, v, w: np.add(a, 2, dtype=np.float32),
    "dtype of a ufunc and a list": lambda a, v, w: np.add(a, [1, 2, 3, 4, 5], dtype=np.float64),
    "rot90": lambda a, v, w: np.rot90(a),
    "rot90, backward": lambda a, v, w: np.rot90(a, -1),
    "fliplr": lambda a, v, w: np.fliplr(a),
    "rollaxis": lambda a, v, w: np.rollaxis(a, 1),
    "resize": lambda a, v, w: np.resize(v, (3, 5)),
    "trim_zeros": lambda a, v, w: np.trim_zeros(v),
    "atleast_2d": lambda a, v, w: np.atleast_2d(v),
    "atleast_3d": lambda a, v, w: np.atleast_3d(a, v),
    "ravel": lambda a, v, w: np.ravel(a, order="F"),
    "cumsum": lambda a, v, w: np.cumsum(a),
    "matvec": lambda a, v, w: np.matvec(a, a[0]),
    "vecmat": lambda a, v, w: np.vecmat(a[:, 0], a),
    "multi_dot": lambda a, v, w: np.linalg.multi_dot([a, a.T, a]),
    "dot of a matrix and a stack": lambda a, v, w: np.dot(a, np.ones((3, 5, 2))),
    "dot of a number": lambda a, v, w: np.dot(a, 2.0),
    "dot of vectors": lambda a, v, w: np.dot(v, w),
    "inner": lambda a, v, w: np.inner(a, a),
    "vdot": lambda a, v, w: np.vdot(a, a),
    "tensordot": lambda a, v, w: np.tensordot(a, a, axes=([1], [1])),
    "tensordot, no axes": lambda a, v, w: np.tensordot(a, v, axes=0),
    "linspace": lambda a, v, w: np.linspace(0.0, a.max(), 5),
    "zeros_like": lambda a, v, w: np.zeros_like(a, shape=(2, 3), dtype=np.float32, order="F", subok=False),
    "full_like": lambda a, v, w: np.full_like(a, 2, shape=7),
    "ones_like": lambda a, v, w: np.ones_like(a, order="F"),
    "sum of bool": lambda a, v, w: np.sum(a > 0, axis=0, dtype=np.int32),
    "method repeat": lambda a, v, w: a.repeat(2, 1),
    "method round": lambda a, v, w: a.round(1),
    "method var": lambda a, v, w: a.var(ddof=1),
    "method std": lambda a, v, w: a.std(axis=0, ddof=1),
    "method sum where": lambda a, v, w: a.sum(where=np.arange(5) > 2),
    "method sum by place": lambda a, v, w: a.sum(0, np.float32),
    "method max initial": lambda a, v, w: a.max(axis=0, initial=1.0),
    "method mean": lambda a, v, w: a.mean(axis=1, where=np.arange(5) > 2),
    "method any": lambda a, v, w: a.any(axis=1, where=np.arange(5) > 2),
    "method cumsum": lambda a, v, w: a.cumsum(1),
    "method cumprod": lambda a, v, w: a.cumprod(0),
    "method flatten": lambda a, v, w: a.flatten("F"),
    "method ravel": lambda a, v, w: a.ravel(),
    "method conjugate": lambda a, v, w: (a * 1j).conjugate(),
    "method compress": lambda a, v, w: a.compress([True, False], axis=1),
    "method item": lambda a, v, w: (a.item(7), a.item(1, 2), a.item((3, 1)), v.item(-2)),
    "method astype": lambda a, v, w: a.astype(np.float32, "K", "same_kind", copy=False),
    "method argpartition": lambda a, v, w: v.argpartition(5)[-1:],
    "method searchsorted": lambda a, v, w: np.sort(v).searchsorted([0.0, 1.0], "right"),
    "isclose": lambda a, v, w: np.isclose(a, a + 1e-9, equal_nan=True),
    "allclose": lambda a, v, w: np.allclose(a / a, a / a, equal_nan=True),
    "array_equal": lambda a, v, w: np.array_equal(a / a, a / a, equal_nan=True),
    "array_equiv": lambda a, v, w: np.array_equiv(a, a[:1]),
    "size along an axis": lambda a, v, w: np.size(a, 1),
    "einsum dtype": lambda a, v, w: np.einsum("ij->j", a, dtype=np.complex128),
}


@pytest.mark.thin(77)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
def test_as_of_the_arrays(call: str, format: str) -> None:
    function = CALLS[call]
    want = quietly(lambda: function(X.copy(), V.copy(), W.copy()))
    same(quietly(lambda: function(made(X, format), made(V, format), made(W, format))), want)


@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
@pytest.mark.parametrize(
    "change",
    [
        lambda a: np.put(a, [0, 3, -1], [5.0, 6.0]),
        lambda a: np.place(a, X > 0, [5.0, 6.0]),
        lambda a: np.putmask(a, X > 0, [5.0, 6.0, 7.0]),
        lambda a: np.putmask(a, (X < 0).tolist(), 8.0),
        lambda a: np.fill_diagonal(a, 4.0),
        lambda a: np.fill_diagonal(a, [3.0, 0.0, 1.0]),
        lambda a: np.put_along_axis(a, np.array([[1], [2], [0], [4]]), 9.0, axis=1),
        lambda a: np.copyto(a, 3, where=X > 1),
        lambda a: a.sort(axis=0),
        lambda a: a.put([1], 2.0),
    ],
)
def test_functions_that_change_an_array(change: Callable[[Any], Any], format: str) -> None:
    want, got = X.copy(), made(X, format)
    kept = got.format
    change(want)
    assert change(got) is None
    same(got, want)
    assert got.format == kept


@pytest.mark.thin(10)
@pytest.mark.parametrize("name", ["nanmedian", "nanquantile", "nanargmax", "nancumsum", "nanmax", "nanstd", "nanprod"])
@pytest.mark.parametrize("format", FORMATS)
def test_functions_that_leave_nan_out(name: str, format: str) -> None:
    more = (0.3,) if name == "nanquantile" else ()
    for axis in (0, 1, None):
        want = quietly(lambda axis=axis: getattr(np, name)(N, *more, axis=axis))
        same(quietly(lambda axis=axis: getattr(np, name)(made(N, format), *more, axis=axis)), want)


def test_quantiles_by_every_method() -> None:
    x = np.sort(np.where(RNG.random(11) < 0.6, RNG.integers(-9, 9, 11) * 1.0, 0))
    t = ow.asarray(x, format="coo")
    for method in (
        "linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased", "normal_unbiased",
        "inverted_cdf", "averaged_inverted_cdf", "interpolated_inverted_cdf",
    ):  # fmt: skip
        q = np.array([0.0, 0.1, 0.35, 0.5, 0.77, 1.0])
        same(np.quantile(t, q, method=method), np.quantile(x, q, method=method))
    assert np.isnan(np.quantile(ow.asarray(N, format="csr"), 0.5).item())
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(np.nanmedian(ow.asarray(np.full((1, 2), np.nan), format="csr")).item())


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_tensors_of_rank_0_are_scalars(format: str, library: str) -> None:
    torch = pytest.importorskip("torch")
    data = X if library == "numpy" else torch.from_numpy(X.copy())
    a = ow.asarray(data, format=format)
    scalar = torch.tensor(2.0, dtype=torch.float64)
    for two in (np.array(2.0), np.float64(2), scalar, ow.asarray(2.0), ow.asarray(scalar)):
        for got, want in (
            (a * two, X * 2),
            (a + two, X + 2),
            (a / two, X / 2),
            (a > two, X > 2),
            (ow.multiply(two, a), X * 2),
            (ow.subtract(two, a), 2 - X),
            (ow.maximum(a, two), np.maximum(X, 2)),
            (ow.where(a > two, a, two), np.where(X > 2, X, 2)),
            (ow.clip(a, max=two), np.minimum(X, 2)),
        ):
            np.testing.assert_allclose(got.to_numpy(), want)
            assert got.format.is_dense == a.format.is_dense
            assert isinstance(got.values, torch.Tensor) == any(
                isinstance(x.values, torch.Tensor) for x in (a, ow.asarray(two))
            )


def test_places_axes_and_extents_of_rank_0() -> None:
    torch = pytest.importorskip("torch")
    a = ow.asarray(X, format="csr")
    for one in (np.int64(1), np.array(1), np.uint8(1), torch.tensor(1), ow.asarray(1)):
        same(a[one], X[1])
        same(a[one : one + 1], X[1:2])
        same(a[one, one], X[1, 1])
        same(a.sum(axis=one), X.sum(1))
        same(ow.roll(a, one, axis=one), np.roll(X, 1, 1))
        same(ow.flip(a, axis=one), np.flip(X, 1))
        same(ow.zeros((one, 3)), np.zeros((1, 3)))
        same(ow.reshape(a, (one, 20)), X.reshape(1, 20))
        same(ow.take(a, one, axis=one), X.take(1, 1))
        same(ow.full((2, 2), one, dtype="float64"), np.full((2, 2), 1.0))
        same(ow.eye(3, k=one), np.eye(3, k=1))
        same(ow.arange(one + 2), np.arange(3))
        same(ow.repeat(a, one + 1, axis=0), X.repeat(2, 0))
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            ow.zeros((wrong, 2))


def test_a_reduction_is_a_number() -> None:
    a = ow.asarray(X + 0.25, format="csr")
    total, count = a.sum(), ow.asarray(W).max()
    want = float((X + 0.25).sum())
    assert f"{total:.3f}" == f"{want:.3f}"
    assert f"{total:>12}" == f"{want:>12}"
    assert str(total) == str(want)
    assert "\n" not in repr(total)
    assert round(total, 1) == round(want, 1)
    assert (int(total), float(total), complex(total)) == (int(want), want, complex(want))
    assert (math.floor(total), math.ceil(total), math.trunc(total)) == (
        math.floor(want), math.ceil(want), math.trunc(want)
    )  # fmt: skip
    assert math.sqrt(abs(total)) == math.sqrt(abs(want))
    assert (total < want + 1, total >= want, total == want, want != total) == (True, True, True, False)
    assert max([count, total]) is (count if want < 3 else total)
    assert operator.index(count) == 3
    assert list(range(10))[count] == 3
    assert np.float64(total) == want
    assert np.array([total, count]).tolist() == [want, 3.0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(total)  # as NumPy's arrays of rank 0
    with pytest.raises(TypeError):
        operator.index(total)


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda a: ow.where(a, a), ow.ShapeError, "either both or neither"),
    (lambda a: np.pad(a, -1), ow.ShapeError, "negative"),
    (lambda a: np.pad(a, 1, mode="mean"), ow.UnsupportedError, "mode='mean'"),
    (lambda a: np.pad(a, (1, 2, 3)), ow.ShapeError, "pad_width"),
    (lambda a: np.quantile(a, 1.5), ValueError, "between 0 and 1"),
    (lambda a: np.quantile(a, 0.5, method="best"), ow.UnsupportedError, "supported: linear"),
    (lambda a: np.quantile(a * 1j, 0.5), ow.DTypeError, "complex128"),
    (lambda a: np.interp(a, [1.0, 2.0], [1.0]), ow.ShapeError, "two vectors"),
    (lambda a: np.nanargmax(a * float("nan"), axis=1), ValueError, "All-NaN"),
    (lambda a: a.astype(np.int64, casting="safe"), ow.DTypeError, "float64 to int64 is not allowed"),
    (lambda a: a.astype(np.int64, casting="sure"), ow.DTypeError, "supported: no, equiv"),
    (lambda a: np.split(a, 3), ow.ShapeError, "into 3 parts"),
    (lambda a: np.zeros_like(a, shape=(-1,)), ow.ShapeError, "negative"),
    (lambda a: ow.zeros_like(a, order="Z"), ow.UnsupportedError, "order='Z'"),
    (lambda a: a.item(99), IndexError, "place 99"),
    (lambda a: a.item(1, 2, 3), ow.ShapeError, "3 coordinates"),
    (lambda a: a.sum(wher=True), TypeError, "wher"),
    (lambda a: np.unique(a, axis=0), ow.UnsupportedError, "axis="),
    (lambda a: np.put(X.copy(), a, 1.0), ow.UnsupportedError, "put"),
    (lambda a: a.tocsrr, AttributeError, "did you mean 'tocsr'"),
    (lambda a: ow.einsun, AttributeError, "did you mean 'einsum'"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals(k: int) -> None:
    call, error, words = REFUSED[k]
    with pytest.raises(error, match=words):
        call(ow.asarray(X, format="csr"))


def test_the_determinant_of_a_matrix_with_nan_is_nan() -> None:
    x = np.diag([1.0, np.nan, 2.0])
    assert np.isnan(ow.linalg.det(ow.asarray(x, format="csr")).item())
    assert np.isnan(ow.linalg.slogdet(ow.asarray(x, format="csr")).logabsdet.item())


@pytest.mark.parametrize("call", [
    lambda x: np.subtract.reduce(x), lambda x: np.logaddexp.accumulate(x), lambda x: np.subtract.reduceat(x, [0, 2]),
    lambda x: np.subtract.reduce(x, out=np.zeros(5)),
])  # fmt: skip
def test_methods_of_ufuncs_on_dense_tensors(call: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(np.asarray(call(ow.asarray(X))), call(X))


def test_put_along_no_axis() -> None:
    t, want = ow.asarray(X, format="csr"), X.copy()
    for x in (t, want):
        np.put_along_axis(x, np.array([1, 7]), 9.0, axis=None)
    np.testing.assert_array_equal(t.to_numpy(), want)


def test_ufuncs_of_lazy_tensors() -> None:
    lazy = ow.lazy(ow.asarray(X, format="csr"))
    made = ow.compute(np.add(lazy, lazy, dtype=np.float32)).to_numpy()
    np.testing.assert_array_equal(made, np.add(X, X, dtype=np.float32), strict=True)
    np.testing.assert_array_equal(ow.compute(np.multiply.outer(lazy, V)).to_numpy(), np.multiply.outer(X, V))
    np.add(lazy, X, out=(out := np.zeros_like(X)))
    np.testing.assert_array_equal(out, X + X)

"""NumPy's statistics, histograms, sets and selections, by operations of the namespace."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...tensor.dtypes import isdtype
from ...tensor.tensor import Tensor
from ..axes import axes_of, axis_of
from .registry import numpy_function

__all__: list[str] = []


@numpy_function("ptp")
def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The largest less the least element."""
    ow = namespace()
    return ow.max(a, axis=axis, keepdims=keepdims) - ow.min(a, axis=axis, keepdims=keepdims)


@numpy_function("average")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean, each element as often as its weight says."""
    ow, t = namespace(), asarray(a)
    if weights is None:
        mean = ow.mean(t, axis=axis, keepdims=keepdims)
        size = float(t.size if axis is None else np.prod([t.shape[d] for d in axes_of(axis, t.ndim, "average")]))
        return (mean, ow.full_like(mean, size)) if returned else mean
    w = asarray(weights)
    if w.shape != t.shape:
        axes = () if axis is None else axes_of(axis, t.ndim, "average")
        if w.shape != tuple(t.shape[d] for d in axes):
            raise ShapeError(f"average: weights of shape {w.shape} for shape {t.shape}\n  help: name their axis")
        w = ow.broadcast_to(ow.reshape(w, tuple(n if d in axes else 1 for d, n in enumerate(t.shape))), t.shape)
    total = ow.sum(w, axis=axis, keepdims=keepdims)
    if bool((total == 0).any()):
        raise ZeroDivisionError("average: weights sum to zero\n  help: leave them out")
    mean = ow.sum(t * w, axis=axis, keepdims=keepdims) / total
    return (mean, total.astype(mean.dtype)) if returned else mean


@numpy_function("flatnonzero")
def flatnonzero(a: Any) -> Any:
    """The places in row-major order of the elements that are not zero."""
    ow = namespace()
    return ow.nonzero(ow.reshape(asarray(a), (-1,)))[0]


@numpy_function("compress")
def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    """The coordinates along an axis at which the condition is true."""
    t = asarray(a)
    mask = condition.to_numpy() if isinstance(condition, Tensor) else np.asarray(condition)
    if mask.ndim != 1:
        raise ShapeError(f"compress: a condition of shape {mask.shape}\n  expected: a vector")
    return namespace().take(t, np.flatnonzero(mask), axis=axis)


@numpy_function("extract")
def extract(condition: Any, arr: Any) -> Any:
    """The elements where the condition is true, in row-major order."""
    ow = namespace()
    return compress(flat_of(condition), ow.reshape(asarray(arr), (-1,)), 0)


def flat_of(x: Any) -> Any:
    """All elements of a Tensor or array in one dimension."""
    return namespace().reshape(asarray(x), (-1,))


@numpy_function("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of all neighbours in row-major order."""
    ow = namespace()
    parts = [x if x is None else flat_of(x) for x in (to_begin, ow.diff(flat_of(ary)), to_end)]
    return ow.concat([p for p in parts if p is not None], axis=0)


@numpy_function("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule."""
    ow, t = namespace(), asarray(y)
    d = axis_of(axis, t.ndim, "trapezoid")
    widths: Any = dx
    if x is not None:
        widths = ow.diff(asarray(x), axis=0 if np.ndim(x) == 1 else axis)
        if widths.ndim == 1:
            widths = ow.reshape(widths, tuple(-1 if k == d else 1 for k in range(t.ndim)))
    head = (slice(None),) * d
    return ow.sum((t[(*head, slice(1, None))] + t[(*head, slice(None, -1))]) * widths / 2.0, axis=axis)


@numpy_function("bincount")
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number occurs, or the sum of its weights."""
    t = asarray(x)
    if t.ndim != 1 or not isdtype(t.dtype, "integral"):
        raise ShapeError(
            f"bincount: expected a vector of integers; got shape {t.shape}, {t.dtype}\n  help: astype(int)"
        )
    if weights is not None or t.format.is_dense:
        host = weights.to_numpy() if isinstance(weights, Tensor) else weights
        return asarray(np.bincount(t.to_numpy(), host, minlength))
    values, counts = (part.to_numpy() for part in namespace().unique_counts(t))
    out = np.zeros(max(minlength, int(values.max(initial=-1)) + 1), np.int64)
    if values.min(initial=0) < 0:
        raise ValueError("bincount: negative numbers\n  help: they are not counted")
    out[values] = counts
    return asarray(out)


@numpy_function("histogram")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """How many elements lie in each bin, and the bins' edges: unspecified ones are counted, not visited."""
    if weights is not None:
        raise UnsupportedError("numpy.histogram: weights= of a Tensor\n  help: to_numpy() first")
    t = asarray(a)
    values, counts = (part.to_numpy() for part in namespace().unique_counts(t))
    edges = bins.to_numpy() if isinstance(bins, Tensor) else bins
    if isinstance(edges, str):
        raise UnsupportedError(f"numpy.histogram: bins={edges!r} of a Tensor\n  help: give a number or the edges")
    histogram_counts, edges = np.histogram(values, edges, range, density=False, weights=counts)
    if density:
        return asarray(histogram_counts / np.diff(edges) / histogram_counts.sum()), asarray(edges)
    return asarray(histogram_counts.astype(np.int64)), asarray(edges)


@numpy_function("unique")
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None,
    *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements in order; of NaN one, unless `equal_nan` is False."""
    if axis is not None and asarray(ar).ndim != 1:
        raise UnsupportedError("numpy.unique: axis= of a Tensor\n  help: leave it out")
    t, ow = asarray(ar), namespace()
    merge_nans = equal_nan and isdtype(t.dtype, ("real floating", "complex floating"))
    distinct = ow.unique_all(t) if return_index or return_inverse or return_counts else None
    values = ow.unique_values(t) if distinct is None else distinct.values
    merge_nans = merge_nans and bool(ow.isnan(values).any())
    if distinct is None:
        return _merge_nans(values)[0] if merge_nans else values
    firsts, inverse, counts = distinct.indices, distinct.inverse_indices, distinct.counts
    if merge_nans:
        values, count = _merge_nans(values)
        firsts, inverse = firsts[:count], ow.minimum(inverse, count - 1)
        counts = ow.concat([counts[: count - 1], ow.expand_dims(counts[count - 1 :].sum())], axis=0)
    optional = ((firsts, return_index), (inverse, return_inverse), (counts, return_counts))
    return (values, *(part for part, wanted in optional if wanted))


def _merge_nans(values: Any) -> tuple[Any, int]:
    """Sorted values with NaN last -> the same with one NaN, and their number."""
    count = values.shape[0] - int(namespace().isnan(values).sum()) + 1
    return values[:count], count


def _distinct(a: Any) -> Any:
    return unique(flat_of(a))


@numpy_function("union1d")
def union1d(ar1: Any, ar2: Any) -> Any:
    """The elements of either, distinct, in order."""
    return unique(namespace().concat([_distinct(ar1), _distinct(ar2)], axis=0))


@numpy_function("intersect1d")
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements of both, distinct, in order."""
    if return_indices:
        raise UnsupportedError("numpy.intersect1d: return_indices= of a Tensor\n  help: leave it out")
    a, b = _distinct(ar1), _distinct(ar2)
    return compress(namespace().isin(a, b), a, 0).astype(namespace().result_type(a, b))


@numpy_function("setdiff1d")
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements of the first that are none of the second, distinct, in order."""
    a = _distinct(ar1)
    return compress(namespace().isin(a, _distinct(ar2), invert=True), a, 0)


@numpy_function("setxor1d")
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements of one of the two, distinct, in order."""
    a, b = _distinct(ar1), _distinct(ar2)
    return union1d(setdiff1d(a, b), setdiff1d(b, a))


@numpy_function("isin")
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is one of `test_elements`."""
    return namespace().isin(element, test_elements, invert=invert)


@numpy_function("matvec")
def matvec(x1: Any, x2: Any) -> Any:
    """Matrices times vectors, the dimensions in front broadcast."""
    ow = namespace()
    return ow.squeeze(ow.matmul(x1, ow.expand_dims(asarray(x2), axis=-1)), axis=-1)


@numpy_function("vecmat")
def vecmat(x1: Any, x2: Any) -> Any:
    """Conjugated vectors times matrices, the dimensions in front broadcast."""
    ow, x = namespace(), asarray(x1)
    x = ow.conj(x) if isdtype(x.dtype, "complex floating") else x
    return ow.squeeze(ow.matmul(ow.expand_dims(x, axis=-2), x2), axis=-2)


@numpy_function("linalg.multi_dot")
def multi_dot(arrays: Any) -> Any:
    """The product of several matrices, in the cheapest order."""
    return reduce(namespace().matmul, arrays)

"""Quantiles over axes: the elements in order, and of each fibre the one or two at a place that `q` names.

linear: place = (n - 1) q; result = x[floor(place)] + (place - floor(place)) (x[floor(place) + 1] - x[floor(place)])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...caller import warn
from ...errors import DTypeError, UnsupportedError
from ...interop.sources import asarray
from ...runtime.operation import namespace, operation
from ...storage.buffers import as_array, is_torch, numpy_dtype, to_numpy
from ...tensor.dtypes import isdtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..axes import axes_of
from ..elementwise.functions import isnan, where
from ..indexing.taking import take_along_axis
from ..manipulation.shaping import expand_dims, moveaxis, permute_dims, reshape
from ..sorting import sort
from .statistics import count_nonzero

__all__ = ["nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

Axis = int | Sequence[int] | None
Places = np.ndarray[Any, np.dtype[np.float64]]

_SHIFTS = {
    "linear": (1.0, 1.0), "weibull": (0.0, 0.0), "hazen": (0.5, 0.5), "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
"""Methods of Hyndman and Fan (1996) that interpolate: place = n q + (a + q (1 - a - b)) - 1."""
_STEPS: dict[str, Callable[[Places], Places]] = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}
"""Methods that take the element beside the place (n - 1) q."""
_OTHERS = ("midpoint", "inverted_cdf", "averaged_inverted_cdf")


def _places(method: str, n: Any, q: Any) -> tuple[Places, Places, Places]:
    """Two places in a sorted fibre of `n` elements, and the weight of the second."""
    if method == "linear":
        place = (n - 1) * q
    elif method in _SHIFTS:
        a, b = _SHIFTS[method]
        place = n * q + (a + q * (1 - a - b)) - 1
    elif method in _STEPS:
        place = _STEPS[method]((n - 1) * q)
    elif method == "midpoint":
        place = (n - 1) * q
        place = np.where(place == np.floor(place), place, np.floor(place) + 0.5)
    elif method in _OTHERS:
        place = n * q - 1
        between = 0.5 if method.startswith("averaged") else 1.0
        place = np.where(place == np.floor(place), place + (0.5 if between == 0.5 else 0.0), np.ceil(place))
    else:
        raise UnsupportedError(f"quantile: method={method!r}\n  supported: {', '.join((*_SHIFTS, *_STEPS, *_OTHERS))}")
    place = np.clip(place, 0, np.maximum(n - 1, 0))
    low = np.floor(place)
    return low, np.minimum(low + 1, np.maximum(n - 1, 0)), place - low


def _fibres(t: Tensor, axis: Axis, operation: str) -> tuple[Tensor, tuple[int, ...]]:
    """The operand with the elements over `axis` in one dimension at the end, and the axes."""
    axes = tuple(range(t.ndim)) if axis is None else axes_of(axis, t.ndim, operation)
    kept = [d for d in range(t.ndim) if d not in axes]
    turned = permute_dims(t, (*kept, *axes))
    return reshape(
        turned, (*(t.shape[d] for d in kept), int(np.prod([t.shape[d] for d in axes], dtype=np.int64)))
    ), axes


def _weights(q: Any) -> np.ndarray[Any, Any]:
    """The quantiles as an array of float64. Raises ValueError beyond 0 and 1, as NumPy does."""
    found = np.asarray(q.to_numpy() if isinstance(q, Tensor) else to_numpy(q) if is_torch(q) else q)
    if found.dtype.kind not in "fiub":
        raise DTypeError(f"quantile: q of dtype {found.dtype}\n  help: give floats between 0 and 1")
    found = found.astype(np.float64)
    if not ((found >= 0) & (found <= 1)).all():
        raise ValueError(f"quantile: quantiles lie between 0 and 1; got {q}\n  help: percentile takes 0 to 100")
    return found


def _quantile(x: Any, q: Any, axis: Axis, method: str, keepdims: bool, operation: str, skip: bool = False) -> Any:
    t = asarray(x.compute() if is_lazy(x) else x)
    if isdtype(t.dtype, ("complex floating", "bool")):
        raise DTypeError(f"{operation} of {t.dtype}: elements are real numbers\n  help: abs(), or astype(float) first")
    exact = method in ("lower", "higher", "nearest", "inverted_cdf")
    wide = type(q) is not float or not isdtype(t.dtype, "real floating")
    weights = _weights(q)
    if wide and not exact:
        t = t.astype(np.result_type(np.float64) if t._storage.library == "numpy" else "float64", copy=False)
    else:
        weights = weights.astype(numpy_dtype(t._storage.scalar))
    flat, axes = _fibres(t, axis, operation)
    found = _taken(flat, weights, method, skip)
    out = moveaxis(found, -1, 0) if weights.ndim else found[..., 0]
    out = reshape(out, (*weights.shape, *flat.shape[:-1])) if weights.ndim > 1 else out
    if keepdims:
        for d in sorted(axes):
            out = expand_dims(out, axis=weights.ndim + d)
    return out.asformat("dense")


def _taken(flat: Tensor, q: np.ndarray[Any, Any], method: str, skip: bool) -> Tensor:
    """The quantiles of every fibre, along a last dimension."""
    n, floating = flat.shape[-1], isdtype(flat.dtype, "real floating")
    flat_q = q.reshape(-1)
    if not n:
        return _nothing(flat, len(flat_q))
    rising = sort(flat)
    missing = isnan(flat) if floating else None
    counts: Any = n
    if skip and missing is not None:
        counts = n - to_numpy(count_nonzero(missing, axis=-1).to_dense(), detach=True)[..., None]
    low, high, weight = _places(method, np.asarray(counts, flat_q.dtype), flat_q)
    shape = (*flat.shape[:-1], len(flat_q))
    at = [np.broadcast_to(p, shape).astype(np.int64) for p in (low, high)]
    first = take_along_axis(rising, at[0], axis=-1)
    out = first
    if np.any(weight):
        second = take_along_axis(rising, at[1], axis=-1)
        share = asarray(as_array(np.ascontiguousarray(np.broadcast_to(weight, shape)), like=flat.values))
        share = share.astype(flat.dtype) if floating else share
        out = where(
            share > 0,
            where(share < 0.5, first + (second - first) * share, second - (second - first) * (1 - share)),
            first,
        )
    if missing is None:
        return out.asformat("dense")
    absent: Any = isnan(rising[..., n - 1 : n])
    if skip:
        absent = np.asarray(counts) == 0
        if not absent.any():
            return out.asformat("dense")
        warn("All-NaN slice encountered", RuntimeWarning)
    spoilt: Tensor = where(absent, float("nan"), out)
    return spoilt.asformat("dense")


def _nothing(flat: Tensor, count: int) -> Tensor:
    found: Tensor = asarray((flat.sum(-1) + float("nan"))[..., None] * np.ones(count))
    return found


def _masked(m: Any, q: Any, /, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """Missing elements are left out, as NaN is by `nanquantile`; missing where nothing is specified."""
    plain = m.mask_nan().filled(float("nan"))
    found = _quantile(plain, q, axis, method, keepdims, "quantile", True)
    return namespace().as_masked_tensor(found, ~isnan(found))


@operation(
    method=True,
    masked=_masked,
    torch="quantile(q, dim: axis = None, keepdim: keepdims = False, *, interpolation: method = 'linear')",
)
def quantile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """The elements below which the shares `q` of those over `axis` lie.

    Parameters
    ----------
    x : Tensor, any format and fill value, real
    q : a number between 0 and 1, or an array of them
    axis : one or several axes; all elements without
    method : how to choose between two elements: NumPy's "linear", "lower", "higher", "nearest", "midpoint", "hazen",
        "weibull", "median_unbiased", "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf",
        "interpolated_inverted_cdf"
    keepdims : leave extents of 1 where axes were

    Returns
    -------
    dense Tensor, the dimensions of `q` in front: float64, or the dtype of `x` where it is floating and `q` a float, or
    the method takes elements as they are; NaN where an element is NaN, or there is none

    Cost: O(nse log nse + size of the result); `x` is not made dense. Gradients go to the elements taken.
    Raises ValueError for `q` beyond 0 and 1, DTypeError for bool and complex numbers.
    """
    return _quantile(x, q, axis, method, keepdims, "quantile")


@operation(method=True, masked=lambda m, q, /, **options: _masked(m, _hundredths(q), **options))
def percentile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """`quantile` of `q / 100`."""
    return _quantile(x, _hundredths(q), axis, method, keepdims, "percentile")


def _hundredths(q: Any) -> Any:
    return float(q) / 100 if type(q) in (int, float) else np.asarray(q.to_numpy() if isinstance(q, Tensor) else q) / 100


@operation(
    method=True,
    masked=_masked,
    torch="nanquantile(q, dim: axis = None, keepdim: keepdims = False, *, interpolation: method = 'linear')",
)
def nanquantile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """`quantile` of the elements that are not NaN; NaN, with NumPy's warning, where none is."""
    return _quantile(x, q, axis, method, keepdims, "nanquantile", True)


@operation(method=True, masked=lambda m, q, /, **options: _masked(m, _hundredths(q), **options))
def nanpercentile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """`nanquantile` of `q / 100`."""
    return _quantile(x, _hundredths(q), axis, method, keepdims, "nanpercentile", True)


@operation(
    method=True,
    masked=lambda m, /, *, axis=None, keepdims=False: m.mask_nan().median(axis, keepdims=keepdims),
)
def nanmedian(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The median over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is."""
    t = asarray(x.compute() if is_lazy(x) else x)
    if isdtype(t.dtype, "bool"):
        t = t.astype(np.float64)
    return _quantile(t, 0.5, axis, "linear", keepdims, "nanmedian", True)

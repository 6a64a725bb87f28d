"""A tensor, quantiles q and axes -> interpolated elements of each sorted fibre at the positions that q names.

linear: place = (n - 1) q; result = x[floor(place)] + (place - floor(place)) (x[floor(place) + 1] - x[floor(place)])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...caller import warn
from ...errors import DTypeError, UnsupportedError
from ...interop.sources import asarray
from ...runtime.operation import namespace, operation
from ...runtime.values import apply_with_warnings
from ...storage.buffers import as_array, host_dtype, is_torch, to_numpy, torch_module
from ...tensor.dtypes import isdtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..axes import axes_of
from ..elementwise.functions import isnan
from ..elementwise.selection import where
from ..manipulation.repetition import broadcast_to
from ..manipulation.shaping import expand_dims, moveaxis, permute_dims, reshape
from ..selection import Rows, has_rows, rows_of
from ..stored_fibres import reduced_fibres
from .by_ranges import keeps_ranges, parts_of

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
_MEDIAN = "mean of two"
"""linear for q = 1/2, whose two elements may be infinite: their distance is NaN then, and their mean need not be."""
_OTHERS = ("midpoint", "inverted_cdf", "averaged_inverted_cdf")


def _positions(method: str, n: Any, q: Any) -> tuple[Places, Places, Places]:
    """The two neighbouring positions in a sorted fibre of `n` elements, and the weight of the second."""
    if method in ("linear", _MEDIAN):
        position = (n - 1) * q
    elif method in _SHIFTS:
        a, b = _SHIFTS[method]
        position = n * q + (a + q * (1 - a - b)) - 1
    elif method in _STEPS:
        position = _STEPS[method]((n - 1) * q)
    elif method == "midpoint":
        position = (n - 1) * q
        position = np.where(position == np.floor(position), position, np.floor(position) + 0.5)
    elif method in _OTHERS:
        position = n * q - 1
        between = 0.5 if method.startswith("averaged") else 1.0
        position = np.where(
            position == np.floor(position), position + (0.5 if between == 0.5 else 0.0), np.ceil(position)
        )
    else:
        raise UnsupportedError(f"quantile: method={method!r}\n  supported: {', '.join((*_SHIFTS, *_STEPS, *_OTHERS))}")
    position = np.clip(position, 0, np.maximum(n - 1, 0))
    low = np.floor(position)
    return low, np.minimum(low + 1, np.maximum(n - 1, 0)), position - low


def _reduced_dims_last(t: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The operand with the reduced dimensions flattened into a last one."""
    kept_dims = [d for d in range(t.ndim) if d not in axes]
    permuted = permute_dims(t, (*kept_dims, *axes))
    size = math.prod(t.shape[d] for d in axes)
    return reshape(permuted, (*(t.shape[d] for d in kept_dims), size))


def _shares(q: Any) -> np.ndarray[Any, Any]:
    """The quantiles as an array of float64. Raises ValueError beyond 0 and 1, as NumPy does."""
    shares = np.asarray(q.to_numpy() if isinstance(q, Tensor) else to_numpy(q) if is_torch(q) else q)
    if shares.dtype.kind not in "fiub":
        raise DTypeError(f"quantile: q of dtype {shares.dtype}\n  help: give floats between 0 and 1")
    shares = shares.astype(np.float64)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError(f"quantile: quantiles lie between 0 and 1; got {q}\n  help: percentile takes 0 to 100")
    return shares


def _quantile(x: Any, q: Any, axis: Axis, method: str, keepdims: bool, operation: str, skip: bool = False) -> Any:
    t = asarray(x.compute() if is_lazy(x) else x)
    if isdtype(t.dtype, ("complex floating", "bool")):
        raise DTypeError(f"{operation} of {t.dtype}: elements are real numbers\n  help: abs(), or astype(float) first")
    axes = tuple(range(t.ndim)) if axis is None else axes_of(axis, t.ndim, operation)
    if keeps_ranges(t, axes) and not has_rows(t, axes):
        parts = [_quantile(part, q, axes, method, keepdims, operation, skip).to_numpy() for part in parts_of(t)]
        place = -1 - len([a for a in axes if keepdims and a > min(set(range(t.ndim)).difference(axes))])
        return Tensor._from_dense(np.concatenate(parts, axis=place))
    takes_elements = method in ("lower", "higher", "nearest", "inverted_cdf")
    to_float64 = type(q) is not float or not isdtype(t.dtype, "real floating")
    weights = _shares(q)
    if to_float64 and not takes_elements:
        t = t.astype(np.result_type(np.float64) if t._storage.library == "numpy" else "float64", copy=False)
    elif not to_float64:
        weights = weights.astype(host_dtype(t._storage.scalar))
    if not weights.ndim:
        sparse = reduced_fibres(
            t, axes, keepdims, lambda rows, over: _quantile(rows, q, over, method, False, operation, skip)
        )
        if sparse is not None:
            return sparse
    flat = _reduced_dims_last(t, axes)
    quantiles = _quantiles_of_fibres(flat, weights, method, skip)
    if weights.ndim:
        out = moveaxis(quantiles, -1, 0)
        out = reshape(out, (*weights.shape, *flat.shape[:-1])) if weights.ndim > 1 else out
    elif quantiles.format.is_dense:
        out = Tensor._from_dense(quantiles.values.reshape(flat.shape[:-1]))
    else:
        out = quantiles[..., 0]
    if keepdims:
        for d in sorted(axes):
            out = expand_dims(out, axis=weights.ndim + d)
    return out.asformat("dense") if out.format.is_dense else out


def _quantiles_of_fibres(flat: Tensor, q: np.ndarray[Any, Any], method: str, skip: bool) -> Tensor:
    """The quantiles of every fibre along the last dimension of `flat`, along a last dimension."""
    n, floating = flat.shape[-1], isdtype(flat.dtype, "real floating")
    flat_q = q.reshape(-1)
    sparse = reduced_fibres(
        flat, (flat.ndim - 1,), False, lambda rows, _: _quantiles_of_fibres(rows, q, method, skip), len(flat_q)
    )
    if sparse is not None:
        return sparse
    if not n:
        return _all_nan(flat, len(flat_q))
    rows, _ = rows_of(flat, flat.ndim - 1)
    counts: Any = n
    if skip and floating:
        counts = n - rows.at([])[2].reshape(*flat.shape[:-1], 1)
    low, high, weight = _positions(method, np.asarray(counts, flat_q.dtype), flat_q)
    shape, m = (*flat.shape[:-1], len(flat_q)), len(flat_q)
    ranks = [low, high] if np.any(weight) else [low]
    elements, nans = _elements(rows, ranks, flat.shape[:-1])
    between = elements[..., :m]
    if np.any(weight):
        weight = np.broadcast_to(weight, shape).reshape(-1)
        weight = weight.astype(host_dtype(flat._storage.scalar), copy=False) if floating else weight
        first, second = between.reshape(-1), elements[..., m : 2 * m].reshape(-1)
        between = _between(first, second, as_array(weight, like=flat.values), method).reshape(shape)
    out = Tensor._from_dense(between)
    if skip:  # of nothing but NaN the elements at the places are NaN, which torch gives the gradient to
        if not np.all(counts):
            warn("All-NaN slice encountered", RuntimeWarning)
        return out.asformat("dense")
    if nans.any():
        out = where(as_array(nans > 0, like=flat.values), float("nan"), out)
    return out.asformat("dense")


def _between(first: Any, second: Any, weight: Any, method: str) -> Any:
    """The elements between those of two vectors, of weight 0 the first; weights of the same array library."""
    where = torch_module().where if is_torch(first) else np.where
    if method == _MEDIAN:
        between = apply_with_warnings("div", apply_with_warnings("add", first, second), 2)
    else:
        rise = apply_with_warnings("sub", second, first)
        near_first = apply_with_warnings("add", first, apply_with_warnings("mul", rise, weight))
        near_second = apply_with_warnings("sub", second, apply_with_warnings("mul", rise, 1 - weight))
        between = where(weight < 0.5, near_first, near_second)
    return where(weight > 0, between, first)


def _elements(rows: Rows, ranks: Sequence[Places], shape: tuple[int, ...]) -> tuple[Any, np.ndarray[Any, Any]]:
    """The elements at ranks of the rows along a last dimension, the rows in a shape, a dense array; and how many are
    NaN, in the same shape and an extent of 1."""
    parts = [np.asarray(r) for r in ranks]
    m = sum(r.shape[-1] for r in parts)
    if any(r.ndim > 1 for r in parts):
        parts = [np.broadcast_to(r, (*shape, r.shape[-1])).reshape(rows.count, r.shape[-1]) for r in parts]
    _, found, nans = rows.at(np.concatenate(parts, axis=-1).astype(np.int64))
    return rows.gathered(found).reshape(*shape, m), nans.reshape(*shape, 1)


def _all_nan(flat: Tensor, count: int) -> Tensor:
    nans: Tensor = asarray((flat.sum(-1) + float("nan"))[..., None])
    return broadcast_to(nans, (*nans.shape[:-1], count))


def _masked(m: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """Missing elements are left out, as NaN is by `nanquantile`; missing where nothing is specified."""
    filled = m.mask_nan().filled(float("nan"))
    quantiles = _quantile(filled, q, axis, method, keepdims, "quantile", True)
    return namespace().as_masked_tensor(quantiles, ~isnan(quantiles))


def _hundredths(q: Any) -> Any:
    return float(q) / 100 if type(q) in (int, float) else np.asarray(q.to_numpy() if isinstance(q, Tensor) else q) / 100


def _masked_percentile(m: Any, /, q: Any, **options: Any) -> Any:
    return _masked(m, _hundredths(q), **options)


@operation(
    method=True,
    masked=_masked,
    torch="quantile(q, dim: axis = None, keepdim: keepdims = False, *, interpolation: method = 'linear')",
    dtype="float",
    fill="reduced",
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
    Tensor, sparse or dense as that of `sum`, the dimensions of `q` in front: float64, or the dtype of `x` where it is
    floating and `q` a float, or the method takes elements as they are; NaN where an element is NaN, or there is none

    Cost: O((nse + size of the result) log of the shares); `x` is not made dense. Gradients go to the elements taken.
    Raises ValueError for `q` beyond 0 and 1, DTypeError for bool and complex numbers.

    See also: median, percentile, nanquantile.

    Examples
    --------
    >>> ow.quantile(ow.asarray([0, 4.0, 9.0], format="coo"), [0.5, 1.0]).to_numpy()
    array([4., 9.])
    """
    return _quantile(x, q, axis, method, keepdims, "quantile")


@operation(method=True, masked=_masked_percentile, dtype="float", fill="reduced")
def percentile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """The elements below which `q` percent of those over `axis` lie: `quantile` of `q / 100`, with its arguments.

    Cost: O(nse log of the shares).
    See also: quantile, median.

    Examples
    --------
    >>> float(ow.percentile(ow.asarray([0, 4.0, 9.0], format="coo"), 50))
    4.0
    """
    return _quantile(x, _hundredths(q), axis, method, keepdims, "percentile")


@operation(
    method=True,
    masked=_masked,
    torch="nanquantile(q, dim: axis = None, keepdim: keepdims = False, *, interpolation: method = 'linear')",
    dtype="float",
    fill="reduced",
)
def nanquantile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """The elements below which the shares `q` of those that are not NaN lie: `quantile` of these.

    NaN, with NumPy's warning, where all are NaN.

    Cost: O(nse log of the shares).
    See also: quantile.

    Examples
    --------
    >>> float(ow.nanquantile(ow.asarray([0, np.nan, 2.0], format="coo"), 0.5))
    1.0
    """
    return _quantile(x, q, axis, method, keepdims, "nanquantile", True)


@operation(method=True, masked=_masked_percentile, dtype="float", fill="reduced")
def nanpercentile(x: Any, /, q: Any, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
    """The elements below which `q` percent of those that are not NaN lie: `nanquantile` of `q / 100`.

    Cost: O(nse log of the shares).
    See also: percentile, nanquantile.

    Examples
    --------
    >>> float(ow.nanpercentile(ow.asarray([0, np.nan, 2.0], format="coo"), 50))
    1.0
    """
    return _quantile(x, _hundredths(q), axis, method, keepdims, "nanpercentile", True)


@operation(
    method=True,
    masked=lambda m, /, *, axis=None, keepdims=False: m.mask_nan().median(axis, keepdims=keepdims),
    shape="reduced",
    dtype="float",
    fill="reduced",
)
def nanmedian(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The median over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Cost: O(nse log of the shares).
    See also: median.

    Examples
    --------
    >>> float(ow.nanmedian(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0
    """
    t = asarray(x.compute() if is_lazy(x) else x)
    if isdtype(t.dtype, "bool"):
        t = t.astype(np.float64)
    return _quantile(t, 0.5, axis, _MEDIAN, keepdims, "nanmedian", True)

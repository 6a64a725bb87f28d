"""NumPy's `nan` reductions: a tensor -> the reduction of its elements that are not NaN, unspecified ones included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...caller import warn
from ...errors import ShapeError
from ...runtime.operation import operation
from ...runtime.outer_ranges import ranges_of
from ...tensor.dtypes import isdtype
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axes_of
from ..elementwise.functions import divide, isnan, logical_not
from ..elementwise.selection import where
from ..manipulation.shaping import reshape
from ..stored_fibres import in_kept_format
from .by_ranges import by_ranges, folds_ranges, merged_moments, parts_of
from .moments import correction_of
from .roots import root_of
from .search import arg_reduce
from .statistics import (
    all,
    argmax,
    argmin,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)  # fmt: skip

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]

Axis = int | Sequence[int] | None


def _without_nan(method: str) -> Callable[..., Any]:
    """A masked tensor's method of that name, where its NaNs are missing."""
    return lambda m, /, **options: getattr(m.mask_nan(), method)(**options)


def _has_nan(t: Tensor) -> Any:
    return isdtype(t.dtype, ("real floating", "complex floating"))


def _replace_nan(x: Any, value: Any) -> Tensor:
    """`x` with `value` for NaN, in the structure of `x` but for the fill value."""
    t = as_tensor(x)
    result: Tensor = where(isnan(t), value, t) if _has_nan(t) else t
    return result


def _reduced_size(t: Tensor, axis: Axis) -> int:
    """How many elements a reduction over `axis` takes in."""
    out = 1
    for d in range(t.ndim) if axis is None else axes_of(axis, t.ndim, "nan reduction"):
        out *= t.shape[d]
    return out


def _count_not_nan(t: Tensor, axis: Axis, keepdims: bool) -> Any:
    """How many elements over `axis` are not NaN."""
    return by_ranges(
        t, axis, keepdims, np.add,
        lambda part: count_nonzero(logical_not(isnan(part)), axis=axis, keepdims=keepdims),
    )  # fmt: skip


@operation(
    method=True,
    torch="nansum(dim: axis = None, keepdim: keepdims = False, *, dtype = None)",
    masked=_without_nan("sum"),
    shape="reduced",
    dtype="accumulated",
    fill="reduced",
)
def nansum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum over `axis` of the elements that are not NaN; 0 where none is.

    Returns a Tensor as `sum` does: integers and bool are summed in 64 bits.

    Cost: O(nse).
    See also: sum.

    Examples
    --------
    >>> float(ow.nansum(ow.asarray([0, np.nan, 2.0], format="coo")))
    2.0
    """
    return by_ranges(
        as_tensor(x), axis, keepdims, np.add,
        lambda part: sum(_replace_nan(part, 0), axis=axis, dtype=dtype, keepdims=keepdims),
    )  # fmt: skip


@operation(
    method=True,
    masked=_without_nan("prod"),
    shape="reduced",
    dtype="accumulated",
    fill="reduced",
)
def nanprod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product over `axis` of the elements that are not NaN; 1 where none is.

    Cost: O(nse).
    See also: prod.

    Examples
    --------
    >>> float(ow.nanprod(ow.asarray([3.0, np.nan, 2.0], format="coo")))
    6.0
    """
    return by_ranges(
        as_tensor(x), axis, keepdims, np.multiply,
        lambda part: prod(_replace_nan(part, 1), axis=axis, dtype=dtype, keepdims=keepdims),
    )  # fmt: skip


@operation(
    method=True,
    torch="nanmean(dim: axis = None, keepdim: keepdims = False, *, dtype = None)",
    masked=lambda m, *, dtype=None, **options: (m if dtype is None else m.astype(dtype)).mask_nan().mean(**options),
    shape="reduced",
    dtype="float",
    fill="reduced",
)
def nanmean(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Cost: O(nse).
    See also: mean.

    Examples
    --------
    >>> float(ow.nanmean(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0
    """
    t = as_tensor(x)
    if not _has_nan(t):
        return mean(t, axis=axis, dtype=dtype, keepdims=keepdims)
    total = nansum(t, axis=axis, dtype=dtype, keepdims=keepdims)
    return _quotient(total, _count_not_nan(t, axis, keepdims))


def _quotient(total: Any, count: Any) -> Any:
    return divide(total, count.astype(total.dtype))


def _extreme(x: Any, axis: Axis, keepdims: bool, largest: bool) -> Any:
    t = as_tensor(x)
    extreme = max if largest else min
    if not isdtype(t.dtype, "real floating"):
        return extreme(t, axis=axis, keepdims=keepdims)
    least = float("-inf") if largest else float("inf")
    extreme_values = by_ranges(
        t, axis, keepdims, np.maximum if largest else np.minimum,
        lambda part: extreme(_replace_nan(part, least), axis=axis, keepdims=keepdims),
    )  # fmt: skip
    all_nan = _count_not_nan(t, axis, keepdims) == 0
    if bool(all_nan.any()):
        warn("All-NaN slice encountered", RuntimeWarning)
        return where(all_nan, float("nan"), extreme_values)
    return extreme_values


@operation(
    method=True,
    masked=_without_nan("max"),
    shape="reduced",
    dtype="same",
    fill="reduced",
)
def nanmax(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The largest over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Raises ShapeError over an extent of 0.

    Cost: O(nse).
    See also: max.

    Examples
    --------
    >>> float(ow.nanmax(ow.asarray([0, np.nan, 2.0], format="coo")))
    2.0
    """
    return _extreme(x, axis, keepdims, True)


@operation(
    method=True,
    masked=_without_nan("min"),
    shape="reduced",
    dtype="same",
    fill="reduced",
)
def nanmin(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The least over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Raises ShapeError over an extent of 0.

    Cost: O(nse).
    See also: min.

    Examples
    --------
    >>> float(ow.nanmin(ow.asarray([0, np.nan, 2.0], format="coo")))
    0.0
    """
    return _extreme(x, axis, keepdims, False)


@operation(
    method=True,
    masked=_without_nan("var"),
    shape="reduced",
    dtype="real float",
    fill="reduced",
)
def nanvar(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The variance over `axis` of the elements that are not NaN: their squared distances from their mean, summed and
    divided by their number less `correction`; NaN where that is not positive. `ddof` and `dtype` as of `var`.

    Cost: O(nse).
    See also: var, nanstd.

    Examples
    --------
    >>> float(ow.nanvar(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0
    """
    t = as_tensor(x) if dtype is None else as_tensor(x).astype(dtype)
    correction = correction_of("nanvar", correction, ddof)
    if not _has_nan(t):
        return var(t, axis=axis, correction=correction, keepdims=keepdims)
    if ranges_of(t._storage) is not None:
        return _nanvar_by_ranges(t, axis, correction, keepdims)
    center = nanmean(t, axis=axis, keepdims=True)
    variance = var(where(isnan(t), center, t), axis=axis, keepdims=keepdims)
    count = _count_not_nan(t, axis, keepdims).astype(variance.dtype)
    divisor = count - correction
    return where(
        divisor > 0, variance * (float(_reduced_size(t, axis)) / where(divisor > 0, divisor, 1.0)), float("nan")
    )


def _nanvar_by_ranges(t: Tensor, axis: Axis, correction: float, keepdims: bool) -> Tensor:
    """`nanvar` of a large tensor, whose ranges' counts, means and squared distances are merged."""
    axes = tuple(range(t.ndim)) if axis is None else axes_of(axis, t.ndim, "nanvar")
    if not folds_ranges(t, axes):
        return by_ranges(
            t, axis, keepdims, None, lambda part: nanvar(part, axis=axis, correction=correction, keepdims=keepdims)
        )
    is_complex = isdtype(t.dtype, "complex floating")

    def moments(part: Tensor) -> tuple[Any, Any, Any]:
        part = part.astype(np.complex128 if is_complex else np.float64, copy=False)
        counts = [_count_not_nan(part, axis, keep).astype(np.float64) for keep in (True, keepdims)]
        totals = [sum(_replace_nan(part, 0), axis=axis, keepdims=keep) for keep in (True, keepdims)]
        center, mean = (total / np.maximum(count, 1) for total, count in zip(totals, counts, strict=True))
        squares = var(where(isnan(part), center, part), axis=axis, keepdims=keepdims) * float(_reduced_size(part, axis))
        return tuple(_array_of(x) for x in (counts[1], mean, squares))

    count, _, squares = merged_moments(map(moments, parts_of(t)))
    divisor = count - correction
    variance = where(divisor > 0, squares / where(divisor > 0, divisor, 1.0), float("nan"))
    dtype = {"float32": np.float32, "complex64": np.float32, "float16": np.float16}.get(str(t.dtype), np.float64)
    result: Tensor = as_tensor(variance).astype(dtype, copy=False)
    return in_kept_format(result, t, axes, keepdims)


def _array_of(x: Any) -> Any:
    """A dense result as an array."""
    return x.to_numpy() if isinstance(x, Tensor) and x.format.is_dense else x


@operation(
    method=True,
    masked=_without_nan("std"),
    shape="reduced",
    dtype="real float",
    fill="reduced",
)
def nanstd(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation over `axis` of the elements that are not NaN: the square root of `nanvar`.

    Cost: O(nse).
    See also: std, nanvar.

    Examples
    --------
    >>> float(ow.nanstd(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0
    """
    t = as_tensor(x) if dtype is None else as_tensor(x).astype(dtype)
    correction = correction_of("nanstd", correction, ddof)
    if not _has_nan(t):
        return std(t, axis=axis, correction=correction, keepdims=keepdims)
    return root_of(nanvar(t, axis=axis, correction=correction, keepdims=keepdims))


def _all_nan(op: str) -> ShapeError:
    return ShapeError(f"nanarg{op}: All-NaN slice encountered\n  help: nanmax gives NaN there")


def _arg_extreme(x: Any, axis: int | None, keepdims: bool, largest: bool) -> Any:
    t = as_tensor(x)
    arg = argmax if largest else argmin
    if not isdtype(t.dtype, "real floating"):
        return arg(t, axis=axis, keepdims=keepdims)
    if ranges_of(t._storage) is not None:
        if bool((_count_not_nan(t, axis, False) == 0).any()):
            raise _all_nan("max" if largest else "min")
        return arg_reduce("max" if largest else "min", t, axis, keepdims, skip_nan=True)
    if bool(all(isnan(t), axis=axis).any()):
        raise _all_nan("max" if largest else "min")
    return arg(_replace_nan(t, float("-inf") if largest else float("inf")), axis=axis, keepdims=keepdims)


@operation(
    method=True,
    masked=_without_nan("argmax"),
    shape="reduced",
    dtype="int64",
    fill="reduced",
)
def nanargmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the largest over `axis` of the elements that are not NaN is first, int64.

    Raises ShapeError, a ValueError as NumPy's, where none is.

    Cost: O(nse).
    See also: argmax, nanmax.

    Examples
    --------
    >>> int(ow.nanargmax(ow.asarray([0, np.nan, 2.0], format="coo")))
    2
    """
    return _arg_extreme(x, axis, keepdims, True)


@operation(
    method=True,
    masked=_without_nan("argmin"),
    shape="reduced",
    dtype="int64",
    fill="reduced",
)
def nanargmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the least over `axis` of the elements that are not NaN is first, int64.

    Raises ShapeError, a ValueError as NumPy's, where none is.

    Cost: O(nse).
    See also: argmin, nanmin.

    Examples
    --------
    >>> int(ow.nanargmin(ow.asarray([0, np.nan, -2.0], format="coo")))
    2
    """
    return _arg_extreme(x, axis, keepdims, False)


def _cumulative(function: Any, x: Any, neutral: int, axis: int | None, dtype: Any) -> Any:
    t = _replace_nan(x, neutral)
    if axis is None and t.ndim != 1:
        t, axis = reshape(t, (-1,)), 0
    return function(t, axis=axis, dtype=dtype)


@operation(
    method=True,
    masked=_without_nan("cumulative_sum"),
    dtype="accumulated",
    fill="dense",
)
def nancumsum(x: Any, /, *, axis: int | None = None, dtype: Any = None) -> Any:
    """The running sum along `axis`, of all elements without, NaN counting as 0: a dense Tensor.

    Cost: O(size): the result is dense.
    See also: cumulative_sum, nansum.

    Examples
    --------
    >>> ow.nancumsum(ow.asarray([2.0, np.nan, 3.0])).to_numpy()
    array([2., 2., 5.])
    """
    return _cumulative(cumulative_sum, x, 0, axis, dtype)


@operation(
    method=True,
    masked=_without_nan("cumulative_prod"),
    dtype="accumulated",
    fill="dense",
)
def nancumprod(x: Any, /, *, axis: int | None = None, dtype: Any = None) -> Any:
    """The running product along `axis`, of all elements without, NaN counting as 1: a dense Tensor.

    Cost: O(size): the result is dense.
    See also: cumulative_prod, nanprod.

    Examples
    --------
    >>> ow.nancumprod(ow.asarray([2.0, np.nan, 3.0])).to_numpy()
    array([2., 2., 6.])
    """
    return _cumulative(cumulative_prod, x, 1, axis, dtype)

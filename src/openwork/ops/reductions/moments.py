"""A tensor and axes -> variance and standard deviation, in two passes: the mean, then squared distances from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.index import Access, Apply, Assignment
from ...ir.types import COMPLEX, FLOATS
from ...reals import real
from ...runtime.contract import contract
from ...runtime.overrides import answering
from ...runtime.strided import strided
from ...storage.buffers import Array, cast, is_torch, numpy_dtype
from ...tensor.tensor import Tensor
from ..elementwise.maps import unary
from ..stored_fibres import in_kept_format, reduced_fibres
from .by_ranges import folds_ranges, merged_moments, parts_of
from .folds import accumulation_type, axes_of, fold, reduce, reduced_tensor, statement_names, unspecified_counts
from .roots import root

__all__ = ["correction_of", "std", "var"]


@answering
def var(t: Tensor, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over `axis`.

    Parameters
    ----------
    t : Tensor of any format and fill value
    axis : an axis, several, or None for all
    correction : what the number of elements is reduced by before dividing; 1 for that of a sample
    keepdims : keep the reduced dimensions with extent 1

    Returns
    -------
    Tensor, sparse or dense as that of `reduce`; integers give float64, complex numbers the real variance of their
    distances from the mean

    Guarantees: computed in float64 and rounded once; never negative; infinite or NaN where no elements are left.
    Cost: O(nse + size of the result), three walks.
    """
    return _moment(t, axis, correction, keepdims, _itself)


@answering
def std(t: Tensor, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over `axis`: the square root of `var`, rounded once; its gradient is 0 where it is 0."""
    return _moment(t, axis, correction, keepdims, root)


def correction_of(operation: str, correction: float, ddof: float | None) -> float:
    """What the number of elements is reduced by, under its own name or NumPy's. Raises DTypeError for no number."""
    return real(correction, operation, "correction") if ddof is None else real(ddof, operation, "ddof")


def _itself(variance: Any) -> Any:
    return variance


def _moment(t: Tensor, axis: Any, correction: float, keepdims: bool, of_variance: Callable[[Any], Any]) -> Tensor:
    axes = axes_of(axis, t.ndim, lists=is_torch(t.values))
    if len(axes) < t.ndim - 1 and folds_ranges(t, axes):
        return _of_ranges(t, axes, correction, keepdims, of_variance)
    sparse = reduced_fibres(
        t, axes, keepdims, lambda rows, over: _moment(rows, over, correction, False, of_variance),
        key=("moment", of_variance, correction),
    )  # fmt: skip
    if sparse is not None:
        return sparse
    return reduced_tensor(_to_result_type(t, of_variance(_variance(t, axes, correction))), t, axes, keepdims)


def _of_ranges(
    t: Tensor, axes: tuple[int, ...], correction: float, keepdims: bool, of_variance: Callable[[Any], Any]
) -> Tensor:
    """`_moment` of a large tensor whose outermost dimension is reduced, where two dimensions or more stay."""
    wide = numpy_dtype(accumulation_type(t._storage.scalar))

    def moments(part: Tensor) -> tuple[Any, Any, Any]:
        part, n = part.astype(wide), math.prod(part.shape[a] for a in axes)
        return n, reduce("mean", part, axes, keepdims), var(part, axes, 0.0, keepdims) * n

    count, _, squares = merged_moments(map(moments, parts_of(t)))
    variance = squares / (count - correction) if count > correction else squares * math.nan
    out = in_kept_format(variance, t, axes, keepdims)._storage
    values, fill = (_to_result_type(t, of_variance(np.asarray(x))) for x in (out.values, out.fill_value))
    return Tensor._from_storage(out.with_values(values, fill.item()))


def _to_result_type(t: Tensor, result: Array) -> Array:
    scalar = t._storage.scalar
    real = {"c64": "f32", "c128": "f64"}.get(scalar, scalar)
    return cast(result if is_torch(result) else np.asarray(result), real if real in FLOATS else "f64")


def _variance(t: Tensor, axes: tuple[int, ...], correction: float) -> Array:
    if t._storage.scalar in COMPLEX:
        return _variance(unary("real", t), axes, correction) + _variance(unary("imag", t), axes, correction)
    if not t.format.is_unique:
        t = t.coalesce()
    s = t._storage
    count = math.prod(t.shape[a] for a in axes)
    with np.errstate(all="ignore"):
        mean = fold("sum", t, axes, "f64") / (count or math.nan)
        mean = mean if is_torch(mean) else np.asarray(mean)
        total = contract(_squared_distances(t.ndim, axes), {"A": s, "M": strided(mean)}, "f64", s.values)
        absent = unspecified_counts(s, axes)
        if absent is not None:
            of_fill = (
                cast(absent if is_torch(absent) else np.asarray(absent), "f64") * (mean - float(s.fill_value)) ** 2
            )
            total = total + (of_fill if is_torch(of_fill) else np.where(absent > 0, of_fill, 0.0))
        divisor = count - correction
        return total / divisor if divisor > 0 else total * math.nan if count == 0 else total / np.float64(0)


@lru_cache(maxsize=256)
def _squared_distances(ndim: int, axes: tuple[int, ...]) -> Assignment:
    names, kept_indices = statement_names(ndim, axes)
    distance = Apply("sub", (Access("A", names), Access("M", kept_indices)))
    return Assignment(Access("s", kept_indices), "+=", Apply("square", (distance,)))

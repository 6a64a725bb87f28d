"""A tensor and an axis -> order statistics: the k largest or smallest elements with their coordinates, and medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ...compiler.conversion.level_runs import unbatched
from ...errors import ShapeError
from ...integers import integer
from ...provided import provided
from ...runtime.operation import operation
from ...storage.buffers import as_array
from ...tensor.dtypes import isdtype
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axes_of
from ..elementwise.functions import isnan
from ..elementwise.selection import where
from ..manipulation.shaping import expand_dims, permute_dims, reshape
from ..result_format import to_result_format
from ..selection import has_rows, rows_of, stored_rows
from ..sorting import comparable_operand
from ..stored_fibres import reduced_fibres
from .by_ranges import by_ranges, keeps_ranges

__all__ = ["TopK", "median", "topk"]


T = TypeVar("T")


class TopK(NamedTuple, Generic[T]):
    """The largest elements along an axis, and their coordinates: Tensors, or masked tensors."""

    values: T
    indices: T


@operation(method=True, masked=provided("masked topk"))
def topk(x: Any, k: int, /, *, axis: int = -1, largest: bool = True) -> TopK[Tensor]:
    """The `k` largest elements of every fibre along `axis`, in order, and where they are.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format and fill value, real
    k : how many, at most the extent of `axis`
    axis : along which elements are compared
    largest : False for the smallest

    Returns
    -------
    values : Tensor, dtype of `x`, the shape of `x` with `k` for the extent of `axis`
    indices : dense Tensor, int64, same shape: `take_along_axis(x, indices, axis=axis)` is values

    Guarantees: equal elements are in the order of their coordinates, the unspecified ones among them; NaN is the
    largest value. Cost: O(nse + size of the result * log k); `x` is not made dense. Gradients go to the elements taken.
    Raises ShapeError where k is negative or beyond the extent, DTypeError for complex numbers.

    See also: sort, argmax.

    Examples
    --------
    >>> values, indices = ow.topk(ow.asarray([0, 5, 7, 1], format="coo"), 2)
    >>> values.to_numpy(), indices.to_numpy()
    (array([7, 5]), array([2, 1]))
    """
    t, d = comparable_operand(x, axis, "topk")
    k = integer(k, "topk", "k")
    if not 0 <= k <= t.shape[d]:
        raise ShapeError(f"topk: k = {k} of an extent of {t.shape[d]}\n  help: k is between 0 and the extent")
    rows, order = rows_of(t, d)
    places, found = rows.first(k, largest)
    shape = (*(t.shape[a] for a in order[:-1]), k)
    back = np.argsort(order).tolist()
    indices = np.ascontiguousarray(places.reshape(shape).transpose(back))
    coordinates = Tensor._from_dense(as_array(indices, like=t.values))
    if rows.pos is None:
        values = Tensor._from_dense(rows.gathered(found).reshape(shape)).transpose(back)
        return TopK(values.asformat(unbatched(t.format)), coordinates)
    stored = stored_rows(rows, found, shape)
    return TopK(to_result_format(stored.permute(back), t.format), coordinates)


@operation(
    method=True,
    masked=provided("masked median"),
    shape="reduced",
    dtype="float",
    fill="reduced",
)
def median(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Any:
    """The element in the middle of those over `axis` in order, the mean of two for an even number.

    Parameters
    ----------
    x : Tensor, any format and fill value, real
    axis : one or several axes; all elements without
    keepdims : leave extents of 1 where axes were

    Returns
    -------
    Tensor, float64 for integers and bool, else the dtype of `x`; NaN where an element is NaN, or there is none

    Cost: O(nse); `x` is not made dense. Gradients go to the elements in the middle.
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: quantile, nanmedian, mean.

    Examples
    --------
    >>> float(ow.median(ow.asarray([0, 4.0, 9.0], format="coo")))
    4.0
    """
    t = as_tensor(x)
    axes = tuple(range(t.ndim)) if axis is None else axes_of(axis, t.ndim, "median")
    if keeps_ranges(t, axes) and not has_rows(t, axes):
        return by_ranges(t, axes, keepdims, None, lambda part: median(part, axis=axes, keepdims=keepdims))
    if not isdtype(t.dtype, ("real floating", "complex floating")):
        t = t.astype(np.float64 if t._storage.library == "numpy" else "float64")
    sparse = reduced_fibres(t, axes, keepdims, lambda rows, over: median(rows, axis=over))
    if sparse is not None:
        return sparse
    kept_dims, n = [d for d in range(t.ndim) if d not in axes], math.prod(t.shape[d] for d in axes)
    flat = (
        reshape(permute_dims(t, (*kept_dims, *axes)), (*(t.shape[d] for d in kept_dims), n))
        if len(axes) != 1
        else permute_dims(t, (*kept_dims, *axes))
    )
    if n:
        rows, _ = rows_of(comparable_operand(flat, -1, "median")[0], flat.ndim - 1)
        ranks = [(n - 1) // 2, n // 2][: 2 - n % 2]
        _, found, nans = rows.at(ranks)
        if has_nan := bool(nans.any()):
            found = np.concatenate([found, rows.at([n - 1])[1]], axis=1)
        elements = rows.gathered(found).reshape(*flat.shape[:-1], found.shape[1])
        low, high, largest = (Tensor._from_dense(elements[..., k]) for k in (0, 1 - n % 2, -1))
        medians = low if n % 2 else (low + high) / 2
        if has_nan:
            medians = where(isnan(largest), largest, medians)
    else:
        medians = flat.sum(-1) + float("nan")
    if keepdims:
        for d in sorted(axes):
            medians = expand_dims(medians, axis=d)
    return medians.asformat("dense")

"""A tensor and an axis -> order statistics: the k largest or smallest elements with their coordinates, and medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ...errors import ShapeError
from ...integers import integer
from ...late import late
from ...runtime.operation import operation
from ...storage.buffers import as_array, to_numpy
from ...tensor.dtypes import isdtype
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axes_of
from ..elementwise.functions import isnan
from ..elementwise.selection import where
from ..indexing.keys import Ints
from ..indexing.taking import take_along_axis
from ..manipulation.shaping import expand_dims, permute_dims, reshape
from ..sorting import Fibres, argsort, comparable_operand, sort
from ..stored_fibres import reduced_fibres
from .by_ranges import by_ranges, keeps_ranges

__all__ = ["TopK", "median", "topk"]


T = TypeVar("T")


class TopK(NamedTuple, Generic[T]):
    """The largest elements along an axis, and their coordinates: Tensors, or masked tensors."""

    values: T
    indices: T


@operation(method=True, masked=late("masked.order", "topk"))
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
    largest value. Cost: O(nse log nse + size of the result); `x` is not made dense. Gradients go to the elements taken.
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
    if t.format.is_dense:
        order = argsort(t, axis=d, descending=largest)
        indices = order[(*(slice(None),) * d, slice(0, k))]
    else:
        indices = _topk_coordinates(t, d, k, largest)
    return TopK(take_along_axis(t, indices, axis=d), indices)


def _topk_coordinates(t: Tensor, d: int, k: int, largest: bool) -> Tensor:
    """Coordinates along `d` of the first `k` elements of each fibre of a sparse tensor, in order."""
    fibres = Fibres(t, d)
    order, new_crd, differs_in_order = fibres.sorted(largest)
    shape = tuple(t.shape[a] for a in fibres.order[:-1])
    fibre_numbers, crd = fibres.rows(), to_numpy(fibres.storage.crd[-1]).astype(np.int64)
    out = np.full((int(np.prod(shape, dtype=np.int64)), k), -1, np.int64)
    selected = differs_in_order & (new_crd < k)
    out[fibre_numbers[order][selected], new_crd[selected]] = crd[order][selected]
    differs = np.empty(len(order), bool)
    differs[order] = differs_in_order
    _fill_in_unspecified(out, fibre_numbers[differs], crd[differs])
    restored = out.reshape(*shape, k).transpose(np.argsort(fibres.order))
    return Tensor._from_dense(as_array(np.ascontiguousarray(restored), like=t.values))


def _fill_in_unspecified(out: Ints, rows: Ints, crd: Ints) -> None:
    """Put, where `out` has -1, the coordinates in ascending order at which no element differs from the fill value.

    The m-th of them in a fibre whose elements are at c_0 < c_1 < ... is m + #{i : c_i - i <= m}.
    """
    open_rows, open_places = np.nonzero(out < 0)
    if not len(open_rows):
        return
    first = np.argmax(out < 0, axis=1)
    rank = open_places - first[open_rows]
    starts = np.searchsorted(rows, np.arange(len(out) + 1))
    gaps = crd - (np.arange(len(crd)) - starts[rows])
    unspecified = np.empty(len(open_rows), np.int64)
    bounds = np.searchsorted(open_rows, np.arange(len(out) + 1))
    for row in np.unique(open_rows):
        lo, hi = bounds[row], bounds[row + 1]
        row_gaps = gaps[starts[row] : starts[row + 1]]
        unspecified[lo:hi] = rank[lo:hi] + np.searchsorted(row_gaps, rank[lo:hi], "right")
    out[open_rows, open_places] = unspecified


@operation(
    method=True,
    masked=late("masked.order", "median"),
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

    Cost: O(nse log nse); `x` is not made dense. Gradients go to the elements in the middle.
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: quantile, nanmedian, mean.

    Examples
    --------
    >>> float(ow.median(ow.asarray([0, 4.0, 9.0], format="coo")))
    4.0
    """
    t = as_tensor(x)
    axes = tuple(range(t.ndim)) if axis is None else axes_of(axis, t.ndim, "median")
    if keeps_ranges(t, axes):
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
        ascending = sort(flat)
        low, high = ascending[..., (n - 1) // 2], ascending[..., n // 2]
        middle_values = low if n % 2 else (low + high) / 2
        largest = ascending[..., n - 1]
        medians = where(isnan(largest), largest, middle_values)
    else:
        medians = flat.sum(-1) + float("nan")
    if keepdims:
        for d in sorted(axes):
            medians = expand_dims(medians, axis=d)
    return medians.asformat("dense")

"""torch's functions that sort, search and count: extremes, order statistics, unique, histograms, running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...errors import ShapeError, UnsupportedError
from ...ops import sets
from ...ops import sorting as ordering
from ...ops.elementwise.maps import elementwise
from ...ops.indexing.taking import take_along_axis
from ...ops.manipulation import shaping
from ...ops.manipulation.differences import diff as differences
from ...ops.reductions import folds, order_statistics
from ...ops.reductions.search import arg_reduce, cumulative
from ...ops.selection import rows_of
from ...tensor.tensor import Tensor
from ..gradients.nary import apply_dense, apply_nary
from ..gradients.pointwise import with_gradient_of
from .registry import FUNCTIONS, torch_function
from .shapes import narrow

__all__ = ["topk"]


def _dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, Tensor) else x


def _vector(t: Tensor) -> Tensor:
    return t if t.ndim else shaping.reshape(t, (1,))


def extreme(op: str) -> Callable[..., Any]:
    """torch's `max` and `min`: of all elements, along a dimension with indices, or elementwise of two tensors."""

    def function(t: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        dim = dim if other is None else other
        if isinstance(dim, Tensor | torch.Tensor) or not isinstance(t, Tensor):
            return apply_nary(torch.maximum if op == "max" else torch.minimum, t, dim)
        if dim is None:
            return folds.reduce(op, t)
        values, indices = _extreme_along(op, t, dim, keepdim)
        kind: Any = torch.return_types.max if op == "max" else torch.return_types.min
        return kind([values, indices])

    return function


def _extreme_along(op: str, t: Tensor, dim: int, keepdim: bool) -> list[Any]:
    vector = _vector(t)
    indices = arg_reduce(op, vector.detach(), dim, True)
    values = take_along_axis(vector, _dense(indices), axis=dim)
    pair = [_dense(values), _dense(indices)]
    if not t.ndim:
        return [x.reshape(()) for x in pair]
    return pair if keepdim else [x.squeeze(dim) for x in pair]


def arg_extreme(op: str) -> Callable[..., Tensor]:
    """`argmax` and `argmin`."""

    def function(t: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        if not t.ndim:
            return Tensor._from_dense(torch.zeros((), dtype=torch.int64))
        return arg_reduce(op, t.detach(), dim, keepdim)

    return function


@torch_function("aminmax")
def aminmax(t: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The least and the largest elements."""
    axes = None if dim is None or not t.ndim else dim
    pair = [folds.reduce(op, t, axes, keepdim and t.ndim > 0) for op in ("min", "max")]
    kind: Any = torch.return_types.aminmax
    return kind(pair)


@torch_function("sort")
def sort(t: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """The elements of every fibre in order, and where they were."""
    vector = _vector(t)
    values = ordering.sort(vector, axis=dim, descending=descending)
    indices = ordering.argsort(vector.detach(), axis=dim, descending=descending)
    kind: Any = torch.return_types.sort
    return kind([shaping.reshape(x, t.shape) for x in (values, indices)])


@torch_function("argsort")
def argsort(t: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Where the elements of every fibre are, in order."""
    return shaping.reshape(ordering.argsort(_vector(t).detach(), axis=dim, descending=descending), t.shape)


@torch_function("topk")
def topk(t: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest, or least, elements of every fibre, and where they are."""
    vector = _vector(t)
    if k > vector.shape[dim]:
        raise ShapeError(f"topk: k={k} of an extent of {vector.shape[dim]}\n  help: give fewer")
    pair = list(order_statistics.topk(vector, k, axis=dim, largest=largest))
    kind: Any = torch.return_types.topk
    return kind(pair if t.ndim else [shaping.reshape(x, (k,) if k != 1 else ()) for x in pair])


@torch_function("kthvalue")
def kthvalue(t: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th least element of every fibre, and where it is."""
    kind: Any = torch.return_types.kthvalue
    return kind(_kth_smallest(t, k, dim, keepdim))


def _kth_smallest(t: Tensor, k: int, dim: int, keepdim: bool) -> list[Any]:
    vector = _vector(t)
    if not 1 <= k <= vector.shape[dim]:
        raise ShapeError(f"kthvalue: k={k} of an extent of {vector.shape[dim]}\n  help: give 1 to that")
    pair = _at_ranks(vector, dim, np.full(1, k - 1))
    if not t.ndim:
        return [x.reshape(()) for x in pair]
    return pair if keepdim else [x.squeeze(dim) for x in pair]


def _at_ranks(t: Tensor, dim: int, ranks: Any) -> list[torch.Tensor]:
    """The elements at ranks of the fibres along a dimension, and where they are: m for each, dense.

    ranks : (m,), or for each fibre, in the order of the other dimensions, (fibres, m)
    """
    t, d = ordering.comparable_operand(t, dim, "kthvalue")
    rows, order = rows_of(t, d)
    places, found, _ = rows.at(ranks)
    shape = (*(t.shape[a] for a in order[:-1]), places.shape[-1])
    pair = (rows.gathered(found), torch.from_numpy(places))
    return [x.reshape(shape).movedim(-1, d) for x in pair]


@torch_function("median")
def median(t: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower median of all elements, or of every fibre, with its place; a NaN is the median of what has one."""
    return _median(t, dim, keepdim, torch.return_types.median, False)


@torch_function("nanmedian")
def nanmedian(t: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where there is none."""
    return _median(t, dim, keepdim, torch.return_types.nanmedian, True)


def _median(t: Tensor, dim: Any, keepdim: bool, kind: Any, skip: bool) -> Any:
    if dim is None:
        if not t.size:
            return Tensor._from_dense(torch.full((), torch.nan, dtype=t.dtype))
        value = _median(shaping.reshape(t.detach(), (-1,)), 0, False, kind, skip).values
        return _share_gradient(t, value) if t.dtype.is_floating_point else Tensor._from_dense(value)
    vector = _vector(t)
    extent = vector.shape[dim]
    missing = apply_nary(torch.isnan, vector.detach())
    if not extent or not bool(folds.reduce("any", missing)):
        return kind(_kth_smallest(t, (extent + 1) // 2, dim, keepdim))
    numbers = extent - _dense(folds.reduce("sum", missing, axis=dim))  # sorted in front of every NaN
    middle = ((numbers - 1) // 2).clamp(min=0)
    ranks = middle if skip else torch.where(numbers < extent, numbers, middle)
    pair = _at_ranks(vector, dim, ranks.reshape(-1, 1).numpy())
    if not t.ndim:
        return kind([x.reshape(()) for x in pair])
    return kind(pair if keepdim else [x.squeeze(dim) for x in pair])


def _share_gradient(t: Tensor, value: torch.Tensor) -> Tensor:
    """A value that elements have, with its gradient in equal parts to all elements that have it."""
    hits = apply_nary(lambda v: ((v == value) | (v.isnan() & value.isnan())).to(v.dtype), t.detach())
    parts = elementwise("mul", t, elementwise("div", hits, hits.sum().to_dense()))
    return Tensor._from_dense(with_gradient_of(value, parts.sum().to_dense()))


@torch_function("quantile")
def quantile(
    t: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:  # fmt: skip
    """The q-quantiles of all elements or along a dimension: places in the sorted fibres, and what lies between."""
    return _quantile(t, q, dim, keepdim, interpolation, False)


@torch_function("nanquantile")
def nanquantile(
    t: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:  # fmt: skip
    """`quantile` of the elements that are not NaN, which are sorted in front; NaN where there is none."""
    return _quantile(t, q, dim, keepdim, interpolation, True)


def _quantile(t: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool) -> Any:
    axis = -1 if dim is None else dim
    vector = shaping.reshape(t, (-1,)) if dim is None else _vector(t)
    missing = apply_nary(torch.isnan, vector.detach())
    has_missing = bool(folds.reduce("any", missing))
    if has_missing and not skip:
        raise UnsupportedError("quantile of NaN\n  supported: numbers\n  help: nan_to_num first, or nanquantile")
    d = axis % vector.ndim
    ranks = torch.as_tensor(_dense(q), dtype=t.dtype)
    last: Any = vector.shape[d] - 1
    if has_missing:
        last = last - _dense(folds.reduce("sum", missing, axis=d)).reshape(-1)
    position = ranks.reshape(-1, *(1,) * has_missing) * last  # of each share, and of each fibre where they differ
    position = position.masked_fill(position < 0, 0)  # of nothing but NaN
    low = position.detach().floor() if interpolation != "nearest" else position.detach().round()
    high = position.detach().ceil() if interpolation in ("linear", "midpoint", "higher") else low
    low = high if interpolation == "higher" else low
    both = torch.cat([low, high]).long()
    low_values, high_values = _at_ranks(vector, d, both.movedim(0, -1).numpy())[0].movedim(d, 0).chunk(2)
    others = [n for k, n in enumerate(vector.shape) if k != d] if has_missing else [1] * (vector.ndim - 1)
    position, low = (x.reshape(-1, *others) for x in (position, low))
    weight = torch.full_like(position, 0.5) if interpolation == "midpoint" else position - low
    quantiles = (
        torch.lerp(low_values, high_values, weight.to(low_values.dtype))
        if interpolation in ("linear", "midpoint")
        else low_values
    )
    if keepdim:
        shape = [1] * t.ndim if dim is None else [1 if k == d else n for k, n in enumerate(vector.shape)]
        quantiles = quantiles.reshape(len(position), *shape) if t.ndim else quantiles
    return quantiles if ranks.ndim else quantiles[0]


@torch_function("unique", "return_output")
def unique(
    t: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The distinct elements, where asked for with what each element is of them and how often it occurs."""
    if dim is not None:
        raise UnsupportedError("unique: slices of a dimension\n  supported: elements\n  help: to_dense() first")
    distinct = sets.unique_all(t)
    out = [distinct.values]
    out += [distinct.inverse_indices] if return_inverse else []
    out += [distinct.counts] if return_counts else []
    return out[0] if len(out) == 1 else tuple(out)


@torch_function("isin")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is one of others."""
    if isinstance(test_elements, Tensor):
        test_elements = _dense(sets.unique_values(test_elements.detach()))
    if not isinstance(elements, Tensor):
        return torch.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return apply_nary(lambda v: torch.isin(v, test_elements, invert=invert), elements)


@torch_function("bucketize")
def bucketize(t: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Between which of the boundaries each element lies."""
    edges = _dense(boundaries)
    return apply_nary(lambda v: torch.bucketize(v, edges, out_int32=out_int32, right=right), t)


@torch_function("searchsorted")
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    """The places in a sorted vector before which elements keep it sorted."""
    if sorted_sequence.ndim != 1:
        raise UnsupportedError("searchsorted: in several fibres\n  supported: in a vector\n  help: to_dense() first")
    if not isinstance(input, Tensor | torch.Tensor):
        input = torch.tensor(input)
    side_name = "right" if right or side == "right" else "left"
    indices = ordering.searchsorted(sorted_sequence, input, side=side_name, sorter=sorter)
    return _dense(indices).int() if out_int32 else indices


@torch_function("histc")
def histc(t: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements lie in each of `bins` equal parts of a range."""
    t = t.detach() if t.format.is_unique else t.detach().coalesce()
    if min == max and t.size:
        min, max = (float(folds.reduce(op, t).item()) for op in ("min", "max"))
    values = _dense(t.asformat("coo")).new_empty(0) if not t.size else t.asformat("coo").values
    unspecified = torch.full((1,), t.fill_value, dtype=values.dtype)
    return torch.histc(values, bins, min, max) + torch.histc(unspecified, bins, min, max) * (t.size - len(values))


@torch_function("nonzero", "argwhere")
def nonzero(t: Tensor, *, as_tuple: bool = False) -> Any:
    """The coordinates of the elements that are not zero, row-major."""
    nonzeros = (t != 0).detach()
    if nonzeros.fill_value:
        nonzeros = nonzeros.asformat("dense")
    coordinates = torch.nonzero(nonzeros.to_dense()) if nonzeros.format.is_dense else _true_coordinates(nonzeros)
    return coordinates.unbind(1) if as_tuple else coordinates


@torch_function("nonzero_static")
def nonzero_static(t: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """The first `size` coordinates of elements that are not zero, padded."""
    coordinates = nonzero(t)[:size]
    return torch.cat([coordinates, coordinates.new_full((size - len(coordinates), t.ndim), fill_value)])


def _true_coordinates(t: Tensor) -> torch.Tensor:
    coordinates = t.coalesce() if t.dense_dim == 0 else t.asformat("coo")
    return coordinates.indices().to(torch.int64)[:, coordinates.values].T


def _running(op: str) -> Callable[..., Any]:
    return lambda t, dim, *, dtype=None: (
        cumulative(op, t, dim, dtype, False) if t.ndim else apply_dense(getattr(torch, f"cum{op}"), t, 0, dtype=dtype)
    )


def _dense_running(function: Callable[..., Any]) -> Callable[..., Any]:
    """A cumulative function, whose result is dense, as that of `cumsum`."""
    return lambda t, dim: apply_dense(function, t, dim)


@torch_function("diff")
def diff(t: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The n-th differences of neighbours along a dimension."""

    return differences(t, axis=dim, n=n, prepend=prepend, append=append)


@torch_function("trapz", "trapezoid")
def trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral along a dimension by the trapezoidal rule."""
    return _trapezoids(y, x, dx, dim).sum(dim)


def _trapezoids(y: Any, x: Any, dx: float, dim: int) -> Any:
    extent = y.shape[dim]
    slice_of = (lambda v, start_of: narrow(v, dim, start_of, extent - 1)) if isinstance(y, Tensor) else None
    sums = slice_of(y, 0) + slice_of(y, 1) if slice_of else y.narrow(dim, 0, extent - 1) + y.narrow(dim, 1, extent - 1)
    if x is None:
        return sums * (dx / 2)
    if x.ndim == 1 and y.ndim > 1:
        steps = diff(x) if isinstance(x, Tensor) else torch.diff(x)
        shape = [1] * y.ndim
        shape[dim] = extent - 1
        steps = shaping.reshape(steps, shape) if isinstance(steps, Tensor) else steps.reshape(shape)
    else:
        steps = diff(x, dim=dim) if isinstance(x, Tensor) else torch.diff(x, dim=dim)
    return elementwise("mul", sums, steps) * 0.5


@torch_function("cumulative_trapezoid")
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The running integral along a dimension."""
    return torch.cumsum(_trapezoids(y, x, dx, dim), dim)


FUNCTIONS.update(
    {
        "max": extreme("max"),
        "min": extreme("min"),
        "argmax": arg_extreme("max"),
        "argmin": arg_extreme("min"),
        "msort": lambda t: sort(t, 0).values,
        "cumsum": _running("sum"),
        "cumprod": _running("prod"),
        "cummax": _dense_running(torch.cummax),
        "cummin": _dense_running(torch.cummin),
        "logcumsumexp": _dense_running(torch.logcumsumexp),
    }
)

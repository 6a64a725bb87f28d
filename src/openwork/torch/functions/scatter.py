"""torch's functions that write to indexed elements: `index_copy`, `scatter_add`, `masked_fill` and the like.

Setting elements is an assignment, run on the numbers of the values where these are recorded (`apply_move`). Adding to
elements is a sum with a COO Tensor of the addends, which may have duplicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ...errors import DTypeError, ShapeError
from ...interop.layouts import sparse_coo_tensor
from ...interop.sources import asarray
from ...ops.axes import axis_of
from ...ops.elementwise.maps import elementwise
from ...ops.indexing import index as indexing
from ...ops.indexing.assign import _selected_coordinates, assign
from ...ops.indexing.keys import select
from ...ops.manipulation import shaping
from ...storage.buffers import to_numpy
from ...tensor.tensor import Tensor
from ..gradients.nary import apply_nary
from ..gradients.permutation import apply_move
from .indices import index_vector, whole, within
from .registry import FUNCTIONS, torch_function
from .shapes import broadcast_tensors

__all__ = ["set_elements"]


def set_elements(t: Tensor, key: Any, values: Any) -> Tensor:
    """`t` with the elements at `key` set, gradients of both kept."""
    source = values if isinstance(values, Tensor) else asarray(torch.as_tensor(values, dtype=t.dtype))
    source = source.astype(t.dtype, copy=False)
    if source.fill_value != t.fill_value and not source.format.is_dense:
        source = asarray(source.to_dense())
    return apply_move(lambda a, b: assign(a, key, b), t, source)


def _host_key(key: Any) -> Any:
    if isinstance(key, tuple | list):
        return tuple(map(_host_key, key))
    return to_numpy(key) if isinstance(key, torch.Tensor) else slice(None) if key is None else key


def add_elements(t: Tensor, key: Any, values: Any) -> Any:
    """`t` with values added at `key`, all of those that share a place."""
    selection = select(_host_key(key), t.shape)
    crd = _selected_coordinates(selection, t.shape)
    count = int(np.prod(selection.shape))
    indices = np.stack([np.broadcast_to(crd[d], (count,)) for d in range(t.ndim)])
    dense = values.to_dense() if isinstance(values, Tensor) else torch.as_tensor(values, dtype=t.dtype)
    flat_values = dense.to(t.dtype).expand(selection.shape).reshape(-1)
    addend = sparse_coo_tensor(torch.from_numpy(indices.copy()), flat_values, t.shape, is_coalesced=False)
    return elementwise("add", t, addend)


def _index_key(t: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * axis_of(dim, max(t.ndim, 1), "index"), index_vector(_dense_index(index), "index"))


def _dense_index(index: Any) -> Any:
    """An index as an array; a Tensor made dense."""
    return index.to_dense() if isinstance(index, Tensor) else index


def _vector(t: Tensor) -> Tensor:
    return t if t.ndim else shaping.reshape(t, (1,))


def _slices_fit(t: Tensor, dim: int, index: Any, source: Any, operation: str) -> None:
    """Raise IndexError for a coordinate that is not there, DTypeError for a source of another dtype, as torch does."""
    within(
        index_vector(_dense_index(index), operation),
        t.shape[axis_of(dim, t.ndim, operation)] if t.ndim else 1,
        operation,
    )
    _same_dtype(t, source, operation)


def _same_shape(source: Any, shape: Sequence[int], operation: str) -> None:
    if tuple(source.shape) != tuple(shape):
        raise ShapeError(f"{operation}: a source of shape {tuple(source.shape)}\n  expected: {tuple(shape)}")


def _same_dtype(t: Tensor, source: Any, operation: str) -> None:
    if isinstance(source, Tensor | torch.Tensor) and source.ndim and source.dtype != t.dtype:
        raise DTypeError(f"{operation}: a source of {source.dtype}, into {t.dtype}\n  help: astype() first")


@torch_function("index_add")
def index_add(t: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """`t` with slices of `source` added at the coordinates `index` of a dimension."""
    _slices_fit(t, dim, index, source, "index_add")
    if t.ndim:
        _same_shape(source, select(_host_key(_index_key(t, dim, index)), t.shape).shape, "index_add")
    source = source if alpha == 1 else source * alpha
    return shaping.reshape(add_elements(_vector(t), _index_key(t, dim, index), _at_least_1d(t, source)), t.shape)


@torch_function("index_copy")
def index_copy(t: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """`t` with slices of `source` at the coordinates `index` of a dimension."""
    _slices_fit(t, dim, index, source, "index_copy")
    if t.ndim:
        _same_shape(source, select(_host_key(_index_key(t, dim, index)), t.shape).shape, "index_copy")
    return shaping.reshape(set_elements(_vector(t), _index_key(t, dim, index), _at_least_1d(t, source)), t.shape)


@torch_function("index_fill")
def index_fill(t: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """`t` with one value at the coordinates `index` of a dimension."""
    return shaping.reshape(set_elements(_vector(t), _index_key(t, dim, index), value), t.shape)


def _at_least_1d(t: Tensor, source: Any) -> Any:
    return source if t.ndim else source.reshape(-1)


@torch_function("index_put")
def index_put(t: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """`t` with values set, or added, at places that arrays of coordinates name."""
    _same_dtype(t, values, "index_put")
    key = tuple(slice(None) if i is None else i for i in indices)
    if isinstance(values, Tensor | torch.Tensor) and values.ndim > len(select(_host_key(key), t.shape).shape):
        raise ShapeError(
            f"index_put: values of shape {tuple(values.shape)}\n  expected: no more dimensions than places"
        )
    return (add_elements if accumulate else set_elements)(t, key, values)


def _coordinates_along(t: Tensor, dim: int, index: Any, shape: Sequence[int], operation: str) -> tuple[Any, ...]:
    """The coordinates of a grid of this shape, those along `dim` as `index` says, which is broadcast to it.

    Raises IndexError for coordinates that are not there.
    """
    axis = axis_of(dim, t.ndim, operation)
    key: list[Any] = list(np.indices(tuple(shape), sparse=True))
    key[axis] = to_numpy(within(index, t.shape[axis], operation))
    return tuple(np.broadcast_to(k, tuple(shape)) for k in key)


def _scatter_key(t: Tensor, dim: int, index: Any, src: Any) -> tuple[Any, ...]:
    """The coordinates that a scatter along `dim` names.

    Raises ShapeError where torch refuses the shape of the index.
    """
    shape, axis = tuple(index.shape), axis_of(dim, t.ndim, "scatter")
    source = tuple(src.shape) if isinstance(src, Tensor | torch.Tensor) and src.ndim else shape
    fits = len(shape) == len(source) == t.ndim and all(
        n <= m and (d == axis or n <= t.shape[d]) for d, (n, m) in enumerate(zip(shape, source, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"scatter: an index of shape {shape} and a source of {source}, into {t.shape} along dimension {axis}"
            "\n  expected: as many dimensions, and extents no larger than the source's, nor than the tensor's elsewhere"
        )
    return _coordinates_along(t, dim, index, shape, "scatter")


def reduce_elements(t: Tensor, key: tuple[Any, ...], values: Any, reduce: str, include_self: bool) -> Tensor:
    """`t` with values reduced into the elements at `key`, and with these where `include_self`.

    reduce : "sum", "prod", "mean", "amax" or "amin", as of `torch.scatter_reduce`, which does it for the places alone
    """
    places, group = np.unique(np.ravel_multi_index([k.reshape(-1) for k in key], t.shape), return_inverse=True)
    at = np.unravel_index(places, t.shape)
    current = indexing.index(t, at).to_dense()
    dense = values.to_dense() if isinstance(values, Tensor) else torch.as_tensor(values, dtype=t.dtype)
    flat_values = dense.expand(key[0].shape).reshape(-1)
    group_numbers = torch.from_numpy(group.reshape(-1))
    new = current.scatter_reduce(0, group_numbers, flat_values, reduce, include_self=include_self)
    return set_elements(t, at, new)


def _crop_source(index: Any, src: Any) -> Any:
    return src[tuple(slice(n) for n in index.shape)] if isinstance(src, Tensor | torch.Tensor) and src.ndim else src


_REDUCTIONS = {None: None, "add": "sum", "multiply": "prod"}
"""The reductions of `torch.scatter` -> those of `torch.scatter_reduce`."""


@torch_function("scatter")
def scatter(t: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """`t` with elements of `src` at the coordinates `index` along a dimension, set, added or multiplied.

    Raises ValueError for another `reduce` than None, "add" and "multiply".
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"scatter: reduce={reduce!r}\n  expected: 'add', 'multiply' or None")
    return _scattered(t, dim, index, value if src is None else src, _REDUCTIONS[reduce], True)


@torch_function("scatter_reduce")
def scatter_reduce(t: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """`t` with elements of `src` reduced into those at the coordinates `index` along a dimension.

    Raises ValueError for another `reduce` than "sum", "prod", "mean", "amax" and "amin".
    """
    return _scattered(t, dim, index, src, _known(reduce, "scatter_reduce", "sum"), include_self)


def _known(reduce: str, operation: str, *more: str) -> str:
    known = (*more, "prod", "mean", "amax", "amin")
    if reduce not in known:
        raise ValueError(f"{operation}: reduce={reduce!r}\n  expected: {', '.join(known)}")
    return reduce


def _scattered(t: Tensor, dim: int, index: Any, src: Any, reduce: str | None, include_self: bool) -> Any:
    if not t.ndim:
        result = _scattered(_vector(t), dim, index.reshape(-1), _at_least_1d(t, src), reduce, include_self)
        return shaping.reshape(result, ())
    index = _dense_index(index)
    index = index if index.ndim else index.reshape(1)
    if not index.numel():
        return t
    key = _scatter_key(t, dim, index, src)
    _same_dtype(t, src, "scatter")
    values = _crop_source(index, src)
    if reduce is None:
        return set_elements(t, key, values)
    if reduce == "sum" and include_self:
        return add_elements(t, key, values)
    return reduce_elements(t, key, values, reduce, include_self)


@torch_function("index_reduce")
def index_reduce(t: Tensor, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """`t` with slices of `source` reduced into those at the coordinates `index` of a dimension.

    Raises ValueError for another `reduce` than "prod", "mean", "amax" and "amin", ShapeError where `source` is of
    another shape than the slices.
    """
    reduce, vector = _known(reduce, "index_reduce"), _vector(t)
    axis = axis_of(dim, vector.ndim, "index_reduce")
    _same_dtype(t, source, "index_reduce")
    index, source = index_vector(_dense_index(index), "index_reduce"), _at_least_1d(t, source)
    shape = (*vector.shape[:axis], len(index), *vector.shape[axis + 1 :])
    _same_shape(source, shape, "index_reduce")
    if not math.prod(shape):
        return t
    along = index.reshape((-1,) + (1,) * (vector.ndim - axis - 1))
    key = _coordinates_along(vector, axis, along, shape, "index_reduce")
    return shaping.reshape(reduce_elements(vector, key, source, reduce, include_self), t.shape)


@torch_function("put")
def put(t: Tensor, index: Any, source: Any, accumulate: bool = False) -> Any:
    """`t` with elements of `source` set, or added, at row-major places."""
    _same_dtype(t, source, "put")
    flat, index = shaping.reshape(t, (-1,)), whole(_dense_index(index), "put")
    if index.numel() != (source.size if isinstance(source, Tensor) else source.numel()):
        raise ShapeError(f"put: {index.numel()} places, a source of shape {tuple(source.shape)}\n  expected: as many")
    if not index.numel():
        return t
    flat_result = (add_elements if accumulate else set_elements)(flat, (index.reshape(-1),), source.reshape(-1))
    return shaping.reshape(flat_result, t.shape)


@torch_function("masked_scatter")
def masked_scatter(t: Tensor, mask: Any, source: Any) -> Tensor:
    """`t` with the first elements of `source` where the mask holds."""
    _same_dtype(t, source, "masked_scatter")
    mask = (mask.to_dense() if isinstance(mask, Tensor) else mask).expand(t.shape)
    flat = source.reshape(-1)[: int(mask.sum())]
    return shaping.reshape(set_elements(_vector(t), mask.reshape(_vector(t).shape), flat), t.shape)


@torch_function("masked_select")
def masked_select(t: Any, mask: Any) -> Any:
    """The elements where the mask holds, row-major."""

    if mask.dtype != torch.bool:
        raise DTypeError(f"masked_select: a mask of {mask.dtype}\n  expected: torch.bool")
    t, mask = broadcast_tensors(t, mask)
    if not isinstance(t, Tensor):
        return torch.masked_select(t, mask.to_dense())
    return indexing.index(_vector(t), mask if t.ndim else mask.reshape(1))


@torch_function("masked_fill")
def masked_fill(t: Tensor, mask: Any, value: Any) -> Any:
    """`t` with one value where the mask holds."""
    return apply_nary(torch.masked_fill, t, mask, value)


def _setter(key: Callable[..., Any]) -> Callable[..., Tensor]:
    def function(t: Tensor, src: Any, *args: Any, **given: Any) -> Tensor:
        place = key(t, *args, **given)
        _same_shape(src, select(_host_key(place), t.shape).shape, "scatter")
        return set_elements(t, place, src)

    return function


def _select_key(t: Tensor, dim: int, index: int) -> Any:
    return (*(slice(None),) * axis_of(dim, t.ndim, "select_scatter"), int(index))


def _slice_key(t: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return (*(slice(None),) * axis_of(dim, t.ndim, "slice_scatter"), slice(start, end, step))


@torch_function("diagonal_scatter")
def diagonal_scatter(t: Tensor, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`t` with another diagonal."""
    first, second = (axis_of(d, t.ndim, "diagonal_scatter") for d in (dim1, dim2))
    permuted = shaping.moveaxis(t, (first, second), (0, 1))
    rows, columns = max(-offset, 0), max(offset, 0)
    places = torch.diagonal(torch.empty(t.shape, device="meta"), offset, first, second)
    _same_shape(src, places.shape, "diagonal_scatter")
    steps = np.arange(src.shape[-1])
    source = shaping.moveaxis(src, -1, 0) if isinstance(src, Tensor) else src.movedim(-1, 0)
    return shaping.moveaxis(set_elements(permuted, (steps + rows, steps + columns), source), (0, 1), (first, second))


FUNCTIONS.update(
    {
        "scatter_add": lambda t, dim, index, src: _scattered(t, dim, index, src, "sum", True),
        "select_scatter": _setter(_select_key),
        "slice_scatter": _setter(_slice_key),
    }
)

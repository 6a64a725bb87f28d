"""torch's functions that write to indexed elements: `index_copy`, `scatter_add`, `masked_fill` and the like.

Setting elements is an assignment, run on the numbers of the values where these are recorded (`apply_move`). Adding to
elements is a sum with a COO Tensor of the addends, which may have duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ...errors import UnsupportedError
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
    return (*(slice(None),) * axis_of(dim, max(t.ndim, 1), "index"), _dense_index(index).reshape(-1))


def _dense_index(index: Any) -> Any:
    """An index as an array; a Tensor made dense."""
    return index.to_dense() if isinstance(index, Tensor) else index


def _vector(t: Tensor) -> Tensor:
    return t if t.ndim else shaping.reshape(t, (1,))


@torch_function("index_add")
def index_add(t: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """`t` with slices of `source` added at the coordinates `index` of a dimension."""
    source = source if alpha == 1 else source * alpha
    return shaping.reshape(add_elements(_vector(t), _index_key(t, dim, index), _at_least_1d(t, source)), t.shape)


@torch_function("index_copy")
def index_copy(t: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """`t` with slices of `source` at the coordinates `index` of a dimension."""
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
    key = tuple(slice(None) if i is None else i for i in indices)
    return (add_elements if accumulate else set_elements)(t, key, values)


def _scatter_key(t: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    """The coordinates that a scatter along `dim` names."""
    key: list[Any] = list(np.indices(tuple(index.shape), sparse=True))
    key[axis_of(dim, t.ndim, "scatter")] = to_numpy(index)
    return tuple(np.broadcast_to(k, tuple(index.shape)) for k in key)


def _crop_source(index: Any, src: Any) -> Any:
    return src[tuple(slice(n) for n in index.shape)] if isinstance(src, Tensor | torch.Tensor) and src.ndim else src


@torch_function("scatter")
def scatter(t: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """`t` with elements of `src` at the coordinates `index` along a dimension."""
    source_values = value if src is None else src
    if reduce not in (None, "add"):
        raise UnsupportedError(f"scatter: reduce={reduce!r}\n  supported: None and 'add'\n  help: to_dense() first")
    if not t.ndim:
        result = scatter(_vector(t), 0, index.reshape(-1), _at_least_1d(t, source_values), reduce=reduce)
        return shaping.reshape(result, ())
    index = _dense_index(index)
    index = index if index.ndim else index.reshape(1)
    source_values = _crop_source(index, source_values)
    if not index.numel():
        return t
    return (set_elements if reduce is None else add_elements)(t, _scatter_key(t, dim, index), source_values)


@torch_function("put")
def put(t: Tensor, index: Any, source: Any, accumulate: bool = False) -> Any:
    """`t` with elements of `source` set, or added, at row-major places."""
    flat, index = shaping.reshape(t, (-1,)), _dense_index(index)
    if not index.numel():
        return t
    flat_result = (add_elements if accumulate else set_elements)(flat, (index.reshape(-1),), source.reshape(-1))
    return shaping.reshape(flat_result, t.shape)


@torch_function("masked_scatter")
def masked_scatter(t: Tensor, mask: Any, source: Any) -> Tensor:
    """`t` with the first elements of `source` where the mask holds."""
    mask = (mask.to_dense() if isinstance(mask, Tensor) else mask).expand(t.shape)
    flat = source.reshape(-1)[: int(mask.sum())]
    return shaping.reshape(set_elements(_vector(t), mask.reshape(_vector(t).shape), flat), t.shape)


@torch_function("masked_select")
def masked_select(t: Any, mask: Any) -> Any:
    """The elements where the mask holds, row-major."""

    t, mask = broadcast_tensors(t, mask)
    if not isinstance(t, Tensor):
        return torch.masked_select(t, mask.to_dense())
    return indexing.index(_vector(t), mask if t.ndim else mask.reshape(1))


@torch_function("masked_fill")
def masked_fill(t: Tensor, mask: Any, value: Any) -> Any:
    """`t` with one value where the mask holds."""
    return apply_nary(torch.masked_fill, t, mask, value)


def _setter(key: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda t, src, *args, **given: set_elements(t, key(t, *args, **given), src)


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
    steps = np.arange(src.shape[-1])
    source = shaping.moveaxis(src, -1, 0) if isinstance(src, Tensor) else src.movedim(-1, 0)
    return shaping.moveaxis(set_elements(permuted, (steps + rows, steps + columns), source), (0, 1), (first, second))


FUNCTIONS.update(
    {
        "scatter_add": lambda t, dim, index, src: scatter(t, dim, index, src, reduce="add"),
        "select_scatter": _setter(_select_key),
        "slice_scatter": _setter(_slice_key),
    }
)

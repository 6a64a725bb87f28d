"""torch's functions that put elements at places named by indices: `index_copy`, `scatter_add` and the like.

What sets elements is an assignment, run on the numbers of the values where these are recorded. What adds to elements
is a sum with the Tensor of what is added, whose elements may lie at one place together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import UnsupportedError
from ..interop.constructors import sparse_coo_tensor
from ..interop.sources import asarray
from ..ops.elementwise.maps import elementwise
from ..ops.indexing import index as indexing
from ..ops.indexing.assign import _selected_coordinates, assign
from ..ops.indexing.keys import select
from ..ops.manipulation import shaping
from ..storage.buffers import to_numpy
from ..tensor.tensor import Tensor
from .nary import several
from .permutation_gradient import by_places
from .registry import FUNCTIONS, torch_function
from .shapes import broadcast_tensors

__all__ = ["placed"]


def placed(t: Tensor, key: Any, values: Any) -> Tensor:
    """`t` with the elements at `key` set, gradients of both kept."""
    source = values if isinstance(values, Tensor) else asarray(torch.as_tensor(values, dtype=t.dtype))
    source = source.astype(t.dtype, copy=False)
    if source.fill_value != t.fill_value and not source.format.is_dense:
        source = asarray(source.to_dense())
    return by_places(lambda a, b: assign(a, key, b), t, source)


def _on_host(key: Any) -> Any:
    if isinstance(key, tuple | list):
        return tuple(map(_on_host, key))
    return to_numpy(key) if isinstance(key, torch.Tensor) else slice(None) if key is None else key


def added(t: Tensor, key: Any, values: Any) -> Any:
    """`t` with values added at `key`, several at one place all of them."""
    selection = select(_on_host(key), t.shape)
    where = _selected_coordinates(selection, t.shape)
    count = int(np.prod(selection.shape))
    indices = np.stack([np.broadcast_to(where[d], (count,)) for d in range(t.ndim)])
    dense = values.to_dense() if isinstance(values, Tensor) else torch.as_tensor(values, dtype=t.dtype)
    spread = dense.to(t.dtype).expand(selection.shape).reshape(-1)
    more = sparse_coo_tensor(torch.from_numpy(indices.copy()), spread, t.shape, is_coalesced=False)
    return elementwise("add", t, more)


def _line(t: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * (dim % max(t.ndim, 1)), _plain(index).reshape(-1))


def _plain(index: Any) -> Any:
    """An index as an array, that of a Tensor with its unspecified elements."""
    return index.to_dense() if isinstance(index, Tensor) else index


def _vector(t: Tensor) -> Tensor:
    return t if t.ndim else shaping.reshape(t, (1,))


@torch_function("index_add")
def index_add(t: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """`t` with slices of `source` added at the coordinates `index` of a dimension."""
    source = source if alpha == 1 else source * alpha
    return shaping.reshape(added(_vector(t), _line(t, dim, index), _shaped(t, source)), t.shape)


@torch_function("index_copy")
def index_copy(t: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """`t` with slices of `source` at the coordinates `index` of a dimension."""
    return shaping.reshape(placed(_vector(t), _line(t, dim, index), _shaped(t, source)), t.shape)


@torch_function("index_fill")
def index_fill(t: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """`t` with one value at the coordinates `index` of a dimension."""
    return shaping.reshape(placed(_vector(t), _line(t, dim, index), value), t.shape)


def _shaped(t: Tensor, source: Any) -> Any:
    return source if t.ndim else source.reshape(-1)


@torch_function("index_put")
def index_put(t: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """`t` with values set, or added, at places that arrays of coordinates name."""
    key = tuple(slice(None) if i is None else i for i in indices)
    return (added if accumulate else placed)(t, key, values)


def _grid(t: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    """The coordinates that a scatter along `dim` names."""
    key: list[Any] = list(np.indices(tuple(index.shape), sparse=True))
    key[dim % t.ndim] = to_numpy(index)
    return tuple(np.broadcast_to(k, tuple(index.shape)) for k in key)


def _source(index: Any, src: Any) -> Any:
    return src[tuple(slice(n) for n in index.shape)] if isinstance(src, Tensor | torch.Tensor) and src.ndim else src


@torch_function("scatter")
def scatter(t: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """`t` with elements of `src` at the coordinates `index` along a dimension."""
    source_values = value if src is None else src
    if reduce not in (None, "add"):
        raise UnsupportedError(f"scatter: reduce={reduce!r}\n  supported: None and 'add'\n  help: to_dense() first")
    if not t.ndim:
        made = scatter(_vector(t), 0, index.reshape(-1), _shaped(t, source_values), reduce=reduce)
        return shaping.reshape(made, ())
    index = _plain(index)
    index = index if index.ndim else index.reshape(1)
    source_values = _source(index, source_values)
    if not index.numel():
        return t
    return (placed if reduce is None else added)(t, _grid(t, dim, index), source_values)


@torch_function("put")
def put(t: Tensor, index: Any, source: Any, accumulate: bool = False) -> Any:
    """`t` with elements of `source` set, or added, at row-major places."""
    flat, index = shaping.reshape(t, (-1,)), _plain(index)
    if not index.numel():
        return t
    flat_result = (added if accumulate else placed)(flat, (index.reshape(-1),), source.reshape(-1))
    return shaping.reshape(flat_result, t.shape)


@torch_function("masked_scatter")
def masked_scatter(t: Tensor, mask: Any, source: Any) -> Tensor:
    """`t` with the first elements of `source` where the mask holds."""
    mask = (mask.to_dense() if isinstance(mask, Tensor) else mask).expand(t.shape)
    flat = source.reshape(-1)[: int(mask.sum())]
    return shaping.reshape(placed(_vector(t), mask.reshape(_vector(t).shape), flat), t.shape)


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
    return several(torch.masked_fill, t, mask, value)


def _replaced(key: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda t, src, *args, **given: placed(t, key(t, *args, **given), src)


def _select_key(t: Tensor, dim: int, index: int) -> Any:
    return (*(slice(None),) * (dim % t.ndim), int(index))


def _slice_key(t: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return (*(slice(None),) * (dim % t.ndim), slice(start, end, step))


@torch_function("diagonal_scatter")
def diagonal_scatter(t: Tensor, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`t` with another diagonal."""
    first, second = dim1 % t.ndim, dim2 % t.ndim
    turned = shaping.moveaxis(t, (first, second), (0, 1))
    rows, columns = max(-offset, 0), max(offset, 0)
    line = np.arange(src.shape[-1])
    lead = shaping.moveaxis(src, -1, 0) if isinstance(src, Tensor) else src.movedim(-1, 0)
    return shaping.moveaxis(placed(turned, (line + rows, line + columns), lead), (0, 1), (first, second))


FUNCTIONS.update(
    {
        "scatter_add": lambda t, dim, index, src: scatter(t, dim, index, src, reduce="add"),
        "select_scatter": _replaced(_select_key),
        "slice_scatter": _replaced(_slice_key),
    }
)

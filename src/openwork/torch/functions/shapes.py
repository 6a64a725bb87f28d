"""torch's functions that reshape, split, join and index: each an operation of openwork with torch's arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ...errors import ShapeError, UnsupportedError
from ...ops import creation, result_format
from ...ops.axes import axis_of
from ...ops.indexing.index import index
from ...ops.indexing.taking import take
from ...ops.manipulation import joining, repetition, shaping, triangles
from ...tensor.tensor import Tensor
from ..gradients.nary import extents
from .registry import FUNCTIONS, checked, prepared_by, torch_function

__all__ = ["constant_tensor", "narrow", "shape_of", "split"]


def _index_along(t: Tensor, dim: int, key: Any) -> Any:
    return index(t, (*(slice(None),) * axis_of(dim, t.ndim, "index"), key))


@torch_function("narrow", moves=True)
def narrow(t: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """The coordinates from `start`, `length` of them, of a dimension."""
    result: Tensor = t.narrow(dim, int(start), length)
    return result


@torch_function("select", moves=True)
def select(t: Tensor, dim: int, index: int) -> Tensor:
    """One coordinate of a dimension, which goes."""
    result: Tensor = _index_along(t, dim, int(index))
    return result


@torch_function("slice", "slice.Tensor", moves=True)
def slice_(t: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    """The coordinates of a slice of a dimension."""
    result: Tensor = _index_along(t, dim, slice(start, end, step))
    return result


@torch_function("split", "split_with_sizes", "unsafe_split", moves=True)
def split(t: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a dimension: of one size, or of the sizes given."""
    extent, sizes = t.shape[dim], split_size_or_sections
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - start) for start in range(0, extent, sizes)] or [0]
    if sum(sizes) != extent:
        raise ShapeError(f"split: parts of sizes {tuple(sizes)} of an extent of {extent}\n  help: sizes sum to it")
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(narrow(t, dim, start, n) for start, n in zip(starts, sizes, strict=True))


@torch_function("unsafe_chunk", "chunk", moves=True)
def chunk(t: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of a dimension, of equal size but for the last."""
    return split(t, max(1, -(-t.shape[dim] // chunks)), dim)


@torch_function("tensor_split", moves=True)
def tensor_split(t: Tensor, indices_or_sections: Any, dim: int = 0, **options: Any) -> tuple[Tensor, ...]:
    """Parts of a dimension: as many, of sizes that differ by one at most, or cut at the places given."""
    parts = options.get("sections", options.get("indices", indices_or_sections))
    if isinstance(parts, torch.Tensor):
        if parts.ndim > 1:
            raise ShapeError(f"tensor_split: places in a tensor of shape {tuple(parts.shape)}\n  expected: a vector")
        parts = parts.tolist()
    extent = t.shape[axis_of(dim, t.ndim, "tensor_split")]
    if isinstance(parts, int):
        sizes = [extent // parts + (k < extent % parts) for k in range(parts)]
        return split(t, sizes, dim)
    bounds = [0, *(slice(None, int(p)).indices(extent)[1] for p in parts), extent]
    return tuple(slice_(t, dim, a, max(a, b)) for a, b in pairwise(bounds))


def _splitter(dim: int) -> Callable[..., Any]:
    def function(t: Tensor, *indices_or_sections: Any, **options: Any) -> tuple[Tensor, ...]:
        d = 0 if t.ndim == 1 and dim == 1 else dim
        given = indices_or_sections if len(indices_or_sections) > 1 else indices_or_sections[0]
        return tensor_split(t, given, d, **options)

    return function


@torch_function("transpose", "swapaxes", "swapdims", moves=True)
def transpose(t: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged, over the same buffers."""
    order = list(range(t.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return t.transpose(order) if order else t


def shape_of(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Extents given one by one, or as one sequence."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], Sequence) else tuple(sizes)


@torch_function("flatten", "ravel", moves=True)
def flatten(t: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one."""
    first, last = (axis_of(d, max(t.ndim, 1), "flatten") for d in (start_dim, end_dim))
    if first > last:
        raise ShapeError(f"flatten: from dimension {start_dim} to {end_dim}\n  expected: the first before the last")
    middle = math.prod(t.shape[first : last + 1])
    return shaping.reshape(t, (*t.shape[:first], middle, *t.shape[last + 1 :]))


@torch_function("unflatten", moves=True)
def unflatten(t: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several."""
    d = axis_of(dim, t.ndim, "unflatten")
    sizes = list(sizes)
    if -1 in sizes:
        sizes[sizes.index(-1)] = t.shape[d] // max(-math.prod(sizes), 1)
    return shaping.reshape(t, (*t.shape[:d], *sizes, *t.shape[d + 1 :]))


@torch_function("expand", moves=True)
def expand(t: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Dimensions of extent 1 repeated to the sizes given; -1 keeps one."""
    target_shape = shape_of(sizes if size is None else (size,))
    new_dims = len(target_shape) - t.ndim
    return repetition.broadcast_to(
        t, tuple(t.shape[d - new_dims] if n == -1 else n for d, n in enumerate(target_shape))
    )


@torch_function("repeat", moves=True)
def repeat(t: Tensor, *repeats: Any) -> Tensor:
    """The tensor side by side with itself, as often as given for each dimension."""
    counts = shape_of(repeats)
    if len(counts) < t.ndim:
        raise ShapeError(f"repeat: {len(counts)} numbers for {t.ndim} dimensions\n  help: give one for each")
    return repetition.tile(t, counts)


@torch_function("squeeze", moves=True)
def squeeze(t: Tensor, *dims: Any, dim: Any = None) -> Tensor:
    """Without the dimensions of extent 1, or those of them that are named."""
    if not dims and dim is None:
        return shaping.squeeze(t)
    named = shape_of(dims or (dim if isinstance(dim, Sequence) else (dim,)))
    dims = tuple(d for d in named if t.ndim and t.shape[d] == 1)
    return shaping.squeeze(t, dims) if dims else t


@torch_function("flip", moves=True)
def flip(t: Tensor, *dims: Any, **options: Any) -> Tensor:
    """The elements along `dims` in reverse order."""
    axes = shape_of(dims) if dims else shape_of((options["dims"],))
    return shaping.flip(t, axis=axes) if axes else t


@torch_function("rot90", moves=True)
def rot90(t: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by k quarters in the plane of two dimensions."""
    a, b = (axis_of(d, t.ndim, "rot90") for d in dims)
    k %= 4
    if k == 2:
        return shaping.flip(t, axis=(a, b))
    if k == 0:
        return t
    rotated = shaping.flip(t, axis=b) if k == 1 else t
    rotated = transpose(rotated, a, b)
    return rotated if k == 1 else shaping.flip(rotated, axis=b)


@torch_function("unfold", moves=True)
def unfold(t: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of a dimension, `size` long and `step` apart, as a last dimension."""
    if not t.ndim:
        return shaping.reshape(t, (size,))
    d = axis_of(dimension, t.ndim, "unfold")
    count = (t.shape[d] - size) // step + 1
    indices = np.arange(count)[:, None] * step + np.arange(size)
    return shaping.moveaxis(take(t, indices, axis=d), d + 1, -1)


def constant_tensor(t: Tensor, shape: Sequence[int], value: Any, dtype: Any = None) -> Tensor:
    """A Tensor of one value, its fill value, without stored elements unless of rank 0; default dtype that of `t`."""
    shape = tuple(int(n) for n in shape)
    format_name = "coo" if shape else "dense"
    tensor = creation.full(shape, value, dtype=t.dtype if dtype is None else dtype, format=format_name)
    return tensor.asformat(format_name)


@torch_function("pad")
def pad(t: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Dimensions made longer or shorter at both ends, the last one first.

    Raises UnsupportedError where a constant value is not the fill value.
    """
    if mode != "constant":
        for k in range(len(pad) // 2):
            t = _pad_dimension(t, t.ndim - 1 - k, int(pad[2 * k]), int(pad[2 * k + 1]), mode)
        return t
    value = 0 if value is None else value
    for k in range(len(pad) // 2):
        d, (before, after) = t.ndim - 1 - k, (int(n) for n in pad[2 * k : 2 * k + 2])
        t = _index_along(t, d, slice(max(-before, 0), t.shape[d] - max(-after, 0)))
        parts = [t]
        for n, k_part in ((before, 0), (after, 2)):
            if n > 0:
                parts.insert(k_part, constant_tensor(t, (*t.shape[:d], n, *t.shape[d + 1 :]), value))
        t = joining.concat(parts, axis=d) if len(parts) > 1 else t
    return t


def _pad_dimension(t: Tensor, d: int, before: int, after: int, mode: str) -> Tensor:
    """One dimension padded by its own elements."""
    extent = t.shape[d]
    indices = np.arange(-before, extent + after)
    if mode == "circular":
        indices %= extent
    elif mode == "replicate":
        indices = indices.clip(0, extent - 1)
    elif mode == "reflect":
        indices = np.abs(indices)
        indices = np.where(indices >= extent, 2 * (extent - 1) - indices, indices)
    else:
        raise UnsupportedError(f"pad: mode {mode!r}\n  supported: constant, reflect, replicate, circular")
    return take(t, indices, axis=d)


@torch_function("diag_embed")
def diag_embed(t: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as the diagonal of a plane of two, zeros beside it."""
    rank, last_dim = t.ndim + 1, t.ndim - 1
    if t.fill_value and not t.format.is_dense:
        raise UnsupportedError(
            f"diag_embed: the fill value is {t.fill_value}\n  supported: 0\n  help: to_dense() first"
        )
    extent = t.shape[last_dim] + abs(offset)
    shape = (*t.shape[:-1], extent, extent)

    def write(program: Any) -> None:
        for d in range(last_dim):
            program.keep(d)
        for shift in (max(-offset, 0), max(offset, 0)):
            program.coordinates.append(f"x{last_dim} + {program.number(shift)}")

    def host(array: Any) -> Any:
        out = np.zeros(shape, array.dtype)
        line = np.arange(t.shape[last_dim])
        out[..., line + max(-offset, 0), line + max(offset, 0)] = array
        return out

    result = result_format.remap_one(t, shape, "diag_embed", write, host)
    planes = [axis_of(d, rank, "diag_embed") for d in (dim1, dim2)]
    if planes[0] > planes[1]:
        result, planes = result.mT, planes[::-1]
    return shaping.moveaxis(result, (rank - 2, rank - 1), tuple(planes))


@torch_function("diagflat", moves=True)
def diagflat(t: Tensor, offset: int = 0) -> Tensor:
    """The elements in row-major order as a diagonal."""
    return triangles.diag(shaping.reshape(t, (-1,)), k=offset)


def _atleast(rank: int) -> Callable[..., Any]:
    def function(*tensors: Any) -> Any:
        if len(tensors) != 1 or isinstance(tensors[0], list | tuple):
            listed = tensors[0] if len(tensors) == 1 else tensors
            return tuple(function(x) for x in listed)
        x = tensors[0]
        trailing = 1 if rank == 3 and x.ndim in (1, 2) else 0
        leading = max(rank - x.ndim - trailing, 0)
        shape = (1,) * leading + tuple(x.shape) + (1,) * trailing if x.ndim < rank else tuple(x.shape)
        return (
            x if shape == tuple(x.shape) else shaping.reshape(x, shape) if isinstance(x, Tensor) else x.reshape(shape)
        )

    return function


def _stacker(axis: int) -> Callable[..., Any]:
    def function(tensors: Sequence[Any]) -> Tensor:
        up = _atleast(3 if axis == 2 else 2 if axis == 0 else 1)
        parts = [up(t) for t in tensors]
        return joining.concat(parts, axis=min(axis, parts[0].ndim - 1))

    return function


@torch_function("column_stack")
def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Vectors as columns, matrices as they are, side by side."""
    parts = [shaping.reshape(t, (t.shape[0] if t.ndim else 1, 1)) if t.ndim < 2 else t for t in tensors]
    return joining.concat(parts, axis=1)


@prepared_by(torch.cat, torch.concat, torch.concatenate)
def _prepared_cat(tensors: Any, dim: Any = 0) -> Tensor | None:
    return joining.concat_little(tensors, dim)


@torch_function("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> Tensor:
    """The operands one behind the other; empty vectors are left out, as torch does."""
    nonempty = [t for t in tensors if tuple(t.shape) != (0,)]
    return joining.concat(nonempty or tensors[:1], axis=dim)


@torch_function("block_diag")
def block_diag(*tensors: Any) -> Tensor:
    """The matrices along the diagonal of one, zeros beside them."""
    parts = [_atleast(2)(t) for t in tensors]
    columns = sum(t.shape[1] for t in parts)
    like = next(t for t in parts if isinstance(t, Tensor))
    rows, column = [], 0
    for t in parts:
        zero_blocks = [constant_tensor(like, (t.shape[0], n), 0) for n in (column, columns - column - t.shape[1])]
        rows.append(joining.concat([zero_blocks[0], t, zero_blocks[1]], axis=1))
        column += t.shape[1]
    return joining.concat(rows, axis=0)


@torch_function("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """All in their common shape."""
    operands = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    shape = extents(torch.broadcast_tensors, [tuple(t.shape) for t in operands])
    return tuple(repetition.broadcast_to(t, shape) if isinstance(t, Tensor) else t.expand(shape) for t in operands)


@torch_function("meshgrid")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """The coordinates of a grid whose sides the vectors are, each along a dimension of its own."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    rank = len(vectors)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    shape = [vectors[d].shape[0] if vectors[d].ndim else 1 for d in order]
    grids = []
    for d, t in enumerate(vectors):
        line = [-1 if order[r] == d else 1 for r in range(rank)]
        t = shaping.reshape(t, tuple(line)) if isinstance(t, Tensor) else t.reshape(line)
        grids.append(repetition.broadcast_to(t, shape) if isinstance(t, Tensor) else t.expand(shape))
    return tuple(grids)


@torch_function("cartesian_prod")
def cartesian_prod(*tensors: Any) -> Any:
    """Every choice of one element of each vector, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    return joining.stack([flatten(t) if isinstance(t, Tensor) else t.flatten() for t in meshgrid(*tensors)], axis=-1)


@torch_function("combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, as rows."""
    indices = torch.combinations(torch.arange(input.shape[0]), r, with_replacement)
    return take(input, indices, axis=0)


@torch_function("sum_to_size")
def sum_to_size(t: Tensor, *size: Any) -> Any:
    """Summed over the dimensions that broadcasting to the shape of `t` would repeat."""
    target_shape = shape_of(size)
    summed_dims = t.ndim - len(target_shape)
    gone = [d for d in range(t.ndim) if d < summed_dims or (target_shape[d - summed_dims] == 1 and t.shape[d] != 1)]
    summed = t.sum(tuple(gone), keepdims=True) if gone else t
    return shaping.reshape(summed, target_shape)


_MOVERS: dict[str, Callable[..., Any]] = {
    "t": checked(lambda t: t.t()),
    "permute": lambda t, *dims, **given: shaping.permute_dims(t, shape_of(dims or (given["dims"],))),
    "reshape": lambda t, *n, **given: shaping.reshape(t, shape_of(n or (given["shape"],))),
    "view": lambda t, *n: shaping.reshape(t, shape_of(n)),
    "view_as": lambda t, other: shaping.reshape(t, tuple(other.shape)),
    "reshape_as": lambda t, other: shaping.reshape(t, tuple(other.shape)),
    "expand_as": lambda t, other: expand(t, tuple(other.shape)),
    "fliplr": lambda t: flip(t, 1),
    "flipud": lambda t: flip(t, 0),
    "roll": lambda t, shifts, dims=None: shaping.roll(t, shifts, axis=None if dims in ((), []) else dims),
    "repeat_interleave": lambda t, repeats, dim=None, *, output_size=None: repetition.repeat(t, repeats, axis=dim),
    "tile": lambda t, *dims, **given: repetition.tile(t, shape_of(dims or (given["dims"],))),
    "hsplit": _splitter(1),
    "vsplit": _splitter(0),
    "dsplit": _splitter(2),
    "contiguous": lambda t, **_: t,
    "alias": lambda t: t,
    "resolve_conj": lambda t: t,
    "resolve_neg": lambda t: t,
    "clone": checked(lambda t, **_: t.clone()),
    "detach": checked(lambda t: t.detach()),
}
for _name, _function in _MOVERS.items():
    torch_function(_name, moves=True)(_function)

FUNCTIONS.update(
    {
        "hstack": _stacker(1),
        "vstack": _stacker(0),
        "row_stack": _stacker(0),
        "dstack": _stacker(2),
        "atleast_1d": _atleast(1),
        "atleast_2d": _atleast(2),
        "atleast_3d": _atleast(3),
        "getitem": checked(index),
    }
)
FUNCTIONS["constant_pad_nd"] = lambda t, p, value=0: pad(t, p, value=value)

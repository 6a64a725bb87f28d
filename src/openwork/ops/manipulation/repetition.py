"""A tensor and a shape or counts -> its elements several times: broadcast, repeated one by one, laid side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...integers import common_shape, extents, integers
from ...interruptible import repeat as repeat_blocks
from ...runtime.conversion.remap import IndexMap
from ...runtime.operation import operation
from ...storage.buffers import is_torch, length, to_numpy
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axis_of
from ..indexing.index import index, index_selection
from ..indexing.keys import Axis, Group, Selection, Span
from ..result_format import ROOM, remap_one
from .shaping import expand_dims, reshape

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "repeat", "take_coordinates", "tile"]


@operation(method=True, masked="moves", torch="broadcast_to(size: shape)")
def broadcast_to(x: Any, /, shape: Sequence[int]) -> Tensor:
    """`x` repeated along new dimensions in front and along those of extent 1, as NumPy broadcasts.

    Cost: O(nse of the result). Raises ShapeError where the shapes do not broadcast.

    See also: tile, expand_dims.

    Examples
    --------
    >>> ow.broadcast_to(ow.asarray([0, 2], format="coo"), (2, 2)).to_numpy()
    array([[0, 2],
           [0, 2]])
    """
    t, target_shape = as_tensor(x), extents(shape, "broadcast_to")
    new_dims = len(target_shape) - t.ndim
    if new_dims < 0 or any(n not in (1, m) for n, m in zip(t.shape, target_shape[max(new_dims, 0) :], strict=False)):
        raise ShapeError(
            f"broadcast_to: shape {t.shape} does not broadcast to {target_shape}\n  help: extents agree, or are 1"
        )
    if target_shape == t.shape:
        return t

    def write(index_map: IndexMap) -> None:
        loops: dict[int, str] = {}
        copies = 1
        for r, n in enumerate(target_shape):
            if n != 1 and (r < new_dims or t.shape[r - new_dims] == 1):
                loops[r] = index_map.loop("0", index_map.number(n))
                copies *= n
        for r in range(len(target_shape)):
            if r in loops:
                index_map.loops.append(r)
                index_map.coordinates.append(loops[r])
            elif r < new_dims:
                index_map.free.append(r)
                index_map.coordinates.append("0")
            else:
                index_map.keep(r - new_dims)
        index_map.fixed |= {r - new_dims for r in loops if r >= new_dims}
        index_map.copies = index_map.most = copies

    return remap_one(t, target_shape, "broadcast_to", write, lambda a: np.broadcast_to(a, target_shape))


@operation(shape="broadcast", dtype="same", fill="same", format="like")
def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """The operands, all broadcast to their common shape.

    Cost: that of `broadcast_to`, for each.
    See also: broadcast_to, broadcast_shapes.

    Examples
    --------
    >>> a, b = ow.broadcast_arrays(ow.ones((3, 1)), ow.ones((2,)))
    >>> a.shape, b.shape
    ((3, 2), (3, 2))
    """
    tensors = [as_tensor(x) for x in arrays]
    shape = common_shape("broadcast_arrays", [t.shape for t in tensors])
    return [broadcast_to(t, shape) for t in tensors]


@operation(operands=False)
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that operands of these shapes broadcast to. Raises ShapeError where they do not.

    Parameters
    ----------
    shapes : the shapes, tuples of int

    Returns
    -------
    tuple of int, the shape

    Cost: O(dimensions).
    See also: broadcast_to.

    Examples
    --------
    >>> ow.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    return common_shape("broadcast_shapes", [extents(s, "broadcast_shapes") for s in shapes])


@operation(method=True, masked="moves")
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element along `axis` repeated: `repeats` times, or as often as the entry of an array says.

    Without `axis` the elements in row-major order.

    Parameters
    ----------
    repeats : how often each element occurs: one number, or one for each coordinate along `axis`

    Cost: O(nse of the result).
    See also: tile.

    Examples
    --------
    >>> ow.repeat(ow.asarray([0, 2], format="coo"), 2).to_numpy()
    array([0, 0, 2, 2])
    """
    t = as_tensor(x)
    if axis is None:
        return repeat(reshape(t, (-1,)), repeats, axis=0)
    d = axis_of(axis, t.ndim, "repeat", boolean=False)
    repeats_host = (
        repeats.to_numpy() if isinstance(repeats, Tensor) else to_numpy(repeats) if is_torch(repeats) else repeats
    )
    counts = np.asarray(repeats_host)
    if counts.dtype.kind not in "iub" or counts.ndim > 1:
        raise DTypeError(
            f"repeat: repeats is an integer, or one per element; got: {repeats!r}\n  help: give integers in a list"
        )
    if counts.size and counts.min() < 0:
        raise ShapeError("repeat: repeats may not contain negative values.\n  help: 0 leaves an element out")
    extent = t.shape[d]
    if counts.size not in (1, extent):
        raise ShapeError(
            f"repeat: {counts.size} counts for {extent} elements of axis {d}\n  help: give one per element"
        )
    each = counts.reshape(-1).astype(np.int64)
    if counts.size == 1 and extent > ROOM + 8 * length(t._storage.values) and not t.format.is_dense:
        return _repeat_each(t, int(each[0]), d)
    crd = repeat_blocks(np.arange(extent, dtype=np.int64), np.broadcast_to(each, (extent,)))
    return take_coordinates(t, crd, d)


def _repeat_each(t: Tensor, count: int, d: int) -> Tensor:
    """`repeat` with one count for all, O(nse * count) whatever the extent."""
    shape = tuple(n * count if k == d else n for k, n in enumerate(t.shape))

    def write(index_map: IndexMap) -> None:
        times = index_map.number(count)
        for k in range(t.ndim):
            if k == d:
                index_map.coordinates.append(f"x{d} * {times} + {index_map.loop('0', times)}")
            else:
                index_map.keep(k)
        index_map.copies = index_map.most = count

    return remap_one(t, shape, "repeat", write, lambda a: np.repeat(a, count, d))


def take_coordinates(t: Tensor, crd: np.ndarray[Any, Any], d: int) -> Tensor:
    """The slices of `t` at the coordinates `crd` of dimension d."""
    if t.format.is_dense:
        return index(t, (*(slice(None),) * d, crd))
    selection = Selection(has_arrays=True, broadcast=(len(crd),))
    selection.groups = [Group({d: crd}, (0,), (len(crd),))]
    for k, n in enumerate(t.shape):
        if k != d:
            selection.spans[k] = Span(0, 1, n)
    selection.axes = [Axis(array=0) if k == d else Axis(k) for k in range(t.ndim)]
    selection.shape = tuple(len(crd) if k == d else n for k, n in enumerate(t.shape))
    return index_selection(t, selection)


@operation(method=True, masked="moves")
def tile(x: Any, repetitions: int | Sequence[int], /) -> Tensor:
    """`x` laid side by side with itself, `repetitions` times along each dimension.

    Parameters
    ----------
    repetitions : how often along each dimension; one number for the last

    Cost: O(nse of the result).
    See also: repeat, broadcast_to.

    Examples
    --------
    >>> ow.tile(ow.asarray([0, 2], format="coo"), 2).to_numpy()
    array([0, 2, 0, 2])
    """
    t, counts = as_tensor(x), integers(repetitions, "tile", "repetitions")
    if min(counts, default=0) < 0:
        raise ShapeError(f"tile: repetitions {counts} are negative\n  help: 0 gives an empty tensor")
    rank = max(t.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    t = expand_dims(t, axis=tuple(range(rank - t.ndim))) if rank > t.ndim else t
    shape = tuple(n * c for n, c in zip(t.shape, counts, strict=True))
    if shape == t.shape:
        return t.clone()

    def write(index_map: IndexMap) -> None:
        index_map.copies = index_map.most = math.prod(counts)
        for d, count in enumerate(counts):
            if count == 1:
                index_map.keep(d)
            else:
                copy = index_map.loop("0", index_map.number(count))
                index_map.coordinates.append(f"{copy} * {index_map.number(t.shape[d])} + x{d}")

    return remap_one(t, shape, "tile", write, lambda a: np.tile(a, counts))

"""An index key as NumPy takes it and a shape -> a Selection: what each dimension is indexed by, and the result's axes.

Source: NumPy, "Indexing on ndarrays": basic and advanced indexing, and where the dimensions of index arrays go.
"""

from __future__ import annotations

import operator
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...classes import define, frozen
from ...integers import common_shape
from ...storage.buffers import is_torch, to_numpy
from ...tensor.tensor import Tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["Axis", "Group", "Ints", "Selection", "Span", "select", "split_off", "within"]

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_VALID_KINDS = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid"
    " indices"
)


@frozen
class Span:
    """The coordinates start, start + step, ... of a dimension, `count` of them."""

    start: int
    step: int
    count: int

    def covers(self, extent: int) -> bool:
        """Whether these are all coordinates, in order."""
        return self.count == extent and (self.count == 0 or (self.start == 0 and (self.step == 1 or extent == 1)))


@frozen
class Axis:
    """A dimension of the result: of a slice of `dim`, of the index arrays (`array`, counted), or new with neither."""

    dim: int | None = None
    array: int | None = None


@frozen
class Group:
    """Index arrays that vary together: `rows[:, None]` and `cols` are two groups, `i` and `j` of one shape are one.

    arrays : by dimension, flat, in row-major order of the dimensions `axes` of the common shape, of extents `shape`
    """

    arrays: dict[int, Ints]
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def single(self) -> tuple[int, Ints] | None:
        """The dimension and the array, where it is one of rank one."""
        return self.only if len(self.axes) == 1 else None

    @property
    def only(self) -> tuple[int, Ints] | None:
        """The dimension and the array, where it is one that varies along one axis, or has one element."""
        return next(iter(self.arrays.items())) if len(self.arrays) == 1 and len(self.axes) <= 1 else None


@define
class Selection:
    """The elements that an index key selects from a tensor, by dimension.

    integers, spans : by dimension
    groups : the index arrays, whose common shape is `broadcast`
    axes, shape : the result's dimensions and extents
    """

    integers: dict[int, int] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    broadcast: tuple[int, ...] = ()
    has_arrays: bool = False
    axes: list[Axis] = field(default_factory=list)
    shape: tuple[int, ...] = ()


def split_off(selection: Selection, d: int, shape: tuple[int, ...]) -> tuple[Selection, Selection] | None:
    """A selection by index arrays that vary along axes of their own, as `np.ix_` makes them: that of dimension d, and
    that of the others from its result; None for any other selection."""
    groups = selection.groups
    if len(groups) < 2 or selection.integers or any(group.single is None for group in groups):
        return None
    by_dim = {next(iter(group.arrays)): group for group in groups}
    axes = [Axis(array=by_dim[k].axes[0]) if k in by_dim else Axis(k) for k in range(len(shape))]
    if d not in by_dim or selection.axes != axes:
        return None
    others = {k: group for k, group in by_dim.items() if k != d}
    count = by_dim[d].shape[0]
    whole = {k: Span(0, 1, n) for k, n in enumerate(shape) if k != d}
    rest_spans = {**selection.spans, d: Span(0, 1, count)}
    extents = (*shape[:d], count, *shape[d + 1 :])
    return _by_arrays({d: by_dim[d]}, whole, extents), _by_arrays(others, rest_spans, selection.shape)


def _by_arrays(by_dim: dict[int, Group], spans: dict[int, Span], shape: tuple[int, ...]) -> Selection:
    """The selection by these index arrays, each along an axis of its own, and by spans."""
    numbers = {k: n for n, k in enumerate(sorted(by_dim))}
    groups = [Group(group.arrays, (numbers[k],), group.shape) for k, group in by_dim.items()]
    axes = [Axis(array=numbers[k]) if k in numbers else Axis(k) for k in range(len(shape))]
    broadcast = tuple(by_dim[k].shape[0] for k in sorted(by_dim))
    return Selection({}, spans, groups, broadcast, True, axes, shape)


@frozen
class _IndexArray:
    """An index array of one dimension, or with `array` None a boolean scalar."""

    array: Ints
    mask: bool = False
    consumes: int = 1


_Item: TypeAlias = "int | slice | _IndexArray | None"


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """An index key and a shape -> the Selection.

    Raises IndexError, worded as NumPy's, where NumPy does.
    """
    items = _expand(key, shape)
    out = Selection()
    groups: list[Ints] = []
    dims: list[int] = []
    advanced = any(isinstance(item, _IndexArray) for item in items)
    state, arrays_at, dim = "before", 0, 0
    for item in items:
        if isinstance(item, _IndexArray) or (advanced and isinstance(item, int)):
            if state == "before":
                state, arrays_at = "inside", len(out.axes)
            elif state == "behind":
                state, arrays_at = "apart", 0
        elif state == "inside":
            state = "behind"
        match item:
            case None:
                out.axes.append(Axis())
            case slice():
                if item.step == _EMPTY_ELLIPSIS:
                    continue
                start, stop, step = item.indices(shape[dim])
                out.spans[dim] = Span(start, step, len(range(start, stop, step)))
                out.axes.append(Axis(dim))
                dim += 1
            case int():
                out.integers[dim] = _checked_integer(item, dim, shape[dim])
                dim += 1
            case _IndexArray():
                groups.append(_checked_array(item, dim, shape))
                dims.append(dim if item.consumes else -1)
                dim += item.consumes
    if advanced:
        _broadcast_arrays(out, groups, dims, arrays_at)
    out.shape = tuple(_extent(axis, out) for axis in out.axes)
    return out


_EMPTY_ELLIPSIS = "ellipsis of nothing"


def _extent(axis: Axis, selection: Selection) -> int:
    if axis.dim is not None:
        return selection.spans[axis.dim].count
    return 1 if axis.array is None else selection.broadcast[axis.array]


def _broadcast_arrays(out: Selection, groups: list[Ints], array_dims: list[int], arrays_at: int) -> None:
    """Broadcast the index arrays to their common shape, whose dimensions stand at `arrays_at` in the result."""
    try:
        out.broadcast = common_shape("index", [g.shape for g in groups])
    except ValueError:
        shapes = " ".join(str(g.shape) for g in groups)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes} "
        ) from None
    out.has_arrays = True
    rank = len(out.broadcast)
    arrays = {d: g.reshape((1,) * (rank - g.ndim) + g.shape) for d, g in zip(array_dims, groups, strict=True) if d >= 0}
    out.groups = [_group(arrays, dims, out.broadcast) for dims in _common_axes(arrays)]
    out.axes[arrays_at:arrays_at] = [Axis(array=k) for k in range(len(out.broadcast))]


def _common_axes(arrays: dict[int, Ints]) -> list[set[int]]:
    """Connected groups of dimensions: those whose index arrays vary along a common axis."""
    parts: list[tuple[set[int], set[int]]] = []
    for d, array in arrays.items():
        axes = {k for k, n in enumerate(array.shape) if n != 1}
        joined = [p for p in parts if p[1] & axes]
        parts = [p for p in parts if not p[1] & axes]
        parts.append(({d}.union(*(p[0] for p in joined)), axes.union(*(p[1] for p in joined))))
    return [dims for dims, _ in parts]


def _group(arrays: dict[int, Ints], dims: set[int], broadcast: tuple[int, ...]) -> Group:
    axes = tuple(sorted({k for d in dims for k, n in enumerate(arrays[d].shape) if n != 1}))
    extents = tuple(n if k in axes else 1 for k, n in enumerate(broadcast))
    flat = {d: _spread(arrays[d], extents) for d in sorted(dims)}
    return Group(flat, axes, tuple(broadcast[k] for k in axes))


def _spread(array: Ints, extents: tuple[int, ...]) -> Ints:
    """The elements of an array that is broadcast to some extents, row-major."""
    whole = array if array.shape == extents else np.broadcast_to(array, extents)
    return np.ascontiguousarray(whole).reshape(-1)


def _expand(key: Any, shape: tuple[int, ...]) -> list[_Item]:
    """The key's items, one per dimension, arrays of truth values as the arrays of their places."""
    listed = key if isinstance(key, tuple) else (key,)
    if sum(item is Ellipsis for item in listed) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    items: list[Any] = []
    used = 0
    for item in listed:
        if item is Ellipsis or item is None or isinstance(item, slice):
            items.append(item)
            used += isinstance(item, slice)
            continue
        entry = _classify(item, used)
        items.append(entry)
        used += entry[0].ndim if isinstance(entry, tuple) else 1
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    full = [slice(None)] * (len(shape) - used) or [slice(None, None, _EMPTY_ELLIPSIS)]
    ellipsis_at = next((n for n, item in enumerate(items) if item is Ellipsis), None)
    if ellipsis_at is not None:
        items[ellipsis_at : ellipsis_at + 1] = full
    elif used < len(shape):
        items += full
    out: list[_Item] = []
    dim = 0
    for item in items:
        if isinstance(item, tuple):
            places = _mask_coordinates(item[0], shape[dim : dim + item[0].ndim], dim)
            out += [_IndexArray(p, True, int(item[0].ndim > 0)) for p in places]
            dim += item[0].ndim
        else:
            out.append(item)
            dim += item is not None and not (isinstance(item, slice) and item.step == _EMPTY_ELLIPSIS)
    return out


class _Mask:
    """A mask, dense or a sparse Tensor: its shape, and the places where it is true."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask
        self.shape: tuple[int, ...] = tuple(mask.shape)
        self.ndim = len(self.shape)

    def nonzero(self) -> list[Ints]:
        if isinstance(self.mask, np.ndarray):
            return [np.asarray(p, np.int64) for p in np.nonzero(self.mask)]
        return true_places(self.mask)


def true_places(mask: Tensor) -> list[Ints]:
    """The coordinates of a mask's true elements, row-major, as NumPy's `nonzero` gives them."""
    if mask.format.is_dense or mask.fill_value:
        return [np.asarray(p, np.int64) for p in np.nonzero(mask.to_numpy())]
    coordinates = mask.coalesce()
    nonzeros = np.flatnonzero(to_numpy(coordinates.values))
    return [to_numpy(coordinates._storage.crd[d])[nonzeros].astype(np.int64) for d in range(mask.ndim)]


def _classify(item: Any, dim: int) -> Any:
    """An item of a key that is no slice -> an int, an `_IndexArray`, or a tuple of one `_Mask`."""

    if isinstance(item, Tensor):
        if item._storage.scalar == "bool":
            return (_Mask(item),)
        item = item.to_numpy()
    elif is_torch(item):
        item = to_numpy(item)
    if isinstance(item, bool | np.bool_):
        return (_Mask(np.asarray(item)),)
    if not isinstance(item, np.ndarray | list | tuple):
        try:
            return operator.index(item)
        except TypeError:
            if not hasattr(item, "__array__") and not hasattr(item, "__len__"):
                raise IndexError(_VALID_KINDS) from None
    try:
        array = np.asarray(item)
    except ValueError as error:
        raise IndexError(f"an index of nested lists is not an array: {error}") from None
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype == np.bool_:
        return (_Mask(array),)
    if array.dtype.kind not in "iu":
        is_number = array.ndim == 0 or not isinstance(item, np.ndarray)
        raise IndexError(_VALID_KINDS if is_number else "arrays used as indices must be of integer (or boolean) type")
    return int(array) if array.ndim == 0 else _IndexArray(array.astype(np.int64))


def _mask_coordinates(mask: _Mask, shape: tuple[int, ...], dim: int) -> list[Ints]:
    """A mask -> the index arrays of its true elements."""
    for k, (n, extent) in enumerate(zip(mask.shape, shape, strict=True)):
        if n and n != extent:  # NumPy takes an extent of 0 on any axis: nothing is true
            raise IndexError(
                f"boolean index did not match indexed array along axis {dim + k}; size of axis is {extent}"
                f" but size of corresponding boolean axis is {n}"
            )
    return [np.arange(int(mask.mask), dtype=np.int64)] if mask.ndim == 0 else mask.nonzero()


def _checked_integer(index: int, dim: int, extent: int) -> int:
    if not -extent <= index < extent:
        raise IndexError(f"index {index} is out of bounds for axis {dim} with size {extent}")
    return index + extent * (index < 0)


def _checked_array(item: _IndexArray, dim: int, shape: tuple[int, ...]) -> Ints:
    """The coordinates of an index array, negative ones counted from the end; IndexError beyond the extent."""
    return item.array if item.mask else within(item.array, shape[dim], dim)


def within(array: Ints, extent: int, dim: int) -> Ints:
    """Coordinates along a dimension, negative ones counted from the end; IndexError beyond the extent."""
    if array.size:
        low, high = int(array.min()), int(array.max())
        if high >= extent or low < -extent:
            bad = array[(array >= extent) | (array < -extent)].reshape(-1)[0]
            raise IndexError(f"index {int(bad)} is out of bounds for axis {dim} with size {extent}")
        if low < 0:
            array = np.where(array < 0, array + extent, array)
    return array

"""A tensor and an index key -> the selected tensor: integers, slices, None, index arrays and masks, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...codegen.plan_cache import PlanCache
from ...format import build, coo
from ...format import format as parse
from ...format.cached import cached
from ...format.expression import Dim, rename
from ...format.format import Format, Level
from ...provided import provides
from ...runtime import trace
from ...runtime.conversion.assembly import full
from ...runtime.conversion.convert import convert
from ...runtime.conversion.remap import NAMES, IndexMap, remap
from ...runtime.gradient_hook import differentiable
from ...runtime.leading_slice import (
    FEW_ROWS,
    RowGather,
    drop_outer,
    join_outer,
    outer_dim,
    pick,
    slice_outer,
    take_outer,
)
from ...runtime.library_errors import sized
from ...runtime.locate import ABSENT, SEVERAL, locator
from ...runtime.moves import LITTLE, Moved, is_untracked, key_of, moved
from ...runtime.outer_ranges import ranges_of, slice_range
from ...runtime.overrides import answering
from ...storage.buffers import PLAIN_TENSORS, is_torch, length, to_numpy
from ...storage.iso import has_one_value
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..result_format import ROOM, dense_array, from_dense_array, little_format, sum_at_origin, to_result_format
from .batches import batch_slices
from .keys import Axis, Ints, Selection, Span, select, split_off, within
from .selection_map import write_selection
from .take_inner import inner_coordinates, take_inner

SCALAR = parse("() -> ()")

__all__ = ["host_key", "index", "index_selection", "insert_dims", "outermost_coordinates", "position_of"]


@provides("index")
def index(t: Tensor, key: Any) -> Tensor:
    """`t[key]`.

    Parameters
    ----------
    t : Tensor, any format and fill value
    key : integers, slices, `...`, `None`, integer and boolean arrays (lists, NumPy, torch, Tensors, sparse masks
        too), or a tuple of these

    Returns
    -------
    Tensor, of the shape and elements that NumPy gives; canonical, in the format of `t` where the rank stays and it
    suits, else csr, csf, bitmap or coo. Ranges of the outermost level share crd and values.

    Cost: O(nse + places that arrays name); O(rows taken) for ranges of the outermost level.
    Raises IndexError, worded as NumPy's.

    Examples
    --------
    >>> A = asarray([[0, 1], [2, 0]], format="csr")
    >>> A[1].to_numpy()
    array([2, 0])
    """
    if type(t) is not Tensor or trace.steps:
        return _index(t, key)
    key_type, s = type(key), t._storage
    if (s._signature or s.signature) < 0:  # iso
        return _with_one_value(s, _index(t, key))
    found = None
    if key_type is tuple:
        by_arrays = key and type(key[-1]) is np.ndarray
        found = (_points if by_arrays else _element)(s, key) if type(s.values) is np.ndarray else None
    elif key_type in _ARRAYS or key_type in PLAIN_TENSORS:
        is_plain = type(s.values) is np.ndarray or is_untracked(s.values)
        found = _rows(s, key if key_type in _ARRAYS else host_key(key)) if is_plain else None
    if found is not None:
        return Tensor._from_storage(found)
    named = key_of(key)
    if named is not None:
        little = moved((s,), ("index", named), lambda: _moved(s, select(key, s.shape)))
    else:
        little = _moved_by_arrays(s, key) if key_type is tuple else None
    return _index(t, key) if little is None else Tensor._from_storage(little)


def _moved_by_arrays(s: Storage, key: tuple[Any, ...]) -> Storage | None:
    """A selection by index arrays of a tensor of little data, by one launch whose arguments they are."""
    if length(s.values) > LITTLE or s.format.is_dense or not all(type(k) in _BESIDE_ARRAYS for k in key):
        return None
    selection = select(key, s.shape)
    format = little_format(s.format, selection.shape) if selection.has_arrays and selection.axes else None
    if format is None:
        return None
    index_map = IndexMap()
    write_selection(index_map, selection, s)
    words = tuple(index_map.words[name] for name in index_map.scalars)
    order = (*index_map.rises.items(), "last", *index_map.rises_last.items())
    statement = ("index arrays", index_map.remap, words, order, index_map.most, selection.shape)
    return moved((s,), statement, lambda: Moved((index_map,), selection.shape, format), index_map.arrays)


_ARRAYS = frozenset({list, np.ndarray})
_BESIDE_ARRAYS = frozenset({int, slice, list, np.ndarray, type(None), type(Ellipsis)})


def _moved(s: Storage, selection: Selection) -> Moved | None:
    """A selection as a move; None where it shares the storage's memory, copies rows, or is one element."""
    d = outer_dim(s.format)
    if selection.has_arrays and outermost_coordinates(selection, d, s.shape, length(s.values)) is not None:
        return None
    whole_beside = not selection.has_arrays and all(
        span.covers(s.shape[k]) for k, span in selection.spans.items() if k != d
    )
    if not selection.axes or (whole_beside and set(selection.integers) <= {d}):
        return None
    format = little_format(s.format, selection.shape)
    if format is None:
        return None
    index_map = IndexMap()
    write_selection(index_map, selection, s)
    return Moved((index_map,), selection.shape, format)


def _with_one_value(s: Storage, selected: Tensor) -> Tensor:
    """A selection from a storage whose elements are one value: over that alone where all its values are, which sums,
    padding, and elements that blocks store beside those of the storage are not."""
    out = selected._storage
    if out.format.is_dense or out.is_iso or not length(out.values) or not has_one_value(to_numpy(out.values)):
        return selected
    return Tensor._from_storage(out.with_one_value(out.values, s.fill_value))


def position_of(s: Storage, key: tuple[Any, ...]) -> int | None:
    """The position of the element at integers, ABSENT where none is stored; None for a key or format not covered."""
    shape = s.shape
    if len(key) != len(shape):
        return None
    coordinates = []
    for k, n in zip(key, shape, strict=True):
        if type(k) is not int or not -n <= k < n:
            return None
        coordinates.append(k if k >= 0 else k + n)
    search = _by_types(s, "element", locator)
    position = SEVERAL if search is None else search(s, coordinates)
    return None if position == SEVERAL else position


def _element(s: Storage, key: tuple[Any, ...]) -> Storage | None:
    """One element, by a search on the host; None for a key or a format that it does not cover."""
    position = position_of(s, key)
    if position is None:
        return None
    fill = s.fill_value
    values = s.values[position : position + 1] if position != ABSENT else np.array([fill], s.values.dtype)
    return Storage((), SCALAR, s.scalar, fill, (), (), values)


def _points(s: Storage, key: tuple[Any, ...]) -> Storage | None:
    """The elements of a matrix at pairs of integers, by two arrays of one length; None for any other key or format."""
    if len(key) != 2 or len(s.shape) != 2 or not s.format.is_unique:
        return None
    for k in key:
        if type(k) is not np.ndarray or k.ndim != 1 or k.dtype.kind not in "iu" or k.dtype == np.uint64:
            return None
    if not 0 < key[0].shape[0] == key[1].shape[0] <= length(s.values):
        return None
    return pick(s, {d: within(k.astype(np.int64), s.shape[d], d) for d, k in enumerate(key)})


def _rows(s: Storage, key: Any) -> Storage | None:
    """Rows by a list or an array of integers or a mask, by two launches; None for a key or a format that they do not
    cover."""
    if type(key) is list:
        if not 0 < len(key) <= FEW_ROWS or any(type(k) is not int for k in key):
            return None
        rows = np.array(key)
    else:
        rows = key
    if rows.ndim != 1:
        return None
    if rows.dtype == np.bool_:
        if rows.shape[0] != s.shape[0] or rows is not key:
            return None
        rows = rows.nonzero()[0]
    elif rows is key:
        if rows.dtype.kind not in "iu" or rows.dtype == np.uint64:
            return None
        rows = rows.astype(np.int64)
    elif rows.dtype != np.int64:
        return None
    gather = _by_types(s, "rows", RowGather.of)
    return None if gather is None else gather(s, rows)


def _by_types(s: Storage, kind: str, make: Callable[[Storage], Any]) -> Any:
    """How selections of a kind are taken from storages of the types and shape of this one; None where they are not."""
    key = kind, s._signature or s.signature, s.shape
    way = _WAYS.get(key)
    if way is None:
        way = _WAYS.keep(key, (None if s.format.is_dense or not s.shape else make(s)) or False)
    return way or None


_WAYS: PlanCache[Any, Any] = PlanCache("elements and rows", 1 << 12)


@answering
@sized
@differentiable(lambda t, key: (t.values,))
def _index(t: Tensor, key: Any) -> Tensor:
    if t.format.is_dense:
        select(key, t.shape)
        return from_dense_array(dense_array(t)[host_key(key)], t)
    return index_selection(t, select(key, t.shape))


def host_key(key: Any) -> Any:
    """The key with arrays of other libraries as NumPy's."""
    if isinstance(key, tuple):
        return tuple(host_key(item) for item in key)
    if isinstance(key, Tensor):
        return key.to_numpy()
    return to_numpy(key) if is_torch(key) else key


@differentiable(lambda t, selection: (t.values,))
def index_selection(t: Tensor, selection: Selection) -> Tensor:
    """The elements that a selection names, of a tensor whose format is not dense."""
    storage, like = t._storage, t.format
    if like.batch_ndim and (cut := batch_slices(storage, selection)) is not None:
        storage, selection = cut
        like = storage.format
    no_new_axes = not selection.has_arrays and all(axis.dim is not None for axis in selection.axes)
    d = outer_dim(like)
    if d is not None and not selection.axes and not selection.has_arrays:
        scalar = element(storage, selection.integers)
        if scalar is not None:
            return scalar
    if d is not None:
        storage = _slice_outermost(storage, selection, d)
        if no_new_axes and not selection.integers and _spans_are_whole(selection, storage.shape):
            return Tensor._from_storage(storage)
        if no_new_axes and set(selection.integers) == {d} and _spans_are_whole(selection, storage.shape):
            dropped = drop_outer(storage)
            if dropped is not None:
                return Tensor._from_storage(dropped)
    if not selection.integers and not selection.has_arrays and _spans_are_whole(selection, storage.shape):
        new = tuple(k for k, axis in enumerate(selection.axes) if axis.dim is None)
        if not new and like.is_unique and like.is_ordered:
            return Tensor._from_storage(storage)
        if new and like.is_unique and like.is_ordered:
            return Tensor._from_storage(insert_dims(storage, new))
    rows = outermost_coordinates(selection, d, storage.shape, length(storage.values))
    if rows is not None:
        gathered = take_outer(storage, rows)
        if gathered is not None:
            return Tensor._from_storage(gathered)
    split = None if d is None else split_off(selection, d, storage.shape)
    if split is not None:
        rows = outermost_coordinates(split[0], d, storage.shape, length(storage.values))
        gathered = None if rows is None or len(rows) > storage.shape[d or 0] else take_outer(storage, rows)
        if gathered is not None:
            return index_selection(Tensor._from_storage(gathered), split[1])
    columns = inner_coordinates(selection, storage)
    if columns is not None:
        taken = take_inner(storage, columns)
        if taken is not None:
            return Tensor._from_storage(taken)
    group = selection.groups[0] if len(selection.groups) == 1 else None
    if group is not None and len(selection.shape) == len(selection.broadcast) == len(group.shape) == 1:
        is_pick = len(group.arrays) == 2 and group.shape[0] <= length(storage.values)
        picked = pick(storage, group.arrays) if is_pick else None
        if picked is not None:
            return Tensor._from_storage(picked)
    return _remap_selection(storage, like, selection)


def element(storage: Storage, coordinates: dict[int, int]) -> Tensor | None:
    """One element, by slicing one level after the other; None where a level cannot be sliced."""
    remaining = [coordinates[d] for d in range(len(storage.shape))]
    while True:
        d = outer_dim(storage.format)
        if d is None:
            return None
        k = remaining.pop(d)
        storage = slice_outer(storage, k, k + 1)
        if not remaining:
            break
        inner = drop_outer(storage)
        if inner is None:
            return None
        storage = inner
    if length(storage.values) > 1:
        return None
    values = storage.values if length(storage.values) else full(1, storage.scalar, storage.fill_value, storage.like)
    return Tensor._from_storage(Storage((), SCALAR, storage.scalar, storage.fill_value, (), (), values))


def _spans_are_whole(selection: Selection, shape: tuple[int, ...]) -> bool:
    return all(span.covers(shape[d]) for d, span in selection.spans.items())


def _slice_outermost(storage: Storage, selection: Selection, d: int) -> Storage:
    """Cut the outermost dimension to the range that the selection leaves of it."""
    k = selection.integers.get(d)
    if k is not None:
        selection.integers[d] = 0
        return slice_outer(storage, k, k + 1)
    span = selection.spans.get(d)
    if span is None or span.step != 1 or span.covers(storage.shape[d]):
        return storage
    selection.spans[d] = Span(0, 1, span.count)
    return slice_outer(storage, span.start, span.start + span.count)


def outermost_coordinates(selection: Selection, d: int | None, shape: tuple[int, ...], stored: int) -> Ints | None:
    """The coordinates of the outermost dimension that are taken, where that is all that the selection does, and where
    they are not many more than the elements that are stored."""
    if d is None or selection.integers or len(selection.axes) != len(shape):
        return None
    if any(not span.covers(shape[k]) for k, span in selection.spans.items() if k != d):
        return None
    if selection.has_arrays:
        single = selection.groups[0].only if len(selection.groups) == 1 else None
        axes = [Axis(k) if k != d else Axis(array=0) for k in range(len(shape))]
        return single[1] if single is not None and single[0] == d and selection.axes == axes else None
    if any(axis.dim is None for axis in selection.axes):
        return None
    span = selection.spans[d]
    if span.count > ROOM + 8 * stored:
        return None
    return np.arange(span.count, dtype=np.int64) * span.step + span.start


def _remap_selection(storage: Storage, like: Format, selection: Selection) -> Tensor:
    """Any selection, by a remap of the stored elements."""
    joined = _remap_ranges(storage, like, selection)
    if joined is not None:
        return joined
    storage = _range_of_integer(storage, selection)
    index_map = IndexMap()
    write_selection(index_map, selection, storage)
    if not selection.shape:
        index_map.coordinates, index_map.free = ["0"], [0]
        return sum_at_origin(remap([(storage, index_map)], (1,), "indexing"))
    return to_result_format(remap([(storage, index_map)], selection.shape, "indexing"), like)


def _remap_ranges(storage: Storage, like: Format, selection: Selection) -> Tensor | None:
    """The same range by range, where the selection has a slice of the outermost dimension; None where it does not."""
    found = ranges_of(storage)
    if found is None or Axis(found[0]) not in selection.axes or not selection.spans[found[0]].count:
        return None
    d, ranges = found
    span = selection.spans[d]
    r, ndim = selection.axes.index(Axis(d)), len(selection.shape)
    order = [r, *(k for k in range(ndim) if k != r)]
    parts = []
    for first, last in ranges if span.step > 0 else reversed(ranges):
        inside = _within(span, first, last)
        if not inside.count:
            continue
        part = replace(selection, spans={**selection.spans, d: inside})
        part.shape = (*selection.shape[:r], inside.count, *selection.shape[r + 1 :])
        index_map, source = IndexMap(), slice_range(storage, first, last)
        write_selection(index_map, part, source)
        selected = remap([(source, index_map)], part.shape, "indexing").permute(order)
        parts.append(convert(selected, coo(ndim)).copied())
    joined = join_outer(parts)
    if joined is None:
        return None
    return to_result_format(joined.permute(np.argsort(order).tolist()), like)


def _range_of_integer(storage: Storage, selection: Selection) -> Storage:
    """Of a large storage the range that has the one coordinate of the outermost dimension that is taken."""
    found = ranges_of(storage)
    if found is None or found[0] not in selection.integers:
        return storage
    d, ranges = found
    first, last = next(r for r in ranges if r[0] <= selection.integers[d] < r[1])
    selection.integers[d] -= first
    return slice_range(storage, first, last)


def _within(span: Span, first: int, last: int) -> Span:
    """The coordinates of a span from `first` to `last` - 1, counted from `first`."""
    low, high = (first, last) if span.step > 0 else (last - 1, first - 1)
    begin, end = (min(max(-((span.start - x) // span.step), 0), span.count) for x in (low, high))
    return Span(span.start + begin * span.step - first, span.step, end - begin)


@cached(4096)
def _insert_dense_levels(format: Format, new: tuple[int, ...]) -> Format:
    """The format of a tensor with dimensions of extent 1 at `new`, dense levels in front of all but the batch."""
    rank = format.ndim + len(new)
    position = [r for r in range(rank) if r not in new]
    levels = [Level(rename(level.expression, position), level.format) for level in format.levels]
    batch = format.batch_ndim
    levels[batch:batch] = [build.dense(Dim(r)) for r in new]
    return Format(NAMES[:rank], tuple(levels))


def insert_dims(s: Storage, new: tuple[int, ...]) -> Storage:
    """The storage with dimensions of extent 1 at the places `new` of the result, over the same buffers."""
    extents = iter(s.shape)
    shape = tuple(1 if r in new else next(extents) for r in range(len(s.shape) + len(new)))
    no_buffers = (None,) * len(new)
    batch = s.format.batch_ndim
    pos, crd = ((*group[:batch], *no_buffers, *group[batch:]) for group in (s.pos, s.crd))
    return Storage(shape, _insert_dense_levels(s.format, new), s.scalar, s.fill_value, pos, crd, s.values)

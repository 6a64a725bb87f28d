"""Compressed rows and an index array of their last dimension -> the elements taken, row by row."""

from __future__ import annotations

import numpy as np

from ...codegen import cache as kernels
from ...codegen import pool
from ...codegen.executable import Executable
from ...codegen.plan_cache import planned
from ...compiler.take_inner import count_kernel, take_kernel
from ...format.expression import Dim
from ...ir.rewrite import with_one_element
from ...runtime.conversion.remap import has_gaps
from ...runtime.launch import even_bounds
from ...storage.buffers import as_array, empty, length, scalar_of, to_numpy
from ...storage.iso import element, is_iso
from ...storage.storage import Storage
from .key_join import table
from .keys import Axis, Ints, Selection

__all__ = ["inner_coordinates", "take_inner"]

_LARGEST = 1 << 31


def inner_coordinates(selection: Selection, s: Storage) -> Ints | None:
    """The coordinates of the last level that are taken, where that is all that the selection does and the other levels
    are dense, the last one compressed."""
    levels = s.format.levels
    if len(s.shape) < 2 or len(selection.groups) != 1 or selection.integers or len(selection.axes) != len(s.shape):
        return None
    single, last = selection.groups[0].single, levels[-1]
    if single is None or not isinstance(last.expression, Dim) or single[0] != last.expression.index:
        return None
    kind = last.format
    if not (kind.is_compressed and kind.unique and kind.ordered) or has_gaps(s):
        return None
    if any(not isinstance(x.expression, Dim) or x.format.buffers or x.format.batched for x in levels[:-1]):
        return None
    d = single[0]
    if selection.axes != [Axis(k) if k != d else Axis(array=0) for k in range(len(s.shape))]:
        return None
    return single[1] if all(span.covers(s.shape[k]) for k, span in selection.spans.items()) else None


def take_inner(s: Storage, taken: Ints) -> Storage | None:
    """The elements at coordinates `taken` of the last level; None where its extent is much larger than all else."""
    d = s.format.levels[-1].expression.index  # type: ignore[union-attr]
    extent, nse = s.shape[d], length(s.values)
    if extent > 4 * (len(taken) + nse) + 1024 or len(taken) >= _LARGEST:
        return None
    first = np.zeros(1, np.int64)
    places = np.full(extent, -1, np.int32)
    numbers = np.arange(len(taken), dtype=np.int32)
    places[taken] = numbers
    once = bool((places[taken] == numbers).all())
    if not once:
        groups = table(taken, extent, True)
        first, places = groups.start, groups.places.astype(np.int32)
    pos, crd = (to_numpy(x) for x in (s.pos[-1], s.crd[-1]))
    counts = np.empty(len(pos) - 1, np.int64)
    bounds = _bounds(pos)
    types = (scalar_of(pos), scalar_of(crd), "i32")
    kernel = _count(*types, once)
    pool.parallel(kernel, kernel.pack([pos, crd, first, places, counts]), bounds, nse)
    starts = np.zeros(len(pos), np.int64)
    np.cumsum(counts, out=starts[1:])
    wide = starts[-1] >= _LARGEST or types[:2] == ("i64", "i64")
    index = np.int64 if wide else np.int32
    starts, total = starts.astype(index, copy=False), int(starts[-1])
    new_crd, values = np.empty(total, index), empty(total, s.scalar, s.values)
    if total:
        one = is_iso(s.values)
        kernel = _take(*types, scalar_of(starts), s.scalar, once, one)
        ordered = int(once and bool((taken[1:] > taken[:-1]).all()))
        words = [
            pos,
            crd,
            element(s.values) if one else s.values,
            first,
            places,
            starts,
            new_crd,
            values,
            ordered,
            int((pos[1:] - pos[:-1]).max()) + 1,
        ]
        if not once:
            words[-1] = int(counts.max()) + 1
        pool.parallel(kernel, kernel.pack(words), bounds, nse)
    shape = tuple(len(taken) if k == d else n for k, n in enumerate(s.shape))
    none = (None,) * (len(s.shape) - 1)
    arrays = (as_array(x, like=s.values) for x in (starts, new_crd))
    all_pos, all_crd = ((*none, x) for x in arrays)
    return Storage(shape, s.format, s.scalar, s.fill_value, all_pos, all_crd, values)


@planned("kernels of taking coordinates, counts")
def _count(pos: str, crd: str, places: str, once: bool) -> Executable:
    return kernels.get(f"take count {pos} {crd} {places} {once}", lambda: count_kernel(pos, crd, places, once))


@planned("kernels of taking coordinates")
def _take(pos: str, crd: str, places: str, index: str, scalar: str, once: bool, one: bool) -> Executable:
    key, read = f"take inner {pos} {crd} {places} {index} {scalar} {once}{' iso' * one}", ["A"] * one
    return kernels.get(key, lambda: with_one_element(take_kernel(pos, crd, places, index, scalar, once), read))


def _bounds(pos: Ints) -> list[int]:
    """Ranges of rows of about equal numbers of elements, several for each thread."""
    parts, rows = 4 * pool.get_num_threads(), len(pos) - 1
    cuts = np.searchsorted(pos, even_bounds(0, int(pos[-1]), parts)[1:-1])
    return [0, *np.minimum(cuts, rows).tolist(), rows]

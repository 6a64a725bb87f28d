"""A storage, pos or a count -> ranges of about equal work, on which a conversion's kernels run in parallel."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ... import tuning
from ...classes import frozen
from ...codegen import pool
from ...format.level import Iterate
from ...storage.buffers import Array, address, length, to_numpy
from ...storage.storage import Storage
from ..launch import work_bounds

__all__ = ["PARALLEL", "Ranges", "first_positions", "of_numbers", "of_parents", "of_walk"]

PARALLEL = tuning.CONVERSION_PARALLEL


@frozen(slots=False)
class Ranges:
    """Bounds of the ranges, first to last; none of them is empty."""

    bounds: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def array(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(self.bounds, np.int64)

    def words(self) -> dict[str, int]:
        """The arguments of a kernel that looks up the number of its range."""
        return {"ranges": self.count, "bounds": address(self.array)}


def of_walk(storage: Storage, step: int = 1) -> Ranges | None:
    """Ranges of the outermost level of `storage`, cut at multiples of `step`; None where one thread is best."""
    threads = _threads(length(storage.values))
    if threads < 2 or not storage.format.levels:
        return None
    first, *cuts, last = work_bounds(storage, threads)
    return _ranges((first, *(min(cut - cut % step, last) for cut in cuts), last))


def of_parents(pos: Array, elements: int) -> Ranges | None:
    """Ranges of the parents whose children `pos` bounds, with about equal numbers of children."""
    threads = _threads(elements)
    if threads < 2:
        return None
    ends = to_numpy(pos)
    last = len(ends) - 1
    cuts = np.searchsorted(ends, np.linspace(0, int(ends[-1]), threads + 1)[1:-1]).tolist()
    return _ranges((0, *sorted(min(int(cut), last) for cut in cuts), last))


def of_numbers(count: int, elements: int) -> Ranges | None:
    """Even ranges of the numbers 0 to `count`, where `elements` are worth several threads."""
    threads = _threads(elements)
    return None if threads < 2 else _ranges(tuple(count * k // threads for k in range(threads + 1)))


def first_positions(storage: Storage, ranges: Ranges) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """The positions where the values of each range of the outermost level begin; None where pos does not give them."""
    levels, shape = storage.format.levels, storage.shape
    spans = storage.format.level_intervals(shape)
    at = ranges.array.copy()
    if levels[0].format.functions.iterate is Iterate.COORDINATE:
        at -= spans[0][0]
    elif not levels[0].format.is_compressed:
        return None
    for number, level in enumerate(levels[1:], 1):
        pos = storage.pos[number]
        if level.format.is_compressed and pos is not None:
            at = to_numpy(pos)[at].astype(np.int64)
        elif level.format.is_dense:
            at *= spans[number][1] - spans[number][0]
        elif not level.format.is_singleton:
            return None
    return None if storage.format.batch_ndim else at


def _ranges(bounds: tuple[int, ...]) -> Ranges | None:
    """The nonempty ranges; None where there are fewer than two."""
    distinct = tuple(dict.fromkeys(bounds))
    return Ranges(distinct) if len(distinct) > 2 else None


def _threads(elements: int) -> int:
    return pool.get_num_threads() if elements >= PARALLEL else 1

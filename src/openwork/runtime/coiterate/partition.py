"""A merge and its operands -> ranges of the outermost loop of about equal work, and bounds of their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import tuning
from ...codegen import pool
from ...compiler.coiterate.code_size import SLACK
from ...compiler.schedule.coiterate import Bound
from ...errors import SizeError
from ...format.expression import Expression
from ...format.level import Iterate
from ...storage.buffers import itemsize, length, to_numpy
from ...storage.storage import Storage
from .plan import Compiled

__all__ = ["MINIMUM", "capacities", "cut", "work_of"]

LARGEST = 2**60
"""The largest number of positions that a result may have."""
MINIMUM = tuning.MERGE_PARALLEL
PER_THREAD = tuning.MERGE_RANGES
RANGE = tuning.MERGE_RANGE
MOST = tuning.MERGE_MOST_RANGES
SAMPLES = tuning.MERGE_SAMPLES
COARSE = tuning.MERGE_COARSE

Ints: TypeAlias = NDArray[np.int64]
Spans = tuple[tuple[int, int], ...]


def cut(kernel: Compiled, storages: tuple[Storage, ...], spans: Spans, fine: bool) -> list[int]:
    """The bounds of ranges of the outermost loop with about as many elements each; a single range where that is best.

    fine: many ranges, of RANGE elements or so, instead of a few for each thread.
    """
    if not spans:
        return [0, 1]
    lo, hi = spans[0]
    threads = pool.get_num_threads()
    driver = kernel.merge.drivers[0] if kernel.merge.drivers else None
    names = [operand.name for operand in kernel.merge.inputs]
    work = sum(length(s.values) for n, s in zip(names, storages, strict=True) if driver in (None, n))
    if threads == 1 or work < MINIMUM or hi - lo < 2 or not all(map(_divisible, storages)):
        return [lo, hi]
    parts = PER_THREAD * threads
    parts = min(max(parts, min(work // RANGE, MOST)) if fine else parts, hi - lo)
    loop = kernel.merge.order[0]
    firsts = [operand.levels[0] if operand.levels else None for operand in kernel.merge.inputs]
    walked_storages = [s for s, e in zip(storages, firsts, strict=True) if e == loop]

    def before(c: Ints) -> Ints:
        return sum((_before(s, len(s.pos) - 1, c) for s in walked_storages), np.zeros(len(c), np.int64))

    inner = dict.fromkeys(_search(before, lo, hi, parts))
    return [lo, *(c for c in inner if lo < c < hi), hi]


def work_of(storages: Sequence[Storage], spans: Spans) -> int:
    """Elements that a merge may walk: those that are stored, and the coordinates of the outermost loop."""
    return sum(length(s.values) for s in storages) + sum(hi - lo for lo, hi in spans[:1])


def _search(before: Callable[[Ints], Ints], lo: int, hi: int, parts: int) -> list[int]:
    """The first coordinates with k / `parts` of the work before them, for k = 1, 2, ...; approximate where the work
    between samples is a small part of a share."""
    samples = SAMPLES * parts
    places = lo + (hi - lo) * np.arange(samples + 1) // samples
    counts = before(places)
    shares = int(counts[-1]) * np.arange(1, parts) // parts
    at = np.searchsorted(counts, shares)
    first, last = places[np.maximum(at - 1, 0)], places[at]
    if int(np.diff(counts).max()) * parts * COARSE <= int(counts[-1]):
        return last.tolist()  # type: ignore[no-any-return]
    while (first < last).any():
        middle = (first + last) // 2
        below = before(middle) < shares
        first, last = np.where(below & (first < last), middle + 1, first), np.where(below, last, middle)
    return first.tolist()  # type: ignore[no-any-return]


def _divisible(s: Storage) -> bool:
    return not s.format.batch_ndim and not any(level.format.is_loose for level in s.format.levels)


def _before(s: Storage, level: int, c: Ints) -> Ints:
    """For each of c, the number of positions of `level` below coordinates of level 0 that are less than it."""
    spans = s.format.level_intervals(s.shape)
    count = np.zeros(len(c), np.int64)
    for at, (entry, (lo, hi)) in enumerate(zip(s.format.levels[: level + 1], spans, strict=False)):
        functions = entry.format.functions
        if at == 0:
            crd = s.crd[0]
            walked = functions.iterate is Iterate.POSITION and crd is not None
            count = _rank(_used(s), c) if walked else c - lo
        elif functions.iterate is Iterate.COORDINATE:
            count = count * (hi - lo)
        elif s.pos[at] is not None:
            count = to_numpy(s.pos[at])[count].astype(np.int64)
        elif not functions.branchless:
            count = count * entry.format.arguments[0]
    return count


def _rank(sorted_: Any, c: Ints) -> Ints:
    """For each of c, which ascend, the number of sorted values less than it."""
    fits = not len(c) or c[-1] < 2**31 - 1
    return np.searchsorted(sorted_, c.astype(sorted_.dtype) if fits else c)


def _used(s: Storage) -> Any:
    """The coordinates of level 0, without unused slots."""
    crd = to_numpy(s.crd[0])
    if s.format.levels[0].format.functions.padded:
        crd = crd[crd >= 0]
    return crd


def capacities(
    bound: Bound, kernel: Compiled, storages: tuple[Storage, ...], spans: Spans, cuts: Sequence[int]
) -> Ints:
    """The capacity of a chain in each range: a bound of its positions, and slack that kernels may write to."""
    below = math.prod(hi - lo for lo, hi in spans[1 : bound.at + 1])
    sums = [sum(_total_count(storages[n], level, lacks, spans) for n, level, lacks in terms) for terms in bound.sums]
    total_bound = min((cuts[-1] - cuts[0]) * below, *sums) if sums else (cuts[-1] - cuts[0]) * below
    if total_bound > LARGEST:
        shape, nbytes = tuple(hi - lo for lo, hi in spans), total_bound * itemsize(kernel.merge.target.scalar)
        raise SizeError(
            f"elementwise operation: up to {total_bound:,} elements of shape {shape}, {nbytes:,} bytes of values"
            "\n  expected: no more than there is memory for\n  help: take a part of the operands first"
        )
    if len(cuts) == 2:
        return np.array([total_bound], np.int64) + SLACK
    ends = np.array(cuts, np.int64)
    below = min(below, LARGEST)
    most = np.minimum(np.diff(ends), LARGEST // max(below, 1)) * below
    loop = kernel.merge.order[0] if kernel.merge.order else None
    for terms in (t for t, total in zip(bound.sums, sums, strict=True) if total <= LARGEST):
        most = np.minimum(most, np.diff(_terms(terms, kernel, storages, spans, loop, ends)))
    return most + SLACK


def _total_count(s: Storage, level: int, lacks: tuple[int, ...], spans: Spans) -> int:
    count = 1 if level < 0 else length(s.values) if level == len(s.pos) - 1 else s.positions[level]
    return count * math.prod(spans[at][1] - spans[at][0] for at in lacks)


def _terms(
    terms: tuple[tuple[int, int, tuple[int, ...]], ...], kernel: Compiled, storages: tuple[Storage, ...], spans: Spans,
    loop: Expression | None, ends: Ints,
) -> Ints:  # fmt: skip
    """The value of a bound's sum for the coordinates below each of `ends`."""
    total = np.zeros(len(ends), np.int64)
    for number, level, lacks in terms:
        s = storages[number]
        levels = kernel.merge.inputs[number].levels
        if 0 in lacks:
            others = tuple(at for at in lacks if at)
            total += _total_count(s, level, others, spans) * (ends - spans[0][0])
        elif levels[0] == loop:
            total += _before(s, level, ends) * math.prod(spans[at][1] - spans[at][0] for at in lacks)
        else:  # a broadcast dimension comes first: no part of it is smaller than the whole
            total += _total_count(s, level, lacks, spans) * np.arange(len(ends))
    return total

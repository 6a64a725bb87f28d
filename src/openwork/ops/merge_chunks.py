"""A merge in parallel: ranges of the outermost loop of about equal work, and the moves that close the gaps.

Each chunk writes into slots of its own, as many as it can need; counting first would cost as much as computing. What
the chunks used is then moved together, side by side. Results do not depend on how the range is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..codegen import cache, pool
from ..compiler.build import Builder
from ..compiler.conversion.target import Kind, Run
from ..format.expression import Expression
from ..format.level import Iterate
from ..ir.loop import Kernel
from ..storage.buffers import Array, address, empty, length, scalar_of, to_numpy
from ..storage.storage import Storage
from .merge_plan import Bound, Compiled, MergePlan

__all__ = ["capacities", "cut", "gather"]

MINIMUM = 1 << 17
"""Stored elements below which one thread does all."""
PER_THREAD = 2

Spans = tuple[tuple[int, int], ...]


def cut(made: Compiled, storages: tuple[Storage, ...], spans: Spans) -> list[int]:
    """The ends of ranges of the outermost loop that hold about as many elements each; two ends where one will do."""
    if not spans:
        return [0, 1]
    lo, hi = spans[0]
    threads = pool.get_num_threads()
    work = sum(length(s.values) for s in storages)
    if threads == 1 or work < MINIMUM or hi - lo < 2 or not all(map(_divisible, storages)):
        return [lo, hi]
    parts = min(PER_THREAD * threads, hi - lo)
    loop = made.merge.order[0]
    firsts = [given.levels[0] if given.levels else None for given in made.merge.inputs]

    def before(c: int) -> int:
        return sum(_before(s, len(s.pos) - 1, c) for s, e in zip(storages, firsts, strict=True) if e == loop)

    total = before(hi)
    if not total:
        return [lo, hi]
    found = {lo, hi}
    for part in range(1, parts):
        first, last = lo, hi
        while first < last:
            middle = (first + last) // 2
            if before(middle) * parts < total * part:
                first = middle + 1
            else:
                last = middle
        found.add(first)
    return sorted(found)


def _divisible(s: Storage) -> bool:
    return not s.format.batch_ndim and all(level.format.name != "loose_compressed" for level in s.format.levels)


def _before(s: Storage, level: int, c: int) -> int:
    """How many positions of `level` lie below coordinates of level 0 that are less than c."""
    spans = s.format.level_intervals(s.shape)
    count = 0
    for at, (entry, (lo, hi)) in enumerate(zip(s.format.levels[: level + 1], spans, strict=False)):
        functions = entry.format.functions
        if at == 0:
            crd = s.crd[0]
            walked = functions.iterate is Iterate.POSITION and crd is not None
            count = int(np.searchsorted(_used(s), c)) if walked else c - lo
        elif functions.iterate is Iterate.COORDINATE:
            count *= hi - lo
        elif s.pos[at] is not None:
            count = int(s.pos[at][count])  # type: ignore[index]
        elif not functions.branchless:
            count *= entry.format.arguments[0]
    return count


def _used(s: Storage) -> Any:
    """The coordinates of level 0, without unused slots."""
    crd = to_numpy(s.crd[0])
    if s.format.levels[0].format.functions.padded:
        crd = crd[crd >= 0]
    return crd


def capacities(
    bound: Bound, made: Compiled, storages: tuple[Storage, ...], spans: Spans, cuts: Sequence[int]
) -> list[int]:
    """The most positions of a chain in each chunk, one for a position that is tried and not kept included."""
    loop = made.merge.order[0] if made.merge.order else None
    whole = len(cuts) == 2
    marks = [[_terms(bound, made, storages, spans, loop, c) for c in cuts]] if not whole else []
    found = []
    for t, (a, b) in enumerate(pairwise(cuts)):
        most = b - a
        for lo, hi in spans[1 : bound.at + 1]:
            most *= hi - lo
        for k, terms in enumerate(bound.sums):
            if whole:
                most = min(most, sum(_whole(storages[n], level, lacks, spans) for n, level, lacks in terms))
            else:
                most = min(most, marks[0][t + 1][k] - marks[0][t][k])
        found.append(most + 1)
    return found


def _whole(s: Storage, level: int, lacks: tuple[int, ...], spans: Spans) -> int:
    count = 1 if level < 0 else length(s.values) if level == len(s.pos) - 1 else s.positions[level]
    return count * math.prod(spans[at][1] - spans[at][0] for at in lacks)


def _terms(
    bound: Bound, made: Compiled, storages: tuple[Storage, ...], spans: Spans, loop: Expression | None, c: int
) -> list[int]:
    """For each of the bound's sums what lies below coordinate c."""
    sums = []
    for terms in bound.sums:
        total = 0
        for number, level, lacks in terms:
            s = storages[number]
            levels = made.merge.inputs[number].levels
            if 0 in lacks:
                others = tuple(at for at in lacks if at)
                total += _whole(s, level, others, spans) * (c - spans[0][0])
            elif levels[0] == loop:
                inner = math.prod(spans[at][1] - spans[at][0] for at in lacks)
                total += _before(s, level, c) * inner
            else:  # a stretched dimension comes first: no part of it is smaller than the whole
                total += _whole(s, level, lacks, spans) * (0 if c == spans[0][0] else 1)
        sums.append(total)
    return sums


# -- closing the gaps --------------------------------------------------------------------------------------------------


def gather(
    plan: MergePlan,
    spans: Spans,
    cuts: Sequence[int],
    caps: dict[Run, list[int]],
    used: dict[Run, list[int]],
    buffers: tuple[list[Array | None], list[Array | None], Array],
) -> tuple[list[Array | None], list[Array | None], Array]:
    """The buffers of a result in chunks, moved together."""
    pos, crd, values = buffers
    sparse = [run for run in plan.runs if run.kind is Kind.CHAIN]
    if not sparse:
        return pos, crd, values
    begin = np.array(cuts[:-1], np.int64) - spans[0][0]
    width = np.diff(np.array(cuts, np.int64))
    source: Any = begin
    target: Any = begin
    count: Any = width
    for number, run in enumerate(plan.runs):
        if run.kind is not Kind.CHAIN:
            for at in run.levels:
                if at or number:
                    size = spans[at][1] - spans[at][0]
                    source, target, count = source * size, target * size, count * size
            continue
        own = np.array(used[run], np.int64)
        starts = np.array([0, *accumulate(caps[run])][:-1], np.int64)
        goals = np.cumsum(own) - own
        if run.first == 0:
            pos[0][1] = int(own.sum())  # type: ignore[index]
        else:
            edges = _moved(pos[run.first], source + 1, target + 1, count, goals - starts)
            edges[0] = 0
            pos[run.first] = edges
        source, target, count = starts, goals, own
        for at in run.levels:
            crd[at] = _moved(crd[at], source, target, count, None)
    return pos, crd, _moved(values, source, target, count, None)


def _moved(buffer: Array, source: Any, target: Any, count: Any, shift: Any) -> Array:
    """Runs of `count` elements from `source` to `target`, in a new buffer that ends with the last."""
    scalar = scalar_of(buffer)
    out = empty(int(target[-1] + count[-1]), scalar, buffer)
    spans = np.stack([source, target, count, np.zeros_like(count) if shift is None else shift])
    shifted = shift is not None
    executable = cache.get(f"merge move {scalar} {shifted}", lambda: _move_kernel(scalar, shifted))
    chunks = len(count)
    words = (address(buffer), address(out), address(spans), chunks)
    pool.parallel(executable, words, list(range(chunks + 1)))
    return out


def _move_kernel(scalar: str, shifted: bool) -> Kernel:
    builder = Builder("move", ranged=True)
    builder.buffer("x", scalar, wide=shifted)
    builder.buffer("out", scalar, mutable=True, wide=shifted)
    builder.buffer("spans", "i64")
    builder.scalar("chunks")
    value = "x[source + e] + shift" if shifted else "x[source + e]"
    builder.top.run(
        f"""
        for t in range(lo, hi):
            source = spans[t]
            target = spans[chunks + t]
            count = spans[2 * chunks + t]
            shift = spans[3 * chunks + t]
            for e in range(0, count):
                out[target + e] = {value}
        """
    )
    return builder.kernel()

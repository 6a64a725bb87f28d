"""Conversion to one compressed level with located levels below it: blocks, diagonals, hybrids."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ... import tuning
from ...compiler.conversion import Stage
from ...compiler.conversion.append import Pass
from ...compiler.conversion.group import fill_kernel, split_runs, touch_kernel
from ...compiler.conversion.segment_sort import NARROW_BITS
from ...compiler.conversion.target import Kind, runs
from ...format.expression import Dim, Div
from ...format.format import Format
from ...ir.loop import Kernel
from ...storage.buffers import address, empty, length, to_numpy, zeros
from ...storage.storage import Storage
from .append import passes
from .assembly import Assembly, copy
from .bucket import put_in_order
from .radix_sort import sort
from .ranges import Ranges, first_positions, of_walk

__all__ = ["group"]

WIDE = tuning.GROUP_EXTENT


def group(storage: Storage, stage: Stage) -> Storage:
    """Convert in two walks: the children of every parent, then the values."""
    out = Assembly.begin(storage, stage)
    recipe, words = out.recipe, out.words
    stream, target = recipe.stream, recipe.target
    _, chain, _ = split_runs(target)
    lo, hi = out.spans[chain.first]
    if hi - lo > max(WIDE, length(storage.values)):
        return sort(storage, stage)
    parents = out.levels_above(chain, {})
    step = _step(storage.format, stage.target)
    ranges = of_walk(storage, step) if step else None
    starts = None if ranges is None or recipe.padded or stage.drop else first_positions(storage, ranges)
    ranges = None if starts is None else ranges
    most = length(storage.values) if ranges else min(length(storage.values), parents * (hi - lo))
    edges = zeros(parents + 1, out.index, out.like)
    children = empty(most, out.index, out.like)
    out.put("pos", chain.first, edges)
    out.put("crd", chain.first, children)
    if ranges is not None and starts is not None:
        count, longest = _touch(out, ranges, starts, step)
    else:
        recipe.run("touch", lambda: touch_kernel("touch", stream, target), words)
        count, longest = out.total(0), out.total(1)
    out.close(chain, parents)
    bits = max(hi - lo - 1, 0).bit_length()
    words |= {"parents": parents, "room": max(longest, 64), "bits": bits}
    words |= {f"lo{chain.first}": lo, f"shift{chain.first}": 0, f"mask{chain.first}": (1 << bits) - 1}
    put_in_order(out, chain, count, narrow=bits <= NARROW_BITS, merge=False, values=False)
    out.put("crd", chain.first, copy(children[:count]))
    del children
    out.allocate({chain: count}, made=chain)

    def build(task: Pass) -> Callable[[], Kernel]:
        return lambda: fill_kernel("fill_groups", stream, target, task, unique=stage.unique, ranged=ranges is not None)

    for task in passes(out):
        recipe.run(f"group {task.value}", build(task), words, ranges)
    return out.storage()


def _step(source: Format, target: Format) -> int:
    """How many coordinates of the source's outermost level make one parent of the target's; 0 where that is not so."""
    outer, parent = source.levels[0], target.levels[0]
    above = runs(target)[0]
    if above.kind is not Kind.LOCATED or above.last or not outer.format.is_dense or parent.format.buffers:
        return 0
    match parent.expression:
        case Div(base, c) if base == outer.expression and isinstance(base, Dim):
            return c
        case e:
            return int(e == outer.expression)


def _touch(
    out: Assembly, ranges: Ranges, starts: np.ndarray[tuple[int], np.dtype[np.int64]], step: int
) -> tuple[int, int]:
    """List children range by range, and move the lists together; how many there are, and in the longest list."""
    recipe, words = out.recipe, out.words
    stops, most = starts[:-1].copy(), np.zeros(ranges.count, np.int64)
    words |= {"starts": address(starts), "stops": address(stops), "most": address(most), **ranges.words()}
    build = partial(touch_kernel, "touch", recipe.stream, recipe.target, True)
    recipe.run("touch", build, words, ranges)
    _, chain, _ = split_runs(recipe.target)
    edges, children = to_numpy(out.pos[chain.first]), to_numpy(out.crd[chain.first])
    total = int(stops[0] - starts[0])
    for r in range(1, ranges.count):
        first, stop = int(starts[r]), int(stops[r])
        mine = edges[ranges.bounds[r] // step + 1 : -(-ranges.bounds[r + 1] // step) + 1]
        np.subtract(mine, first - total, out=mine, where=mine > 0)
        children[total : total + stop - first] = children[first:stop]
        total += stop - first
    return total, int(most.max())

"""A storage and a stage -> the result in one compressed level with located levels below: blocks, diagonals, hybrids."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ... import tuning
from ...compiler.conversion import Stage
from ...compiler.conversion.append import Pass
from ...compiler.conversion.group import fill_kernel, split_runs, touch_kernel
from ...compiler.conversion.level_runs import Kind, runs
from ...compiler.conversion.segment_sort import NARROW_BITS
from ...format.expression import Dim, Div
from ...format.format import Format
from ...ir.loop import Kernel
from ...storage.buffers import address, empty, length, to_numpy, zeros
from ...storage.storage import Storage
from .append import passes
from .assembly import Assembly, copy
from .bucket import sort_buckets
from .radix_sort import sort
from .ranges import Ranges, first_positions, of_walk

__all__ = ["group"]

WIDE = tuning.GROUP_EXTENT


def group(storage: Storage, stage: Stage) -> Storage:
    """Convert in two walks: the children of every parent, then the values."""
    out = Assembly.begin(storage, stage)
    kernels, arguments = out.kernels, out.words
    stream, target = kernels.stream, kernels.target
    _, chain, _ = split_runs(target)
    lo, hi = out.spans[chain.first]
    if hi - lo > max(WIDE, length(storage.values)):
        return sort(storage, stage)
    parents = out.levels_above(chain, {})
    step = _parent_extent(storage.format, stage.target)
    ranges = of_walk(storage, step) if step else None
    starts = None if ranges is None or kernels.padded or stage.drop else first_positions(storage, ranges)
    ranges = None if starts is None else ranges
    capacity = length(storage.values) if ranges else min(length(storage.values), parents * (hi - lo))
    pos = zeros(parents + 1, out.index, out.like)
    children = empty(capacity, out.index, out.like)
    out.put("pos", chain.first, pos)
    out.put("crd", chain.first, children)
    if ranges is not None and starts is not None:
        count, longest = _list_children(out, ranges, starts, step)
    else:
        kernels.run("touch", lambda: touch_kernel("touch", stream, target), arguments)
        count, longest = out.total(0), out.total(1)
    out.close(chain, parents)
    bits = max(hi - lo - 1, 0).bit_length()
    arguments |= {"parents": parents, "room": max(longest, 64), "bits": bits}
    arguments |= {f"lo{chain.first}": lo, f"shift{chain.first}": 0, f"mask{chain.first}": (1 << bits) - 1}
    sort_buckets(out, chain, count, narrow=bits <= NARROW_BITS, merge=False, values=False)
    out.put("crd", chain.first, copy(children[:count]))
    del children
    out.allocate({chain: count}, assembled=chain)

    def build(task: Pass) -> Callable[[], Kernel]:
        return lambda: fill_kernel("fill_groups", stream, target, task, unique=stage.unique, ranged=ranges is not None)

    for task in passes(out):
        kernels.run(f"group {task.value}", build(task), arguments, ranges)
    return out.storage()


def _parent_extent(source: Format, target: Format) -> int:
    """The number of coordinates of the source's outermost level in one parent of the target's; 0 where none is."""
    outer, parent = source.levels[0], target.levels[0]
    above = runs(target)[0]
    if above.kind is not Kind.LOCATED or above.last or not outer.format.is_dense or parent.format.buffers:
        return 0
    match parent.expression:
        case Div(base, c) if base == outer.expression and isinstance(base, Dim):
            return c
        case e:
            return int(e == outer.expression)


def _list_children(
    out: Assembly, ranges: Ranges, starts: np.ndarray[tuple[int], np.dtype[np.int64]], step: int
) -> tuple[int, int]:
    """List children range by range, and concatenate the lists; the number of children, and of the longest list."""
    kernels, arguments = out.kernels, out.words
    stops, longest = starts[:-1].copy(), np.zeros(ranges.count, np.int64)
    arguments |= {"starts": address(starts), "stops": address(stops), "most": address(longest), **ranges.words()}
    build = partial(touch_kernel, "touch", kernels.stream, kernels.target, True)
    kernels.run("touch", build, arguments, ranges)
    _, chain, _ = split_runs(kernels.target)
    pos, children = to_numpy(out.pos[chain.first]), to_numpy(out.crd[chain.first])
    total = int(stops[0] - starts[0])
    for r in range(1, ranges.count):
        first, stop = int(starts[r]), int(stops[r])
        ends = pos[ranges.bounds[r] // step + 1 : -(-ranges.bounds[r + 1] // step) + 1]
        np.subtract(ends, first - total, out=ends, where=ends > 0)
        children[total : total + stop - first] = children[first:stop]
        total += stop - first
    return total, int(longest.max())

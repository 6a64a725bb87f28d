"""A storage and a stage -> the result of a counting sort: histogram, prefix sum, scatter, buckets sorted if needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ... import tuning
from ...compiler.conversion import Stage
from ...compiler.conversion.bucket import (
    distribute_kernel,
    histogram_kernel,
    partition_kernel,
    scan_kernel,
    scatter_kernel,
    sum_kernel,
)
from ...compiler.conversion.level_runs import Run
from ...compiler.conversion.segment_sort import KEY_BITS, NARROW_BITS, join_kernel, order_kernel
from ...compiler.conversion.stream import Walked, dimension_of_last
from ...format.expression import Dim
from ...ir.loop import Kernel
from ...storage.buffers import address, empty, length, numpy_dtype, to_numpy, zeros
from ...storage.storage import Storage
from .assembly import Assembly
from .conversion_kernels import StageKernels, call
from .radix_sort import sort
from .ranges import Ranges, of_numbers, of_parents, of_walk

__all__ = ["bucket", "sort_buckets"]

LARGE = tuning.SCATTER_LARGE
PREFETCHED = tuning.SCATTER_PREFETCHED
MANY = tuning.SCATTER_PARENTS
PROBE = tuning.SCATTER_PROBE
NEIGHBOURHOODS = tuning.SCATTER_NEIGHBOURHOODS


def bucket(storage: Storage, stage: Stage) -> Storage:
    """Convert to located levels with one compressed chain below."""
    out = Assembly.begin(storage, stage)
    chain = out.runs[-1]
    merge = not (stage.unique or stage.keep)
    bits = [max(out.spans[at][1] - out.spans[at][0] - 1, 0).bit_length() for at in chain.levels]
    ordered = stage.sort or merge
    if ordered and sum(bits) > KEY_BITS:
        return sort(storage, stage)
    kernels, arguments = out.kernels, out.words
    stream = _stream(kernels, chain)
    parents = out.levels_above(chain, {})
    out.put("pos", chain.first, zeros(parents + 1, out.index, out.like))
    arguments["pos"], arguments["parents"] = arguments[f"b_pos{chain.first}"], parents
    arguments["probe"] = PROBE if length(storage.values) >= LARGE and parents > MANY else 0
    ranges = None if stream.tiled else of_walk(storage)
    if ranges is not None and ranges.count * parents > length(storage.values):
        ranges = None
    count, longest = _distribute(out, chain, stream, ranges)
    if ordered:
        arguments |= {"room": max(longest, 64), "bits": sum(bits)}
        for number, at in enumerate(chain.levels):
            arguments[f"lo{at}"], arguments[f"shift{at}"] = out.spans[at][0], sum(bits[number + 1 :])
            arguments[f"mask{at}"] = (1 << bits[number]) - 1
        sort_buckets(out, chain, count, narrow=sum(bits) <= NARROW_BITS, merge=merge)
        if merge and out.total(0) < count:
            _trim(out, chain, out.total(0))
    return out.storage()


def _distribute(out: Assembly, chain: Run, stream: Walked, ranges: Ranges | None) -> tuple[int, int]:
    """Scatter every element to its bucket, in the order of the walk; their number, and that of the longest bucket."""
    kernels, arguments, target = out.kernels, out.words, out.kernels.target
    ranged = ranges is not None
    if ranges is not None:
        counts = np.zeros(ranges.count * (arguments["parents"] + 1), numpy_dtype(out.index))
        arguments |= {"counts": address(counts), **ranges.words()}
    kernels.run("histogram", lambda: histogram_kernel("histogram", stream, target, ranged), arguments, ranges)
    if ranged:
        call(f"scan ranges {out.index}", partial(sum_kernel, out.index), arguments)
    else:
        call(f"scan {out.index}", partial(scan_kernel, out.index), arguments)
    count, longest = out.total(0), out.total(1)
    for at in chain.levels:
        out.put("crd", at, empty(count, out.index, out.like))
    out.put_values(empty(count, out.scalar, out.like))
    if _needs_two_passes(out):
        _in_two_passes(out, chain, count, ranges)
    else:
        ahead = arguments["parents"] >= PREFETCHED
        arguments["elements"] = length(out.like)
        kernels.run(
            _kind(arguments), lambda: scatter_kernel("bucket", stream, target, ranged, ahead), arguments, ranges
        )
    return count, longest


def _needs_two_passes(out: Assembly) -> bool:
    """Whether the histogram has found that most writes of one scatter would miss the caches."""
    return 2 * out.total(2) > out.words["probe"] > 0


def _kind(arguments: Mapping[str, int]) -> str:
    return "bucket ahead" if arguments["parents"] >= PREFETCHED else "bucket"


def _stream(kernels: StageKernels, chain: Run) -> Walked:
    """The walk; tiled where it would go through all parents once for every diagonal."""
    assert kernels.source.format is not None
    d = dimension_of_last(kernels.source.format)
    above = [level.expression for level in kernels.stage.target.levels[: chain.first]]
    return replace(kernels.stream, tiled=True) if d is not None and above == [Dim(d)] else kernels.stream


def _in_two_passes(out: Assembly, chain: Run, count: int, ranges: Ranges | None) -> None:
    """Scatter to neighbourhoods of parents, then inside them."""
    kernels, arguments, ranged = out.kernels, out.words, ranges is not None
    parents = arguments["parents"]
    low = np.empty(count, np.uint16)
    shift = min(max((parents // NEIGHBOURHOODS).bit_length(), 4), 16)
    slots = -(-parents >> shift)
    arguments |= {"shift": shift, "slots": slots, "low": address(low), "total": count}
    pos = to_numpy(out.pos[chain.first])
    begins = np.append(pos[: -1 : 1 << shift] if ranged else pos[1 :: 1 << shift], count)
    arguments["room"] = max(int(np.diff(begins).max()), 1)
    stream, target = kernels.stream, kernels.target
    kernels.run("partition", lambda: partition_kernel("partition", stream, target, ranged), arguments, ranges)
    sections = None if ranges is None else of_numbers(slots, count) or Ranges((0, slots))
    kernels.run("distribute", lambda: distribute_kernel("distribute", target, ranged), arguments, sections)


def sort_buckets(out: Assembly, chain: Run, count: int, *, narrow: bool, merge: bool, values: bool = True) -> None:
    """Sort each bucket; with `merge` sum equal elements, total 0 being the number that is left."""
    kernels, arguments = out.kernels, out.words
    kind = f"order{'' if values else ' lists'}{' narrow' if narrow else ''}"
    pos = out.pos[chain.first]
    ranges = of_parents(pos, count)
    ranged = ranges is not None
    if ranges is not None:
        starts = to_numpy(pos)[ranges.array].astype(np.int64)
        stops = starts.copy()
        arguments |= {"starts": address(starts), "stops": address(stops), **ranges.words()}

    def build() -> Kernel:
        return order_kernel("order_buckets", kernels.target, merge=merge, narrow=narrow, values=values, ranged=ranged)

    kernels.run(kind, build, arguments, ranges)
    if merge and ranges is not None:
        kernels.run("join ranges", lambda: join_kernel("join_ranges", kernels.target), arguments)


def _trim(out: Assembly, chain: Run, count: int) -> None:
    """Trim the buffers after summing."""
    assert out.values is not None
    out.values = out.values[:count]
    for at in chain.levels:
        crd = out.crd[at]
        assert crd is not None
        out.crd[at] = crd[:count]

"""Conversion by buckets: histogram, scan, scatter, and the buckets put in order where needed."""

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
from ...compiler.conversion.segment_sort import KEY_BITS, NARROW_BITS, join_kernel, order_kernel
from ...compiler.conversion.stream import Walked, dimension_of_last
from ...compiler.conversion.target import Run
from ...format.expression import Dim
from ...ir.loop import Kernel
from ...storage.buffers import address, empty, length, numpy_dtype, to_numpy, zeros
from ...storage.storage import Storage
from ...storage.structure import keep
from ..prepared_results import Conversion, Part
from .assembly import Assembly
from .conversion_kernels import Recipe, call, shared
from .radix_sort import sort
from .ranges import Ranges, of_numbers, of_parents, of_walk

__all__ = ["bucket", "put_in_order"]

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
    recipe, words = out.recipe, out.words
    stream = _stream(recipe, chain)
    parents = out.levels_above(chain, {})
    out.put("pos", chain.first, zeros(parents + 1, out.index, out.like))
    words["pos"], words["parents"] = words[f"b_pos{chain.first}"], parents
    words["probe"] = PROBE if length(storage.values) >= LARGE and parents > MANY else 0
    ranges = None if stream.tiled else of_walk(storage)
    if ranges is not None and ranges.count * parents > length(storage.values):
        ranges = None
    count, longest = _place(out, chain, stream, ranges)
    if ordered:
        words |= {"room": max(longest, 64), "bits": sum(bits)}
        for number, at in enumerate(chain.levels):
            words[f"lo{at}"], words[f"shift{at}"] = out.spans[at][0], sum(bits[number + 1 :])
            words[f"mask{at}"] = (1 << bits[number]) - 1
        put_in_order(out, chain, count, narrow=sum(bits) <= NARROW_BITS, merge=merge)
        if merge and out.total(0) < count:
            _shorten(out, chain, out.total(0))
    elif ranges is None and not _scattered_twice(out):
        _keep(storage, stage, out, chain)
    return out.storage()


def _keep(storage: Storage, stage: Stage, out: Assembly, chain: Run) -> None:
    """Keep the three launches for the next time."""
    if storage.library != "numpy" or stage.drop or out.values is None:
        return
    recipe, words, index = out.recipe, out.words, numpy_dtype(out.index)
    count = length(out.values)
    parts = [Part("pos", chain.first, ("pos", f"b_pos{chain.first}"), words["parents"] + 1, index, zero=True)]
    parts += [Part("crd", at, (f"b_crd{at}",), count, index) for at in chain.levels]
    parts.append(Part("values", 0, ("b_vals",), count, numpy_dtype(out.scalar)))
    kernels = (
        recipe.executable("histogram"),
        shared(f"scan {out.index}", partial(scan_kernel, out.index)),
        recipe.executable(_kind(words)),
    )
    again = Conversion(stage.target, kernels, words, parts)
    again.scratch = out.totals
    keep(storage.plans.conversions, stage, again)


def _place(out: Assembly, chain: Run, stream: Walked, ranges: Ranges | None) -> tuple[int, int]:
    """Every element in its bucket, in the order of the walk; how many there are, and in the longest bucket."""
    recipe, words, target = out.recipe, out.words, out.recipe.target
    ranged = ranges is not None
    if ranges is not None:
        counts = np.zeros(ranges.count * (words["parents"] + 1), numpy_dtype(out.index))
        words |= {"counts": address(counts), **ranges.words()}
    recipe.run("histogram", lambda: histogram_kernel("histogram", stream, target, ranged), words, ranges)
    if ranged:
        call(f"scan ranges {out.index}", partial(sum_kernel, out.index), words)
    else:
        call(f"scan {out.index}", partial(scan_kernel, out.index), words)
    count, longest = out.total(0), out.total(1)
    for at in chain.levels:
        out.put("crd", at, empty(count, out.index, out.like))
    out.put_values(empty(count, out.scalar, out.like))
    if _scattered_twice(out):
        _in_two_passes(out, chain, count, ranges)
    else:
        ahead = words["parents"] >= PREFETCHED
        words["elements"] = length(out.like)
        recipe.run(_kind(words), lambda: scatter_kernel("bucket", stream, target, ranged, ahead), words, ranges)
    return count, longest


def _scattered_twice(out: Assembly) -> bool:
    """Whether the histogram has found that most writes of one scatter would miss the caches."""
    return 2 * out.total(2) > out.words["probe"] > 0


def _kind(words: Mapping[str, int]) -> str:
    return "bucket ahead" if words["parents"] >= PREFETCHED else "bucket"


def _stream(recipe: Recipe, chain: Run) -> Walked:
    """The walk; tile by tile where it would run through all parents again for every diagonal."""
    assert recipe.source.format is not None
    d = dimension_of_last(recipe.source.format)
    above = [level.expression for level in recipe.stage.target.levels[: chain.first]]
    return replace(recipe.stream, tiled=True) if d is not None and above == [Dim(d)] else recipe.stream


def _in_two_passes(out: Assembly, chain: Run, count: int, ranges: Ranges | None) -> None:
    """Scatter to neighbourhoods of parents, then inside them."""
    recipe, words, ranged = out.recipe, out.words, ranges is not None
    parents = words["parents"]
    low = np.empty(count, np.uint16)
    shift = min(max((parents // NEIGHBOURHOODS).bit_length(), 4), 16)
    slots = -(-parents >> shift)
    words |= {"shift": shift, "slots": slots, "low": address(low), "total": count}
    pos = to_numpy(out.pos[chain.first])
    begins = np.append(pos[: -1 : 1 << shift] if ranged else pos[1 :: 1 << shift], count)
    words["room"] = max(int(np.diff(begins).max()), 1)
    stream, target = recipe.stream, recipe.target
    recipe.run("partition", lambda: partition_kernel("partition", stream, target, ranged), words, ranges)
    sections = None if ranges is None else of_numbers(slots, count) or Ranges((0, slots))
    recipe.run("distribute", lambda: distribute_kernel("distribute", target, ranged), words, sections)


def put_in_order(out: Assembly, chain: Run, count: int, *, narrow: bool, merge: bool, values: bool = True) -> None:
    """Sort each bucket; with `merge` add up equal elements, the number of those that stay being total 0."""
    recipe, words = out.recipe, out.words
    kind = f"order{'' if values else ' lists'}{' narrow' if narrow else ''}"
    pos = out.pos[chain.first]
    ranges = of_parents(pos, count)
    ranged = ranges is not None
    if ranges is not None:
        starts = to_numpy(pos)[ranges.array].astype(np.int64)
        stops = starts.copy()
        words |= {"starts": address(starts), "stops": address(stops), **ranges.words()}

    def build() -> Kernel:
        return order_kernel("order_buckets", recipe.target, merge=merge, narrow=narrow, values=values, ranged=ranged)

    recipe.run(kind, build, words, ranges)
    if merge and ranges is not None:
        recipe.run("join ranges", lambda: join_kernel("join_ranges", recipe.target), words)


def _shorten(out: Assembly, chain: Run, count: int) -> None:
    """Leave out what summing has freed."""
    assert out.values is not None
    out.values = out.values[:count]
    for at in chain.levels:
        crd = out.crd[at]
        assert crd is not None
        out.crd[at] = crd[:count]

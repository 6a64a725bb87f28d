"""Conversion by buckets: histogram, scan, scatter, and the buckets put in order where needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..compiler.conversion import Stage
from ..compiler.conversion.bucket import (
    distribute_kernel,
    histogram_kernel,
    partition_kernel,
    scan_kernel,
    scatter_kernel,
)
from ..compiler.conversion.stream import Walked, dimension_of_last
from ..compiler.conversion.target import Run
from ..compiler.conversion.within import KEY_BITS, NARROW_BITS, order_kernel
from ..format.expression import Dim
from ..storage.buffers import address, empty, length, zeros
from ..storage.storage import Storage
from .assembly import Assembly
from .recipe import Recipe, call
from .sorting import sort

__all__ = ["bucket"]

LARGE = 1 << 20
"""Elements from which on the way of scattering is looked at."""
MANY = 1 << 16
"""Parents above which a scatter may miss the caches."""
PROBE = 1 << 16
"""Elements that are looked at."""
NEIGHBOURHOODS = 256
"""At least how many neighbourhoods of parents a scatter in two passes makes; twice as many at most."""


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
    stream, target = _stream(recipe, chain), recipe.target
    parents = out.levels_above(chain, {})
    out.put("pos", chain.first, zeros(parents + 1, out.index, out.like))
    words["pos"], words["parents"] = words[f"b_pos{chain.first}"], parents
    words["probe"] = PROBE if length(storage.values) >= LARGE and parents > MANY else 0
    recipe.run("histogram", lambda: histogram_kernel("histogram", stream, target), words)
    call(f"scan {out.index}", lambda: scan_kernel(out.index), words)
    count, longest = out.total(0), out.total(1)
    for at in chain.levels:
        out.put("crd", at, empty(count, out.index, out.like))
    out.put_values(empty(count, storage.scalar, out.like))
    if 2 * out.total(2) > words["probe"] > 0:
        _in_two_passes(out, parents, count)
    else:
        recipe.run("bucket", lambda: scatter_kernel("bucket", stream, target), words)
    if ordered:
        words |= {"room": max(longest, 64), "bits": sum(bits)}
        for number, at in enumerate(chain.levels):
            words[f"lo{at}"], words[f"shift{at}"] = out.spans[at][0], sum(bits[number + 1 :])
            words[f"mask{at}"] = (1 << bits[number]) - 1
        narrow = sum(bits) <= NARROW_BITS
        kind = "order narrow" if narrow else "order"
        recipe.run(kind, lambda: order_kernel("order_buckets", target, merge=merge, narrow=narrow), words)
        if merge and out.total(0) < count:
            _shorten(out, chain, out.total(0))
    return out.storage()


def _stream(recipe: Recipe, chain: Run) -> Walked:
    """The walk; tile by tile where it would run through all parents again for every diagonal."""
    assert recipe.source.format is not None
    d = dimension_of_last(recipe.source.format)
    above = [level.expression for level in recipe.stage.target.levels[: chain.first]]
    return replace(recipe.stream, tiled=True) if d is not None and above == [Dim(d)] else recipe.stream


def _in_two_passes(out: Assembly, parents: int, count: int) -> None:
    """Scatter to neighbourhoods of parents, then inside them."""
    recipe, words = out.recipe, out.words
    low = np.empty(count, np.uint16)
    shift = min(max((parents // NEIGHBOURHOODS).bit_length(), 4), 16)
    words |= {"shift": shift, "slots": -(-parents >> shift), "low": address(low), "total": count}
    recipe.run("partition", lambda: partition_kernel("partition", recipe.stream, recipe.target), words)
    words["room"] = max(out.total(1), 1)
    recipe.run("distribute", lambda: distribute_kernel("distribute", recipe.target), words)


def _shorten(out: Assembly, chain: Run, count: int) -> None:
    """Leave out what summing has freed."""
    assert out.values is not None
    out.values = out.values[:count]
    for at in chain.levels:
        crd = out.crd[at]
        assert crd is not None
        out.crd[at] = crd[:count]

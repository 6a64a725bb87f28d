"""Conversion to one compressed level with located levels below it: blocks, diagonals, hybrids."""

from __future__ import annotations

from collections.abc import Callable

from ..compiler.conversion import Stage
from ..compiler.conversion.append import Pass
from ..compiler.conversion.group import fill_kernel, split, touch_kernel
from ..compiler.conversion.within import NARROW_BITS
from ..ir.loop import Kernel
from ..storage.buffers import empty, length, zeros
from ..storage.storage import Storage
from .appending import passes
from .assembly import Assembly
from .bucketing import put_in_order
from .sorting import sort

__all__ = ["group"]

WIDE = 1 << 24
"""Extents above this, and above the number of elements, are too wide for a workspace."""


def group(storage: Storage, stage: Stage) -> Storage:
    """Convert in two walks: the children of every parent, then the values."""
    out = Assembly.begin(storage, stage)
    recipe, words = out.recipe, out.words
    stream, target = recipe.stream, recipe.target
    _, chain, _ = split(target)
    lo, hi = out.spans[chain.first]
    if hi - lo > max(WIDE, length(storage.values)):
        return sort(storage, stage)
    parents = out.levels_above(chain, {})
    most = min(length(storage.values), parents * (hi - lo))
    edges = zeros(parents + 1, out.index, out.like)
    children = empty(most, out.index, out.like)
    out.put("pos", chain.first, edges)
    out.put("crd", chain.first, children)
    recipe.run("touch", lambda: touch_kernel("touch", stream, target), words)
    count, longest = out.total(0), out.total(1)
    out.close(chain, parents)
    bits = max(hi - lo - 1, 0).bit_length()
    words |= {"parents": parents, "room": max(longest, 64), "bits": bits}
    words |= {f"lo{chain.first}": lo, f"shift{chain.first}": 0, f"mask{chain.first}": (1 << bits) - 1}
    put_in_order(out, chain, count, narrow=bits <= NARROW_BITS, merge=False, values=False)
    out.allocate({chain: count})
    exact = out.crd[chain.first]
    assert exact is not None
    exact[:] = children[:count]
    out.put("pos", chain.first, edges)

    def build(task: Pass) -> Callable[[], Kernel]:
        return lambda: fill_kernel("fill_groups", stream, target, task, unique=stage.unique)

    for task in passes(out):
        recipe.run(f"group {task.value}", build(task), words)
    return out.storage()

"""A map of coordinates, as text -> the kernel that writes a tensor's stored elements at their new coordinates.

A `Remap` gives the new coordinates in the language of `compiler.build`: steps that test (`if x0 == k0:`), bind
(`t = x1 - k1`) or repeat (`for s in range(a, b):`), and the coordinates that result at the end. Slices, gathers,
rolls, reshapes, broadcasts and triangles are all remaps; so is writing into a region, and keeping what lies outside::

    if x0 == k0:                          A[3, 2:]
        t1 = x1 - k1
        if t1 >= 0:
            EMIT  (t1)
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import tuning
from ..classes import frozen
from ..ir.loop import Expr, Kernel
from ..ir.ops import const
from ..ir.types import itemsize
from .build import Block, Builder, Name
from .fold import fold
from .operand import Operand
from .walk import Place, walk

__all__ = ["Remap", "edges_kernel", "find_kernel", "points_kernel", "ranges_kernel", "remap_kernel"]


@frozen
class Remap:
    """A map from the coordinates of stored elements to new ones. A step that ends in a colon holds all that follow it.

    `x0`, `x1`, ... are the element's coordinates, `a_vals[leaf]` is its value; `scalars` and `buffers` are the
    parameters that the steps use beside these.
    """

    steps: tuple[str, ...]
    coordinates: tuple[str, ...]
    scalars: tuple[str, ...] = ()
    buffers: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return nested((*self.steps, f"EMIT({', '.join(self.coordinates)})"))


def nested(steps: Sequence[str]) -> str:
    """The steps as one text, each inside those before it that end in a colon."""
    lines: list[str] = []
    depth = 0
    for step in steps:
        lines += ["    " * depth + line for line in step.splitlines()]
        depth += step.endswith(":")
    return "\n".join(lines)


def remap_kernel(source: Operand, remap: Remap, index: str) -> Kernel:
    """Write coordinates to `crd{r}` and values to `b_vals` from place `begin` on, in storage order.

    sizes[0] is the place behind the last element; with filling == 0 that is all: a counting pass.
    """
    assert source.format is not None
    builder = Builder("remap")
    for name in ("begin", "filling", *remap.scalars):
        builder.scalar(name)
    sizes = builder.buffer("sizes", "i64", mutable=True)
    for name, scalar in remap.buffers:
        builder.buffer(name, scalar, wide=scalar in ("i32", "i64"))
    values = builder.buffer("a_vals", source.scalar)
    crd = [builder.buffer(f"crd{r}", index, mutable=True, wide=True) for r in range(len(remap.coordinates))]
    out = builder.buffer("b_vals", source.scalar, mutable=True)
    extents = tuple(builder.scalar(f"m{d}") for d in range(source.format.ndim))
    top = builder.top
    place = top.mut("place", top.expr("begin"))
    text = nested((*remap.steps, "EMIT"))

    def leaf(block: Block, point: Place) -> None:
        def store(inner: Block) -> None:
            for array, coordinate in zip(crd, remap.coordinates, strict=True):
                inner.store(array, place, inner.expr(coordinate))
            inner.store(out, place, values.read(point.leaf))

        def emit(inner: Block) -> None:
            inner.when(inner.expr("filling != 0"), store)
            inner.assign(place, fold("add", place, const(1)))

        names: dict[str, Name] = {f"x{d}": x for d, x in enumerate(point.at)}
        block.run(text, EMIT=emit, leaf=point.leaf, **names)

    walk(top, "a", source, extents, leaf)
    top.store(sizes, const(0), place)
    return builder.kernel()


def ranges_kernel(pos: str, crd: str, scalar: str) -> Kernel:
    """Copy the children of parents rows[lo:hi] one after the other, each to ends[t]; `block` values per child."""
    builder = Builder("take_ranges", ranged=True)
    builder.buffer("rows", "i64")
    builder.buffer("ends", "i64")
    builder.scalar("block")
    builder.buffer("pos", pos, wide=True)
    builder.buffer("crd", crd, wide=True)
    builder.buffer("vals", scalar)
    builder.buffer("b_crd", crd, mutable=True, wide=True)
    builder.buffer("b_vals", scalar, mutable=True)
    builder.top.run(
        f"""
        for t in range(lo, hi):
            ahead = pos[rows[min(t + {tuning.TAKE_AHEAD}, hi - 1)]]
            prefetch(crd, ahead)
            prefetch(vals, ahead * block)
            prefetch(vals, ahead * block + {64 // itemsize(scalar)})
            r = rows[t]
            first = pos[r]
            end = pos[r + 1]
            to = ends[t]
            for q in range(first, end):
                b_crd[to + q - first] = crd[q]
            for q in range(first * block, end * block):
                b_vals[to * block + q - first * block] = vals[q]
        """
    )
    return builder.kernel()


def edges_kernel(pos: str) -> Kernel:
    """`ends` and `b_pos`: bounds of the children of parents rows[0:count], which are taken one after the other.

    Rows below 0 count from `extent`, and are written as what they stand for. ends[count] is -1 where one is outside.
    """
    builder = Builder("take_edges")
    builder.buffer("rows", "i64", mutable=True)
    builder.scalar("count")
    builder.scalar("extent")
    builder.buffer("pos", pos, wide=True)
    builder.buffer("ends", "i64", mutable=True)
    builder.buffer("b_pos", pos, mutable=True, wide=True)
    builder.top.run(
        """
        ends[0] = 0
        b_pos[0] = 0
        total: i64 = 0
        outside: i64 = 0
        for t in range(0, count):
            r: i64 = rows[t]
            if r < 0:
                r += extent
            if r < 0 or r >= extent:
                outside = 1
                r = 0
            if extent > 0:
                rows[t] = r
                total += pos[r + 1] - pos[r]
            ends[t + 1] = total
            b_pos[t + 1] = total
        if outside == 1:
            ends[count] = -1
        """
    )
    return builder.kernel()


_FIND = """
key = KEY
if at > 0 and keys[at - 1] >= key:
    at = 0
step: i64 = 1
while at + step < count and keys[at + step] <= key:
    at += step
    step = step * 2
high: i64 = min(at + step, count)
low: i64 = at + 0
while low < high:
    mid = (low + high) >> 1
    if keys[mid] < key:
        low = mid + 1
    else:
        high = mid
at = low
if at < count and keys[at] == key:
    b_vals[leaf] = vals[at]
"""


def find_kernel(mask: Operand, scalar: str, *, dense: bool) -> Kernel:
    """The kernel that reads a tensor at each element of a mask: `vals[place]` where dense, else by a galloping search.

    The place is the sum of the coordinates times `step0`, `step1`, ... The search gallops on from where the last one
    ended, so that it costs little where both are in one order.
    """
    assert mask.format is not None
    builder = Builder("find")
    builder.buffer("vals", scalar)
    builder.buffer("b_vals", scalar, mutable=True)
    extents = tuple(builder.scalar(f"m{d}") for d in range(mask.format.ndim))
    steps = tuple(builder.scalar(f"step{d}") for d in range(mask.format.ndim))
    top = builder.top
    if not dense:
        builder.scalar("count")
        builder.buffer("keys", "i64")
        top.run("at: i64 = 0")

    def leaf(block: Block, point: Place) -> None:
        place: Expr = const(0)
        for x, step in zip(point.at, steps, strict=True):
            place = fold("add", place, fold("mul", x, step))
        if dense:
            block.run("b_vals[leaf] = vals[place]", leaf=point.leaf, place=place)
        else:
            block.run(_FIND, leaf=point.leaf, KEY=place)

    walk(top, "a", mask, extents, leaf)
    return builder.kernel()


def points_kernel(pos: str, crd: str) -> Kernel:
    """places[t]: the position of child cols[t] of parent rows[t], by bisection, or -1."""
    builder = Builder("points", ranged=True)
    for name in ("rows", "cols"):
        builder.buffer(name, "i64")
    builder.buffer("pos", pos, wide=True)
    builder.buffer("crd", crd, wide=True)
    builder.buffer("places", "i64", mutable=True)
    builder.top.run(
        """
        for t in range(lo, hi):
            c = cols[t]
            low: i64 = pos[rows[t]]
            end = pos[rows[t] + 1]
            high: i64 = end + 0
            while low < high:
                mid = (low + high) >> 1
                if crd[mid] < c:
                    low = mid + 1
                else:
                    high = mid
            found: i64 = -1
            if low < end and crd[low] == c:
                found = low
            places[t] = found
        """
    )
    return builder.kernel()

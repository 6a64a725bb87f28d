"""Elements ordered by parent -> the kernels that assemble a compressed level with located ones below: blocks, say.

The walk comes to the parents in order, but to one parent's children at random. A first walk lists the children that
each parent has, a workspace over the level's coordinates telling which are listed already; the lists are sorted; a
second walk finds each child's position in a workspace, loaded when the parent changes::

    if where[t] != p + 1:                    if p != now:
        where[t] = p + 1                         for q in range(pos[p], pos[p + 1]): where[crd[q]] = q
        crd[count] = t                       out[where[t] * 16 + ...] = x

Memory: the level's extent beside the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.loop import Expr, Kernel
from ...ir.ops import const
from ..build import Array, Block, Builder, Name
from ..intervals import Interval, intervals
from ..operand import Operand
from .append import Pass, locate
from .level_runs import Run, runs
from .ranged import bind_range_number
from .stream import Element, Stream, extents_of

__all__ = ["fill_kernel", "split_runs", "touch_kernel"]


def split_runs(target: Operand) -> tuple[Run | None, Run, Run]:
    """The located levels above (None where there are none), the compressed level, the located levels below."""
    assert target.format is not None
    *above, chain, below = runs(target.format)
    return (above[0] if above else None), chain, below


class _Group:
    """The state that both walks share: names, the parent's position, the child's coordinate from 0."""

    def __init__(self, name: str, target: Operand, ranged: bool) -> None:
        assert target.format is not None
        self.target, self.format = target, target.format
        self.above, self.chain, self.below = split_runs(target)
        self.builder = Builder(name, ranged=ranged)
        extents = extents_of(self.builder, len(self.format.dims))
        self.top = self.builder.top
        self.spans: Sequence[Interval] = intervals(self.top, "b", self.format, extents)
        self.top.env["n"] = self.spans[self.chain.first].size

    def buffer(self, part: str, *, mutable: bool) -> Array:
        at = self.chain.first
        scalar = (self.target.pos if part == "pos" else self.target.crd)[at]
        assert scalar is not None
        return self.builder.buffer(f"b_{part}{at}", scalar, mutable=mutable, wide=True)

    def emit(self, stream: Stream, sink: Callable[[Block, Expr, Expr, Element], None], flags: bool) -> None:
        """Give `sink` parent, child from 0, and element; `flags`: set those of bitmaps above."""

        def place(block: Block, element: Element) -> None:
            parent: Expr = const(0)
            if self.above is not None:
                parent = locate(block, self.target, self.above, parent, self.spans, element, flags)
            at = self.chain.first
            child = block.expr("c - lo", c=element.coordinates[at], lo=self.spans[at].lo)
            sink(block, parent, block.let("child", child), element)

        stream.emit(self.top, self.format, self.spans, place)


def touch_kernel(name: str, stream: Stream, target: Operand, ranged: bool = False) -> Kernel:
    """List the children of each parent, unsorted: pos[p + 1] is where they end (zero for parents without any),
    sizes[0] how many there are, sizes[1] at most how many one parent has. Range r lists from starts[r] to stops[r], and
    the most of one parent is most[r]."""
    group = _Group(name, target, ranged)
    top, builder = group.top, group.builder
    names = {"pos": group.buffer("pos", mutable=True), "crd": group.buffer("crd", mutable=True)}
    first: Name = 0
    if ranged:
        bind_range_number(builder)
        first = top.expr("starts[part]", starts=builder.buffer("starts", "i64"))
    top.run("where: i64[n] = zeros\ncount: i64 = first\nlongest: i64 = 0\nbegin: i64 = 0\nnow: i64 = -1", first=first)

    def sink(block: Block, parent: Expr, child: Expr, element: Element) -> None:
        text = """
        if where[t] != p + 1:
            where[t] = p + 1
            if p != now:
                now = p
                begin = count
            crd[count] = c
            count += 1
            pos[p + 1] = count
            longest = max(longest, count - begin)
        """
        block.run(text, p=parent, t=child, c=element.coordinates[group.chain.first], **names)

    group.emit(stream, sink, flags=False)
    if ranged:
        buffers = {name: builder.buffer(name, "i64", mutable=True) for name in ("stops", "most")}
        top.run("stops[part] = count\nmost[part] = longest", **buffers)
    else:
        sizes = builder.buffer("sizes", "i64", mutable=True)
        top.run("sizes[0] = count\nsizes[1] = longest", sizes=sizes)
    return group.builder.kernel()


def fill_kernel(name: str, stream: Stream, target: Operand, task: Pass, *, unique: bool, ranged: bool) -> Kernel:
    """Write the values, which hold the fill value before; elements that are not unique are added up."""
    group = _Group(name, target, ranged)
    top, builder = group.top, group.builder
    pos, crd = group.buffer("pos", mutable=False), group.buffer("crd", mutable=False)
    out = builder.buffer("b_vals", target.scalar, mutable=True)
    lo = group.spans[group.chain.first].lo
    top.run("where: i64[n] = empty\nnow: i64 = -1")

    def sink(block: Block, parent: Expr, child: Expr, element: Element) -> None:
        text = """
        if p != now:
            now = p
            for e in range(pos[p], pos[p + 1]):
                where[crd[e] - lo] = e
        q = where[t]
        """
        block.run(text, p=parent, t=child, lo=lo, pos=pos, crd=crd)
        at = locate(block, target, group.below, block.expr("q"), group.spans, element, True)
        if task is Pass.CLEAR:
            block.store(out, at, const(0, target.scalar))
            return
        x = builder.buffer("a_vals", target.scalar)
        block.run("out[q] = x[leaf]" if unique else "out[q] += x[leaf]", out=out, x=x, q=at, leaf=element.leaf)

    group.emit(stream, sink, flags=True)
    return builder.kernel()

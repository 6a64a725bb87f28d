"""Assemble a compressed level below located ones from elements in any order.

    histogram    pos[p + 1] counts the elements of parent p
    scan         pos[p + 1] becomes where parent p begins
    scatter      each element goes to pos[p + 1], which moves on and ends where parent p + 1 begins
    order        the elements of each parent are sorted, and equal ones summed, where that is asked for

Stable: elements of one parent stay in the order of the walk. No memory beyond the result.

Where parents come at random and are many, every write of a scatter misses the caches. Then it goes in two passes: to
the parents' neighbourhoods of 2^shift parents, into the result's own buffers, and inside each neighbourhood, through a
workspace that stays in the cache. Needs two bytes per element beside the result.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.loop import Expr, Kernel
from ...ir.ops import const
from ..build import Array, Block, Builder, Hole
from ..operand import Operand
from ..walk import intervals
from .append import locate
from .stream import Element, Stream, extents_of
from .target import Run, runs

__all__ = ["distribute_kernel", "histogram_kernel", "partition_kernel", "scan_kernel", "scatter_kernel"]


_Sink = Callable[[Block, Expr, Element, Run], None]


PROBES = 1024
"""How many lately used lines of parents the histogram's probe remembers."""
LINE = 4
"""2^LINE parents count as one line."""


def histogram_kernel(name: str, stream: Stream, target: Operand) -> Kernel:
    """Count the elements of each parent p in pos[p + 1], zero before.

    Of the first `probe` elements, sizes[2] counts those whose parent is not near to one of the last ones: whether a
    scatter would miss the caches.
    """

    def begin(top: Block) -> None:
        probe = top.builder.scalar("probe")
        top.run(f"lines: i64[{PROBES}] = zeros\nseen: i64 = 0\nmisses: i64 = 0", probe=probe)

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        text = f"""
        b_pos[p + 1] += 1
        if seen < probe:
            seen += 1
            line = (p >> {LINE}) + 1
            misses += i64(lines[line & {PROBES - 1}] != line)
            lines[line & {PROBES - 1}] = line
        """
        block.run(text, p=parent)

    def end(top: Block) -> None:
        top.store(top.builder.buffer("sizes", "i64", mutable=True), const(2), top.expr("misses"))

    return _over(name, stream, target, sink, begin, end)


def partition_kernel(name: str, stream: Stream, target: Operand) -> Kernel:
    """Move every element to the neighbourhood of its parent, in the order of the walk; low[q] is the parent's low
    `shift` bits. sizes[1] is the largest neighbourhood's number of elements."""

    def begin(top: Block) -> None:
        for scalar in ("parents", "shift", "slots"):
            top.builder.scalar(scalar)
        top.builder.buffer("low", "u16", mutable=True)
        top.builder.buffer("sizes", "i64", mutable=True)
        top.run(
            """
            next: i64[slots] = empty
            for s in range(0, slots):
                next[s] = b_pos[(s << shift) + 1]
            """
        )

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        block.run("s = p >> shift\nq = next[s]\nnext[s] = q + 1\nlow[q] = u16(p - (s << shift))", p=parent)
        _write(block, target, chain, element)

    def end(top: Block) -> None:
        top.run(
            """
            most: i64 = 0
            for s in range(0, slots):
                most = max(most, next[s] - b_pos[(s << shift) + 1])
            sizes[1] = most
            """
        )

    return _over(name, stream, target, sink, begin, end)


def distribute_kernel(name: str, target: Operand) -> Kernel:
    """Scatter inside each neighbourhood, through a workspace of `room` elements."""
    assert target.format is not None
    chain = runs(target.format)[-1]
    builder = Builder(name)
    top = builder.top
    for scalar in ("parents", "shift", "slots", "room"):
        builder.scalar(scalar)
    builder.buffer("low", "u16")
    top.env["b_pos"] = _pos(builder, target, chain)
    top.env["out"] = builder.buffer("b_vals", target.scalar, mutable=True)
    parts = ["out"]
    top.run("w_out: T[room] = empty", T=target.scalar)
    for at in chain.levels:
        word = target.crd[at]
        assert word is not None
        parts.append(f"b_crd{at}")
        builder.buffer(f"b_crd{at}", word, mutable=True)
        top.run(f"w_b_crd{at}: T[room] = empty", T=word)
    there = "\n".join(f"        w_{part}[q - first] = {part}[e]" for part in parts)
    back = "\n".join(f"    for e in range(first, end):\n        {part}[e] = w_{part}[e - first]" for part in parts)
    text = f"""
for s in range(0, slots):
    base = (s << shift) + 1
    first = b_pos[base]
    end = total if ((s + 1) << shift) >= parents else b_pos[min(((s + 1) << shift) + 1, parents)]
    for e in range(first, end):
        p = base + i64(low[e])
        q = b_pos[p]
        b_pos[p] = q + 1
{there}
{back}
"""
    top.run(text, total=builder.scalar("total"))
    return builder.kernel()


def scatter_kernel(name: str, stream: Stream, target: Operand) -> Kernel:
    """Move every element to the place that pos[p + 1] says."""

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        block.run("q = b_pos[p + 1]\nb_pos[p + 1] = q + 1", p=parent)
        _write(block, target, chain, element)

    return _over(name, stream, target, sink)


def _write(block: Block, target: Operand, chain: Run, element: Element) -> None:
    """Value and coordinates of the element to position q."""
    builder = block.builder
    x, out = builder.buffer("a_vals", target.scalar), builder.buffer("b_vals", target.scalar, mutable=True)
    block.run("out[q] = x[leaf]", x=x, out=out, leaf=element.leaf)
    for at in chain.levels:
        scalar = target.crd[at]
        assert scalar is not None
        crd = builder.buffer(f"b_crd{at}", scalar, mutable=True, wide=True)
        block.run("crd[q] = c", crd=crd, c=element.coordinates[at])


def _pos(builder: Builder, target: Operand, chain: Run) -> Array:
    scalar = target.pos[chain.first]
    assert scalar is not None
    return builder.buffer(f"b_pos{chain.first}", scalar, mutable=True, wide=True)


def _nothing(top: Block) -> None:
    """Neither before nor after the walk."""


def _over(
    name: str, stream: Stream, target: Operand, sink: _Sink, begin: Hole = _nothing, end: Hole = _nothing
) -> Kernel:
    """The kernel that gives `sink` every element and its parent, between `begin` and `end` at its top level."""
    assert target.format is not None
    format = target.format
    above, chain = runs(format)
    builder = Builder(name)
    extents = extents_of(builder, len(format.dims))
    top = builder.top
    spans = intervals(top, "b", format, extents)
    top.env["b_pos"] = _pos(builder, target, chain)
    begin(top)

    def place(block: Block, element: Element) -> None:
        sink(block, locate(block, target, above, const(0), spans, element, True), element, chain)

    stream.emit(top, format, spans, place)
    end(top)
    return builder.kernel()


def scan_kernel(scalar: str) -> Kernel:
    """Counts in pos[1:] become the sums of those before; sizes[0] is the total, sizes[1] the largest count."""
    builder = Builder("scan")
    builder.scalar("parents")
    builder.buffer("pos", scalar, mutable=True, wide=True)
    builder.buffer("sizes", "i64", mutable=True)
    builder.top.run(
        """
        total: i64 = 0
        most: i64 = 0
        for p in range(0, parents):
            n = pos[p + 1]
            pos[p + 1] = total
            total += n
            most = max(most, n)
        sizes[0] = total
        sizes[1] = most
        """
    )
    return builder.kernel()

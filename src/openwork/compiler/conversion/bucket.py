"""A stream of elements in any order -> the kernels of a counting sort into a compressed level below located ones.

    histogram    pos[p + 1] counts the elements of parent p
    scan         pos[p + 1] becomes where parent p begins
    scatter      each element goes to pos[p + 1], which moves on and ends where parent p + 1 begins
    order        the elements of each parent are sorted, and equal ones summed, where that is asked for

Stable: elements of one parent stay in the order of the walk. No memory beyond the result.

Where parents come at random and are many, every write of a scatter misses the caches. Then there are two passes: a
partition into neighbourhoods of 2^shift parents, in the result's own buffers, and a scatter inside each neighbourhood,
through a workspace that stays in the cache. Needs two bytes per element beside the result.

Ranged, each range counts in a slice of `counts` that is its own, the scan makes of it where the range's elements of a
parent begin, and pos is final at once: the result is the same, however many ranges there are.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import tuning
from ...ir.loop import Expr, Kernel
from ...ir.ops import const
from ..build import Array, Block, Builder, Hole
from ..intervals import intervals
from ..operand import Operand
from ..single.collapse_loops import flatten
from .append import locate
from .level_runs import Run, runs
from .prefetch import later
from .ranged import bind_range_number, range_slice
from .stream import Element, Stream, extents_of

__all__ = ["distribute_kernel", "histogram_kernel", "partition_kernel", "scan_kernel", "scatter_kernel", "sum_kernel"]


_Sink = Callable[[Block, Expr, Element, Run], None]


PROBES = tuning.SCATTER_PROBE_LINES
LINE = tuning.SCATTER_PROBE_LINE_BITS


def histogram_kernel(name: str, stream: Stream, target: Operand, ranged: bool) -> Kernel:
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
        sizes = top.builder.buffer("sizes", "i64", mutable=True)
        top.run("if part == 0:\n    sizes[2] = misses" if ranged else "sizes[2] = misses", sizes=sizes)

    return flatten(_walk_kernel(name, stream, target, sink, begin, end, ranged=ranged))


def partition_kernel(name: str, stream: Stream, target: Operand, ranged: bool) -> Kernel:
    """Move every element to the neighbourhood of its parent, in the order of the walk; low[q] is the parent's low
    `shift` bits."""

    def begin(top: Block) -> None:
        for scalar in ("parents", "shift", "slots"):
            top.builder.scalar(scalar)
        top.builder.buffer("low", "u16", mutable=True)
        if ranged:
            top.env["pos"] = _pos(top.builder, target, runs(target.format)[-1])
            top.env["counts"] = top.builder.buffer("counts", top.env["pos"].scalar, mutable=True, wide=True)  # type: ignore[union-attr]
        top.run(_NEXT_RANGED if ranged else _NEXT)

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        block.run("s = p >> shift\nq = next[s]\nnext[s] = q + 1\nlow[q] = u16(p - (s << shift))", p=parent)
        _write(block, target, chain, element)

    return _walk_kernel(name, stream, target, sink, begin, ranged=ranged)


_NEXT = """
next: i64[slots] = empty
for s in range(0, slots):
    next[s] = b_pos[(s << shift) + 1]
"""
"""Where each neighbourhood begins."""

_NEXT_RANGED = """
next: i64[slots] = empty
for s in range(0, slots):
    next[s] = pos[s << shift]
for r in range(0, part):
    here = r * (parents + 1) + 1
    for p in range(0, parents):
        next[p >> shift] += counts[here + parents + 1 + p] - counts[here + p]
"""
"""... and the elements of earlier ranges in it end."""

_DISTRIBUTE = """
for s in range(FIRST, LAST):
    base = s << shift
    first = BEGIN
    end = total if ((s + 1) << shift) >= parents else END
    STARTS
    for e in range(first, end):
        p = base + i64(low[e])
        PLACE
        THERE
    BACK
"""


def distribute_kernel(name: str, target: Operand, ranged: bool) -> Kernel:
    """Scatter inside each neighbourhood, through a workspace of `room` elements; ranges are of neighbourhoods."""
    assert target.format is not None
    chain = runs(target.format)[-1]
    builder = Builder(name, ranged=ranged)
    top = builder.top
    for scalar in ("parents", "shift", "slots", "room", "total"):
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

    def to_workspace(block: Block) -> None:
        for part in parts:
            block.run(f"w_{part}[q - first] = {part}[e]")

    def from_workspace(block: Block) -> None:
        for part in parts:
            block.run(f"for e in range(first, end):\n    {part}[e] = w_{part}[e - first]")

    def starts(block: Block) -> None:
        if ranged:
            block.run("for d in range(0, min(1 << shift, parents - base)):\n    next[d] = b_pos[base + d]")

    def place(block: Block) -> None:
        if ranged:
            block.run("q = next[p - base]\nnext[p - base] = q + 1")
        else:
            block.run("q = b_pos[p + 1]\nb_pos[p + 1] = q + 1")
        to_workspace(block)

    if ranged:
        top.run("next: i64[1 << shift] = empty")
    text = _DISTRIBUTE.replace("BEGIN", "b_pos[base]" if ranged else "b_pos[base + 1]")
    text = text.replace("END", f"b_pos[min((s + 1) << shift, parents - {1 - ranged}) + {1 - ranged}]")
    text = text.replace("FIRST, LAST", "lo, hi" if ranged else "0, slots").replace("        THERE\n", "")
    top.run(text, STARTS=starts, PLACE=place, BACK=from_workspace)
    return builder.kernel()


def scatter_kernel(name: str, stream: Stream, target: Operand, ranged: bool, ahead: bool = False) -> Kernel:
    """Move every element to position pos[p + 1] of its parent p, which advances.

    With `ahead` the target positions of later elements, below `elements`, are prefetched.
    """

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        if ahead:
            _prefetch(block, target, chain, parent)
        block.run("q = b_pos[p + 1]\nb_pos[p + 1] = q + 1", p=parent)
        _write(block, target, chain, element)

    return _walk_kernel(name, stream, target, sink, ranged=ranged)


def _prefetch(block: Block, target: Operand, chain: Run, parent: Expr) -> None:
    builder = block.builder
    p = later(block, parent, "a_crd", builder.scalar("elements"))
    if p is None:
        return
    out = builder.buffer("b_vals", target.scalar, mutable=True)
    block.run("soon = b_pos[p + 1]\nprefetch(out, soon)", p=p, out=out)
    for at in chain.levels:
        scalar = target.crd[at]
        assert scalar is not None
        block.run("prefetch(crd, soon)", crd=builder.buffer(f"b_crd{at}", scalar, mutable=True, wide=True))


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
    """No statements before or after the walk."""


def _walk_kernel(
    name: str,
    stream: Stream,
    target: Operand,
    sink: _Sink,
    begin: Hole = _nothing,
    end: Hole = _nothing,
    *,
    ranged: bool,
) -> Kernel:
    """The kernel that gives `sink` every element and its parent, between `begin` and `end` at its top level.

    `b_pos` is the level's pos; ranged, the range's own counts.
    """
    assert target.format is not None
    format = target.format
    above, chain = runs(format)
    builder = Builder(name, ranged=ranged)
    extents = extents_of(builder, len(format.dims))
    top = builder.top
    spans = intervals(top, "b", format, extents)
    scalar = target.pos[chain.first]
    assert scalar is not None
    if ranged:
        bind_range_number(builder)
        top.env["b_pos"] = range_slice(builder, "counts", scalar)
    else:
        top.env["b_pos"] = _pos(builder, target, chain)
    begin(top)

    def place(block: Block, element: Element) -> None:
        sink(block, locate(block, target, above, const(0), spans, element, True), element, chain)

    stream.emit(top, format, spans, place)
    end(top)
    return builder.kernel()


def scan_kernel(scalar: str) -> Kernel:
    """The exclusive prefix sum of the counts in pos[1:], in place; sizes[0] is the total, sizes[1] the maximum."""
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


def sum_kernel(scalar: str) -> Kernel:
    """The prefix sum over parents and ranges: counts become where each range's elements of a parent begin, pos where
    parents end; sizes[0] is the total, sizes[1] the largest parent's count."""
    builder = Builder("scan_ranges")
    for name in ("parents", "ranges"):
        builder.scalar(name)
    builder.buffer("pos", scalar, mutable=True, wide=True)
    builder.buffer("counts", scalar, mutable=True, wide=True)
    builder.buffer("sizes", "i64", mutable=True)
    builder.top.run(
        """
        total: i64 = 0
        most: i64 = 0
        for p in range(0, parents):
            first = total + 0
            for r in range(0, ranges):
                at = r * (parents + 1) + p + 1
                n = counts[at]
                counts[at] = total
                total += n
            pos[p + 1] = total
            most = max(most, total - first)
        sizes[0] = total
        sizes[1] = most
        """
    )
    return builder.kernel()

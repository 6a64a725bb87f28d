"""Assemble a compressed level below located ones from elements in any order.

    histogram    pos[p + 1] counts the elements of parent p
    scan         pos[p + 1] becomes where parent p begins
    scatter      each element goes to pos[p + 1], which moves on and ends where parent p + 1 begins
    order        the elements of each parent are sorted, and equal ones summed, where that is asked for

Stable: elements of one parent stay in the order of the walk. No memory beyond the result.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.loop import Expr, Kernel
from ...ir.ops import const
from ..build import Block, Builder
from ..operand import Operand
from ..walk import intervals
from .append import locate
from .stream import Element, Stream, extents_of
from .target import Run, runs

__all__ = ["histogram_kernel", "scan_kernel", "scatter_kernel"]


_Sink = Callable[[Block, Expr, Element, Run], None]


def histogram_kernel(name: str, stream: Stream, target: Operand) -> Kernel:
    """Count the elements of each parent p in pos[p + 1], zero before."""

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        block.run("b_pos[p + 1] += 1", p=parent)

    return _over(name, stream, target, sink)


def scatter_kernel(name: str, stream: Stream, target: Operand) -> Kernel:
    """Move every element to the place that pos[p + 1] says."""

    def sink(block: Block, parent: Expr, element: Element, chain: Run) -> None:
        builder = block.builder
        x, out = builder.buffer("a_vals", target.scalar), builder.buffer("b_vals", target.scalar, mutable=True)
        block.run("q = b_pos[p + 1]\nb_pos[p + 1] = q + 1\nout[q] = x[leaf]", p=parent, x=x, out=out, leaf=element.leaf)
        for at in chain.levels:
            scalar = target.crd[at]
            assert scalar is not None
            crd = builder.buffer(f"b_crd{at}", scalar, mutable=True, wide=True)
            block.run("crd[q] = c", crd=crd, c=element.coordinates[at])

    return _over(name, stream, target, sink)


def _over(name: str, stream: Stream, target: Operand, sink: _Sink) -> Kernel:
    assert target.format is not None
    format = target.format
    above, chain = runs(format)
    builder = Builder(name)
    extents = extents_of(builder, len(format.dims))
    top = builder.top
    spans = intervals(top, "b", format, extents)
    scalar = target.pos[chain.first]
    assert scalar is not None
    top.env["b_pos"] = builder.buffer(f"b_pos{chain.first}", scalar, mutable=True, wide=True)

    def place(block: Block, element: Element) -> None:
        parent = locate(block, target, above, const(0), spans, element, True)
        sink(block, parent, element, chain)

    stream.emit(top, format, spans, place)
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

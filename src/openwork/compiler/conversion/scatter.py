"""A stream of elements in any order -> the kernel that scatters them into a target whose positions are computed."""

from __future__ import annotations

from ...ir.loop import Kernel
from ...ir.ops import const
from ..build import Block, Builder
from ..intervals import intervals
from ..operand import Operand
from .append import Pass, locate
from .level_runs import runs
from .stream import Element, Stream, extents_of

__all__ = ["scatter_kernel"]


def scatter_kernel(
    name: str, stream: Stream, target: Operand, task: Pass, *, unique: bool, ranged: bool = False
) -> Kernel:
    """Store every element at its computed position in the values, which hold the fill value before.

    Elements that are not unique are added up; where the fill value is not zero, a CLEAR pass goes before.
    Ranges may run side by side where elements are unique.
    """
    assert target.format is not None
    format = target.format
    builder = Builder(name, ranged=ranged)
    extents = extents_of(builder, len(format.dims))
    top = builder.top
    spans = intervals(top, "b", format, extents)
    out = builder.buffer("b_vals", target.scalar, mutable=True)

    def sink(block: Block, element: Element) -> None:
        position = const(0)
        for run in runs(format):
            position = locate(block, target, run, position, spans, element, True)  # type: ignore[assignment]
        if task is Pass.CLEAR:
            block.store(out, position, const(0, target.scalar))
            return
        values = block.builder.buffer("a_vals", target.scalar)
        text = "out[q] = x[leaf]" if unique else "out[q] += x[leaf]"
        block.run(text, out=out, x=values, q=position, leaf=element.leaf)

    stream.emit(top, format, spans, sink)
    return builder.kernel()

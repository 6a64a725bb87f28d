"""A stream of elements -> keys of target coordinates, and the kernels of their least-significant-digit radix sort."""

from __future__ import annotations

from ... import tuning
from ...format.format import Format
from ...ir.loop import Kernel
from ...ir.ops import const
from ..build import Block, Builder
from ..fold import fold
from ..intervals import intervals
from ..operand import Operand
from .stream import Element, Stream, extents_of

__all__ = ["DIGIT", "count_kernel", "extract_kernel", "gather_kernel", "radix_kernel"]

DIGIT = tuning.RADIX_DIGIT


def count_kernel(name: str, stream: Stream, target: Format) -> Kernel:
    """The number of elements, into sizes[0]."""
    builder = Builder(name)
    extents = extents_of(builder, len(target.dims))
    top = builder.top
    sizes = builder.buffer("sizes", "i64", mutable=True)
    total = top.mut("total", const(0))
    spans = intervals(top, "b", target, extents)
    stream.emit(top, target, spans, lambda b, _: b.assign(total, fold("add", total, const(1))))
    top.store(sizes, const(0), total)
    return builder.kernel()


def extract_kernel(name: str, stream: Stream, target: Operand, *, packed: bool) -> Kernel:
    """The target coordinates of every element, in walk order; sizes[0] is the number of elements.

    Packed: `key` of one word, `order` the values' indices. Else: one `key{l}` per level, `leaves` the values' indices.
    """
    assert target.format is not None
    format = target.format
    builder = Builder(name)
    extents = extents_of(builder, len(format.dims))
    top = builder.top
    spans = intervals(top, "b", format, extents)
    total = top.mut("total", const(0))

    def sink(block: Block, element: Element) -> None:
        if packed:
            word = const(0, "u64")
            for level, c in enumerate(element.coordinates):
                shift = builder.scalar(f"shift{level}")
                text = "w | (u64(c - lo) << u64(shift))"
                word = block.expr(text, w=word, c=c, lo=spans[level].lo, shift=shift)  # type: ignore[assignment]
            block.store(builder.buffer("key", "u64", mutable=True), total, word)
        else:
            for level, c in enumerate(element.coordinates):
                block.store(builder.buffer(f"key{level}", "i64", mutable=True), total, c)
        leaves = builder.buffer("order" if packed else "leaves", "i64", mutable=True)
        block.store(leaves, total, element.leaf)
        block.assign(total, fold("add", total, const(1)))

    stream.emit(top, format, spans, sink)
    top.store(builder.buffer("sizes", "i64", mutable=True), const(0), total)
    return builder.kernel()


def gather_kernel() -> Kernel:
    """The keys of one level in the order so far: `key[e] = raw[order[e]] - low`."""
    builder = Builder("gather_keys")
    top = builder.top
    count, low = builder.scalar("count"), builder.scalar("low")
    builder.buffer("raw", "i64")
    builder.buffer("order", "i64")
    builder.buffer("key", "u64", mutable=True)
    top.run("for e in range(0, count):\n    key[e] = u64(raw[order[e]] - low)", count=count, low=low)
    return builder.kernel()


def radix_kernel() -> Kernel:
    """One stable pass by the `DIGIT` bits above `shift`, from (key, order) to (key_out, order_out)."""
    builder = Builder("radix_pass")
    builder.scalar("count")
    builder.scalar("shift")
    builder.buffer("key", "u64")
    builder.buffer("order", "i64")
    builder.buffer("key_out", "u64", mutable=True)
    builder.buffer("order_out", "i64", mutable=True)
    builder.top.run(
        """
        next: i64[SLOTS] = zeros
        for e in range(0, count):
            next[i64((key[e] >> u64(shift)) & u64(MASK))] += 1
        total: i64 = 0
        for d in range(0, SLOTS):
            n = next[d]
            next[d] = total
            total += n
        for e in range(0, count):
            k = key[e]
            d = i64((k >> u64(shift)) & u64(MASK))
            at = next[d]
            next[d] = at + 1
            key_out[at] = k
            order_out[at] = order[e]
        """,
        SLOTS=1 << DIGIT,
        MASK=(1 << DIGIT) - 1,
    )
    return builder.kernel()

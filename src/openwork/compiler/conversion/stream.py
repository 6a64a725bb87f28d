"""Sources of a conversion's elements: walks of tensors, or sorted keys; each emits a loop around a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import tuning
from ...classes import frozen
from ...format.expression import Dim, Expression
from ...format.format import Format
from ...ir.loop import Expr, Var
from ...ir.ops import const, op
from ...ir.types import I64
from ..build import Block, Builder, Name
from ..intervals import Interval, coordinate_of
from ..operand import Operand
from ..remap import Remap, nested
from ..walk import Place, walk

__all__ = [
    "Element", "Ordered", "Remapped", "Sink", "Sorted", "Stream", "Walked", "dimension_of_last", "extents_of",
]  # fmt: skip


@frozen
class Element:
    """One element: its coordinates on the target's levels, and its index in the source's values, or its value."""

    coordinates: tuple[Expr, ...]
    leaf: Expr
    dims: tuple[Expr, ...] = ()
    value: Expr | None = None


Sink = Callable[[Block, Element], None]


def extents_of(builder: Builder, ndim: int) -> tuple[Expr, ...]:
    """The parameters n0, n1, ...: the tensor's extents."""
    return tuple(builder.scalar(f"n{d}") for d in range(ndim))


TILE = tuning.DIAGONAL_TILE


def dimension_of_last(format: Format) -> int | None:
    """The dimension that the last level is, where it is a range below stored diagonals."""
    if format.nlevels < 2 or not format.levels[-1].format.is_range:
        return None
    e = format.levels[-1].expression
    return e.index if isinstance(e, Dim) else None


@frozen
class Walked:
    """The elements of a tensor in storage order; `drop` skips those equal to the fill value `fill[0]`, `hoist` walks by
    rows of blocks. In a ranged kernel, those of its range of the outermost level.

    Tiled, the walk is repeated for the elements of each `TILE` coordinates of the dimension that the last level holds:
    a scatter that is indexed by it stays in the cache. The order changes only between different coordinates.
    """

    source: Operand
    drop: bool = False
    tiled: bool = False
    hoist: bool = False

    def emit(self, block: Block, target: Format, intervals: Sequence[Interval], sink: Sink) -> None:
        builder = block.builder
        assert self.source.format is not None
        level_of = {level.expression: at for at, level in enumerate(self.source.format.levels)}

        def leaf(inner: Block, point: Place) -> None:
            def level(e: Expression, at: int) -> Expr:
                if e in level_of:
                    return point.coordinates[level_of[e]]
                return inner.let(f"t{at}", coordinate_of(e, point.at))

            coordinates = tuple(level(x.expression, at) for at, x in enumerate(target.levels))
            element = Element(coordinates, point.leaf, point.at)
            if self.drop:
                inner.when(_differs(inner, self.source.scalar, point.leaf), lambda b: sink(b, element))
            else:
                sink(inner, element)

        extents = extents_of(builder, len(target.dims))
        if not self.tiled:
            span = (Var("lo", I64), Var("hi", I64)) if builder.ranged else None
            walk(block, "a", self.source, extents, leaf, span=span, hoist=self.hoist)
            return
        d = dimension_of_last(self.source.format)
        assert d is not None

        def tile(inner: Block, number: Expr) -> None:
            lo = inner.let("tile_lo", inner.expr(f"number * {TILE}", number=number))
            hi = inner.expr(f"min(lo + {TILE}, n)", lo=lo, n=extents[d])
            walk(inner, "a", self.source, extents, leaf, tile=(d, lo, hi))

        block.loop("tile", const(0), block.expr(f"(n + {TILE - 1}) >> {TILE.bit_length() - 1}", n=extents[d]), tile)


def _differs(block: Block, scalar: str, leaf: Expr) -> Expr:
    """Whether value `leaf` is not the fill value: NaN is NaN here, and -0.0 is 0.0.

    Of a complex number either part may differ: what has one NaN part keeps the other.
    """
    values = block.builder.buffer("a_vals", scalar)
    fill = block.builder.buffer("fill", scalar)
    x, y = block.let("value", values.read(leaf)), fill.read(const(0))
    if x.type.is_complex:
        return op("or", *(_part_differs(op(part, x), op(part, y)) for part in ("real", "imag")))
    return _part_differs(x, y) if x.type.is_float else op("ne", x, y)


def _part_differs(x: Expr, y: Expr) -> Expr:
    return op("and", op("ne", x, y), op("not", op("and", op("isnan", x), op("isnan", y))))


@frozen
class Sorted:
    """The elements by sorted keys.

    Packed, one u64 key per element holds every level's coordinate, less the interval's begin, in a field:
    parameters `shift{l}` and `mask{l}`, and `order[e]` is the value's index. Otherwise `key{l}` are i64 arrays in
    walk order, `order[e]` is an index into them, and `leaves` gives the value's index.
    """

    keys: int
    packed: bool

    def emit(self, block: Block, target: Format, intervals: Sequence[Interval], sink: Sink) -> None:
        builder = block.builder
        builder.scalar("count")
        builder.buffer("order", "i64")
        if self.packed:
            builder.buffer("key", "u64")
        else:
            for level in range(self.keys):
                builder.buffer(f"key{level}", "i64")
            builder.buffer("leaves", "i64")

        def body(inner: Block) -> None:
            coordinates = []
            for level in range(self.keys):
                lo = intervals[level].lo
                if self.packed:
                    shift, mask = builder.scalar(f"shift{level}"), builder.scalar(f"mask{level}")
                    text = "i64((k >> u64(shift)) & u64(mask)) + lo"
                    c = inner.expr(text, shift=shift, mask=mask, lo=lo)
                else:
                    c = inner.expr(f"key{level}[x]")
                coordinates.append(inner.let(f"t{level}", c))
            leaf = inner.expr("x" if self.packed else "leaves[x]")
            sink(inner, Element(tuple(coordinates), inner.let("leaf", leaf)))

        load_key = "k = key[e]" if self.packed else "pass"
        block.run(f"for e in range(0, count):\n    x = order[e]\n    {load_key}\n    BODY", BODY=body)


@frozen
class Remapped:
    """The elements of several tensors at new coordinates, one tensor after the other.

    Tensor k is `a{k}`: its buffers `a{k}_pos0` and so on, its extents `a{k}_m0`, ..., the parameters of its remap
    `a{k}_k0` and `a{k}_v0`.
    """

    parts: tuple[tuple[Operand, Remap], ...]

    def emit(self, block: Block, target: Format, intervals: Sequence[Interval], sink: Sink) -> None:
        for number, (source, remap) in enumerate(self.parts):
            _emit_remapped(block, f"a{number}", source, remap, target, sink)


def _emit_remapped(block: Block, name: str, source: Operand, remap: Remap, target: Format, sink: Sink) -> None:
    builder = block.builder
    assert source.format is not None
    values = builder.buffer(f"{name}_vals", source.scalar)
    names: dict[str, Name] = {"a_vals": values}
    names |= {k: builder.scalar(f"{name}_{k}") for k in remap.scalars}
    for v, scalar in remap.buffers:
        names[v] = builder.buffer(f"{name}_{v}", scalar, wide=scalar in ("i32", "i64"))
    text = nested((*remap.steps, "EMIT"))

    def leaf(inner: Block, point: Place) -> None:
        def emit(at: Block) -> None:
            dims = tuple(at.let("x", at.expr(c)) for c in remap.coordinates)
            coordinates = tuple(at.let("t", coordinate_of(level.expression, dims)) for level in target.levels)
            sink(at, Element(coordinates, point.leaf, dims, values.read(point.leaf)))

        places: dict[str, Name] = {f"x{d}": x for d, x in enumerate(point.at)}
        inner.run(text, EMIT=emit, leaf=point.leaf, **places, **names)

    walk(block, name, source, tuple(builder.scalar(f"{name}_m{d}") for d in range(source.format.ndim)), leaf)


_COLLECT = """
key_a[found] = key
at_a[found] = found
in_order = in_order and last <= key
last = key
held[found] = value
"""

_SORT = """
shift: i64 = 0
while in_order == False and shift < bits:
    for d in range(0, 1 << digit):
        ends[d] = 0
    for e in range(0, found):
        ends[(key_a[e] >> shift) & mask] += 1
    total: i64 = 0
    for d in range(0, 1 << digit):
        total += ends[d]
        ends[d] = total - ends[d]
    for e in range(0, found):
        k = key_a[e]
        d = (k >> shift) & mask
        at = ends[d]
        ends[d] = at + 1
        key_b[at] = k
        at_b[at] = at_a[e]
    for e in range(0, found):
        key_a[e] = key_b[e]
        at_a[e] = at_b[e]
    shift += digit
for e in range(0, found):
    origin = at_a[e]
    BODY
"""


@frozen
class Ordered:
    """The elements of a stream, at most `room`, sorted by their coordinates on the first `count` levels; stable.

    They are held in the kernel's memory, and sorted by radix where they do not come in order. Parameters `shift{l}` say
    where level l's coordinate lies in the key of `bits` bits, of which `digit` are sorted by at a time.
    """

    stream: Remapped
    count: int

    def emit(self, block: Block, target: Format, intervals: Sequence[Interval], sink: Sink) -> None:
        builder, levels = block.builder, range(target.nlevels)
        builder.scalar("room")
        builder.scalar("bits")
        builder.scalar("digit")
        for buffer in ("key_a", "key_b", "at_a", "at_b", *(f"held{level}" for level in levels)):
            block.run(f"{buffer}: i64[room] = empty")
        block.run(
            "held: T[room] = empty\nends: i64[1 << digit] = empty\nmask = (1 << digit) - 1",
            T=self.stream.parts[0][0].scalar,
        )
        block.run("found: i64 = 0\nlast: i64 = -1\nin_order: bool = True")

        def collect(inner: Block, element: Element) -> None:
            names: dict[str, Name] = {f"c{level}": c for level, c in enumerate(element.coordinates)}
            names |= {f"lo{level}": intervals[level].lo for level in levels}
            names |= {f"shift{level}": builder.scalar(f"shift{level}") for level in range(self.count)}
            key = " | ".join(f"((c{level} - lo{level}) << shift{level})" for level in range(self.count))
            held = "".join(f"held{level}[found] = c{level}\n" for level in levels)
            assert element.value is not None
            inner.run(f"key = {key}\n{_COLLECT}{held}found += 1", value=element.value, **names)

        self.stream.emit(block, target, intervals, collect)

        def body(inner: Block) -> None:
            coordinates = tuple(inner.let("c", inner.expr(f"held{level}[origin]")) for level in levels)
            sink(inner, Element(coordinates, inner.expr("origin"), (), inner.expr("held[origin]")))

        block.run(_SORT, BODY=body)


Stream = Walked | Sorted | Remapped | Ordered

"""The last two levels of an n:m format -> a loop that takes several groups at once, coordinates from packed words.

    for g in range(A_size1 // 8):              y[i] += A[i,j] * x[j], 2:4 of float32, 16 lanes
        word = A_packed2[i * words + g]
        place = splat(word, 16) >> 2 * ramp & 3 | 4 * (ramp // 2)
        table = vload(x, 32 * g, 32)
        acc += vload(A_vals, row + 16 * g, 16) * permute(table, place)

Next to a register tile, whose operands are read in rows, the elements are written out one by one instead, with
coordinates that are shifts of the word: a load less for each. Groups that remain are walked as those of any format.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ... import tuning
from ...classes import define, frozen
from ...errors import CompilerBug
from ...ir.loop import Expr, Prefetch
from ...ir.ops import cast, const, load, op
from ...ir.types import Type
from ..build import Block
from ..fold import fold
from ..operand import ParamRef
from ..packed_coordinates import WORD, coordinate_bits
from .nest import Walk
from .operand_nest import OperandNest

__all__ = ["Reads", "lower_packed", "reads_of"]

AHEAD, BYTES_AHEAD = tuning.PACKED_PREFETCH, tuning.PACKED_BYTES_AHEAD


def lower_packed(lowering: OperandNest, block: Block, walk: Walk, reads: Reads | None) -> None:
    """The statements of the last two levels below `walk`, where the output is bound above them.

    reads : those that the innermost loops are at; all of them without
    """
    _PackedGroups(lowering, walk, reads).emit(block)


def reads_of(lowering: OperandNest) -> Expr:
    """How often the coordinates below a parent are read; those of the groups that remain are not counted."""
    return fold("floordiv", _count(lowering), const(lowering.plan.packed // _arguments(lowering)[0]))


@frozen
class Reads:
    """The reads of packed coordinates below each parent from start to stop, the first group that remains, and how many
    elements after those that are read come those of the block that is walked next; where there are blocks, whether this
    is the last one."""

    start: Expr
    stop: Expr
    rest: Expr
    ahead: Expr
    is_last: Expr | None = None

    @classmethod
    def all(cls, lowering: OperandNest, block: Block) -> Reads:
        """All of them."""
        reads, together = block.let("reads", reads_of(lowering)), lowering.plan.packed
        rest = block.let("rest", fold("mul", reads, const(together // _arguments(lowering)[0])))
        return cls(const(0), reads, rest, const(AHEAD * together))

    @classmethod
    def of(cls, lowering: OperandNest, block: Block, start: Expr, reads: Expr) -> Reads:
        """A block of a schedule's panels, the last of which takes the groups that remain. Behind it comes the first
        of the next panel."""
        plan, n, count = lowering.plan, _arguments(lowering)[0], _count(lowering)
        stop = block.let("stop", op("min", fold("add", start, const(plan.reads)), reads))
        is_last = block.let("is_last", op("eq", stop, reads))
        rest = op("select", is_last, fold("mul", reads, const(plan.packed // n)), count)
        next_panel = fold("sub", fold("mul", count, const(plan.panel * n)), fold("mul", start, const(plan.packed)))
        ahead = op("select", is_last, next_panel, const(plan.reads * plan.packed))
        return cls(start, stop, block.let("rest", rest), block.let("ahead", ahead), is_last)


def _count(lowering: OperandNest) -> Expr:
    """The groups below a parent."""
    return lowering.nest.levels[lowering.nest.format.nlevels - 2].name("N")


def _arguments(lowering: OperandNest) -> tuple[int, ...]:
    """n and m."""
    return lowering.nest.format.levels[-1].format.arguments


@define(slots=False)
class _PackedGroups:
    """`together` elements at a time of the groups, `n` of `m`, below a parent."""

    lowering: OperandNest
    walk: Walk
    block: Reads | None

    def __post_init__(self) -> None:
        self.nest, self.together = self.lowering.nest, self.lowering.plan.packed
        bits = coordinate_bits(self.nest.format, self.nest.operand.ragged)
        if bits is None:
            raise CompilerBug(f"{self.nest.format}: no coordinates of its last level are packed")
        self.bits = bits
        self.n, self.m = _arguments(self.lowering)
        self.groups = self.together // self.n
        self.count = _count(self.lowering)

    @cached_property
    def unit(self) -> int:
        """Bits of the coordinates that are read at once."""
        return self.together * self.bits

    def emit(self, block: Block) -> None:
        lowering, walk = self.lowering, self.walk
        stored = fold("mul", self.count, const(self.n))
        whole_words = fold("floordiv", fold("add", fold("mul", stored, const(self.bits)), const(WORD - 1)), const(WORD))
        words = block.let("words", fold("mul", whole_words, const(WORD // self.unit)))
        first_word = block.let("word", fold("mul", walk.position, words))
        first = block.let("first", fold("mul", walk.position, self.count))
        reads = self.block or Reads.all(lowering, block)
        scalar = f"u{self.unit}"
        buffer = self.nest.params.buffer(ParamRef("packed", self.nest.name, walk.depth + 1), scalar)

        if reads.is_last is not None:
            panel = fold("mul", words, const(lowering.plan.panel))
            later = fold("add", first_word, op("select", reads.is_last, panel, reads.stop))
            line, most = 64 * 8 // self.unit, BYTES_AHEAD * 8 // self.unit
            steps = range(0, min(lowering.plan.reads, most), line)
            block.stmts += [Prefetch(buffer, fold("add", later, const(k))) for k in steps]

        def chunk(inner: Block, t: Expr) -> None:
            word = inner.let("word", load(buffer, scalar, fold("add", first_word, t)))
            group = inner.let("group", fold("mul", t, const(self.groups)))
            q = inner.let("q", fold("mul", fold("add", first, group), const(self.n)))
            values = self.nest.params.buffer(ParamRef("vals", self.nest.name), self.nest.operand.scalar)
            inner.stmts.append(Prefetch(values, fold("add", q, reads.ahead)))
            (self.one_by_one if lowering.free_vector else self.in_lanes)(inner, word, group, q)

        block.loop("t", reads.start, reads.stop, chunk)
        self.nest.coordinate_loop(block, walk, reads.rest, self.count, lowering.descend)

    def element(self, group: Expr, c: Expr, q: Expr) -> Walk:
        """The walk at an element."""
        coordinates = (*self.walk.coordinates, group, c)
        return replace(self.walk, depth=self.nest.format.nlevels, coordinates=coordinates, position=q)

    def one_by_one(self, block: Block, word: Expr, group: Expr, q: Expr) -> None:
        """The elements written out."""
        mask = const(self.m - 1, word.type)
        for k in range(self.together):
            c = block.let("c", cast(op("band", op("shr", word, const(k * self.bits, word.type)), mask), "i64"))
            at = fold("add", group, const(k // self.n))
            self.lowering.leaf(block, self.element(at, c, fold("add", q, const(k))))

    def in_lanes(self, block: Block, word: Expr, group: Expr, q: Expr) -> None:
        """The elements in the lanes of a vector."""
        lowering, terms = self.lowering, self.lowering.terms
        is_wide = self.unit > 32 or terms.compute == "f64"
        kind = Type("u64" if is_wide else "u32", self.together)
        ramp = op("ramp", const(0, kind))
        shifted = op("shr", cast(cast(word, kind.scalar), kind), op("mul", ramp, const(self.bits, kind)))
        offset = op("mul", op("floordiv", ramp, const(self.n, kind)), const(self.m, kind))
        places = block.let("place", op("bor", op("band", shifted, const(self.m - 1, kind)), offset))
        point = self.element(group, const(0), q)
        along = lowering.nest.indices[next(d for d, form in enumerate(self.nest.format.inverse) if self.is_last(form))]
        tables = []
        for access in lowering.stmt.accesses:
            if terms.operands[access.tensor].format is None and along in access.indices:
                for piece in lowering.pieces:
                    value = terms.table(access, point, piece, lowering.base, self.groups * self.m)
                    tables.append(((access.tensor, piece.offset), block.let("table", value)))
        lowering.leaf(block, replace(point, lanes=self.together, tables=tuple(tables), places=places))

    def is_last(self, form: tuple[tuple[int, int], ...]) -> bool:
        return (self.nest.format.nlevels - 1, 1) in form

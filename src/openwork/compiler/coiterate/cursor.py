"""Operands of a co-iteration: the cursor that each has in the nest, and its level functions as loop IR."""

from __future__ import annotations

from dataclasses import replace

from ...classes import frozen
from ...format.expression import Expression
from ...ir.loop import Expr, Load, Var
from ...ir.ops import cast, const, load, op
from ..build import Block, Parameters
from ..fold import fold
from ..level_iterator import LevelIterator, Point
from ..operand import ParamRef
from .merge import Input
from .search import bisect

__all__ = ["Cursor", "Source", "Walker"]


@frozen
class Cursor(Point):
    """A point among an operand's levels.

    Below a nonunique level the children are those of the positions `position` to `end`, one each. `presence`: whether
    the operand is present, where this is a value at run time; an absent one has no children.
    """

    end: Expr | None = None
    presence: Expr | None = None


@frozen
class Walker:
    """A level that is being walked: the variable of the current position, and the end."""

    at: Var
    end: Expr


class Source(LevelIterator[Cursor]):
    """The levels of one operand in the kernel that is being built."""

    def __init__(self, entry: Input, params: Parameters) -> None:
        super().__init__(entry.name, entry.operand, params)
        self.input = entry
        for k, (pos, crd) in enumerate(zip(entry.operand.pos, entry.operand.crd, strict=True)):
            for part, scalar in (("pos", pos), ("crd", crd)):
                if scalar is not None:
                    params.buffer(ParamRef(part, entry.name, k), scalar)
        params.buffer(ParamRef("vals", entry.name), entry.operand.scalar)

    def stem(self, kind: str, depth: int) -> str:
        return f"{kind}{self.name}"

    def counts(self, cursor: Cursor) -> Expression | None:
        """The expression of the next level; None for a broadcast dimension. The cursor is not at the leaf."""
        return self.input.levels[cursor.depth]

    def at_leaf(self, cursor: Cursor) -> bool:
        return cursor.depth == self.nlevels

    def value(self, position: Expr, batch: Expr | None) -> Expr:
        """The element at a leaf position."""
        return load(f"{self.name}_vals", self.operand.scalar, self.leaf(position, batch))

    def probes(self, cursor: Cursor) -> bool:
        """Whether the next level, which is located, may lack a coordinate."""
        return self.levels[cursor.depth].format.functions.present is not None

    def contiguous(self, cursor: Cursor) -> bool:
        """Whether the next level's coordinates are contiguous in a buffer, parent after parent."""
        functions = self.levels[cursor.depth].format.functions
        return functions.coordinate == "crd[q]" and not functions.padded and cursor.batch is None

    def elements(self, position: Expr, batch: Expr | None, lanes: int) -> Expr:
        """A vector of consecutive elements from a leaf position on."""
        first = self.value(position, batch)
        assert isinstance(first, Load)
        return load(first.buffer, first.type.scalar, first.index, lanes)

    @property
    def element_type(self) -> str | None:
        """The scalar type of the elements; None where these are not contiguous."""
        return self.operand.scalar

    def coordinate_block(self, cursor: Cursor, q: Expr, lanes: int, beyond: int = 0) -> tuple[Expr | None, Expr]:
        """(in bounds, coordinates): whether `lanes` + `beyond` coordinates of the next level can be read from q on
        (None: always), and a vector of the first `lanes`."""
        last = self.params.scalar(ParamRef("last", self.name, cursor.depth))
        return op("le", op("add", q, const(lanes + beyond - 1)), last), self.coordinate(cursor, q, lanes)

    def scalar(self, cursor: Cursor) -> str:
        """The type of the next level's coordinates."""
        return self.operand.crd[cursor.depth] or "i64"

    def unique(self, cursor: Cursor) -> bool:
        """Whether a coordinate of the next level is there once at most."""
        return self.levels[cursor.depth].format.unique

    @property
    def has_followers(self) -> bool:
        """Whether other operands are read at the position of its walker."""
        return False

    @property
    def nlevels(self) -> int:
        """How many levels there are."""
        return self.format.nlevels

    def may_lack(self, cursor: Cursor, entered: bool) -> bool:
        """Whether the operand may turn out to be absent below the next level, or already in it."""
        return any(self.input.may_lack(k) for k in range(cursor.depth + entered, self.nlevels))

    # -- walking ---------------------------------------------------------------------------------------------------

    def walker(self, block: Block, cursor: Cursor, lower: Expr | None, upper: Expr | None) -> Walker:
        """A walker at the begin of the next level, between two coordinates where these are given."""
        first, last = self.bounds(cursor) if cursor.end is None else (cursor.position, cursor.end)
        first, last = _if_present(cursor, first), _if_present(cursor, last)
        if self.levels[cursor.depth].format.functions.present is not None:
            last = self._last_present(block, cursor, block.let("begin", first), block.let("slots", last))
        if lower is not None and upper is not None:
            first, last = block.let("begin", first), block.let("end", last)
            first = self._bound(block, cursor, first, last, lower)
            last = self._bound(block, cursor, first, last, upper)
        end = block.let(f"e{self.name}", last)
        return Walker(block.mut(f"q{self.name}", first), end)

    def _last_present(self, block: Block, cursor: Cursor, first: Expr, last: Expr) -> Expr:
        """The end of the slots in use: those behind hold a sentinel."""
        end = block.mut("used", first)
        present = self.present(cursor, q=end)
        assert present is not None
        block.loop_while(op("and", op("lt", end, last), present), lambda b: b.assign(end, op("add", end, const(1))))
        return end

    def _bound(self, block: Block, cursor: Cursor, first: Expr, last: Expr, limit: Expr) -> Expr:
        """The first position from `first` to `last` whose coordinate is not below `limit`."""
        low = block.mut("low", first)
        bisect(block, low, block.mut("high", last), lambda q: self.before(cursor, q, limit))
        return low

    # -- searching -------------------------------------------------------------------------------------------------

    def seeks(self, cursor: Cursor) -> bool:
        """Whether coordinates of the next level, which is walked, can be searched for."""
        return self.levels[cursor.depth].format.functions.seek is not None

    def stored_level(self, cursor: Cursor) -> int | None:
        """The first stored level below the next level, a full one: its pos tells which coordinates have elements."""
        for k in range(cursor.depth, self.nlevels):
            functions = self.levels[k].format.functions
            if functions.passed is not None:
                return k if k > cursor.depth and cursor.end is None else None
            if not functions.full or self.levels[k].format.batched or self.input.levels[k] is None:
                return None
        return None

    def first_parent(self, cursor: Cursor, p: Expr) -> Expr:
        """The first parent of the level `stored_level` under position p of the next level."""
        stored_level = self.stored_level(cursor)
        assert stored_level is not None
        for k in range(cursor.depth + 1, stored_level):
            p = fold("mul", p, self.levels[k].name("N"))
        return p

    def edge(self, cursor: Cursor, p: Expr) -> Expr:
        """The position of the level `stored_level` where the descendants of position p of the next level begin."""
        parent = replace(cursor, depth=self.stored_level(cursor) or 0, position=self.first_parent(cursor, p))
        return self.bounds(parent)[0]

    def passed(self, cursor: Cursor, p: Expr, q: Expr) -> Expr:
        """Whether the descendants of position p of the next level end at or before position q of `stored_level`."""
        last = fold("sub", self.first_parent(cursor, fold("add", p, const(1))), const(1))
        parent = replace(cursor, depth=self.stored_level(cursor) or 0, position=last)
        passed = self.levels[parent.depth].format.functions.passed
        assert passed is not None
        return self.function(parent, passed, q=q)

    def segment(self, block: Block, cursor: Cursor, walker: Walker, c: Expr) -> Var | None:
        """The end of the positions from the walker's that hold coordinate c; None where it is one at most."""
        if self.unique(cursor):
            return None
        end = block.mut(f"s{self.name}", walker.at)
        test = op("and", op("lt", end, walker.end), op("eq", self.coordinate(cursor, end), c))
        block.loop_while(test, lambda b: b.assign(end, op("add", end, const(1))))
        return end

    # -- entering --------------------------------------------------------------------------------------------------

    def walked(self, cursor: Cursor, walker: Walker, segment: Var | None) -> Cursor:
        """One level down, at the walker's position."""
        return replace(cursor, depth=cursor.depth + 1, position=walker.at, end=segment)

    def locate(self, block: Block, cursor: Cursor, c: Expr, size: Expr, low: Expr) -> tuple[Cursor, Expr | None]:
        """One level down at coordinate c, and the condition under which it is there (None: always)."""
        names = {"c": c, "N": size, "lo": low}
        child = self.child(block, replace(cursor, end=None), **names)
        return child, self.present(cursor, **names)

    def locate_broadcast(self, block: Block, cursor: Cursor) -> tuple[Cursor, Expr | None]:
        """One level down in a broadcast dimension: its only coordinate is 0; with the condition that it is there."""
        level = self.levels[cursor.depth]
        if not self.is_walked(cursor):
            return self.locate(block, cursor, const(0), level.name("N"), const(0))
        child = replace(cursor, depth=cursor.depth + 1)
        if cursor.end is not None:
            return replace(child, end=None if level.format.unique else cursor.end), None
        first, last = (_if_present(cursor, bound) for bound in self.bounds(cursor))
        first = block.let(f"p{self.name}", first)
        nonempty = None if level.format.functions.branchless else op("lt", first, last)
        taken = self.present(cursor, q=first)
        is_present = nonempty if taken is None else both(nonempty, taken)
        end = None if level.format.unique else block.let(f"s{self.name}", last)
        return replace(child, position=first, end=end), is_present


def _if_present(cursor: Cursor, bound: Expr) -> Expr:
    """A bound of the children: 0 where there are none; nothing is read then."""
    return bound if cursor.presence is None else op("select", cursor.presence, bound, const(0))


def both(a: Expr | None, b: Expr) -> Expr:
    """The conjunction."""
    return b if a is None else op("and", a, b)


def truth_as_integer(value: Expr) -> Expr:
    """A truth value as 0 or 1."""
    return cast(value, "i64")

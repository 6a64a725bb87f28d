"""A sparse operand's levels -> their loops and lookups in a kernel, from level functions: what all lowerings share.

    for c0 in range(0, n0):                       i : dense
        for q1 in range(pos1[c0], pos1[c0 + 1]):  j : compressed
            c1 = crd1[q1]
            BODY

A `Point` says how many levels are entered, and where; the iterator knows of the level below it the bounds, the
coordinate at a position, what is present, and the child at a coordinate or a position. A lowering chooses between a
loop over all children (`each`), one child (`enter`, `child`) and a walk of its own between the bounds.

Padding is never visited: where a level completes a dimension, the loop's bounds are clipped to the shape (levels that
loop over coordinates) or the element is guarded (levels that loop over positions); empty slots are guarded by the
level's `present`. No loop divides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Generic, TypeVar

from ..classes import frozen
from ..format.level import Iterate
from ..ir.loop import Const, Expr, Op
from ..ir.ops import const, op
from .build import Block, Hole, Parameters
from .fold import fold
from .intervals import Interval, gaps
from .level_functions import Level, evaluate, is_signed
from .operand import Operand, ParamRef

__all__ = ["LevelIterator", "Point", "when_all"]


@frozen
class Point:
    """A place among an operand's levels: `depth` of them are entered, the children of `position` come next.

    batch: the number of the slice of deeper buffers, below batch levels. lanes: how many children are entered side by
    side, at consecutive positions whose coordinates, read together, are a vector.
    """

    depth: int = 0
    position: Expr = field(default_factory=lambda: const(0))
    batch: Expr | None = None
    coordinates: tuple[Expr, ...] = ()
    lanes: int = 1


P = TypeVar("P", bound=Point)


def when_all(block: Block, conditions: Sequence[Expr], then: Hole, orelse: Hole | None = None) -> None:
    """`then` under the conjunction of conditions, `orelse` otherwise; `then` alone where there are none."""
    if conditions:
        block.when(reduce(lambda a, b: op("and", a, b), conditions), then, orelse)
    else:
        then(block)


class LevelIterator(Generic[P]):
    """The levels of the operand `name` in a kernel that is being built.

    Intervals of levels are parameters of the kernel, unless `intervals` gives them. span: the bounds of the outermost
    level's loop, instead of the whole level. tile = (d, lo, hi): the elements with lo <= dimension d < hi alone, where
    loops over coordinates complete it.
    """

    position_hints: tuple[str, ...] = ()
    """hints of loops over positions"""

    def __init__(
        self, name: str, operand: Operand, params: Parameters, intervals: Sequence[Interval] | None = None
    ) -> None:
        assert operand.format is not None
        self.name, self.operand, self.params, self.format = name, operand, params, operand.format
        interval_of = [None] * self.format.nlevels if intervals is None else intervals
        self.levels = [Level(name, k, operand, params, interval) for k, interval in enumerate(interval_of)]
        self.gaps = gaps(self.format)
        self.sums = (*self.format.inverse, *(gap.form for gap in self.gaps))
        """the dimensions, and after them gaps, as sums of coordinates: (level, factor) each"""
        self.ragged = operand.ragged or bool(self.gaps)
        self.span: tuple[Expr, Expr] | None = None
        self.tile: tuple[int, Expr, Expr] | None = None

    # -- what a lowering says ----------------------------------------------------------------------------------------

    def extent(self, dim: int) -> Expr:
        """The extent of a dimension of the shape."""
        raise NotImplementedError

    def stem(self, kind: str, depth: int) -> str:
        """The name of a variable of level `depth`: its coordinate "c", position "q" of a loop, "p" of a child, ..."""
        return f"{self.name}_{kind}{depth}"

    # -- level functions ---------------------------------------------------------------------------------------------

    def names(self, point: P) -> dict[str, Expr]:
        """What the names in level functions of the level below `point` stand for."""
        names = {"p": point.position}
        if point.batch is not None and not self.levels[point.depth].format.batched:
            names["batch"] = point.batch
        return names

    def function(self, point: P, text: str, **names: Expr) -> Expr:
        """The value of a level function of the level below `point`."""
        return evaluate(text, self.levels[point.depth], {**self.names(point), **names})

    def is_walked(self, point: P) -> bool:
        """Whether the level below `point` is walked by positions; otherwise coordinates are located."""
        return self.levels[point.depth].format.functions.iterate is Iterate.POSITION

    def coordinate(self, point: P, q: Expr, lanes: int = 1) -> Expr:
        """The coordinate at position q of the level below `point`, or a vector of those from there on."""
        level = self.levels[point.depth]
        return evaluate(level.format.functions.coordinate, level, {**self.names(point), "q": q}, lanes)

    def before(self, point: P, q: Expr, c: Expr) -> Expr:
        """Whether position q of the level below `point` lies before coordinate c."""
        seek = self.levels[point.depth].format.functions.seek
        assert seek is not None
        return self.function(point, seek, q=q, c=c)

    def present(self, point: P, **names: Expr) -> Expr | None:
        """Whether something is stored at the coordinate c, or the position q; None where that is always so."""
        text = self.levels[point.depth].format.functions.present
        return None if text is None else self.function(point, text, **names)

    def bounds(self, point: P) -> tuple[Expr, Expr]:
        """The bounds of a loop over the level below `point`: of its positions, or of its coordinates in the shape."""
        if not self.is_walked(point):
            return self.clipped(point, point.depth)
        if point.depth == 0 and self.span is not None:
            return self.span
        first, last = (self.function(point, text) for text in self.levels[point.depth].format.functions.bounds)
        return first, last

    def leaf(self, position: Expr, batch: Expr | None) -> Expr:
        """The index into the values of the element at a position of the last level."""
        if batch is None:
            return position
        last = max(self.format.nlevels - 1, 0)
        stride = self.params.scalar(ParamRef("slice", self.name, last, "vals"))
        return fold("add", fold("mul", batch, stride), position)

    # -- entering ----------------------------------------------------------------------------------------------------

    def child(self, block: Block, point: P, **names: Expr) -> P:
        """One level down, at the coordinate c or the position q, whose coordinate and position are bound here."""
        level, depth = self.levels[point.depth], point.depth
        functions, values = level.format.functions, {**self.names(point), **names}
        c = block.let(self.stem("c", depth), evaluate(functions.coordinate, level, values, point.lanes))
        child = replace(point, depth=depth + 1, coordinates=(*point.coordinates, c))
        if level.format.batched:
            size = evaluate("N", level, values)
            row = const(0) if point.batch is None else fold("mul", point.batch, size)
            return replace(child, batch=block.let(self.stem("batch", depth), fold("add", row, c)), position=const(0))
        position = evaluate(functions.position, level, {**values, "c": c})
        return replace(child, position=block.let(self.stem("p", depth), position))

    def enter(self, block: Block, point: P, body: Callable[[Block, P], None], **names: Expr) -> None:
        """`body` at the child of coordinate c or position q, where it is present and in the shape."""

        def inside(inner: Block) -> None:
            child = self.child(inner, point, **names)
            when_all(inner, self.guards(child), lambda b: body(b, child))

        present = self.present(point, **names)
        when_all(block, [] if present is None else [present], inside)

    def each(self, block: Block, point: P, body: Callable[[Block, P], None]) -> None:
        """The loop over the level below `point`, with `body` at every child."""
        depth = point.depth
        if self.levels[depth].format.is_singleton:
            self.enter(block, point, body, q=point.position)
            return
        lo, hi = self.bounds(point)
        if self.is_walked(point):
            stem = self.stem("q", depth)
            block.loop(stem, lo, hi, lambda b, q: self.enter(b, point, body, q=q), self.position_hints)
        else:
            self.coordinate_loop(block, point, lo, hi, body)

    def coordinate_loop(self, block: Block, point: P, lo: Expr, hi: Expr, body: Callable[[Block, P], None]) -> None:
        """The loop over coordinates; of a block's innermost level two, one of constant length for full blocks."""
        depth, level = point.depth, self.levels[point.depth]
        first, last = block.let(self.stem("first", depth), lo), block.let(self.stem("last", depth), hi)

        def loop(inner: Block, lo: Expr, hi: Expr) -> None:
            inner.loop(self.stem("c", depth), lo, hi, lambda b, c: self.enter(b, point, body, c=c))

        if depth == self.format.nlevels - 1 and isinstance(level.constant_extent, int):
            whole_lo, whole_hi = level.name("lo"), level.name("hi")
            if isinstance(whole_hi, Const) and (first, last) != (whole_lo, whole_hi):
                full = op("and", op("eq", first, whole_lo), op("eq", last, whole_hi))
                block.when(full, lambda b: loop(b, whole_lo, whole_hi), lambda b: loop(b, first, last))
                return
        loop(block, first, last)

    # -- the shape ---------------------------------------------------------------------------------------------------

    def known(self, point: P) -> dict[int, Expr]:
        """The coordinates of levels that are known at `point`."""
        return dict(enumerate(point.coordinates))

    def dimension(self, dim: int, point: P, without: int = -1) -> Expr:
        """A dimension's coordinate from those of levels, the constant part last, without the term of one level."""
        total: Expr = const(0)
        fixed = 0
        known = self.known(point)
        for k, a in self.sums[dim]:
            if k == without:
                continue
            c = known[k]
            if isinstance(c, Const):
                fixed += a * int(c.value.real)
            else:
                total = fold("sub" if a < 0 else "add", total, fold("mul", c, const(abs(a))))
        return fold("add", total, const(fixed))

    def completed(self, depth: int) -> list[int]:
        """The dimensions whose coordinate is known at level `depth` and not before."""
        return [d for d, form in enumerate(self.sums) if form and max(k for k, _ in form) == depth]

    def end(self, dim: int) -> Expr:
        """The extent of a dimension, or the size of a gap."""
        gap = dim - self.format.ndim
        return self.extent(dim) if gap < 0 else const(self.gaps[gap].size)

    def dims(self, dim: int) -> tuple[int, ...]:
        """The dimension, or those that a gap belongs to."""
        gap = dim - self.format.ndim
        return (dim,) if gap < 0 else self.gaps[gap].dims

    def overhangs(self, dim: int) -> bool:
        """Whether coordinates of levels may make up one of the dimension that lies outside the shape, or in a gap."""
        form = self.sums[dim]
        last = max((k for k, _ in form), default=0)
        return len(form) > 1 and (self.ragged or self.format.levels[last].format.is_range)

    def may_be_negative(self, dim: int) -> bool:
        """Whether coordinates of levels may make up one of the dimension below zero."""
        return any(a < 0 or is_signed(self.levels[k].expression) for k, a in self.sums[dim])

    def clips(self, dim: int, depth: int) -> bool:
        """Whether the loop over level `depth` ends where the dimension does: no bound is divided but by shifts."""
        factor = abs(dict(self.sums[dim])[depth])
        by_coordinate = self.levels[depth].format.functions.iterate is Iterate.COORDINATE
        return by_coordinate and factor & (factor - 1) == 0

    def clipped(self, point: P, depth: int) -> tuple[Expr, Expr]:
        """The interval of level `depth`, cut to coordinates that keep every dimension inside its extent and tile."""
        if depth == 0 and self.span is not None:
            lo, hi = self.span
        elif self.tile is not None and self.sums[self.tile[0]] == ((depth, 1),):
            lo, hi = self.tile[1:]
        else:
            lo, hi = self.levels[depth].name("lo"), self.levels[depth].name("hi")
        for d in self.completed(depth):
            if self.overhangs(d) and self.clips(d, depth):
                in_tile = self.tile is not None and self.tile[0] == d
                first, end = self.tile[1:] if self.tile is not None and in_tile else (const(0), self.end(d))
                rest, factor = self.dimension(d, point, depth), dict(self.sums[d])[depth]
                least, beyond = _multiples(first, end, rest, factor)
                if in_tile or self.may_be_negative(d):
                    lo = fold("max", lo, least)
                hi = fold("min", hi, beyond)
        return lo, hi

    def guards(self, point: P) -> list[Expr]:
        """Conditions on an element of the level entered last that the loop's bounds do not ensure."""
        depth = point.depth - 1
        outside = [d for d in self.completed(depth) if self.overhangs(d) and not self.clips(d, depth)]
        return [test for d in outside for test in self.within_extent(d, point)]

    def within_extent(self, dim: int, point: P) -> list[Op]:
        """0 <= coordinate < extent for a dimension that several levels make up."""
        if len(self.sums[dim]) == 1:
            return []
        value = self.dimension(dim, point)
        tests = [_compare("lt", value, self.end(dim))]
        return [*tests, _compare("ge", value, const(0))] if self.may_be_negative(dim) else tests


def _compare(name: str, a: Expr, b: Expr) -> Op:
    """A comparison of two i64 values."""
    test = op(name, a, b)
    assert isinstance(test, Op)
    return test


def _multiples(first: Expr, end: Expr, rest: Expr, factor: int) -> tuple[Expr, Expr]:
    """The bounds of c where first <= rest + factor * c < end."""
    if factor > 0:
        least, beyond = fold("sub", first, rest), fold("sub", end, rest)
    else:
        least = fold("add", fold("sub", rest, end), const(1))
        beyond = fold("add", fold("sub", rest, first), const(1))
    step = abs(factor)
    least, beyond = (fold("floordiv", fold("add", x, const(step - 1)), const(step)) for x in (least, beyond))
    return least, beyond

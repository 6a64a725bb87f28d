"""The driver of a single-operand nest -> its levels, named by the statement's indices, and loops in vector lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...classes import frozen
from ...ir.loop import Expr, Var
from ...ir.ops import cast, const, op
from ...ir.types import I64, Type
from ..build import Block, Builder
from ..fold import fold
from ..level_iterator import LevelIterator, Point
from ..operand import Operand, ParamRef

__all__ = ["Body", "Bounds", "Element", "Nest", "Walk"]


@frozen
class Walk(Point):
    """A point of the nest, and the dense indices that are looped over outside the levels.

    Its lanes are also those of a block: consecutive coordinates of the last level.

    tables: by operand and offset in the register tile, the elements that lanes take theirs from; places: their places.
    within: which lanes are of the fiber, where others are of those behind it.
    """

    dense: tuple[tuple[str, Expr], ...] = ()
    tables: tuple[tuple[tuple[str, int], Expr], ...] = ()
    places: Expr | None = None
    within: Expr | None = None


Body = Callable[[Block, Walk], None]
Element = Callable[[Block, Walk, Expr], None]
"""what is done at a position of the level below a point"""
Bounds = tuple[Expr, Expr]


class Nest(LevelIterator[Walk]):
    """The levels of the driver. `lo` and `hi` bound the outermost loop, or the coordinates of dimension `sliced`."""

    position_hints = ("novector",)
    """gathering in vector lanes loses to scalar loads on the short rows that sparse matrices have"""

    def __init__(
        self, builder: Builder, tensor: str, operand: Operand, indices: tuple[str, ...], sliced: int | None = None
    ) -> None:
        super().__init__(tensor, operand, builder.params)
        self.indices = indices
        if builder.ranged:
            lo, hi = Var("lo", I64), Var("hi", I64)
            self.span = (lo, hi) if sliced is None else None
            self.tile = None if sliced is None else (sliced, lo, hi)

    def extent(self, dim: int) -> Var:
        return self.params.scalar(ParamRef("extent", self.indices[dim]))

    def stem(self, kind: str, depth: int) -> str:
        """The index where the level is a plain dimension."""
        if kind not in ("c", "p", "q"):
            return kind
        dims = [d for d, form in enumerate(self.format.inverse) if form == ((depth, 1),)]
        return ("p" if kind != "c" else "") + (self.indices[dims[0]] if dims else f"{self.name.lower()}{depth}")

    def in_lanes(
        self, block: Block, walk: Walk, bounds: Bounds, lanes: int, body: Element, masked: bool = False
    ) -> None:
        """A range of positions, `lanes` (a power of two) at a time and then one by one.

        masked: the last lanes may be of the next fibers, which lie behind this one, and count for nothing: no branch
        depends on how many are left. Only at the end of all positions they follow one by one.
        """
        first, last = block.let("first", bounds[0]), block.let("last", bounds[1])
        stem = self.stem("q", self.format.nlevels - 1)
        level = self.levels[-1]
        if masked and walk.batch is None:
            end = self.params.scalar(ParamRef("last", self.name, level.index))

            def some(b: Block, q: Expr) -> None:
                numbers = op("ramp", cast(q, Type("i64", lanes)))
                within = b.let("within", op("lt", numbers, cast(last, Type("i64", lanes))))
                body(b, replace(walk, lanes=lanes, within=within), q)

            block.when(
                op("le", fold("add", last, const(lanes - 2)), end),
                lambda b: b.loop(stem, first, last, some, step=lanes),
                lambda b: b.loop(stem, first, last, lambda c, q: body(c, walk, q), self.position_hints),
            )
            return
        vector_end = fold("add", first, op("band", fold("sub", last, first), const(-lanes)))
        middle = block.let("whole", vector_end)
        block.loop(stem, first, middle, lambda b, q: body(b, replace(walk, lanes=lanes), q), step=lanes)
        block.loop(stem, middle, last, lambda b, q: body(b, walk, q), self.position_hints)

"""A strided array as an operand of a merge: every loop over one of its dimensions advances the position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...format.expression import Expression
from ...ir.loop import Expr
from ...ir.ops import const, load
from ..build import Block, Parameters
from ..fold import fold
from ..operand import ParamRef
from .cursor import Cursor, Source
from .merge import Array

__all__ = ["StridedSource", "strided_position"]


class StridedSource(Source):
    """A strided operand: its levels are the loops that move in it."""

    def __init__(self, array: Array, order: Sequence[Expression], params: Parameters) -> None:
        self.name, self.params, self.operand = array.name, params, array.operand
        self.moves = tuple(step for step in array.moves if step)
        self.expressions = tuple(e for e, step in zip(order, array.moves, strict=True) if step)
        params.buffer(ParamRef("data", array.name), array.operand.scalar)

    @property
    def nlevels(self) -> int:
        return len(self.moves)

    def counts(self, cursor: Cursor) -> Expression | None:
        return self.expressions[cursor.depth]

    def at_leaf(self, cursor: Cursor) -> bool:
        return cursor.depth == self.nlevels

    def is_walked(self, point: Cursor) -> bool:
        return False

    def probes(self, cursor: Cursor) -> bool:
        return False

    def may_lack(self, cursor: Cursor, entered: bool) -> bool:
        return False

    def locate(self, block: Block, cursor: Cursor, c: Expr, size: Expr, low: Expr) -> tuple[Cursor, Expr | None]:
        def stride(dim: int) -> Expr:
            return self.params.scalar(ParamRef("stride", self.name, dim))

        p = strided_position(cursor.position, self.moves[cursor.depth], c, self.operand.unit, stride)
        return replace(cursor, depth=cursor.depth + 1, position=block.let(f"p{self.name}", p)), None

    def value(self, position: Expr, batch: Expr | None) -> Expr:
        return load(self.name, self.operand.scalar, position)


def strided_position(
    position: Expr, step: tuple[tuple[int, int], ...], c: Expr, unit: int | None, stride: Callable[[int], Expr]
) -> Expr:
    """The position after a loop's coordinate c; dimension `unit` has stride one."""
    for dim, factor in step:
        at = fold("mul", c, const(factor))
        position = fold("add", position, at if dim == unit else fold("mul", at, stride(dim)))
    return position

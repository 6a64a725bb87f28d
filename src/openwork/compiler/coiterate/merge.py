"""The input of a co-iteration's lowering: operands, their levels in the result's dimensions, regions, result format."""

from __future__ import annotations

from ...classes import frozen
from ...format.expression import Expression
from ..fill import Regions
from ..operand import Operand

__all__ = ["Array", "Input", "Merge", "Moves", "Reduction"]

Moves = tuple[tuple[tuple[int, int], ...], ...]
"""For each loop, (dimension, factor) of the strided array's dimensions that its coordinate advances."""


@frozen
class Input:
    """A sparse operand: the expression of each of its levels, in the result's dimensions.

    None is a level of a broadcast dimension: its extent is one, its coordinate 0.
    """

    name: str
    operand: Operand
    levels: tuple[Expression | None, ...]

    def may_lack(self, level: int) -> bool:
        """Whether the level may have no element at a coordinate."""
        assert self.operand.format is not None
        return self.operand.format.levels[level].format.functions.may_lack


@frozen
class Array:
    """A strided operand, which is located by every loop over one of its dimensions, in any order."""

    name: str
    operand: Operand
    moves: Moves


@frozen
class Reduction:
    """The expression combined by `op` into a strided array, over the loops that do not move in it.

    `counts`: the number of combined elements is stored too, so that the fill value can be combined as often as it
    occurs. `along` names an operand whose structure the result has, instead of an array of `moves`: an element goes to
    that operand's position. `guards`: dimensions that the loops may leave, at the ragged edge of blocks or the
    ends of diagonals.
    """

    op: str
    moves: Moves
    unit: int | None = None
    counts: bool = False
    along: str | None = None
    guards: tuple[int, ...] = ()


@frozen(slots=False)
class Merge:
    """A pointwise expression over several operands, and how its result is stored.

    The loops are the levels of the target: `dense`, `range` and `bitmap` levels are located, `compressed` ones and
    the singletons below them are appended to. With a reduction they are only loops. Where nothing is computed without
    the operand that `drivers` names, its elements are walked, and the others are searched for each of them.
    """

    inputs: tuple[Input, ...]
    regions: Regions
    target: Operand
    arrays: tuple[Array, ...] = ()
    reduction: Reduction | None = None
    drivers: tuple[str | None, ...] = ()
    """for each loop the operand that is walked alone, being far shorter than others; None, or empty, without one"""

    @property
    def order(self) -> tuple[Expression, ...]:
        assert self.target.format is not None
        return tuple(level.expression for level in self.target.format.levels)

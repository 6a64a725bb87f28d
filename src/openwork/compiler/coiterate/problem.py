"""The input of a co-iteration: operands, their levels in the result's dimensions, regions, the result's format."""

from __future__ import annotations

from dataclasses import dataclass

from ...format.expression import Expression
from ..fill import Fill, Regions
from ..operand import Operand

__all__ = ["Array", "Input", "Merge", "Moves", "Reduction"]

Moves = tuple[tuple[tuple[int, int], ...], ...]
"""For each loop the dimensions of a strided array along which a step of it moves, and how far."""


@dataclass(frozen=True, slots=True)
class Input:
    """An operand: what each of its levels counts, in the result's dimensions.

    None is a level of a dimension that is stretched: its extent is one, its coordinate 0.
    """

    name: str
    operand: Operand
    levels: tuple[Expression | None, ...]

    def may_lack(self, level: int) -> bool:
        """Whether the level may have no element at a coordinate."""
        assert self.operand.format is not None
        return self.operand.format.levels[level].format.functions.may_lack


@dataclass(frozen=True, slots=True)
class Array:
    """A strided operand, which is located by every loop that moves along one of its dimensions, in any order."""

    name: str
    operand: Operand
    moves: Moves


@dataclass(frozen=True, slots=True)
class Reduction:
    """The expression combined by `op` into a strided array, over the loops that do not move in it.

    `counts`: how many elements were combined is written too, for the fill value to be taken in as often as it is
    missing. `along` names an operand in whose structure the result is, instead of an array of `moves`: an element
    goes where that operand's is. `guards`: dimensions that the loops may leave, at the ragged edge of blocks or the
    ends of diagonals.
    """

    op: str
    moves: Moves
    unit: int | None = None
    counts: bool = False
    along: str | None = None
    guards: tuple[int, ...] = ()


@dataclass(frozen=True)
class Merge:
    """A pointwise expression over several operands, and how its result is stored.

    The loops are the levels of the target: `dense`, `range` and `bitmap` levels are located, `compressed` ones and
    the singletons below them are appended to. With a reduction they are only loops. Where nothing is computed without
    the operand that `leads` names, its elements are walked, and the others are searched for each of them.
    """

    inputs: tuple[Input, ...]
    regions: Regions
    target: Operand
    arrays: tuple[Array, ...] = ()
    reduction: Reduction | None = None
    drivers: tuple[str | None, ...] = ()
    """for each loop the operand that is far shorter there than others; empty, or None: there is no such one"""

    @property
    def order(self) -> tuple[Expression, ...]:
        assert self.target.format is not None
        return tuple(level.expression for level in self.target.format.levels)

    @property
    def fill(self) -> Fill:
        return self.regions.fill

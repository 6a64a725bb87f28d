"""What a merge is made from: operands, their levels in the result's dimensions, regions, the result's format."""

from __future__ import annotations

from dataclasses import dataclass

from ...format.expression import Expression
from ...ir.loop import Const
from ..fill import Regions
from ..operand import Operand

__all__ = ["Input", "Merge"]


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


@dataclass(frozen=True)
class Merge:
    """A pointwise expression over several operands, and how its result is stored.

    The loops are the levels of the target: `dense`, `range` and `bitmap` levels are located, `compressed` ones and
    the singletons below them are appended to.
    """

    inputs: tuple[Input, ...]
    regions: Regions
    target: Operand

    @property
    def order(self) -> tuple[Expression, ...]:
        assert self.target.format is not None
        return tuple(level.expression for level in self.target.format.levels)

    @property
    def fill(self) -> Const:
        return self.regions.fill

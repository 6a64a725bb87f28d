"""The plan of a product: statements in index notation, each with the route by which it becomes loops.

walk       y[i] += T0[i, j] * T1[j]                one sparse operand walked, dense ones located in; dense result
sample     C[i, j] += T0[i, j] * T1[i, k] * ...    the same, into the structure of the sparse operand
merge      C[i, j] = T0[i, j] * T1[i, j]           co-iteration, a sparse result
contract   C[i, k] += T0[i, j] * T1[j, k]          two, matricized: Gustavson's product
fold       T2[i] += T0[i, i, j]                    one operand: its diagonals, sums over indices that no other has
dense      C[i, k] += T0[i, j] * T1[j, k]          the array library's
store      T2[i, j] = T0[i, j]                     a dense operand stored as a sparse one
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

from ...classes import frozen
from ...format.format import Format
from ...ir.index import Assignment
from ..coiterate.merge_formats import Dims
from ..fill import Regions

__all__ = ["CoiterationSchedule", "OperandFacts", "Plan", "Route", "SparseOperand", "Step"]


class Route(Enum):
    """How a statement becomes loops."""

    WALK = "walk"
    SAMPLE = "sample"
    MERGE = "merge"
    CONTRACT = "contract"
    FOLD = "fold"
    DENSE = "dense"
    STORE = "store"


@frozen
class OperandFacts:
    """The facts of an operand that a plan may depend on: its format (None for a dense array) and, where the route
    depends on them, its extents and number of specified elements."""

    format: Format | None
    shape: tuple[int, ...] = ()
    nse: int = 0


class SparseOperand(Protocol):
    """The facts of a sparse operand that a merge's schedule follows from."""

    @property
    def format(self) -> Format: ...
    @property
    def scalar(self) -> str: ...
    @property
    def fill_value(self) -> Any: ...
    @property
    def nse(self) -> int: ...


@frozen(eq=False)
class CoiterationSchedule:
    """What the schedules of merges and of reduced merges share: regions in which something is computed, conversions."""

    text: str
    regions: Regions
    dims: dict[str, Dims]
    """which dimension of the loops each dimension of an operand is"""
    steps: tuple[Format | None, ...]
    """the format that each sparse operand is converted to first"""

    def __str__(self) -> str:
        return self.text


@frozen
class Step:
    """One statement, its route, and an estimate of the elements of its result where one decided the order."""

    statement: Assignment
    route: Route
    estimate: float | None = None

    def __str__(self) -> str:
        return f"{self.route.value}: {self.statement}"


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they run; the last one's left side is the result."""

    steps: tuple[Step, ...]

    @cached_property
    def summed(self) -> frozenset[str]:
        """Operands that are summed alone, before any product: their own scalar type may be too narrow for the sum."""
        alone = (
            s.statement for s in self.steps if s.route in (Route.FOLD, Route.DENSE) and len(s.statement.tensors) == 1
        )
        sums = (stmt for stmt in alone if stmt.reduction_indices)
        return frozenset(name for stmt in sums for name in stmt.tensors)

    @cached_property
    def casts(self) -> tuple[bool, bool, frozenset[str]]:
        """Whether all steps are walks, whether all operands are cast before, and the names of those that sums take."""
        stores = [step.statement for step in self.steps if step.route is Route.STORE]
        stored = [x.tensors[0] for x in stores if x.lhs.tensor in self.summed]
        walks = all(step.route in (Route.WALK, Route.FOLD) for step in self.steps)
        return walks, any(step.estimate is not None for step in self.steps), self.summed.union(stored)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

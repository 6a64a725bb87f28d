"""A statement with one sparse operand -> its schedule for a grid: the nest of one item, and who shares a row.

    mapping    an item takes                                   its team is
    "item"     one coordinate of the outermost loop            itself
    "subgroup" its part of the sums of one coordinate          the items of a subgroup
    "group"    its part of the sums of one coordinate          the items of a group
    "split"    a range of stored elements, whatever the row    itself; what it sums is added by atomics

Dense indices of the result are looped over by further items, the last of them by neighbours, so that these read and
write elements side by side.
"""

from __future__ import annotations

from dataclasses import replace

from ... import tuning
from ...classes import frozen
from ...ir.index import Assignment
from ...ir.loop import Grid
from ..operand import Operand
from .single import Facts, Schedule, Tile, schedule

__all__ = ["MAPPINGS", "GridSchedule", "grid_schedule"]

MAPPINGS = ("item", "subgroup", "group", "split")
GRID = Grid(128, 32)
SPLIT = tuning.GRID_SPLIT
SHORT_ROW, LONG_ROW = tuning.GRID_SHARED_ROW, tuning.GRID_LONG_ROW


@frozen
class GridSchedule:
    """The mapping of a nest to a grid.

    nest : the loops of one item, without vectors or prefetching
    exclusive : whether an element of the result is written by one team alone; else by atomics
    chunk : the coordinates or positions of the outermost loop that an item takes
    """

    nest: Schedule
    mapping: str
    exclusive: bool
    chunk: int
    grid: Grid = GRID


def grid_schedule(
    stmt: Assignment, operands: dict[str, Operand], row: float = 0.0, mapping: str | None = None
) -> GridSchedule:  # fmt: skip
    """Decide the mapping of a statement to a grid. row : the mean number of elements of a row of the result; mapping :
    one of `MAPPINGS`, instead of what follows from it."""
    plan = schedule(stmt, operands, Facts())
    shared = operands[stmt.lhs.tensor].format is not None
    driver = operands[plan.driver].format
    assert driver is not None
    kept = tuple(i for i in plan.outer if i in stmt.lhs.indices)
    summed = tuple(i for i in plan.outer if i not in stmt.lhs.indices)
    vector = summed[-1] if summed else None
    in_order = not plan.run_reduce and (not driver.nlevels or driver.levels[0].format.unique)
    exclusive = (shared or (plan.parallel and in_order)) and len(summed) < 2
    nest = replace(
        plan, outer=(*summed[:-1], *kept), vector=vector, main=(Tile(0, 1),) if vector is not None else (), rest=(),
        block_vector=False, no_alias=plan.no_alias and exclusive, prefetch=0, gather=0, masked=False, short=False,
        packed=0, rows=1, panel=0, reads=0,
    )  # fmt: skip
    if not exclusive:
        mapping = "split"
    elif mapping is None or mapping == "split":
        teams = not kept and plan.sliced is None and not shared
        mapping = "item" if row < SHORT_ROW or not teams else "subgroup" if row < LONG_ROW else "group"
    return GridSchedule(nest, mapping, exclusive, SPLIT if plan.run_reduce else 1)

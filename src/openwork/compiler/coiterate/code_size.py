"""A merge -> the size of its code, in lattice points over all levels, and whether each case gets a nest of its own."""

from __future__ import annotations

from functools import cache

from ... import tuning
from ..fill import Regions
from ..lattice import lattice
from .merge import Merge

__all__ = ["GROUP", "LANES", "MAX_CASE_OPERANDS", "SLACK", "count_points", "has_nest_per_case"]

MAX_CASE_OPERANDS = tuning.MERGE_CASES_TOLD_APART

LANES = tuning.UNION_LANES

GROUP = tuning.UNION_GROUP

SLACK = 4 * LANES
"""Elements past the end of a result or a row that a kernel may write and read."""

MAX_POINTS = tuning.MERGE_NEST_LIMIT


def has_nest_per_case(merge: Merge) -> bool:
    """Whether every set of present operands gets a nest of its own, at all levels, instead of predicated loops.

    Where elements may be missing, always: only a region tells which are.
    """
    if len(merge.inputs) > MAX_CASE_OPERANDS:
        return False
    if merge.regions.masked or merge.regions.passed:
        return True
    formats = [merge.target.format, *(x.operand.format for x in merge.inputs)]
    depth = max(sum(not level.format.functions.full for level in f.levels) for f in formats if f is not None)
    return depth < 2 or count_points(merge.regions, depth) <= MAX_POINTS


def count_points(regions: Regions, depth: int) -> int:
    """The number of points of nested lattices of `depth` levels, all of which every operand walks.

    An operand that is absent at a level is absent below, so that every case of a level has a nest of its own: a union
    of n operands has some depth ** n points, an intersection `depth`.
    """

    @cache
    def count(present: frozenset[str], levels: int) -> int:
        if not levels or not present:
            return 0
        droppable = present if levels > 1 else frozenset[str]()
        merge_lattice = lattice(
            tuple(n for n in regions.names if n in present),
            lambda case: regions.computes(frozenset(case), droppable),
            lambda name, case: regions.matters(name, frozenset(case), droppable | frozenset(case)),
        )
        loops = [merge_lattice.cases] if merge_lattice.every else [point.cases for point in merge_lattice.points]
        return sum(1 + sum(count(frozenset(case), levels - 1) for case in cases) for cases in loops)

    return count(frozenset(regions.names), depth)

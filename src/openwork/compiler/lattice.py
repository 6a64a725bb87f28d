"""Operands of one level and the sets for which something is computed -> the merge lattice: loops and their cases.

A *point* is a set of operands that all have elements left; it is a loop that goes on while they have. Its *cases* are
the sets of operands that may be at the coordinate where the loop stands, less those where nothing is computed::

    A + B     while A, B: {A, B} {A} {B}        A * B     while A, B: {A, B}
              while A: {A}
              while B: {B}                      A * (B == 0)    while A, B: {A, B} {A}
                                                                while A: {A}

Points are built by asking, for every set, what is computed there (`fill.Regions`). A point in which an operand makes
no difference is left out: the point without that operand does the same. `every` says that something is computed
where no operand is: then the level's coordinates are counted, all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from ..classes import frozen

__all__ = ["Case", "Lattice", "Point", "gallop_lattice", "lattice"]

Case = tuple[str, ...]
"""The operands that are at a coordinate, in their order."""


@frozen
class Point:
    """A loop: while all of `walked` have elements; cases from the largest to the smallest.

    The operands of `galloped` are not stepped through: the coordinate of the walked one is searched for in them.
    """

    walked: tuple[str, ...]
    cases: tuple[Case, ...]
    galloped: tuple[str, ...] = ()

    def __str__(self) -> str:
        gallop = "".join(f", gallop {name}" for name in self.galloped)
        return f"while {', '.join(self.walked)}{gallop}: {_show(self.cases)}"


@frozen
class Lattice:
    """The points in the order of their loops, and all cases; where one of these has none of the walked operands
    every coordinate has to be counted, and there are no points."""

    points: tuple[Point, ...]
    cases: tuple[Case, ...]
    every: bool = False

    def __str__(self) -> str:
        if self.every:
            return f"every coordinate: {_show(self.cases)}"
        return "\n".join(map(str, self.points)) or "nothing"


def _show(cases: tuple[Case, ...]) -> str:
    return " ".join("{" + ", ".join(case) + "}" for case in cases)


def subsets(names: tuple[str, ...]) -> list[Case]:
    """All subsets, from the largest to the smallest, in order of the names."""
    return [case for n in range(len(names), -1, -1) for case in combinations(names, n)]


def lattice(
    walked: tuple[str, ...],
    computes: Callable[[Case], bool],
    matters: Callable[[str, Case], bool],
    located: tuple[str, ...] = (),
) -> Lattice:
    """The lattice of one level.

    Parameters
    ----------
    walked : operands whose coordinates are walked
    computes : whether something is computed where these operands are at the coordinate
    matters : whether an operand makes a difference to some case of these and itself
    located : operands that are asked whether they have a coordinate, and never walked
    """
    order = (*walked, *located)
    cases = [c for c in subsets(order) if computes(c)]
    if any(not set(c) & set(walked) for c in cases):
        return Lattice((), tuple(cases), every=True)
    points = []
    for point in subsets(walked):
        operands = (*point, *located)
        point_cases = tuple(c for c in cases if set(c) <= set(operands))
        if point_cases and all(matters(name, operands) for name in point):
            points.append(Point(point, point_cases))
    return Lattice(tuple(points), tuple(cases))


def gallop_lattice(stepped: Lattice, driver: str, walked: tuple[str, ...]) -> Lattice:
    """The lattice of a walk of `driver` alone, which is in all cases: the other walked operands are searched."""
    return Lattice((Point((driver,), stepped.cases, tuple(n for n in walked if n != driver)),), stepped.cases)

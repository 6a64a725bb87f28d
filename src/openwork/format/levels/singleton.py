"""`singleton`: the one child of p is the coordinate crd[p]."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Singleton"]


@dataclass(frozen=True, slots=True)
class Singleton(LevelFormat):
    name = "singleton"
    buffers = ("crd",)
    may_be = ("nonunique", "unordered")
    invariants = ("5.4", "5.5", "5.6")
    summary = "crd[p], one"
    functions = LevelFunctions(
        iterate=Iterate.POSITION,
        bounds=("p", "p + 1"),
        coordinate="crd[q]",
        position="p",
        positions="parents",
        seek="crd[q] < c",
        crd_length="positions",
        insert=Insert.APPEND,
        append_coord="crd[q] = c",
        branchless=True,
        compact=True,
        fixed_width=True,
    )

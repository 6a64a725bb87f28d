"""`compressed`: the children of p are the coordinates crd[pos[p] : pos[p + 1]]."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Compressed"]


@dataclass(frozen=True, slots=True)
class Compressed(LevelFormat):
    name = "compressed"
    buffers = ("pos", "crd")
    may_be = ("nonunique", "unordered")
    invariants = ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6")
    summary = "crd[pos[p] : pos[p + 1]]"
    functions = LevelFunctions(
        iterate=Iterate.POSITION,
        bounds=("pos[p]", "pos[p + 1]"),
        coordinate="crd[q]",
        position="q",
        positions="pos[parents]",
        seek="crd[q] < c",
        passed="pos[p + 1] <= q",
        pos_length="parents + 1",
        crd_length="positions",
        insert=Insert.APPEND,
        append_coord="crd[q] = c",
        append_edges="pos[p + 1] = q",
        init_edges="pos[0] = 0",
        insert_edge="pos[p + 1] = pos[p] + count",
        compact=True,
    )

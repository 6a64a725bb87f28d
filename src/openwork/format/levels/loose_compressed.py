"""`loose_compressed`: as compressed, but each parent has its own lo and hi, in any order and with gaps."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["LooseCompressed"]


@dataclass(frozen=True, slots=True)
class LooseCompressed(LevelFormat):
    name = "loose_compressed"
    buffers = ("pos", "crd")
    may_be = ("nonunique", "unordered")
    invariants = ("5.3", "5.4", "5.5", "5.6")
    summary = "crd[pos[2 * p] : pos[2 * p + 1]], gaps allowed"
    functions = LevelFunctions(
        iterate=Iterate.POSITION,
        bounds=("pos[2 * p]", "pos[2 * p + 1]"),
        coordinate="crd[q]",
        position="q",
        positions="len(crd)",
        seek="crd[q] < c",
        pos_length="2 * parents",
        insert=Insert.APPEND,
        append_coord="crd[q] = c",
        append_edges="pos[2 * p] = begin; pos[2 * p + 1] = q",
        insert_edge="pos[2 * p] = begin; pos[2 * p + 1] = begin + count",
        padded=True,
    )

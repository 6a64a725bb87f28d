"""`dense`: every coordinate is there; nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Dense"]


@dataclass(frozen=True, slots=True)
class Dense(LevelFormat):
    name = "dense"
    summary = "all N coordinates, at p * N + (c - lo)"
    functions = LevelFunctions(
        iterate=Iterate.COORDINATE,
        bounds=("lo", "hi"),
        coordinate="c",
        position="p * N + (c - lo)",
        positions="parents * N",
        locate="p * N + (c - lo)",
        insert=Insert.LOCATE,
        full=True,
        compact=True,
        fixed_width=True,
    )

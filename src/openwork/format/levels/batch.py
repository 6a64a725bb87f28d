"""`batch`: as dense, but deeper buffers hold one equal slice per coordinate, and positions are relative to it."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class Batch(LevelFormat):
    name = "batch"
    batched = True
    summary = "all N coordinates; the buffers of deeper levels get a leading axis"
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

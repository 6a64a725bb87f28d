"""`range`: the coordinates of a diagonal that lie inside the tensor, stored padded to the extent."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Range"]


@dataclass(frozen=True, slots=True)
class Range(LevelFormat):
    name = "range"
    summary = "the diagonal's valid coordinates, at p * N + (c - lo)"
    functions = LevelFunctions(
        iterate=Iterate.COORDINATE,
        bounds=("valid_lo", "valid_hi"),
        coordinate="c",
        position="p * N + (c - lo)",
        positions="parents * N",
        locate="p * N + (c - lo)",
        insert=Insert.LOCATE,
        padded=True,
        fixed_width=True,
    )

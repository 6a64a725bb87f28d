"""`bitmap`: a bool per slot, kept in crd, tells which coordinates are there."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Bitmap"]


@dataclass(frozen=True, slots=True)
class Bitmap(LevelFormat):
    name = "bitmap"
    buffers = ("crd",)
    summary = "the coordinates whose bool is set, at p * N + (c - lo)"
    functions = LevelFunctions(
        iterate=Iterate.COORDINATE,
        bounds=("lo", "hi"),
        coordinate="c",
        position="p * N + (c - lo)",
        present="crd[p * N + (c - lo)]",
        positions="parents * N",
        locate="p * N + (c - lo)",
        crd_length="positions",
        insert=Insert.LOCATE,
        append_coord="crd[p * N + (c - lo)] = True",
        padded=True,
        fixed_width=True,
    )

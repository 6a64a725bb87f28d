"""`ell(k)`: up to k coordinates per parent, the unused slots at the end filled with the sentinel -1."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions

__all__ = ["Ell"]


@dataclass(frozen=True, slots=True)
class Ell(LevelFormat):
    k: int

    name = "ell"
    parameters = ("k",)
    buffers = ("crd",)
    may_be = ("unordered",)
    invariants = ("5.4", "5.5", "5.6")
    summary = "crd[p * k : p * k + k], up to k; the rest is -1"
    functions = LevelFunctions(
        iterate=Iterate.POSITION,
        bounds=("p * k", "p * k + k"),
        coordinate="crd[q]",
        position="q",
        present="crd[q] >= 0",
        positions="parents * k",
        seek="crd[q] < c",
        crd_length="positions",
        insert=Insert.SLOT,
        append_coord="crd[q] = c",
        padded=True,
        fixed_width=True,
    )

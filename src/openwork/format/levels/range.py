"""`range`: the coordinates of a diagonal that are inside the tensor, stored padded to the extent."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import DIAGONAL
from openwork.format.level import LevelFormat

__all__ = ["Range"]


@dataclass(frozen=True, slots=True)
class Range(LevelFormat):
    name = "range"
    summary = "the diagonal's valid coordinates, at p * N + (c - lo)"
    functions = DIAGONAL

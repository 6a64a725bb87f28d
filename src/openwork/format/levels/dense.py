"""`dense`: every coordinate is present; no index buffer is stored."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import LOCATED
from openwork.format.level import LevelFormat

__all__ = ["Dense"]


@dataclass(frozen=True, slots=True)
class Dense(LevelFormat):
    name = "dense"
    summary = "all N coordinates, at p * N + (c - lo)"
    functions = LOCATED

"""`batch`: as dense, but deeper buffers hold a slice of equal length per coordinate, and positions count within it."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import LOCATED
from openwork.format.level import LevelFormat

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class Batch(LevelFormat):
    name = "batch"
    batched = True
    summary = "all N coordinates; the buffers of deeper levels get a leading axis"
    functions = LOCATED

"""`bitmap`: crd holds a bool for every coordinate, whether it is present."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import BITMAP
from openwork.format.level import LevelFormat

__all__ = ["Bitmap"]


@dataclass(frozen=True, slots=True)
class Bitmap(LevelFormat):
    name = "bitmap"
    buffers = ("crd",)
    summary = "the coordinates whose bool is set, at p * N + (c - lo)"
    functions = BITMAP

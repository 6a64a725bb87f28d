"""`compressed`: the children of p are the coordinates crd[pos[p] : pos[p + 1]]."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import COMPRESSED
from openwork.format.level import LevelFormat

__all__ = ["Compressed"]


@dataclass(frozen=True, slots=True)
class Compressed(LevelFormat):
    name = "compressed"
    buffers = ("pos", "crd")
    may_be = ("nonunique", "unordered")
    invariants = ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6")
    summary = "crd[pos[p] : pos[p + 1]]"
    functions = COMPRESSED

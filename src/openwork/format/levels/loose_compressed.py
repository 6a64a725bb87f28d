"""`loose_compressed`: as compressed, but with a begin and an end for each parent, in any order and with gaps."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import LOOSE
from openwork.format.level import LevelFormat

__all__ = ["LooseCompressed"]


@dataclass(frozen=True, slots=True)
class LooseCompressed(LevelFormat):
    name = "loose_compressed"
    buffers = ("pos", "crd")
    may_be = ("nonunique", "unordered")
    invariants = ("5.3", "5.4", "5.5", "5.6")
    summary = "crd[pos[2 * p] : pos[2 * p + 1]], gaps allowed"
    functions = LOOSE

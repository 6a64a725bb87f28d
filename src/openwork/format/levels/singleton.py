"""`singleton`: the one child of p is the coordinate crd[p]."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import SINGLETON
from openwork.format.level import LevelFormat

__all__ = ["Singleton"]


@dataclass(frozen=True, slots=True)
class Singleton(LevelFormat):
    name = "singleton"
    buffers = ("crd",)
    may_be = ("nonunique", "unordered")
    invariants = ("5.4", "5.5", "5.6")
    summary = "crd[p], one"
    functions = SINGLETON

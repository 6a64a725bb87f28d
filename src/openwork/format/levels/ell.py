"""`ell(k)`: up to k coordinates per parent; the unused slots at the end hold the sentinel -1."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import slots
from openwork.format.level import LevelFormat

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
    functions = slots("k", sentinel=True)

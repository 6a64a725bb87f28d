"""`structured(n, m)`: n of m coordinates, the same number for every parent."""

from __future__ import annotations

from dataclasses import dataclass

from openwork.format.forms import slots
from openwork.format.level import LevelFormat
from openwork.format.message import Problem

__all__ = ["Structured"]

_BYTE = 256


@dataclass(frozen=True, slots=True)
class Structured(LevelFormat):
    n: int
    m: int

    name = "structured"
    parameters = ("n", "m")
    buffers = ("crd",)
    invariants = ("5.4", "5.5", "5.6")
    summary = "crd[p * n : p * n + n], n of m"
    functions = slots("n", sentinel=False)

    def interval(self, low: int, high: int) -> tuple[int, int]:
        """The remainders by m: n of them are stored for each parent, of an extent of 0 too."""
        return (0, self.m)

    @property
    def index_scalars(self) -> tuple[str, ...]:
        """A byte too where it holds the remainders by m: values of 2:4 and their coordinates are then 5/8 of dense."""
        return ("u8", "i32", "i64") if self.m <= _BYTE else ("i32", "i64")

    @classmethod
    def problem(cls, arguments: tuple[int, ...], properties: tuple[str, ...]) -> Problem | None:
        if fault := super(Structured, cls).problem(arguments, properties):
            return fault
        n, m = arguments
        if n <= m:
            return None
        what, detail = "structured cannot keep more elements than it has", f"expected: n <= m; got: n = {n}, m = {m}"
        return Problem(("properties", 0), what, detail, f"write structured({m}, {n}) for {m} of {n}")

"""The types of a compiled scan of text: the layout of a record, why a scan stopped, and the scanner's signature."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from ...classes import frozen
from ..shared.records import Array

__all__ = ["Fault", "Layout", "Rest", "Scanner"]


class Fault(IntEnum):
    """Why a scan stopped; the numbers are the kernel's."""

    NONE = 0
    INTEGER = 1
    NUMBER = 2
    RANGE = 3
    MISSING = 4
    EXTRA = 5
    MANY = 6


class Rest(IntEnum):
    """What further fields on a line are: an error, ignored, or the next record."""

    REFUSE = 0
    IGNORE = 1
    NEXT = 2


@frozen
class Layout:
    """The fields of one record, which stands on one line.

    `columns` indices come first, `base` is the smallest one allowed; then `values` numbers of kind "f64" or "i64".
    `comment` is the byte that starts a comment ("" for none); `rest` says what to do with more fields on the line.
    """

    columns: int
    values: int
    scalar: str = "f64"
    base: int = 1
    comment: str = "%"
    rest: Rest = Rest.REFUSE

    def describe(self) -> str:
        kind = {0: "", 1: "a value", 2: "a real and an imaginary part"}.get(self.values, f"{self.values} values")
        return ", ".join(p for p in (f"{self.columns} indices" if self.columns else "", kind) if p)


class Scanner(Protocol):
    """Fill `index` (column k of record r at k * capacity + r) and `words` (value v of record r at r * values + v, as
    bits) from `state` on, until the text position reaches `end`, a fault, or too many numbers wait in `slow`
    ((position, slot) pairs)."""

    def __call__(
        self, text: Array, end: int, capacity: int, most: Array, index: Array, words: Array, slow: Array, state: Array
    ) -> None: ...

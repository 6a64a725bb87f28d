"""The level functions of a level format, as texts of loop IR, and the facts that schedules depend on.

The texts are loop-IR expressions and statements over these names:

    p, q       position in the parent level, position in this level
    c          coordinate
    lo, hi, N  the level's coordinates are lo <= c < hi; N = hi - lo
    pos, crd   the level's buffers
    parents    the number of positions of the parent level;  positions: that of this one
    n, m, k    the level format's arguments
    begin      in `append_edges` and `insert_edge`: the position of the first child of p
    count      in `insert_edge`: the number of children of p
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import CodeType
from typing import Any

from ..classes import frozen

__all__ = ["Insert", "Iterate", "LevelFunctions", "evaluate"]


class Iterate(Enum):
    """The variable of a loop over a level: coordinates (c), or positions (q)."""

    COORDINATE = "coordinate"
    POSITION = "position"


class Insert(Enum):
    """How a result's level is written."""

    APPEND = "append"
    """children come in order, parent after parent"""
    LOCATE = "locate"
    """any order: the position of a coordinate is computed"""
    SLOT = "slot"
    """children come in order into a fixed number of slots per parent"""


@frozen
class LevelFunctions:
    """A level format's level functions and the facts that a schedule needs to know about it."""

    iterate: Iterate
    bounds: tuple[str, str]
    """first and last + 1 of the loop's c or q"""
    coordinate: str
    position: str
    positions: str
    """the number of the level's positions"""
    insert: Insert
    present: str | None = None
    """holds where (c or q) is stored; None: always"""
    locate: str | None = None
    """the position of coordinate c; None: it has to be searched for"""
    seek: str | None = None
    """holds where position q lies before coordinate c, if coordinates are ordered; None: they are not stored"""
    passed: str | None = None
    """holds where the children of p, and of all parents before, end at or before position q; None where parents are in
    any order, or all have the same number"""
    pos_length: str | None = None
    crd_length: str | None = None
    """exact lengths; None: no such buffer, or any length that the positions in use fit in"""

    append_coord: str | None = None
    """stores coordinate c of the child at position q"""
    append_edges: str | None = None
    """closes parent p, whose children are the positions begin to q"""
    init_edges: str | None = None
    insert_edge: str | None = None
    """two-phase form: given `count`, the number of children of p; parents in order"""

    full: bool = False
    """every coordinate is present"""
    branchless: bool = False
    """exactly one child per parent"""
    compact: bool = False
    """no position is unused"""
    padded: bool = False
    """some positions may hold no element"""
    fixed_width: bool = False
    """the same number of positions for every parent"""

    @property
    def may_lack(self) -> bool:
        """Whether a parent may have no child at some coordinate."""
        return self.present is not None or (self.iterate is Iterate.POSITION and not self.branchless)


@cache
def _code(text: str) -> CodeType:
    return compile(text, f"<level function {text}>", "eval")


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of a level function's text over the values of its names: integers, or NumPy arrays, elementwise."""
    return eval(_code(text), {"__builtins__": {}}, names)

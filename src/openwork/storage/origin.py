"""The values of a tensor, as a user gets them -> the structure that they belong to, as long as the array lives.

Values are an array without coordinates. Given to another tensor as its values, they are paired by position, which is
wrong where one of the two is stored in another order: this is what `with_values` asks.
"""

from __future__ import annotations

import weakref

from ..classes import frozen
from ..format.format import Format
from .buffers import Array
from .structure import Structure

__all__ = ["Origin", "note_origin", "origin_of"]


@frozen
class Origin:
    """What values belong to: a format, and the structure as long as there is a tensor of it."""

    values: weakref.ref[Array]
    format: Format
    structure: weakref.ref[Structure]


_origins: dict[int, Origin] = {}
"""By the array's number; an entry goes with its array."""


def note_origin(values: Array, structure: Structure) -> None:
    """Keep what an array of values belongs to."""
    key = id(values)
    known = _origins.get(key)
    if known is None or known.structure() is not structure:
        gone = weakref.ref(values, lambda _: _origins.pop(key, None))
        _origins[key] = Origin(gone, structure.format, weakref.ref(structure))


def origin_of(values: Array) -> Origin | None:
    """What an array of values belongs to, where a tensor gave it to the user; None of any other."""
    known = _origins.get(id(values))
    return known if known is not None and known.values() is values else None

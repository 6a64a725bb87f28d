"""An expression -> a level of a basic level format: dense, compressed, coordinates, bitmap."""

from __future__ import annotations

from collections.abc import Iterable

from openwork.format.expression import Expression
from openwork.format.format import Level
from openwork.format.levels import Bitmap, Compressed, Dense, Singleton

__all__ = ["bitmap", "compressed", "coordinates", "dense"]


def dense(e: Expression) -> Level:
    """A level that holds every coordinate."""
    return Level(e, Dense())


def compressed(e: Expression, *, unique: bool = True, ordered: bool = True) -> Level:
    """A level that stores the coordinates of each parent, parent after parent."""
    return Level(e, Compressed(unique=unique, ordered=ordered))


def coordinates(expressions: Iterable[Expression], *, unique: bool = True, ordered: bool = True) -> tuple[Level, ...]:
    """Levels that store a tuple of coordinates for each element; `unique`: no tuple comes twice."""
    dims = tuple(expressions)
    levels = []
    for at, e in enumerate(dims):
        kind = Singleton if at else Compressed
        levels.append(Level(e, kind(unique=unique and at == len(dims) - 1, ordered=ordered)))
    return tuple(levels)


def bitmap(e: Expression) -> Level:
    """A level with a truth value for every coordinate."""
    return Level(e, Bitmap())

"""Renamed copies of every level format, made as CONTRIBUTING says a level format is made: no subclass of the original."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from openwork.format import parser
from openwork.format.level import LevelFormat
from openwork.format.levels import LEVEL_FORMATS

__all__ = ["SUFFIX", "copied", "original", "registered"]

SUFFIX = "_copy"
_DATA = ("functions", "buffers", "may_be", "parameters", "invariants", "summary", "batched")
_LEVELS = re.compile(r": (\w+)")


def _copy(cls: type[LevelFormat]) -> type[LevelFormat]:
    body: dict[str, Any] = {n: getattr(cls, n) for n in _DATA if hasattr(cls, n)}
    body |= {"name": cls.name + SUFFIX, "__annotations__": dict.fromkeys(cls.parameters, int), "__module__": __name__}
    made: type[LevelFormat] = dataclass(frozen=True, slots=True)(type(cls.__name__ + "Copy", (LevelFormat,), body))
    globals()[made.__name__] = made
    return made


COPIES = {cls.name + SUFFIX: _copy(cls) for cls in tuple(LEVEL_FORMATS.values())}


@contextmanager
def registered() -> Iterator[None]:
    """The copies are known to the parser inside the block."""
    assert parser.LEVEL_FORMATS is LEVEL_FORMATS
    LEVEL_FORMATS.update(COPIES)
    try:
        yield
    finally:
        for name in COPIES:
            del LEVEL_FORMATS[name]


def copied(text: str) -> str:
    """`i : dense -> i : dense_copy` at every level of a format's text."""
    head, arrow, levels = text.partition("->")
    return head + arrow + _LEVELS.sub(rf": \1{SUFFIX}", levels)


def original(text: object) -> str:
    """The text with the names of the originals."""
    return str(text).replace(SUFFIX, "")

"""The format language: level expressions, level formats, Format, its parser, printer and named formats."""

from __future__ import annotations

from openwork.errors import FormatError
from openwork.format.expression import Add, Dim, Div, Expression, Mod, Sub, evaluate, interval, render
from openwork.format.format import Format, Level
from openwork.format.level import Insert, Iterate, LevelFormat, LevelFunctions
from openwork.format.levels import (
    LEVEL_FORMATS,
    Batch,
    Bitmap,
    Compressed,
    Dense,
    Ell,
    LooseCompressed,
    Range,
    Singleton,
    Structured,
)
from openwork.format.named import coo, format

from ..namespaces import listing as _listing

__all__ = [
    "LEVEL_FORMATS",
    "Add",
    "Batch",
    "Bitmap",
    "Compressed",
    "Dense",
    "Dim",
    "Div",
    "Ell",
    "Expression",
    "Format",
    "FormatError",
    "Insert",
    "Iterate",
    "Level",
    "LevelFormat",
    "LevelFunctions",
    "LooseCompressed",
    "Mod",
    "Range",
    "Singleton",
    "Structured",
    "Sub",
    "coo",
    "evaluate",
    "format",
    "interval",
    "render",
]

__dir__ = _listing(__name__, __all__)

"""The level formats, one file each. A new one is a file and a row here."""

from __future__ import annotations

from openwork.format.level import LevelFormat
from openwork.format.levels.batch import Batch
from openwork.format.levels.bitmap import Bitmap
from openwork.format.levels.compressed import Compressed
from openwork.format.levels.dense import Dense
from openwork.format.levels.ell import Ell
from openwork.format.levels.loose_compressed import LooseCompressed
from openwork.format.levels.range import Range
from openwork.format.levels.singleton import Singleton
from openwork.format.levels.structured import Structured

__all__ = [
    "LEVEL_FORMATS",
    "Batch",
    "Bitmap",
    "Compressed",
    "Dense",
    "Ell",
    "LooseCompressed",
    "Range",
    "Singleton",
    "Structured",
]

LEVEL_FORMATS: dict[str, type[LevelFormat]] = {
    "dense": Dense,
    "batch": Batch,
    "compressed": Compressed,
    "loose_compressed": LooseCompressed,
    "singleton": Singleton,
    "range": Range,
    "structured": Structured,
    "bitmap": Bitmap,
    "ell": Ell,
}

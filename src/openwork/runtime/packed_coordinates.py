"""A structure whose last level is n:m -> its coordinates, packed into words, made once and kept with the structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tuning
from ..codegen import cache
from ..compiler.packed_coordinates import PACK, WORD, coordinate_bits
from ..storage.buffers import scalar_of
from ..storage.storage import Storage

__all__ = ["packed_coordinates", "packs"]

SMALLEST = tuning.PACKED_ELEMENTS


def packs(s: Storage) -> bool:
    """Whether coordinates are packed: of an n:m level, of enough elements on the CPU."""
    if not s.format.is_structured:
        return False
    is_packable = coordinate_bits(s.format, s.format.ragged(s.shape)) is not None
    return is_packable and s.positions[-1] >= SMALLEST and s.device == "cpu"


def packed_coordinates(s: Storage) -> np.ndarray[Any, Any]:
    """The packed coordinates of a storage's last level. Cost: O(nse) the first time, and a few bits for each."""
    kept, level = s.structure.packed, s.format.nlevels - 1
    words = kept.get(level)
    if words is None:
        bits = coordinate_bits(s.format, s.format.ragged(s.shape))
        assert bits is not None
        n = s.format.levels[-1].format.arguments[0]
        above = s.positions[-3] if len(s.positions) > 2 else 1
        row = s.positions[-2] // max(1, above) * n
        per_row = -(-row * bits // WORD)
        words = np.empty(max(1, above * per_row), np.uint64)
        crd = s.crd[-1]
        kernel = cache.of_text(PACK, T=scalar_of(crd), PER=str(WORD // bits), MASK=str((1 << bits) - 1), BITS=str(bits))
        kernel.run(kernel.pack([above, row, per_row, crd, words]))
        kept[level] = words
    return words

"""A large storage -> ranges of its outermost dimension with about as many values each, and the slice at each of them.

What computes a temporary buffer for each element walks a tensor so: it takes memory for one range, whether the tensor
is in memory or in a mapped file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from .. import tuning
from ..storage.buffers import length, to_numpy
from ..storage.storage import Storage
from . import trace
from .leading_slice import diagonal_block, outer_block, slice_diagonals, slice_outer

__all__ = ["outer_ranges", "ranges_of", "slice_range"]

STEP = tuning.RANGE_VALUES


def ranges_of(s: Storage) -> tuple[int, list[tuple[int, int]]] | None:
    """The outermost dimension and half-open ranges of it, in order; None for small storages, for formats whose
    outermost level is neither one dimension's alone nor diagonals, and for other libraries than NumPy."""
    size = length(s.values)
    if size < 2 * STEP or s.library != "numpy" or trace.active():
        return None
    block = outer_block(s.format) or diagonal_block(s.format)
    if block is None:
        return None
    d, unit = block
    edges = np.unique(np.append(_cuts(s, size, unit), [0, s.shape[d]])).tolist()
    return (d, list(pairwise(edges))) if len(edges) > 2 else None


def _cuts(s: Storage, size: int, unit: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Coordinates, multiples of the unit, between which are about STEP values; a coordinate is never cut."""
    parts = -(-size // STEP)
    diagonals = diagonal_block(s.format)
    if diagonals is not None:
        count = s.shape[diagonals[0]]
        return np.arange(1, parts, dtype=np.int64) * count // parts
    first = s.format.levels[0].format
    crd = None if first.is_dense else to_numpy(s.crd[0])
    count = length(crd) if crd is not None else -(-s.shape[outer_block(s.format)[0]] // unit)  # type: ignore[index]
    second = s.format.levels[1].format if s.format.nlevels > 1 else first
    if s.format.nlevels > 1 and second.is_compressed:
        pos = to_numpy(s.pos[1])
        goals = np.arange(1, parts, dtype=np.int64) * (int(pos[-1]) // parts)
        places = np.searchsorted(pos, goals.astype(pos.dtype)).astype(np.int64)
    else:
        places = np.arange(1, parts, dtype=np.int64) * count // parts
    places = places[places < count]
    return (places if crd is None else crd[places].astype(np.int64)) * unit


def outer_ranges(s: Storage) -> Iterator[tuple[int, int, Storage]]:
    """The dimension, where its range begins, and the slice there, of each range; all from 0 where it is not cut."""
    found = ranges_of(s)
    if found is None:
        yield 0, 0, s
        return
    d, ranges = found
    for first, last in ranges:
        yield d, first, slice_range(s, first, last)


def slice_range(s: Storage, first: int, last: int) -> Storage:
    """The slice at a range that `ranges_of` gave."""
    return (slice_diagonals if diagonal_block(s.format) else slice_outer)(s, first, last)

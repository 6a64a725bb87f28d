"""Compressed rows or columns of a file -> checked buffers in the format whose properties they have; coordinates."""

from __future__ import annotations

import numpy as np

from ...interruptible import repeat
from .records import Array, Buffers, Coordinates, index_dtype

__all__ = ["check_pointers", "compressed", "coordinates", "ordered_and_unique"]


def check_pointers(pos: Array, crd: Array, stored: int, rows: int, extent: int, names: tuple[str, str]) -> str:
    """Check pointers of `rows` segments into `crd`, and its indices below `extent` -> a fault's text, "" without fault.

    `names` are those of pos and crd in the file.
    """
    first, second = names
    if pos.size != rows + 1:
        return f"{first} of length {pos.size} does not fit {rows} rows and {stored} elements; expected {rows + 1}"
    if crd.size != stored:
        return f"{second} has {crd.size} indices for {stored} elements"
    if int(pos[0]) != 0:
        return f"{first} of length {pos.size} does not fit: it begins with {int(pos[0])}; expected 0"
    if int(pos[-1]) != crd.size:
        return f"{first} of length {pos.size} does not fit: it ends with {int(pos[-1])}; expected {crd.size}"
    decreasing = np.flatnonzero(pos[1:] < pos[:-1])
    if decreasing.size:
        k = int(decreasing[0])
        return f"{first} of length {pos.size} does not fit: it falls from {int(pos[k])} to {int(pos[k + 1])} at {k + 1}"
    if crd.size and not 0 <= int(crd.min()) <= int(crd.max()) < extent:
        bad_index = int(crd.min()) if int(crd.min()) < 0 else int(crd.max())
        return f"{second}: an index is outside 0..{extent - 1}: {bad_index}"
    return ""


def ordered_and_unique(pos: Array, crd: Array) -> tuple[bool, bool]:
    """Whether the coordinates of every segment are (ordered, distinct)."""
    if crd.size < 2:
        return True, True
    step = np.diff(crd)
    same_segment = np.ones(step.size, np.bool_)
    starts = pos[1:-1]
    same_segment[starts[(starts > 0) & (starts < crd.size)] - 1] = False
    if bool((step[same_segment] > 0).all()):
        return True, True
    if bool((step[same_segment] >= 0).all()):
        return True, False
    segment = repeat(np.arange(pos.size - 1), np.diff(pos))
    order = np.lexsort((crd, segment))
    duplicate = (np.diff(crd[order]) == 0) & (np.diff(segment[order]) == 0)
    return False, not bool(duplicate.any())


def compressed(
    major: str,
    shape: tuple[int, ...],
    pos: Array,
    crd: Array,
    values: Array,
    symmetry: str = "general",
    blocks: tuple[int, int] = (1, 1),
) -> Buffers:
    """Compressed rows (`major="i"`) or columns ("j"), with the properties that the coordinates really have.

    `values` has a trailing axis pair for blocks; pos and crd must be valid already.
    """
    minor = "j" if major == "i" else "i"
    dtype = index_dtype((*shape, crd.size))
    if pos.dtype.kind != "i" or pos.dtype.itemsize not in (4, 8):
        pos = pos.astype(dtype)
    if crd.dtype.kind != "i" or crd.dtype.itemsize not in (4, 8):
        crd = crd.astype(dtype)
    ordered, unique = ordered_and_unique(pos, crd)
    properties = ", ".join(w for w, lacks in (("nonunique", not unique), ("unordered", not ordered)) if lacks)
    level = f"compressed({properties})" if properties else "compressed"
    if blocks == (1, 1):
        text = f"(i, j) -> ({major} : dense, {minor} : {level})"
    else:
        size = {"i": blocks[0], "j": blocks[1]}
        outer = f"{major} // {size[major]} : dense, {minor} // {size[minor]} : {level}"
        text = f"(i, j) -> ({outer}, i % {size['i']} : dense, j % {size['j']} : dense)"
    flat = np.ascontiguousarray(values).reshape(-1)
    return Buffers(text, shape, {1: pos}, {1: crd}, flat, symmetry, flat.dtype.type(0))


def coordinates(record: Buffers) -> Coordinates:
    """The coordinates of compressed rows or columns without blocks, in stored order."""
    pos, crd = record.pos[1], record.crd[1]
    extent = record.shape[0 if record.format.startswith("(i, j) -> (i") else 1]
    outer = repeat(np.arange(extent, dtype=crd.dtype), np.diff(pos))
    indices = (outer, crd) if record.format.startswith("(i, j) -> (i") else (crd, outer)
    return Coordinates(record.shape, indices, record.values, record.symmetry)

"""Level buffers, in memory, mapped or in a dataset, and a range of positions -> coordinates and values of that range.

The range is one of the last level's positions, so that a part may begin and end anywhere, inside a long row too; what
a part takes does not depend on the tensor. Buffers are whatever gives arrays for slices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...classes import frozen
from ...format.expression import Dim
from ...format.format import Format
from ...interruptible import repeat
from .records import Array

__all__ = ["Stored", "of_storage", "positions_are_elements", "ranges", "row_positions"]


@frozen
class Stored:
    """A tensor's description, and its level buffers as things that give arrays for slices."""

    format: Format
    shape: tuple[int, ...]
    fill_value: Any
    pos: Mapping[int, Any]
    crd: Mapping[int, Any]
    values: Any
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Positions of the last level."""
        return int(self.values.shape[0])


def of_storage(storage: Any) -> Stored:
    """The buffers of a storage over NumPy's arrays."""
    pos, crd = ({k: b for k, b in enumerate(side) if b is not None} for side in (storage.pos, storage.crd))
    values = storage.values
    return Stored(storage.format, storage.shape, storage.fill_value, pos, crd, values, values.dtype)


def positions_are_elements(format: Format) -> bool:
    """Whether every position of the last level is an element, or padding that its coordinates tell: any levels but
    `batch` and `loose_compressed`, and one of them stores coordinates or truth values."""
    kinds = [level.format for level in format.levels]
    plain = all(k.is_located or k.is_compressed or k.is_singleton or k.slots is not None for k in kinds)
    return plain and not format.batch_ndim and any(k.stores_coordinates or k.is_bitmap for k in kinds)


def ranges(stored: Stored, step: int, first: int = 0, last: int | None = None) -> Iterator[tuple[list[Array], Array]]:
    """Coordinates, one array per dimension, and values of `step` positions at a time, in stored order."""
    spans = stored.format.level_intervals(stored.shape)
    last = stored.size if last is None else last
    kinds = [level.format for level in stored.format.levels]
    is_padded = any(k.functions.padded or k.is_range or k.is_bitmap or k.slots is not None for k in kinds)
    is_padded = is_padded or stored.format.ragged(stored.shape)
    for begin in range(first, last, step):
        end = min(begin + step, last)
        inside = np.ones(end - begin, np.bool_) if is_padded else None
        levels = _level_coordinates(stored, spans, stored.format.nlevels - 1, np.arange(begin, end), True, inside)
        dims = [_linear(form, levels, end - begin) for form in stored.format.inverse]
        values = np.asarray(stored.values[begin:end])
        if inside is not None:
            for x, n in zip(dims, stored.shape, strict=True):
                inside &= (x >= 0) & (x < n)
            dims, values = [x[inside] for x in dims], values[inside]
        yield dims, values


def row_positions(stored: Stored, row: int) -> int | None:
    """The positions of the last level before those of a row, of the first dimension; None where rows are not stored one
    after the other."""
    level = stored.format.levels[0]
    if level.expression != Dim(0) or not level.format.ordered:
        return None
    position = row if level.format.is_located else bisect_left(stored.crd[0], row, 0, stored.crd[0].shape[0])
    for at, (lo, hi) in list(enumerate(stored.format.level_intervals(stored.shape)))[1:]:
        kind = stored.format.levels[at].format
        if kind.is_located:
            position *= hi - lo
        elif kind.slots is not None:
            position *= kind.slots
        elif kind.is_compressed:
            position = int(stored.pos[at][position])
    return position


def _linear(form: tuple[tuple[int, int], ...], levels: list[Array], n: int) -> Array:
    """The sum of coefficients times level coordinates."""
    if len(form) == 1 and form[0][1] == 1:
        return levels[form[0][0]]
    total = np.zeros(n, np.int64)
    for level, coefficient in form:
        total += coefficient * levels[level].astype(np.int64)
    return total


def _level_coordinates(
    stored: Stored, spans: tuple[tuple[int, int], ...], at: int, positions: Array, is_range: bool, inside: Array | None
) -> list[Array]:
    """The coordinates on levels 0 to `at` of positions of level `at`, in increasing order: a range, or with repetitions
    and gaps. Of positions without an element `inside` becomes False."""
    if at < 0:
        return []
    kind, (lo, hi) = stored.format.levels[at].format, spans[at]
    if kind.is_located:
        if kind.is_bitmap and inside is not None:
            inside &= _gathered(stored.crd[at], positions, is_range)
        crd = (positions % (hi - lo) if at else positions) + lo
        parents, is_range = positions // (hi - lo), is_range and not at
    elif kind.slots is not None:
        crd = _gathered(stored.crd[at], positions, is_range)
        if inside is not None:
            inside &= crd >= 0
        parents, is_range = positions // kind.slots, False
    else:
        crd = _gathered(stored.crd[at], positions, is_range)
        if kind.is_compressed and at:
            parents, is_range = _parents(stored.pos[at], positions, is_range), False
        else:
            parents = positions
    return [*_level_coordinates(stored, spans, at - 1, parents, is_range, inside), crd]


def _gathered(buffer: Any, positions: Array, is_range: bool) -> Array:
    """The elements of a buffer at positions in increasing order."""
    if isinstance(buffer, np.ndarray) and not is_range:
        return np.asarray(buffer[positions])
    first = int(positions[0])
    part = np.asarray(buffer[first : int(positions[-1]) + 1])
    return part if is_range else part[positions - first]


def _parents(pos: Any, positions: Array, is_range: bool) -> Array:
    """The parent of each position of a compressed level."""
    first, last = int(positions[0]), int(positions[-1]) + 1
    low = bisect_right(pos, first, 0, pos.shape[0]) - 1  # zarr's arrays have no len()
    high = bisect_right(pos, last - 1, low, pos.shape[0]) - 1
    if is_range and high - low <= 8 * positions.size:
        ends = np.clip(np.asarray(pos[low : high + 2]).astype(np.int64), first, last)
        return np.asarray(repeat(np.arange(low, high + 1), np.diff(ends)))
    if not isinstance(pos, np.ndarray):
        return np.asarray([bisect_right(pos, p, low, high + 2) - 1 for p in positions.tolist()], np.int64)
    parents: Array = np.searchsorted(pos[low : high + 2], positions, "right") + (low - 1)
    return parents

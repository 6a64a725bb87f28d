"""Coordinates of one element -> its position among the values, level by level, from the root to the leaf.

compressed: crd[pos[p] : pos[p + 1]] is searched;  dense: p * n + c;  singleton: the current segment is searched, as in
the columns of a row of COO.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, cast

from ..format.expression import Dim
from ..storage.storage import Storage

__all__ = ["ABSENT", "SEVERAL", "Locator", "locator"]

ABSENT, SEVERAL = -1, -2
"""Returned instead of a position where no element is stored, and where several are."""


class Locator:
    """Locates elements of storages of one format and shape by their coordinates.

    levels : for each one its dimension, lowest coordinate, extent, and whether it is unique
    """

    __slots__ = ("levels",)

    def __init__(self, levels: Sequence[tuple[int, int, int, bool]]) -> None:
        self.levels = tuple(levels)

    def __call__(self, s: Storage, at: Sequence[int]) -> int:
        """The position of the element at these coordinates; ABSENT where none is stored, SEVERAL where there are."""
        first, end = 0, 1
        for (d, low, extent, unique), edges, coordinates in zip(self.levels, s.pos, s.crd, strict=True):
            c = at[d]
            if coordinates is None:
                if end - first != 1:
                    return SEVERAL
                first = first * extent + c - low
                end = first + 1
                continue
            crd = memoryview(cast("Any", coordinates))
            if edges is not None:
                if end - first != 1:
                    return SEVERAL
                first, end = int(edges[first]), int(edges[first + 1])
            first = bisect_left(crd, c, first, end)
            if first == end or crd[first] != c:
                return ABSENT
            end = first + 1 if unique else bisect_right(crd, c, first, end)
        return first if end - first == 1 else SEVERAL


def locator(s: Storage) -> Locator | None:
    """The locator of elements of storages as this one; None where its levels are not all dense, compressed or singleton
    ones in order, each of a dimension."""
    format = s.format
    if format.batch_ndim or not format.is_ordered or s.library != "numpy" or not format.levels:
        return None
    levels = []
    for at, (level, (low, high)) in enumerate(zip(format.levels, format.level_intervals(s.shape), strict=True)):
        kind = level.format
        if not isinstance(level.expression, Dim):
            return None
        if not (kind.is_dense or kind.is_compressed or (kind.is_singleton and at)):
            return None
        levels.append((level.expression.index, low, high - low, kind.unique))
    return Locator(levels)

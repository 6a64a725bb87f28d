"""Sorted elements by level coordinates, part by part -> the level buffers of a format, appended to as they follow.

A part continues where the last one ended, inside a row, a fiber or a block too: of the parts before, the last element's
coordinates and the number of positions of each level are kept, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...errors import FormatError
from ...format.format import Format
from ..shared.records import Array

__all__ = ["LevelWriter", "Sink", "is_written"]

_STEP = 1 << 20


class Sink(Protocol):
    """What buffers are appended to, by name: "pos_1", "crd_1", "values"."""

    def append(self, name: str, array: Array) -> None: ...

    def finish(self, format: Format, shape: tuple[int, ...], scalar: str, fill_value: Any) -> None: ...


def is_written(format: Format) -> bool:
    """Whether the format's buffers can be appended to in the order of its elements: all levels are dense, compressed
    or singletons, and of a chain of singletons all but the last are nonunique."""
    kinds = [level.format for level in format.levels]
    if format.batch_ndim or not all(k.is_dense or k.is_compressed or k.is_singleton for k in kinds):
        return False
    return bool(kinds) and all(not (k.is_singleton and (not at or kinds[at - 1].unique)) for at, k in enumerate(kinds))


class LevelWriter:
    """Writes the buffers of a format for which `is_written` holds.

    spans : the half-open range of coordinates of each level
    index : dtypes of pos and crd, which hold every number that occurs
    fill : the value of positions of dense levels that no element has
    """

    def __init__(
        self,
        sink: Sink,
        format: Format,
        spans: Sequence[tuple[int, int]],
        index: tuple[np.dtype[Any], np.dtype[Any]],
        fill: Any,
        dtype: np.dtype[Any],
    ) -> None:
        self._sink, self._levels, self._spans = sink, [level.format for level in format.levels], spans
        self._pos, self._crd, self._fill = index[0], index[1], np.array(fill, dtype)
        self._count = [0] * len(self._levels)
        """entries of each level that stores coordinates"""
        self._closed = [0] * len(self._levels)
        """parents of each compressed level whose beginning is written"""
        self._last: list[int] | None = None
        self._values = 0

    def append(self, coordinates: Sequence[Array], values: Array, checked: bool = False) -> None:
        """Write elements that follow those before, in lexicographic order of their level coordinates.

        Raises FormatError where they do not, if `checked`.
        """
        n = values.size
        if not n:
            return
        if checked:
            self._check_order(coordinates)
        new, parents = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        for at, (kind, c) in enumerate(zip(self._levels, coordinates, strict=True)):
            new[1:] |= c[1:] != c[:-1]
            new[0] |= self._last is None or int(c[0]) != self._last[at]
            if kind.is_dense:
                lo, hi = self._spans[at]
                parents = parents * (hi - lo) + (c - lo)
                continue
            if not kind.unique:
                new[:] = True
            if kind.is_singleton:
                self._sink.append(f"crd_{at}", c.astype(self._crd, copy=False))
                continue
            parents = self._compressed(at, new, parents, c)
        self._write_values(parents, values)
        self._last = [int(c[-1]) for c in coordinates]

    def _check_order(self, coordinates: Sequence[Array]) -> None:
        """Raise FormatError for elements that are not in order, and for those that are there twice."""
        last = self._last or [int(coordinates[0][0]) - 1, *[int(c[0]) for c in coordinates[1:]]]
        columns = [np.concatenate([[x], c]) for x, c in zip(last, coordinates, strict=True)]
        ascending = np.zeros(columns[0].size - 1, np.bool_)
        for c in reversed(columns):
            ascending = (c[1:] > c[:-1]) | ((c[1:] == c[:-1]) & ascending)
        if not ascending.all():
            at = int(ascending.argmin())
            raise FormatError(
                f"parts: element {at} of a part is not after the one before\n  expected: coordinates in the order"
                f" of the levels; got: {[int(c[at + 1]) for c in columns]} after {[int(c[at]) for c in columns]}"
                "\n  help: leave ordered=True out; a file is to be restored"
            )

    def _compressed(self, at: int, new: Array, parents: Array, c: Array) -> Array:
        """Write the entries of a compressed level, and where the parents so far begin -> the elements' positions."""
        all_new = bool(new.all())
        entries = parents if all_new else parents[new]
        self._sink.append(f"crd_{at}", (c if all_new else c[new]).astype(self._crd, copy=False))
        before = self._count[at]
        if entries.size:
            self._close(at, int(entries[-1]) + 1, entries)
        self._count[at] += int(entries.size)
        if all_new:
            return np.arange(before, before + c.size)
        positions: Array = np.cumsum(new) + (before - 1)
        return positions

    def _close(self, at: int, end: int, entries: Array) -> None:
        """Write pos of a compressed level for the parents before `end`, of whose entries the last are `entries`."""
        for first in range(self._closed[at], end, _STEP):
            last = min(first + _STEP, end)
            ends = np.searchsorted(entries, np.arange(first, last)) + self._count[at]
            self._sink.append(f"pos_{at}", ends.astype(self._pos))
        self._closed[at] = max(end, self._closed[at])

    def _write_values(self, positions: Array, values: Array) -> None:
        """Write values at their positions, and the fill value between them."""
        first, end = self._values, int(positions[-1]) + 1
        if end - first == values.size:
            self._sink.append("values", values)
        else:
            taken = 0
            for begin in range(first, end, _STEP):
                upto = min(begin + _STEP, end)
                stop = int(np.searchsorted(positions, upto))
                block: Array = np.full(upto - begin, self._fill)
                block[positions[taken:stop] - begin] = values[taken:stop]
                self._sink.append("values", block)
                taken = stop
        self._values = end

    def finish(self) -> None:
        """Write the ends of all levels; nothing may be appended after."""
        no_entries: Array = np.empty(0, np.int64)
        parents = 1
        for at, kind in enumerate(self._levels):
            if kind.is_dense:
                parents *= self._spans[at][1] - self._spans[at][0]
                continue
            self._sink.append(f"crd_{at}", np.empty(0, self._crd))
            if kind.is_compressed:
                self._close(at, parents + 1, no_entries)
                parents = self._count[at]
        self._sink.append("values", np.empty(0, self._fill.dtype))
        for first in range(self._values, parents, _STEP):
            self._sink.append("values", np.full(min(_STEP, parents - first), self._fill))
        self._values = parents

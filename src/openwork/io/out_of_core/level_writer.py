"""Sorted elements by level coordinates, part by part -> the level buffers of a format, appended to as they follow.

A part continues where the last one ended, inside a row, a fiber or a block too: of the parts before, the last element's
coordinates and the number of positions of each level are kept, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...errors import FormatError, SizeError
from ...format.format import Format
from ..shared.records import Array

__all__ = ["LevelWriter", "Sink", "is_written"]

_STEP = 1 << 20


class Sink(Protocol):
    """What buffers are appended to, by name: "pos_1", "crd_1", "values"."""

    def append(self, name: str, array: Array) -> None: ...

    def finish(self, format: Format, shape: tuple[int, ...], scalar: str, fill_value: Any) -> None: ...


def is_written(format: Format) -> bool:
    """Whether the format's buffers can be appended to in the order of its elements: every level but `batch` and
    `loose_compressed`, and of a chain of singletons all but the last nonunique."""
    kinds = [level.format for level in format.levels]
    if format.batch_ndim or not all(k.is_located or k.is_compressed or k.is_singleton or k.slots for k in kinds):
        return False
    return bool(kinds) and all(not (k.is_singleton and (not at or kinds[at - 1].unique)) for at, k in enumerate(kinds))


class LevelWriter:
    """Writes the buffers of a format for which `is_written` holds.

    spans : the half-open range of coordinates of each level
    index : dtypes of pos and crd, which hold every number that occurs
    fill : the value of positions that no element has
    room : bytes that the values may take
    """

    def __init__(
        self,
        sink: Sink,
        format: Format,
        spans: Sequence[tuple[int, int]],
        index: tuple[np.dtype[Any], np.dtype[Any]],
        fill: Any,
        dtype: np.dtype[Any],
        room: float = float("inf"),
    ) -> None:
        self._sink, self._levels, self._spans = sink, [level.format for level in format.levels], spans
        self._pos, self._crd, self._fill = index[0], index[1], np.array(fill, dtype)
        self._count = [0] * len(self._levels)
        """entries of each level that stores coordinates"""
        self._closed = [0] * len(self._levels)
        """parents of each compressed level whose beginning is written"""
        self._last: list[int] | None = None
        self._written: dict[str, int] = {}
        """how far each buffer is written that has positions without an element"""
        self._slot: dict[int, tuple[int, int]] = {}
        """of each level with slots the parent of the last entry, and its position"""
        self._format, self._room = format, room
        self._whole = next((at for at, k in enumerate(self._levels) if k.slots is not None and not _is_padded(k)), 0)
        """the level all of whose children of a parent have to come at once; 0 where there is none"""
        self._waiting: tuple[list[Array], Array] | None = None

    def append(self, coordinates: Sequence[Array], values: Array, checked: bool = False) -> None:
        """Write elements that follow those before, in lexicographic order of their level coordinates.

        Raises FormatError where they do not, if `checked`.
        """
        if not values.size:
            return
        if checked:
            self._check_order(coordinates)
        if self._whole:
            coordinates, values = self._without_last_parent(coordinates, values)
        self._append(coordinates, values)

    def _append(self, coordinates: Sequence[Array], values: Array) -> None:
        n = values.size
        if not n:
            return
        new, parents = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        for at, (kind, c) in enumerate(zip(self._levels, coordinates, strict=True)):
            new[1:] |= c[1:] != c[:-1]
            new[0] |= self._last is None or int(c[0]) != self._last[at]
            if kind.is_located:
                lo, hi = self._spans[at]
                parents = parents * (hi - lo) + (c - lo)
                if kind.is_bitmap:
                    marked = parents[new]
                    self._write_at(f"crd_{at}", marked, np.ones(marked.size, np.bool_), _no_marks)
                continue
            if kind.slots is not None:
                parents = self._slots(at, new, parents, c)
                continue
            if not kind.unique:
                new[:] = True
            if kind.is_singleton:
                self._sink.append(f"crd_{at}", c.astype(self._crd, copy=False))
                continue
            parents = self._compressed(at, new, parents, c)
        self._write_at("values", parents, values, self._fills)
        self._last = [int(c[-1]) for c in coordinates]

    def _without_last_parent(self, coordinates: Sequence[Array], values: Array) -> tuple[list[Array], Array]:
        """The elements that wait and these, without those of the last parent, which may have more: they wait."""
        if self._waiting is not None:
            before, more = self._waiting
            coordinates = [np.concatenate(pair) for pair in zip(before, coordinates, strict=True)]
            values = np.concatenate([more, values])
        last = np.ones(values.size, np.bool_)
        for c in coordinates[: self._whole]:
            last &= c == c[-1]
        stop = values.size - int(np.count_nonzero(last))
        self._waiting = [c[stop:].copy() for c in coordinates], values[stop:].copy()
        return [c[:stop] for c in coordinates], values[:stop]

    def _slots(self, at: int, new: Array, parents: Array, c: Array) -> Array:
        """Write the entries of a level with the same number of positions for each parent -> the elements' positions."""
        kind = self._levels[at]
        of, crd = parents[new], c[new].astype(self._crd, copy=False)
        parent, position = self._slot.get(at, (-1, -1))
        if _is_padded(kind):
            places = self._next_slots(at, of, parent, position)
            self._write_at(f"crd_{at}", places, crd, self._sentinels)
        else:
            places = self._all_slots(at, of, crd)
        if of.size:
            self._slot[at] = int(of[-1]), int(places[-1])
        found: Array = np.concatenate([[position], places])[np.cumsum(new)]
        return found

    def _next_slots(self, at: int, of: Array, parent: int, position: int) -> Array:
        """The positions of entries one behind the other in the slots of each parent."""
        k = self._levels[at].slots or 0
        begins = np.flatnonzero(np.append(True, of[1:] != of[:-1])) if of.size else np.empty(0, np.int64)
        slot = np.arange(of.size) - np.repeat(begins, np.diff(np.append(begins, of.size)))
        if of.size and of[0] == parent:
            slot[: begins[1] if begins.size > 1 else of.size] += position - parent * k + 1
        self._check_fullest(at, int(slot.max(initial=-1)) + 1)
        found: Array = of * k + slot
        return found

    def _all_slots(self, at: int, of: Array, crd: Array) -> Array:
        """The positions of entries among as many of each parent; the least coordinates that are free are added."""
        n, extent = self._levels[at].slots or 0, self._spans[at][1]
        touched, number = np.unique(of, return_inverse=True)
        present = np.zeros((touched.size, extent), np.bool_)
        present[number, crd] = True
        counts = np.count_nonzero(present, axis=1)
        self._check_fullest(at, int(counts.max(initial=0)))
        present |= ~present & (np.cumsum(~present, axis=1) <= (n - counts)[:, None])
        all_places = (touched[:, None] * n + np.arange(n)).ravel()
        self._write_at(f"crd_{at}", all_places, np.nonzero(present)[1].astype(self._crd), self._first_coordinates(n))
        found: Array = of * n + (np.cumsum(present, axis=1) - 1)[number, crd]
        return found

    def _check_fullest(self, at: int, fullest: int) -> None:
        kind = self._levels[at]
        if fullest > (kind.slots or 0):
            raise FormatError(
                f"conversion to {self._format}: a parent of level {at} has {fullest} elements or more\n  expected:"
                f" at most {kind.slots}, as level {at} is {kind}\n  help: a format with more of them, or 'csr'"
            )

    def _fills(self, count: int, first: int) -> Array:
        found: Array = np.full(count, self._fill)
        return found

    def _sentinels(self, count: int, first: int) -> Array:
        found: Array = np.full(count, -1, self._crd)
        return found

    def _first_coordinates(self, n: int) -> Callable[[int, int], Array]:
        return lambda count, first: ((first + np.arange(count)) % n).astype(self._crd)

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

    def _write_at(self, name: str, positions: Array, data: Array, blank: Callable[[int, int], Array]) -> None:
        """Write data at its positions, which ascend, and `blank(count, first position)` between them."""
        if positions.size:
            self._write_to(name, int(positions[-1]) + 1, positions, data, blank)

    def _write_to(
        self, name: str, end: int, positions: Array, data: Array, blank: Callable[[int, int], Array]
    ) -> None:  # fmt: skip
        """The same up to a position."""
        first = self._written.get(name, 0)
        if end * data.dtype.itemsize > self._room:
            raise SizeError(
                f"{end} positions of {self._format} take {end * data.dtype.itemsize} bytes or more\n  expected:"
                f" {self._room:.0f} bytes at most, which the disk has free\n  help: a format of compressed levels"
            )
        if end - first == data.size:
            self._sink.append(name, data)
        else:
            taken = 0
            for begin in range(first, end, _STEP):
                upto = min(begin + _STEP, end)
                stop = int(np.searchsorted(positions, upto))
                block = blank(upto - begin, begin)
                block[positions[taken:stop] - begin] = data[taken:stop]
                self._sink.append(name, block)
                taken = stop
        self._written[name] = max(first, end)

    def finish(self) -> None:
        """Write the ends of all levels; nothing may be appended after."""
        if self._waiting is not None:
            self._append(*self._waiting)
        none: Array = np.empty(0, np.int64)
        parents = 1
        for at, kind in enumerate(self._levels):
            if kind.is_located:
                parents *= self._spans[at][1] - self._spans[at][0]
                if kind.is_bitmap:
                    self._end(f"crd_{at}", parents, np.empty(0, np.bool_), _no_marks)
                continue
            if kind.slots is not None:
                parents *= kind.slots
                blank = self._sentinels if _is_padded(kind) else self._first_coordinates(kind.slots)
                self._end(f"crd_{at}", parents, np.empty(0, self._crd), blank)
                continue
            self._sink.append(f"crd_{at}", np.empty(0, self._crd))
            if kind.is_compressed:
                self._close(at, parents + 1, none)
                parents = self._count[at]
        self._end("values", parents, np.empty(0, self._fill.dtype), self._fills)

    def _end(self, name: str, end: int, empty: Array, blank: Callable[[int, int], Array]) -> None:
        """Write what is left of a buffer that has `end` positions; an empty one too."""
        self._sink.append(name, empty)
        if end > self._written.get(name, 0):
            self._write_to(name, end, np.empty(0, np.int64), empty, blank)


def _is_padded(kind: Any) -> bool:
    """Whether slots that no element has hold a sentinel."""
    return kind.slots is not None and bool(kind.functions.padded)


def _no_marks(count: int, first: int) -> Array:
    found: Array = np.zeros(count, np.bool_)
    return found

"""An argument `rows` -> a range, or numbers of rows one by one; and pieces of a file that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...integers import integer
from ...storage.buffers import is_torch, to_numpy
from .records import Array, Rows

__all__ = ["numbers_of", "pieces", "range_of", "rows_of"]


def rows_of(given: Any) -> Rows | None:
    """A slice of step 1 as first row and the one after the last, from the front, an open end beyond every extent; a
    mask or numbers as an array.

    Raises TypeError, DTypeError, ShapeError, ValueError for anything else.
    """
    if given is None:
        return None
    if not isinstance(given, slice):
        array = np.asarray(to_numpy(given) if is_torch(given) else given)
        if array.ndim != 1:
            raise TypeError(f"read: rows must be a slice of step 1, a mask, or a vector of numbers; got {given!r:.80}")
        if not array.size:
            return np.zeros(0, np.int64) if array.dtype.kind != "b" else array
        if array.dtype.kind not in "biu":
            raise DTypeError(f"read: rows of {array.dtype}\n  expected: a mask, or integers")
        return array if array.dtype.kind == "b" else array.astype(np.int64)
    if given.step not in (None, 1):
        raise TypeError(f"read: rows must be a slice of step 1; got {given!r}\n  help: np.arange(first, last, step)")
    first = 0 if given.start is None else integer(given.start, "read", "rows", boolean=False)
    last = 2**62 if given.stop is None else integer(given.stop, "read", "rows", boolean=False)
    if min(first, last) < 0:
        raise ValueError(f"read: rows are counted from the front; got {given!r}")
    return first, last


def range_of(rows: tuple[int, int], extent: int) -> tuple[int, int]:
    """A range inside the extent."""
    first, last, _ = slice(*rows).indices(extent)
    return first, max(first, last)


def numbers_of(rows: Array, extent: int) -> Array:
    """A mask, or numbers of rows, those from the end below zero -> numbers from 0. Raises ShapeError, IndexError."""
    if rows.dtype.kind == "b":
        if rows.size != extent:
            raise ShapeError(f"read: a mask of {rows.size} rows, of {extent}\n  help: one truth value for each row")
        return np.flatnonzero(rows)
    if rows.size and not -extent <= int(rows.min()) <= int(rows.max()) < extent:
        wrong = next(int(r) for r in rows if not -extent <= r < extent)
        raise IndexError(f"read: row {wrong} of {extent}")
    return np.where(rows < 0, rows + extent, rows)


def pieces(rows: Array, begin: Callable[[int], int], most: int, gap: int) -> Iterator[tuple[int, int]]:
    """Ranges [first, last) that hold sorted rows, of `most` elements at most where a row has no more.

    begin : the number of elements in front of a row
    gap : elements between two rows that are read with them rather than passed over
    """
    at = 0
    while at < rows.size:
        first = last = int(rows[at])
        while at < rows.size:
            row = int(rows[at])
            if (
                row >= last
                and last > first
                and (begin(row + 1) - begin(first) > most or begin(row) - begin(last) > gap)
            ):
                break
            last, at = row + 1, at + 1
        yield first, last

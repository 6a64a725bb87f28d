"""Stored entries of a matrix that a file declares symmetric -> the first entry that contradicts it."""

from __future__ import annotations

import numpy as np

from .records import Array

__all__ = ["KEEP", "contradiction", "dense_contradiction"]

KEEP = 'symmetry="keep" gives what is stored'


def contradiction(row: Array, column: Array, values: Array, symmetry: str) -> tuple[int, str] | None:
    """The first entry that a symmetric, skew-symmetric or Hermitian matrix cannot have, by its place, and why.

    Stored is one triangle, either one, or a mixture in which no element stands together with its mirror image: the
    reader would add the two up. Cost: O(n) where one triangle is stored, O(n log n) for a mixture.
    """
    if symmetry == "general" or not values.size:
        return None
    result = _diagonal_contradiction(np.flatnonzero(row == column), values, symmetry)
    if result is not None:
        return result
    upper = row < column
    if not upper.any() or not (row > column).any():
        return None
    low, high = np.minimum(row, column), np.maximum(row, column)
    order = np.lexsort((upper, high, low))
    mirrored = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0) & (np.diff(upper[order].astype(np.int8)) != 0)
    if not mirrored.any():
        return None
    places = np.flatnonzero(mirrored)
    k = int(np.maximum(order[places], order[places + 1]).min())
    i, j = int(row[k]) + 1, int(column[k]) + 1
    return k, f"both ({i}, {j}) and ({j}, {i}) are stored, of a {symmetry} matrix, of which each is the other"


def dense_contradiction(dense: Array, symmetry: str) -> str:
    """A dense array with one stored triangle -> the fault on its diagonal, "" without fault."""
    if symmetry == "general":
        return ""
    diagonal = np.diagonal(dense)
    fault = _diagonal_contradiction(np.arange(diagonal.size), diagonal, symmetry) if diagonal.size else None
    return "" if fault is None else fault[1]


def _diagonal_contradiction(places: Array, values: Array, symmetry: str) -> tuple[int, str] | None:
    if symmetry == "skew-symmetric":
        bad = places[values[places] != 0]
        what = "a diagonal element of a skew-symmetric matrix must be 0"
    elif symmetry == "hermitian" and values.dtype.kind == "c":
        bad = places[values[places].imag != 0]
        what = "a diagonal element of a Hermitian matrix must be real"
    else:
        return None
    return (int(bad[0]), f"{what}, got {values[bad[0]]}") if bad.size else None

"""Stored entries of a matrix that a file calls symmetric in, what contradicts that out."""

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
    result = _on_diagonal(np.flatnonzero(row == column), values, symmetry)
    if result is not None:
        return result
    upper = row < column
    if not upper.any() or not (row > column).any():
        return None
    low, high = np.minimum(row, column), np.maximum(row, column)
    by = np.lexsort((upper, high, low))
    same = (np.diff(low[by]) == 0) & (np.diff(high[by]) == 0) & (np.diff(upper[by].astype(np.int8)) != 0)
    if not same.any():
        return None
    places = np.flatnonzero(same)
    k = int(np.maximum(by[places], by[places + 1]).min())
    i, j = int(row[k]) + 1, int(column[k]) + 1
    return k, f"both ({i}, {j}) and ({j}, {i}) are stored, of a {symmetry} matrix, of which each is the other"


def dense_contradiction(dense: Array, symmetry: str) -> str:
    """The same of a dense array, whose other triangle is not stored: "" or what is wrong on the diagonal."""
    if symmetry == "general":
        return ""
    diagonal = np.diagonal(dense)
    found = _on_diagonal(np.arange(diagonal.size), diagonal, symmetry) if diagonal.size else None
    return "" if found is None else found[1]


def _on_diagonal(places: Array, values: Array, symmetry: str) -> tuple[int, str] | None:
    if symmetry == "skew-symmetric":
        wrong = places[values[places] != 0]
        what = "a diagonal element of a skew-symmetric matrix must be 0"
    elif symmetry == "hermitian" and values.dtype.kind == "c":
        wrong = places[values[places].imag != 0]
        what = "a diagonal element of a Hermitian matrix must be real"
    else:
        return None
    return (int(wrong[0]), f"{what}, got {values[wrong[0]]}") if wrong.size else None

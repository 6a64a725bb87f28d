"""Frozen records of NumPy arrays: a file's contents before they become a tensor.

Readers return one of two: `Coordinates` (text formats: one array of indices per dimension) or `Buffers`
(formats that are compressed in the file: the levels' own arrays, untouched).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...progress import Step

__all__ = [
    "SYMMETRIES",
    "Array",
    "Buffers",
    "Coordinates",
    "Header",
    "Options",
    "Step",
    "Rows",
    "expand",
    "index_dtype",
]

Array = NDArray[Any]
Rows = tuple[int, int] | Array
"""A range of rows, first and one after the last; or a mask or numbers of rows as an array."""

SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `read`."""

    symmetry: str = "expand"
    base: int | None = None
    values: bool = True
    variable: str | None = None
    progress: Step | None = None
    ratio: int | None = None
    """the most bytes that one packed byte may become; None: `limits.RATIO`"""
    rows: Rows | None = None
    """the first row that is read and the one after the last, or the rows one by one; None: all"""
    shape: tuple[int, ...] | None = None
    """the extents of a file that does not say them; None: as small as they can be"""


@dataclass(frozen=True, slots=True)
class Header:
    """A file's own description of its contents.

    `shape` has -1 where the file does not say; `entries` is the number stored in the file (before symmetry is
    expanded), None where it is not stated; `field` is "real", "integer", "complex", "pattern" or a dtype's name.
    """

    kind: str
    shape: tuple[int, ...]
    field: str
    symmetry: str = "general"
    entries: int | None = None
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coordinates:
    """`values[k]` stands at `(indices[0][k], indices[1][k], ...)`, zero-based, in file order, duplicates kept.

    With `dense`, the file held all elements: `indices` is empty and `dense` is an array of `shape`.
    """

    shape: tuple[int, ...]
    indices: tuple[Array, ...]
    values: Array
    symmetry: str = "general"
    dense: Array | None = None

    @property
    def entries(self) -> int:
        return int(self.values.size if self.dense is None else self.dense.size)


@dataclass(frozen=True, slots=True)
class Buffers:
    """Level buffers of a storage format; `format` is text of the format language or a named format."""

    format: str
    shape: tuple[int, ...]
    pos: Mapping[int, Array]
    crd: Mapping[int, Array]
    values: Array
    symmetry: str = "general"
    fill_value: Any = 0
    masked: str = ""
    """of a masked tensor: "tensor", or "number" for one of rank 0, which is kept in one dimension"""


def expand(record: Coordinates) -> Coordinates:
    """The full tensor of a stored triangle: each element off the diagonal is mirrored after all stored ones.

    Parameters
    ----------
    record : what a file holds, of any symmetry

    Returns
    -------
    Coordinates with symmetry "general"

    Guarantees: the diagonal is kept as stored; a general record is returned as it is.

    Cost: O(nse).
    See also: load, read.

    Examples
    --------
    >>> record = ow.io.Coordinates((2, 2), (np.array([1]), np.array([0])), np.array([5.0]), "symmetric")
    >>> ow.io.expand(record).values
    array([5., 5.])
    """
    if record.symmetry == "general" or record.dense is not None:
        return record
    row, column = record.indices
    off_diagonal = np.flatnonzero(row != column)
    values = _append_selected(record.values, record.values, off_diagonal)
    tail = values[record.values.size :]
    if record.symmetry == "skew-symmetric":
        np.negative(tail, out=tail)
    elif record.symmetry == "hermitian":
        np.conjugate(tail, out=tail)
    return Coordinates(
        record.shape, (_append_selected(row, column, off_diagonal), _append_selected(column, row, off_diagonal)), values
    )


def _append_selected(first: Array, second: Array, chosen: Array) -> Array:
    """`first`, then `second[chosen]`."""
    out = np.empty(first.size + chosen.size, first.dtype)
    out[: first.size] = first
    if chosen.size == second.size:
        out[first.size :] = second
    else:
        np.take(second, chosen, out=out[first.size :], mode="clip")
    return out


def index_dtype(extents: Sequence[int]) -> np.dtype[np.signedinteger]:
    """int32 where every coordinate fits, else int64."""
    return np.dtype(np.int32 if all(e <= 2**31 - 1 for e in extents) else np.int64)

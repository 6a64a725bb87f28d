"""Tensor -> matrix and back: the dimensions of a tensor grouped into rows and columns (matricization).

    T[b, i, j]  ->  M[(b, i), (b, j)]      a dimension may be in both groups, as that of a stack of matrices is

The conversion sorts where it must; numbers of rows and columns are then computed from sorted coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import tuning
from ...errors import UnsupportedError
from ...format import coo
from ...format import format as parse
from ...interruptible import repeat
from ...storage.buffers import Array, as_array, cast, host_dtype, length, to_numpy
from ...storage.storage import Storage
from ..conversion.convert import convert
from .spgemm import Rows

__all__ = ["align_columns", "as_csr", "align_mask", "matricize", "fold"]

CSR = parse("csr")
LARGEST = 1 << 62
SPARE = tuning.MATRICIZE_SPARE

Ints = NDArray[np.int64]


def matricize(s: Storage, rows: Sequence[int], columns: Sequence[int], *, ordered: bool = True) -> Rows:
    """The matrix whose rows are numbered by the dimensions `rows` and columns by `columns`, row-major.

    Every dimension is in one of the groups or in both. Duplicates are summed. Unless `ordered`, columns of a row are in
    any order, which saves a sort where the tensor has its dimensions in another.
    Raises UnsupportedError where the numbers would not fit 62 bits.
    """
    extents = [math.prod(s.shape[d] for d in group) for group in (rows, columns)]
    if max(extents) >= LARGEST:
        raise UnsupportedError(
            f"contraction: dimensions of extents {s.shape} make {max(extents)} rows or columns"
            "\n  supported: fewer than 2**62\n  help: contract other operands first"
        )
    if len(rows) == len(columns) == 1 and rows != columns and extents[0] <= 4 * length(s.values) + SPARE:
        plain = convert(s if rows[0] == 0 else s.permute((1, 0)), CSR)
        return Rows(to_numpy(plain.pos[1]), to_numpy(plain.crd[1]), to_numpy(plain.values), extents[1])
    others = [d for d in columns if d not in rows]
    order = [*rows, *(others if ordered else sorted(others))]
    crd, values = _sorted(s, order)
    at = {d: crd[k] for k, d in enumerate(order)}
    row = _number([at[d] for d in rows], [s.shape[d] for d in rows], len(values))
    column = _number([at[d] for d in columns], [s.shape[d] for d in columns], len(values))
    if extents[1] < 2**31:
        column = column.astype(np.int32)
    pos, keys = _compressed(row, extents[0])
    return Rows(pos.astype(np.int32) if len(row) < 2**31 else pos, column, values, extents[1], keys)


def _sorted(s: Storage, order: Sequence[int]) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Coordinates and values of the elements in the order of the dimensions `order`, duplicates summed."""
    if not order:
        full = convert(s, parse("() -> ()"))
        return [], to_numpy(full.values)
    plain = convert(s.permute(order), coo(len(order)))
    return [to_numpy(c) for c in plain.crd], to_numpy(plain.values)


def _number(crd: Sequence[NDArray[Any]], extents: Sequence[int], count: int) -> Ints:
    """The row-major number of each element."""
    if not crd:
        return np.zeros(count, np.int64)
    out = crd[0].astype(np.int64)
    for c, n in zip(crd[1:], extents[1:], strict=True):
        out *= n
        out += c
    return out


def _compressed(row: Ints, extent: int) -> tuple[Ints, Ints | None]:
    """pos and keys from sorted row numbers: pos over all rows, or over those with elements where these are few."""
    if extent <= 4 * len(row) + SPARE:
        return np.searchsorted(row, np.arange(extent + 1)), None
    first = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1]))) if len(row) else np.zeros(0, np.int64)
    return np.append(first, len(row)), row[first]


def align_columns(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """The operands of a product with the columns of `a` renumbered as the stored rows of `b`."""
    if b.keys is None:
        return a, b
    crd = to_numpy(a.crd)
    place = np.searchsorted(b.keys, crd)
    place[place == len(b.keys)] = 0
    matched = b.keys[place] == crd if len(b.keys) else np.zeros(len(crd), np.bool_)
    before = np.concatenate(([0], np.cumsum(matched)))
    pos = before[np.asarray(a.pos)]
    index = np.int32 if len(b.keys) < 2**31 else np.int64
    left = Rows(
        pos.astype(to_numpy(a.pos).dtype),
        place[matched].astype(index),
        np.ascontiguousarray(to_numpy(a.values)[matched]),
        len(b.keys),
        a.keys,
    )
    return left, replace(b, keys=None)


def align_mask(a: Rows, mask: Rows) -> Rows:
    """The mask with exactly the stored rows of `a`."""
    if a.keys is None and mask.keys is None:
        return mask
    row_keys = np.arange(a.count, dtype=np.int64) if a.keys is None else a.keys
    mask_keys = np.arange(mask.count, dtype=np.int64) if mask.keys is None else mask.keys
    pos, crd = np.append(np.asarray(mask.pos).astype(np.int64), mask.nse), to_numpy(mask.crd)
    at = np.searchsorted(mask_keys, row_keys)
    matched = np.append(mask_keys, -1)[at] == row_keys
    counts = np.where(matched, pos[at + 1] - pos[at], 0)
    ends = np.concatenate(([0], np.cumsum(counts)))
    source = np.arange(ends[-1]) + repeat(pos[at] - ends[:-1], counts)
    mask_crd = crd[source]
    return Rows(
        ends.astype(to_numpy(mask.pos).dtype), mask_crd, np.zeros(len(mask_crd), np.bool_), mask.columns, a.keys
    )


def as_csr(m: Rows, shape: tuple[int, int], scalar: str, fill: Any, like: Array) -> Storage | None:
    """The matrix as CSR; None where only some of its rows are stored."""
    if m.keys is not None or m.count != shape[0]:
        return None
    pos, crd = np.asarray(m.pos), np.asarray(m.crd)
    if pos.dtype != crd.dtype:
        wide = np.int64 if np.int64 in (pos.dtype, crd.dtype) else np.int32
        pos, crd = pos.astype(wide), crd.astype(wide)
    parts = (as_array(x, like=like) for x in (pos, crd))
    return Storage(shape, CSR, scalar, fill, (None, next(parts)), (None, next(parts)), as_array(m.values, like=like))


def fold(m: Rows, rows: Sequence[int], columns: Sequence[int], scalar: str, fill: Any, like: Array) -> Storage:
    """The tensor of the extents of `rows` and then `columns`, in COO."""
    pos = np.asarray(m.pos)
    keys = np.arange(m.count, dtype=np.int64) if m.keys is None else m.keys
    row = repeat(keys, np.diff(pos))
    crd = [*_coordinates(row, rows), *_coordinates(np.asarray(m.crd).astype(np.int64), columns)]
    shape = (*rows, *columns)
    values = as_array(m.values, like=like)
    if not shape:
        return scalar_storage(values, scalar, fill, like)
    index = np.int32 if max((*shape, len(row)), default=0) < 2**31 else np.int64
    arrays = tuple(as_array(c.astype(index), like=like) for c in crd)
    ends = as_array(np.array([0, len(row)], index), like=like)
    return Storage(shape, coo(len(shape)), scalar, fill, (ends, *(None,) * (len(shape) - 1)), arrays, values)


def scalar_storage(values: Array, scalar: str, fill: Any, like: Array) -> Storage:
    """A tensor of rank 0 of one value, or of none."""
    if not length(values):
        values = cast(as_array(np.array([fill], host_dtype(scalar)), like=like), scalar)
    return Storage((), parse("() -> ()"), scalar, fill, (), (), values)


def _coordinates(number: Ints, extents: Sequence[int]) -> list[Ints]:
    """The coordinates of row-major numbers."""
    out: list[Ints] = []
    for n in reversed(extents[1:]):
        number, rest = np.divmod(number, n) if n else (number, number)
        out.append(rest)
    return [number, *reversed(out)] if extents else []

"""A storage with leading dense levels -> the storage with batch levels instead, pos counted per slice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...format.format import Format
from ...storage.buffers import Array, length, scalar_of, to_numpy, zeros
from ...storage.storage import Storage

__all__ = ["batched"]


def batched(storage: Storage, format: Format) -> Storage:
    """`storage`, whose leading levels are dense, in the format with batch levels instead.

    Positions become those inside a slice. Cost: O(positions above each compressed level).
    Raises ShapeError where slices hold different numbers of elements.
    """
    spans = format.level_intervals(storage.shape)
    slices = math.prod(hi - lo for lo, hi in spans[: format.batch_ndim])
    pos = list(storage.pos)
    for at, level in enumerate(format.levels):
        if level.format.is_compressed:
            pos[at] = _edges(storage, format, at, slices)
        elif level.format.is_loose:
            pos[at] = _pairs(storage, format, at, slices)
    return Storage(storage.shape, format, storage.scalar, storage.fill_value, tuple(pos), storage.crd, storage.values)


def _edges(storage: Storage, format: Format, at: int, slices: int) -> Array:
    """pos of a compressed level, one more entry per slice."""
    linear = storage.pos[at]
    assert linear is not None
    parents = (length(linear) - 1) // slices if slices else 0
    out = zeros(slices * (parents + 1), _scalar(linear), linear)
    if slices and parents:
        ends = to_numpy(linear)
        _check_equal(format, at, np.diff(ends[::parents]))
        rows = out.reshape(slices, parents + 1)
        rows[:, 1:] = linear[1:].reshape(slices, parents) - linear[:-1:parents].reshape(slices, 1)
    return out


def _pairs(storage: Storage, format: Format, at: int, slices: int) -> Array:
    """pos of a loose level: pairs, those of empty parents (0, 0)."""
    linear = storage.pos[at]
    assert linear is not None
    out = zeros(length(linear), _scalar(linear), linear)
    if slices and length(linear):
        pairs = linear.reshape(slices, -1, 2)
        counts = pairs[:, :, 1] - pairs[:, :, 0]
        totals = to_numpy(counts.sum(1))
        _check_equal(format, at, totals)
        starts = to_numpy(linear).reshape(slices, -1, 2)
        base = np.arange(slices, dtype=np.int64)[:, None, None] * int(totals[0])
        local = np.where(starts[:, :, 1:] > starts[:, :, :1], starts - base, 0)
        to_numpy(out)[:] = local.reshape(-1)
    return out


def _check_equal(format: Format, at: int, counts: np.ndarray[Any, Any]) -> None:
    wrong = np.flatnonzero(counts != counts[0])
    if len(wrong):
        raise ShapeError(
            f"conversion to {format}: batch {int(wrong[0])} has {int(counts[wrong[0]])} elements in level {at}, "
            f"batch 0 has {int(counts[0])}\n"
            f"  expected: as many in every batch\n"
            f"  help: use dense in the place of batch, which takes any numbers"
        )


def _scalar(buffer: Array) -> str:

    return scalar_of(buffer)

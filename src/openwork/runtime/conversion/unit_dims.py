"""Tensors of many dimensions without those of extent 1, which loops, one for each dimension, need not have.

(2, 1, 3, 1), dense    (2, 3), dense, the same buffer
(2, 1, 3, 1), COO      (2, 3), COO, the same buffers but for the coordinates of the others, which are 0
"""

from __future__ import annotations

import numpy as np

from ... import tuning
from ...format import coo
from ...format import format as parse
from ...format.format import Format
from ...storage.buffers import as_array, length
from ...storage.storage import Storage

__all__ = ["LIMIT", "is_long", "with_unit_dims", "without_unit_dims"]

LIMIT = tuning.LOOP_DIMENSIONS


def is_long(shape: tuple[int, ...], *formats: Format) -> bool:
    """Whether there are many dimensions, some of them of extent 1, in formats that do without these: dense and COO."""
    if len(shape) <= LIMIT or 1 not in shape or 0 in shape:
        return False
    return all(f in (coo(len(shape)), parse("dense", len(shape))) for f in formats)


def _others(shape: tuple[int, ...]) -> list[int]:
    """The dimensions that are not of extent 1; of a shape of ones the first."""
    return [d for d, n in enumerate(shape) if n != 1] or [0]


def without_unit_dims(s: Storage) -> Storage:
    """A dense or COO storage without its dimensions of extent 1."""
    kept = _others(s.shape)
    shape, n = tuple(s.shape[d] for d in kept), len(kept)
    if s.format.is_dense:
        none = (None,) * n
        return Storage(shape, parse("dense", n), s.scalar, s.fill_value, none, none, s.values)
    crd = tuple(s.crd[d] for d in kept)
    return Storage(shape, coo(n), s.scalar, s.fill_value, (s.pos[0], *(None,) * (n - 1)), crd, s.values)


def with_unit_dims(s: Storage, shape: tuple[int, ...]) -> Storage:
    """A COO storage with the dimensions of extent 1 of a shape again."""
    kept, n = {d: k for k, d in enumerate(_others(shape))}, len(shape)
    first = s.crd[0]
    assert first is not None
    zeros = as_array(np.zeros(length(first), str(first.dtype).removeprefix("torch.")), like=first)
    crd = tuple(s.crd[kept[d]] if d in kept else zeros for d in range(n))
    return Storage(shape, coo(n), s.scalar, s.fill_value, (s.pos[0], *(None,) * (n - 1)), crd, s.values)

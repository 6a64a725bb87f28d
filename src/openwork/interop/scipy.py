"""SciPy's sparse arrays and matrices as Tensors over the same buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..format import coo
from ..format import format as parse
from ..runtime.block_order import block_format, flat_blocks
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, python_scalar
from .buffer_policy import BufferPolicy, to_strictest_format

__all__ = ["DIAGONALS", "from_scipy"]

DIAGONALS = parse("(i, j) -> (j - i : compressed, j : range)")
"""SciPy's DIA: a row of data per diagonal, by column."""

_UNSORTED_DIAGONALS = parse("(i, j) -> (j - i : compressed(unordered), j : range)")


def from_scipy(obj: Any, policy: BufferPolicy) -> Tensor:
    """The tensor of a SciPy sparse array or matrix of any format; lil and dok through their own coordinates."""
    reader = _READERS.get(obj.format)
    if reader is None:
        obj = obj.tocoo()
        return _coordinates(obj, BufferPolicy(None))
    return reader(obj, policy)


def _shape(obj: Any) -> tuple[int, ...]:
    return tuple(map(int, obj.shape))


def _storage(obj: Any, format: Any, pos: dict[int, Array], crd: dict[int, Array], values: Array) -> Storage:
    levels, scalar = range(len(format.levels)), buffers.scalar_of(values)
    groups = (tuple([pos.get(k) for k in levels]), tuple([crd.get(k) for k in levels]))
    return Storage(_shape(obj), format, scalar, python_scalar(0, scalar), *groups, values)


def _used(obj: Any) -> int:
    """Stored elements: SciPy's buffers may be longer."""
    return int(obj.indptr[-1]) if len(obj.indptr) else 0


def _compressed(obj: Any, policy: BufferPolicy) -> Tensor:
    indptr, indices, data = obj.indptr, obj.indices, obj.data
    nse = int(indptr[-1]) if len(indptr) else 0
    if len(indices) != nse or len(data) != nse:
        indices, data = indices[:nse], data[:nse]
    pos, crd, values = policy.index(indptr), policy.index(indices), policy.flat(data)
    shape = tuple(map(int, obj.shape))
    scalar = buffers.scalar_of(values)
    fill = python_scalar(0, scalar)
    if len(shape) == 1:
        return to_strictest_format(Storage(shape, coo(1), scalar, fill, (pos,), (crd,), values))
    return to_strictest_format(Storage(shape, parse(obj.format), scalar, fill, (None, pos), (None, crd), values))


def _blocked(obj: Any, policy: BufferPolicy) -> Tensor:
    blocks = _used(obj)
    block = tuple(int(n) for n in obj.blocksize)
    data, column_major = flat_blocks(obj.data[:blocks], 0)
    format = block_format("bsr", (block[0], block[1]), 0, 0, column_major)
    crd, values = policy.index(obj.indices[:blocks]), policy.flat(data)
    return to_strictest_format(_storage(obj, format, {1: policy.index(obj.indptr)}, {1: crd}, values))


def _coordinates(obj: Any, policy: BufferPolicy) -> Tensor:
    given = obj.coords if hasattr(obj, "coords") else (obj.row, obj.col)
    crd = {k: policy.index(c) for k, c in enumerate(given)}
    values = policy.flat(obj.data)
    pos = np.array([0, len(values)], crd[0].dtype)
    return to_strictest_format(_storage(obj, coo(len(crd)), {0: pos}, crd, values))


def _diagonals(obj: Any, policy: BufferPolicy) -> Tensor:
    rows, columns = _shape(obj)
    offsets, data = np.asarray(obj.offsets), obj.data
    keep = (offsets > -rows) & (offsets < columns)
    if not keep.all() or not (rows and columns):
        keep &= bool(rows and columns)
        offsets, data = policy.copied_if_asked(offsets[keep], True), data[keep]
    if data.shape[1] < columns:
        padded = np.zeros((len(data), columns), data.dtype)
        padded[:, : data.shape[1]] = data
        data = policy.copied_if_asked(padded, True)
    values = policy.flat(data[:, :columns])
    crd = policy.index(offsets)
    pos = np.array([0, len(crd)], crd.dtype)
    return to_strictest_format(_storage(obj, DIAGONALS, {0: pos}, {0: crd}, values), [_UNSORTED_DIAGONALS])


_READERS = {"csr": _compressed, "csc": _compressed, "bsr": _blocked, "coo": _coordinates, "dia": _diagonals}

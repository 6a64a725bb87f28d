"""A pydata/sparse array -> a Tensor: COO over the same coordinates, GCXS over the same positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..format import build, coo
from ..format import format as parse
from ..format.expression import Dim
from ..format.format import Format
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, python_scalar
from .buffer_policy import BufferPolicy, dense_tensor, to_strictest_format

__all__ = ["from_pydata"]


def from_pydata(obj: Any, policy: BufferPolicy) -> Tensor:
    """The tensor of a pydata COO, GCXS or DOK array; its fill value stays."""
    if hasattr(obj, "indptr"):
        return _compressed(obj, policy)
    if not hasattr(obj, "coords"):
        obj = obj.to_coo()
    ndim = len(obj.shape)
    if ndim == 0:
        return dense_tensor(np.asarray(obj.data[0] if len(obj.data) else obj.fill_value), BufferPolicy(None), 0, None)
    crd = {k: policy.index(obj.coords[k]) for k in range(ndim)}
    pos = np.array([0, len(obj.data)], crd[0].dtype)
    return to_strictest_format(_storage(obj, coo(ndim), {0: pos}, crd, policy.flat(obj.data)))


def _storage(obj: Any, format: Format, pos: dict[int, Array], crd: dict[int, Array], values: Array) -> Storage:
    levels, scalar = range(len(format.levels)), buffers.scalar_of(values)
    groups = (tuple(pos.get(k) for k in levels), tuple(crd.get(k) for k in levels))
    fill = python_scalar(np.asarray(obj.fill_value).item(), scalar)
    return Storage(tuple(int(n) for n in obj.shape), format, scalar, fill, *groups, values)


def _compressed(obj: Any, policy: BufferPolicy) -> Tensor:
    """GCXS: some dimensions merged row-major into rows with positions, the others into one coordinate."""
    shape = tuple(int(n) for n in obj.shape)
    values = policy.flat(obj.data)
    if len(shape) == 1:
        crd_only = policy.index(obj.indices)
        return to_strictest_format(
            _storage(obj, coo(1), {0: np.array([0, len(crd_only)], crd_only.dtype)}, {0: crd_only}, values)
        )
    rows = [int(a) for a in obj.compressed_axes]
    columns = [a for a in range(len(shape)) if a not in rows]
    first = len(rows)
    pos = {first: policy.index(obj.indptr)}
    if len(shape) == 2:
        return to_strictest_format(
            _storage(obj, parse("csr" if rows == [0] else "csc"), pos, {1: policy.index(obj.indices)}, values)
        )
    levels = (*(build.dense(Dim(a)) for a in rows), *build.coordinates(Dim(a) for a in columns))
    format = Format(tuple(f"i{a}" for a in range(len(shape))), levels)
    merged_crd = policy.index(obj.indices)
    if len(columns) == 1:
        return to_strictest_format(_storage(obj, format, pos, {first: merged_crd}, values))
    crd = {}
    for k, a in enumerate(columns):
        stride = math.prod(shape[b] for b in columns[k + 1 :])
        crd[first + k] = policy.copied_if_asked(
            np.ascontiguousarray(merged_crd // max(stride, 1) % max(shape[a], 1)), True
        )
    return to_strictest_format(_storage(obj, format, pos, crd, values))

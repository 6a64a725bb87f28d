"""A torch tensor of any layout -> a Tensor over the same buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..format import coo
from ..format import format as parse
from ..runtime.block_order import block_format, flat_blocks
from ..runtime.gradient_hook import differentiable
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.recorded import is_transformed, outside
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, python_scalar
from .buffer_policy import BufferPolicy, dense_tensor, to_strictest_format

__all__ = ["from_torch"]


def from_torch(obj: Any, policy: BufferPolicy, fill: Any) -> Tensor:
    """The tensor of a torch tensor: strided, COO, CSR, CSC, BSR or BSC, batched and hybrid ones too."""
    layout = str(obj.layout).removeprefix("torch.")
    if layout == "strided":
        return dense_tensor(obj, policy, fill, obj)
    if is_transformed(obj):
        return _sparse(obj, layout, policy)
    with outside():  # torch's transforms have no views of sparse tensors
        return _sparse(obj, layout, policy)


def _sparse(obj: Any, layout: str, policy: BufferPolicy) -> Tensor:
    if layout == "sparse_coo":
        return _coordinates(obj, policy)
    if layout in ("sparse_csr", "sparse_bsr"):
        return _compressed(obj, layout[7:], obj.detach().crow_indices(), obj.detach().col_indices(), policy)
    if layout in ("sparse_csc", "sparse_bsc"):
        return _compressed(obj, layout[7:], obj.detach().ccol_indices(), obj.detach().row_indices(), policy)
    raise UnsupportedError(
        f"asarray: torch layout {layout} is not supported\n  supported: strided, sparse_coo, csr, csc, bsr, bsc"
    )


@differentiable(lambda obj: (obj,))
def torch_values(obj: Any) -> Array:
    """The values of a sparse torch tensor."""
    return unviewed(obj.values() if str(obj.layout) != "torch.sparse_coo" or obj.is_coalesced() else obj._values())


def unviewed(x: Any) -> Array:
    """A torch tensor over the same memory that is no view: torch.compile does not take views of sparse tensors."""
    return x.data if x._is_view() else x


def _storage(obj: Any, format: Any, pos: dict[int, Array], crd: dict[int, Array], values: Array) -> Storage:
    levels, scalar = range(len(format.levels)), buffers.scalar_of(values)
    groups = tuple([pos.get(k) for k in levels]), tuple([crd.get(k) for k in levels])
    return Storage(tuple(map(int, obj.shape)), format, scalar, python_scalar(0, scalar), *groups, values)


def _coordinates(obj: Any, policy: BufferPolicy) -> Tensor:
    coalesced = bool(obj.is_coalesced())
    indices = obj.detach().indices() if coalesced else obj.detach()._indices()
    values = torch_values(obj)
    sparse, dense_dim = int(obj.sparse_dim()), int(obj.dense_dim())
    if sparse == 0:
        return dense_tensor(values.sum(0, dtype=values.dtype), BufferPolicy(None), 0, None)
    level_crd = {k: policy.index(crd) for k, crd in enumerate(indices.unbind(0))}
    pos = buffers.as_array(np.array((0, int(indices.shape[1])), np.int64), like=indices)
    format = coo(sparse + dense_dim, unique=coalesced, ordered=coalesced, dense=dense_dim)
    return to_strictest_format(_storage(obj, format, {0: pos}, level_crd, policy.flat(values)))


def _compressed(obj: Any, name: str, outer: Array, inner: Array, policy: BufferPolicy) -> Tensor:
    batch, values = outer.ndim - 1, torch_values(obj)
    dense_dim = int(obj.dense_dim())
    if name in ("bsr", "bsc"):
        block = (int(values.shape[batch + 1]), int(values.shape[batch + 2]))
        values, column_major = flat_blocks(values, batch)
        format = block_format(name, block, batch, dense_dim, column_major)
    else:
        format = parse(name, 2 + batch + dense_dim, batch=batch, dense=dense_dim)
    pos, crd = policy.index(unviewed(outer)), policy.index(unviewed(inner))
    return to_strictest_format(_storage(obj, format, {batch + 1: pos}, {batch + 1: crd}, policy.flat(values)))

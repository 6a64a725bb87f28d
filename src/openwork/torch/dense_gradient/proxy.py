"""Dense gradient proxies: torch tensors of a Tensor's shape without memory, on whose graph all its elements are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...storage.buffers import scalar_of
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..gradients.single_operand import Product, product

__all__ = [
    "ProxyOfLayout",
    "ProxyOfStored",
    "StoredOfProxy",
    "no_memory_zeros",
    "stored_values",
    "to_dense_tensor",
]


def to_dense_tensor(s: Storage, values: torch.Tensor, fill: Any = None) -> torch.Tensor:
    """A structure and values -> the dense torch tensor."""
    result: torch.Tensor = Tensor._from_storage(s.with_values(values, fill)).to_dense()
    return result


def stored_values(s: Storage, elements: torch.Tensor) -> torch.Tensor:
    """A dense tensor's elements at the stored coordinates of a structure; 0 in padding."""
    names = tuple(f"i{d}" for d in range(len(s.shape)))
    return product(Product(s, names, (names,), None, scalar_of(elements)), None, [elements])


def no_memory_zeros(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Zeros of this shape and the dtype of `like`, expanded from one element; in forward mode one for each element."""
    if torch.autograd.forward_ad._current_level >= 0:
        return like.new_zeros(tuple(shape))
    return like.new_zeros(()).expand(tuple(shape))


class ProxyOfStored(torch.autograd.Function):  # type: ignore[misc]
    """Values -> a proxy; the gradient of the values is the proxy's at the stored elements."""

    @staticmethod
    def forward(ctx: Any, s: Storage, values: torch.Tensor) -> torch.Tensor:
        ctx.structure = s
        return no_memory_zeros(values, s.shape)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, stored_values(ctx.structure, grads[0])

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: torch.Tensor) -> torch.Tensor:
        return to_dense_tensor(ctx.structure, tangent.contiguous(), 0)


class ProxyOfLayout(torch.autograd.Function):  # type: ignore[misc]
    """A sparse torch tensor -> a proxy; its gradient is the proxy's in its layout, with all elements that are not 0."""

    @staticmethod
    def forward(ctx: Any, obj: torch.Tensor) -> torch.Tensor:
        blocked = obj.layout in (torch.sparse_bsr, torch.sparse_bsc)
        batch_ndim = obj.ndim - obj.sparse_dim() - obj.dense_dim() if obj.layout != torch.sparse_coo else 0
        size = tuple(obj.values().shape[batch_ndim + 1 : batch_ndim + 3]) if blocked else None
        ctx.form = {"layout": obj.layout, "blocksize": size, "dense_dim": obj.dense_dim() or None}
        ctx.form = {k: v for k, v in ctx.form.items() if v is not None}
        return obj.detach().values().new_zeros(()).expand(obj.shape)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0].to_sparse(**ctx.form)


class StoredOfProxy(torch.autograd.Function):  # type: ignore[misc]
    """Known values of a tensor -> the same, as a function of its proxy."""

    @staticmethod
    def forward(ctx: Any, s: Storage, values: torch.Tensor, proxy: torch.Tensor) -> torch.Tensor:
        ctx.structure = s
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, to_dense_tensor(ctx.structure, grads[0], 0)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, tangent: torch.Tensor) -> torch.Tensor:
        return stored_values(ctx.structure, tangent)

"""Dense gradient proxies: torch tensors of a Tensor's shape without memory, on whose graph all its elements are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...storage.buffers import scalar_of
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..gradients.function import Rule, apply_rule
from ..gradients.single_operand import Product, product

__all__ = [
    "no_memory_zeros",
    "proxy_of_layout",
    "proxy_of_stored",
    "stored_of_proxy",
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


class _ProxyOfStored(Rule):
    """Values -> a proxy; the gradient of the values is the proxy's at the stored elements."""

    __slots__ = ("structure",)

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return no_memory_zeros(values, self.structure.shape)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return (stored_values(self.structure, grad),)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> torch.Tensor:
        assert tangents[0] is not None
        return to_dense_tensor(self.structure, tangents[0].contiguous(), 0)


class _ProxyOfLayout(Rule):
    """A sparse torch tensor -> a proxy; its gradient is the proxy's in its layout, with all elements that are not 0."""

    __slots__ = ("form",)

    def __init__(self, obj: torch.Tensor) -> None:
        blocked = obj.layout in (torch.sparse_bsr, torch.sparse_bsc)
        batch_ndim = obj.ndim - obj.sparse_dim() - obj.dense_dim() if obj.layout != torch.sparse_coo else 0
        size = tuple(obj.values().shape[batch_ndim + 1 : batch_ndim + 3]) if blocked else None
        form = {"layout": obj.layout, "blocksize": size, "dense_dim": obj.dense_dim() or None}
        self.form = {k: v for k, v in form.items() if v is not None}

    def forward(self, obj: torch.Tensor) -> torch.Tensor:
        return obj.detach().values().new_zeros(()).expand(obj.shape)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return (grad.to_sparse(**self.form),)


class _StoredOfProxy(Rule):
    """Known values of a tensor -> the same, as a function of its proxy."""

    __slots__ = ("structure",)

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor, proxy: torch.Tensor) -> torch.Tensor:
        return values.view_as(values)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return None, to_dense_tensor(self.structure, grad, 0)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> torch.Tensor:
        assert tangents[1] is not None
        return stored_values(self.structure, tangents[1])


def proxy_of_stored(s: Storage, values: torch.Tensor) -> torch.Tensor:
    """Values on a structure -> a proxy; the gradient of the values is the proxy's at the stored elements."""
    result: torch.Tensor = apply_rule(_ProxyOfStored(s), values)
    return result


def proxy_of_layout(obj: torch.Tensor) -> torch.Tensor:
    """A sparse torch tensor -> a proxy; its gradient is the proxy's in its layout, with all elements that are not 0."""
    result: torch.Tensor = apply_rule(_ProxyOfLayout(obj.detach()), obj)
    return result


def stored_of_proxy(s: Storage, values: torch.Tensor, proxy: torch.Tensor) -> torch.Tensor:
    """Known values of a tensor -> the same, as a function of its proxy."""
    result: torch.Tensor = apply_rule(_StoredOfProxy(s), values, proxy)
    return result

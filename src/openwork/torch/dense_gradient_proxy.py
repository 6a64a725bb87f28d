"""Tensors of a whole shape without memory, which stand for all elements of a Tensor where torch records gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..storage.buffers import scalar_of
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .single_operand import Product, product

__all__ = ["Elements", "Layout", "Spread", "Stored", "dense", "nothing", "taken"]


def dense(s: Storage, values: torch.Tensor, fill: Any = None) -> torch.Tensor:
    """The dense tensor of values on a structure."""
    result: torch.Tensor = Tensor._from_storage(s.with_values(values, fill)).to_dense()
    return result


def taken(s: Storage, every: torch.Tensor) -> torch.Tensor:
    """The elements of a dense tensor that a structure stores; 0 in padding."""
    names = tuple(f"i{d}" for d in range(len(s.shape)))
    return product(Product(s, names, (names,), None, scalar_of(every)), None, [every])


def nothing(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of this shape and the dtype of `like` that takes no memory."""
    return like.new_zeros(()).expand(tuple(shape))


class Spread(torch.autograd.Function):  # type: ignore[misc]
    """The carrier of a tensor that has none: its stored elements get their part of the gradient."""

    @staticmethod
    def forward(ctx: Any, s: Storage, values: torch.Tensor) -> torch.Tensor:
        ctx.structure = s
        return nothing(values, s.shape)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, taken(ctx.structure, grads[0])


class Layout(torch.autograd.Function):  # type: ignore[misc]
    """The carrier of a sparse tensor of torch's, whose gradient has its layout, and as many elements as it takes."""

    @staticmethod
    def forward(ctx: Any, obj: torch.Tensor) -> torch.Tensor:
        blocked = obj.layout in (torch.sparse_bsr, torch.sparse_bsc)
        at = obj.ndim - obj.sparse_dim() - obj.dense_dim() if obj.layout != torch.sparse_coo else 0
        size = tuple(obj.values().shape[at + 1 : at + 3]) if blocked else None
        ctx.form = {"layout": obj.layout, "blocksize": size, "dense_dim": obj.dense_dim() or None}
        ctx.form = {k: v for k, v in ctx.form.items() if v is not None}
        return obj.detach().values().new_zeros(()).expand(obj.shape)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0].to_sparse(**ctx.form)


class Stored(torch.autograd.Function):  # type: ignore[misc]
    """The values of a tensor, which are known, as elements of its carrier."""

    @staticmethod
    def forward(ctx: Any, s: Storage, known: torch.Tensor, carrier: torch.Tensor) -> torch.Tensor:
        ctx.structure = s
        return known.view_as(known)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, dense(ctx.structure, grads[0], 0)


class Elements(torch.autograd.Function):  # type: ignore[misc]
    """All elements of a tensor, which are known, with the gradients of its carrier."""

    @staticmethod
    def forward(ctx: Any, known: torch.Tensor, carrier: torch.Tensor) -> torch.Tensor:
        return known.view_as(known)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, grads[0]

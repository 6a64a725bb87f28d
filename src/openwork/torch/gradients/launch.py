"""A prepared call of a statement with one sparse operand -> a function of its values and dense operands of torch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ...checked import CHECKED
from ...codegen import pool
from ...codegen.short_call import bound
from ...runtime.prepared import PreparedCall
from ...runtime.prepared_results import template
from ...storage.buffers import address

__all__ = ["PreparedLaunch"]

Order = tuple[tuple[int, ...], tuple[int, ...]]


class PreparedLaunch:
    """A prepared launch: values, or None for a statement of a pattern, and dense operands of known shapes and strides
    -> a new tensor.

    operands : dense ones of these shapes and strides, where some are packed first
    """

    __slots__ = ("_takes_pair", "_used", "dtype", "like", "make", "orders", "prepared_call", "short", "transposed")

    def __init__(
        self,
        prepared: PreparedCall,
        like: torch.Tensor,
        *,
        zero: bool,
        operands: Sequence[torch.Tensor] | None = None,
    ) -> None:
        self.prepared_call, self.dtype = prepared, like.dtype
        self.transposed = not like.is_contiguous()
        """whether the result lies in memory as its transpose"""
        self.like = template(like.detach().mT if self.transposed else like.detach())
        self.make = torch.zeros_like if zero else torch.empty_like
        self.short = prepared.short
        slots = (prepared.values, *prepared.slots, prepared.out)
        self._used: tuple[int, ...] | None = None
        """the operands whose addresses a short launch takes, where it does not take them all"""
        if self.short is None and prepared.range is not None and prepared.is_short:
            self._used = tuple(k for k, slot in enumerate(slots) if slot >= 0)
            taken = [slots[k] for k in self._used]
            self.short = bound(prepared.prepared.executable, prepared.words, taken, *prepared.range)
        self._takes_pair = self._used is not None and len(slots) == 4 and self._used == (1, 2, 3)
        """whether these are two dense ones and the result"""
        self.orders: tuple[Order | None, ...] | None = None
        """how operands are permuted to be packed, and back"""
        if operands is not None:
            along = [a for _, a, _ in prepared.inputs]
            orders = tuple([_order(x, a) for x, a in zip(operands, along, strict=True)])
            self.orders = None if all(order is None for order in orders) else orders

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.prepared_call.threads == pool.threads

    def __call__(self, values: torch.Tensor | None, *dense: torch.Tensor) -> torch.Tensor:
        if self.orders is not None:
            dense = tuple(_packed(x, order) for x, order in zip(dense, self.orders, strict=True))
        out: torch.Tensor = self.make(self.like)
        if self.short is not None:
            if self._takes_pair:
                code = self.short(dense[0].data_ptr(), dense[1].data_ptr(), out.data_ptr())
            elif self._used is not None:
                operands = (values, *dense, out)
                words = [operands[k].data_ptr() for k in self._used]
                code = self.short(*words)
            elif len(dense) == 1:
                code = self.short(values.data_ptr(), dense[0].data_ptr(), out.data_ptr())  # type: ignore[union-attr]
            else:
                code = self.short(values.data_ptr(), *[x.data_ptr() for x in dense], out.data_ptr())  # type: ignore[union-attr]
            if code:
                self.prepared_call.end(code)
            return out.mT if self.transposed else out
        begin = 0 if values is None else _address(values)
        if len(dense) == 1:
            self.prepared_call.start_one(begin, _address(dense[0]), _address(out))
        else:
            self.prepared_call.start(begin, [_address(x) for x in dense], _address(out))
        return out.mT if self.transposed else out


def _order(x: torch.Tensor, last: int | None) -> Order | None:
    """The order of dimensions in which `last` is the last one, and its inverse; None where an operand of these strides
    needs no packing."""
    if last is None:
        return None
    order = (*[d for d in range(x.ndim) if d != last], last)
    if x.permute(order).is_contiguous():
        return None
    return order, tuple(sorted(range(x.ndim), key=order.__getitem__))


def _packed(x: torch.Tensor, order: Order | None) -> torch.Tensor:
    """The operand with the last dimension of the order contiguous: a copy, as `strided.contiguous_along` makes it."""
    return x if order is None else x.permute(order[0]).contiguous().permute(order[1])


def _checked_address(x: torch.Tensor) -> int:
    return address(x.detach())


_address: Callable[[torch.Tensor], int] = _checked_address if CHECKED else torch.Tensor.data_ptr

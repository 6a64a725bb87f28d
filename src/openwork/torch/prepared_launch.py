"""A prepared call of a statement with one sparse operand -> a function of its values and dense operands of torch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ..checked import CHECKED
from ..codegen import pool
from ..codegen.short_call import bound
from ..runtime.prepared import PreparedCall
from ..runtime.prepared_results import template
from ..storage.buffers import address

__all__ = ["PreparedLaunch"]

Order = tuple[tuple[int, ...], tuple[int, ...]]


class PreparedLaunch:
    """A prepared launch: values, or None for a statement of a pattern, and dense operands of known shapes and strides
    -> a new tensor.

    shapes : the dense operands' shapes, for those that are packed first
    """

    __slots__ = ("_used", "dtype", "like", "make", "orders", "prepared_call", "short")

    def __init__(
        self, prepared: PreparedCall, like: torch.Tensor, *, zero: bool, ranks: Sequence[int] | None = None
    ) -> None:
        self.prepared_call, self.dtype = prepared, like.dtype
        self.like = template(like.detach())
        self.make = torch.zeros_like if zero else torch.empty_like
        self.short = prepared.short
        slots = (prepared.values, *prepared.slots, prepared.out)
        self._used: tuple[int, ...] | None = None
        """the operands whose addresses a short launch takes, where it does not take them all"""
        if self.short is None and prepared.range is not None and prepared.is_short:
            self._used = tuple(k for k, slot in enumerate(slots) if slot >= 0)
            taken = [slots[k] for k in self._used]
            self.short = bound(prepared.prepared.executable, prepared.words, taken, *prepared.range)
        self.orders: tuple[Order | None, ...] | None = None
        """how operands are permuted to be packed, and back"""
        if ranks is not None and any(along is not None for _, along, _ in prepared.inputs):
            self.orders = tuple(
                None if along is None else _order(rank, along)
                for rank, (_, along, _) in zip(ranks, prepared.inputs, strict=True)
            )

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.prepared_call.threads == pool.threads

    def __call__(self, values: torch.Tensor | None, *dense: torch.Tensor) -> torch.Tensor:
        if self.orders is not None:
            dense = tuple(_packed(x, order) for x, order in zip(dense, self.orders, strict=True))
        out: torch.Tensor = self.make(self.like)
        if self.short is not None:
            if self._used is not None:
                operands = (values, *dense, out)
                words = [operands[k].data_ptr() for k in self._used]
                code = self.short(*words)
            elif len(dense) == 1:
                code = self.short(values.data_ptr(), dense[0].data_ptr(), out.data_ptr())  # type: ignore[union-attr]
            else:
                code = self.short(values.data_ptr(), *[x.data_ptr() for x in dense], out.data_ptr())  # type: ignore[union-attr]
            if code:
                self.prepared_call.end(code)
            return out
        begin = 0 if values is None else _address(values)
        if len(dense) == 1:
            self.prepared_call.start_one(begin, _address(dense[0]), _address(out))
        else:
            self.prepared_call.start(begin, [_address(x) for x in dense], _address(out))
        return out


def _order(rank: int, last: int) -> Order:
    """The order of dimensions in which `last` is the last one, and its inverse."""
    order = (*[d for d in range(rank) if d != last], last)
    return order, tuple(sorted(range(rank), key=order.__getitem__))


def _packed(x: torch.Tensor, order: Order | None) -> torch.Tensor:
    """The operand with the last dimension of the order contiguous: a copy, as `strided.contiguous_along` makes it."""
    return x if order is None else x.permute(order[0]).contiguous()


def _checked_address(x: torch.Tensor) -> int:
    return address(x.detach())


_address: Callable[[torch.Tensor], int] = _checked_address if CHECKED else torch.Tensor.data_ptr

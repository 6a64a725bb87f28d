"""Prepared sums and softmax of values that torch records: the launches of others, with gradients by torch's operations.

    y[i] += A[i, j]                   dA = dy[rows]
    y = softmax(x) along rows         dx = y dy - y sums(y dy)[rows],   where `rows` says where each value belongs

These operations are torch's own, so that gradients have gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ... import tuning
from ...ir.index import Access, Assignment
from ...ir.index import accesses as accesses_of
from ...runtime.conversion.remap import has_gaps
from ...storage.buffers import length
from ...storage.recorded import outside, structure_of
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ..gradients.single_operand import plain_apply

__all__ = ["recorded_softmax", "recorded_sum"]

Launch = Callable[[torch.Tensor], torch.Tensor]
Call = Callable[[Storage], torch.Tensor]


@outside()
def _results_of(s: Storage, at: tuple[str, ...], out: tuple[str, ...]) -> torch.Tensor | None:
    """The position of the result that each value is summed into; None where values are many, or padding."""
    s = structure_of(s)
    count = length(s.values)
    if not 0 < count <= tuning.RECORDED_SUM or has_gaps(s) or s.device != "cpu":
        return None
    found, positions = coordinates(s)
    kept = [at.index(i) for i in out]
    places = np.zeros(count, np.int64)
    if kept:
        places[positions] = np.ravel_multi_index([found[d] for d in kept], [s.shape[d] for d in kept])
    return torch.from_numpy(places)


class _Sum(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, call: Call, s: Storage, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        ctx.places = places
        return call(s)  # nothing is recorded here

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, None, grads[0].reshape(-1).index_select(0, ctx.places)


_sum = plain_apply(_Sum)


def recorded_sum(stmt: Assignment, s: Storage) -> Callable[[Call, Storage], torch.Tensor] | None:
    """The recorded form of a prepared sum of one storage: call and storage -> the result; None where there is none.

    Only where no transform of `torch.func` and no tangent takes part.
    """
    (access,) = accesses_of(stmt.rhs)
    if stmt.op != "+=" or not isinstance(stmt.rhs, Access) or not s.values.is_floating_point():
        return None
    places = _results_of(s, access.indices, stmt.lhs.indices)
    return None if places is None else lambda call, s: _sum(call, s, places, s.values)


class _Softmax(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, launch: Launch, places: torch.Tensor, rows: int, values: torch.Tensor) -> torch.Tensor:
        result = launch(values)
        ctx.places, ctx.rows = places, rows
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (result,), places = ctx.saved_tensors, ctx.places
        weighted = grads[0] * result
        sums = weighted.new_zeros(ctx.rows).index_add(0, places, weighted)
        return None, None, None, torch.addcmul(weighted, result, sums.index_select(0, places), value=-1)


_softmax = plain_apply(_Softmax)


def recorded_softmax(stmt: Assignment, s: Storage, rows: int) -> Callable[[Launch, torch.Tensor], torch.Tensor] | None:
    """The recorded form of a prepared softmax, whose sums are `stmt` and so many; see `recorded_sum`."""
    (access,) = accesses_of(stmt.rhs)
    places = _results_of(s, access.indices, stmt.lhs.indices)
    return None if places is None else lambda launch, values: _softmax(launch, places, rows, values)

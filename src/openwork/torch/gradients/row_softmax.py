"""The gradient rule of the softmax of compressed rows: one kernel each way, and torch's operations where it records."""

from __future__ import annotations

from typing import Any

import torch

from ...ops.reductions import row_softmax as kernels
from ...storage.buffers import to_numpy
from ...storage.recorded import structure_of
from ...storage.storage import Storage

__all__ = ["row_softmax"]


def row_softmax(s: Storage) -> torch.Tensor:
    """The rule of `ops.reductions.row_softmax.row_softmax`."""
    result: torch.Tensor = _RowSoftmax.apply(structure_of(s), s.values)
    return result


class _RowSoftmax(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(s: Storage, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = kernels.row_softmax(s.with_values(values.detach().contiguous()))
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.pos = inputs[0].pos[-1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (y,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, _differential(ctx.pos, y, grads[0])
        return None, kernels.gradient(ctx.pos, y.detach(), grads[0].detach().contiguous())

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return _differential(ctx.pos, y, tangent)


def _differential(pos: Any, y: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """y * (t - sum of y t over the row), of which torch has derivatives."""
    ends = torch.as_tensor(to_numpy(pos)).long()
    rows = torch.repeat_interleave(ends.diff())
    totals = y.new_zeros(len(ends) - 1).index_add(0, rows, y * t)
    return y * (t - totals[rows])

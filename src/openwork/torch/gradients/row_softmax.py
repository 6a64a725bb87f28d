"""The gradient rule of the softmax of compressed rows: one kernel each way, and torch's operations where it records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...ops.reductions import row_softmax as kernels
from ...storage.buffers import to_numpy
from ...storage.storage import Storage, structure_of
from .function import Rule, apply_rule

__all__ = ["row_softmax"]


def row_softmax(s: Storage) -> torch.Tensor:
    """The rule of `ops.reductions.row_softmax.row_softmax`."""
    result: torch.Tensor = apply_rule(_RowSoftmax(structure_of(s)), s.values)
    return result


class _RowSoftmax(Rule):
    __slots__ = ("structure",)

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = kernels.row_softmax(self.structure.with_values(values.detach().contiguous()))
        return result

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return (output,)

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        (y,), pos = saved, self.structure.pos[-1]
        if torch.is_grad_enabled():
            return (_differential(pos, y, grad),)
        return (kernels.gradient(pos, y.detach(), grad.detach().contiguous()),)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> torch.Tensor:
        assert tangents[0] is not None
        return _differential(self.structure.pos[-1], saved[0], tangents[0])


def _differential(pos: Any, y: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """y * (t - sum of y t over the row), of which torch has derivatives."""
    ends = torch.as_tensor(to_numpy(pos)).long()
    rows = torch.repeat_interleave(ends.diff())
    totals = y.new_zeros(len(ends) - 1).index_add(0, rows, y * t)
    return y * (t - totals[rows])

"""A sparse torch tensor that requires a gradient -> its values; their gradient has its layout and structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...interop import from_torch as torch_source
from .function import Rule, apply_rule

__all__ = ["torch_values"]


class _Values(Rule):
    """The values of a sparse torch tensor, as a function of it."""

    __slots__ = ("like",)

    def __init__(self, like: torch.Tensor) -> None:
        self.like = like

    def forward(self, obj: torch.Tensor) -> torch.Tensor:
        return torch_source.torch_values(obj.detach())

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return (_with_structure_of(self.like, grad),)


def _with_structure_of(like: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Values -> a sparse torch tensor of the structure of `like`."""
    layout, shape = like.layout, like.shape
    if layout == torch.sparse_coo:
        coalesced = like.is_coalesced()
        indices = like.indices() if coalesced else like._indices()
        return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=coalesced, check_invariants=False)
    rows = layout in (torch.sparse_csr, torch.sparse_bsr)
    outer, inner = (like.crow_indices(), like.col_indices()) if rows else (like.ccol_indices(), like.row_indices())
    return torch.sparse_compressed_tensor(outer, inner, values, shape, layout=layout, check_invariants=False)


def torch_values(obj: torch.Tensor) -> torch.Tensor:
    """The rule of the values of a sparse torch tensor that requires a gradient."""
    result: torch.Tensor = apply_rule(_Values(obj.detach()), obj)
    return result

"""Sparse layers for torch.nn: linear ones over Tensors of any format, and pruning of dense ones to them."""

from __future__ import annotations

from .linear import SparseLinear
from .pruning import densify, prune

__all__ = ["SparseLinear", "densify", "prune"]

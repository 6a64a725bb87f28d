"""Sparse layers for torch.nn: linear ones over Tensors of any format, and pruning of dense ones to them; tables with
sparse gradients; layers over the edges of a graph."""

from __future__ import annotations

from .embedding import SparseEmbedding, SparseEmbeddingBag
from .graphs import GraphAttention, GraphConv, attend, normalized_adjacency
from .linear import SparseLinear
from .pruning import densify, prune

__all__ = [
    "GraphAttention", "GraphConv", "SparseEmbedding", "SparseEmbeddingBag", "SparseLinear", "attend", "densify",
    "normalized_adjacency", "prune",
]  # fmt: skip

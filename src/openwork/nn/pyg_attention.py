"""An adjacency Tensor and node features -> PyTorch Geometric's GATConv: scores, their softmax, sums by head."""

from __future__ import annotations

import torch

from ..interop.layouts import sparse_coo_tensor
from ..ops.products.einsum import einsum
from ..ops.products.matmul import matmul
from ..ops.reductions.softmax import softmax
from ..tensor.tensor import Tensor

__all__ = ["edges_of", "messages", "weights"]


def edges_of(t: Tensor, loops: bool) -> Tensor:
    """Ones at the elements of a matrix, in CSR, and, with loops, on its diagonal."""
    t = t.asformat("csr")
    ones: Tensor = t.with_values(torch.ones_like(t.values.detach()))
    if not loops:
        return ones
    nodes = torch.arange(min(t.shape), device=ones.values.device)
    diagonal = sparse_coo_tensor(torch.stack([nodes, nodes]), ones.values.new_ones(len(nodes)), t.shape)
    both: Tensor = ones + diagonal.asformat("csr")
    return both.with_values(torch.ones_like(both.values))


def weights(
    edges: Tensor, sources: torch.Tensor, targets: torch.Tensor | None, slope: float, dropout: float
) -> tuple[Tensor, ...]:
    """The attention of each head: the softmax along rows of the leaky ReLU of sources[j] + targets[i] at edges (i, j).

    Parameters
    ----------
    edges : ones
    sources, targets : shape (nodes, heads); None for zeros
    slope : of the leaky ReLU where its operand is negative
    dropout : the share of weights that are 0, at random; the others are divided by what is left
    """
    out = []
    for h in range(sources.shape[1]):
        scores = einsum("ij,j->ij", edges, sources[:, h]).values
        if targets is not None:
            scores = scores + einsum("ij,i->ij", edges, targets[:, h]).values
        scores = torch.nn.functional.leaky_relu(scores, slope)
        alpha: Tensor = softmax(edges.with_values(scores), axis=1)
        out.append(alpha.with_values(torch.nn.functional.dropout(alpha.values, dropout)) if dropout else alpha)
    return tuple(out)


def messages(alpha: tuple[Tensor, ...], x: torch.Tensor) -> torch.Tensor:
    """Each node's sums of x[j] times the weights of its edges: shape (nodes, heads, features)."""
    return torch.stack([matmul(a, x[:, h]) for h, a in enumerate(alpha)], dim=1)

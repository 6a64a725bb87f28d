"""An adjacency Tensor and node features -> PyTorch Geometric's GATConv and GATv2Conv: scores, softmax, sums by head."""

from __future__ import annotations

from typing import Any

import torch

from .. import Tensor, einsum, matmul, softmax, sparse_coo_tensor, sparse_csr_tensor

__all__ = ["edges_of", "messages", "weights", "weights_of_pairs"]


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
        out.append(_normalized(edges, torch.nn.functional.leaky_relu(scores, slope), dropout))
    return tuple(out)


def weights_of_pairs(
    edges: Tensor, sources: torch.Tensor, targets: torch.Tensor, att: torch.Tensor, slope: float, dropout: float
) -> tuple[Tensor, ...]:
    """The attention of each head: the softmax along rows of att . leaky ReLU(sources[j] + targets[i]) at edges (i, j).

    Parameters
    ----------
    edges : ones
    sources, targets : shape (nodes, heads, features)
    att : shape (heads, features)
    slope : of the leaky ReLU where its operand is negative
    dropout : as of `weights`
    """
    pos, crd, ones = edges.crow_indices(), edges.col_indices(), edges.values.detach()
    each = torch.arange(len(crd), device=crd.device)
    by_source = edges.with_values(each).asformat("csc")
    rows = torch.repeat_interleave(torch.arange(edges.shape[0], device=crd.device), pos.diff())
    at_target = sparse_csr_tensor(pos.long(), each, ones, (edges.shape[0], len(crd)), check_invariants=False)
    at_source = sparse_csr_tensor(
        by_source.ccol_indices().long(), by_source.values, ones, (edges.shape[1], len(crd)), check_invariants=False
    )
    out = []
    for h in range(sources.shape[1]):
        pairs = _Gather.apply(sources[:, h], crd, at_source) + _Gather.apply(targets[:, h], rows, at_target)
        out.append(_normalized(edges, torch.nn.functional.leaky_relu(pairs, slope) @ att[h], dropout))
    return tuple(out)


class _Gather(torch.autograd.Function):  # type: ignore[misc]
    """x[index], and its derivative as a product: `sums` has a one where element e is taken from row r, at (r, e).

    torch adds the gradients of rows one by one, in three times the time.
    """

    @staticmethod
    def forward(x: torch.Tensor, index: torch.Tensor, sums: Tensor) -> torch.Tensor:
        return x.index_select(0, index)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.sums = inputs[2]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return matmul(ctx.sums, gradient), None, None


def _normalized(edges: Tensor, scores: torch.Tensor, dropout: float) -> Tensor:
    """The softmax of scores along the rows of edges, some of it left out at random."""
    alpha: Tensor = softmax(edges.with_values(scores), axis=1)
    return alpha.with_values(torch.nn.functional.dropout(alpha.values, dropout)) if dropout else alpha


def messages(alpha: tuple[Tensor, ...], x: torch.Tensor) -> torch.Tensor:
    """Each node's sums of x[j] times the weights of its edges: shape (nodes, heads, features)."""
    return torch.stack([matmul(a, x[:, h]) for h, a in enumerate(alpha)], dim=1)

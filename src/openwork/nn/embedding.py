"""Tables of vectors whose gradients have the rows that were looked up."""

from __future__ import annotations

from typing import Any

import torch

from .. import DTypeError, ShapeError, Tensor, UnsupportedError, sparse_coo_tensor
from ..integers import integer
from ..torch.gradients.rows import rows_matmul

__all__ = ["SparseEmbedding", "SparseEmbeddingBag"]


class _Table(torch.nn.Module):  # type: ignore[misc]
    sparse, max_norm, norm_type, scale_grad_by_freq = True, None, 2.0, False
    """What torch.nn.Embedding says of itself; DistributedDataParallel asks it whether gradients are sparse."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        *, weight: torch.Tensor | None = None,
    ) -> None:  # fmt: skip
        torch.nn.Module.__init__(self)
        name = type(self).__name__
        num_embeddings = integer(num_embeddings, name, "num_embeddings")
        embedding_dim = integer(embedding_dim, name, "embedding_dim")
        padding_idx = None if padding_idx is None else integer(padding_idx, name, "padding_idx")
        shape = (num_embeddings, embedding_dim)
        if weight is not None and tuple(weight.shape) != shape:
            raise ShapeError(f"{name}: weight {tuple(weight.shape)}\n  expected: {shape}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ShapeError(f"{name}: padding_idx={padding_idx}\n  expected: a row of {num_embeddings}")
        self.num_embeddings, self.embedding_dim = shape
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if isinstance(weight, torch.nn.Parameter):
            self.weight = weight
            return
        initial = torch.randn(shape) if weight is None else weight.detach().clone()
        if weight is None and self.padding_idx is not None:
            initial[self.padding_idx] = 0
        self.weight = torch.nn.Parameter(initial)

    def _lookup(self, rows: torch.Tensor, indices: torch.Tensor, count: int, weights: torch.Tensor | None) -> Tensor:
        """The matrix (count, num_embeddings) that adds row `indices[k]` of the table to row `rows[k]` of the result."""
        name, n = type(self).__name__, self.num_embeddings
        if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < n:
            wrong = indices[(indices < 0) | (indices >= n)][0]
            raise ShapeError(f"{name}: index {int(wrong)}\n  expected: 0 <= index < {n}")
        if weights is None:
            weights = torch.ones(indices.shape, dtype=self.weight.dtype, device=indices.device)
        if self.padding_idx is not None:
            used = indices != self.padding_idx
            rows, indices, weights = rows[used], indices[used], weights[used]
        result: Tensor = sparse_coo_tensor(torch.stack([rows, indices]), weights, (count, n))
        return result

    def _integers(self, indices: torch.Tensor) -> torch.Tensor:
        if indices.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            raise DTypeError(
                f"{type(self).__name__}: indices of {indices.dtype}\n  expected: integers\n  help: indices.long()"
            )
        return indices.to(torch.int64)

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class SparseEmbedding(_Table, torch.nn.Embedding):  # type: ignore[misc]
    """torch.nn.Embedding, whose weight has a gradient of the rows looked up, each once.

    Parameters
    ----------
    num_embeddings, embedding_dim : the shape of the table
    padding_idx : a row that is looked up as any other, and has no gradient
    weight : torch tensor of that shape, to start from, or a Parameter, which is the layer's own then and may be mapped
        from a file (`torch.from_file`); else normal random numbers, and zeros in the padding's row

    Guarantees: equal to torch.nn.Embedding of the same weight; `weight.grad` is a torch.sparse_coo tensor with each row
    once, which `openwork.torch.optim` and torch's SGD, SparseAdam and Adagrad take. State dicts are torch's.
    DistributedDataParallel takes the layer over gloo, as torch.nn.Embedding(sparse=True), which it is to isinstance.
    Cost: O(indices * embedding_dim), forward and backward.
    Raises ShapeError for an index, a weight or padding that does not fit, DTypeError for indices that are no integers.

    Examples
    --------
    >>> import torch
    >>> from openwork.nn import SparseEmbedding
    >>> table = SparseEmbedding(5, 2)
    >>> table(torch.tensor([[3, 1, 3]])).sum().backward()
    >>> table.weight.grad.coalesce().indices()
    tensor([[1, 3]])
    """

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """The rows that `indices` (any shape) name: a torch tensor (*indices.shape, embedding_dim)."""
        flat = self._integers(indices).reshape(-1)
        places = torch.arange(len(flat), device=flat.device)
        out = rows_matmul(self._lookup(places, flat, len(flat), None), self.weight)
        if self.padding_idx is not None:
            out = out + (flat == self.padding_idx)[:, None] * self.weight.detach()[self.padding_idx]
        return out.reshape(*indices.shape, self.embedding_dim)


class SparseEmbeddingBag(_Table, torch.nn.EmbeddingBag):  # type: ignore[misc]
    """torch.nn.EmbeddingBag, whose weight has a gradient of the rows looked up, each once; bags may be a Tensor.

    Parameters
    ----------
    num_embeddings, embedding_dim : the shape of the table
    padding_idx : a row that takes no part
    mode : "sum"; "mean": a bag's sum divided by the sum of its weights; "max": the largest of each column, of indices
        without weights. An empty bag is zero
    weight : torch tensor of that shape, to start from, or a Parameter, which is the layer's own then

    Guarantees: equal to torch.nn.EmbeddingBag of the same weight and mode; else as `SparseEmbedding`.
    Raises UnsupportedError for another mode; else as `SparseEmbedding`.

    Examples
    --------
    >>> table = ow.nn.SparseEmbeddingBag(10, 4)
    >>> table(torch.tensor([[1, 2], [3, 3]])).shape
    torch.Size([2, 4])
    """

    include_last_offset = False

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        *, mode: str = "mean", weight: torch.Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, padding_idx, weight=weight)
        if mode not in ("sum", "mean", "max"):
            raise UnsupportedError(f'SparseEmbeddingBag: mode={mode!r}\n  supported: "sum", "mean", "max"')
        self.mode = mode

    def forward(
        self, bags: Any, offsets: torch.Tensor | None = None, per_sample_weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The vector of each bag: a torch tensor (number of bags, embedding_dim).

        `bags` is a sparse Tensor (number of bags, num_embeddings) of weights, counts of words say; or indices of shape
        (bags, k); or indices in one row, where bag k starts at `offsets[k]`. Indices may have weights, in their shape.
        """
        if self.mode == "max" and (isinstance(bags, Tensor) or per_sample_weights is not None):
            raise UnsupportedError(
                'SparseEmbeddingBag: weights with mode="max"\n  supported: indices alone\n  help: mode="sum"'
            )
        if self.mode == "max":
            return self._largest(*self._places(bags, offsets))
        B = bags if isinstance(bags, Tensor) else self._bags(bags, offsets, per_sample_weights)
        out = rows_matmul(B, self.weight)
        if self.mode == "sum":
            return out
        total = B @ torch.ones(self.num_embeddings, dtype=out.dtype, device=out.device)
        return out / torch.where(total == 0, 1, total)[:, None]

    def _bags(self, bags: torch.Tensor, offsets: torch.Tensor | None, weights: torch.Tensor | None) -> Tensor:
        if weights is not None and weights.shape != bags.shape:
            raise ShapeError(
                f"SparseEmbeddingBag: per_sample_weights {tuple(weights.shape)}\n  expected: {tuple(bags.shape)}"
            )
        rows, flat, count = self._places(bags, offsets)
        return self._lookup(rows, flat, count, None if weights is None else weights.reshape(-1))

    def _places(self, bags: torch.Tensor, offsets: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, int]:
        """The bag of each index, the indices, and how many bags there are."""
        indices = self._integers(bags)
        flat = indices.reshape(-1)
        places = torch.arange(len(flat), device=flat.device)
        if indices.ndim == 2 and offsets is None:
            return places // max(indices.shape[1], 1), flat, len(indices)
        if indices.ndim != 1 or offsets is None:
            got = "no offsets" if offsets is None else "offsets"
            raise ShapeError(
                f"SparseEmbeddingBag: indices {tuple(indices.shape)} and {got}"
                "\n  expected: (bags, k), or (n,) with offsets (bags,)"
            )
        starts = self._integers(offsets)
        if not len(starts) or starts[0] != 0 or (starts.diff() < 0).any() or starts[-1] > len(flat):
            raise ShapeError(f"SparseEmbeddingBag: offsets\n  expected: from 0, rising to at most {len(flat)}")
        return torch.searchsorted(starts, places, right=True) - 1, flat, len(starts)

    def _largest(self, rows: torch.Tensor, flat: torch.Tensor, count: int) -> torch.Tensor:
        """The largest element of each column of a bag; its gradient goes to the first that has it."""
        if self.padding_idx is not None:
            used = flat != self.padding_idx
            rows, flat = rows[used], flat[used]
        n = len(flat)
        order = torch.arange(n, device=flat.device)
        vectors = rows_matmul(self._lookup(order, flat, n, None), self.weight)
        known, bag = vectors.detach(), rows[:, None].expand(n, self.embedding_dim)
        most = known.new_full((count, self.embedding_dim), float("-inf")).scatter_reduce(0, bag, known, "amax")
        first = torch.where(known == most[rows], order[:, None], n)
        first = first.new_full((count, self.embedding_dim), n).scatter_reduce(0, bag, first, "amin")
        return torch.cat([vectors, vectors.new_zeros(1, self.embedding_dim)]).gather(0, first)

"""A graph and seeds -> batches of a few seeds with samples of their neighbours, layer by layer: slices of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import ShapeError, Tensor, asarray, assemble
from ..graph import sample_neighbors
from ..integers import integer, integers

__all__ = ["NeighborBatch", "neighbor_batches"]


@dataclass(frozen=True)
class NeighborBatch:
    """Seeds, and what a network of as many layers as there are blocks reads to compute their outputs.

    seeds : nodes, (b,)
    nodes : nodes whose features are read, the seeds first; `x[nodes]` is the input of the first block
    blocks : Tensors in compressed rows, the first layer's first: block k is (nodes of layer k + 1, nodes of layer k),
        the former being the first of the latter

    Examples
    --------
    >>> A = ow.asarray(torch.ones(4, 4).triu(1), format="csr")
    >>> batch = next(iter(ow.nn.neighbor_batches(A, [0], [2, 2], batch_size=1)))
    >>> batch.seeds.tolist(), len(batch.blocks)
    ([0], 2)
    """

    seeds: torch.Tensor
    nodes: torch.Tensor
    blocks: tuple[Tensor, ...]


def neighbor_batches(
    adjacency: Tensor, seeds: Any, sizes: Sequence[int], batch_size: int = 256, *, shuffle: bool = True, rng: Any = None
) -> Iterator[NeighborBatch]:
    """The batches of seeds with at most `sizes[k]` neighbours of each node in layer k, the last layer's the seeds'.

    Parameters
    ----------
    adjacency : Tensor, shape (n, n); row i has what node i takes from others
    seeds : nodes to train on, (m,): a tensor or array
    sizes : neighbours of a node for each layer, the first layer's first; -1 for all
    batch_size : seeds of a batch
    shuffle : whether they come in another order at each call
    rng : a seed or a numpy.random.Generator

    Returns
    -------
    iterator of NeighborBatch, each with its seeds, nodes and blocks

    Guarantees: a layer of block k at `x[nodes]` gives its first rows as on the whole graph, where all neighbours are
    taken. Cost of a batch: O(its edges and nodes, and their logarithm). Raises ShapeError for sizes out of range.
    Source: Hamilton, Ying and Leskovec, Inductive representation learning on large graphs, NIPS 2017.
    See also: graph.sample_neighbors, GraphConv.

    Examples
    --------
    >>> A = ow.eye(4, format="csr", dtype="float32")
    >>> batches = ow.nn.neighbor_batches(A, [0, 1, 2], [1], batch_size=2, shuffle=False)
    >>> [batch.seeds.tolist() for batch in batches]
    [[0, 1], [2]]
    """
    batch_size = integer(batch_size, "neighbor_batches", "batch_size")
    taken = integers(sizes, "neighbor_batches", "sizes")
    if batch_size < 1 or any(k < -1 for k in taken):
        raise ShapeError(
            f"neighbor_batches: batch_size={batch_size}, sizes={taken}\n  expected: at least 1; -1 or more"
        )
    t = adjacency if isinstance(adjacency.values, torch.Tensor) else asarray(adjacency, like="torch")
    t = t.detach().asformat("csr")
    order = np.asarray(seeds).reshape(-1).astype(np.int64)
    generator = np.random.default_rng(rng)
    if shuffle:
        order = generator.permutation(order)
    firsts = range(0, len(order), batch_size)
    return (_batch(t, order[first : first + batch_size], taken, generator) for first in firsts)


def _batch(
    t: Tensor, seeds: np.ndarray[Any, Any], sizes: Sequence[int], generator: np.random.Generator
) -> NeighborBatch:
    nodes, blocks = seeds, []
    for k in reversed(sizes):
        rows = sample_neighbors(t, nodes, t.shape[1] if k < 0 else k, rng=generator)._storage
        crd: Any = rows.crd[1]
        columns = crd.numpy()
        found = np.setdiff1d(columns, nodes)
        reached = np.concatenate([nodes, found])
        by_number = np.argsort(reached, kind="stable")
        local = by_number[np.searchsorted(reached[by_number], columns)]
        shape = (len(nodes), len(reached))
        index = {1: rows.pos[1]}, {1: torch.from_numpy(local).to(crd.dtype)}
        blocks.append(_sorted_rows(shape, *index, rows.values))
        nodes = reached
    return NeighborBatch(torch.from_numpy(seeds), torch.from_numpy(nodes), tuple(reversed(blocks)))


def _sorted_rows(shape: tuple[int, int], pos: Any, crd: Any, values: torch.Tensor) -> Tensor:
    rows = torch.arange(shape[0]).repeat_interleave(pos[1].diff().to(torch.int64))
    order = (rows * shape[1] + crd[1]).argsort()
    result: Tensor = assemble("csr", shape, pos=pos, crd={1: crd[1][order]}, values=values[order], check=False)
    return result

"""Samples of neighbours, for training on parts of a graph that is too large for one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, Tensor
from ..format import format as parse
from ..integers import integer
from ..storage.storage import Storage
from .adjacency import adjacency, nodes

__all__ = ["sample_neighbors"]


def sample_neighbors(A: Any, seeds: Any, k: int, *, rng: Any = None) -> Tensor:
    """The rows of some nodes with at most k of their edges each, drawn without replacement, all alike.

    Parameters
    ----------
    A : graph, (n, n)
    seeds : nodes, (m,)
    k : edges of each that stay, where it has more
    rng : a seed or a numpy.random.Generator

    Returns
    -------
    Tensor (m, n) in compressed rows with the weights of the edges: row i are neighbours of seeds[i], in order. The next
    seeds are `np.unique(S.crd(1))`. Source: Hamilton, Ying and Leskovec (2017).

    Cost: one sort of the seeds' edges.
    See also: nn.neighbor_batches.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0, 5.0], [0, 0, 1.0], [0, 0, 0]], format="csr")
    >>> ow.graph.sample_neighbors(A, [1], 1, rng=0).shape
    (1, 3)
    """
    k = integer(k, "sample_neighbors", "k", boolean=False)
    if k < 0:
        raise ValueError(f"sample_neighbors: k is at least 0; got {k}")
    g = adjacency(A, "sample_neighbors")
    if np.ndim(seeds) != 1:
        raise ShapeError(f"sample_neighbors: seeds are one dimension of nodes; got {np.ndim(seeds)}")
    chosen = nodes(seeds, g.n, "sample_neighbors", "seeds")
    first, count = g.pos[chosen].astype(np.int64), np.diff(g.pos)[chosen].astype(np.int64)
    ends = np.cumsum(count)
    row = np.repeat(np.arange(chosen.size), count)
    places = np.arange(int(count.sum())) + np.repeat(first - (ends - count), count)
    keys = np.random.default_rng(rng).random(places.size)
    drawn = np.lexsort((keys, row))
    rank = np.arange(places.size) - np.repeat(ends - count, count)
    kept = np.sort(drawn[rank < k])
    pos = np.concatenate([[0], np.cumsum(np.minimum(count, k))]).astype(g.crd.dtype)
    places = places[kept]
    values = g.tensor.values[g.like(places)]
    shape, fill = (chosen.size, g.n), g.tensor.fill_value
    pos, crd = g.like(pos), g.like(g.crd[places])
    return Tensor._from_storage(
        Storage(shape, parse("csr"), g.tensor._storage.scalar, fill, (None, pos), (None, crd), values)
    )

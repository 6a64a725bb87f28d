"""Graph algorithms as products over semirings: breadth-first levels, shortest paths, PageRank, triangles.

A graph is its adjacency matrix: A[i, j] is the weight of the edge from i to j. Run this file for a small tour, or with
the name of a file (Matrix Market and whatever else `ow.read` takes) for the graph that it holds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openwork as ow
from openwork.ops.products.spgemm import spgemm


def bfs_levels(A: ow.Tensor, source: int) -> NDArray[np.int64]:
    """The number of edges from `source` to every node, -1 where there is no way.

    The frontier is a sparse row; the nodes seen so far are the mask whose complement it may move to.
    """
    n = A.shape[0]
    levels = np.full(n, -1, np.int64)
    levels[source] = 0
    frontier = row([source], n)
    step = 0
    while frontier.nse:
        step += 1
        frontier = spgemm(frontier, A, semiring="any_pair", mask=row(np.flatnonzero(levels >= 0), n), complement=True)
        levels[frontier.crd(1)] = step
    return levels


def shortest_paths(A: ow.Tensor, source: int) -> NDArray[np.float64]:
    """The least sum of weights from `source` to every node, inf where there is no way (Bellman-Ford).

    Raises ValueError for a cycle of negative weight.
    """
    distance = np.full(A.shape[0], np.inf)
    distance[source] = 0
    for _ in range(A.shape[0]):
        further = ow.einsum("ij,i->j", A, distance, semiring="min_plus")
        nearer = np.minimum(distance, further)
        if np.array_equal(nearer, distance):
            return distance
        distance = nearer
    raise ValueError("a cycle of negative weight can be reached")


def pagerank(A: ow.Tensor, damping: float = 0.85, tolerance: float = 1e-10) -> NDArray[np.float64]:
    """The stationary probabilities of a walk that follows edges by weight, and jumps with 1 - damping."""
    n = A.shape[0]
    out = ow.einsum("ij,j->i", A, np.ones(n))
    dangling = out == 0
    scale = np.where(dangling, 0, 1 / np.where(dangling, 1, out))
    rank = np.full(n, 1 / n)
    while True:
        moved = damping * ow.einsum("ij,i->j", A, rank * scale)
        fresh = moved + (damping * rank[dangling].sum() + 1 - damping) / n
        if abs(fresh - rank).sum() < n * tolerance:
            return fresh
        rank = fresh


def triangles(A: ow.Tensor) -> int:
    """The number of triangles of an undirected graph, whose matrix is symmetric and has an empty diagonal.

    Counts the paths of two edges below the diagonal that an edge closes: the sum of L * (L @ L).
    """
    i, j = (np.asarray(c) for c in A.coalesce().indices())
    low = i > j
    L = ow.sparse_coo_tensor(np.stack([i[low], j[low]]), np.ones(int(low.sum()), np.int64), A.shape).asformat("csr")
    return int(np.sum(spgemm(L, L, semiring="plus_pair", mask=L).values))


def row(columns: Any, n: int) -> ow.Tensor:
    """A sparse matrix of one row, true at `columns`."""
    crd = np.asarray(columns, np.int32)
    pos = np.array([0, len(crd)], np.int32)
    return ow.sparse_csr_tensor(pos, crd, np.ones(len(crd), np.bool_), (1, n))


def read_graph(path: str) -> ow.Tensor:
    """The graph of a file: weights are the values' sizes, added where edges are parallel; loops are left out."""
    A = ow.abs(ow.read(path).coalesce())
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{path}: a graph's matrix is square, this one has shape {A.shape}")
    return ow.prune(ow.astype(ow.tril(A, k=-1) + ow.triu(A, k=1), ow.float64)).asformat("csr")


def undirected(A: ow.Tensor) -> ow.Tensor:
    """The graph with an edge of weight 1 both ways wherever there is one."""
    return ow.astype(ow.logical_or(A, A.T), ow.float64).asformat("csr")


def describe(path: str) -> None:
    """What the algorithms find in a file's graph, from its node with most edges."""
    A = read_graph(path)
    degrees = np.diff(np.asarray(A.pos(1)))
    source = int(degrees.argmax())
    levels, distances, ranks = bfs_levels(A, source), shortest_paths(A, source), pagerank(A)
    reached = np.isfinite(distances)
    print(f"nodes      {A.shape[0]:,}, edges {A.nse:,}, most from node {source} ({degrees[source]})")
    print(f"levels     {levels.max()}, {np.count_nonzero(levels >= 0):,} nodes reached")
    print(f"distances  up to {distances[reached].max():g}")
    print("PageRank  ", ", ".join(f"node {k} {ranks[k]:.5f}" for k in np.argsort(-ranks, kind="stable")[:3]))
    print(f"triangles  {triangles(undirected(A)):,}")


def main(arguments: Sequence[str] = ()) -> None:
    """The graphs of files, or a ring of six nodes with a chord."""
    for path in arguments:
        describe(path)
    if not arguments:
        tour()


def tour() -> None:
    """A ring of six nodes with a chord."""
    edges = np.array([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 2]])
    A = ow.sparse_coo_tensor(edges, np.array([1.0, 2, 1, 1, 1, 1, 5]), (6, 6)).asformat("csr")
    both = np.concatenate([edges, edges[::-1]], axis=1)
    S = ow.sparse_coo_tensor(both, np.ones(14), (6, 6)).asformat("csr")
    print("levels    ", bfs_levels(A, 0))
    print("distances ", shortest_paths(A, 0))
    print("PageRank  ", pagerank(A).round(3))
    print("triangles ", triangles(S))


if __name__ == "__main__":
    main(sys.argv[1:])

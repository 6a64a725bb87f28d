"""Breadth-first levels, distances and components of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import DTypeError, UnsupportedError
from .adjacency import Adjacency, adjacency, nodes
from .kernels import kernel

__all__ = ["bfs", "components", "first_nodes", "shortest_paths"]

Array = np.ndarray[Any, Any]


def bfs(A: Any, source: Any, *, parents: bool = False) -> Any:
    """The number of edges on the shortest way from the source to every node; -1 where there is none.

    Parameters
    ----------
    A : graph, (n, n); see `openwork.graph`
    source : a node, or several, which all have level 0
    parents : also the node that each was reached from; -1 for the sources and for what is not reached

    Returns
    -------
    array of integers (n,); with `parents` a pair of such. One pass over the edges that are reached, on one thread.

    Raises ShapeError for a matrix that is not square, IndexError for a source that is not there.

    Cost: O(nodes + edges).
    See also: shortest_paths, components.

    Examples
    --------
    >>> ow.graph.bfs(ow.asarray([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), 0)
    array([0, 1, 2], dtype=int32)
    """
    g = adjacency(A, "bfs")
    first = nodes(source, g.n, "bfs", "source")
    first = np.unique(first) if first.size > 1 else first
    levels, queue = np.empty(g.n, g.crd.dtype), np.empty(g.n, g.crd.dtype)
    levels.fill(-1)
    levels[first], queue[: first.size] = 0, first
    if not parents:
        kernel("bfs_levels", g.crd.dtype)(g.work, g.pos, g.crd, levels, queue, int(first.size))
        return g.like(levels)
    before = np.full(g.n, -1, g.crd.dtype)
    kernel("bfs", g.crd.dtype)(g.work, g.pos, g.crd, levels, before, queue, int(first.size))
    return g.like(levels), g.like(before)


def shortest_paths(A: Any, source: Any, *, method: str = "auto") -> Any:
    """The least sum of weights on a way from the source to every node; inf where there is none.

    Parameters
    ----------
    A : graph, (n, n), of real weights; stored zeros are edges of no length
    source : a node, for distances (n,), or several, for distances (len(source), n)
    method : "dijkstra", "bellman_ford", or "auto", which takes the first where no weight is negative

    Returns
    -------
    array of float64, (n,) for one source, (sources, n) for several

    Dijkstra's way is ours, with a binary heap; Bellman and Ford's is SciPy's.
    Raises ValueError for a cycle of negative weight, DTypeError for complex weights, ShapeError for a matrix that is
    not square, IndexError for a source that is not there. `sssp` is the same function.

    Cost: O(edges * log nodes) for each source; Bellman and Ford's O(edges * nodes).
    See also: bfs, components, betweenness.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0, 5.0], [0, 0, 1.0], [0, 0, 0]], format="csr")
    >>> ow.graph.shortest_paths(A, 0)
    array([0., 2., 3.])
    >>> ow.graph.shortest_paths(A, [1, 2])
    array([[inf,  0.,  1.],
           [inf, inf,  0.]])
    """
    g = adjacency(A, "shortest_paths")
    weights = _weights(g)
    chosen = nodes(source, g.n, "shortest_paths", "source")
    if method not in ("auto", "dijkstra", "bellman_ford"):
        raise UnsupportedError(f"shortest_paths: method={method!r}\n  supported: auto, dijkstra, bellman_ford")
    negative = bool(weights.size) and float(weights.min()) < 0
    if negative and method == "dijkstra":
        raise ValueError("shortest_paths: dijkstra, and a negative weight\n  help: method='bellman_ford'")
    if negative or method == "bellman_ford":
        return g.like(_bellman_ford(g, weights, chosen)[0 if np.ndim(source) == 0 else slice(None)])
    found = np.full((chosen.size, g.n), np.inf)
    keys, heap = np.zeros(len(g.crd) + 1), np.zeros(len(g.crd) + 1, g.crd.dtype)
    for row, first in zip(found, chosen.tolist(), strict=True):
        row[first], keys[0], heap[0] = 0, 0, first
        kernel("dijkstra", g.crd.dtype)(g.work, g.pos, g.crd, weights, row, keys, heap, 1)
    return g.like(found[0] if np.ndim(source) == 0 else found)


def _bellman_ford(g: Adjacency, weights: Array, chosen: Array) -> Array:
    """SciPy's, over the same buffers."""
    from scipy.sparse import csgraph, csr_array

    matrix = csr_array((weights, g.crd, g.pos), shape=(g.n, g.n))
    try:
        found: Array = csgraph.bellman_ford(matrix, directed=True, indices=chosen)
    except csgraph.NegativeCycleError:
        raise ValueError("shortest_paths: a cycle of negative weight") from None
    return found


def _weights(g: Adjacency) -> Array:
    values = np.asarray(g.tensor.values)
    if values.dtype.kind == "c":
        raise DTypeError("shortest_paths: complex weights have no order\n  help: ow.abs(A)")
    return np.ascontiguousarray(values, np.float64)


def components(A: Any, *, connection: str = "weak") -> tuple[int, Any]:
    """The number of connected components, and that of each node's own.

    Parameters
    ----------
    A : graph, (n, n), or an `openwork.dask.BlockMatrix`, weak only, of whose blocks each worker finds the components
    connection : "weak", where the direction of an edge means nothing, or "strong", where there is a way and one back

    Returns
    -------
    number of components; integers (n,) from 0. Weak components are numbered by their first nodes, strong ones such that
    an edge between two leads to the smaller number. Union-find over the edges, and Tarjan's depth-first search (1972).

    Cost: O(nodes + edges).
    See also: bfs, core_numbers.

    Examples
    --------
    >>> friends = ow.asarray([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], format="csr")
    >>> count, labels = ow.graph.components(friends)
    >>> count, labels
    (2, array([0, 0, 1, 1], dtype=int32))
    """
    if connection not in ("weak", "strong"):
        raise UnsupportedError(f"components: connection={connection!r}\n  supported: weak, strong")
    if hasattr(A, "forest"):
        return _of_forest(A, connection)
    g = adjacency(A, "components")
    kind, count = g.crd.dtype, np.zeros(1, np.int64)
    if connection == "weak":
        root, labels = np.arange(g.n, dtype=kind), np.zeros(g.n, kind)
        kernel("components", kind)(g.work, g.pos, g.crd, root, labels, count, g.n)
    else:
        labels = np.full(g.n, -1, kind)
        number, low, stack, calls, edge = (np.zeros(g.n, kind) for _ in range(5))
        kernel("strong", kind)(g.work, g.pos, g.crd, number, low, labels, stack, calls, edge, count, g.n)
    return int(count[0]), g.like(labels)


def _of_forest(A: Any, connection: str) -> tuple[int, Any]:
    """The components of a matrix that gives edges between the same nodes, few of them."""
    if connection == "strong" or A.shape[0] != A.shape[1]:
        raise UnsupportedError(
            f"components: a matrix of shape {A.shape} in blocks, connection={connection!r}"
            "\n  supported: square ones, 'weak'"
        )
    nodes, others = A.forest()
    first = first_nodes(nodes, others, A.shape[0])
    labels = np.cumsum(first == np.arange(len(first))) - 1
    return int(labels[-1] + 1) if len(labels) else 0, labels[first]


def first_nodes(u: Array, v: Array, n: int) -> Array:
    """The first node of the weak component of each of n nodes, for edges from u to v."""
    pos = np.concatenate([[0], np.cumsum(np.bincount(u, minlength=n))]).astype(np.int64)
    crd = v if (u[1:] >= u[:-1]).all() else v[np.argsort(u, kind="stable")]
    return first_nodes_of_rows(pos, crd, n)


def first_nodes_of_rows(pos: Array, crd: Array, n: int) -> Array:
    """The first node of the weak component of each of n nodes, for edges as compressed rows: `pos` is of n + 1."""
    kind = np.promote_types(pos.dtype, crd.dtype)
    pos, crd = (x.astype(kind, copy=False) for x in (pos, crd))
    root, labels, count = np.arange(n, dtype=kind), np.zeros(n, kind), np.zeros(1, np.int64)
    kernel("components", kind)(n + len(crd), pos, crd, root, labels, count, n)
    highest = np.maximum.accumulate(labels)  # components are numbered in the order of their first nodes
    firsts: Array = np.flatnonzero(np.diff(highest, prepend=-1))
    return firsts[labels]

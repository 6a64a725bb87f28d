"""Ranks and counts of nodes: PageRank, betweenness, core numbers, triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ShapeError, asarray, pattern
from ..integers import integer
from ..linalg.operator import is_operator
from ..progress import Progress, reporting
from ..reals import real
from ..runtime.at_operand import at_operand
from .adjacency import adjacency, nodes
from .kernels import kernel

__all__ = ["betweenness", "core_numbers", "pagerank", "triangles"]

Array = np.ndarray[Any, Any]
_SLICE = 1 << 24
"""Edges walked between two answers to a signal."""


@at_operand
def pagerank(
    A: Any, *, damping: float = 0.85, personalization: Any = None, tolerance: float = 1e-10, max_iterations: int = 1000,
    progress: Progress = None,
) -> Any:  # fmt: skip
    """The share of time that a random walk spends at each node.

    The walk follows edges in proportion to their weights and jumps with probability 1 - damping, and from nodes without
    edges, by `personalization`. Source: Page, Brin, Motwani and Winograd (1999).

    Parameters
    ----------
    A : graph, (n, n), of weights from 0; or a LinearOperator with its products, such as `openwork.dask.BlockMatrix`, of
        which only sums of rows are known not to be negative
    personalization : (n,) shares of jumps, from 0; by default all nodes alike
    tolerance : the iteration ends where the sum of changes is below n * tolerance
    progress : True for a bar on stderr, or a function of (iterations, max_iterations)
    damping : the probability of following an edge
    max_iterations : the most iterations

    Returns
    -------
    array of float64 (n,), of sum 1. Raises ValueError where it does not converge or a weight is negative.

    Cost: one product for each iteration.
    See also: betweenness.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0, 5.0], [0, 0, 1.0], [0, 0, 0]], format="csr")
    >>> ow.graph.pagerank(A).round(3)
    array([0.204, 0.253, 0.543])
    """
    damping, tolerance = real(damping, "pagerank", "damping"), real(tolerance, "pagerank", "tolerance")
    max_iterations = integer(max_iterations, "pagerank", "max_iterations", boolean=False)
    if not 0 <= damping < 1:
        raise ValueError(f"pagerank: damping is at least 0 and less than 1; got {damping!r}")
    n, out, back, like = _walk(A)
    jump = np.full(n, 1 / max(n, 1)) if personalization is None else _shares(personalization, n)
    scale = damping / np.where(out == 0, 1, out)
    rank = jump.copy()
    with reporting(progress, "pagerank") as passes:
        step = passes.begin("pagerank", "iterations", at_most=True)
        for done in range(1, max_iterations + 1):
            moved = np.asarray(back(rank * scale))
            fresh = moved + (1 - float(moved.sum())) * jump
            change = float(np.abs(fresh - rank).sum())
            rank = fresh
            if step is not None:
                step(done, max_iterations, lambda x=change: f"change {x:.1e}")
            if change <= n * tolerance:
                return like(rank)
    raise ValueError(f"pagerank: no convergence in {max_iterations} iterations\n  help: max_iterations=, tolerance=")


def _walk(A: Any) -> tuple[int, Array, Callable[[Array], Any], Callable[[Array], Any]]:
    """Nodes, the sums of rows, the product with the transposed matrix, and what results are converted by."""
    like: Callable[[Array], Any] = np.asarray
    if is_operator(A):
        n, columns = A.shape
        if n != columns:
            raise ShapeError(f"pagerank: a graph's matrix is square; got shape {A.shape}")
        out = np.asarray(A.matvec(np.ones(n)))
        least, back = float(out.min()) if n else 0.0, A.rmatvec
    else:
        g = adjacency(A, "pagerank")
        plain = asarray(g.tensor.astype("float64"), like="numpy")
        n, like, out = g.n, g.like, np.asarray(plain @ np.ones(g.n))
        least = float(plain.values.min()) if len(plain.values) else 0.0
        back = plain.T.asformat("csr").__matmul__
    if not least >= 0:
        raise ValueError("pagerank: a weight is negative or NaN\n  help: ow.abs(A), or ow.pattern(A)")
    return n, out, back, like


def _shares(given: Any, n: int) -> Array:
    jump = np.asarray(given, np.float64)
    if jump.shape != (n,):
        raise ShapeError(f"pagerank: personalization has shape {jump.shape}; expected ({n},)")
    total = float(jump.sum())
    if not (jump >= 0).all() or not 0 < total < np.inf:
        raise ValueError("pagerank: personalization has shares from 0, of which one is more")
    return jump / total


def triangles(A: Any) -> int:
    """The number of triangles of the graph, edges taken both ways and loops left out.

    Each edge leads from the end of the smaller degree to the other; counted are, for each, the nodes that both ends
    lead to: at most 2 * edges**1.5 of them. Source: Schank and Wagner (2005), "forward".

    Returns
    -------
    int, the number

    Cost: O(edges**1.5) at most.
    See also: core_numbers.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0, 5.0], [0, 0, 1.0], [0, 0, 0]], format="csr")
    >>> ow.graph.triangles(A)
    1
    """
    g = adjacency(A, "triangles")
    degree, start, end = np.zeros((3, g.n), g.crd.dtype)
    mark, ahead, count = np.full(g.n, -1, g.crd.dtype), np.empty_like(g.crd), np.zeros(1, np.int64)
    kernel("triangles", g.crd.dtype)(g.work, g.pos, g.crd, degree, start, end, ahead, mark, count, g.n)
    return int(count[0])


def core_numbers(A: Any) -> Any:
    """The largest k for each node such that it is in a subgraph whose nodes all have k neighbours there.

    Edges are taken both ways, loops are left out. Source: Batagelj and Zaveršnik (2003), in time of the edges.

    Returns
    -------
    array of integers, (n,)

    Cost: O(nodes + edges).
    See also: triangles, components.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0, 5.0], [0, 0, 1.0], [0, 0, 0]], format="csr")
    >>> ow.graph.core_numbers(A)
    array([2, 2, 2], dtype=int32)
    """
    g = adjacency(A, "core_numbers")
    plain = pattern(asarray(g.tensor, like="numpy"))
    both = adjacency(plain | plain.T, "core_numbers")
    rows = np.repeat(np.arange(both.n), np.diff(both.pos))
    degree = np.bincount(rows[rows != both.crd], minlength=both.n).astype(both.crd.dtype)
    order = np.argsort(degree, kind="stable").astype(both.crd.dtype)
    place = np.empty_like(order)
    place[order] = np.arange(both.n, dtype=order.dtype)
    counts = np.bincount(degree, minlength=1)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(order.dtype)
    kernel("cores", order.dtype)(both.work, both.pos, both.crd, degree, order, place, start, both.n)
    return g.like(degree)


def betweenness(
    A: Any, *, sources: Any = None, directed: bool = True, normalized: bool = True, progress: Progress = None
) -> Any:  # fmt: skip
    """The share of shortest ways, by number of edges, between other nodes that lead through each node.

    Parameters
    ----------
    A : graph, (n, n)
    sources : nodes that ways begin at; all of them by default, a sample estimates
    directed : False halves what is not normalized: A has each edge both ways, and ways are counted twice
    normalized : divided by the number of pairs of other nodes
    progress : True for a bar on stderr, or a function of (sources done, sources)

    Returns
    -------
    array of float64, (n,)

    Source: Brandes (2001), in time of the sources times the edges.

    Cost: O(sources * edges).
    See also: pagerank, bfs.

    Examples
    --------
    >>> path = ow.asarray([[0, 1, 0], [1, 0, 1], [0, 1, 0]], format="csr")
    >>> ow.graph.betweenness(path)
    array([0., 1., 0.])
    """
    g = adjacency(A, "betweenness")
    first = np.arange(g.n) if sources is None else nodes(sources, g.n, "betweenness", "sources")
    score, ways, depends = (np.zeros(g.n) for _ in range(3))
    levels, queue = np.full(g.n, -1), np.zeros(max(g.n, 1), np.int64)
    state = np.array([0, first.size])
    run, at_once = kernel("betweenness", g.crd.dtype), max(1, _SLICE // max(g.work, 1))
    with reporting(progress, "betweenness") as passes:
        step = passes.begin("betweenness", "sources")
        for last in range(at_once, first.size + at_once, at_once):
            run(g.work, g.pos, g.crd, first, score, levels, ways, depends, queue, state, last)
            if step is not None:
                step(min(last, first.size), first.size)
    if sources is not None and first.size:
        score *= g.n / first.size
    if normalized and g.n > 2:
        score /= (g.n - 1) * (g.n - 2)
    elif not normalized and not directed:
        score /= 2
    return g.like(score)

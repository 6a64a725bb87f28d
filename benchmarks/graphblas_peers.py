"""A SciPy matrix -> graph functions of python-graphblas (SuiteSparse:GraphBLAS) on it, as textbooks write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp

__all__ = ["peers"]


def peers(s: Any, source: int) -> dict[str, Callable[[], object]]:
    """The functions by the rows of `graphs.py`; empty where python-graphblas is not installed.

    s : the matrix of weights; source : where searches begin. Each function begins at the graph as it is, as ours does
    """
    try:
        import graphblas as gb
    except ImportError:
        return {}
    Vector, binary, monoid, select, semiring = gb.Vector, gb.binary, gb.monoid, gb.select, gb.semiring

    a = gb.io.from_scipy_sparse(sp.csr_array(s))
    n = a.nrows
    pattern = a.apply(gb.unary.one).new(dtype=bool)
    weight = a.reduce_rowwise(monoid.plus).new()

    def bfs() -> object:
        level, front = Vector(int, n), Vector(bool, n)
        level[source], front[source] = 0, True
        for k in range(1, n):
            front(~level.S, replace=True) << semiring.any_pair(front @ pattern)
            if not front.nvals:
                break
            level(front.S) << k
        return level

    def shortest_paths() -> object:
        distance = Vector(float, n)
        distance[source] = 0.0
        for _ in range(n):
            before = distance.dup()
            distance(binary.min) << semiring.min_plus(distance @ a)
            if distance.isequal(before):
                break
        return distance

    def pagerank() -> object:
        rank = Vector.from_scalar(1.0 / n, n)
        for _ in range(100):
            shared = rank.ewise_mult(weight, binary.truediv).new()
            hanging = (
                rank.reduce(monoid.plus).value - rank.ewise_mult(weight, binary.first).new().reduce(monoid.plus).value
            )
            following = Vector.from_scalar(0.15 / n + 0.85 * hanging / n, n)
            following(binary.plus) << 0.85 * semiring.plus_times(shared @ a).new()
            change = following.ewise_add(rank, binary.minus).new().apply(gb.unary.abs).new().reduce(monoid.plus).value
            rank = following
            if change < 1e-8:
                break
        return rank

    def triangles() -> object:
        low = select.tril(pattern.ewise_add(pattern.T, monoid.lor).new(), -1).new()
        found = gb.Matrix(int, n, n)
        found(low.S) << semiring.plus_pair(low @ low.T)
        return found.reduce_scalar(monoid.plus).value

    return {"bfs": bfs, "shortest_paths": shortest_paths, "pagerank": pagerank, "triangles": triangles}

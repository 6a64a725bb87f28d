"""A graph in an order -> its elimination tree, postorder, and the numbers of elements of the factor's columns.

Source: J. W. H. Liu, "The role of elimination trees in sparse factorization", SIAM J. Matrix Anal. Appl. 11 (1990);
J. R. Gilbert, E. G. Ng, B. W. Peyton, "An efficient algorithm to compute row and column counts for sparse Cholesky
factorization", same journal 15 (1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import run
from .graph import Graph

__all__ = ["column_counts", "elimination_tree", "permuted", "postorder"]

Array = np.ndarray[Any, Any]

_PERMUTE = """
def permute_graph(pos: I[const], crd: I[const], order: I[const], rank: I[mut], out_pos: I[mut], out: I[mut], n: i64):
    for k in range(0, n):
        rank[order[k]] = k
    q: i64 = 0
    for k in range(0, n):
        v = i64(order[k])
        for p in range(pos[v], pos[v + 1]):
            out[q] = rank[crd[p]]
            q += 1
        out_pos[k + 1] = q
"""

_TREE = """
def elimination_tree(pos: I[const], crd: I[const], parent: I[mut], n: i64):
    ancestor: I[n] = empty
    for i in range(0, n):
        parent[i] = -1
        ancestor[i] = -1
        for p in range(pos[i], pos[i + 1]):
            j: i64 = i64(crd[p])
            if j < i:
                while j != -1 and j != i:
                    above = i64(ancestor[j])
                    ancestor[j] = i
                    if above == -1:
                        parent[j] = i
                    j = above
"""

_POSTORDER = """
def postorder(parent: I[const], rank: I[const], order: I[mut], n: i64):
    # children are visited in the order of `rank`
    head: I[n + 1] = empty
    next: I[n] = empty
    stack: I[n] = empty
    for v in range(0, n + 1):
        head[v] = -1
    for s in range(0, n):
        v = i64(rank[n - 1 - s])
        u: i64 = i64(parent[v])
        if u < 0:
            u = n
        next[v] = head[u]
        head[u] = v
    k: i64 = 0
    root: i64 = i64(head[n])
    while root >= 0:
        top: i64 = 1
        stack[0] = root
        while top > 0:
            v = i64(stack[top - 1])
            child = i64(head[v])
            if child >= 0:
                head[v] = next[child]
                stack[top] = child
                top += 1
            else:
                order[k] = v
                k += 1
                top = top - 1
        root = i64(next[root])
"""

_COUNTS = """
def column_counts(pos: I[const], crd: I[const], parent: I[const], count: I[mut], n: i64):
    first: I[n] = empty
    latest: I[n] = empty
    leaf: I[n] = empty
    ancestor: I[n] = empty
    for v in range(0, n):
        first[v] = -1
        latest[v] = -1
        leaf[v] = -1
        ancestor[v] = v
    for k in range(0, n):
        j: i64 = k + 0
        count[j] = 0
        if first[j] < 0:
            count[j] = 1
        while j >= 0 and first[j] < 0:
            first[j] = k
            j = i64(parent[j])
    for j in range(0, n):
        up = i64(parent[j])
        if up >= 0:
            count[up] = count[up] - 1
        for p in range(pos[j], pos[j + 1]):
            i = i64(crd[p])
            if i > j and first[j] > latest[i]:
                latest[i] = first[j]
                before = i64(leaf[i])
                leaf[i] = j
                count[j] = count[j] + 1
                if before >= 0:
                    q: i64 = before + 0
                    while ancestor[q] != q:
                        q = i64(ancestor[q])
                    s: i64 = before + 0
                    while s != q:
                        above = i64(ancestor[s])
                        ancestor[s] = q
                        s = above
                    count[q] = count[q] - 1
        if up >= 0:
            ancestor[j] = up
    for j in range(0, n):
        if parent[j] >= 0:
            count[parent[j]] = count[parent[j]] + count[j]
"""


def permuted(graph: Graph, order: Array) -> Graph:
    """The graph whose vertex k is vertex order[k]; neighbours are not sorted."""
    kind = graph.crd.dtype
    rank, pos, crd = np.empty(graph.n, kind), np.zeros(graph.n + 1, kind), np.empty_like(graph.crd)
    words = [graph.pos, graph.crd, order, rank, pos, crd, graph.n]
    run(_PERMUTE, len(crd), words, I=crd)
    return Graph(pos, crd)


def elimination_tree(graph: Graph) -> Array:
    """The parent of each vertex, -1 for a root: the least row below the diagonal of its column of the factor."""
    parent = np.empty(graph.n, graph.crd.dtype)
    run(_TREE, len(graph.crd), [graph.pos, graph.crd, parent, graph.n], I=parent)
    return parent


def postorder(parent: Array, rank: Array | None = None) -> Array:
    """The nodes of a forest, children before parents and subtrees together; siblings in the order of `rank`."""
    n = len(parent)
    order = np.empty(n, parent.dtype)
    rank = np.arange(n, dtype=parent.dtype) if rank is None else rank.astype(parent.dtype, copy=False)
    run(_POSTORDER, n, [parent, rank, order, n], I=order)
    return order


def column_counts(graph: Graph, parent: Array) -> Array:
    """The elements of each column of the factor, the diagonal's included; the graph is in a postorder of its tree."""
    count = np.empty(graph.n, graph.crd.dtype)
    run(_COUNTS, len(graph.crd), [graph.pos, graph.crd, parent, count, graph.n], I=count)
    return count

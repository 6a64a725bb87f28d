"""An elimination tree and column counts -> supernodes, columns of the factor that are stored as one dense panel.

Columns whose structures are nested are one supernode; a child goes with its parent where the zeros that the panel
then stores are few. Any child may: its columns are moved to stand before its parent's, which changes no fill.

Source: C. Ashcraft, R. Grimes, "The influence of relaxed supernode partitions on the multifrontal method", ACM TOMS 15
(1989); the limits of zeros by the width of the panel are of the kind of CHOLMOD's (Y. Chen et al., ACM TOMS 35, 2008).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiled import run
from .elimination_tree import postorder
from .graph import Graph

__all__ = ["Supernodes", "places", "places_in_parents", "row_structure", "supernodes"]

Array = np.ndarray[Any, Any]

_FUNDAMENTAL = """
def fundamental(parent: I[const], count: I[const], owner: I[mut], width: I[mut], height: I[mut], found: i64[mut],
                n: i64):
    s: i64 = -1
    for j in range(0, n):
        joins: i64 = 0
        if j > 0:
            joins = i64(parent[j - 1] == j and count[j - 1] == count[j] + 1)
        if joins == 0:
            s += 1
            width[s] = 0
            height[s] = count[j]
        owner[j] = s
        width[s] = width[s] + 1
    found[0] = s + 1
"""

_AMALGAMATE = """
def amalgamate(up: I[const], width: I[mut], height: I[mut], zeros: f64[mut], into: I[mut], head: I[mut], next: I[mut],
               count: i64):
    # s counts its own columns and those of the children that went with it; height: rows of its panel
    for s in range(0, count):
        into[s] = s
        head[s] = -1
    for s in range(0, count):
        c: i64 = i64(head[s])
        while c >= 0:
            kc = f64(width[c])
            kp = f64(width[s])
            mc = f64(height[c])
            mp = f64(height[s])
            k = kc + kp
            m = kc + mp
            all = k * m - k * (k - 1.0) / 2.0
            more = all - (kc * mc - kc * (kc - 1.0) / 2.0) - (kp * mp - kp * (kp - 1.0) / 2.0)
            total = more + zeros[c] + zeros[s]
            share: f64 = 0.05
            if k <= 4.0:
                share = 1.0
            elif k <= 16.0:
                share = 0.8
            elif k <= 48.0:
                share = 0.1
            if total <= share * all and (more <= 0.4 * all or k <= 4.0):
                into[c] = s
                width[s] = width[s] + width[c]
                height[s] = height[s] + width[c]
                zeros[s] = total
            c = i64(next[c])
        if up[s] >= 0:
            next[s] = head[up[s]]
            head[up[s]] = s
    for t in range(0, count):
        s = count - 1 - t
        if into[s] != s:
            into[s] = into[into[s]]
"""

_ROWS = """
def row_structure(pos: I[const], crd: I[const], owner: I[const], up: I[const], row_pos: i64[const], rows: I[mut],
                  n: i64, count: i64):
    end: i64[count] = empty
    seen: I[count] = empty
    for s in range(0, count):
        end[s] = row_pos[s]
        seen[s] = -1
    for i in range(0, n):
        own = i64(owner[i])
        for p in range(pos[i], pos[i + 1]):
            j = i64(crd[p])
            if j < i:
                s: i64 = i64(owner[j])
                while s != own and seen[s] != i:
                    seen[s] = i
                    rows[end[s]] = i
                    end[s] = end[s] + 1
                    s = i64(up[s])
"""

_PLACES = """
def places_in_parents(first: I[const], up: I[const], row_pos: i64[const], rows: I[const], head: I[const],
                      next: I[const], place: I[mut], inside: I[mut], n: i64, count: i64):
    at: I[n] = empty
    for s in range(0, count):
        start = i64(first[s])
        stop = i64(first[s + 1])
        if head[s] >= 0:
            for i in range(start, stop):
                at[i] = i - start
            for q in range(row_pos[s], row_pos[s + 1]):
                at[rows[q]] = stop - start + q - row_pos[s]
            c: i64 = i64(head[s])
            while c >= 0:
                k: i64 = 0
                for q in range(row_pos[c], row_pos[c + 1]):
                    place[q] = at[rows[q]]
                    k += i64(rows[q] < stop)
                inside[c] = k
                c = i64(next[c])
"""


class Supernodes(NamedTuple):
    """Supernodes in a postorder: s has the columns first[s] to first[s + 1] and the rows of the panel below them.

    order : the columns, in terms of those that were given
    up : the parent of each, -1 for a root; head, next : lists of children
    """

    order: Array
    first: Array
    up: Array
    below: Array
    head: Array
    next: Array

    @property
    def owner(self) -> Array:
        """The supernode of each column."""
        return np.repeat(np.arange(len(self.up), dtype=self.up.dtype), np.diff(self.first))


def supernodes(parent: Array, count: Array, relaxed: bool = True) -> Supernodes:
    """The supernodes of an elimination tree in postorder with these column counts."""
    n, kind = len(parent), parent.dtype
    owner, width, height = (np.zeros(n, kind) for _ in range(3))
    found = np.zeros(1, np.int64)
    run(_FUNDAMENTAL, n, [parent, count, owner, width, height, found, n], I=owner)
    number = int(found[0])
    width, height = width[:number], height[:number]
    last = np.cumsum(width) - 1
    above = parent[last] if number else parent[:0]
    up = np.where(above >= 0, owner[above], -1).astype(kind) if number else parent[:0]
    into = np.arange(number, dtype=kind)
    if relaxed and number:
        into, head, next_ = (np.empty(number, kind) for _ in range(3))
        words = [up, width, height, np.zeros(number), into, head, next_, number]
        run(_AMALGAMATE, number, words, I=into)
    return _in_postorder(into, up, width, height, owner)


def _in_postorder(into: Array, up: Array, width: Array, height: Array, owner: Array) -> Supernodes:
    """The merged supernodes numbered in a postorder, larger updates first, and their columns one after the other."""
    kind = into.dtype
    kept = np.flatnonzero(into == np.arange(len(into), dtype=kind))
    number = np.zeros(len(into), kind)
    number[kept] = np.arange(len(kept), dtype=kind)
    parent = up[kept]
    parent = np.where(parent >= 0, number[into[parent]], -1).astype(kind) if len(kept) else parent
    below = (height - width)[kept]
    order = postorder(parent, np.argsort(-below, kind="stable"))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=kind)
    parent = np.where(parent[order] >= 0, rank[parent[order]], -1).astype(kind)
    columns_owner = rank[number[into[owner]]]
    columns = np.argsort(columns_owner, kind="stable").astype(kind)
    first = np.concatenate([np.zeros(1, kind), np.cumsum(width[kept][order], dtype=kind)])
    head, next_ = _children(parent)
    return Supernodes(columns, first, parent, below[order], head, next_)


_CHILDREN = """
def children(up: I[const], head: I[mut], next: I[mut], count: i64):
    for s in range(0, count):
        head[s] = -1
    for t in range(0, count):
        s = count - 1 - t
        if up[s] >= 0:
            next[s] = head[up[s]]
            head[up[s]] = s
"""


def _children(up: Array) -> tuple[Array, Array]:
    head, next_ = np.empty_like(up), np.full_like(up, -1)
    run(_CHILDREN, len(up), [up, head, next_, len(up)], I=up)
    return head, next_


def row_structure(graph: Graph, nodes: Supernodes) -> tuple[Array, Array]:
    """The rows below each supernode's columns, sorted, one after the other: where each begins, and the rows."""
    row_pos = np.concatenate([np.zeros(1, np.int64), np.cumsum(nodes.below, dtype=np.int64)])
    rows = np.empty(row_pos[-1], graph.crd.dtype)
    words = [graph.pos, graph.crd, nodes.owner, nodes.up, row_pos, rows, graph.n, len(nodes.up)]
    run(_ROWS, len(rows) + len(graph.crd), words, I=rows)
    return row_pos, rows


def places_in_parents(nodes: Supernodes, row_pos: Array, rows: Array) -> tuple[Array, Array]:
    """For each row of a supernode its place in its parent's panel; how many of its rows are columns there."""
    return places(nodes.first, nodes.up, nodes.head, nodes.next, row_pos, rows, len(nodes.order))


def places(
    first: Array, up: Array, head: Array, next_: Array, row_pos: Array, rows: Array, n: int
) -> tuple[Array, Array]:  # fmt: skip
    """`places_in_parents` of supernodes with these columns, parents and children."""
    place, inside = np.zeros_like(rows), np.zeros(len(up), rows.dtype)
    words = [first, up, row_pos, rows, head, next_, place, inside, n, len(up)]
    run(_PLACES, len(rows), words, I=rows)
    return place, inside

"""A graph -> its order by approximate minimum degree; rows of a matrix as cliques -> an order of its columns.

Source: P. R. Amestoy, T. A. Davis, I. S. Duff, "An approximate minimum degree ordering algorithm", SIAM J. Matrix
Anal. Appl. 17 (1996): a quotient graph of variables and elements with supervariables, mass elimination, element
absorption and the upper bound |A_i \\ i| + |L_p \\ i| + sum |L_e \\ L_p| for the degree of i.

The quotient graph may begin with elements: those of a matrix's rows give the order of the columns of A.T @ A, which
is not formed (the idea of COLAMD: T. A. Davis, J. R. Gilbert, S. I. Larimore, E. G. Ng, ACM TOMS 30, 2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import run
from .graph import Graph

__all__ = ["column_minimum_degree", "minimum_degree"]

Array = np.ndarray[Any, Any]

_AMD = """
def amd(start: I[mut], lists: I[mut], size: I[mut], elements: I[mut], weight: I[mut], degree: I[mut], parent: I[mut],
        halo: I[const], order: I[mut], counts: i64[mut], n: i64, total: i64, top: i64, room: i64, dense: i64):
    # variables 0 .. n - 1 and elements n .. total - 1; the list of v is lists[start[v] : start[v] + size[v]]: its
    # first elements[v] entries are elements, the rest variables; weight 0: merged away, negative: in this pivot; what
    # is in the halo has degrees and raises those of others, but is not eliminated
    mark: i64[total] = zeros
    head: I[n + 1] = empty
    bucket: I[n + 1] = empty
    next: I[n] = empty
    last: I[n] = empty
    for d in range(0, n + 1):
        head[d] = -1
        bucket[d] = -1
    free: i64 = top
    tag: i64 = 1
    done: i64 = 0
    pivots: i64 = 0
    for e in range(n, total):
        mark[e] = 1
    for v in range(0, n):
        mark[v] = 1
        if halo[v] != 0:
            done += 1
        elif size[v] == 0:
            weight[v] = 0
            order[pivots] = v
            pivots += 1
            done += 1
    halos = done + 0
    late: i64 = 0
    for v in range(0, n):
        if weight[v] > 0 and halo[v] == 0 and degree[v] > dense:
            weight[v] = 0
            late += 1
            order[n - late] = v
            done += 1
    for s in range(0, n):
        v = n - 1 - s
        if weight[v] > 0 and halo[v] == 0:
            d = i64(degree[v])
            next[v] = head[d]
            last[v] = -1
            if head[d] >= 0:
                last[head[d]] = v
            head[d] = v
    least: i64 = 0
    tag = 2
    while done < n:
        while head[least] < 0:
            least += 1
        me = i64(head[least])
        follower = i64(next[me])
        head[least] = follower
        if follower >= 0:
            last[follower] = -1
        mine: i64 = i64(weight[me])
        done += mine
        weight[me] = 0 - mine
        order[pivots] = me
        pivots += 1
        ELEMENT
        OVERLAPS
        DEGREES
        MERGE
        RESTORE
    counts[0] = pivots
    counts[1] = late
"""

_ELEMENT = """
width: i64 = 0
old = i64(elements[me])
begin: i64 = i64(start[me])
end: i64 = begin + 0
if old == 0:
    for p in range(start[me], start[me] + size[me]):
        v = i64(lists[p])
        w = i64(weight[v])
        if w > 0:
            width += w
            weight[v] = 0 - w
            lists[end] = v
            end += 1
            UNLINK
else:
    need: i64 = i64(size[me]) - old
    for p in range(start[me], start[me] + old):
        need += i64(size[lists[p]])
    if free + min(need, n) > room:
        GARBAGE
    begin = free + 0
    p: i64 = i64(start[me])
    for k in range(0, old + 1):
        q: i64 = p + 0
        e: i64 = me + 0
        count: i64 = i64(size[me]) - old
        if k < old:
            e = i64(lists[p])
            p += 1
            q = i64(start[e])
            count = i64(size[e])
        for s in range(0, count):
            v = i64(lists[q + s])
            w = i64(weight[v])
            if w > 0:
                width += w
                weight[v] = 0 - w
                lists[free] = v
                free += 1
                UNLINK
        if e != me:
            parent[e] = me
            mark[e] = 0
    end = free + 0
degree[me] = width
start[me] = begin
size[me] = end - begin
elements[me] = -2
"""
"""The pivot becomes the element of all variables that are its neighbours or those of its elements, which it absorbs."""

_UNLINK = """
if halo[v] == 0:
    before = i64(last[v])
    after = i64(next[v])
    if after >= 0:
        last[after] = before
    if before >= 0:
        next[before] = after
    else:
        head[degree[v]] = after
"""

_GARBAGE = """
for v in range(0, total):
    if size[v] > 0 and mark[v] != 0 and (elements[v] == -2 or v == me or (elements[v] >= 0 and weight[v] != 0)):
        at = i64(start[v])
        start[v] = lists[at]
        lists[at] = -1 - v
to: i64 = 0
from_: i64 = 0
while from_ < free:
    entry = i64(lists[from_])
    if entry < 0:
        v = -1 - entry
        count = i64(size[v])
        lists[to] = start[v]
        start[v] = to
        for s in range(1, count):
            lists[to + s] = lists[from_ + s]
        to += count
        from_ += count
    else:
        from_ += 1
free = to + 0
"""
"""Live lists are moved together: the first entry of each waits in `start` for the name of its owner, in its place."""

_OVERLAPS = """
for p in range(begin, end):
    v = i64(lists[p])
    w = 0 - i64(weight[v])
    for q in range(start[v], start[v] + elements[v]):
        e = i64(lists[q])
        if mark[e] >= tag:
            mark[e] = mark[e] - w
        else:
            if mark[e] != 0:
                mark[e] = i64(degree[e]) + tag - w
"""
"""mark[e] - tag becomes |L_e \\ L_me| for all elements of the pivot's variables."""

_DEGREES = """
for p in range(begin, end):
    v = i64(lists[p])
    first = i64(start[v])
    many = i64(elements[v])
    to: i64 = first + 0
    bound: i64 = 0
    hash: i64 = 0
    for q in range(first, first + many):
        e = i64(lists[q])
        outside = mark[e] - tag
        if mark[e] != 0:
            if outside > 0:
                bound += outside
                lists[to] = e
                to += 1
                hash += e
            else:
                parent[e] = me
                mark[e] = 0
    kept = to - first
    middle = to + 0
    for q in range(first + many, first + size[v]):
        u = i64(lists[q])
        w = i64(weight[u])
        if w > 0:
            bound += w
            lists[to] = u
            to += 1
            hash += u
    if kept == 0 and middle == to and halo[v] == 0:
        parent[v] = me
        w = 0 - i64(weight[v])
        width -= w
        mine += w
        done += w
        weight[v] = 0
        elements[v] = -1
    else:
        degree[v] = min(i64(degree[v]), bound)
        lists[to] = lists[middle]
        lists[middle] = lists[first]
        lists[first] = me
        elements[v] = kept + 1
        size[v] = to - first + 1
        h = hash % n
        next[v] = bucket[h]
        bucket[h] = v
        last[v] = h
degree[me] = width
"""
"""Bounds of degrees; lists lose what the pivot covers. A variable with no other neighbour goes with the pivot.

A list never grows: a variable of the pivot had the pivot, or an element that the pivot absorbed, in its list.
"""

_MERGE = """
tag += n + 1
for p in range(begin, end):
    v = i64(lists[p])
    if weight[v] < 0:
        h = i64(last[v])
        a: i64 = i64(bucket[h])
        bucket[h] = -1
        while a >= 0 and next[a] >= 0:
            for q in range(start[a] + 1, start[a] + size[a]):
                mark[lists[q]] = tag
            prior: i64 = a + 0
            b: i64 = i64(next[a])
            while b >= 0:
                same: i64 = 0
                if size[b] == size[a] and elements[b] == elements[a] and halo[b] == halo[a]:
                    q: i64 = i64(start[b]) + 1
                    stop = i64(start[b]) + i64(size[b])
                    while q < stop and mark[lists[q]] == tag:
                        q += 1
                    if q == stop:
                        same = 1
                if same == 1:
                    parent[b] = a
                    weight[a] = weight[a] + weight[b]
                    weight[b] = 0
                    elements[b] = -1
                    next[prior] = next[b]
                else:
                    prior = b + 0
                b = i64(next[b])
            tag += 1
            a = i64(next[a])
"""
"""Variables of the same list become one. Lists are compared in hash buckets; marks of variables serve nothing else."""

_RESTORE = """
tag += n + 1
to: i64 = begin + 0
left = n - done + halos
for p in range(begin, end):
    v = i64(lists[p])
    w = 0 - i64(weight[v])
    if w > 0:
        weight[v] = w
        d = max(0, min(i64(degree[v]) + width - w, left - w))
        if halo[v] == 0:
            next[v] = head[d]
            last[v] = -1
            if head[d] >= 0:
                last[head[d]] = v
            head[d] = v
            least = min(least, d)
        degree[v] = d
        lists[to] = v
        to += 1
weight[me] = mine
size[me] = to - begin
if to == begin:
    mark[me] = 0
if old > 0:
    free = to + 0
"""

_SPREAD = """
def spread(parent: I[mut], order: I[const], rank: I[mut], count: I[mut], out: I[mut], n: i64, pivots: i64):
    # each variable after the pivot with which it goes: pivots keep their order
    for k in range(0, pivots):
        rank[order[k]] = k
    for v in range(0, n):
        if rank[v] == -1:
            r: i64 = i64(parent[v])
            while rank[r] < 0:
                r = i64(parent[r])
            u: i64 = v + 0
            while rank[u] < 0 and i64(parent[u]) != r:
                above = i64(parent[u])
                parent[u] = r
                u = above + 0
            count[rank[r] + 1] = count[rank[r] + 1] + 1
        elif rank[v] >= 0:
            count[rank[v] + 1] = count[rank[v] + 1] + 1
    for k in range(0, pivots):
        count[k + 1] = count[k + 1] + count[k]
    for v in range(0, n):
        if rank[v] >= 0:
            k = i64(rank[v])
            out[count[k]] = v
            count[k] = count[k] + 1
    for v in range(0, n):
        if rank[v] == -1:
            k = i64(rank[parent[v]])
            out[count[k]] = v
            count[k] = count[k] + 1
"""


_PARTS = {
    "ELEMENT": _ELEMENT, "OVERLAPS": _OVERLAPS, "DEGREES": _DEGREES, "MERGE": _MERGE, "RESTORE": _RESTORE,
    "GARBAGE": _GARBAGE, "UNLINK": _UNLINK,
}  # fmt: skip


def minimum_degree(graph: Graph, halo: Array | None = None) -> Array:
    """The vertices in the order in which they are to be eliminated; those that are not 0 in `halo` stay.

    Their neighbours' degrees count them, which is how a part of a graph is ordered within the whole.
    """
    n = graph.n
    size = np.diff(graph.pos)
    return _eliminate(graph.pos[:-1], graph.crd, size, np.zeros_like(size), size, n, _dense_from(n), halo)


def column_minimum_degree(rows: Graph, columns: Graph) -> Array:
    """The columns of a matrix in an order that keeps the factor of A.T @ A sparse; nearly full rows are left out.

    rows, columns : the matrix's compressed rows and compressed columns
    """
    n, m = columns.n, rows.n
    widths = np.diff(rows.pos)
    used = widths <= _dense_from(n)
    entries = used[columns.crd]
    counts = np.concatenate([np.zeros(1, columns.pos.dtype), np.cumsum(entries, dtype=columns.pos.dtype)])
    pos = counts[columns.pos]
    lists = np.concatenate([columns.crd[entries] + n, rows.crd]).astype(rows.crd.dtype, copy=False)
    start = np.concatenate([pos[:-1], rows.pos[:-1] + pos[-1]])
    many = np.diff(pos)
    owner = np.repeat(np.arange(n), many)
    reach = np.bincount(owner, weights=widths[columns.crd[entries]] - 1.0, minlength=n) if n else np.zeros(0)
    degree = np.concatenate([np.minimum(reach, max(n - 1, 0)), widths]).astype(start.dtype)
    size = np.concatenate([many, widths])
    elements = np.concatenate([many, np.full(m, -2, many.dtype)])
    return _eliminate(start, lists, size, elements, degree, n, n)


def _dense_from(n: int) -> int:
    """The degree above which a vertex is ordered last, and a row is left out."""
    return int(max(16, 10 * np.sqrt(n)))


def _eliminate(
    start: Array, lists: Array, size: Array, elements: Array, degree: Array, n: int, dense: int,
    halo: Array | None = None,
) -> Array:  # fmt: skip
    total, kind = len(start), lists.dtype
    room = len(lists) + 2 * n + 16
    memory = np.empty(room, kind)
    memory[: len(lists)] = lists
    parent, order = np.full(total, -1, kind), np.empty(n, kind)
    counts = np.zeros(2, np.int64)
    around = np.zeros(total, kind) if halo is None else np.asarray(halo, kind)
    buffers = [np.array(x, kind) for x in (start, size, elements, np.ones(total), degree)]
    words = [buffers[0], memory, *buffers[1:], parent, around, order, counts, n, total, len(lists), room, dense]
    run(_AMD, len(lists) * 8, words, parts=_PARTS, I=order)
    pivots = np.concatenate([order[: counts[0]], order[n - counts[1] :]]).astype(kind)
    rank, count = np.full(total, -1, kind), np.zeros(len(pivots) + 1, kind)
    rank[:n][around[:n] != 0] = -2
    out = np.empty(n - np.count_nonzero(around[:n]), kind)
    run(_SPREAD, n, [parent, pivots, rank, count, out, n, len(pivots)], I=order)
    return out

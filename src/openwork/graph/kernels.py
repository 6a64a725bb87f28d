"""Kernels of graphs in compressed rows, as loop IR: each walks all rows that it needs in one call.

I is the type of indices: 32 or 64 bits, as the matrix has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..codegen import cache as kernels

__all__ = ["kernel"]

_BFS = """
def bfs(pos: I[const], crd: I[const], levels: I[mut], parents: I[mut], queue: I[mut], filled: i64):
    head: i64 = 0
    tail: i64 = filled
    end: i64 = filled
    step: I = I(1)
    while head < tail:
        if head == end:
            step = step + I(1)
            end = tail
        u = i64(queue[head])
        head += 1
        for p in range(i64(pos[u]), i64(pos[u + 1])):
            v = i64(crd[p])
            if levels[v] < I(0):
                levels[v] = step
                parents[v] = I(u)
                queue[tail] = I(v)
                tail += 1
"""

_BFS_LEVELS = _BFS.replace(" parents: I[mut],", "").replace("                parents[v] = I(u)\n", "")

_COMPONENTS = """
def components(pos: I[const], crd: I[const], root: I[mut], labels: I[mut], count: i64[mut], n: i64):
    for u in range(0, n):
        for p in range(i64(pos[u]), i64(pos[u + 1])):
            a: i64 = u
            while i64(root[a]) != a:
                root[a] = root[i64(root[a])]
                a = i64(root[a])
            b: i64 = i64(crd[p])
            while i64(root[b]) != b:
                root[b] = root[i64(root[b])]
                b = i64(root[b])
            if a < b:
                root[b] = I(a)
            if b < a:
                root[a] = I(b)
    found: i64 = 0
    for w in range(0, n):
        c: i64 = w
        while i64(root[c]) != c:
            c = i64(root[c])
        if c == w:
            labels[w] = I(found)
            found += 1
        else:
            labels[w] = labels[c]
    count[0] = found
"""

_STRONG = """
def strong(pos: I[const], crd: I[const], number: I[mut], low: I[mut], labels: I[mut], stack: I[mut], calls: I[mut],
           edge: I[mut], count: i64[mut], n: i64):
    time: I = 0
    top: i64 = 0
    found: i64 = 0
    for s in range(0, n):
        depth: i64 = 0
        if number[s] == I(0):
            depth = 1
            calls[0] = I(s)
            time += I(1)
            number[s] = time
            low[s] = time
            stack[top] = I(s)
            top += 1
            edge[s] = pos[s]
        while depth > 0:
            u = i64(calls[depth - 1])
            p = i64(edge[u])
            if p < i64(pos[u + 1]):
                edge[u] = I(p + 1)
                v = i64(crd[p])
                if number[v] == I(0):
                    calls[depth] = I(v)
                    depth += 1
                    time += I(1)
                    number[v] = time
                    low[v] = time
                    stack[top] = I(v)
                    top += 1
                    edge[v] = pos[v]
                else:
                    if labels[v] < I(0) and number[v] < low[u]:
                        low[u] = number[v]
            else:
                depth = depth - 1
                if depth > 0:
                    above = i64(calls[depth - 1])
                    if low[u] < low[above]:
                        low[above] = low[u]
                if low[u] == number[u]:
                    last: i64 = 0 - 1
                    while last != u:
                        top = top - 1
                        last = i64(stack[top])
                        labels[last] = I(found)
                    found += 1
    count[0] = found
"""

_DIJKSTRA = """
def dijkstra(pos: I[const], crd: I[const], weights: f64[const], distance: f64[mut], keys: f64[mut], heap: I[mut],
             filled: i64):
    size: i64 = filled
    while size > 0:
        near = keys[0]
        u = i64(heap[0])
        size = size - 1
        key = keys[size]
        node = heap[size]
        i: i64 = 0
        c: i64 = 1
        while c < size:
            if c + 1 < size:
                if keys[c + 1] < keys[c]:
                    c += 1
            if keys[c] < key:
                keys[i] = keys[c]
                heap[i] = heap[c]
                i = c
                c = 2 * i + 1
            else:
                c = size
        keys[i] = key
        heap[i] = node
        if near <= distance[u]:
            for p in range(i64(pos[u]), i64(pos[u + 1])):
                v = i64(crd[p])
                further = near + weights[p]
                if further < distance[v]:
                    distance[v] = further
                    j: i64 = size
                    size += 1
                    up: i64 = j
                    while up > 0:
                        up = (j - 1) // 2
                        if keys[up] > further:
                            keys[j] = keys[up]
                            heap[j] = heap[up]
                            j = up
                        else:
                            up = 0
                    keys[j] = further
                    heap[j] = I(v)
"""

_CORES = """
def cores(pos: I[const], crd: I[const], degree: I[mut], order: I[mut], place: I[mut], start: I[mut], n: i64):
    for k in range(0, n):
        v = i64(order[k])
        d = degree[v]
        for p in range(i64(pos[v]), i64(pos[v + 1])):
            u = i64(crd[p])
            e = degree[u]
            if e > d and u != v:
                at = i64(place[u])
                first = i64(start[i64(e)])
                other = i64(order[first])
                order[first] = I(u)
                order[at] = I(other)
                place[u] = I(first)
                place[other] = I(at)
                start[i64(e)] = I(first + 1)
                degree[u] = e - I(1)
"""

_BETWEENNESS = """
def betweenness(pos: I[const], crd: I[const], sources: i64[const], score: f64[mut], levels: i64[mut], ways: f64[mut],
                depends: f64[mut], queue: i64[mut], state: i64[mut], last: i64):
    s: i64 = state[0]
    end: i64 = state[1]
    while s < end and s < last:
        first = sources[s]
        levels[first] = 0
        ways[first] = 1.0
        queue[0] = first
        head: i64 = 0
        tail: i64 = 1
        while head < tail:
            u = queue[head]
            head += 1
            step = levels[u] + 1
            for p in range(i64(pos[u]), i64(pos[u + 1])):
                v = i64(crd[p])
                if levels[v] < 0:
                    levels[v] = step
                    queue[tail] = v
                    tail += 1
                if levels[v] == step:
                    ways[v] = ways[v] + ways[u]
        head = tail
        while head > 0:
            head = head - 1
            w = queue[head]
            below = levels[w] + 1
            total: f64 = 0.0
            for q in range(i64(pos[w]), i64(pos[w + 1])):
                x = i64(crd[q])
                if levels[x] == below:
                    total += ways[w] / ways[x] * (1.0 + depends[x])
            depends[w] = total
            if w != first:
                score[w] = score[w] + total
        for k in range(0, tail):
            y = queue[k]
            levels[y] = 0 - 1
            ways[y] = 0.0
        s += 1
    state[0] = s
"""

_TRIANGLES = """
def triangles(pos: I[const], crd: I[const], degree: I[mut], start: I[mut], end: I[mut], ahead: I[mut], mark: I[mut],
              count: i64[mut], n: i64):
    for a in range(0, n):
        for p in range(i64(pos[a]), i64(pos[a + 1])):
            b = i64(crd[p])
            if b != a:
                degree[a] = degree[a] + I(1)
                degree[b] = degree[b] + I(1)
    for c in range(0, n):
        for q in range(i64(pos[c]), i64(pos[c + 1])):
            d = i64(crd[q])
            if d != c:
                behind = degree[c] < degree[d] or degree[c] == degree[d] and c < d
                e = select(behind, c, d)
                end[e] = end[e] + I(1)
    total: I = I(0)
    for f in range(0, n):
        size = end[f]
        start[f] = total
        end[f] = total
        total += size
    for g in range(0, n):
        for r in range(i64(pos[g]), i64(pos[g + 1])):
            h = i64(crd[r])
            if h != g:
                first = degree[g] < degree[h] or degree[g] == degree[h] and g < h
                i = select(first, g, h)
                ahead[i64(end[i])] = I(select(first, h, g))
                end[i] = end[i] + I(1)
    for j in range(0, n):
        kept: i64 = i64(start[j])
        for s in range(i64(start[j]), i64(end[j])):
            k = i64(ahead[s])
            if mark[k] != I(j):
                mark[k] = I(j)
                ahead[kept] = I(k)
                kept += 1
        end[j] = I(kept)
    found: i64 = 0
    for l in range(0, n):
        mark[l] = I(0 - 1)
    for u in range(0, n):
        for x in range(i64(start[u]), i64(end[u])):
            mark[i64(ahead[x])] = I(u)
        for y in range(i64(start[u]), i64(end[u])):
            v = i64(ahead[y])
            for z in range(i64(start[v]), i64(end[v])):
                found += i64(mark[i64(ahead[z])] == I(u))
    count[0] = found
"""

_TEXTS = {
    "bfs": _BFS, "bfs_levels": _BFS_LEVELS, "components": _COMPONENTS, "strong": _STRONG, "dijkstra": _DIJKSTRA,
    "cores": _CORES, "betweenness": _BETWEENNESS, "triangles": _TRIANGLES,
}  # fmt: skip


@cache
def kernel(name: str, dtype: np.dtype[Any]) -> Callable[..., None]:
    """The compiled kernel for indices of `dtype`, a function of the work in elements and of its arguments."""
    index = "i32" if dtype.itemsize == 4 else "i64"
    made = kernels.of_text(_TEXTS[name], I=index)

    def run(work: int, *args: Any) -> None:
        made.run_sized(work, made.pack(args))

    return run

"""A graph -> its reverse Cuthill-McKee order, which keeps the band of a matrix narrow.

Source: E. Cuthill, J. McKee, "Reducing the bandwidth of sparse symmetric matrices" (1969); A. George, J. W. H. Liu,
"An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import run
from .graph import Graph

__all__ = ["reverse_cuthill_mckee"]

_TEXT = """
def reverse_cuthill_mckee(pos: I[const], crd: I[const], starts: I[const], order: I[mut], n: i64):
    # each component from a vertex far from the others, by levels, neighbours of small degree first
    level: I[n] = empty
    done: I[n] = zeros
    found: i64 = 0
    for s in range(0, n):
        if done[starts[s]] == 0:
            root: i64 = i64(starts[s])
            first = found + 0
            deepest: i64 = -1
            going: i64 = 1
            while going == 1:
                level[root] = 0
                order[first] = root
                done[root] = 2
                end: i64 = first + 1
                at: i64 = first + 0
                while at < end:
                    v = i64(order[at])
                    at += 1
                    for p in range(pos[v], pos[v + 1]):
                        u = i64(crd[p])
                        if done[u] == 0:
                            done[u] = 2
                            level[u] = level[v] + 1
                            order[end] = u
                            end += 1
                deep = i64(level[order[end - 1]])
                for k in range(first, end):
                    done[order[k]] = 0
                if deep > deepest:
                    deepest = deep
                    far: i64 = i64(order[end - 1])
                    k: i64 = end - 1
                    while k >= first and level[order[k]] == deep:
                        u = i64(order[k])
                        if pos[u + 1] - pos[u] < pos[far + 1] - pos[far]:
                            far = u
                        k = k - 1
                    root = far
                else:
                    going = 0
            order[found] = root
            done[root] = 1
            at: i64 = found + 0
            found += 1
            while at < found:
                v = i64(order[at])
                at += 1
                newest = found + 0
                for p in range(pos[v], pos[v + 1]):
                    u = i64(crd[p])
                    if done[u] == 0:
                        done[u] = 1
                        degree = i64(pos[u + 1]) - i64(pos[u])
                        k: i64 = found + 0
                        more: i64 = 1
                        while more == 1:
                            more = 0
                            if k > newest:
                                before = i64(order[k - 1])
                                if i64(pos[before + 1]) - i64(pos[before]) > degree:
                                    order[k] = before
                                    k = k - 1
                                    more = 1
                        order[k] = u
                        found += 1
    for k in range(0, n // 2):
        v = i64(order[k])
        order[k] = order[n - 1 - k]
        order[n - 1 - k] = v
"""


def reverse_cuthill_mckee(graph: Graph) -> np.ndarray[Any, Any]:
    """The vertices in reverse Cuthill-McKee order, component by component."""
    n = graph.n
    order = np.empty(n, graph.crd.dtype)
    starts = np.argsort(np.diff(graph.pos), kind="stable").astype(order.dtype)
    run(_TEXT, len(graph.crd) * 4, [graph.pos, graph.crd, starts, order, n], I=order)
    return order

"""A graph -> its order by nested dissection: halves first, then what separates them; small parts by minimum degree.

Vertices that have the same neighbours, the unknowns of a node of a mesh, are one vertex of the graph that is dissected.

Source: A. George, "Nested dissection of a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973); C. Ashcraft,
"Compressed graphs and the minimum degree algorithm", SIAM J. Sci. Comput. 16 (1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Graph
from .minimum_degree import minimum_degree
from .separators import separated, split

__all__ = ["nested_dissection"]

Array = np.ndarray[Any, Any]

LEAF = 200
"""Vertices of a part that minimum degree orders."""
MERGED = 0.6
"""Share of vertices that are left from which on vertices with the same neighbours are not merged."""


def nested_dissection(graph: Graph) -> Array:
    """The vertices in the order in which they are to be eliminated.

    Parts that are not dissected are ordered together, by degrees that count the separators around them.
    """
    kind = graph.crd.dtype
    small, group = quotient(graph)
    if small.n < MERGED * graph.n:
        rank = np.empty(small.n, kind)
        rank[nested_dissection(small)] = np.arange(small.n, dtype=kind)
        return np.argsort(rank[group], kind="stable").astype(kind)
    parts = [(graph, np.arange(graph.n, dtype=kind))]
    separators: list[Array] = []
    while parts:
        parts = [(part, names) for part, names in parts if part.n > LEAF and len(part.crd)]
        halves: list[tuple[Graph, Array]] = []
        for (part, names), sides in zip(parts, separated([part for part, _ in parts]), strict=True):
            separator = names[sides == 2]
            if 2 * len(separator) <= part.n:
                separators.append(separator)
                halves.extend(split(part, names, sides))
        parts = halves
    late = np.concatenate([np.zeros(0, kind), *separators[::-1]])
    halo = np.zeros(graph.n, kind)
    halo[late] = 1
    return np.concatenate([minimum_degree(graph, halo), late])


def quotient(graph: Graph) -> tuple[Graph, Array]:
    """The graph whose vertices are those of the graph with the same neighbours and themselves, and the one of each.

    Neighbours are compared by a sum of random numbers of 64 bits.
    """
    n, pos, crd = graph.n, graph.pos, graph.crd
    name = np.random.default_rng(0).integers(0, 2**64, n, np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(name[crd])])
    _, first, group = np.unique(sums[pos[1:]] - sums[pos[:-1]] + name, return_index=True, return_inverse=True)
    place = np.full(n, -1, crd.dtype)
    place[np.sort(first)] = np.arange(len(first), dtype=crd.dtype)
    row, col = np.repeat(place, np.diff(pos)), place[crd]
    kept = (row >= 0) & (col >= 0)
    ends = np.searchsorted(row[kept], np.arange(len(first) + 1)).astype(pos.dtype)
    return Graph(ends, col[kept]), place[first[group]]

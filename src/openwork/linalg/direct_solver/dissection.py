"""A graph -> its order by nested dissection: halves first, then what separates them; small parts by minimum degree.

Source: A. George, "Nested dissection of a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Graph
from .minimum_degree import minimum_degree
from .separators import separate, split

__all__ = ["nested_dissection"]

Array = np.ndarray[Any, Any]

LEAF = 200
"""Vertices of a part that minimum degree orders."""


def nested_dissection(graph: Graph) -> Array:
    """The vertices in the order in which they are to be eliminated.

    Parts that are not dissected are ordered together, by degrees that count the separators around them.
    """
    kind = graph.crd.dtype
    waiting = [(graph, np.arange(graph.n, dtype=kind))]
    separators: list[Array] = []
    while waiting:
        part, names = waiting.pop(0)
        if part.n <= LEAF or not len(part.crd):
            continue
        sides = separate(part)
        halves = split(part, names, sides)
        separator = names[sides == 2]
        if 2 * len(separator) > part.n:
            continue
        separators.append(separator)
        waiting.extend(half for half in halves if half[0].n > LEAF)
    late = np.concatenate([np.zeros(0, kind), *separators[::-1]])
    halo = np.zeros(graph.n, kind)
    halo[late] = 1
    return np.concatenate([minimum_degree(graph, halo), late])

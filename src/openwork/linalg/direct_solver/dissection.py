"""A graph -> its order by nested dissection: halves first, then what separates them; small parts by minimum degree.

Source: A. George, "Nested dissection of a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973).
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


def nested_dissection(graph: Graph) -> Array:
    """The vertices in the order in which they are to be eliminated.

    Parts that are not dissected are ordered together, by degrees that count the separators around them.
    """
    kind = graph.crd.dtype
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

"""Graphs as adjacency matrices: searches, paths, components, ranks, counts and samples, over any format.

A[u, v] is the weight of the edge from u to v. An edge is where an element is specified, of whatever value (of formats
that store whole blocks, rows or diagonals: where it is not 0). Whatever `asarray` takes is a graph: a Tensor of any
format, SciPy's arrays, graphs of networkx. Compressed rows are read in place, other formats are converted first.
"""

from __future__ import annotations

from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from .centrality import betweenness, core_numbers, pagerank, triangles
from .sampling import sample_neighbors
from .traversal import bfs, components, shortest_paths

__all__ = [
    "betweenness",
    "bfs",
    "components",
    "core_numbers",
    "pagerank",
    "sample_neighbors",
    "shortest_paths",
    "sssp",
    "triangles",
]

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

sssp = shortest_paths
"""The name that GraphBLAS has for `shortest_paths`."""

_document_all(globals(), __all__)

"""A networkx graph -> its adjacency matrix, a square matrix -> a networkx graph, by networkx's own conversions."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import ShapeError, UnsupportedError
from ..provided import provides
from ..tensor.tensor import Tensor
from .buffer_policy import BufferPolicy
from .export import to_scipy
from .scipy import from_scipy

__all__ = ["from_networkx", "is_networkx", "to_networkx"]


def is_networkx(obj: object) -> bool:
    """Whether `obj` is a graph of networkx, which is not imported for it."""
    networkx: Any = sys.modules.get("networkx")
    return networkx is not None and isinstance(obj, networkx.Graph)


def from_networkx(graph: Any, policy: BufferPolicy) -> Tensor:
    """The adjacency in compressed rows: `A[u, v]` is the weight of the edge from node u to node v, 1 without one.

    Nodes are numbered in the graph's order; edges of a multigraph are summed; undirected edges stand twice.
    """
    if not len(graph):
        raise ShapeError("asarray: the graph has no nodes\n  help: openwork.zeros((0, 0), format='csr')")
    return from_scipy(sys.modules["networkx"].to_scipy_sparse_array(graph, weight="weight", format="csr"), policy)


@provides("to_networkx")
def to_networkx(t: Tensor, create_using: Any = None) -> Any:
    """The graph whose adjacency the matrix is: an edge for each element that is not 0, its value as `weight`.

    Parameters
    ----------
    t : Tensor (n, n) of fill value 0; node k is row k
    create_using : networkx's: the kind of graph, by default networkx.DiGraph; networkx.Graph takes A[u, v] and A[v, u]
        for one edge

    Raises ShapeError where the matrix is not square, UnsupportedError where networkx is missing.
    """
    try:
        import networkx
    except ImportError:
        raise UnsupportedError("to_networkx: networkx is not installed\n  help: pip install networkx") from None
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise ShapeError(f"to_networkx: expected a square matrix; got shape {t.shape}\n  help: A @ A.T is square")
    kind = networkx.DiGraph if create_using is None else create_using
    adjacency = to_scipy(t, "csr").copy()
    adjacency.eliminate_zeros()
    return networkx.from_scipy_sparse_array(adjacency, create_using=kind)

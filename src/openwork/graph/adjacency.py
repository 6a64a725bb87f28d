"""A graph of any kind in, its adjacency in compressed rows out: without a copy where it is that already."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ShapeError, Tensor, UnsupportedError, asarray, prune
from ..compiler.coiterate.merge_formats import with_bitmap
from ..integers import integer
from ..storage.buffers import as_array, to_numpy

__all__ = ["Adjacency", "adjacency", "nodes"]

Array = np.ndarray[Any, Any]


class Adjacency(NamedTuple):
    """Compressed rows: the successors of node u are `crd[pos[u] : pos[u + 1]]`, the weights of the edges there."""

    tensor: Tensor
    pos: Array
    crd: Array

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.pos) - 1

    @property
    def work(self) -> int:
        """Nodes and edges."""
        return len(self.pos) + len(self.crd)

    def like(self, x: Array) -> Any:
        """A result in the library of the graph's values."""
        return as_array(x, like=self.tensor.values)


def adjacency(A: Any, operation: str) -> Adjacency:
    """The graph of a square matrix of any format, or of what `asarray` takes.

    An edge is where an element is specified, of whatever value; of formats that store whole blocks, rows or diagonals,
    where the value is not 0. Raises ShapeError, UnsupportedError for a fill value other than 0.
    """
    t = A if isinstance(A, Tensor) else asarray(A)
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise ShapeError(f"{operation}: a graph's matrix is square; got shape {t.shape}")
    if t.fill_value != 0:
        raise UnsupportedError(
            f"{operation}: unspecified elements are {t.fill_value}, which would be edges between all nodes"
            "\n  help: ow.pattern(A) has the same structure and fill value False"
        )
    t = t.detach()
    rows = t.asformat("csr")
    if rows is not t:
        rows = prune(rows) if with_bitmap(t.format) is not None else rows
    return Adjacency(rows, to_numpy(rows._storage.pos[1]), to_numpy(rows._storage.crd[1]))


def nodes(given: Any, n: int, operation: str, name: str) -> Array:
    """One node or several as int64, negative ones counted from the end. Raises IndexError for one that is not there."""
    if isinstance(given, int) or np.ndim(given) == 0:
        several = [given]
    else:
        several = given.tolist() if hasattr(given, "tolist") else list(given)
    found = [integer(x, operation, name, boolean=False) for x in several]
    for x in found:
        if not -n <= x < n:
            raise IndexError(f"{operation}: {name} {x} is out of bounds for a graph of {n} nodes")
    return np.array([x + n if x < 0 else x for x in found], np.int64)

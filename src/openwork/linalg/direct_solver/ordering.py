"""A sparse matrix -> an order of its rows and columns that keeps its factors sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ShapeError, Tensor, UnsupportedError
from ...errors import suggestion
from ...storage.buffers import as_array, to_numpy
from ..operands import matrix, stores_whole_fibres
from .cuthill_mckee import reverse_cuthill_mckee
from .dissection import nested_dissection
from .graph import Graph, adjacency, transposed
from .minimum_degree import column_minimum_degree, minimum_degree

__all__ = ["METHODS", "order_of", "ordering", "structure"]

Array = np.ndarray[Any, Any]

METHODS: dict[str, Callable[[Graph], Array]] = {
    "amd": minimum_degree,
    "nd": nested_dissection,
    "rcm": reverse_cuthill_mckee,
    "natural": lambda graph: np.arange(graph.n, dtype=graph.crd.dtype),
}
"""Orders of the graph of A + A.T by name."""


def structure(t: Tensor) -> Graph:
    """The compressed rows of a matrix of any format, sorted and without duplicates, with indices of one type.

    Zeros of formats that store whole blocks, rows or diagonals are left out.
    """
    csr = t.asformat("csr")
    if stores_whole_fibres(t):
        csr = csr.prune()
    pos, crd = to_numpy(csr.pos(1)), to_numpy(csr.crd(1))
    wide = max(t.shape[0] + t.shape[1], 2 * len(crd)) >= 2**31
    kind = np.int64 if wide else np.int32
    return Graph(np.ascontiguousarray(pos, kind), np.ascontiguousarray(crd, kind))


def order_of(rows: Graph, columns: int, method: str) -> Array:
    """The order of a structure by one of METHODS, or "colamd"."""
    if method == "colamd":
        pos, crd, _ = transposed(rows.pos, rows.crd, columns)
        return column_minimum_degree(rows, Graph(pos, crd))
    return METHODS[method](adjacency(rows.pos, rows.crd))


def ordering(A: Any, method: str = "amd") -> Any:
    """An order p of the rows and columns of a matrix in which its factors have few elements: factor `A[p][:, p]`.

    Parameters
    ----------
    A : Tensor, shape (n, n), any format; only its structure is read, and that of its transpose. Of "colamd" (m, n)
    method : "amd", approximate minimum degree; "nd", nested dissection, better for large meshes of three dimensions;
        "rcm", reverse Cuthill-McKee, for a narrow band; "colamd", the columns of A for LU with row exchanges and QR:
        factor `A[:, p]`; "natural"

    Returns
    -------
    array of integers, shape (n,), in the library of the tensor

    Cost: nearly O(nse) for "rcm"; some multiple of that for "amd" and "colamd"; O(nse log n) for "nd".
    Source: Amestoy, Davis, Duff (1996); George (1973); Hendrickson, Rothberg (1998); Cuthill, McKee (1969).
    Raises ShapeError for a matrix that is not square, except of "colamd".

    See also: factorized, cholesky.

    Examples
    --------
    >>> A = ow.asarray([[4.0, 1, 1], [1, 4, 0], [1, 0, 4]], format="csr")
    >>> sorted(ow.linalg.ordering(A, "amd").tolist())
    [0, 1, 2]
    """
    t = matrix(A, "ordering")
    known = (*METHODS, "colamd")
    if method not in known:
        raise UnsupportedError(
            f"ordering: no method {method!r}; there are {', '.join(known)}{suggestion(method, known)}"
        )
    if t.ndim != 2 or (t.shape[0] != t.shape[1] and method != "colamd"):
        raise ShapeError(
            f"ordering: expected a square matrix; got shape {t.shape}\n  help: 'colamd' orders columns of any matrix"
        )
    rows = structure(t)
    order = order_of(rows, t.shape[1], method)
    return as_array(order.astype(np.int64), like=t.values)

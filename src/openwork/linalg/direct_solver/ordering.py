"""A sparse matrix -> an order of its rows and columns that keeps its factors sparse, or its band narrow.

Source of reverse Cuthill-McKee: E. Cuthill, J. McKee, "Reducing the bandwidth of sparse symmetric matrices" (1969);
A. George, J. W. H. Liu, "An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ShapeError, Tensor, UnsupportedError
from ...errors import suggestion
from ...storage.buffers import as_array, to_numpy
from ..compiled import run
from ..operands import matrix, stores_whole_fibres
from .dissection import nested_dissection
from .graph import Graph, adjacency, transposed
from .minimum_degree import column_minimum_degree, minimum_degree

__all__ = ["METHODS", "order_of", "ordering", "structure"]

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

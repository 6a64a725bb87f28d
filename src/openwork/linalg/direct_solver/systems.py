"""A matrix -> compressed rows as the direct solver takes them; its symmetry, its scales, a transversal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import Tensor
from ...classes import frozen
from ...storage.buffers import to_numpy
from ..operands import compressed_matrix, stored_as
from .graph import Graph, transposed

__all__ = [
    "Mirror",
    "Rows",
    "completed",
    "compressed",
    "coordinates",
    "equilibrated",
    "mirror",
    "rows_of",
    "transversal",
]

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """Compressed rows of a square matrix, sorted and without duplicates, with indices of one type.

    turned : the rows are those of the transpose
    """

    pos: Array
    crd: Array
    values: Array
    turned: bool

    @property
    def n(self) -> int:
        """Rows and columns."""
        return len(self.pos) - 1

    @property
    def graph(self) -> Graph:
        """The structure."""
        return Graph(self.pos, self.crd)

    def product(self, x: Array, trans: str) -> Array:
        """The matrix, its transpose or adjoint, times (n, c)."""
        from scipy.sparse import csr_array

        a = csr_array((self.values, self.crd, self.pos), (self.n, self.n))
        if (trans == "N") != self.turned:
            return np.asarray(a @ x) if trans != "H" else np.conj(a @ np.conj(x))
        return np.asarray(a.T @ x) if trans != "H" else np.conj(a.T @ np.conj(x))


@frozen(slots=False)
class Mirror:
    """Of a structure that is its own transpose, the place of each element's mirror image."""

    place: Array

    def is_hermitian(self, values: Array) -> bool:
        """Whether the matrix is its own adjoint."""
        return bool(np.array_equal(values[self.place], np.conj(values)))

    def asymmetry(self, rows: Rows) -> float:
        """The largest difference of an element and its adjoint one, in rounding errors of the lesser of their rows."""
        difference = np.abs(rows.values - np.conj(rows.values[self.place]))
        if not difference.any():
            return 0.0
        some = np.flatnonzero(np.diff(rows.pos))
        largest = np.zeros(rows.n, difference.dtype)
        largest[some] = np.maximum.reduceat(np.abs(rows.values), rows.pos[some])
        row, col = coordinates(rows)
        least = np.minimum(largest[row], largest[col]) * np.finfo(difference.dtype).eps
        (apart,) = np.nonzero(difference)
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.max(difference[apart] / least[apart]))


def rows_of(t: Tensor, scalar: str) -> Rows:
    """The rows of a matrix of any format, or its columns where these are stored, without a copy where it lies so."""
    return compressed(t, scalar, stored_as(t) == "csc")


def compressed(t: Tensor, scalar: str, turned: bool) -> Rows:
    """The rows of a matrix of any format and shape, those of the transpose where `turned`."""
    s = compressed_matrix(t.T if turned else t, "csr", scalar)._storage
    pos, crd, values = (to_numpy(b, detach=True) for b in (s.pos[1], s.crd[1], s.values))
    kind = np.int64 if max(sum(t.shape), 2 * len(crd)) >= 2**31 else np.int32
    return Rows(np.asarray(pos, kind), np.asarray(crd, kind), np.ascontiguousarray(values), turned)


def completed(rows: Rows) -> Rows:
    """The Hermitian matrix whose lower triangle that of the matrix is: itself where it is that.

    Its structure does not depend on values: zeros that are stored stay.
    """
    mirrored = mirror(rows)
    if mirrored is not None and mirrored.is_hermitian(rows.values):
        return rows
    row, col = coordinates(rows)
    upper = row > col if rows.turned else row < col
    if mirrored is not None:
        out = rows._replace(values=np.where(upper, np.conj(rows.values[mirrored.place]), rows.values))
    else:
        from scipy.sparse import coo_array

        row, col, values = row[~upper], col[~upper], rows.values[~upper]
        beside = row != col
        places = np.concatenate([row, col[beside]]), np.concatenate([col, row[beside]])
        held = coo_array((np.concatenate([values, np.conj(values[beside])]), places), (rows.n, rows.n)).tocsr()
        kind = rows.crd.dtype
        out = Rows(held.indptr.astype(kind), held.indices.astype(kind), held.data, rows.turned)
        row, col = coordinates(out)
    if np.iscomplexobj(out.values):
        on = row == col
        out.values[on] = out.values[on].real
    return out


def coordinates(rows: Rows) -> tuple[Array, Array]:
    """The row and the column of each element, as stored."""
    return np.repeat(np.arange(rows.n, dtype=rows.crd.dtype), np.diff(rows.pos)), rows.crd


def mirror(rows: Rows) -> Mirror | None:
    """The places of mirror images; None where the structure is not symmetric."""
    pos, crd, place = transposed(rows.pos, rows.crd, rows.n)
    same = np.array_equal(pos, rows.pos) and np.array_equal(crd, rows.crd)
    return Mirror(place) if same else None


def equilibrated(rows: Rows, symmetric: bool, passes: int = 4) -> tuple[Array, Array]:
    """Scales of rows and columns, powers of two, with which the largest elements of each are near 1.

    symmetric : the matrix is Hermitian, but for rounding: rows are columns
    Source: D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices" (2001).
    """
    n = rows.n
    row, col = coordinates(rows)
    size = np.abs(rows.values).astype(np.float64)
    (some,) = np.nonzero(np.diff(rows.pos))
    r = np.ones(n)
    c = r if symmetric else np.ones(n)
    for _ in range(passes):
        scaled = size * r[row] * c[col]
        high = np.zeros(n)
        if not symmetric:
            np.maximum.at(high, col, scaled)
            c /= np.sqrt(np.where(high > 0, high, 1.0))
            high[:] = 0
        high[some] = np.maximum.reduceat(scaled, rows.pos[some])
        r /= np.sqrt(np.where(high > 0, high, 1.0))
    return _power_of_two(r), _power_of_two(c)


def _power_of_two(x: Array) -> Array:
    out: Array = np.exp2(np.clip(np.round(np.log2(x)), -500, 500))
    return out


def transversal(rows: Rows, r: Array, c: Array) -> Array | None:
    """Rows to put on the diagonal, one for each column, so that the product of their elements is largest; None: as is.

    Raises LinAlgError where there is no such choice without zeros: the matrix is structurally singular.
    Source: I. S. Duff, J. Koster, "On algorithms for permuting large entries to the diagonal", SIAM J. Matrix Anal.
    Appl. 22 (2001); the matching is SciPy's.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    n = rows.n
    row, col = coordinates(rows)
    size = np.abs(rows.values).astype(np.float64) * r[row] * c[col]
    diagonal = np.zeros(n)
    on = row == col
    diagonal[row[on]] = size[on]
    high = np.zeros(n)
    np.maximum.at(high, col, size)
    if bool(np.all(diagonal >= 0.1 * high)) and bool(np.all(diagonal > 0)):
        return None
    kept = size > 0
    weight = np.log(high[col[kept]]) - np.log(size[kept]) + 1.0
    graph = csr_array((weight, (row[kept], col[kept])), (n, n))
    try:
        first, second = min_weight_full_bipartite_matching(graph)
    except ValueError as error:
        if "no full matching" not in str(error):
            raise
        raise np.linalg.LinAlgError(
            "the matrix is structurally singular: no choice of one element in each row and column has no zero"
            "\n  help: lsqr(A, b) gives the least-squares solution"
        ) from error
    match = np.empty(n, rows.crd.dtype)
    match[second] = first
    return match

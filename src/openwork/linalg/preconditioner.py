"""A square matrix of any format -> compressed rows, and the base of approximate inverses that are made of these.

A preconditioner has two phases: the symbolic one follows from the structure and is kept, the numeric one is done again
by `update(values)`, for the matrices of Newton's method, of time steps, of interior points.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import DTypeError, ShapeError, Tensor, sparse_csr_tensor
from ..storage.buffers import as_array
from ..storage.equal_coordinates import same_structure
from ..storage.recorded import refuse_recorded
from .compiled import run
from .inverse import InverseOperator
from .operands import scipy_matrix, solve_scalar, square

__all__ = ["Preconditioner", "Rows", "compressed_rows", "finite", "pivots", "rows"]

Array = np.ndarray[Any, Any]
P = TypeVar("P", bound="Preconditioner")


class Rows(NamedTuple):
    """Compressed rows, sorted, without duplicates, of a floating-point type: `diag[i]` is where (i, i) is, or -1."""

    pos: Array
    crd: Array
    values: Array
    diag: Array
    scalar: str
    like: Any
    """A tensor's values, whose library results have."""

    @property
    def n(self) -> int:
        """Rows and columns."""
        return len(self.pos) - 1

    @property
    def work(self) -> int:
        """Rows and elements."""
        return len(self.pos) + len(self.crd)

    @property
    def row(self) -> Array:
        """The row of each element."""
        return np.repeat(np.arange(self.n, dtype=self.crd.dtype), np.diff(self.pos))

    def run(self, text: str, work: int, args: list[Any], one: bool = False) -> int:
        """Run a kernel for types of these rows, see `compiled.run`; its status."""
        return run(text, work, args, one=one, status=True, I=self.crd, T=self.scalar)

    def diagonal(self) -> Array:
        """The elements (i, i), 0 where none is stored."""
        padded = np.append(self.values, np.zeros(1, self.values.dtype))
        out: Array = padded[self.diag]
        return out

    def tensor(self, pos: Array, crd: Array, values: Array) -> Tensor:
        """A CSR tensor of the extents of the matrix, in its library."""
        parts = [as_array(x, like=self.like) for x in (pos, crd, values)]
        return sparse_csr_tensor(parts[0], parts[1], parts[2], (self.n, self.n))

    def arrays(self) -> Tensor:
        """The matrix as a CSR tensor over NumPy's buffers."""
        return sparse_csr_tensor(self.pos, self.crd, self.values, (self.n, self.n))


def finite(values: Array, operation: str) -> None:
    """Raise LinAlgError where an element is nan or inf."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError(
            f"{operation}: the matrix has elements that are nan or inf\n  help: ow.where or nan_to_num replaces them"
        )


def rows(t: Tensor, operation: str, known: Rows | None = None) -> Rows:
    """The compressed rows of a square matrix of any format, copied; the index arrays are `known`'s where equal.

    Of formats that store whole blocks, rows or diagonals, zeros are left out.
    """
    scalar = solve_scalar(t) if known is None else known.scalar
    csr = scipy_matrix(t, "csr", scalar).copy()
    csr.sum_duplicates()
    finite(csr.data, operation)
    if known is not None and np.array_equal(csr.indptr, known.pos) and np.array_equal(csr.indices, known.crd):
        return known._replace(values=csr.data, like=t.values)
    return compressed_rows(csr.indptr, csr.indices, csr.data, scalar, t.values)


def compressed_rows(pos: Array, crd: Array, values: Array, scalar: str, like: Any) -> Rows:
    """Rows of these buffers, with the places of the diagonal."""
    n, index_dtype = len(pos) - 1, crd.dtype
    row = np.repeat(np.arange(n, dtype=index_dtype), np.diff(pos))
    on_diagonal = np.flatnonzero(row == crd)
    diag = np.full(n, -1, index_dtype)
    diag[row[on_diagonal]] = on_diagonal
    return Rows(pos.astype(index_dtype, copy=False), crd, values, diag, scalar, like)


def pivots(r: Rows, operation: str, definite: bool) -> Array:
    """The diagonal. Raises LinAlgError with the row where it is 0, or not positive of what has to be definite."""
    diagonal = r.diagonal()
    bad = np.flatnonzero(~(diagonal.real > 0) | (diagonal.imag != 0) if definite else diagonal == 0)
    if bad.size:
        i = int(bad[0])
        raise np.linalg.LinAlgError(
            f"{operation}: element ({i}, {i}) of the diagonal is {diagonal[i]}; expected "
            + ("a positive number: the matrix is not positive definite\n  help: ilu0(A) takes others" if definite
               else "another number than 0\n  help: spilu(A) exchanges rows")
        )  # fmt: skip
    return diagonal


class Preconditioner(InverseOperator):
    """An approximate inverse of a matrix, made anew for other values of the same structure by `update`.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> M = ow.linalg.ic0(L)
    >>> np.allclose(M.update(2 * L.values) @ np.ones(4), ow.linalg.ic0(2 * L) @ np.ones(4))
    True
    """

    __slots__ = ("_rows", "_tensor")
    operation = "preconditioner"

    def __init__(self, a: Any) -> None:
        """Both phases, for a matrix."""
        t = square(a, self.operation)
        if t.ndim != 2:
            raise ShapeError(
                f"{self.operation}: expected one matrix; got shape {t.shape}\n  help: one call for each of a stack"
            )
        refuse_recorded(t.values)
        r = rows(t, self.operation)
        super().__init__((r.n, r.n), r.scalar)
        self._tensor, self._rows = t, r
        self._analyse(r)
        self._compute(r)

    def _analyse(self, r: Rows) -> None:
        """The symbolic phase: what follows from the structure."""

    def _compute(self, r: Rows) -> None:
        """The numeric phase."""
        raise NotImplementedError

    def update(self: P, values: Any) -> P:
        """The numeric phase for other values of the same structure; this object, which then stands for that matrix.

        values : a Tensor of the same structure, or an array of the stored elements in their order

        Raises ShapeError for another structure, DTypeError for complex values where these were real, LinAlgError as the
        function that made it; it stands for the matrix before then.
        """
        t = values if isinstance(values, Tensor) else self._tensor.with_values(values)
        refuse_recorded(t.values)
        if solve_scalar(t)[0] == "c" and self.scalar[0] != "c":
            raise DTypeError(
                f"update: the values were {self.dtype}; got {t.dtype}\n  help: {self.operation}(A) of the new matrix"
            )
        if not same_structure(t._storage, self._tensor._storage):
            raise ShapeError(
                f"update: the values are of another structure\n  help: {self.operation}(A) analyses that one"
            )
        r = rows(t, self.operation, self._rows)
        if r.pos is not self._rows.pos:  # zeros of blocks or diagonals stand elsewhere
            self._analyse(r)
        self._compute(r)
        self._tensor, self._rows = t, r
        return self

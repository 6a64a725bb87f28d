"""A square matrix of any format -> an approximate inverse for iterative solvers: Jacobi, SSOR, IC(0), ILU(0)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import ShapeError
from ..interop.layouts import sparse_csr_tensor
from ..reals import real
from ..storage.buffers import as_array
from ..tensor.tensor import Tensor
from .inverse import InverseOperator
from .kernels import kernel
from .operands import scipy_matrix, solve_scalar, square

__all__ = [
    "ILU0",
    "SSOR",
    "IncompleteCholesky",
    "Jacobi",
    "Rows",
    "definite_diagonal",
    "finite",
    "ic0",
    "ilu0",
    "jacobi",
    "rows",
    "ssor",
]

Array = np.ndarray[Any, Any]


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

    def diagonal(self) -> Array:
        """The elements (i, i), 0 where none is stored."""
        padded = np.append(self.values, np.zeros(1, self.values.dtype))
        out: Array = padded[self.diag]
        return out

    def tensor(self, pos: Array, crd: Array, values: Array) -> Tensor:
        """A CSR tensor of the extents of the matrix, in its library."""
        parts = [as_array(x, like=self.like) for x in (pos, crd, values)]
        return sparse_csr_tensor(parts[0], parts[1], parts[2], (self.n, self.n))


def finite(values: Array, operation: str) -> None:
    """Raise LinAlgError where an element is nan or inf."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError(
            f"{operation}: the matrix has elements that are nan or inf\n  help: ow.where or nan_to_num replaces them"
        )


def rows(a: Any, operation: str) -> Rows:
    """The compressed rows of a square matrix of any format, copied."""
    t = square(a, operation)
    if t.ndim != 2:
        raise ShapeError(f"{operation}: expected one matrix; got shape {t.shape}\n  help: one call for each of a stack")
    scalar = solve_scalar(t)
    csr = scipy_matrix(t, "csr", scalar).copy()
    csr.sum_duplicates()
    finite(csr.data, operation)
    n, index_dtype = t.shape[0], csr.indices.dtype
    row = np.repeat(np.arange(n, dtype=index_dtype), np.diff(csr.indptr))
    on_diagonal = np.flatnonzero(row == csr.indices)
    diag = np.full(n, -1, index_dtype)
    diag[row[on_diagonal]] = on_diagonal
    return Rows(csr.indptr.astype(index_dtype), csr.indices, csr.data, diag, scalar, t.values)


def _pivots(r: Rows, operation: str, definite: bool) -> Array:
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


def definite_diagonal(r: Rows, operation: str) -> None:
    """Raise LinAlgError, with the row, where the diagonal has an element that is not positive."""
    _pivots(r, operation, True)


class Jacobi(InverseOperator):
    """The inverse of a matrix's diagonal."""

    __slots__ = ("inverse",)

    def __init__(self, r: Rows) -> None:
        super().__init__((r.n, r.n), r.scalar)
        self.inverse = (1 / _pivots(r, "jacobi", False)).astype(r.values.dtype)

    def _solve(self, right: Array, trans: str) -> Array:
        right *= (np.conj(self.inverse) if trans == "H" else self.inverse)[:, None]
        return right


class SSOR(InverseOperator):
    """The inverse of `w / (2 - w) * (D / w + L) @ inv(D) @ (D / w + U)`, of a matrix L + D + U."""

    __slots__ = ("_rows", "_transposed", "omega")

    def __init__(self, r: Rows, omega: float) -> None:
        super().__init__((r.n, r.n), r.scalar)
        _pivots(r, "ssor", False)
        self._rows, self.omega = r, omega
        self._transposed: SSOR | None = None

    def _solve(self, right: Array, trans: str) -> Array:
        if trans == "H":
            return np.conjugate(self._solve(np.conj(right), "T"))
        if trans == "T":
            if self._transposed is None:
                r = self._rows
                self._transposed = SSOR(rows(r.tensor(r.pos, r.crd, r.values).detach().T, "ssor"), self.omega)
            return self._transposed._solve(right, "N")
        r, k = self._rows, right.shape[1]
        _call("ssor", r, k, r.work * k, r.pos, r.crd, r.values, r.diag, right, self.omega, r.n, k)
        return right


class IncompleteCholesky(InverseOperator):
    """The inverse of `L @ L.H`, where `L` has the structure of the matrix's lower triangle."""

    __slots__ = ("_rows", "shift")

    def __init__(self, r: Rows, shift: float) -> None:
        super().__init__((r.n, r.n), r.scalar)
        self._rows, self.shift = r, shift

    @property
    def L(self) -> Tensor:
        """The factor, in CSR."""
        r = self._rows
        return r.tensor(r.pos, r.crd, r.values)

    @property
    def nse(self) -> int:
        """Elements of the factor."""
        return len(self._rows.crd)

    def _solve(self, right: Array, trans: str) -> Array:
        if trans == "T" and self._rows.values.dtype.kind == "c":
            return np.conjugate(self._solve(np.conj(right), "N"))
        r, k = self._rows, right.shape[1]
        _call("ic_solve", r, k, 2 * r.work * k, r.pos, r.crd, r.values, right, r.n, k)
        return right


class ILU0(InverseOperator):
    """The inverse of `L @ U`, which have the structure of the matrix; the diagonal of L is ones."""

    __slots__ = ("_rows",)

    def __init__(self, r: Rows) -> None:
        super().__init__((r.n, r.n), r.scalar)
        self._rows = r

    @property
    def nse(self) -> int:
        """Elements of both factors, without the ones of L."""
        return len(self._rows.crd)

    @property
    def L(self) -> Tensor:
        """The lower factor with its ones, in CSR."""
        return self._part(lower=True)

    @property
    def U(self) -> Tensor:
        """The upper factor, in CSR."""
        return self._part(lower=False)

    def _part(self, lower: bool) -> Tensor:
        from scipy.sparse import csr_array, eye_array, tril, triu

        r = self._rows
        csr = csr_array((r.values, r.crd, r.pos), self.shape)
        part = (tril(csr, -1, "csr") + eye_array(r.n, dtype=csr.dtype) if lower else triu(csr, 0, "csr")).tocsr()
        part.sort_indices()
        return r.tensor(part.indptr, part.indices, part.data)

    def _solve(self, right: Array, trans: str) -> Array:
        r, k = self._rows, right.shape[1]
        name = "lu_solve" if trans == "N" else "lu_solve_transposed"
        values = np.conj(r.values) if trans == "H" else r.values
        _call(name, r, k, r.work * k, r.pos, r.crd, values, r.diag, right, r.n, k)
        return right


def _call(name: str, r: Rows, k: int, work: int, *args: Any) -> int:
    """Run a kernel over rows; its status."""
    executable = kernel(name, r.crd.dtype, r.scalar, k == 1)
    status: int = executable.run_sized(work, executable.pack(args), status=True)
    return status


def jacobi(a: Any, /) -> Jacobi:
    """The Jacobi preconditioner: the inverse of the diagonal of a square matrix of any format.

    Raises numpy.linalg.LinAlgError, with the row, where the diagonal has a 0.

    Cost: O(nse) once; O(n) for each application.
    See also: ssor, ic0, cg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> M = ow.linalg.jacobi(L)
    >>> M @ np.ones(4)
    array([0.5, 0.5, 0.5, 0.5])
    """
    return Jacobi(rows(a, "jacobi"))


def ssor(a: Any, /, omega: float = 1.0) -> SSOR:
    """The preconditioner of symmetric successive over-relaxation; `omega` of 1 is symmetric Gauss-Seidel.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format
    omega : between 0 and 2

    Returns
    -------
    an operator, Hermitian and positive definite where `a` is; nothing is factorised

    Cost: a forward and a backward sweep for each right side.
    Raises numpy.linalg.LinAlgError, with the row, where the diagonal has a 0.

    See also: jacobi, ic0, amg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.cg(L, b, M=ow.linalg.ssor(L, 1.2))
    >>> info
    0
    """
    omega = real(omega, "ssor", "omega")
    if not 0 < omega < 2:
        raise ValueError(f"ssor: expected omega between 0 and 2; got {omega}\n  help: 1.0 is Gauss-Seidel")
    return SSOR(rows(a, "ssor"), omega)


def ic0(a: Any, /, shift: float = 0.0) -> IncompleteCholesky:
    """The incomplete Cholesky factorisation IC(0) of a Hermitian positive definite matrix, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format; only its lower triangle is read
    shift : add this multiple of the diagonal to it first, which keeps pivots positive (Manteuffel)

    Returns
    -------
    an operator with `L`: `L @ L.H` is the matrix at the elements that it has, where `shift` is 0

    Cost: for each element one merge of two rows.
    Raises numpy.linalg.LinAlgError, with the row, where a pivot is not positive: the matrix is not positive definite,
    or is and its incomplete factor does not exist, as of many stiffness matrices.

    See also: ilu0, ssor, amg, cg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> M = ow.linalg.ic0(L)
    >>> (M @ b).shape
    (4,)
    """
    shift = real(shift, "ic0", "shift")
    r = rows(a, "ic0")
    _pivots(r, "ic0", True)
    lower = np.repeat(np.arange(r.n), np.diff(r.pos)) >= r.crd
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lower)])
    part = r._replace(pos=counts[r.pos].astype(r.pos.dtype), crd=r.crd[lower], values=r.values[lower])
    ends = part.pos[1:] - 1
    part.values[ends] = part.values[ends] * (1 + shift)
    status = _call("ic0", part, 1, part.work * 8, part.pos, part.crd, part.values, r.n) if r.n else 0
    if status:
        raise np.linalg.LinAlgError(
            f"ic0: pivot {status - 2} is not positive\n  expected a positive definite matrix with an incomplete factor"
            f"\n  help: ic0(A, shift={max(10 * shift, 0.001):g}) adds to the diagonal; ssor(A) needs no factor"
        )
    return IncompleteCholesky(part, shift)


def ilu0(a: Any, /) -> ILU0:
    """The incomplete LU factorisation ILU(0) of a square matrix, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format

    Returns
    -------
    an operator with `L` and `U`: `L @ U` is the matrix at the elements that it has

    Cost: for each element below the diagonal one row. Rows are not exchanged: `spilu` does that.
    Raises numpy.linalg.LinAlgError, with the row, where a pivot is 0.

    See also: ic0, spilu, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> M = ow.linalg.ilu0(L)
    >>> (M @ b).shape
    (4,)
    """
    r = rows(a, "ilu0")
    _pivots(r, "ilu0", False)
    place = np.zeros(r.n, np.int64)
    status = _call("ilu0", r, 1, r.work * 8, r.pos, r.crd, r.values, r.diag, place, r.n) if r.n else 0
    if status:
        raise np.linalg.LinAlgError(f"ilu0: pivot {status - 2} is 0\n  help: spilu(A) exchanges rows")
    return ILU0(r)

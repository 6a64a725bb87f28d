"""A square matrix of any format -> an approximate inverse for iterative solvers: Jacobi, SSOR, IC(0)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Tensor
from ..reals import real
from .chebyshev import check_symmetry
from .kernels import IC0, IC_SOLVE, SSOR_SWEEPS
from .preconditioner import Preconditioner, Rows, pivots

__all__ = ["SSOR", "IncompleteCholesky", "Jacobi", "ic0", "jacobi", "ssor"]

Array = np.ndarray[Any, Any]


class Jacobi(Preconditioner):
    """The inverse of a matrix's diagonal."""

    __slots__ = ("inverse",)
    operation = "jacobi"

    def _compute(self, r: Rows) -> None:
        self.inverse = (1 / pivots(r, "jacobi", False)).astype(r.values.dtype)

    def _solve(self, right: Array, trans: str) -> Array:
        right *= (np.conj(self.inverse) if trans == "H" else self.inverse)[:, None]
        return right


class SSOR(Preconditioner):
    """The inverse of `w / (2 - w) * (D / w + L) @ inv(D) @ (D / w + U)`, of a matrix L + D + U."""

    __slots__ = ("_transposed", "omega")
    operation = "ssor"

    def __init__(self, a: Any, omega: float) -> None:
        self.omega = omega
        super().__init__(a)

    def _compute(self, r: Rows) -> None:
        pivots(r, "ssor", False)
        self._transposed: SSOR | None = None

    def _solve(self, right: Array, trans: str) -> Array:
        if trans == "H":
            return np.conjugate(self._solve(np.conj(right), "T"))
        r, k = self._rows, right.shape[1]
        if trans == "T":
            if self._transposed is None:
                self._transposed = SSOR(r.tensor(r.pos, r.crd, r.values).detach().T, self.omega)
            return self._transposed._solve(right, "N")
        r.run(SSOR_SWEEPS, r.work * k, [r.pos, r.crd, r.values, r.diag, right, self.omega, r.n, k], k == 1)
        return right


class IncompleteCholesky(Preconditioner):
    """The inverse of `L @ L.H`, where `L` has the structure of the matrix's lower triangle."""

    __slots__ = ("_factor", "_lower", "shift")
    operation = "ic0"

    def __init__(self, a: Any, shift: float) -> None:
        self.shift = shift
        super().__init__(a)

    @property
    def L(self) -> Tensor:
        """The factor, in CSR."""
        r = self._factor
        return r.tensor(r.pos, r.crd, r.values)

    @property
    def nse(self) -> int:
        """Elements of the factor."""
        return len(self._factor.crd)

    def _analyse(self, r: Rows) -> None:
        lower = r.row >= r.crd
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lower)])
        self._lower = np.flatnonzero(lower)
        self._factor = r._replace(pos=ends[r.pos].astype(r.pos.dtype), crd=r.crd[lower])

    def _compute(self, r: Rows) -> None:
        pivots(r, "ic0", True)
        part = self._factor._replace(values=r.values[self._lower], like=r.like)
        ends = part.pos[1:] - 1
        part.values[ends] = part.values[ends] * (1 + self.shift)
        status = part.run(IC0, part.work * 8, [part.pos, part.crd, part.values, r.n]) if r.n else 0
        if status:
            check_symmetry(r, "ic0")  # whose remedies are others
            raise np.linalg.LinAlgError(
                f"ic0: pivot {status - 2} is not positive\n  expected a positive definite matrix with an incomplete"
                f" factor\n  help: ic0(A, shift={max(10 * self.shift, 0.001):g}) adds to the diagonal; ssor(A) needs no"
                " factor"
            )
        self._factor = part

    def _solve(self, right: Array, trans: str) -> Array:
        if trans == "T" and self._factor.values.dtype.kind == "c":
            return np.conjugate(self._solve(np.conj(right), "N"))
        r, k = self._factor, right.shape[1]
        r.run(IC_SOLVE, 2 * r.work * k, [r.pos, r.crd, r.values, right, r.n, k], k == 1)
        return right


def jacobi(a: Any, /) -> Jacobi:
    """The Jacobi preconditioner: the inverse of the diagonal of a square matrix of any format.

    Returns
    -------
    operator (n, n) with `update(values)`; hand it to a solver as `M`

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
    return Jacobi(a)


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
    return SSOR(a, omega)


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
    return IncompleteCholesky(a, real(shift, "ic0", "shift"))

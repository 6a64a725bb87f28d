"""Compressed rows -> factors of other libraries, where installed: PARDISO by pypardiso, MUMPS by python-mumps."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import UnsupportedError
from .direct_solver.systems import Rows, coordinates, mirror

__all__ = ["Mumps", "Pardiso"]

Array = np.ndarray[Any, Any]

DEFINITE, INDEFINITE, UNSYMMETRIC = 2, -2, 11
"""PARDISO's types of real matrices."""


class Pardiso:
    """PARDISO's factors of compressed rows of float64; `factor` computes them anew."""

    kind = "pardiso"

    def __init__(self, rows: Rows, scalar: str) -> None:
        if scalar != "f64":
            raise UnsupportedError(
                f"pardiso: pypardiso takes float64; got {scalar}\n  help: kind='lu', or A.astype('float64')"
            )
        self.solver: Any = None
        self.factor(rows)

    @property
    def nse(self) -> int:
        """Elements of the factors, as PARDISO counts them."""
        return int(self.solver.get_iparm(18))

    def factor(self, rows: Rows) -> None:
        """Factor a symmetric matrix by its upper triangle, another as it is. Raises LinAlgError where PARDISO does."""
        from scipy.sparse import csr_matrix, triu

        a = csr_matrix((rows.values, rows.crd, rows.pos), (rows.n, rows.n))
        mirrored = mirror(rows)
        row, col = coordinates(rows)
        on = rows.values[row == col]
        kinds = [UNSYMMETRIC]
        if len(on) == rows.n and mirrored is not None and mirrored.is_hermitian(rows.values):
            a = csr_matrix(triu(a))
            kinds = [DEFINITE, INDEFINITE] if bool(np.all(on > 0)) else [INDEFINITE]
        for number, kind in enumerate(kinds):
            try:
                return self._factor(a, kind)
            except (ValueError, _error_type()) as error:
                if number + 1 == len(kinds):
                    raise np.linalg.LinAlgError(f"pardiso: {error}\n  help: kind='superlu' exchanges rows") from error
        return None

    def _factor(self, a: Any, kind: int) -> None:
        self.release()
        self.solver = _pypardiso().PyPardisoSolver(mtype=kind)
        self.symmetric, self.matrix = kind != UNSYMMETRIC, a
        self.solver.factorize(a)

    def solve(self, right: Array, trans: str) -> Array:
        """Solutions of right sides (n, c) with the rows or their transpose."""
        a = self.matrix if trans == "N" or self.symmetric else self._transposed()
        return np.asarray(self.solver.solve(a, np.asfortranarray(right))).reshape(right.shape)

    def _transposed(self) -> Any:
        from scipy.sparse import csc_matrix

        a = self.matrix
        return csc_matrix((a.data, a.indices, a.indptr), a.shape)

    def slogdet(self) -> tuple[Any, Any]:
        """PARDISO gives no determinant."""
        raise UnsupportedError("pardiso gives no determinant\n  help: kind='cholesky', 'ldl' or 'lu'")

    def release(self) -> None:
        """Free what PARDISO holds."""
        if self.solver is not None:
            self.solver.free_memory(everything=True)
            self.solver = None

    def __del__(self) -> None:
        if getattr(self, "solver", None) is not None:
            self.release()


def _pypardiso() -> Any:
    try:
        import pypardiso
    except ImportError as error:
        raise UnsupportedError(
            f"kind='pardiso' needs pypardiso: {error}\n  help: pip install pypardiso; kind='auto' needs nothing"
        ) from error
    return pypardiso


def _error_type() -> type[Exception]:
    from pypardiso.pardiso_wrapper import PyPardisoError

    found: type[Exception] = PyPardisoError
    return found


TRANSPOSED, DETERMINANT = 9, 33
"""MUMPS's options ICNTL: 1 solves with the matrix, others with its transpose; 1 computes the determinant."""
MANTISSA, EXPONENT = 12, 34
"""Where MUMPS leaves the determinant: RINFOG 12, 13 of complex ones, times two to the power of INFOG 34."""
ENTRIES = 29


class Mumps:
    """MUMPS's factors of compressed rows; `factor` computes them anew, and keeps the analysis."""

    kind = "mumps"

    def __init__(self, rows: Rows) -> None:
        self.context = _mumps().Context()
        self.symmetric = False
        self.factor(rows)

    @property
    def nse(self) -> int:
        """Elements of the factors, as MUMPS counts them."""
        return int(self.context.mumps_instance.infog[ENTRIES])

    def factor(self, rows: Rows) -> None:
        """Factor a symmetric matrix by its upper triangle, another as it is. Raises LinAlgError where MUMPS does."""
        from scipy.sparse import coo_array, csr_array

        a = coo_array(csr_array((rows.values, rows.crd, rows.pos), (rows.n, rows.n)))
        mirrored = mirror(rows)
        symmetric = mirrored is not None and bool(np.array_equal(rows.values[mirrored.place], rows.values))
        context = self.context
        again = bool(context.analyzed) and symmetric == self.symmetric
        if not again:
            self.context = context = _mumps().Context()
        self.symmetric = symmetric
        try:
            context.set_matrix(a, symmetric=symmetric)
            context.mumps_instance.icntl[DETERMINANT] = 1
            context.factor(reuse_analysis=again)
        except _mumps().MUMPSError as error:
            text = f"mumps: the matrix is singular: {error}" if error.error in (-6, -10) else f"mumps: {error}"
            raise np.linalg.LinAlgError(f"{text}\n  help: lsqr(A, b) gives the least-squares solution") from error

    def solve(self, right: Array, trans: str) -> Array:
        """Solutions of right sides (n, c) with the rows, their transpose or adjoint."""
        if trans == "H":
            return np.conj(self.solve(np.conj(right), "T"))
        self.context.mumps_instance.icntl[TRANSPOSED] = 1 if trans == "N" else 0
        return np.asarray(self.context.solve(np.array(right, order="F"))).reshape(right.shape)

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinant."""
        m = self.context.mumps_instance
        mantissa = m.rinfog[MANTISSA] + (1j * m.rinfog[MANTISSA + 1] if self.context.dtype in "cz" else 0)
        size = abs(mantissa)
        return mantissa / size, np.log(size) + m.infog[EXPONENT] * np.log(2.0)


def _mumps() -> Any:
    try:
        import mumps
    except ImportError as error:
        raise UnsupportedError(
            f"kind='mumps' needs python-mumps, with the library MUMPS: {error}"
            "\n  help: pip install --no-binary python-mumps 'python-mumps>=0.0.4' builds it for NumPy 2 over the"
            " libmumps of the system (libmumps-seq-dev in Debian); kind='auto' needs nothing"
        ) from error
    return mumps

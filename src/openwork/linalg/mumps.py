"""Compressed rows -> factors of MUMPS, by python-mumps, where that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import UnsupportedError
from .direct_solver.systems import Rows, mirror

__all__ = ["Mumps"]

Array = np.ndarray[Any, Any]

TRANSPOSED, DETERMINANT = 9, 33
"""MUMPS's options ICNTL: 1 solves with the matrix, others with its transpose; 1 computes the determinant."""
MANTISSA, EXPONENT = 12, 34
"""Where MUMPS leaves the determinant: RINFOG 12, 13 of complex ones, times two to the power of INFOG 34."""
ENTRIES = 29


class Mumps:
    """MUMPS's factors of compressed rows; `factor` computes them anew, and keeps the analysis."""

    kind = "mumps"

    def __init__(self, rows: Rows) -> None:
        self.context = _library().Context()
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
            self.context = context = _library().Context()
        self.symmetric = symmetric
        try:
            context.set_matrix(a, symmetric=symmetric)
            context.mumps_instance.icntl[DETERMINANT] = 1
            context.factor(reuse_analysis=again)
        except _library().MUMPSError as error:
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


def _library() -> Any:
    try:
        import mumps
    except ImportError as error:
        raise UnsupportedError(
            f"kind='mumps' needs python-mumps, with the library MUMPS: {error}"
            "\n  help: pip install --no-binary python-mumps 'python-mumps>=0.0.4' builds it for NumPy 2 over the"
            " libmumps of the system (libmumps-seq-dev in Debian); kind='auto' needs nothing"
        ) from error
    return mumps

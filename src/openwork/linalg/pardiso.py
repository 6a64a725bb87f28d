"""Compressed rows -> factors of MKL's PARDISO, by pypardiso, where that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import UnsupportedError
from .direct_solver.systems import Rows, coordinates, mirror

__all__ = ["Pardiso"]

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
        self.solver = _library().PyPardisoSolver(mtype=kind)
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


def _library() -> Any:
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

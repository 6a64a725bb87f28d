"""A square matrix -> incomplete LU factors: ILU(0), ILU(k) by levels of fill, ILUT by a threshold.

Their symbolic phase finds the elements that the factors have; the numeric one is Gaussian elimination at these alone.
Source: Y. Saad, Iterative methods for sparse linear systems (2003), chapter 10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Tensor
from ..integers import integer
from ..reals import real
from .kernels import FILL_LEVELS, ILU0, LU_SOLVE, LU_SOLVE_TRANSPOSED, THRESHOLD_LU
from .preconditioner import Preconditioner, Rows, pivots

__all__ = ["IncompleteLU", "ilu0", "iluk", "ilut"]

Array = np.ndarray[Any, Any]

_OVERFLOW = 1
"""The status of a kernel whose factors have more elements than there was room for."""
_ROOM = 4
"""Elements of factors that there is room for at first, in elements of the matrix."""


class IncompleteLU(Preconditioner):
    """The inverse of `L @ U` for sparse triangular factors; the diagonal of L is ones.

    Examples
    --------
    >>> M = ow.linalg.ilu0(ow.asarray([[4.0, 1.0], [1.0, 2.0]], format="csr"))
    >>> (M.L @ M.U).to_numpy().tolist(), M.nse
    ([[4.0, 1.0], [1.0, 2.0]], 4)
    """

    __slots__ = ("_factors", "_places")
    operation = "ilu0"

    @property
    def nse(self) -> int:
        """Elements of both factors, without the ones of L."""
        return len(self._factors.crd)

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

        r = self._factors
        csr = csr_array((r.values, r.crd, r.pos), self.shape)
        part = (tril(csr, -1, "csr") + eye_array(r.n, dtype=csr.dtype) if lower else triu(csr, 0, "csr")).tocsr()
        part.sort_indices()
        return r.tensor(part.indptr, part.indices, part.data)

    def _analyse(self, r: Rows) -> None:
        self._factors, self._places = r, np.arange(len(r.crd))

    def _compute(self, r: Rows) -> None:
        if self.operation == "ilu0":
            pivots(r, "ilu0", False)
        pattern = self._factors
        values = np.zeros(len(pattern.crd), r.values.dtype)
        values[self._places] = r.values
        self._eliminate(pattern._replace(values=values, like=r.like))

    def _eliminate(self, f: Rows) -> None:
        """Factors of the elements of a pattern, in place. Raises LinAlgError with the row of a pivot that is 0."""
        place = np.zeros(f.n, np.int64)
        status = f.run(ILU0, f.work * 8, [f.pos, f.crd, f.values, f.diag, place, f.n]) if f.n else 0
        if status:
            raise np.linalg.LinAlgError(f"{self.operation}: pivot {status - 2} is 0\n  help: spilu(A) exchanges rows")
        self._factors = f

    def _solve(self, right: Array, trans: str) -> Array:
        r, k = self._factors, right.shape[1]
        values = np.conj(r.values) if trans == "H" else r.values
        text = LU_SOLVE if trans == "N" else LU_SOLVE_TRANSPOSED
        r.run(text, r.work * k, [r.pos, r.crd, values, r.diag, right, r.n, k], k == 1)
        return right


class LevelLU(IncompleteLU):
    """ILU(k): elements whose level of fill is at most k."""

    __slots__ = ("level",)
    operation = "iluk"

    def __init__(self, a: Any, level: int) -> None:
        self.level = level
        super().__init__(a)

    def _analyse(self, r: Rows) -> None:
        pos, crd, diag = np.zeros(r.n + 1, np.int64), np.empty(0, r.crd.dtype), np.zeros(r.n, r.crd.dtype)
        room, status = _ROOM * r.work, _OVERFLOW
        while status == _OVERFLOW:
            crd, level = np.empty((2, room), r.crd.dtype)
            words = [r.pos, r.crd, pos, crd, level, diag, self.level, room, r.n]
            status = r.run(FILL_LEVELS, room * 4, words) if r.n else 0
            room *= 2
        crd = crd[: pos[-1]].copy()
        self._factors = Rows(pos.astype(crd.dtype), crd, np.empty(0), diag, r.scalar, r.like)
        inside = np.zeros(len(crd), bool)
        n = np.int64(r.n)
        inside[np.searchsorted(self._factors.row * n + crd, r.row * n + r.crd)] = True
        self._places = np.flatnonzero(inside)


class ThresholdLU(IncompleteLU):
    """ILUT: elements that are large beside their row, so many in each; `update` keeps the places that these have."""

    __slots__ = ("drop_tol", "fill")
    operation = "ilut"

    def __init__(self, a: Any, drop_tol: float, fill: int) -> None:
        self.drop_tol, self.fill = drop_tol, fill
        super().__init__(a)

    def _analyse(self, r: Rows) -> None:
        """Elimination by rows that drops small elements finds the places, and the values too."""
        pos, diag = np.zeros(r.n + 1, np.int64), np.zeros(r.n, r.crd.dtype)
        most = len(r.crd) + (2 * self.fill + 1) * r.n
        room, status = min(_ROOM * r.work, most), _OVERFLOW
        crd, values = np.empty(0, r.crd.dtype), r.values
        while status == _OVERFLOW:
            crd, values = np.empty(room, r.crd.dtype), np.empty(room, r.values.dtype)
            words = [r.pos, r.crd, r.values, pos, crd, values, diag, self.drop_tol, self.fill, room, r.n]
            status = r.run(THRESHOLD_LU, room * 8, words) if r.n else 0
            room = min(2 * room, most)
        if status:
            raise np.linalg.LinAlgError(f"ilut: pivot {status - 2} is 0\n  help: spilu(A) exchanges rows")
        crd, values = crd[: pos[-1]].copy(), values[: pos[-1]].copy()
        self._factors = Rows(pos.astype(crd.dtype), crd, values, diag, r.scalar, r.like)
        n = np.int64(r.n)
        whole, kept = r.row * n + r.crd, self._factors.row * n + crd
        at = np.minimum(np.searchsorted(whole, kept), max(len(whole) - 1, 0))
        self._places = np.where(whole[at] == kept, at, len(whole)) if len(whole) else at

    def _compute(self, r: Rows) -> None:
        if self._rows is r:  # the symbolic phase has made them
            return
        padded = np.append(r.values, np.zeros(1, r.values.dtype))
        self._eliminate(self._factors._replace(values=padded[self._places], like=r.like))


def ilu0(a: Any, /) -> IncompleteLU:
    """The incomplete LU factorisation ILU(0) of a square matrix, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format

    Returns
    -------
    an operator with `L` and `U`: `L @ U` is the matrix at the elements that it has

    Cost: for each element below the diagonal one row. Rows are not exchanged: `spilu` does that.
    Raises numpy.linalg.LinAlgError, with the row, where a pivot is 0.

    See also: iluk, ilut, ic0, spilu, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> M = ow.linalg.ilu0(L)
    >>> (M @ b).shape
    (4,)
    """
    return IncompleteLU(a)


def iluk(a: Any, /, level: int = 1) -> IncompleteLU:
    """The incomplete LU factorisation ILU(k) of a square matrix, by levels of fill, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format
    level : elements that arise from elements of A have level 1, from these 2, and so on; of 0 it is `ilu0`

    Returns
    -------
    an operator with `L` and `U`: `L @ U` is the matrix at the elements that the factors have. `update(values)` keeps
    these elements, which follow from the structure

    Cost: that of the factors' elements, some 1.5 to 3 times those of A for each level. Rows are not exchanged.
    Raises numpy.linalg.LinAlgError, with the row, where a pivot is 0.
    Source: Y. Saad, Iterative methods for sparse linear systems (2003), 10.3.3.

    See also: ilu0, ilut, spilu, gmres.

    Examples
    --------
    >>> line = ow.diags_array([-1.0, 4.0, -1.0], offsets=[-3, 0, 1], shape=(9, 9), format="csr")
    >>> [ow.linalg.iluk(line, k).nse for k in range(3)]
    [23, 29, 35]
    """
    level = integer(level, "iluk", "level")
    if level < 0:
        raise ValueError(f"iluk: expected a level of 0 or more; got {level}")
    return LevelLU(a, level)


def ilut(a: Any, /, drop_tol: float = 1e-3, fill: int = 10) -> IncompleteLU:
    """The incomplete LU factorisation ILUT of a square matrix, by a threshold, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format
    drop_tol : elements of the factors below this multiple of their row's norm in A are dropped
    fill : the most elements that a row of L, and one of U, has beyond those of A; the largest are kept

    Returns
    -------
    an operator with `L` and `U`. `update(values)` eliminates at the elements that were kept for the first values

    Cost: as that of factors of so many elements. Rows are not exchanged: `spilu` does that, on one thread of SuperLU.
    Raises numpy.linalg.LinAlgError, with the row, where a pivot is 0.
    Source: Y. Saad, "ILUT: a dual threshold incomplete LU factorization", Numer. Linear Algebra Appl. 1 (1994).

    See also: iluk, ilu0, spilu, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50), format="csr")
    >>> M = ow.linalg.ilut(L)  # of a tridiagonal matrix the factors are complete
    >>> np.allclose(L @ (M @ np.ones(50)), 1)
    True
    """
    drop_tol, fill = real(drop_tol, "ilut", "drop_tol"), integer(fill, "ilut", "fill")
    if not drop_tol >= 0 or fill < 0:
        raise ValueError(f"ilut: expected drop_tol and fill of 0 or more; got {drop_tol} and {fill}")
    return ThresholdLU(a, drop_tol, fill)

"""A sparse matrix of any shape -> its QR factorisation, as an object that gives least-squares solutions."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import DTypeError, ShapeError, Tensor
from ..progress import Passes
from ..reals import real
from ..runtime.gradient_hook import rule, tracked
from .direct_solver.orthogonal import Orthogonal, RowPlan, analysed
from .direct_solver.systems import Rows, compressed
from .inverse import InverseOperator, check_transposition
from .operands import kept_with_structure, solve_scalar, value_buffers
from .preconditioner import finite

__all__ = ["LeastSquares"]

Array = np.ndarray[Any, Any]

NEGLIGIBLE = 20.0
"""Rounding errors of a column, of the size of the largest one, that the remainder of one that depends on others has."""


class LeastSquares(InverseOperator):
    """The QR factorisation of a matrix (m, n), to solve least-squares problems with again, and again with other values.

    `solve(b)` or a call of it takes a vector (m,) or right sides (m, k) and gives x for which |A x - b| is least, the
    shortest of them where the rank is m; for trans="T" or "H" that of A.T or A.H. `rank` is the numerical one; where it
    is less than m and n, x is a basic solution: 0 for columns that depend on others, and has no gradients.
    `update(values)` keeps the symbolic phase, `nse` counts the elements of R and of the reflections that are Q.

    Examples
    --------
    >>> F = ow.linalg.factorized(ow.asarray([[1.0, 0], [1, 1], [1, 2]], format="csr"), "qr")
    >>> F.rank, np.round(F(np.array([1.0, 3, 5])), 12).tolist()
    (2, [1.0, 2.0])
    """

    __slots__ = ("_factors", "_plan", "_rows", "_tensor", "_tolerance", "_updates")
    kind = "qr"

    def __init__(
        self, a: Tensor, ordering: Any = "auto", tolerance: float | None = None, passes: Passes | None = None
    ) -> None:  # fmt: skip
        super().__init__(a.shape, solve_scalar(a))
        self._tensor, self._updates = a, 0
        self._tolerance = None if tolerance is None else real(tolerance, "factorized", "tolerance")
        self._rows = self._read(a)
        passes = passes or Passes()
        passes.begin("qr: symbolic phase")
        self._plan = self._analysed(ordering)
        passes.begin("qr: numeric phase")
        self._factors = Orthogonal(self._plan, self._rows.n, self.scalar)
        self._factor(self._rows)

    def _read(self, t: Tensor) -> Rows:
        """The rows of the matrix, or of its transpose where that has more."""
        return compressed(t.detach(), self.scalar, t.shape[0] < t.shape[1])

    def _analysed(self, ordering: Any) -> RowPlan:
        rows, columns = self._rows, min(self.shape)
        if not isinstance(ordering, str):
            return analysed(rows.graph, columns, ordering)
        found: RowPlan = kept_with_structure(
            self._tensor, ("rows of QR", ordering), rows.graph, lambda: analysed(rows.graph, columns, ordering)
        )
        return found

    def _factor(self, rows: Rows) -> None:
        finite(rows.values, "factorized")
        squares = np.bincount(rows.crd, np.abs(rows.values).astype(np.float64) ** 2, min(self.shape))
        tolerance = self._tolerance
        if tolerance is None:
            tolerance = NEGLIGIBLE * np.sqrt(sum(self.shape)) * float(np.finfo(self.dtype).eps)
        self._factors.factor(rows.values, tolerance * float(np.sqrt(squares.max(initial=0.0))))

    @property
    def rank(self) -> int:
        """The numerical rank."""
        return self._factors.rank

    @property
    def nse(self) -> int:
        """Elements of R and of the reflections that are Q."""
        return self._factors.nse

    @property
    def symbolic(self) -> RowPlan:
        """The symbolic phase: `symbolic.memory()`, and `symbolic.symbolic`, that of A.H @ A."""
        return self._plan

    def update(self, values: Any) -> LeastSquares:
        """Factor the matrix of the same structure with other values, a Tensor or the stored elements; this object."""
        t = values if isinstance(values, Tensor) else self._tensor.with_values(values)
        if t.shape != self.shape:
            raise ShapeError(f"update: the matrix has shape {self.shape}; got {t.shape}")
        if solve_scalar(t)[0] == "c" and self.scalar[0] != "c":
            raise DTypeError(f"update: the factors are {self.dtype}; got {t.dtype}\n  help: factorized(A, 'qr')")
        rows, old = self._read(t), self._rows
        if not (np.array_equal(rows.pos, old.pos) and np.array_equal(rows.crd, old.crd)):
            raise ShapeError("update: the values are of another structure\n  help: factorized(A, 'qr') analyses that")
        self._factor(rows)
        self._tensor, self._rows, self._updates = t, rows, self._updates + 1
        return self

    def solve(self, b: Any, trans: str = "N") -> Any:
        """x for which |A x - b| is least, with `A.T` for trans="T", with `A.H` for "H"; of the kind of `b`."""
        check_transposition(trans, "solve")
        if "torch" in sys.modules and tracked(value_buffers(self._tensor, b)):
            return rule("least_squares_solve")(self, self._tensor, b, trans)
        return super().solve(b, trans)

    def _solve(self, right: Array, trans: str) -> Array:
        inner = trans if not self._rows.turned else {"N": "T", "T": "N", "H": "conj"}[trans]
        if inner in ("N", "H"):
            return self._factors.solve(right, inner)
        return np.conj(self._factors.solve(np.conj(right), "H" if inner == "T" else "N"))

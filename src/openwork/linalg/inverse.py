"""The inverse of a matrix as an operator: right sides of any library -> solutions of their kind.

    M.solve(b)    M @ b    M(b)    M.solve(b, "T")        # x with A @ x = b, or A.T @ x = b; A or what stands for it

It spells what SciPy asks of a LinearOperator, so it is a preconditioner of SciPy's solvers and of ours as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import DTypeError, ShapeError
from ..storage.buffers import numpy_dtype
from .operands import right_side

__all__ = ["TRANSPOSES", "InverseOperator", "check_transposition"]

Array = np.ndarray[Any, Any]

TRANSPOSES = ("N", "T", "H")


def check_transposition(trans: Any, operation: str) -> str:
    """ "N", "T" or "H". Raises DTypeError for anything else."""
    if not isinstance(trans, str) or trans not in TRANSPOSES:
        raise DTypeError(
            f"{operation}: trans is 'N', 'T' or 'H'; got: {trans!r}"
            "\n  help: 'T' solves with A.T, 'H' with its conjugate"
        )
    return trans


class InverseOperator:
    """The inverse of a matrix, or an approximation of it, as an operator of shape (n, n).

    `shape` is that of the matrix: of one that is not square solutions have the length of its columns.

    Examples
    --------
    >>> M = ow.linalg.jacobi(ow.asarray([[4.0, 1.0], [1.0, 2.0]], format="csr"))
    >>> isinstance(M, ow.linalg.InverseOperator), (M @ np.array([4.0, 4.0])).tolist()
    (True, [1.0, 2.0])
    """

    __slots__ = ("scalar", "shape")
    ndim = 2
    __array_ufunc__ = None

    def __init__(self, shape: tuple[int, ...], scalar: str) -> None:
        self.shape, self.scalar = tuple(shape), scalar

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.shape}, {self.dtype}>"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return numpy_dtype(self.scalar)

    def _solve(self, right: Array, trans: str) -> Array:
        """The solution for right sides (n, k), C-contiguous, of this scalar type; they may be overwritten."""
        raise NotImplementedError

    def apply(self, right: Array, trans: str = "N") -> Array:
        """`solve` of a NumPy array of shape (n,) or (n, k)."""
        if np.iscomplexobj(right) and self.scalar in ("f32", "f64"):
            return np.asarray(self.apply(right.real, trans) + 1j * self.apply(right.imag, trans))
        shape = (self.shape[1 if trans == "N" else 0], *right.shape[1:])
        if not right.size:
            return np.zeros(shape, self.dtype)
        columns = np.array(right, self.dtype, order="C", ndmin=2)
        columns = columns.reshape(-1, 1) if right.ndim == 1 else columns
        return self._solve(columns, trans).reshape(shape)

    def solve(self, b: Any, trans: str = "N") -> Any:
        """x with `A @ x = b`, `A.T @ x = b` for trans="T", `A.H @ x = b` for "H"; of the kind of `b`.

        `b` is a vector (n,), or right sides (n, k).
        """
        right, to_result = right_side(b, None)
        rows = self.shape[0 if trans == "N" else 1]
        if right.ndim not in (1, 2) or right.shape[0] != rows:
            raise ShapeError(
                f"solve: the matrix has shape {self.shape}, the right side {right.shape}"
                f"\n  expected ({rows},) or ({rows}, k)"
            )
        if right.dtype.kind not in "biufc":
            raise DTypeError(f"solve: expected numbers; got dtype {right.dtype}")
        return to_result(self.apply(right, check_transposition(trans, "solve")))

    def __call__(self, b: Any) -> Any:
        return self.solve(b)

    def __matmul__(self, b: Any) -> Any:
        return self.solve(b)

    def matvec(self, x: Any) -> Any:
        """`solve`, by the name of SciPy's operators."""
        return self.solve(x)

    def rmatvec(self, x: Any) -> Any:
        """`solve` with the conjugate transpose."""
        return self.solve(x, "H")

    matmat, rmatmat = matvec, rmatvec

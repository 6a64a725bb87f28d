"""A Hermitian positive definite matrix -> a polynomial in it that approximates its inverse: products, no substitution.

Source: Y. Saad, Iterative methods for sparse linear systems (2003), 12.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Tensor, matmul
from ..integers import integer
from ..reals import real
from .operands import dense
from .preconditioner import Preconditioner, Rows, pivots

__all__ = ["Chebyshev", "chebyshev", "check_symmetry", "largest_eigenvalue"]

Array = np.ndarray[Any, Any]

_POWER_STEPS = 12
"""Steps of the power method for the largest eigenvalue of `inv(D) @ A`, which is meant to be right to a tenth."""
_MARGIN = 1.05
"""What it is multiplied by: the power method comes from below."""


class Chebyshev(Preconditioner):
    """A Chebyshev polynomial in `inv(D) @ A`, Hermitian and positive definite as the matrix is.

    `interval` holds the eigenvalues that it makes small errors at, of which the largest is estimated.
    """

    __slots__ = ("_inverse", "_matrix", "degree", "interval", "ratio")
    operation = "chebyshev"

    def __init__(self, a: Any, degree: int, ratio: float) -> None:
        self.degree, self.ratio = degree, ratio
        super().__init__(a)

    def _compute(self, r: Rows) -> None:
        diagonal = pivots(r, "chebyshev", True).real
        check_symmetry(r, "chebyshev")
        self._matrix = r.arrays()
        high = largest_eigenvalue(self._matrix, diagonal)
        self._inverse = (1 / diagonal).astype(r.values.dtype)[:, None]
        self.interval = (high / self.ratio, high)

    def _solve(self, right: Array, trans: str) -> Array:
        if trans == "T" and right.dtype.kind == "c":
            return np.conjugate(self._solve(np.conj(right), "N"))
        low, high = self.interval
        return chebyshev_steps(self._matrix, self._inverse, right, self.degree, low, high)


def chebyshev_steps(a: Tensor, inverse: Array, right: Array, degree: int, low: float, high: float) -> Array:
    """The iterate of `degree` steps of the Chebyshev iteration from 0, for right sides (n, k)."""
    middle, half = (high + low) / 2, (high - low) / 2
    sigma = middle / half
    rho = 1 / sigma
    step = inverse * right / right.dtype.type(middle)
    x: Array = step.copy()
    for _ in range(degree - 1):
        following = 1 / (2 * sigma - rho)
        residual = inverse * (right - dense(matmul(a, x)))
        step = right.dtype.type(following * rho) * step + right.dtype.type(2 * following / half) * residual
        x += step
        rho = following
    return x


def largest_eigenvalue(a: Tensor, diagonal: Array) -> float:
    """The largest eigenvalue of `inv(D) @ A`, estimated by the power method from a vector that is always the same."""
    dtype = a.values.dtype
    scale = (1 / np.sqrt(diagonal)).astype(dtype)
    v = np.random.default_rng(0).standard_normal(a.shape[0]).astype(dtype)
    eigenvalue = 1.0
    for _ in range(_POWER_STEPS):
        v = v / (np.linalg.norm(v) or 1.0)
        w = scale * dense(matmul(a, scale * v))
        eigenvalue, v = float(np.vdot(v, w).real), w
    norm = float(np.linalg.norm(v))
    return _MARGIN * max(eigenvalue, norm if norm else 1.0)


def check_symmetry(r: Rows, operation: str) -> None:
    """Raise LinAlgError unless the matrix is its own adjoint, to rounding."""
    from scipy.sparse import csr_array

    scipy_matrix = csr_array((r.values, r.crd, r.pos), (r.n, r.n))
    difference = abs(scipy_matrix - scipy_matrix.T.conj())
    scale = float(np.abs(r.values).max()) if r.values.size else 0.0
    if difference.nnz and difference.max() > 100 * np.finfo(r.values.dtype).eps * scale:
        raise np.linalg.LinAlgError(
            f"{operation}: expected a symmetric matrix; A - A.T has an element of {difference.max():.3g}"
            "\n  help: ilu0(A) or spilu(A) with gmres"
        )


def chebyshev(a: Any, /, degree: int = 4, ratio: float = 30.0) -> Chebyshev:
    """A Chebyshev polynomial of a Hermitian positive definite matrix of any format, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n)
    degree : products with A for each application, and one less
    ratio : the largest eigenvalue of `inv(D) @ A`, divided by the least one that errors are made small at

    Returns
    -------
    an operator with `interval`, of the eigenvalues; nothing is factorised, so that all of it runs in parallel

    Cost: the set-up is twelve products, one application `degree - 1`.
    Raises numpy.linalg.LinAlgError for a matrix that is not Hermitian, or whose diagonal is not positive.

    See also: jacobi, ssor, amg, cg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> M = ow.linalg.chebyshev(L, degree=8)
    >>> x, info = ow.linalg.cg(L, np.ones(100), M=M, maxiter=20)
    >>> info
    0
    """
    degree, ratio = integer(degree, "chebyshev", "degree"), real(ratio, "chebyshev", "ratio")
    if degree < 1 or not ratio > 1:
        raise ValueError(f"chebyshev: expected a degree of 1 or more and a ratio above 1; got {degree} and {ratio}")
    return Chebyshev(a, degree, ratio)

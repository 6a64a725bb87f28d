"""A symmetric positive definite matrix -> a V cycle of smoothed aggregation multigrid, as a preconditioner.

Levels are made by `aggregation`, A' = P.T @ A @ P, until one is small enough to solve with. Products are our SpGEMM;
aggregates and sweeps are kernels over rows.
Source: Vanek, Mandel and Brezina, Algebraic multigrid by smoothed aggregation, Computing 56 (1996).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, Tensor, UnsupportedError, matmul
from ..classes import frozen
from ..integers import integer
from ..progress import Progress, Step, reporting
from ..reals import real
from .aggregation import Transfer, nullspace_of, transfer
from .chebyshev import chebyshev_steps, check_symmetry, largest_eigenvalue
from .compiled import run
from .kernels import SWEEP, of_triangle
from .operands import dense, square
from .preconditioner import Preconditioner, Rows, compressed_rows, pivots, rows

__all__ = ["AMG", "amg"]

Array = np.ndarray[Any, Any]

_MAX_DENSE = 1500
"""Rows up to which the last level is solved by its eigenvalues, which a singular one has too; by SuperLU beyond."""
_SMOOTHERS = ("gauss_seidel", "jacobi", "chebyshev")
_DEGREE = 3
"""Products with A in a sweep of the Chebyshev smoother."""
_RATIO = 10.0
"""The largest eigenvalue divided by the least that the Chebyshev smoother makes small."""


@frozen
class _Level:
    """A level: its matrix, the scaled inverse diagonal of the smoother, the largest eigenvalue, and the transfer."""

    rows: Rows
    matrix: Tensor
    inverse: Array
    radius: float
    transfer: Transfer


@frozen
class _Options:
    strength: float
    smoother: str
    sweeps: int
    coarse: int
    max_levels: int
    block: int
    nullspace: Any


class AMG(Preconditioner):
    """One V cycle of smoothed aggregation: symmetric and positive definite where the matrix is.

    `update(values)` keeps aggregates and prolongations, and makes the matrices of all levels anew.

    Examples
    --------
    >>> line = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
    >>> M = ow.linalg.amg(line)
    >>> x, info = ow.linalg.cg(line, np.ones(500), M=M, maxiter=20)
    >>> info, len(M.sizes) > 1
    (0, True)
    """

    __slots__ = ("_last", "_levels", "_options", "_step", "sizes")
    operation = "amg"

    def __init__(self, a: Any, options: _Options, step: Step | None = None) -> None:
        self._options, self._step = options, step
        self._levels: list[_Level] = []
        self.sizes: list[tuple[int, int]] = []
        """(rows, elements) of each level's matrix"""
        super().__init__(a)
        self._step = None

    @property
    def operator_complexity(self) -> float:
        """Elements of all levels, divided by those of the matrix."""
        return sum(nse for _, nse in self.sizes) / max(self.sizes[0][1], 1)

    @property
    def nse(self) -> int:
        """Elements of the matrices of all levels."""
        return sum(nse for _, nse in self.sizes)

    def _analyse(self, r: Rows) -> None:
        self._levels = []

    def _compute(self, r: Rows) -> None:
        if r.values.dtype.kind == "c":
            raise UnsupportedError("amg: expected a real matrix; got complex numbers\n  help: ic0(A), ilu0(A)")
        pivots(r, "amg", True)
        check_symmetry(r, "amg")
        levels, sizes, last = (self._again if self._levels else self._build)(r)
        self._last, self._levels, self.sizes = _coarse_solver(last), levels, sizes

    def _build(self, r: Rows) -> tuple[list[_Level], list[tuple[int, int]], Rows]:
        """The levels of a matrix, their sizes, and the rows of the last."""
        given = self._options
        block, strength = given.block, given.strength
        nullspace = nullspace_of(given.nullspace, r.n, block, r.values.dtype)
        levels: list[_Level] = []
        sizes = [(r.n, len(r.crd))]
        while r.n > given.coarse and len(sizes) < given.max_levels:
            matrix = r.arrays()
            found = transfer(r, matrix, nullspace, block, strength)
            if found is None:
                break
            coarse = _galerkin(matrix, found)
            if not (coarse.diagonal() > 0).all():
                break
            levels.append(self._level(r, matrix, found))
            r, nullspace, block = coarse, found.nullspace, found.nullspace.shape[1]
            sizes.append((r.n, len(r.crd)))
            strength /= 2
            if self._step is not None:
                self._step(len(sizes), given.max_levels)
        if self._step is not None:
            self._step(len(sizes), len(sizes))
        return levels, sizes, r

    def _again(self, r: Rows) -> tuple[list[_Level], list[tuple[int, int]], Rows]:
        """The same levels for other values."""
        levels: list[_Level] = []
        sizes = [(r.n, len(r.crd))]
        for old in self._levels:
            same = r.pos is old.rows.pos
            matrix = old.matrix.with_values(r.values) if same else r.arrays()
            levels.append(self._level(r, matrix, old.transfer))
            r = _galerkin(matrix, old.transfer)
            if not (r.diagonal() > 0).all():
                raise np.linalg.LinAlgError("amg: expected a positive definite matrix\n  help: ilu0(A), minres")
            sizes.append((r.n, len(r.crd)))
        return levels, sizes, r

    def _level(self, r: Rows, matrix: Tensor, found: Transfer) -> _Level:
        diagonal = r.diagonal()
        needed = self._options.smoother != "gauss_seidel"
        radius = largest_eigenvalue(matrix, diagonal) if needed else 0.0
        weight = 4 / (3 * radius) if self._options.smoother == "jacobi" else 1.0
        return _Level(r, matrix, (weight / diagonal).astype(r.values.dtype), radius, found)

    def _solve(self, right: Array, trans: str) -> Array:
        return self._cycle(0, right)

    def _cycle(self, level_number: int, right: Array) -> Array:
        if level_number == len(self._levels):
            coarsest = self._last
            return np.ascontiguousarray(coarsest @ right if isinstance(coarsest, np.ndarray) else coarsest.solve(right))
        level = self._levels[level_number]
        between = level.transfer
        x = np.zeros_like(right)
        self._smooth(level, right, x, forward=True)
        residual = right - dense(matmul(level.matrix, x))
        x += dense(matmul(between.prolong, self._cycle(level_number + 1, dense(matmul(between.restrict, residual)))))
        self._smooth(level, right, x, forward=False)
        return x

    def _smooth(self, level: _Level, right: Array, x: Array, forward: bool) -> None:
        r, m = level.rows, right.shape[1]
        for number in range(self._options.sweeps):
            if self._options.smoother == "gauss_seidel":
                args = [r.pos, r.crd, r.values, level.inverse, right, x, r.n, m]
                run(of_triangle(SWEEP, forward), r.work * m, args, m == 1, I=r.crd, T=r.scalar)
                continue
            residual = right if forward and not number else right - dense(matmul(level.matrix, x))
            inverse = level.inverse[:, None]
            if self._options.smoother == "jacobi":
                x += inverse * residual
            else:
                x += chebyshev_steps(level.matrix, inverse, residual, _DEGREE, level.radius / _RATIO, level.radius)


def _galerkin(matrix: Tensor, between: Transfer) -> Rows:
    """The rows of the next level's matrix; those that nothing is sent to are those of the identity."""
    found = rows(matmul(between.restrict, matmul(matrix, between.prolong)), "amg")
    if not len(between.empty):
        return found
    from scipy.sparse import coo_array, csr_array

    on = between.empty
    ones = coo_array((np.ones(len(on), found.values.dtype), (on, on)), (found.n, found.n))
    whole = csr_array(csr_array((found.values, found.crd, found.pos), ones.shape) + ones)
    whole.sort_indices()
    return compressed_rows(whole.indptr, whole.indices, whole.data, found.scalar, found.like)


def _coarse_solver(r: Rows) -> Any:
    """The coarsest level's solver: the (pseudo-)inverse of its matrix, or SuperLU's factors of a large one."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import splu

    scipy_matrix = csr_array((r.values, r.crd, r.pos), (r.n, r.n))
    if r.n > _MAX_DENSE:
        try:
            return splu(scipy_matrix.tocsc())
        except RuntimeError as error:
            raise np.linalg.LinAlgError(
                f"amg: the last level, of {r.n} rows, is singular\n  help: a larger max_levels, or strength=0"
            ) from error
    if not r.n:
        return scipy_matrix.toarray()
    values, vectors = np.linalg.eigh(scipy_matrix.toarray())
    threshold = np.abs(values).max() * r.n * np.finfo(values.dtype).eps
    if values[0] < -threshold:
        raise np.linalg.LinAlgError(
            f"amg: expected a positive definite matrix; got one with an eigenvalue below {values[0]:.3g}"
            "\n  help: minres takes indefinite ones, ilu0(A) and spilu(A) factorise them"
        )
    inverse = np.where(values > threshold, 1 / np.where(values > threshold, values, 1), 0)
    return ((vectors * inverse) @ vectors.T).astype(r.values.dtype)


def amg(
    a: Any, /, *, strength: float = 0.25, smoother: str = "gauss_seidel", sweeps: int = 1, near_nullspace: Any = None,
    block: int = 1, coarse: int = 300, max_levels: int = 20, progress: Progress = None,
) -> AMG:  # fmt: skip
    """Smoothed aggregation multigrid for a symmetric positive definite matrix, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), real, any format
    strength : an element is a strong connection where it is at least `strength` times the largest of its row and of its
        column beside the diagonal, in the geometric mean; half as much on each level
    smoother : "gauss_seidel", forward before and backward after, "jacobi", damped, or "chebyshev", products alone
    sweeps : of the smoother, before and after
    near_nullspace : vectors (n,) or (n, k) that the matrix nearly sends to 0, which each level keeps: those of
        `rigid_motions` for elasticity; by default ones, which suit scalar diffusion, for each row of a node
    block : rows of a node, which stay together: 2 or 3 displacements of a point
    coarse : rows from which a level is solved directly
    max_levels : the most levels
    progress : True for a bar on stderr, or a function of (levels, the most)

    Returns
    -------
    an operator with `sizes`, (rows, elements) of each level, and `operator_complexity`; `update(values)` keeps
    aggregates and prolongations

    Cost: the set-up is some ten products with the matrix; a cycle some five.
    Raises numpy.linalg.LinAlgError for a matrix that is not symmetric, or seen not to be positive definite; ShapeError
    where blocks or vectors do not fit.

    See also: rigid_motions, cg, ic0, ssor.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> M = ow.linalg.amg(L)
    >>> x, info = ow.linalg.cg(L, b, M=M)
    >>> info, np.allclose(L @ x, b, atol=1e-3)
    (0, True)
    """
    strength = real(strength, "amg", "strength")
    t = square(a, "amg")
    size = integer(block, "amg", "block")
    sweeps, coarse = integer(sweeps, "amg", "sweeps"), integer(coarse, "amg", "coarse")
    max_levels = integer(max_levels, "amg", "max_levels")
    counts = (sweeps, coarse, max_levels, size)
    if strength < 0 or min(counts) < 1:
        raise ValueError(f"amg: expected strength >= 0 and counts of 1 or more; got {strength} and {counts}")
    if smoother not in _SMOOTHERS:
        raise ValueError(f"amg: smoother={smoother!r}\n  supported: 'gauss_seidel', 'jacobi', 'chebyshev'")
    if t.shape[-1] % size:
        raise ShapeError(f"amg: {t.shape[-1]} rows are not nodes of {size} rows\n  help: block=1")
    nullspace_of(near_nullspace, t.shape[-1], size, np.dtype(np.float64))
    options = _Options(strength, smoother, sweeps, coarse, max_levels, size, near_nullspace)
    with reporting(progress, "amg") as passes:
        return AMG(t, options, passes.begin("amg", "levels", at_most=True))

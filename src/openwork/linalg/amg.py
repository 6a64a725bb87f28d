"""A symmetric positive definite matrix -> a V cycle of smoothed aggregation multigrid, as a preconditioner.

    strong connections -> aggregates -> T, one column for each    P = (I - w inv(D) A_F) @ T    A' = P.T @ A @ P

until a level is small enough to solve with. Products are our SpGEMM; aggregates and sweeps are kernels over rows.
Source: Vanek, Mandel and Brezina, Algebraic multigrid by smoothed aggregation, Computing 56 (1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..integers import integer
from ..interop.layouts import sparse_csr_tensor
from ..ops.products.matmul import matmul
from ..reals import real
from ..tensor.tensor import Tensor
from .inverse import InverseOperator
from .kernels import kernel
from .operands import dense
from .preconditioners import Rows, definite_diagonal, rows

__all__ = ["AMG", "amg"]

Array = np.ndarray[Any, Any]

_MAX_DENSE = 1500
"""Rows up to which the last level is solved by its eigenvalues, which a singular one has too; by SuperLU beyond."""
_POWER_STEPS = 12
"""Steps of the power method for the largest eigenvalue of `inv(D) @ A`, which is meant to be right to a tenth."""
_SMOOTHERS = ("gauss_seidel", "jacobi")


@dataclass(frozen=True, slots=True)
class _Level:
    """A level: its matrix, the scaled inverse diagonal of the smoother, prolongation and restriction."""

    rows: Rows
    matrix: Tensor
    inverse: Array
    prolong: Tensor
    restrict: Tensor


@dataclass(frozen=True, slots=True)
class _Options:
    strength: float
    smoother: str
    sweeps: int
    coarse: int
    max_levels: int


class AMG(InverseOperator):
    """One V cycle of smoothed aggregation: symmetric and positive definite where the matrix is.

    Examples
    --------
    >>> line = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
    >>> M = ow.linalg.amg(line)
    >>> x, info = ow.linalg.cg(line, np.ones(500), M=M, maxiter=20)
    >>> info, len(M.sizes) > 1
    (0, True)
    """

    __slots__ = ("_last", "_levels", "_options", "sizes")

    def __init__(self, r: Rows, nullspace: Array, options: _Options) -> None:
        super().__init__((r.n, r.n), r.scalar)
        self._options = options
        self._levels: list[_Level] = []
        self.sizes: list[tuple[int, int]] = [(r.n, len(r.crd))]
        """(rows, elements) of each level's matrix"""
        strength = options.strength
        while r.n > options.coarse and len(self.sizes) < options.max_levels:
            level, nullspace = _build_level(r, nullspace, strength, options.smoother)
            if level is None:
                break
            coarse = rows(matmul(level.restrict, matmul(level.matrix, level.prolong)), "amg")
            if not (coarse.diagonal() > 0).all():
                break
            self._levels.append(level)
            r = coarse
            self.sizes.append((r.n, len(r.crd)))
            strength /= 2
        self._last = _coarse_solver(r)

    @property
    def operator_complexity(self) -> float:
        """Elements of all levels, divided by those of the matrix."""
        return sum(nse for _, nse in self.sizes) / max(self.sizes[0][1], 1)

    @property
    def nse(self) -> int:
        """Elements of the matrices of all levels."""
        return sum(nse for _, nse in self.sizes)

    def _solve(self, right: Array, trans: str) -> Array:
        return self._cycle(0, right)

    def _cycle(self, level_number: int, right: Array) -> Array:
        if level_number == len(self._levels):
            coarsest = self._last
            return np.ascontiguousarray(coarsest @ right if isinstance(coarsest, np.ndarray) else coarsest.solve(right))
        level = self._levels[level_number]
        x = np.zeros_like(right)
        self._smooth(level, right, x, forward=True)
        residual = right - dense(matmul(level.matrix, x))
        x += dense(matmul(level.prolong, self._cycle(level_number + 1, dense(matmul(level.restrict, residual)))))
        self._smooth(level, right, x, forward=False)
        return x

    def _smooth(self, level: _Level, right: Array, x: Array, forward: bool) -> None:
        r, m = level.rows, right.shape[1]
        for _ in range(self._options.sweeps):
            if self._options.smoother == "jacobi":
                x += level.inverse[:, None] * (right - dense(matmul(level.matrix, x)))
            else:
                row_order = ("ROW", "s" if forward else "n - 1 - s")
                executable = kernel("sweep", r.crd.dtype, r.scalar, m == 1, row_order)
                executable.run_sized(
                    r.work * m, executable.pack([r.pos, r.crd, r.values, level.inverse, right, x, r.n, m])
                )


def _build_level(r: Rows, nullspace: Array, strength: float, smoother: str) -> tuple[_Level | None, Array]:
    """A matrix and its near-nullspace -> a level and the near-nullspace of the next; None where nothing aggregates."""
    row = np.repeat(np.arange(r.n, dtype=r.crd.dtype), np.diff(r.pos))
    diagonal = r.diagonal()
    size = np.where(row == r.crd, 0, np.abs(r.values))
    scale = np.sqrt(np.maximum.reduceat(np.append(size, 0), r.pos[:-1]))
    strong = (size >= strength * scale[row] * scale[r.crd]) & (size > 0)
    group, count = _aggregates(r, row, strong)
    if not 0 < count < 0.9 * r.n:
        return None, nullspace
    tentative, nullspace = _tentative_prolongation(group, count, nullspace, r)
    radius = _spectral_radius(r, diagonal)
    smoothed = _smoothing_matrix(r, row, strong, diagonal, 4 / (3 * radius))
    matrix = _tensor(r.pos, r.crd, r.values, r.n)
    prolong = matmul(smoothed, tentative)
    weight = 4 / (3 * radius) if smoother == "jacobi" else 1.0
    inverse = (weight / diagonal).astype(r.values.dtype)
    return _Level(r, matrix, inverse, prolong, prolong.T.asformat("csr")), nullspace


def _aggregates(r: Rows, row: Array, strong: Array) -> tuple[Array, int]:
    """The number of the aggregate of each row, -1 for those without strong connections, and how many there are."""
    off_diagonal = strong & (row != r.crd)
    crd = r.crd[off_diagonal]
    pos = np.concatenate([[0], np.cumsum(np.bincount(row[off_diagonal], minlength=r.n))]).astype(r.crd.dtype)
    group, joined = np.full((2, r.n), -1, r.crd.dtype)
    count = np.zeros(1, np.int64)
    executable = kernel("aggregate", r.crd.dtype, r.scalar)
    executable.run_sized(r.work, executable.pack([pos, crd, group, joined, count, r.n]))
    return joined, int(count[0])


def _tentative_prolongation(group: Array, count: int, nullspace: Array, r: Rows) -> tuple[Tensor, Array]:
    """The tentative prolongation, the near-nullspace by aggregates with columns of norm 1, and these norms."""
    in_aggregate = group >= 0
    squares = np.bincount(group[in_aggregate], nullspace[in_aggregate] ** 2, minlength=count)
    norms = np.where(squares > 0, np.sqrt(squares), 1).astype(nullspace.dtype)
    pos = np.concatenate([[0], np.cumsum(in_aggregate)]).astype(r.crd.dtype)
    crd = group[in_aggregate]
    return sparse_csr_tensor(pos, crd, nullspace[in_aggregate] / norms[crd], (r.n, count)), norms


def _spectral_radius(r: Rows, diagonal: Array) -> float:
    """The largest eigenvalue of `inv(D) @ A`, estimated by the power method."""
    scale = (1 / np.sqrt(diagonal)).astype(r.values.dtype)
    matrix = _tensor(r.pos, r.crd, r.values, r.n)
    v = np.random.default_rng(0).standard_normal(r.n).astype(r.values.dtype)
    eigenvalue = 1.0
    for _ in range(_POWER_STEPS):
        v /= np.linalg.norm(v)
        w = scale * dense(matmul(matrix, scale * v))
        eigenvalue, v = float(v @ w), w
    return 1.05 * max(eigenvalue, float(np.linalg.norm(v)) if np.linalg.norm(v) else 1.0)


def _smoothing_matrix(r: Rows, row: Array, strong: Array, diagonal: Array, weight: float) -> Tensor:
    """`I - weight * inv(D) @ A_F`, where A_F has its weak elements added to the diagonal instead."""
    strong_or_diagonal = strong | (row == r.crd)
    weak = np.bincount(row[~strong_or_diagonal], r.values[~strong_or_diagonal], minlength=r.n)
    filtered = diagonal + weak
    filtered = np.where(filtered > diagonal / 10, filtered, diagonal)
    values = np.where(row == r.crd, filtered[row], r.values)[strong_or_diagonal]
    kept_rows, crd = row[strong_or_diagonal], r.crd[strong_or_diagonal]
    values = (kept_rows == crd) - weight * values / filtered[kept_rows]
    pos = np.concatenate([[0], np.cumsum(np.bincount(kept_rows, minlength=r.n))]).astype(r.crd.dtype)
    return _tensor(pos, crd, values.astype(r.values.dtype), r.n)


def _tensor(pos: Array, crd: Array, values: Array, n: int) -> Tensor:
    return sparse_csr_tensor(pos, crd, values, (n, n))


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
    coarse: int = 300, max_levels: int = 20,
) -> AMG:  # fmt: skip
    """Smoothed aggregation multigrid for a symmetric positive definite matrix, as a preconditioner.

    Parameters
    ----------
    a : Tensor, shape (n, n), real, any format
    strength : an element is a strong connection where it is at least `strength` times the largest of its row and of its
        column beside the diagonal, in the geometric mean; half as much on each level
    smoother : "gauss_seidel", forward before and backward after, or "jacobi", damped
    sweeps : of the smoother, before and after
    near_nullspace : vector (n,) that the matrix nearly sends to 0; ones, which suit scalar diffusion
    coarse : rows from which a level is solved directly
    max_levels : the most levels

    Returns
    -------
    an operator with `sizes`, (rows, elements) of each level, and `operator_complexity`

    Cost: the set-up is some ten products with the matrix; a cycle some five.
    Raises numpy.linalg.LinAlgError for a matrix that is not symmetric, or seen not to be positive definite.

    See also: cg, ic0, ssor.

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
    counts = [
        integer(v, "amg", name) for v, name in ((sweeps, "sweeps"), (coarse, "coarse"), (max_levels, "max_levels"))
    ]
    if strength < 0 or min(counts) < 1:
        raise ValueError(f"amg: expected strength >= 0 and counts of 1 or more; got {strength} and {tuple(counts)}")
    if smoother not in _SMOOTHERS:
        raise ValueError(f"amg: smoother={smoother!r}\n  supported: 'gauss_seidel', 'jacobi'")
    r = rows(a, "amg")
    if r.values.dtype.kind == "c":
        raise UnsupportedError("amg: expected a real matrix; got complex numbers\n  help: ic0(A), ilu0(A)")
    definite_diagonal(r, "amg")
    _check_symmetry(r)
    nullspace = np.ones(r.n) if near_nullspace is None else np.asarray(dense(near_nullspace), np.float64)
    if nullspace.shape != (r.n,):
        raise ShapeError(f"amg: expected near_nullspace of shape ({r.n},); got {nullspace.shape}")
    sweeps, coarse, levels_limit = counts
    return AMG(r, nullspace.astype(r.values.dtype), _Options(strength, smoother, sweeps, coarse, levels_limit))


def _check_symmetry(r: Rows) -> None:
    from scipy.sparse import csr_array

    scipy_matrix = csr_array((r.values, r.crd, r.pos), (r.n, r.n))
    difference = abs(scipy_matrix - scipy_matrix.T)
    scale = float(np.abs(r.values).max()) if r.values.size else 0.0
    if difference.nnz and difference.max() > 100 * np.finfo(r.values.dtype).eps * scale:
        raise np.linalg.LinAlgError(
            f"amg: expected a symmetric matrix; A - A.T has an element of {difference.max():.3g}"
            "\n  help: ilu0(A) or spilu(A) with gmres"
        )

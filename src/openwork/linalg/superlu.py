"""A sparse matrix -> its LU factors, complete or not, by SuperLU, as objects that solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, Tensor, sparse_csc_tensor
from ..storage.buffers import as_array, to_numpy
from ..storage.recorded import refuse_recorded
from .direct_solver.solvers import parity
from .direct_solver.systems import Rows
from .inverse import InverseOperator
from .operands import (
    counts,
    narrow_indices,
    numbers,
    options_of,
    scipy_matrix,
    solve_scalar,
    square,
)
from .preconditioner import finite

__all__ = ["LU", "SuperLU", "spilu", "splu"]


class SuperLU:
    """SuperLU's factors of compressed rows; `factor` computes them anew."""

    kind = "superlu"

    def __init__(self, rows: Rows, scalar: str, options: dict[str, Any]) -> None:
        self.scalar, self.options = scalar, options
        self.factor(rows)

    @property
    def nse(self) -> int:
        """Elements of L and U, as SuperLU counts them."""
        return int(self._lu.nnz)

    def factor(self, rows: Rows) -> None:
        """Factor the transpose, whose columns the rows are. Raises LinAlgError for a singular matrix."""
        from scipy.sparse import csc_array

        shape = (rows.n, rows.n)
        self._lu = _factors("splu", csc_array((rows.values, rows.crd, rows.pos), shape), shape, self.options)

    def solve(self, right: np.ndarray[Any, Any], trans: str) -> np.ndarray[Any, Any]:
        """Solutions of right sides (n, c) with the rows, their transpose or adjoint."""
        if trans == "H":
            return np.asarray(np.conj(self._lu.solve(np.conj(right), "N")))
        return np.asarray(self._lu.solve(right, "T" if trans == "N" else "N"))

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinant."""
        pivots = self._lu.U.diagonal()
        with np.errstate(divide="ignore", invalid="ignore"):
            signs = np.prod(pivots / np.abs(pivots)) * parity(self._lu.perm_r) * parity(self._lu.perm_c)
            return signs, np.log(np.abs(pivots)).sum()


def _superlu(maker: str, a: Tensor, scalar: str, options: dict[str, Any]) -> Any:
    """SciPy's factors of a matrix, "splu" or "spilu"; None without rows, of which SuperLU has none."""
    matrix = scipy_matrix(a, "csc", scalar) if a.shape[0] else None
    return _factors(maker, matrix, a.shape, options)


def _factors(maker: str, matrix: Any, shape: tuple[int, ...], options: dict[str, Any]) -> Any:
    import scipy.sparse.linalg as scipys

    options = options_of(maker, options, 1)
    counts(maker, options)
    numbers(maker, options)
    if matrix is None:
        return None
    try:
        return getattr(scipys, maker)(narrow_indices(matrix), **options)
    except RuntimeError as error:
        raise _singular_error(shape, error) from error


class LU(InverseOperator):
    """An LU factorisation, complete or not, under the names of SciPy's `SuperLU`: `Pr @ A @ Pc = L @ U`.

    solve(b, trans="N") : see `InverseOperator`; shape, nnz
    L, U : the factors, CSC Tensors in the library of the matrix's values; the diagonal of L is ones
    perm_r, perm_c : row `i` of A is row `perm_r[i]` of the product, column `j` column `perm_c[j]`

    Examples
    --------
    >>> lu = ow.linalg.splu(ow.asarray([[4.0, 1.0], [0, 2.0]], format="csc"))
    >>> lu.solve(np.array([6.0, 4.0]))
    array([1., 2.])
    """

    __slots__ = ("_like", "_lu")

    def __init__(self, maker: str, a: Tensor, scalar: str, options: dict[str, Any]) -> None:
        super().__init__(a.shape, scalar)
        finite(to_numpy(a.values), maker)
        self._lu, self._like = _superlu(maker, a, scalar, options), a.values

    def _factor(self, name: str) -> Tensor:
        from scipy.sparse import csc_array

        factor = csc_array(self.shape, dtype=self.dtype) if self._lu is None else getattr(self._lu, name).tocsc()
        factor.sort_indices()
        pos, crd, values = (as_array(x, like=self._like) for x in (factor.indptr, factor.indices, factor.data))
        return sparse_csc_tensor(pos, crd, values, factor.shape)

    @property
    def L(self) -> Tensor:
        """The lower factor."""
        return self._factor("L")

    @property
    def U(self) -> Tensor:
        """The upper factor."""
        return self._factor("U")

    @property
    def perm_r(self) -> np.ndarray[Any, Any]:
        """The row permutation: row `i` of the matrix is row `perm_r[i]` of `L @ U`."""
        return np.zeros(0, np.int32) if self._lu is None else np.asarray(self._lu.perm_r)

    @property
    def perm_c(self) -> np.ndarray[Any, Any]:
        """The column permutation: column `j` of the matrix is column `perm_c[j]` of `L @ U`."""
        return np.zeros(0, np.int32) if self._lu is None else np.asarray(self._lu.perm_c)

    @property
    def nnz(self) -> int:
        """Elements of both factors, as SuperLU counts them."""
        return 0 if self._lu is None else int(self._lu.nnz)

    nse = nnz

    def _solve(self, right: np.ndarray[Any, Any], trans: str) -> np.ndarray[Any, Any]:
        return np.asarray(self._lu.solve(right, trans))


class _Singular(np.linalg.LinAlgError, RuntimeError):
    """The error of a matrix that SuperLU finds singular: NumPy's, and the one that callers of SciPy's functions
    catch."""


def _singular_error(shape: tuple[int, ...], error: Exception) -> Exception:
    if "failed to factorize" in str(error):
        return _Singular(
            f"SuperLU ends on the matrix of shape {shape}, as on some that are structurally singular: {error}"
            "\n  help: kind='lu' of factorized() says more; lsqr(A, b) gives the least-squares solution"
        )
    if "singular" not in str(error).lower():
        return error
    return _Singular(
        f"the matrix of shape {shape} is singular: a pivot of its LU factorisation is 0 ({error})"
        "\n  help: lsqr(A, b) gives the least-squares solution"
    )


def _single_matrix(a: Any, operation: str) -> Tensor:
    t = square(a, operation)
    if t.ndim != 2:
        raise ShapeError(f"{operation}: expected one matrix; got shape {t.shape}\n  help: solve() takes stacks")
    refuse_recorded(t.values)
    return t


def splu(
    a: Any, *, permc_spec: str | None = None, diag_pivot_thresh: float | None = None, relax: int | None = None,
    panel_size: int | None = None, options: dict[str, Any] | None = None,
) -> LU:  # fmt: skip
    """The LU factorisation of a square matrix, as SciPy's object of that name: `solve(b, trans)`, L, U, perm_r, perm_c.

    The other arguments are those of `scipy.sparse.linalg.splu`. A matrix of another format is converted to CSC;
    `factorized` takes CSR without a copy.

    Returns
    -------
    object of SciPy with `solve(b, trans)`, L, U, perm_r and perm_c

    Raises numpy.linalg.LinAlgError for a singular matrix, or one with elements that are nan or inf.

    Cost: by the fill of the factors; a solution O(their nse).
    See also: factorized, solve, spilu.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> lu = ow.linalg.splu(L)
    >>> np.allclose(L @ lu.solve(b), b)
    True
    """
    t = _single_matrix(a, "splu")
    return LU("splu", t, solve_scalar(t), {
        "permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size,
        "options": options,
    })  # fmt: skip


def spilu(
    a: Any, *, drop_tol: float | None = None, fill_factor: float | None = None, drop_rule: str | None = None,
    permc_spec: str | None = None, diag_pivot_thresh: float | None = None, relax: int | None = None,
    panel_size: int | None = None, options: dict[str, Any] | None = None,
) -> LU:  # fmt: skip
    """Incomplete LU factors of a square matrix, with a threshold and row exchanges: hand it to a solver as `M`.

    The other arguments are those of `scipy.sparse.linalg.spilu`; the result is as that of `splu`.
    `ilu0` keeps to the elements of the matrix. Raises numpy.linalg.LinAlgError as `splu` does.

    Returns
    -------
    object of SciPy with `solve(b)`; its other attributes are those that `splu` gives

    Cost: by drop_tol and fill_factor; O(nse of the factors) for each application.
    See also: ilu0, splu, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> M = ow.linalg.spilu(L)
    >>> np.allclose(L @ M.solve(b), b)
    True
    """
    t = _single_matrix(a, "spilu")
    return LU("spilu", t, solve_scalar(t), {
        "drop_tol": drop_tol, "fill_factor": fill_factor, "drop_rule": drop_rule,
        "permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size,
        "options": options,
    })  # fmt: skip

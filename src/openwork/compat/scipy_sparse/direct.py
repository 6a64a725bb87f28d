"""`spsolve`, `splu`, `spilu`, `factorized` and `spsolve_triangular` as SciPy has them, by those of `openwork.linalg`.

Their rules are SciPy's: right sides are not cast to factors that cannot hold them, errors are its errors, and
`spsolve` of a singular matrix warns and gives NaN. Which factors are computed is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from warnings import warn

import numpy as np
import scipy.sparse as theirs
from scipy.sparse.linalg import MatrixRankWarning

import openwork as ow

from .array import wrapped

__all__ = ["SuperLU", "factorized", "spilu", "splu", "spsolve", "spsolve_triangular"]


class SuperLU:
    """Factors under the names of SciPy's object of this name: `solve(rhs, trans)`, L, U, perm_r, perm_c, nnz, shape."""

    def __init__(self, make: Callable[..., Any], A: Any, options: dict[str, Any]) -> None:
        if not theirs.issparse(A):
            A = theirs.csc_array(A)
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"can only factor square matrices; got shape {A.shape}")
        try:
            self._factors = make(A, **options)
        except np.linalg.LinAlgError as error:
            raise RuntimeError(str(error)) from error

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution of right sides (n,) or (n, k), which are cast to the factors' dtype where that holds them."""
        right = np.asarray(rhs).astype(self._factors.dtype, casting="safe", copy=False)
        if right.ndim > 2:
            raise ValueError(f"object too deep for desired array: rhs of shape {right.shape}")
        if not right.ndim or right.shape[0] != self.shape[0]:
            raise ValueError(f"rhs is of incompatible size: {right.shape} for factors of shape {self.shape}")
        return self._factors.solve(right, trans)

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix."""
        return self._factors.shape  # type: ignore[no-any-return]

    @property
    def nnz(self) -> int:
        """Elements of both factors."""
        return self._factors.nse  # type: ignore[no-any-return]

    @property
    def L(self) -> Any:
        """The lower factor, whose diagonal is ones, in CSC."""
        return wrapped(self._factors.L.to_scipy("csc"))

    @property
    def U(self) -> Any:
        """The upper factor, in CSC."""
        return wrapped(self._factors.U.to_scipy("csc"))

    @property
    def perm_r(self) -> Any:
        """Row i of the matrix is row perm_r[i] of L @ U."""
        return np.asarray(_Permutation(self, "perm_r"))

    @property
    def perm_c(self) -> Any:
        """Column j of the matrix is column perm_c[j] of L @ U."""
        return np.asarray(_Permutation(self, "perm_c"))


class _Permutation:
    """A permutation whose arrays keep the factors alive, as those of SciPy's object do."""

    def __init__(self, factors: SuperLU, name: str) -> None:
        self.factors, self.array = factors, getattr(factors._factors, name)
        self.__array_interface__ = self.array.__array_interface__


def splu(
    A: Any, permc_spec: Any = None, diag_pivot_thresh: Any = None, relax: Any = None, panel_size: Any = None,
    options: Any = None,
) -> SuperLU:  # fmt: skip
    """SciPy's `splu`."""
    return SuperLU(ow.linalg.splu, A, {
        "permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size,
        "options": options,
    })  # fmt: skip


def spilu(
    A: Any, drop_tol: Any = None, fill_factor: Any = None, drop_rule: Any = None, permc_spec: Any = None,
    diag_pivot_thresh: Any = None, relax: Any = None, panel_size: Any = None, options: Any = None,
) -> SuperLU:  # fmt: skip
    """SciPy's `spilu`."""
    return SuperLU(ow.linalg.spilu, A, {
        "drop_tol": drop_tol, "fill_factor": fill_factor, "drop_rule": drop_rule, "permc_spec": permc_spec,
        "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size, "options": options,
    })  # fmt: skip


def factorized(A: Any) -> Callable[..., Any]:
    """SciPy's `factorized`: a function that solves, by the kind of factors that the matrix has."""
    return SuperLU(ow.linalg.factorized, A, {}).solve


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """SciPy's `spsolve`, by the kind of factors that the matrix has."""
    if not theirs.issparse(A) or A.format not in ("csc", "csr"):
        warn("spsolve requires A be CSC or CSR matrix format", theirs.SparseEfficiencyWarning, stacklevel=3)
        A = theirs.csc_array(A)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (has shape {A.shape})")
    if not theirs.issparse(b):
        b = np.asarray(b)
    if A.shape[0] != b.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({A.shape} - {b.shape[0]})")
    try:
        x = ow.linalg.spsolve(A, b, permc_spec, use_umfpack)
    except np.linalg.LinAlgError as error:
        if theirs.issparse(b) and b.shape[1] > 1:
            raise RuntimeError(str(error)) from error
        warn("Matrix is exactly singular", MatrixRankWarning, stacklevel=3)
        shape = b.shape if b.ndim == 2 and b.shape[1] > 1 else (A.shape[0],)
        return np.full(shape, np.nan, np.result_type(A.dtype, b.dtype, np.float32))
    return type(A)(x) if theirs.issparse(x) else x


spsolve_triangular = ow.linalg.spsolve_triangular

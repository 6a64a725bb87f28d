"""Linear algebra on tensors of any format.

Direct solvers (SuperLU), triangular and tridiagonal ones (compiled), Krylov and eigenvalue solvers (SciPy's, over
openwork's kernels), norms and traces. SciPy is imported when a function first needs it.
"""

from __future__ import annotations

from .direct import Factorization, det, factorized, inv, slogdet, solve, spilu, spsolve
from .eigen import eigs, eigsh, expm_multiply, lobpcg, svds
from .iterative import bicgstab, cg, gmres, lsqr, minres
from .norms import matrix_norm, matrix_power, norm, trace, vector_norm
from .operator import aslinearoperator
from .triangular import solve_triangular
from .tridiagonal import solve_tridiagonal

__all__ = [
    "Factorization",
    "aslinearoperator",
    "bicgstab",
    "cg",
    "det",
    "eigs",
    "eigsh",
    "expm_multiply",
    "factorized",
    "gmres",
    "inv",
    "lobpcg",
    "lsqr",
    "matrix_norm",
    "matrix_power",
    "minres",
    "norm",
    "slogdet",
    "solve",
    "solve_triangular",
    "solve_tridiagonal",
    "spilu",
    "spsolve",
    "svds",
    "trace",
    "vector_norm",
]

"""Linear algebra on tensors of any format.

Direct solvers (SuperLU), triangular and tridiagonal ones (compiled), Krylov and eigenvalue solvers (SciPy's, over
openwork's kernels), norms and traces, and the array API's extension of this name: its decompositions take tensors of
dense format. SciPy is imported when a function first needs it.
"""

from __future__ import annotations

from .. import ConvergenceWarning, diagonal, matmul, matrix_transpose, outer, tensordot, vecdot
from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..ops.products.cross import cross
from ..runtime import gradient_hook as _gradients
from ..runtime.documentation import document_all as _document_all
from ..runtime.overrides import overridable as _overridable
from .aggregation import rigid_motions
from .amg import AMG, amg
from .assembly import Assembler as Assembler
from .assembly import assembler as assembler
from .block_jacobi import block_jacobi
from .chebyshev import chebyshev
from .cholesky import cholesky
from .dense_format import eig, eigh, eigvals, eigvalsh, matrix_rank, pinv, qr, svd, svdvals
from .direct import det, inv, slogdet, solve, spsolve
from .direct_solver.ordering import ordering
from .eigen import eigs, eigsh, expm, expm_multiply, lobpcg, onenormest, svds
from .factoring import factorized
from .factorization import Factorization
from .incomplete_lu import ilu0, iluk, ilut
from .inverse import InverseOperator
from .iterative import bicg, bicgstab, cg, cgs, gcrotmk, gmres, lgmres, lsmr, lsqr, minres, qmr, tfqmr
from .jacobian_plan import JacobianPlan, hessian_plan, jacobian_plan
from .least_squares import LeastSquares
from .norms import matrix_norm, matrix_power, norm, trace, vector_norm
from .operator import aslinearoperator
from .pca import PCA, SVD, pca, randomized_svd
from .preconditioner import Preconditioner
from .preconditioners import ic0, jacobi, ssor
from .stacked import FactorizationStack
from .superlu import LU, spilu, splu
from .triangular import solve_triangular, spsolve_triangular
from .tridiagonal import solve_tridiagonal

__all__ = [
    "AMG",
    "LU",
    "PCA",
    "SVD",
    "ConvergenceWarning",
    "Factorization",
    "FactorizationStack",
    "InverseOperator",
    "JacobianPlan",
    "LeastSquares",
    "Preconditioner",
    "amg",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "block_jacobi",
    "cg",
    "cgs",
    "chebyshev",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigs",
    "eigsh",
    "eigvals",
    "eigvalsh",
    "expm",
    "expm_multiply",
    "factorized",
    "gcrotmk",
    "gmres",
    "hessian_plan",
    "ic0",
    "ilu0",
    "iluk",
    "ilut",
    "inv",
    "jacobi",
    "jacobian_plan",
    "lgmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "minres",
    "norm",
    "onenormest",
    "ordering",
    "outer",
    "pca",
    "pinv",
    "qmr",
    "qr",
    "randomized_svd",
    "rigid_motions",
    "slogdet",
    "solve",
    "solve_triangular",
    "solve_tridiagonal",
    "spilu",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "ssor",
    "svd",
    "svds",
    "svdvals",
    "tensordot",
    "tfqmr",
    "trace",
    "vecdot",
    "vector_norm",
]

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_OWN = (
    "cross", "det", "eigsh", "inv", "matrix_norm", "matrix_power", "norm", "slogdet", "solve", "solve_triangular",
    "spsolve", "svds", "trace", "vector_norm",
)  # fmt: skip
"""What takes `grad=`, and operands of other types, as operations of the namespace do."""

for _name in _OWN:
    globals()[_name] = _overridable(_gradients.with_grad(globals()[_name]))

_document_all(globals(), __all__)

"""A matrix and right sides -> solutions by SciPy's Krylov solvers, with products by our kernels; SciPy's keywords."""

from __future__ import annotations

from typing import Any

from ..tensor.tensor import Tensor
from .operands import check_rows, counts, dense, matrix, right_side, square
from .operator import aslinearoperator, preconditioner

__all__ = ["bicgstab", "cg", "gmres", "lsqr", "minres"]


def _solver(name: str, a: Any, b: Any, x0: Any, m: Any, options: dict[str, Any]) -> tuple[Any, int]:
    import scipy.sparse.linalg as scipys

    operator = aslinearoperator(a) if _is_operator(a) else aslinearoperator(square(a, name))
    right, back = right_side(b, a)
    if not _is_operator(a):
        check_rows(name, a if hasattr(a, "shape") else matrix(a, name), right)
    counts(name, options)
    start = None if x0 is None else dense(x0)
    x, info = getattr(scipys, name)(operator, right, x0=start, M=preconditioner(m), **options)
    return back(x), int(info)


def _is_operator(a: Any) -> bool:
    return hasattr(a, "matvec") and not isinstance(a, Tensor)


def cg(a: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any) -> tuple[Any, int]:
    """Conjugate gradients for a Hermitian positive definite matrix of any format.

    Parameters
    ----------
    a : Tensor, array or LinearOperator, shape (n, n)
    b : vector (n,)
    x0 : where to start
    M : preconditioner, an approximate inverse: Tensor, array or LinearOperator, such as `spilu(a)`
    options : `rtol`, `atol`, `maxiter`, `callback` of `scipy.sparse.linalg.cg`

    Returns
    -------
    (x, info): x of the kind of `b`; info 0 where it converged, else the number of iterations
    """
    return _solver("cg", a, b, x0, M, options)


def gmres(a: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any) -> tuple[Any, int]:
    """Generalised minimal residuals for any square matrix; see `cg`, and SciPy's `restart`, `callback_type`."""
    if "callback" in options:
        options.setdefault("callback_type", "pr_norm")
    return _solver("gmres", a, b, x0, M, options)


def minres(a: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any) -> tuple[Any, int]:
    """Minimal residuals for a symmetric matrix, definite or not; see `cg`."""
    return _solver("minres", a, b, x0, M, options)


def bicgstab(a: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any) -> tuple[Any, int]:
    """Stabilised bi-conjugate gradients for any square matrix; see `cg`."""
    return _solver("bicgstab", a, b, x0, M, options)


def lsqr(a: Any, b: Any, **options: Any) -> tuple[Any, ...]:
    """The least-squares solution of `a @ x = b` for a matrix of any shape and format.

    Returns what `scipy.sparse.linalg.lsqr` does, x first and of the kind of `b`.
    """
    import scipy.sparse.linalg as scipys

    counts("lsqr", options)
    operator = aslinearoperator(a)
    right, back = right_side(b, a)
    x, *rest = scipys.lsqr(operator, right, **options)
    return (back(x), *rest)

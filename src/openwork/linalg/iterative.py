"""Iterative solvers of systems and least-squares problems: SciPy's methods and arguments, products by our kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..progress import Progress
from ..runtime.at_operand import at_operand
from ..runtime.gradient_hook import differentiable
from ..storage.buffers import is_torch
from .krylov import least_squares, solver, takes_tol
from .operands import value_buffers

__all__ = ["bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "lsmr", "lsqr", "minres", "qmr", "tfqmr"]

Callback: TypeAlias = Callable[[Any], Any] | None
"""A function of every iterate, or of its residual."""


def _recordable(a: Any = None, b: Any = None, *_: Any) -> list[Any]:
    """The buffers of the matrix and the right side, which torch may record."""
    return [x for x in value_buffers(a, b) if is_torch(x)]


@takes_tol
@at_operand
@differentiable(_recordable)
def cg(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callback = None, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Conjugate gradients for a Hermitian positive definite matrix of any format.

    Parameters
    ----------
    a : Tensor, array, LinearOperator or function of a vector, shape (n, n)
    b : vector (n,), or right sides (n, k), which are solved together by a block method: one product with the matrix for
        all, and fewer iterations, as each searches the space of all
    x0 : where to start
    rtol, atol : it stops at a residual of norm `max(rtol * norm(b), atol)`
    maxiter : most iterations, 10 n unless said
    M : a preconditioner, which is an approximate inverse: Tensor, array, LinearOperator, a function of a vector, what
        `jacobi`, `ssor`, `ic0`, `ilu0`, `amg`, `chebyshev`, `block_jacobi`, `iluk`, `ilut`, `spilu`, `splu` and
        `factorized` give, or the name of one of the first six
    callback : a function of every iterate
    progress : True for a bar on stderr, or a function of (iterations, most iterations)
    dtype : of vectors, inner products and x, "float64" say for a matrix that is stored in float32 and stays so; that of
        the operands without

    Returns
    -------
    (x, info): x of the kind of `b`; info 0 where it converged (all columns), else the number of iterations. Where torch
    records the values of `a`, or `b`, x is on its graph: the adjoint system is solved in the same way

    Warns with ConvergenceWarning where the tolerance was not reached: iterations, residual and what may help.
    Raises ShapeError for a matrix that is not square or a right side of other length, ValueError for other names of M.

    Cost: one product, and one of M, for each iteration.
    See also: minres, gmres, ic0, amg, solve.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.cg(L, b, M="ic0")
    >>> info, np.allclose(L @ x, b, atol=1e-3)
    (0, True)
    """
    return solver(
        "cg", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, progress=progress, dtype=dtype
    )


@takes_tol
@at_operand
@differentiable(_recordable)
def cgs(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callback = None, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Conjugate gradients squared for any square matrix; see `cg`.

    Cost: two products for each iteration.
    See also: bicgstab, gmres, cg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.cgs(L, b)
    >>> info
    0
    """
    return solver(
        "cgs", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, progress=progress, dtype=dtype
    )


@takes_tol
@at_operand
@differentiable(_recordable)
def bicg(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callback = None, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Bi-conjugate gradients for any square matrix; takes products with its adjoint; see `cg`.

    Cost: two products for each iteration, one with the adjoint.
    See also: bicgstab, gmres, cg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.bicg(L, b)
    >>> info
    0
    """
    return solver(
        "bicg", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, progress=progress, dtype=dtype
    )


@takes_tol
@at_operand
@differentiable(_recordable)
def bicgstab(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callback = None, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Stabilised bi-conjugate gradients for any square matrix; see `cg`.

    Cost: two products for each iteration.
    See also: gmres, bicg, cg.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.bicgstab(L, b)
    >>> info
    0
    """
    return solver(
        "bicgstab", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, progress=progress,
        dtype=dtype,
    )  # fmt: skip


@takes_tol
@at_operand
@differentiable(_recordable)
def gmres(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, restart: int | None = None,
    maxiter: int | None = None, M: Any = None, callback: Callback = None, callback_type: str | None = "pr_norm",
    progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Generalised minimal residuals for any square matrix; see `cg`, and SciPy's `restart`, `callback_type`.

    Several right sides (n, k) are solved together by block GMRES, preconditioned from the right, 20 steps in a cycle.

    Cost: one product for each iteration, and O(n * restart).
    See also: bicgstab, lgmres, ilu0.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.gmres(L, b, M="ilu0")
    >>> info
    0
    """
    return solver(
        "gmres", a, b, x0, rtol=rtol, atol=atol, restart=restart, maxiter=maxiter, M=M, callback=callback,
        callback_type=callback_type or "pr_norm", progress=progress, dtype=dtype,
    )  # fmt: skip


@takes_tol
@at_operand
@differentiable(_recordable)
def lgmres(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = 1000,
    M: Any = None, callback: Callback = None, inner_m: int | None = 30, outer_k: int | None = 3,
    outer_v: list[Any] | None = None,
    store_outer_Av: bool = True, prepend_outer_v: bool = False, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """GMRES that keeps directions over restarts, for any square matrix; see `cg`, and SciPy's `inner_m`, `outer_k`.

    Cost: one product for each iteration.
    See also: gmres, gcrotmk.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.lgmres(L, b)
    >>> info
    0
    """
    return solver(
        "lgmres", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, inner_m=inner_m,
        outer_k=outer_k, outer_v=outer_v, store_outer_Av=store_outer_Av, prepend_outer_v=prepend_outer_v,
        progress=progress, dtype=dtype,
    )  # fmt: skip


@takes_tol
@at_operand
@differentiable(_recordable)
def gcrotmk(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = 1000,
    M: Any = None, callback: Callback = None, m: int | None = 20, k: int | None = None, CU: Any = None,
    discard_C: bool = False,
    truncate: str = "oldest", progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """GCROT(m, k) for any square matrix; see `cg`, and SciPy's `m`, `k`, `truncate`.

    Parameters
    ----------
    k : how many vectors are kept from one cycle to the next; `m` if left out

    Cost: one product for each iteration.
    See also: gmres, lgmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.gcrotmk(L, b)
    >>> info
    0
    """
    return solver(
        "gcrotmk", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, m=m, k=k, CU=CU,
        discard_C=discard_C, truncate=truncate, progress=progress, dtype=dtype,
    )  # fmt: skip


@takes_tol
@at_operand
@differentiable(_recordable)
def minres(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, shift: float | None = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callback = None, show: bool = False, check: bool = False, progress: Progress = None,
    dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Minimal residuals for a symmetric matrix, definite or not; see `cg`.

    Cost: one product for each iteration.
    See also: cg, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.minres(L, b)
    >>> info
    0
    """
    return solver(
        "minres", a, b, x0, rtol=rtol, shift=shift, maxiter=maxiter, M=M, callback=callback, show=show, check=check,
        progress=progress, dtype=dtype,
    )  # fmt: skip


@takes_tol
@at_operand
@differentiable(_recordable)
def qmr(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = None,
    M1: Any = None, M2: Any = None, callback: Callback = None, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Quasi-minimal residuals for any square matrix; takes products with its adjoint; `M1` and `M2`; see `cg`.

    Cost: two products for each iteration, one with the adjoint.
    See also: bicg, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.qmr(L, b)
    >>> info
    0
    """
    return solver(
        "qmr", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M1=M1, M2=M2, callback=callback, progress=progress,
        dtype=dtype,
    )  # fmt: skip


@takes_tol
@at_operand
@differentiable(_recordable)
def tfqmr(
    a: Any, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callback = None, show: bool = False, progress: Progress = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Transpose-free quasi-minimal residuals for any square matrix; see `cg`.

    Cost: two products for each iteration.
    See also: qmr, gmres.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x, info = ow.linalg.tfqmr(L, b)
    >>> info
    0
    """
    return solver(
        "tfqmr", a, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback, show=show,
        progress=progress, dtype=dtype,
    )  # fmt: skip


@at_operand
@differentiable(_recordable)
def lsqr(
    a: Any, b: Any, damp: Any = 0.0, *, atol: float | None = 1e-6, btol: float | None = 1e-6,
    conlim: float | None = 1e8, iter_lim: int | None = None, show: bool = False, calc_var: bool = False, x0: Any = None,
    progress: Progress = None, dtype: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The least-squares solution of `a @ x = b` for a matrix of any shape and format.

    Parameters
    ----------
    atol : the relative error of the matrix at which it stops
    btol : the relative error of the right side at which it stops

    Returns what `scipy.sparse.linalg.lsqr` does, x first and of the kind of `b`; takes its options (`atol`, `btol`,
    `conlim`, `iter_lim`, `x0`, ...) and `progress`. Warns with ConvergenceWarning where it stops early; see `cg`.

    Cost: two products for each iteration.
    See also: lsmr, solve.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x = ow.linalg.lsqr(L, b)[0]
    >>> np.allclose(L @ x, b)
    True
    """
    return least_squares(
        "lsqr", a, b, damp=damp, atol=atol, btol=btol, conlim=conlim, iter_lim=iter_lim, show=show,
        calc_var=calc_var, x0=x0, progress=progress, dtype=dtype,
    )  # fmt: skip


@at_operand
@differentiable(_recordable)
def lsmr(
    a: Any, b: Any, damp: Any = 0.0, *, atol: float | None = 1e-6, btol: float | None = 1e-6,
    conlim: float | None = 1e8, maxiter: int | None = None, show: bool = False, x0: Any = None,
    progress: Progress = None, dtype: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The least-squares solution of `a @ x = b` by LSMR, as `scipy.sparse.linalg.lsmr` gives it; see `lsqr`.

    Parameters
    ----------
    atol : the relative error of the matrix at which it stops
    btol : the relative error of the right side at which it stops

    Returns
    -------
    tuple as of `scipy.sparse.linalg.lsmr`: x, of the kind of `b`, why it stopped, iterations, norms

    Cost: two products for each iteration.
    See also: lsqr, solve.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x = ow.linalg.lsmr(L, b, atol=1e-10, btol=1e-10)[0]
    >>> np.allclose(L @ x, b)
    True
    """
    return least_squares(
        "lsmr", a, b, damp=damp, atol=atol, btol=btol, conlim=conlim, maxiter=maxiter, show=show, x0=x0,
        progress=progress, dtype=dtype,
    )  # fmt: skip

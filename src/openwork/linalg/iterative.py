"""A matrix and right sides -> solutions by SciPy's Krylov solvers, with products by our kernels; SciPy's keywords."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError
from ..runtime.at_operand import at_operand
from ..storage.buffers import is_torch, numpy_dtype
from ..tensor.tensor import Tensor
from .convergence import Iterations, NonfiniteIterate, warn
from .named import preconditioner_by_name
from .operands import counts, dense, matrix, numbers, options_of, right_side, solve_scalar
from .operator import aslinearoperator, from_callable, is_operator, preconditioner
from .progress import report_progress

__all__ = ["bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "lsmr", "lsqr", "minres", "qmr", "tfqmr"]

Array = np.ndarray[Any, Any]

_DEFAULT_ITERATIONS = {"minres": 5, "lsqr": 2, "lsmr": 1}
"""Iterations that SciPy's methods do by default, in unknowns; the others 10."""
_DEFAULT_CYCLES = {"lgmres": 1000, "gcrotmk": 1000}
"""Those of which SciPy counts cycles."""
_POSITIVE_OPTIONS = ("maxiter", "iter_lim", "restart", "inner_m", "m")
_PRECONDITIONERS = ("M", "M1", "M2")


@dataclass(frozen=True, slots=True)
class _System:
    """A linear system: the matrix as SciPy's operator, the right side, and the conversion of results to its kind."""

    operator: Any
    right: Array
    back: Any
    like: Any
    dtype: np.dtype[Any]

    def norm(self, x: Array) -> float:
        """The norm of the residual."""
        with np.errstate(all="ignore"):
            return float(np.linalg.norm(self.right.reshape(-1) - self.operator.matvec(x.reshape(-1))))

    def is_hermitian(self) -> bool:
        """Whether it looks so: (A u, v) = (u, A v) for two random vectors, by two products."""
        u, v = np.random.default_rng(0).standard_normal((2, len(self.right)))
        with np.errstate(all="ignore"):
            au, av = self.operator.matvec(u), self.operator.matvec(v)
            scale = np.linalg.norm(au) * np.linalg.norm(v) + np.linalg.norm(u) * np.linalg.norm(av)
            return bool(abs(np.vdot(v, au) - np.vdot(av, u)) <= 1e3 * np.finfo(self.dtype).eps * scale)


def _system(name: str, a: Any, b: Any, must_be_square: bool = True) -> _System:
    right, to_result = right_side(b, a)
    if right.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: expected a right side of numbers; got dtype {right.dtype}")
    if right.ndim not in (1, 2) or (right.ndim == 2 and right.shape[1] != 1):
        raise ShapeError(
            f"{name}: expected one right side, (n,) or (n, 1); got shape {right.shape}"
            "\n  help: one call for each column"
        )
    values = b.values if isinstance(b, Tensor) else b
    like = values if is_torch(values) else None
    if is_operator(a):
        operator = aslinearoperator(a)
    elif callable(a) and not isinstance(a, Tensor):
        operator = from_callable(a, len(right), like, numpy_dtype(solve_scalar(right)))
    else:
        operator = aslinearoperator(matrix(a, name))
    shape = operator.shape
    if must_be_square and shape[0] != shape[1]:
        raise ShapeError(f"{name}: expected a square matrix; got shape {shape}\n  help: lsqr and lsmr solve others")
    if shape[0] != right.shape[0]:
        raise ShapeError(
            f"{name}: the matrix has shape {shape}, the right side {right.shape}"
            f"\n  expected {shape[0]} rows; got {right.shape[0]}"
        )
    return _System(
        operator, right, to_result, like, np.result_type(operator.dtype or right.dtype, right.dtype, np.float32)
    )


def _options(name: str, a: Any, system: _System, options: dict[str, Any]) -> dict[str, Any]:
    """The options as SciPy takes them. Raises TypeError for one that its method does not have."""
    options = options_of(name, options)
    counts(name, options)
    numbers(name, options)
    for key in _POSITIVE_OPTIONS:
        if options.get(key) is not None and options[key] < 1:
            raise ValueError(
                f"{name}: expected {key} of 1 or more; got {options[key]}\n  help: None is SciPy's default"
            )
    if not callable(options.get("callback", len)) and options["callback"] is not None:
        raise DTypeError(f"{name}: callback is a function; got: {options['callback']!r}")
    n = system.operator.shape[1]
    for m in _PRECONDITIONERS:
        if options.get(m) is not None:
            m_operand = preconditioner_by_name(options[m], a) if isinstance(options[m], str) else options[m]
            options[m] = preconditioner(m_operand, n, name, system.like, system.dtype)
    if options.get("x0") is not None:
        options["x0"] = dense(options["x0"])
        if options["x0"].shape not in ((n,), (n, 1)):
            raise ShapeError(f"{name}: expected x0 of shape ({n},); got {options['x0'].shape}")
    return options


def _run(name: str, system: _System, options: dict[str, Any]) -> Any:
    """Run SciPy's method; UnsupportedError for a product that an operand does not have."""
    import scipy.sparse.linalg as scipys

    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return getattr(scipys, name)(system.operator, system.right, **options)
    except NotImplementedError as error:
        if isinstance(error, UnsupportedError):
            raise
        raise UnsupportedError(
            f"{name} takes products with the adjoint, which an operand does not have"
            "\n  help: a LinearOperator with rmatvec, or a method that takes none, such as gmres"
        ) from error


def _solver(name: str, a: Any, b: Any, x0: Any, options: dict[str, Any]) -> tuple[Any, int]:
    system = _system(name, a, b)
    if name == "minres" and system.dtype.kind == "c":
        raise UnsupportedError("minres: SciPy's method is for real numbers\n  help: gmres, or cg where A is positive")
    progress = options.pop("progress", None)
    options = _options(name, a, system, {**options, "x0": x0})
    n = len(system.right)
    if not n:
        return system.back(np.zeros(0, system.dtype)), 0
    if not np.isfinite(system.right).all():
        warn(name, 0, math.nan, 0.0)
        return system.back(np.full(n, np.nan, system.dtype)), 1
    limit = options.get("maxiter") or _DEFAULT_CYCLES.get(name, _DEFAULT_ITERATIONS.get(name, 10) * n)
    inner = options.get("restart") or min(20, n) if name == "gmres" else 1
    with report_progress(progress, name, limit * inner) as step:
        iterations = options["callback"] = Iterations(
            options.get("callback"), step, system.norm, float(np.linalg.norm(system.right))
        )
        try:
            x, info = _run(name, system, options)
        except NonfiniteIterate as broken:
            x = np.full(n, np.nan, system.dtype) if broken.x is None else broken.x
            info = iterations.count
            warn(name, iterations.count, math.nan, 0.0)
            return system.back(x), info
    if info:
        info = _check_tolerance(name, system, x, int(info), iterations.count, options)
    return system.back(x), int(info)


def _check_tolerance(name: str, system: _System, x: Array, info: int, iterations: int, options: dict[str, Any]) -> int:
    """Check the last iterate -> 0 where it is within the tolerance, else SciPy's number, after a warning."""
    residual = system.norm(x)
    relative = options.get("rtol", options.get("tol", 1e-5))
    tolerance = max(relative * float(np.linalg.norm(system.right)), options.get("atol") or 0.0)
    if residual <= tolerance:
        return 0
    reason = "which broke down" if info < 0 else ""
    if name in ("cg", "minres") and not system.is_hermitian():
        warn(name, iterations, residual, tolerance, reason, f"A is not Hermitian, which {name} needs: gmres, bicgstab")
    else:
        warn(name, iterations, residual, tolerance, reason)
    return info


@at_operand
def cg(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
    """Conjugate gradients for a Hermitian positive definite matrix of any format.

    Parameters
    ----------
    a : Tensor, array, LinearOperator or function of a vector, shape (n, n)
    b : vector (n,)
    x0 : where to start
    options : of `scipy.sparse.linalg.cg`: `rtol`, `atol`, `maxiter`, `callback`, and `M`, a preconditioner, which is an
        approximate inverse: Tensor, array, LinearOperator, a function of a vector, what `jacobi`, `ssor`, `ic0`,
        `ilu0`, `amg`, `spilu`, `splu` and `factorized` give, or the name of one of the first five.
    progress : True for a bar on stderr, or a function of (iterations, most iterations)

    Returns
    -------
    (x, info): x of the kind of `b`; info 0 where it converged, else the number of iterations

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
    return _solver("cg", a, b, x0, options)


@at_operand
def cgs(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("cgs", a, b, x0, options)


@at_operand
def bicg(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("bicg", a, b, x0, options)


@at_operand
def bicgstab(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("bicgstab", a, b, x0, options)


@at_operand
def gmres(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
    """Generalised minimal residuals for any square matrix; see `cg`, and SciPy's `restart`, `callback_type`.

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
    if options.get("callback_type") is None:
        options["callback_type"] = "pr_norm"
    return _solver("gmres", a, b, x0, options)


@at_operand
def lgmres(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("lgmres", a, b, x0, options)


@at_operand
def gcrotmk(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
    """GCROT(m, k) for any square matrix; see `cg`, and SciPy's `m`, `k`, `truncate`.

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
    return _solver("gcrotmk", a, b, x0, options)


@at_operand
def minres(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("minres", a, b, x0, options)


@at_operand
def qmr(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("qmr", a, b, x0, options)


@at_operand
def tfqmr(a: Any, b: Any, x0: Any = None, **options: Any) -> tuple[Any, int]:
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
    return _solver("tfqmr", a, b, x0, options)


_STOP_REASONS = {3: "the matrix seems ill-conditioned", 6: "the matrix is ill-conditioned", 7: ""}
"""Why lsqr and lsmr stop without an answer, by their `istop`."""


def _least_squares(name: str, a: Any, b: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    system = _system(name, a, b, must_be_square=False)
    progress = options.pop("progress", None)
    options = _options(name, a, system, options)
    limit = options.get("iter_lim") or options.get("maxiter") or _DEFAULT_ITERATIONS[name] * min(system.operator.shape)
    with report_progress(progress, name, limit) as step:
        if progress:
            system = _count_products(system, step)
        x, stop, iterations, norm, *rest = _run(name, system, options)
    residual = float(norm)
    if stop in _STOP_REASONS or not np.isfinite(x).all():
        scale = float(np.linalg.norm(system.right))
        warn(name, int(iterations), residual, options.get("btol", 1e-6) * scale, _STOP_REASONS.get(stop, ""))
    return (system.back(x), stop, iterations, norm, *rest)


def _count_products(system: _System, step: Any) -> _System:
    """The system with an operator whose products are counted: one an iteration, after the first."""
    from scipy.sparse.linalg import LinearOperator

    inner, products = system.operator, -1

    def product(x: Array) -> Any:
        nonlocal products
        products += 1
        if products:
            step(products, None)
        return inner.matvec(x)

    counted = LinearOperator(inner.shape, matvec=product, rmatvec=inner.rmatvec, dtype=inner.dtype)
    return _System(counted, system.right, system.back, system.like, system.dtype)


@at_operand
def lsqr(a: Any, b: Any, damp: Any = 0.0, **options: Any) -> tuple[Any, ...]:
    """The least-squares solution of `a @ x = b` for a matrix of any shape and format.

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
    return _least_squares("lsqr", a, b, {**options, "damp": damp})


@at_operand
def lsmr(a: Any, b: Any, damp: Any = 0.0, **options: Any) -> tuple[Any, ...]:
    """The least-squares solution of `a @ x = b` by LSMR, as `scipy.sparse.linalg.lsmr` gives it; see `lsqr`.

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
    return _least_squares("lsmr", a, b, {**options, "damp": damp})

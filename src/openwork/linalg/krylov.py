"""A call of one of SciPy's Krylov solvers -> its solution: operands and options are checked, products are ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from .. import DTypeError, ShapeError, Tensor, UnsupportedError
from ..classes import frozen
from ..progress import Step, reporting
from ..storage.buffers import is_torch, numpy_dtype
from .block_krylov import METHODS
from .convergence import Iterations, NonfiniteIterate, warn
from .named import preconditioner_by_name
from .operands import counts, dense, matrix, numbers, options_of, right_side, solve_scalar
from .operator import aslinearoperator, from_callable, identity, is_operator, preconditioner

__all__ = ["least_squares", "solver", "takes_tol"]

F = TypeVar("F", bound=Callable[..., Any])

Array = np.ndarray[Any, Any]

_DEFAULT_ITERATIONS = {"minres": 5, "lsqr": 2, "lsmr": 1}
"""Iterations that SciPy's methods do by default, in unknowns; the others 10."""
_DEFAULT_CYCLES = {"lgmres": 1000, "gcrotmk": 1000}
"""Those of which SciPy counts cycles."""
_ACCUMULATED = ("float32", "float64", "complex64", "complex128")
_POSITIVE_OPTIONS = ("maxiter", "iter_lim", "restart", "inner_m", "m")
_PRECONDITIONERS = ("M", "M1", "M2")


@frozen
class System:
    """A linear system: the matrix as SciPy's operator, the right side, and the conversion of results to its kind."""

    operator: Any
    right: Array
    back: Any
    like: Any
    dtype: np.dtype[Any]

    def norm(self, x: Array) -> float:
        """The norm of the residual; of several right sides the largest."""
        with np.errstate(all="ignore"):
            if self.right.ndim == 2 and self.right.shape[1] != 1:
                return float(np.linalg.norm(self.right - self.operator.matmat(x), axis=0).max())
            return float(np.linalg.norm(self.right.reshape(-1) - self.operator.matvec(x.reshape(-1))))

    def is_hermitian(self) -> bool:
        """Whether it looks so: (A u, v) = (u, A v) for two random vectors, by two products."""
        u, v = np.random.default_rng(0).standard_normal((2, len(self.right)))
        with np.errstate(all="ignore"):
            au, av = self.operator.matvec(u), self.operator.matvec(v)
            scale = np.linalg.norm(au) * np.linalg.norm(v) + np.linalg.norm(u) * np.linalg.norm(av)
            return bool(abs(np.vdot(v, au) - np.vdot(av, u)) <= 1e3 * np.finfo(self.dtype).eps * scale)


def linear_system(name: str, a: Any, b: Any, dtype: Any = None, must_be_square: bool = True) -> System:
    right, to_result = right_side(b, a)
    if right.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: expected a right side of numbers; got dtype {right.dtype}")
    if right.ndim not in (1, 2) or (right.ndim == 2 and right.shape[1] != 1 and name not in METHODS):
        raise ShapeError(
            f"{name}: expected one right side, (n,) or (n, 1); got shape {right.shape}"
            "\n  help: cg and gmres take several; one call for each column"
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
    found = np.result_type(operator.dtype or right.dtype, right.dtype, np.float32)
    if dtype is None:
        return System(operator, right, to_result, like, found)
    wanted = _accumulation(name, dtype, found)
    return System(operator, right.astype(wanted), to_result, like, wanted)


def _accumulation(name: str, dtype: Any, found: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to compute in. Raises DTypeError for one that holds less than the operands."""
    try:
        wanted = np.dtype(dtype if isinstance(dtype, str | type | np.dtype) else str(dtype).removeprefix("torch."))
    except TypeError:
        wanted = np.dtype(object)
    if wanted.name not in _ACCUMULATED or np.result_type(wanted, found) != wanted:
        raise DTypeError(
            f"{name}: dtype={dtype!r} does not hold {found} of the operands\n  help: float64 or complex128; a lower one"
            " by astype of the operands"
        )
    return wanted


def scipy_options(name: str, a: Any, system: System, options: dict[str, Any]) -> dict[str, Any]:
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
    if (options.get("M1") is None) != (options.get("M2") is None):  # qmr's, which takes both or none
        options |= {m: identity(n, system.dtype) for m in ("M1", "M2") if options.get(m) is None}
    if options.get("x0") is not None:
        options["x0"] = dense(options["x0"])
        if options["x0"].shape not in ((n,), (n, 1), system.right.shape):
            raise ShapeError(f"{name}: expected x0 of shape {system.right.shape}; got {options['x0'].shape}")
        options["x0"] = options["x0"].astype(np.result_type(options["x0"], system.dtype))
    return options


def _run(name: str, system: System, options: dict[str, Any]) -> Any:
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


def _run_block(name: str, system: System, options: dict[str, Any]) -> tuple[Array, int]:
    """(x, info) of several right sides at once."""
    dtype = system.dtype
    right = system.right.astype(dtype)
    m = options.get("M")
    given = options.get("x0")
    x = np.zeros_like(right) if given is None else np.array(np.broadcast_to(given.reshape(len(right), -1), right.shape))
    norms = np.linalg.norm(right, axis=0)
    limits = np.maximum(options.get("rtol", options.get("tol", 1e-5)) * norms, options.get("atol") or 0.0)
    n, k = right.shape
    restart = max(1, min(options.get("restart") or 20, n // k))
    parts = [slice(at, at + n) for at in range(0, k, n)]  # a basis has at most n columns
    infos = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for part in parts:
            x[:, part], info = METHODS[name](
                lambda v: np.asarray(system.operator.matmat(v), dtype),
                None if m is None else lambda v: np.asarray(m.matmat(v), dtype), right[:, part], x[:, part],
                limits[part], options.get("maxiter") or 10 * n, restart, options["callback"],
            )  # fmt: skip
            infos.append(info)
    return x, max(infos)


def takes_tol(function: F) -> F:
    """The solver, which takes `tol=` for `rtol=`, as SciPy's had it before 1.12."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "tol" in kwargs and "rtol" not in kwargs:
            kwargs["rtol"] = kwargs.pop("tol")
        return function(*args, **kwargs)

    return cast("F", call)


def solver(name: str, a: Any, b: Any, x0: Any, *, dtype: Any = None, **options: Any) -> tuple[Any, int]:
    """(x, info) of a solver of square systems."""
    system = linear_system(name, a, b, dtype)
    if name == "minres" and system.dtype.kind == "c":
        raise UnsupportedError("minres: SciPy's method is for real numbers\n  help: gmres, or cg where A is positive")
    progress = options.pop("progress", None)
    options = scipy_options(name, a, system, {**options, "x0": x0})
    n = len(system.right)
    several = system.right.ndim == 2 and system.right.shape[1] != 1
    shape = system.right.shape if several else (n,)
    if not system.right.size:
        return system.back(np.zeros(shape, system.dtype)), 0
    if not np.isfinite(system.right).all():
        warn(name, 0, math.nan, 0.0)
        return system.back(np.full(shape, np.nan, system.dtype)), 1
    limit = options.get("maxiter") or _DEFAULT_CYCLES.get(name, _DEFAULT_ITERATIONS.get(name, 10) * n)
    inner = options.get("restart") or min(20, n) if name == "gmres" else 1
    with reporting(progress, name) as passes:
        iterations = options["callback"] = Iterations(
            options.get("callback"), passes.begin(name, "iterations", at_most=True), limit * inner, system.norm,
            float(np.linalg.norm(system.right)),
        )  # fmt: skip
        try:
            x, info = (_run_block if several else _run)(name, system, options)
        except NonfiniteIterate as broken:
            x = np.full(shape, np.nan, system.dtype) if broken.x is None else broken.x
            info = iterations.count
            warn(name, iterations.count, math.nan, 0.0)
            return system.back(x), info
    if info:
        info = _check_tolerance(name, system, x, int(info), iterations.count, options)
    return system.back(x), int(info)


def _check_tolerance(name: str, system: System, x: Array, info: int, iterations: int, options: dict[str, Any]) -> int:
    """Check the last iterate -> 0 where it is within the tolerance, else SciPy's number, after a warning."""
    residual = system.norm(x)
    relative = options.get("rtol", options.get("tol", 1e-5))
    norms = np.linalg.norm(system.right, axis=0)
    tolerance = max(relative * float(norms.max()), options.get("atol") or 0.0)
    if residual <= tolerance and norms.size == 1:
        return 0
    reason = "which broke down" if info < 0 else ""
    if name in ("cg", "minres") and not system.is_hermitian():
        warn(name, iterations, residual, tolerance, reason, f"A is not Hermitian, which {name} needs: gmres, bicgstab")
    else:
        warn(name, iterations, residual, tolerance, reason)
    return info


_STOP_REASONS = {3: "the matrix seems ill-conditioned", 6: "the matrix is ill-conditioned", 7: ""}
"""Why lsqr and lsmr stop without an answer, by their `istop`."""


def least_squares(name: str, a: Any, b: Any, *, dtype: Any = None, **options: Any) -> tuple[Any, ...]:
    """What lsqr or lsmr gives."""
    system = linear_system(name, a, b, dtype, must_be_square=False)
    progress = options.pop("progress", None)
    options = scipy_options(name, a, system, options)
    limit = options.get("iter_lim") or options.get("maxiter") or _DEFAULT_ITERATIONS[name] * min(system.operator.shape)
    with reporting(progress, name) as passes:
        step = passes.begin(name, "iterations", at_most=True)
        if step is not None:
            system = _count_products(system, step, limit)
        x, stop, iterations, norm, *rest = _run(name, system, options)
    residual = float(norm)
    if stop in _STOP_REASONS or not np.isfinite(x).all():
        scale = float(np.linalg.norm(system.right))
        warn(name, int(iterations), residual, options.get("btol", 1e-6) * scale, _STOP_REASONS.get(stop, ""))
    return (system.back(x), stop, iterations, norm, *rest)


def _count_products(system: System, step: Step, limit: int) -> System:
    """The system with an operator whose products are counted: one an iteration, after the first."""
    from scipy.sparse.linalg import LinearOperator

    inner, products = system.operator, -1

    def product(x: Array) -> Any:
        nonlocal products
        products += 1
        if products:
            step(products, limit)
        return inner.matvec(x)

    counted = LinearOperator(inner.shape, matvec=product, rmatvec=inner.rmatvec, dtype=inner.dtype)
    return System(counted, system.right, system.back, system.like, system.dtype)

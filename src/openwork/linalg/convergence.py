"""A solver's iterations -> their count, calls of callbacks, and a warning where the tolerance was not reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ConvergenceWarning, caller
from ..progress import Step

__all__ = ["Iterations", "NonfiniteIterate", "warn"]

Array = np.ndarray[Any, Any]

_REMEDIES = {
    "cg": 'a preconditioner such as M="ic0" or M="amg", more iterations (maxiter=), minres for an indefinite A',
    "minres": "a positive definite preconditioner M, more iterations (maxiter=)",
    "lsqr": "more iterations (iter_lim=), columns of similar norms, damp= for a matrix of low rank",
    "lsmr": "more iterations (maxiter=), columns of similar norms, damp= for a matrix of low rank",
}
_REMEDY = 'a preconditioner such as M="ilu0" or M=spilu(A), more iterations (maxiter=), or solve(A, b)'


class NonfiniteIterate(Exception):
    """Ends a solver whose iterate has elements that are nan or inf."""

    def __init__(self, x: Array | None) -> None:
        self.x = x


class Iterations:
    """SciPy's callback: counts iterations, hands them on, and raises `NonfiniteIterate` once they are nan or inf.

    step, limit : what is told of each iteration, None for nobody, and the most iterations
    norm : gives the residual's norm for an iterate, for who shows it
    scale : the right side's norm, by which GMRES divides what it tells
    """

    def __init__(
        self, callback: Callable[[Any], Any] | None, step: Step | None, limit: int, norm: Callable[[Array], float],
        scale: float,
    ) -> None:  # fmt: skip
        self.callback, self.step, self.limit, self.norm, self.scale = callback, step, limit, norm, scale
        self.count = 0

    def __call__(self, state: Any) -> None:
        """One more iteration, of the iterate or of the residual's norm, as the method tells."""
        self.count += 1
        if self.callback is not None:
            self.callback(state)
        value = np.asarray(state)
        if not np.isfinite(value).all():
            raise NonfiniteIterate(value if value.ndim else None)
        if self.step is not None:
            self.step(self.count, self.limit, lambda: f"residual {self.residual(value):.1e}")

    def residual(self, state: Array) -> float:
        """The residual's norm, of what the method tells."""
        return float(state) * self.scale if state.ndim == 0 else self.norm(state)


def warn(
    operation: str, iterations: int, residual: float, tolerance: float, reason: str = "", remedy: str | None = None
) -> None:
    """Warn the caller of a solver that it did not converge."""
    why = f", {reason}" if reason else ""
    message = (
        f"{operation}: no convergence after {iterations} iterations{why}"
        f"\n  expected a residual of norm {tolerance:.3g} at most; got {residual:.3g}"
        f"\n  help: {remedy or _REMEDIES.get(operation, _REMEDY)}"
    )
    if not np.isfinite(residual):
        message = (
            f"{operation}: no convergence: nan or inf after {iterations} iterations, which stay"
            "\n  help: look for elements of the operands that are nan or inf, and for overflow"
        )
    caller.warn(ConvergenceWarning(message, operation, iterations, residual))

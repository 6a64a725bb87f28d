"""The CP decomposition: a tensor of any format -> a sum of `rank` outer products of vectors.

    X[i, j, k] ~ sum over r of weights[r] * A[i, r] * B[j, r] * C[k, r]

Each step solves for one factor with the others fixed: A (B'B * C'C) = X_(1) (C khatri-rao B), by `mttkrp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

import numpy as np

from .. import mttkrp
from ..progress import Progress, ignore, reporting
from ..reals import real
from ..runtime.at_operand import at_operand
from .model import Model
from .operands import Factor, host, is_kept, operand, positive, square_norm, start, summary

__all__ = ["CP", "cp_als"]


@dataclass(frozen=True, repr=False)
class CP(Model):
    """What `cp_als` gives; `to_numpy()` is the dense array of the model.

    weights : (rank,), descending
    factors : one array (n_k, rank) for each dimension, columns of length 1
    fit : 1 - norm(X - model) / norm(X); 1 is exact
    fits : the fit after each iteration
    converged : whether the fit changed by less than `tol` in the last iteration

    Examples
    --------
    >>> model = ow.decomposition.cp_als(ow.asarray(np.ones((2, 3, 4)), format="csf"), 1, rng=0)
    >>> [f.shape for f in model.factors], round(model.fit, 3)
    ([(2, 1), (3, 1), (4, 1)], 1.0)
    >>> bool(np.allclose(model.to_numpy(), 1))
    True
    """

    weights: Factor
    factors: list[Factor]
    fit: float
    fits: list[float]
    converged: bool

    def __repr__(self) -> str:
        return summary(f"CP(rank={len(self.weights)}", self.factors, self.fit, self.fits, self.converged)

    def _einsum(self) -> tuple[str, tuple[Factor, ...]]:
        letters = ascii_lowercase[: len(self.factors)]
        terms = ",".join(f"{c}z" for c in letters)
        return f"z,{terms}->{letters}", (self.weights, *self.factors)


@at_operand
def cp_als(
    x: Any, rank: int, *, maxiter: int = 50, tol: float = 1e-4, init: Any = "random", rng: Any = None,
    progress: Progress = None,
) -> CP:  # fmt: skip
    """The CP decomposition of a sparse or dense tensor by alternating least squares.

    Parameters
    ----------
    x : Tensor of rank 2 or more, any format with fill value 0, real; or an `openwork.dask.BlockTensor`
    rank : how many outer products
    maxiter : iterations, in each of which every factor is solved for once
    tol : the change of the fit at which it ends
    init : "random", or a list of factors (n_k, rank)
    rng : a seed or generator of NumPy, for "random"
    progress : True for a bar on stderr with the fit, or a function of (iterations, maxiter)

    Returns
    -------
    CP: weights, factors, fit, fits, converged

    Guarantees: the fit of one iteration is no less than that of the one before, up to rounding; the same seed gives
    the same factors. Cost per iteration: O(ndim * nse * rank) and O(sum of n_k * rank**2).
    Raises ShapeError for a rank below 1 or factors of other shapes, DTypeError for complex numbers, UnsupportedError
    for another fill value. Source: Kolda and Bader 2009, section 3.4.

    See also: tucker, mttkrp.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> model = ow.decomposition.cp_als(T, 1, rng=0)
    >>> round(model.fit, 3)
    1.0
    """
    t = operand(x, "cp_als", kept=True)
    rank, maxiter = positive(rank, "cp_als", "rank"), positive(maxiter, "cp_als", "maxiter")
    tol = real(tol, "cp_als", "tol")
    factors = start(t, [rank] * t.ndim, init, rng, "cp_als")
    total = square_norm(t)
    weights = np.ones(rank, t.dtype)
    fits: list[float] = []
    converged = False
    with reporting(progress, "cp_als") as passes:
        step = passes.begin("cp_als", "iterations", at_most=True) or ignore
        while len(fits) < maxiter and not converged:
            weights, last = _sweep(t, factors)
            fits.append(_fit(total, weights, factors, last))
            converged = len(fits) > 1 and abs(fits[-1] - fits[-2]) < tol
            step(len(fits), maxiter, lambda: f"fit {fits[-1]:.4f}")
    order = np.argsort(-weights, kind="stable")
    return CP(weights[order], [f[:, order] for f in factors], fits[-1], fits, converged)


def _sweep(t: Any, factors: list[Factor]) -> tuple[Factor, Factor]:
    """Solve for every factor once, in place; the weights, and the last right side."""
    weights = right = np.ones(0)
    for d in range(t.ndim):
        grams = [f.T @ f for k, f in enumerate(factors) if k != d]
        gram = np.prod(grams, axis=0)
        others = [None if k == d else f for k, f in enumerate(factors)]
        right = t.mttkrp(others, d) if is_kept(t) else host(mttkrp(t, others, d))
        solved = right @ np.linalg.pinv(gram, hermitian=True)
        weights = np.sqrt((solved * solved).sum(0))
        factors[d] = (solved / np.where(weights > 0, weights, 1)).astype(t.dtype)
    return weights, right


def _fit(total: float, weights: Factor, factors: list[Factor], right: Factor) -> float:
    """1 - norm(X - model) / norm(X), from norms and the inner product of the two: X is not walked again."""
    grams = np.prod([f.T.astype(np.float64) @ f for f in factors], axis=0)
    model = float(weights @ grams @ weights)
    inner = float(((right.astype(np.float64) * factors[-1]).sum(0) * weights).sum())
    rest = max(total + model - 2 * inner, 0.0)
    return 1.0 if total == 0 else 1 - math.sqrt(rest) / math.sqrt(total)

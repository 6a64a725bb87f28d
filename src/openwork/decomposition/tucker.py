"""The Tucker decomposition: a tensor of any format -> a small core and a matrix with orthonormal columns per dimension.

    X[i, j, k] ~ sum over p, q, r of core[p, q, r] * A[i, p] * B[j, q] * C[k, r]

Higher-order orthogonal iteration (HOOI): each factor in turn holds the leading left singular vectors of X contracted
with all the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from .. import ShapeError, Tensor, einsum
from ..integers import integers
from ..progress import Progress, ignore, reporting
from ..reals import real
from .model import Model
from .operands import Factor, host, operand, positive, square_norm, start, summary

__all__ = ["Tucker", "tucker"]


@dataclass(frozen=True, repr=False)
class Tucker(Model):
    """What `tucker` gives; `to_numpy()` is the dense array of the model.

    core : array of the shape of the ranks
    factors : one array (n_k, ranks[k]) for each dimension, columns orthonormal
    fit : 1 - norm(X - model) / norm(X); 1 is exact
    fits : the fit after each iteration
    converged : whether the fit changed by less than `tol` in the last iteration

    Examples
    --------
    >>> model = ow.decomposition.tucker(ow.asarray(np.ones((2, 3, 4)), format="csf"), (1, 2, 2), rng=0)
    >>> model.core.shape, model.to_numpy().shape
    ((1, 2, 2), (2, 3, 4))
    """

    core: Factor
    factors: list[Factor]
    fit: float
    fits: list[float]
    converged: bool

    def __repr__(self) -> str:
        return summary(f"Tucker(ranks={tuple(self.core.shape)}", self.factors, self.fit, self.fits, self.converged)

    def _einsum(self) -> tuple[str, tuple[Factor, ...]]:
        n = len(self.factors)
        inner, outer = ascii_uppercase[:n], ascii_lowercase[:n]
        terms = ",".join(o + i for o, i in zip(outer, inner, strict=True))
        return f"{inner},{terms}->{outer}", (self.core, *self.factors)


def tucker(
    x: Any, ranks: int | Sequence[int], *, maxiter: int = 50, tol: float = 1e-4, init: Any = "random", rng: Any = None,
    progress: Progress = None,
) -> Tucker:  # fmt: skip
    """The Tucker decomposition of a sparse or dense tensor by higher-order orthogonal iteration.

    Parameters
    ----------
    x : Tensor of rank 2 or more, any format with fill value 0, real
    ranks : the extents of the core, one number for all or one for each dimension, at most those of `x`
    maxiter : iterations, in each of which every factor is solved for once
    tol : the change of the fit at which it ends
    init : "random", or a list of factors (n_k, ranks[k]), whose columns are made orthonormal
    rng : a seed or generator of NumPy, for "random"
    progress : True for a bar on stderr with the fit, or a function of (iterations, maxiter)

    Returns
    -------
    Tucker: core, factors, fit, fits, converged

    Guarantees: columns of factors are orthonormal; the fit of one iteration is no less than that of the one before, up
    to rounding; the same seed gives the same factors, up to signs.
    Cost per iteration: O(ndim * nse * product of ranks); arrays of n_k * product of the other ranks.
    Raises ShapeError for ranks that are no such extents. Source: Kolda and Bader 2009, section 4.2.

    See also: cp_als, ttm.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> model = ow.decomposition.tucker(T, (1, 1, 1), rng=0)
    >>> model.core.shape
    (1, 1, 1)
    """
    t = operand(x, "tucker")
    sizes = _ranks(ranks, t.shape)
    maxiter, tol = positive(maxiter, "tucker", "maxiter"), real(tol, "tucker", "tol")
    factors = [np.linalg.qr(f)[0] for f in start(t, sizes, init, rng, "tucker")]
    total = square_norm(t)
    fits: list[float] = []
    core, converged = np.zeros(0), False
    with reporting(progress, "tucker") as passes:
        step = passes.begin("tucker", "iterations", at_most=True) or ignore
        while len(fits) < maxiter and not converged:
            core = _sweep(t, factors, sizes)
            rest = max(total - float((core.astype(np.float64) ** 2).sum()), 0.0)
            fits.append(1.0 if total == 0 else 1 - math.sqrt(rest) / math.sqrt(total))
            converged = len(fits) > 1 and abs(fits[-1] - fits[-2]) < tol
            step(len(fits), maxiter, lambda: f"fit {fits[-1]:.4f}")
    return Tucker(core, factors, fits[-1], fits, converged)


def _sweep(t: Any, factors: list[Factor], sizes: tuple[int, ...]) -> Factor:
    """Solve for every factor once, in place; the core."""
    small = np.zeros(0)
    for d in range(t.ndim):
        small = _contracted(t, factors, d)
        factors[d] = _leading(small.reshape(small.shape[0], -1), sizes[d])
    return np.moveaxis(np.tensordot(factors[-1].T, small, axes=1), 0, -1)


def _ranks(ranks: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    given = integers(ranks, "tucker", "ranks", boolean=False)
    sizes = given * len(shape) if len(given) == 1 else given
    if len(sizes) != len(shape) or any(not 1 <= r <= n for r, n in zip(sizes, shape, strict=False)):
        raise ShapeError(f"tucker: ranks={ranks} of shape {shape}\n  help: one for each, between 1 and the extent")
    for d, r in enumerate(sizes):
        others = math.prod(sizes) // r
        if r > others:
            raise ShapeError(
                f"tucker: ranks={ranks}: {r} of dimension {d} is more than the product of the others, {others}"
                "\n  help: make it smaller"
            )
    return sizes


def _contracted(t: Tensor, factors: list[Factor], d: int) -> Factor:
    """The tensor contracted with all factors but that of `d`, whose dimension comes first."""
    letters, inner = ascii_lowercase[: t.ndim], ascii_uppercase[: t.ndim]
    others = [k for k in range(t.ndim) if k != d]
    terms = ",".join(letters[k] + inner[k] for k in others)
    out = letters[d] + "".join(inner[k] for k in others)
    return host(einsum(f"{letters},{terms}->{out}", t, *(factors[k] for k in others)))


def _leading(matrix: Factor, rank: int) -> Factor:
    """The leading left singular vectors."""
    return np.linalg.svd(matrix, full_matrices=False)[0][:, :rank]

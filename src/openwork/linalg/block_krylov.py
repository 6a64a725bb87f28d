"""Several right sides at once: block conjugate gradients and block GMRES, whose columns share their Krylov spaces.

A block method reads the matrix once for all columns, and each column searches the space of all, so that iterations are
fewer too. Bases are orthonormal throughout: columns that have converged, or depend on others, do not break it down.
Source: A. A. Dubrulle, "Retooling the method of block conjugate gradients", Electron. Trans. Numer. Anal. 12 (2001),
for cg; Y. Saad, Iterative methods for sparse linear systems (2003), 6.12, for GMRES.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["METHODS", "block_cg", "block_gmres"]

Array = np.ndarray[Any, Any]
Product = Callable[[Array], Array]


def block_cg(
    a: Product, m: Product | None, right: Array, x: Array, limits: Array, maxiter: int, restart: int,
    step: Callable[[Array], None],
) -> tuple[Array, int]:  # fmt: skip
    """(x, iterations) of conjugate gradients, 0 where each column's residual is within its limit.

    Residuals are Q @ sigma for an orthonormal Q, so that directions do not become dependent.
    """
    q, sigma = _orthonormal(right - a(x))
    z = q if m is None else m(q)
    inner = np.eye(len(sigma), dtype=q.dtype) if m is None else _adjoint(z) @ q
    p = z.copy()
    x = x.copy()
    for _ in range(maxiter):
        if (np.linalg.norm(sigma, axis=0) <= limits).all():
            return x, 0
        w = a(p)
        alpha = _solved(_adjoint(p) @ w, inner)
        x += p @ (alpha @ sigma)
        q, zeta = _orthonormal(q - w @ alpha)
        sigma = zeta @ sigma
        z = q if m is None else m(q)
        before, inner = inner, inner if m is None else _adjoint(z) @ q
        p = p @ _solved(before, _adjoint(zeta) @ inner)
        p += z
        step(x)
    return x, 0 if (np.linalg.norm(sigma, axis=0) <= limits).all() else maxiter


def block_gmres(
    a: Product, m: Product | None, right: Array, x: Array, limits: Array, maxiter: int, restart: int,
    step: Callable[[Array], None],
) -> tuple[Array, int]:  # fmt: skip
    """(x, cycles) of GMRES with right preconditioning, 0 where each column's residual is within its limit."""
    k = right.shape[1]
    for _ in range(maxiter):
        residual = right - a(x)
        if (np.linalg.norm(residual, axis=0) <= limits).all():
            return x, 0
        first, sigma = _orthonormal(residual)
        rest = np.concatenate([sigma, np.zeros_like(sigma)])
        basis: list[Array] = [first]
        reflections: list[Array] = []
        columns: list[Array] = []
        top: list[Array] = []
        for j in range(restart):
            w = a(basis[j] if m is None else m(basis[j]))
            following, h = _next(basis, w)
            for i, turn in enumerate(reflections):
                h[i * k : (i + 2) * k] = _adjoint(turn) @ h[i * k : (i + 2) * k]
            turn, upper = np.linalg.qr(h[j * k :], mode="complete")
            reflections.append(turn)
            columns.append(np.concatenate([h[: j * k], upper[:k]]))
            rest = _adjoint(turn) @ rest
            top.append(rest[:k])
            rest = np.concatenate([rest[k:], np.zeros_like(sigma)])
            basis.append(following)
            if (np.linalg.norm(rest[:k], axis=0) <= limits).all() or j + 1 == restart:
                break
        moved = _combined(basis, columns, top)
        x = x + (moved if m is None else m(moved))
        step(x)
    return x, 0 if (np.linalg.norm(right - a(x), axis=0) <= limits).all() else maxiter


METHODS = {"cg": block_cg, "gmres": block_gmres}


def _combined(basis: list[Array], columns: list[Array], top: list[Array]) -> Array:
    """The combination of the basis whose coefficients solve the triangular system of the blocks."""
    steps, k = len(columns), columns[0].shape[1]
    triangle = np.zeros((steps * k, steps * k), columns[0].dtype)
    for j, column in enumerate(columns):
        triangle[: (j + 1) * k, j * k : (j + 1) * k] = column
    y = _solved(triangle, np.concatenate(top))
    moved: Array = sum((v @ y[j * k : (j + 1) * k] for j, v in enumerate(basis[:steps])), np.zeros_like(basis[0]))
    return moved


def _next(basis: list[Array], w: Array) -> tuple[Array, Array]:
    """The next block of an orthonormal basis, and the coefficients of w in all; columns that depend are made anew."""
    rows = []
    size = np.linalg.norm(w)
    for v in basis:
        rows.append(_adjoint(v) @ w)
        w = w - v @ rows[-1]
    for number, v in enumerate(basis):
        again = _adjoint(v) @ w
        rows[number] = rows[number] + again
        w = w - v @ again
    q, upper = _orthonormal(w)
    dependent = np.abs(np.diag(upper)) <= 10 * np.finfo(w.dtype).eps * size
    if dependent.any():  # what stands there is rounding: another direction, orthogonal to all
        q[:, dependent] = np.random.default_rng(len(basis)).standard_normal((len(q), int(dependent.sum())))
        for _ in range(2):
            for v in basis:
                q = q - v @ (_adjoint(v) @ q)
            q = np.linalg.qr(q)[0]
        upper = _adjoint(q) @ w
    return q, np.concatenate([*rows, upper])


def _orthonormal(x: Array) -> tuple[Array, Array]:
    """(Q, R) with x = Q @ R and orthonormal columns of Q: by Cholesky twice where columns are independent enough."""
    q, r = x, np.eye(x.shape[1], dtype=x.dtype)
    for _ in range(2):
        try:
            upper = _adjoint(np.linalg.cholesky(_adjoint(q) @ q))
        except np.linalg.LinAlgError:
            return np.linalg.qr(x)
        diagonal = np.abs(np.diag(upper))
        if not diagonal.min() > 100 * np.sqrt(np.finfo(x.dtype).eps) * diagonal.max():
            return np.linalg.qr(x)
        q, r = q @ np.linalg.inv(upper), upper @ r
        if diagonal.min() > 0.1 * diagonal.max():  # once is enough: the error is that of its condition squared
            break
    return q, r


def _adjoint(x: Array) -> Array:
    """The conjugate transpose, of real numbers a view."""
    return x.T.conj() if x.dtype.kind == "c" else x.T


def _solved(a: Array, b: Array) -> Array:
    """The solution of a small system, of least norm where it is singular."""
    try:
        x: Array = np.linalg.solve(a, b)
        if np.isfinite(x).all():
            return x
    except np.linalg.LinAlgError:
        pass
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.full_like(b, np.nan)
    least: Array = np.linalg.lstsq(a, b)[0]
    return least

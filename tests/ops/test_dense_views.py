"""Dense operands of every operation that takes them, as views: what is computed is what the same elements packed give.

Some twenty-five stored elements in a row and extents of hundreds: of smaller operands nothing is copied for the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from views import LAYOUTS, REPEATED, numpy_view

import openwork as ow

Array = np.ndarray[Any, Any]
N, K = 256, 8
FORMATS = ("csr", "csc", "coo", "csf", "bsr(4, 4)", "dia", "bitmap", "ell(64)")


@cache
def matrix(spec: str) -> ow.Tensor:
    t = ow.random((N, N), 0.1, format="csr", rng=0).asformat(ow.format(spec, 2))
    assert t.nse >= 20 * N
    return t


@cache
def elements(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.5, 2, shape)


def dense(t: Any) -> Array:
    return t.to_numpy() if isinstance(t, ow.Tensor) else np.asarray(t)


def max_times(a: Array, x: Array) -> Array:
    return np.array([(row[:, None] * x).max(0) for row in a])


Case = tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]
"""An operation on a sparse tensor and dense arrays, the same of dense arrays, and the shapes of these."""
OPERATIONS: dict[str, Case] = {
    "A @ X": (lambda t, x: t @ x, lambda a, x: a @ x, ((N, K),)),
    "X @ A": (lambda t, x: x @ t, lambda a, x: x @ a, ((K, N),)),
    "A @ v": (lambda t, v: t @ v, lambda a, v: a @ v, ((N,),)),
    "v @ A": (lambda t, v: v @ t, lambda a, v: v @ a, ((N,),)),
    "A.T @ Y": (lambda t, y: t.T @ y, lambda a, y: a.T @ y, ((N, N),)),
    "einsum ij,jk->ik": (lambda t, x: ow.einsum("ij,jk->ik", t, x), lambda a, x: a @ x, ((N, K),)),
    "einsum ij,kj->ik": (lambda t, x: ow.einsum("ij,kj->ik", t, x), lambda a, x: a @ x.T, ((K, N),)),
    "einsum ij,ik,jk->ij": (
        lambda t, x, y: ow.einsum("ij,ik,jk->ij", t, x, y), lambda a, x, y: a * (x @ y.T), ((N, K), (N, K)),
    ),
    "einsum ij,ik,jk->": (
        lambda t, x, y: ow.einsum("ij,ik,jk->", t, x, y), lambda a, x, y: (a * (x @ y.T)).sum(), ((N, K), (N, K)),
    ),
    "einsum ij,j->ij": (lambda t, v: ow.einsum("ij,j->ij", t, v), lambda a, v: a * v, ((N,),)),
    "einsum of max_times": (
        lambda t, x: ow.einsum("ij,jk->ik", t, x, semiring="max_times"), max_times, ((N, K),),
    ),
    "evaluate a product": (
        lambda t, x: ow.evaluate("y[i,k] += A[i,j] * X[j,k]", A=t, X=x), lambda a, x: a @ x, ((N, K),),
    ),
    "evaluate a merge": (
        lambda t, y: ow.evaluate("C[i,j] = A[i,j] * Y[i,j]", A=t, Y=y), lambda a, y: a * y, ((N, N),),
    ),
    "sddmm": (
        lambda t, x, y: ow.sddmm(t, x, y) * t, lambda a, x, y: x @ y * a, ((N, K), (K, N)),
    ),
    "mttkrp": (lambda t, x: ow.mttkrp(t, [None, x], 0), lambda a, x: a @ x, ((N, K),)),
    "tensordot": (lambda t, x: ow.tensordot(x, t, axes=([0], [1])), lambda a, x: x.T @ a.T, ((N, K),)),
    "A * Y": (lambda t, y: t * y, lambda a, y: a * y, ((N, N),)),
    "Y - A": (lambda t, y: y - t, lambda a, y: y - a, ((N, N),)),
    "A * v": (lambda t, v: t * v, lambda a, v: a * v, ((N,),)),
    "A / v[:, None]": (lambda t, v: t / v[:, None], lambda a, v: a / v[:, None], ((N,),)),
    "A > Y": (lambda t, y: t > y, lambda a, y: a > y, ((N, N),)),
    "where": (lambda t, y: ow.where(t > 0.5, t, y), lambda a, y: np.where(a > 0.5, a, y), ((N, N),)),
}  # fmt: skip


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_views_of_numpy(name: str, spec: str) -> None:
    operation, oracle, shapes = OPERATIONS[name]
    t = matrix(spec)
    a = t.to_numpy()
    for how in (*LAYOUTS, *REPEATED):
        operands = [numpy_view(elements(*shape), how) for shape in shapes]
        want = oracle(a, *(x.copy() for x in operands))
        for call in range(3):
            np.testing.assert_allclose(
                dense(operation(t, *operands)), want, rtol=1e-10, atol=1e-12, err_msg=f"{how}, {call}"
            )
        operands = [numpy_view(elements(*shape), how) for shape in shapes]
        np.testing.assert_allclose(dense(operation(t, *operands)), want, rtol=1e-10, atol=1e-12, err_msg=f"{how}, new")

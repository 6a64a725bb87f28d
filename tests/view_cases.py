"""Operations of a sparse tensor and dense arrays, the same of dense arrays alone, and shapes of hundreds for each.

Some thirty stored elements in a row: for the sake of smaller operands nothing is copied, packed or cut.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from views import numpy_view, torch_view

import openwork as ow

__all__ = ["CUBE", "CUBES", "K", "MATRICES", "N", "agree", "dense", "elements", "sparse"]

Array = np.ndarray[Any, Any]
N, K = 160, 8
CUBE = (24, 60, 40)
Case = tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]
"""ours, of a tensor and arrays; theirs, of arrays; the shapes of the dense ones."""


@cache
def elements(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.5, 2, shape)


@cache
def sparse(spec: str, rank: int = 2, library: str = "numpy") -> ow.Tensor:
    """A tensor of N x N, or of CUBE, in a format."""
    shape, density = ((N, N), 0.2) if rank == 2 else (CUBE, 0.5)
    t = ow.random(shape, density, format="coo", rng=0)
    assert t.nse >= 20 * np.prod(shape[:-1])
    if library == "torch":
        import torch

        t = ow.asarray(torch.from_numpy(t.to_numpy()))
    return t.asformat(ow.format(spec, rank))


def dense(t: Any) -> Array:
    return t.to_numpy() if isinstance(t, ow.Tensor) else np.asarray(t)


def view_of(x: Array, how: str, library: str) -> Any:
    if library == "numpy":
        return numpy_view(x, how)
    import torch

    return torch_view(torch.from_numpy(x), how)


def agree(case: Case, t: ow.Tensor, how: str, library: str = "numpy") -> None:
    """What is computed of views is what NumPy computes: called three times with the same ones, and with new ones."""
    ours, theirs, shapes = case
    operands = [view_of(elements(shape), how, library) for shape in shapes]
    want = theirs(t.to_numpy(), *(np.asarray(x).copy() for x in operands))
    for call in range(4):
        if call == 3:
            operands = [view_of(elements(shape), how, library) for shape in shapes]
        got = dense(ours(t, *operands))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11, err_msg=f"{how}, call {call}")


def max_times(a: Array, x: Array) -> Array:
    return np.array([(row[:, None] * x).max(0) for row in a])


def definite(t: Any) -> Any:
    """A symmetric, diagonally dominant matrix of the same elements."""
    return t + t.T + (ow.eye(N) if isinstance(t, ow.Tensor) else np.eye(N)) * 100


MATRICES: dict[str, Case] = {
    "A @ X": (lambda t, x: t @ x, np.matmul, ((N, K),)),
    "X @ A": (lambda t, x: x @ t, lambda a, x: x @ a, ((K, N),)),
    "A @ v": (lambda t, v: t @ v, np.matmul, ((N,),)),
    "v @ A": (lambda t, v: v @ t, lambda a, v: v @ a, ((N,),)),
    "A.T @ Y": (lambda t, y: t.T @ y, lambda a, y: a.T @ y, ((N, N),)),
    "addmm": (lambda t, y, x: ow.addmm(y, t, x), lambda a, y, x: y + a @ x, ((N, K), (N, K))),
    "inner": (ow.inner, np.inner, ((K, N),)),
    "vecdot": (ow.vecdot, lambda a, y: (a * y).sum(-1), ((N, N),)),
    "tensordot": (lambda t, x: ow.tensordot(x, t, axes=([0], [1])), lambda a, x: x.T @ a.T, ((N, K),)),
    "mttkrp": (lambda t, x: ow.mttkrp(t, [None, x], 0), np.matmul, ((N, K),)),
    "sddmm": (lambda t, x, y: ow.sddmm(t, x, y) * t, lambda a, x, y: x @ y * a, ((N, K), (K, N))),
    "sddmm of X, X.T": (lambda t, x: ow.sddmm(t, x, x.T) * t, lambda a, x: x @ x.T * a, ((N, K),)),
    "einsum ij,jk->ik": (lambda t, x: ow.einsum("ij,jk->ik", t, x), np.matmul, ((N, K),)),
    "einsum ij,kj->ik": (lambda t, x: ow.einsum("ij,kj->ik", t, x), lambda a, x: a @ x.T, ((K, N),)),
    "einsum ij,j->ij": (lambda t, v: ow.einsum("ij,j->ij", t, v), np.multiply, ((N,),)),
    "einsum ij,ik,jk->ij": (
        lambda t, x, y: ow.einsum("ij,ik,jk->ij", t, x, y), lambda a, x, y: a * (x @ y.T), ((N, K), (N, K)),
    ),
    "einsum ij,ik,jk->": (
        lambda t, x, y: ow.einsum("ij,ik,jk->", t, x, y), lambda a, x, y: (a * (x @ y.T)).sum(), ((N, K), (N, K)),
    ),
    "einsum of max_times": (lambda t, x: ow.einsum("ij,jk->ik", t, x, semiring="max_times"), max_times, ((N, K),)),
    "evaluate a product": (lambda t, x: ow.evaluate("y[i,k] += A[i,j] * X[j,k]", A=t, X=x), np.matmul, ((N, K),)),
    "evaluate a merge": (
        lambda t, u, v: ow.evaluate("C[i,j] = A[i,j] * (u[i] + v[j])", A=t, u=u, v=v),
        lambda a, u, v: a * (u[:, None] + v), ((N,), (N,)),
    ),
    "evaluate a maximum": (
        lambda t, v: ow.evaluate("y[i] max= A[i,j] * v[j]", A=t, v=v), lambda a, v: (a * v).max(1), ((N,),),
    ),
    "A * Y": (lambda t, y: t * y, np.multiply, ((N, N),)),
    "Y - A": (lambda t, y: y - t, lambda a, y: y - a, ((N, N),)),
    "A * v": (lambda t, v: t * v, np.multiply, ((N,),)),
    "A / v[:, None]": (lambda t, v: t / v[:, None], lambda a, v: a / v[:, None], ((N,),)),
    "A > Y": (lambda t, y: t > y, np.greater, ((N, N),)),
    "pow": (ow.pow, np.power, ((N, N),)),
    "clip": (lambda t, y: ow.clip(t, 0, y), lambda a, y: np.clip(a, 0, y), ((N, N),)),
    "where": (lambda t, y: ow.where(t > 0.5, t, y), lambda a, y: np.where(a > 0.5, a, y), ((N, N),)),
    "where of an array": (lambda t, y: ow.where(y > 1, t, 0), lambda a, y: np.where(y > 1, a, 0), ((N, N),)),
    "sparse_mask": (lambda t, y: ow.sparse_mask(y, t) * t, lambda a, y: y * a, ((N, N),)),
    "at": (lambda t, y: t.at[3:11].set(y), lambda a, y: np.concatenate([a[:3], y, a[11:]]), ((8, N),)),
    "asarray": (lambda t, y: ow.asarray(y) * t, lambda a, y: y * a, ((N, N),)),
    "lazy sum": (
        lambda t, y, z: ow.compute(ow.sum(ow.lazy(t) * y + z, axis=1)), lambda a, y, z: (a * y + z).sum(1), ((N, N), (N, N)),
    ),
    "lazy product": (lambda t, x, y: ow.compute(ow.lazy(t) @ x + y), lambda a, x, y: a @ x + y, ((N, K), (N, K))),
    "fused sddmm": (
        lambda t, x, y: ow.fused(lambda A, X, Y: A * (X @ Y))(t, x, y), lambda a, x, y: a * (x @ y), ((N, K), (K, N)),
    ),
    "fused merge": (
        lambda t, y, v: ow.fused(lambda A, Y, v: ow.exp(A) * Y - v)(t, y, v), lambda a, y, v: np.exp(a) * y - v, ((N, N), (N,)),
    ),
}  # fmt: skip

CUBES: dict[str, Case] = {
    "ttm": (lambda t, x: ow.ttm(t, x, 2), lambda a, x: a @ x, ((40, K),)),
    "ttm of the first": (lambda t, x: ow.ttm(t, x, 0), lambda a, x: np.einsum("pqr,pi->iqr", a, x), ((24, K),)),
    "ttv": (lambda t, v: ow.ttv(t, v, 1), lambda a, v: np.einsum("pqr,q->pr", a, v), ((60,),)),
    "mttkrp": (
        lambda t, x, y: ow.mttkrp(t, [None, x, y], 0), lambda a, x, y: np.einsum("pqr,qi,ri->pi", a, x, y), ((60, K), (40, K)),
    ),
    "mttkrp of the middle": (
        lambda t, x, y: ow.mttkrp(t, [x, None, y], 1), lambda a, x, y: np.einsum("pqr,pi,ri->qi", a, x, y), ((24, K), (40, K)),
    ),
    "tensordot": (
        lambda t, x: ow.tensordot(t, x, axes=([1], [0])), lambda a, x: np.tensordot(a, x, ([1], [0])), ((60, K),),
    ),
    "einsum pqr,pi->iqr": (
        lambda t, x: ow.einsum("pqr,pi->iqr", t, x), lambda a, x: np.einsum("pqr,pi->iqr", a, x), ((24, K),),
    ),
    "A @ X": (lambda t, x: t @ x, np.matmul, ((24, 40, K),)),
    "A * Y": (lambda t, y: t * y, np.multiply, ((60, 40),)),
    "A + Y": (lambda t, y: t + y, np.add, (CUBE,)),
}  # fmt: skip

"""Gradients of iterative solvers and of eigenvalues of general matrices, once and twice, and what has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork import linalg
from openwork.errors import UnsupportedError

GENERATOR = torch.Generator().manual_seed(0)
N = 5


def random(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=GENERATOR)


GENERAL = (random(N, N) < 0.4) * random(N, N) + 4 * torch.eye(N, dtype=torch.float64)
SYMMETRIC = GENERAL + GENERAL.T
B = random(N) - 0.5
COMPLEX = GENERAL * (1 + 0.2j), B * (1 - 0.5j)


def checked(f: Callable[..., Any], *inputs: torch.Tensor) -> None:
    leaves = [x.clone().requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(f, leaves, rtol=1e-4, atol=1e-6)
    assert torch.autograd.gradgradcheck(f, leaves, rtol=1e-3, atol=1e-5)


@pytest.mark.ci
@pytest.mark.thin(44)
@pytest.mark.parametrize(
    ("name", "options"),
    [("gmres", {}), ("gmres", {"M": "ilu0"}), ("bicgstab", {}), ("cgs", {}), ("bicg", {}), ("qmr", {}), ("tfqmr", {}),
     ("lgmres", {}), ("gcrotmk", {})],
)  # fmt: skip
@pytest.mark.parametrize("format", ["csr", "coo"])
def test_square_systems(name: str, options: dict[str, Any], format: str) -> None:
    A = ow.asarray(GENERAL, format=format)
    checked(lambda v, b: getattr(linalg, name)(A.with_values(v), b, rtol=1e-13, **options)[0], A.values, B)


@pytest.mark.slow
def test_complex_systems_and_several_right_sides() -> None:
    A = ow.asarray(COMPLEX[0], format="csr")
    checked(lambda v, b: linalg.gmres(A.with_values(v), b, rtol=1e-13, M="jacobi")[0], A.values, COMPLEX[1])
    S = ow.asarray(SYMMETRIC, format="csr")
    checked(lambda v, b: linalg.cg(symmetrised(S, v), b, rtol=1e-13)[0], S.values, random(N, 3))


def symmetrised(t: Any, values: torch.Tensor) -> Any:
    made = t.with_values(values)
    return (made + made.T) * 0.5


@pytest.mark.ci
@pytest.mark.thin(2)
@pytest.mark.parametrize(("name", "m"), [("cg", None), ("cg", "ic0"), ("minres", None)])
def test_symmetric_systems(name: str, m: str | None) -> None:
    S = ow.asarray(SYMMETRIC, format="csr")
    checked(lambda v, b: getattr(linalg, name)(symmetrised(S, v), b, rtol=1e-13, M=m)[0], S.values, B)


def test_gradients_are_those_of_a_direct_solution() -> None:
    dense = SYMMETRIC.clone().requires_grad_()
    torch.linalg.solve(dense, B).square().sum().backward()
    assert dense.grad is not None
    for spec in ("csr", "csc", "bsr(2, 2)", "dia", "dense"):
        A = ow.asarray(SYMMETRIC, format=spec).requires_grad_()
        x, info = linalg.cg(A, B, rtol=1e-12)
        assert info == 0
        x.square().sum().backward()
        assert torch.allclose(A.grad.to_dense(), dense.grad * (A.pattern().to_dense() != 0), atol=1e-8)
    A = ow.asarray(SYMMETRIC, format="csr").requires_grad_()
    seen: list[Any] = []
    x, _ = linalg.cg(A, ow.asarray(B), M=linalg.ic0(A.detach()), callback=seen.append)
    count = len(seen)
    assert isinstance(x, ow.Tensor)
    x.to_dense().sum().backward()
    assert len(seen) == count  # callbacks see the solution alone


TALL = (random(6, 3) < 0.8) * (random(6, 3) - 0.5)
SYSTEMS = {
    "tall": (TALL, random(6)),
    "wide": (TALL.T.contiguous(), random(3)),
    "complex": (TALL * (1 + 0.5j), random(6) + 1j * random(6)),
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
@pytest.mark.parametrize("damp", [0.0, 0.7])
@pytest.mark.parametrize("system", SYSTEMS)
def test_least_squares(system: str, damp: float, name: str) -> None:
    dense, b = SYSTEMS[system]
    exact = {"atol": 1e-14, "btol": 1e-14, "iter_lim" if name == "lsqr" else "maxiter": 50}
    A = ow.asarray(dense, format="csr")
    checked(lambda v, b: getattr(linalg, name)(A.with_values(v), b, damp=damp, **exact)[0], A.values, b)
    told = getattr(linalg, name)(A.with_values(A.values.clone().requires_grad_()), b)
    assert len(told) == len(getattr(linalg, name)(A, b))


@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_transforms_of_least_squares(damp: float) -> None:
    exact = {"atol": 1e-14, "btol": 1e-14, "iter_lim": 50}
    for dense in ((random(8, 4) - 0.5), (random(8, 4) - 0.5).T.contiguous()):
        A, b = ow.asarray(dense, format="csr"), random(dense.shape[0])
        values = A.values

        def f(v: torch.Tensor, b: torch.Tensor, A: Any = A) -> Any:
            return linalg.lsqr(A.with_values(v), b, damp, **exact)[0]

        v, t = random(len(values)), random(len(b))
        moved = torch.func.jvp(f, (values, b), (v, t))[1]
        step = 1e-6
        expected = (f(values + step * v, b + step * t) - f(values - step * v, b - step * t)) / (2 * step)
        assert torch.allclose(moved, expected, atol=1e-6)
        assert torch.allclose(torch.func.vmap(f, (None, 0))(values, torch.stack([b, t]))[1], f(values, t))
        of_b = torch.func.grad(lambda b, f=f, values=values: f(values, b).sum())(b)
        assert torch.allclose(of_b @ t, torch.func.jvp(lambda b, f=f, v=values: f(v, b), (b,), (t,))[1].sum())


def test_operators_have_gradients_in_the_right_side() -> None:
    dense = GENERAL.numpy()
    checked(lambda b: linalg.gmres(linalg.aslinearoperator(dense), b, rtol=1e-13)[0], B)
    checked(lambda b: linalg.cg(lambda x: SYMMETRIC @ x, b, rtol=1e-13)[0], B)
    x, _ = linalg.gmres(lambda v: GENERAL @ v, B.clone().requires_grad_())
    with pytest.raises(UnsupportedError, match="gmres: a function has no adjoint"):
        x.sum().backward()


def test_what_has_no_gradient() -> None:
    A, b = ow.asarray(SYMMETRIC, format="csr"), B.clone().requires_grad_()
    with pytest.raises(UnsupportedError, match="cg: x0 has no gradient"):
        linalg.cg(A, b, b)
    with pytest.raises(UnsupportedError, match="cg: M has no gradient"):
        linalg.cg(A, b, M=ow.asarray(SYMMETRIC).requires_grad_())
    with pytest.raises(UnsupportedError, match="lsqr: damp and x0 have no gradient"):
        linalg.lsqr(A, b, x0=b)
    with pytest.raises(UnsupportedError, match="lsmr of an operator has no gradient"):
        linalg.lsmr(linalg.aslinearoperator(A), b)


@pytest.mark.slow
def test_eigenvalues_of_general_matrices() -> None:
    weights = random(N, 2)

    def of(t: Any) -> Callable[[torch.Tensor], Any]:
        def f(values: torch.Tensor) -> Any:
            w, v = linalg.eigs(t.with_values(values), k=2, v0=np.ones(N), tol=1e-14)
            assert w.dtype == torch.complex128
            return w, (v.abs() ** 2 * weights).sum(), (v[0] * v[1].conj()).abs().sum()

        return f

    for dense in (GENERAL, COMPLEX[0] + 1j * torch.diag(torch.arange(N))):
        A = ow.asarray(dense, format="csr")
        checked(of(A), A.values)
        assert torch.autograd.gradcheck(
            of(A), (A.values.clone().requires_grad_(),), rtol=1e-4, atol=1e-6, check_forward_ad=True,
            check_backward_ad=False,
        )  # fmt: skip
    alone = linalg.eigs(A.requires_grad_(), k=2, return_eigenvectors=False)
    alone.abs().sum().backward()
    assert A.grad is not None
    with pytest.raises(UnsupportedError, match="eigs with M has no gradient"):
        linalg.eigs(A, k=2, M=ow.eye(N))


@pytest.mark.ci
def test_lobpcg() -> None:
    S = ow.asarray(SYMMETRIC + torch.diag(torch.arange(N) * 1.0), format="csr")
    start, weights = np.random.default_rng(0).standard_normal((N, 1)), random(N, 1)

    def f(values: torch.Tensor) -> Any:
        w, v = linalg.lobpcg(symmetrised(S, values), start, tol=1e-10, maxiter=200)
        return w, (v**2 * weights).sum()

    checked(f, S.values)
    assert isinstance(linalg.lobpcg(S, start, maxiter=200)[1], torch.Tensor)
    with pytest.raises(UnsupportedError, match="lobpcg with B, Y or recorded vectors"):
        linalg.lobpcg(S.requires_grad_(), start, Y=np.eye(N)[:, :1])

"""Gradients of factorisations: of solutions in values and right sides, of determinants, once and twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg
from openwork.linalg import factorization

torch = pytest.importorskip("torch")

KINDS = ("cholesky", "ldl", "lu", "superlu")


def matrix(kind: str, dtype: Any = None) -> Any:
    rng = np.random.default_rng(0)
    a = sp.random_array((9, 9), density=0.25, rng=rng)
    if dtype == torch.complex128:
        a = a + 1j * sp.random_array((9, 9), density=0.2, rng=rng)
    if kind in ("cholesky", "ldl"):
        a = a + a.conj().T
    d = rng.choice([-5.0, 5.0], 9) if kind == "ldl" else np.full(9, 6.0)
    return ow.asarray(sp.csr_array(a + sp.diags_array(d)))


def factored(kind: str, t: Any, values: Any) -> Any:
    """The factorisation of a Hermitian matrix as a function of all its values: kinds that read a triangle do so."""
    return linalg.factorized(t.with_values(values), kind)


def symmetric(t: Any, values: Any) -> Any:
    """Values of a Hermitian matrix from any, so that differences keep the symmetry."""
    crd = np.stack([c for c in t.asformat("coo")._storage.crd if c is not None])
    order = np.lexsort((crd[0], crd[1]))
    return (values + values[torch.from_numpy(order.copy())].conj()) / 2


@pytest.mark.thin(70)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_solutions(kind: str, dtype: Any, trans: str) -> None:
    t = matrix(kind, dtype)
    values = torch.from_numpy(t.values.copy()).to(dtype).requires_grad_()
    b = torch.randn(9, 2, dtype=dtype, generator=torch.Generator().manual_seed(1)).requires_grad_()
    full = (lambda v: symmetric(t, v)) if kind in ("cholesky", "ldl") else (lambda v: v)

    def f(v: Any, right: Any) -> Any:
        return factored(kind, t, full(v)).solve(right, trans)

    x = f(values, b)
    M = torch.from_numpy(t.to_numpy()).to(dtype)
    M = M if trans == "N" else M.mT if trans == "T" else M.mH
    torch.testing.assert_close(x, torch.linalg.solve(M, b))
    assert torch.autograd.gradcheck(f, (values, b), fast_mode=True)
    assert torch.autograd.gradgradcheck(f, (values, b), fast_mode=True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", KINDS)
def test_determinants(kind: str) -> None:
    t = matrix(kind)
    values = torch.from_numpy(t.values.copy()).requires_grad_()
    full = (lambda v: symmetric(t, v)) if kind in ("cholesky", "ldl") else (lambda v: v)

    def f(v: Any) -> Any:
        return factored(kind, t, full(v)).slogdet()[1]

    torch.testing.assert_close(f(values).detach(), torch.linalg.slogdet(torch.from_numpy(t.to_numpy()))[1])
    assert torch.autograd.gradcheck(f, (values,), fast_mode=True)
    assert torch.autograd.gradgradcheck(f, (values,), fast_mode=True)


def test_right_sides_alone() -> None:
    t = matrix("cholesky")
    F = linalg.factorized(t, "cholesky")
    b = torch.randn(9, dtype=torch.float64).requires_grad_()
    (g,) = torch.autograd.grad(F(b).sum(), b)
    np.testing.assert_allclose(g.numpy(), np.linalg.solve(t.to_numpy().T, np.ones(9)))


def test_the_adjoint_takes_the_same_factors(monkeypatch: Any) -> None:
    made = []
    inner = factorization.Factorization._factorise

    def count(self: Any, *args: Any) -> None:
        made.append(self)
        inner(self, *args)

    monkeypatch.setattr(factorization.Factorization, "_factorise", count)
    t = matrix("lu")
    values = torch.from_numpy(t.values.copy()).requires_grad_()
    b = torch.ones(9, dtype=torch.float64).requires_grad_()
    F = linalg.factorized(t.with_values(values), "lu")
    x = F(b)
    (first,) = torch.autograd.grad(x.sum(), values, create_graph=True)
    first.sum().backward()
    assert len(made) == 1
    made.clear()
    linalg.solve(t.with_values(values), b).sum().backward()
    assert len(made) == 1


def test_factors_that_were_updated_since() -> None:
    t = matrix("cholesky")
    values = torch.from_numpy(t.values.copy()).requires_grad_()
    F = linalg.factorized(t.with_values(values), "cholesky")
    x = F(torch.ones(9, dtype=torch.float64))
    F.update(t.with_values(values.detach() * 3))
    x.sum().backward()
    y = values.detach().clone().requires_grad_()
    linalg.solve(t.with_values(y), torch.ones(9, dtype=torch.float64)).sum().backward()
    torch.testing.assert_close(values.grad, y.grad)


@pytest.mark.ci
def test_the_gradient_of_a_large_determinant_is_the_selected_inverse() -> None:
    line = sp.diags_array([-np.ones(44), 4.0 * np.ones(45), -np.ones(44)], offsets=[-1, 0, 1])
    A = sp.csr_array(sp.kron(line, sp.eye_array(45)) + sp.kron(sp.eye_array(45), line))
    t = ow.asarray(A)
    values = torch.from_numpy(A.data.copy()).requires_grad_()
    F = linalg.factorized(t.with_values(values))
    assert F.kind == "cholesky"
    F.logdet().backward()
    inverse = np.linalg.inv(A.toarray())
    row = np.repeat(np.arange(2025), np.diff(A.indptr))
    np.testing.assert_allclose(values.grad.numpy(), inverse[A.indices, row], rtol=1e-9)


@pytest.mark.parametrize("kind", ["cholesky", "lu"])
def test_stacks_have_gradients(kind: str) -> None:
    t = matrix(kind)
    values = torch.stack([torch.from_numpy(t.values * s) for s in (1.0, 1.5)]).requires_grad_()
    b = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    F = linalg.factorized(ow.stack([t.with_values(v) for v in values]), kind)
    dense = torch.stack([t.with_values(v).to_dense() for v in values])
    found = torch.autograd.grad(F(b).square().sum() + F.logdet().sum(), (values, b))
    expected = torch.autograd.grad(torch.linalg.solve(dense, b).square().sum() + torch.logdet(dense).sum(), (values, b))
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y)

"""Gradients of eigenvalues, singular values, their vectors, and determinants of stacks, beside torch's dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.torch import gradcheck, gradgradcheck

GENERATOR = np.random.default_rng(5)
ROWS = torch.tensor(GENERATOR.random((6, 6)) * (GENERATOR.random((6, 6)) < 0.5))
SYMMETRIC = ROWS + ROWS.T + torch.diag(torch.arange(1.0, 7, dtype=torch.float64))
WIDE = torch.tensor(GENERATOR.random((6, 5)) * (GENERATOR.random((6, 5)) < 0.7)) + 2 * torch.eye(6, 5).double()
WEIGHTS = torch.arange(1.0, 13, dtype=torch.float64).reshape(6, 2)


def projection(v: torch.Tensor) -> torch.Tensor:
    """What does not depend on the signs of vectors."""
    return ((v * v) * WEIGHTS[: v.shape[0]]).sum() + (v[0] * v[1] * WEIGHTS[0]).sum()


def eigen_loss(w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (w**2).sum() + projection(v)


@pytest.mark.parametrize("format", ["csr", "coo", "bsr(2, 2)", "dense"])
def test_eigenpairs(format: str) -> None:
    dense = SYMMETRIC.clone().requires_grad_()
    w, v = torch.linalg.eigh(dense)
    eigen_loss(w[-2:], v[:, -2:]).backward()
    expected = dense.grad
    assert expected is not None
    A = ow.asarray(SYMMETRIC, format=format).requires_grad_()
    found = ow.linalg.eigsh(A, k=2, which="LA")
    eigen_loss(*found).backward()
    gradient = A.grad.to_dense()
    symmetric = (gradient + gradient.T) / 2
    assert torch.allclose(symmetric, ((expected + expected.T) / 2) * (A.pattern().to_dense() != 0), atol=1e-8)
    A.grad = None
    ow.linalg.eigsh(A, k=2, which="LA", return_eigenvectors=False).sum().backward()
    top = v[:, -2:].detach()
    assert torch.allclose(A.grad.to_dense(), (top @ top.T) * (A.pattern().to_dense() != 0), atol=1e-8)


def test_singular_values_and_vectors() -> None:
    dense = WIDE.clone().requires_grad_()
    u, s, vh = torch.linalg.svd(dense, full_matrices=False)
    loss = (s[:2] ** 2).sum() + projection(u[:, :2]) + projection(vh[:2].T)
    loss.backward()
    for format in ("csr", "csc"):
        A = ow.asarray(WIDE, format=format).requires_grad_()
        u, s, vh = ow.linalg.svds(A, k=2)
        order = s.detach().argsort(descending=True)
        u, s, vh = u[:, order], s[order], vh[order]
        ((s**2).sum() + projection(u) + projection(vh.T)).backward()
        assert torch.allclose(A.grad.to_dense(), dense.grad * (WIDE != 0), atol=1e-7)
    A.grad = None
    ow.linalg.svds(A, k=1, return_singular_vectors=False).sum().backward()
    assert A.grad is not None
    assert ow.linalg.svds(A, k=1, return_singular_vectors="u")[2] is None


@pytest.mark.ci
def test_forward_mode_and_second_derivatives() -> None:
    def of_eigenpairs(a: Any) -> Any:
        w, v = ow.linalg.eigsh((a + a.T) * 0.5, k=2, which="LA", v0=np.ones(6))
        return w, v[:, 0] * v[0, 0]

    def of_singular(a: Any) -> Any:
        u, s, vh = ow.linalg.svds(a, k=1, v0=np.ones(5))
        return s, u[:, 0] * vh[0, 0]

    for function, matrix in ((of_eigenpairs, SYMMETRIC), (of_singular, WIDE)):
        A = ow.asarray(matrix, format="csr").requires_grad_()
        assert gradcheck(function, (A,), check_forward_ad=True)
        assert gradgradcheck(function, (A,), atol=1e-4, rtol=1e-2, fast_mode=True)


def test_systems_by_torchs_name() -> None:
    A, b = ow.asarray(SYMMETRIC, format="csr"), torch.arange(6.0, dtype=torch.float64)
    assert torch.allclose(torch.sparse.spsolve(A, b), torch.linalg.solve(SYMMETRIC, b))


def test_results_are_of_the_library_of_the_matrix() -> None:
    A = ow.asarray(SYMMETRIC, format="csr")
    N = ow.asarray(A, like=np)
    for name in ("eigsh", "svds", "eigs"):
        function = getattr(ow.linalg, name)
        assert all(isinstance(x, torch.Tensor) for x in function(A, k=2)), name
        assert all(isinstance(x, np.ndarray) for x in function(N, k=2)), name


def test_what_has_no_gradient_is_refused() -> None:
    A = ow.asarray(SYMMETRIC, format="csr").requires_grad_()
    with pytest.raises(ow.UnsupportedError, match="with M"):
        ow.linalg.eigsh(A, k=2, M=ow.eye(6))
    with pytest.raises(ow.UnsupportedError, match="no gradient"):
        ow.linalg.eigsh(ow.asarray(SYMMETRIC.to(torch.complex128), format="csr").requires_grad_(), k=2)


@pytest.mark.parametrize("batch", [(3, 1), (3,)])
@pytest.mark.parametrize("format", ["batched csr", "coo", "dense"])
def test_determinants_of_stacks(format: str, batch: tuple[int, ...]) -> None:
    stack = torch.stack([SYMMETRIC, torch.where(SYMMETRIC == 0, 0, -2 * SYMMETRIC), 3 * SYMMETRIC])
    stack = stack.reshape(*batch, 6, 6)
    names = "bc"[: len(batch)]
    levels = [f"{n} : batch" for n in names] + ["i : dense", "j : compressed"]
    format = f"({', '.join(names + 'ij')}) -> ({', '.join(levels)})" if "csr" in format else format
    weights = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64).reshape(batch)
    for name in ("slogdet", "det"):
        dense = stack.clone().requires_grad_()
        expected = getattr(torch.linalg, name)(dense)
        expected = expected[1] if name == "slogdet" else expected / expected.detach()
        (expected * weights).sum().backward()
        A = ow.asarray(stack, format=format).requires_grad_()
        found = getattr(ow.linalg, name)(A)
        found = (found[1] if name == "slogdet" else found).to_dense()
        found = found if name == "slogdet" else found / found.detach()
        assert torch.allclose(found, expected)
        (found * weights).sum().backward()
        assert torch.allclose(A.grad.to_dense(), dense.grad * (A.pattern().to_dense() != 0))


def test_logarithms_of_determinants() -> None:
    A = ow.asarray(SYMMETRIC, format="csr").requires_grad_()
    assert gradcheck(lambda a: ow.linalg.slogdet(a)[1], (A,), check_forward_ad=True)
    for sign in (1, -1):
        rows = SYMMETRIC * torch.tensor([sign] + 5 * [1])[:, None]
        expected = torch.logdet(rows)
        assert torch.allclose(torch.logdet(ow.asarray(rows, format="csr")).to_dense(), expected, equal_nan=True)

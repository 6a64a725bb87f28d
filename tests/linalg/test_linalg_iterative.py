"""Krylov and eigenvalue solvers, norms, traces and powers, against NumPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from matrix import FORMATS, dense_array, tensor

import openwork as ow
from openwork import linalg

FEW = ("dense", "coo", "csr", "csc", "bsr(2, 3)", "dia", "bitmap")


def definite(n: int = 20, seed: int = 0, dtype: str = "float64") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < 0.2, rng.standard_normal((n, n)), 0)
    return np.asarray((a + a.T) / 2 + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("spec", FEW)
def test_solvers(spec: str) -> None:
    a, b = definite(), np.arange(20.0)
    t = tensor(a, spec)
    for name in ("cg", "gmres", "minres", "bicgstab"):
        x, info = getattr(linalg, name)(t, b, rtol=1e-12)
        assert info == 0
        np.testing.assert_allclose(a @ x, b, atol=1e-8)
        if name != "minres":
            x, info = getattr(linalg, name)(t, b, np.ones(20), M=linalg.spilu(t), rtol=1e-12)
            np.testing.assert_allclose(a @ x, b, atol=1e-8)
    wide = dense_array((20, 7)) + np.eye(20, 7)
    x = linalg.lsqr(tensor(wide, spec), b, atol=1e-12, btol=1e-12)[0]
    np.testing.assert_allclose(x, np.linalg.lstsq(wide, b)[0], atol=1e-6)


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", FEW)
def test_eigenvalues(spec: str) -> None:
    a = definite()
    t, want = tensor(a, spec), np.linalg.eigvalsh(a)
    start = np.ones(20)
    np.testing.assert_allclose(linalg.eigsh(t, 3, which="LA", v0=start)[0], want[-3:], rtol=1e-8)
    np.testing.assert_allclose(linalg.eigsh(t, 3, sigma=0.1, v0=start)[0], want[:3], rtol=1e-8)
    w = linalg.eigs(t, 2, which="LR", v0=start)[0]
    np.testing.assert_allclose(sorted(w.real), want[-2:], rtol=1e-8)
    wide = dense_array((12, 9))
    s = linalg.svds(tensor(wide, spec), 3, v0=np.ones(9))[1]
    np.testing.assert_allclose(np.sort(s), np.linalg.svd(wide)[1][2::-1], rtol=1e-8)
    x = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_allclose(np.sort(linalg.lobpcg(t, x, tol=1e-10, maxiter=200)[0]), want[-3:], rtol=1e-6)
    small = definite(6) / 10
    w, v = np.linalg.eigh(small)
    got = linalg.expm_multiply(tensor(small, spec), np.ones(6))
    np.testing.assert_allclose(got, v @ (np.exp(w) * (v.T @ np.ones(6))), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "complex128"])
def test_operator(dtype: str) -> None:
    a = dense_array((5, 7), dtype=dtype) * (1 + 2j if dtype.startswith("complex") else 1)
    operator = linalg.aslinearoperator(tensor(a.astype(dtype), "csr"))
    x, y = np.arange(7.0), np.arange(5.0)
    np.testing.assert_allclose(operator @ x, a @ x)
    np.testing.assert_allclose(operator.H @ y, a.conj().T @ y)
    np.testing.assert_allclose(operator @ np.eye(7), a)
    assert linalg.aslinearoperator(operator) is operator


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", [s for s in FORMATS[2] if s != "nm(4, 4)"][::5])
def test_norms_and_traces(spec: str) -> None:
    a = dense_array((7, 11)) - 2 * (dense_array((7, 11), 1) > 2)
    t = tensor(a, spec)
    for order in (None, "fro", 1, -1, np.inf, -np.inf, 2):
        np.testing.assert_allclose(linalg.norm(t, order).to_numpy(), np.linalg.norm(a, order), rtol=1e-9)
    for order in (0, 1, 2, 3, np.inf, -np.inf):
        np.testing.assert_allclose(linalg.norm(t, order, axis=0).to_numpy(), np.linalg.norm(a, order, axis=0))
    assert linalg.matrix_norm(t, ord=1, keepdims=True).shape == (1, 1)
    np.testing.assert_allclose(linalg.vector_norm(t), np.linalg.norm(a))
    for offset in (-3, 0, 2, 20):
        assert linalg.trace(t, offset=offset).item() == np.trace(a, offset)
        assert linalg.trace(t + 1.0, offset=offset).item() == np.trace(a + 1, offset)


def test_powers() -> None:
    a = dense_array((6, 6))
    t = tensor(a, "csr")
    for n in (0, 1, 2, 5):
        np.testing.assert_allclose(linalg.matrix_power(t, n).to_numpy(), np.linalg.matrix_power(a, n))
        for spec in ("csc", "coo", "dia"):
            power = linalg.matrix_power(tensor(a, spec), n)
            assert power.format.name == spec
            np.testing.assert_allclose(power.to_numpy(), np.linalg.matrix_power(a, n))
    with pytest.raises(ow.UnsupportedError, match=r"matrix_power: n=-2 needs the inverse\n  help: factorized"):
        linalg.matrix_power(t, -2)


def test_torch_right_sides() -> None:
    torch = pytest.importorskip("torch")
    a = definite()
    x, _ = linalg.cg(ow.asarray(torch.from_numpy(a).to_sparse_csr()), torch.ones(20, dtype=torch.float64), rtol=1e-12)
    assert isinstance(x, torch.Tensor)
    np.testing.assert_allclose(a @ x.numpy(), 1, atol=1e-8)


def test_errors() -> None:
    with pytest.raises(ow.ShapeError, match=r"cg: the matrix has shape \(3, 3\), the right side \(2,\)"):
        linalg.cg(ow.eye(3), np.ones(2))
    with pytest.raises(ow.ShapeError, match=r"aslinearoperator: expected one matrix; got shape \(2, 2, 2\)"):
        linalg.aslinearoperator(ow.zeros((2, 2, 2)))
    with pytest.raises(ow.UnsupportedError, match=r"matrix_norm: ord='nuc' of shape \(3, 3\)\n  supported: 'fro', 1"):
        linalg.norm(ow.eye(3), "nuc")
    with pytest.raises(ow.ShapeError, match="trace: expected a matrix"):
        linalg.trace(ow.zeros((3,)))
    with pytest.raises(ow.ShapeError, match=r"eigsh: expected square matrices; got shape \(2, 3\)"):
        linalg.eigsh(ow.zeros((2, 3)))


@pytest.mark.ci
def test_scipy_is_imported_when_used() -> None:
    code = "import sys, openwork as ow; ow.linalg.solve; assert 'scipy' not in sys.modules, 'scipy'"
    subprocess.run([sys.executable, "-c", code], check=True)

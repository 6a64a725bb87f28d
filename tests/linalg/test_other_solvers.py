"""Factorisations by PARDISO and MUMPS where their packages are installed, and what is said where they are not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg
from openwork.errors import UnsupportedError

KINDS = ("cholesky", "ldl", "lu")
DIGITS = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-9, "complex128": 1e-9}


def matrix(kind: str, dtype: str, n: int = 300) -> Any:
    """A sparse matrix: definite, indefinite with both signs on its diagonal, or without symmetry."""
    rng = np.random.default_rng(0)
    a = sp.random_array((n, n), density=6 / n, rng=rng)
    if dtype[0] == "c":
        a = a + 1j * sp.random_array((n, n), density=6 / n, rng=rng)
    if kind == "lu":
        return sp.csr_array((a + sp.diags_array(rng.choice([-3.0, 3.0], n))).astype(dtype))
    a = a + a.conj().T
    most = float(abs(a).sum(axis=1).max())
    d = np.full(n, 1 + most) if kind == "cholesky" else rng.choice([-2.0, 2.0], n)
    return sp.csr_array((a + sp.diags_array(d)).astype(dtype))


def test_pardiso() -> None:
    pytest.importorskip("pypardiso")
    b = np.cos(np.arange(600.0)).reshape(300, 2)
    for kind in KINDS:
        A = matrix(kind, "float64")
        F = linalg.factorized(ow.asarray(A), "pardiso")
        assert F.kind == "pardiso"
        for trans, M in (("N", A), ("T", A.T), ("H", A.T)):
            np.testing.assert_allclose(F.solve(b, trans), np.linalg.solve(M.toarray(), b), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(F.update(2 * A.data)(b), np.linalg.solve(2 * A.toarray(), b), rtol=1e-9, atol=1e-12)
        with pytest.raises(UnsupportedError, match="no determinant"):
            F.logdet()
    with pytest.raises(UnsupportedError, match="pypardiso takes float64"):
        linalg.factorized(ow.asarray(matrix("lu", "complex128")), "pardiso")
    with pytest.raises(np.linalg.LinAlgError, match="pardiso"):
        linalg.factorized(ow.asarray(sp.csr_array(np.diag([1.0, 0.0, 2.0]))), "pardiso")


@pytest.mark.parametrize("dtype", DIGITS)
def test_mumps(dtype: str) -> None:
    if not loads("mumps"):
        with pytest.raises(UnsupportedError, match=r"needs python-mumps(.|\n)*libmumps"):
            linalg.factorized(ow.eye(3), "mumps")
        return
    b = np.cos(np.arange(600.0)).reshape(300, 2).astype(dtype)
    for kind in KINDS:
        A = matrix(kind, dtype)
        F = linalg.factorized(ow.asarray(A), "mumps")
        assert F.kind == "mumps"
        assert F.nse >= A.nnz / 2
        for trans, M in (("N", A), ("T", A.T), ("H", A.T.conj())):
            found, want = F.solve(b, trans), np.linalg.solve(M.toarray(), b)
            np.testing.assert_allclose(found, want, atol=DIGITS[dtype] * np.abs(want).max())
        sign, size = np.linalg.slogdet(A.toarray())
        np.testing.assert_allclose(F.slogdet(), (sign, size), rtol=1e-3 if dtype in ("float32", "complex64") else 1e-9)
        F.update(2 * A.data)
        np.testing.assert_allclose(2 * (A @ F(b)), b, atol=DIGITS[dtype])
    with pytest.raises(np.linalg.LinAlgError, match="mumps: the matrix is singular"):
        linalg.factorized(ow.asarray(sp.csr_array(np.diag([1.0, 0.0, 2.0]))), "mumps")


def loads(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True

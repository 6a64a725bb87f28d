"""Cholesky's factors after updates and downdates by outer products, against those of the sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg
from openwork.errors import ShapeError, UnsupportedError

DIGITS = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-11, "complex128": 1e-11}


def matrix(dtype: str) -> Any:
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(12, 12))
    A = sp.csr_array(sp.kron(line, sp.eye_array(12)) + sp.kron(sp.eye_array(12), line))
    if dtype[0] == "c":
        A = A + 0.2j * (sp.triu(A, 1) - sp.tril(A, -1))
    return sp.csr_array(A.astype(dtype))


@pytest.mark.thin(4)
@pytest.mark.parametrize("dtype", DIGITS)
def test_updates_and_downdates(dtype: str) -> None:
    A, b = matrix(dtype), np.cos(np.arange(144.0)).astype(dtype)
    for form in ("csr", "csc"):
        F, total = linalg.factorized(ow.asarray(A, format=form), "cholesky"), A.toarray()
        for pair, alpha in (((3, 4), 1.0), ((70, 82), 2.5), ((143,), 7.0), ((3, 4), -0.75), ((0, 1), -0.1)):
            w = np.zeros(144, dtype)
            w[list(pair)] = np.arange(1, len(pair) + 1) * (1 - 0.5j if dtype[0] == "c" else 1)
            total = total + alpha * np.outer(w, w.conj())
            assert F.add_outer(w, alpha) is F
            want = np.linalg.solve(total, b)
            np.testing.assert_allclose(F(b), want, atol=DIGITS[dtype] * np.abs(want).max())
            np.testing.assert_allclose(F.logdet(), np.linalg.slogdet(total)[1], rtol=DIGITS[dtype])
        np.testing.assert_allclose(F.inverse_diagonal(), np.linalg.inv(total).diagonal(), atol=DIGITS[dtype])
        np.testing.assert_allclose(F.update(ow.asarray(A, format=form))(b),
                                   np.linalg.solve(A.toarray(), b), atol=100 * DIGITS[dtype])  # fmt: skip


def test_refused_and_left_as_before() -> None:
    A, b = matrix("float64"), np.ones(144)
    F = linalg.factorized(ow.asarray(A), "cholesky")
    before = F(b)
    w = np.zeros(144)
    w[5] = 4.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite: the pivot of row"):
        F.add_outer(w, -1.0)
    w[90] = 1.0
    with pytest.raises(ShapeError, match=r"does not store all elements of w w\^H"):
        F.add_outer(w)
    with pytest.raises(ShapeError, match=r"expected a vector \(144,\)"):
        F.add_outer(w[:5])
    assert np.array_equal(F(b), before)
    assert np.array_equal(F.add_outer(np.zeros(144))(b), before)
    with pytest.raises(UnsupportedError, match="not Cholesky"):
        linalg.factorized(ow.asarray(A), "ldl").add_outer(w)

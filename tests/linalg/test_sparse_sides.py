"""Sparse right sides: those of our tensors and of SciPy's classes, with zeros in most supernodes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", ["cholesky", "ldl", "lu", "qr", "superlu"])
def test_sparse_right_sides(kind: str) -> None:
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(20, 20))
    A = sp.csr_array(sp.kron(line, sp.eye_array(20)) + sp.kron(sp.eye_array(20), line))
    B = sp.random_array((400, 7), density=0.004, rng=np.random.default_rng(0), format="csr")
    F, want = linalg.factorized(ow.asarray(A), kind), np.linalg.solve(A.toarray(), B.toarray())
    for trans in "NT":
        for b in (B, sp.csc_matrix(B), B.tocoo()):
            x = F.solve(b, trans)
            assert x.format == "csc"
            assert isinstance(x, sp.csc_matrix) == isinstance(b, sp.csc_matrix)
            np.testing.assert_allclose(x.toarray(), want, atol=1e-12)
        np.testing.assert_allclose(F.solve(ow.asarray(B), trans).to_numpy(), want, atol=1e-12)
    assert isinstance(linalg.spsolve(A, B), sp.csc_array)
    empty = F.solve(sp.csr_array((400, 3)))
    assert empty.nnz == 0

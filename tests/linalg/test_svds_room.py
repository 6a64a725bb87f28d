"""svds of matrices whose singular vectors are more than there is memory for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import openwork as ow
from openwork.runtime import library_errors


@pytest.mark.parametrize("shape", [(3, 2**40), (2**40, 3)])
@pytest.mark.parametrize("spec", ["coo", "csr", "csc", "dcsr"])
def test_vectors_beyond_memory_are_refused(spec: str, shape: tuple[int, int]) -> None:
    t = ow.sparse_coo_tensor([[0, 2], [2, 0]], [1.0, 2.0], shape)
    if spec in ("csr", "csc") and (spec == "csr") == (shape[0] > 3):
        pytest.skip("the dense level alone is beyond memory")
    with pytest.raises(ow.SizeError, match=r"svds: vectors of .* bytes[\s\S]*help"):
        ow.linalg.svds(t.asformat(spec), k=1)


def test_limits_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = LinearOperator((50, 40), matvec=lambda x: np.ones(50) * x.sum(), rmatvec=lambda x: np.ones(40) * x.sum())
    monkeypatch.setattr(library_errors, "_memory", lambda: 50 * 8 * 4 - 1)
    with pytest.raises(ow.SizeError, match="svds"):
        ow.linalg.svds(operator, k=1)
    monkeypatch.setattr(library_errors, "_memory", lambda: None)
    _, s, _ = ow.linalg.svds(operator, k=1, v0=np.ones(40))
    np.testing.assert_allclose(s, np.sqrt(50 * 40))

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


@pytest.mark.parametrize("over", ["numpy", "torch"])
@pytest.mark.parametrize("tall", [False, True])
def test_an_unfolding_is_as_long_as_it_has_elements(tall: bool, over: str) -> None:
    """Its vectors alone are as long as the matrix, where they are asked for."""
    n, rng = 10**6, np.random.default_rng(0)
    columns = np.concatenate([np.sort(rng.choice(n, 38, replace=False)), [5, 5]])
    index = np.stack([rng.integers(0, 12, 40), columns])
    values = rng.uniform(0.5, 2, 40)
    shape = (n, 12) if tall else (12, n)
    t = ow.sparse_coo_tensor(index[::-1] if tall else index, values, shape)
    if over == "torch":
        t = ow.asarray(t, like=pytest.importorskip("torch").zeros(1))
    u, s, vh = map(np.asarray, ow.linalg.svds(t, k=3, v0=np.ones(12)))
    assert (u.shape, vh.shape) == ((shape[0], 3), (3, shape[1]))
    dense = np.zeros((12, n))
    np.add.at(dense, tuple(index), values)
    want = np.linalg.svd(dense[:, np.unique(columns)], compute_uv=False)[:3]
    np.testing.assert_allclose(np.sort(s), np.sort(want))
    left, right = (vh.T, u.T) if tall else (u, vh)
    np.testing.assert_allclose(dense @ right.T, left * s, atol=1e-12)
    one = ow.linalg.svds(t, k=3, v0=np.ones(12), return_singular_vectors="vh" if tall else "u")
    assert one[0 if tall else 2] is None
    np.testing.assert_allclose(np.asarray(ow.linalg.svds(t, k=3, return_singular_vectors=False)), s)


def test_vectors_that_are_not_asked_for_need_no_memory() -> None:
    t = ow.sparse_coo_tensor([[0, 1, 2, 2], [2**40 - 1, 0, 7, 9]], [3.0, 2.0, 1.0, 1.0], (3, 2**41))
    np.testing.assert_allclose(ow.linalg.svds(t, k=2, return_singular_vectors=False), [2, 3])
    u, s, vh = ow.linalg.svds(t, k=1, return_singular_vectors="u", v0=np.ones(3))
    np.testing.assert_allclose(np.abs(u[:, 0]), [1, 0, 0], atol=1e-12)
    assert vh is None
    assert s[0] == pytest.approx(3)

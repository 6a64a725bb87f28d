"""NumPy's functions and ufuncs on Tensors, and operands of other libraries: the same values as on the dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

import openwork as ow

rng = np.random.default_rng(0)
D, E = (rng.random((6, 5)) * (rng.random((6, 5)) < 0.5) for _ in range(2))
X = rng.random((6, 5))

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda a, b: np.exp(a),
    "add": lambda a, b: np.add(a, b),
    "power": lambda a, b: np.power(a, 2),
    "logaddexp": lambda a, b: np.logaddexp(a, b),
    "erf": lambda a, b: scipy.special.erf(a),
    "heaviside": lambda a, b: np.heaviside(a, 0.5),
    "number first": lambda a, b: np.float64(2) * a,
    "array first": lambda a, b: X + b,
    "array product": lambda a, b: X.T @ b,
    "array comparison": lambda a, b: a > X,
    "matmul": lambda a, b: np.matmul(a.T, b),
    "sum": lambda a, b: np.sum(a),
    "sum of rows": lambda a, b: np.sum(a, 1, keepdims=True),
    "std": lambda a, b: np.std(a, ddof=1),
    "amax": lambda a, b: np.amax(a, 1),
    "add.reduce": lambda a, b: np.add.reduce(a),
    "concatenate": lambda a, b: np.concatenate([a, b], axis=1),
    "vstack": lambda a, b: np.vstack([a, b]),
    "stack": lambda a, b: np.stack([a, b]),
    "where": lambda a, b: np.where(a > b, a, b),
    "transpose": lambda a, b: np.transpose(a),
    "ravel": lambda a, b: np.ravel(a),
    "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
    "kron": lambda a, b: np.kron(a, b),
    "clip": lambda a, b: np.clip(a, 0.1, 0.5),
    "cumsum": lambda a, b: np.cumsum(a, axis=0),
    "tril": lambda a, b: np.tril(a, -1),
    "diagonal": lambda a, b: np.diagonal(a),
    "trace": lambda a, b: np.trace(a),
    "roll": lambda a, b: np.roll(a, 2, axis=1),
    "swapaxes": lambda a, b: np.swapaxes(a, 0, 1),
    "norm": lambda a, b: np.linalg.norm(a, axis=1),
    "isclose": lambda a, b: np.isclose(a, b),
    "allclose": lambda a, b: np.allclose(a, b),
    "array_equal": lambda a, b: np.array_equal(a, a * 1),
    "shape": lambda a, b: np.shape(a),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
def test_value_as_on_the_arrays(name: str, format: str) -> None:
    want = CALLS[name](D, E)
    found = CALLS[name](ow.asarray(D, format=format), ow.asarray(E, format=format))
    found = found.to_numpy() if isinstance(found, ow.Tensor) else np.asarray(found)
    assert found.shape == np.shape(want)
    assert np.allclose(found, want)


def test_functions_that_are_not_here() -> None:
    A, W = ow.asarray(D, format="csr"), ow.asarray(D)
    assert np.allclose(np.cov(W), np.cov(D))  # a dense tensor is an array
    with pytest.raises(ow.UnsupportedError, match="cov does not take a sparse tensor"):
        np.cov(A)
    with pytest.raises(ow.UnsupportedError, match="reduceat does not take a sparse tensor"):
        np.add.reduceat(A, [0, 2])
    with pytest.raises(ow.UnsupportedError, match="mean="):
        np.var(A, mean=3.0)


def test_an_array_in_place() -> None:
    y = D.copy()
    kept = y
    y += ow.asarray(E, format="csr")
    y *= ow.asarray(E, format="csr")
    assert y is kept
    assert np.allclose(y, (D + E) * E)


def test_masked_tensors_and_expressions_go_first() -> None:
    A = ow.asarray(D, format="csr")
    assert isinstance(np.add(ow.asarray(D), ow.masked_tensor(D, D != 0)), ow.MaskedTensor)
    assert np.allclose(ow.compute(np.add(A, ow.lazy(A))).to_numpy(), 2 * D)


def test_sparse_operands_of_scipy() -> None:
    A, S = ow.asarray(D, format="csr"), sp.csr_array(E)
    for found, want in ((A + S, D + E), (A * S, D * E), (A @ S.T, D @ E.T), (ow.einsum("ij,kj->ik", A, S), D @ E.T)):
        assert isinstance(found, ow.Tensor)
        assert not found.format.is_dense
        assert np.allclose(found.to_numpy(), want)
    assert isinstance(ow.asarray(D) + S, ow.Tensor)
    assert np.allclose(ow.sddmm(S, D, D.T @ D).to_numpy(), (E != 0) * (D @ D.T @ D))


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_operands_of_torch(layout: str) -> None:
    torch = pytest.importorskip("torch")
    A, S = ow.asarray(torch.from_numpy(D), format="csr"), torch.from_numpy(E).to_sparse(layout=getattr(torch, layout))
    for found, want in ((A + S, D + E), (S * A, D * E), (A.T @ S, D.T @ E), (torch.add(A, S), D + E)):
        assert isinstance(found, ow.Tensor)
        assert np.allclose(found.to_numpy(), want)

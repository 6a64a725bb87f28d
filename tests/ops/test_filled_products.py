"""Products of tensors whose fill value is large beside their elements, in the dtype of the other operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

LARGEST = 2**63 - 1
FORMATS = ["csr", "coo", "csc", "dia", "bsr(3, 1)", "bitmap", "dcsr", "ell(3)"]
LIBRARIES = {"numpy": np.asarray, "torch": torch.from_numpy}

PRODUCTS = {
    "A @ X": lambda A, X: A @ X,
    "X.T @ A.T": lambda A, X: X.T @ A.T,
    "A @ x": lambda A, X: A @ X[:, 0],
    "matmul of a Tensor": lambda A, X: A @ ow.asarray(X),
    "addmm": lambda A, X: ow.addmm(X, A, X),
    "np.dot": lambda A, X: np.dot(A, X),
    "lazy": lambda A, X: (ow.lazy(A) @ X).compute(),
    "fused": lambda A, X: ow.fused(lambda a, x: a @ x)(A, X),
    "torch.mm": lambda A, X: torch.mm(A, X),
    "linear": lambda A, X: torch.nn.functional.linear(A, X.T),
}


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.to_dense() if isinstance(x, ow.Tensor) else x)


@pytest.mark.thin(3)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("format", FORMATS)
def test_integers_with_a_large_fill_value_keep_their_digits_in_floats(format: str, library: str) -> None:
    """In int64 an element less the fill value is exact, in the floats of the product it is the fill value."""
    give = LIBRARIES[library]
    dense = np.array([[0, 5, LARGEST], [0, -4, 7], [LARGEST, LARGEST, 2]])
    A = ow.asarray(give(dense), format=format, fill_value=LARGEST)
    X = np.array([[1.5, 0.0], [-1.0, 2.0], [0.0, 0.0]])
    want = dict.fromkeys(PRODUCTS, dense @ X)
    want.update({"X.T @ A.T": X.T @ dense.T, "A @ x": dense @ X[:, 0], "addmm": X + dense @ X})
    for name, product in PRODUCTS.items():
        if library == "torch" or ("torch" not in name and name != "linear"):
            np.testing.assert_allclose(_array(product(A, give(X))), want[name], rtol=1e-12, err_msg=name)


@pytest.mark.thin(6)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("dtype", "other", "fill", "stored"), [
    ("int64", "float64", 2**53 + 1, [0, 0]), ("uint64", "float64", 2**64 - 1, [0, 3]), ("int64", "float64", -(2**63), [1, -9]),
    ("int32", "float32", 2**31 - 1, [1, 2]), ("uint16", "float16", 60000, [1, 2]), ("int64", "complex128", 2**62, [3, 4]),
    ("float64", "int64", 1e18, [1, 2]), ("float32", "float32", 3e38, [-3e38, 1]), ("int64", "int64", LARGEST, [5, -7]),
])  # fmt: skip
def test_elements_less_a_fill_value_fit_the_dtype_of_the_product(
    dtype: str, other: str, fill: float, stored: list[float], library: str
) -> None:
    give = LIBRARIES[library]
    row = np.array([*stored, fill], dtype)
    x = np.array([1, 2, 0], other)
    for format in ("csr", "coo", "bsr(1, 3)"):
        A = ow.asarray(give(row[None]), format=format, fill_value=row[-1].item())
        np.testing.assert_allclose(_array(A @ give(x)), row[None] @ x, rtol=1e-3)
    vector = ow.asarray(give(row), format="coo", fill_value=row[-1].item())
    for got in (vector @ give(x), give(x) @ vector):
        np.testing.assert_allclose(_array(got), row @ x, rtol=1e-3)
        assert type(got) is type(give(x))
        assert got.ndim == 0


def test_a_fill_value_is_taken_once_from_duplicates() -> None:
    twice = ow.sparse_coo_tensor(np.array([[0, 0, 1], [1, 1, 0]]), np.array([1.0, 2.0, 4.0]), (2, 2))
    twice = twice.with_values(twice.values, fill_value=2.0)
    x = np.array([1.0, 10.0])
    np.testing.assert_array_equal(twice @ x, [32, 24])
    np.testing.assert_array_equal(x @ twice, [42, 23])

"""Statements that add to what the caller gives are computed in the dtype of that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

SMALL = np.array([[100, 0], [100, 50], [0, 5]], np.int8)
WIDE = SMALL.astype(np.int64)
X = np.array([100, 100], np.int8)

STATEMENTS = [
    ("y[i] += A[i, j] * x[j]", WIDE @ X),
    ("y[i] += A[i, j]", WIDE.sum(1)),
    ("y[i] += A[i, j] + x[j]", (WIDE + X).sum(1)),
    ("y[i] += A[i, j] * x[j] * B[i, j]", (WIDE * X * WIDE).sum(1)),
    ("y[i] += A[i, j] * B[i, j]", (WIDE * WIDE).sum(1)),
    ("y[i] max= A[i, j] * x[j]", (WIDE * X).max(1)),
    ("y[i] += 2 * A[i, j] - x[j]", (2 * WIDE - X).sum(1)),
]
"""Statements, and what they add to zeros."""


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.to_dense() if isinstance(x, ow.Tensor) else x)


@pytest.mark.thin(9)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["csr", "coo", "csc", "bsr(3, 2)", "dense", "array"])
@pytest.mark.parametrize(("text", "want"), STATEMENTS)
def test_products_are_summed_in_the_dtype_of_the_output(text: str, want: Any, format: str, library: str) -> None:
    give = {"numpy": np.asarray, "torch": torch.from_numpy}[library]
    A = give(SMALL) if format == "array" else ow.asarray(give(SMALL), format=format)
    operands = {"A": A, "x": give(X), "B": A}
    operands = {name: x for name, x in operands.items() if name in text}
    for dtype in ("int32", "float64", "int64"):
        y = give(np.zeros(3, dtype))
        for given in (y, ow.asarray(y)):
            got = _array(ow.evaluate(text, y=given, **operands))
            assert np.can_cast(dtype, got.dtype)  # sums of integers alone are those of 64 bits
            np.testing.assert_array_equal(got, want)


def test_products_of_the_dtype_of_the_output_stay_in_it() -> None:
    A = ow.asarray(SMALL, format="csr")
    y = ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=X, y=np.zeros(3, np.int8))
    assert y.dtype == np.int8
    np.testing.assert_array_equal(y, (WIDE @ X).astype(np.int8))


def test_outputs_of_statements_before_and_of_masked_ones() -> None:
    A, y = ow.asarray(SMALL, format="csr"), np.zeros(3, np.int32)
    T = ow.evaluate("T[i] = y[i] + 1; T[i] += A[i, j] * x[j]", A=A, x=X, y=y)
    np.testing.assert_array_equal(_array(T), WIDE @ X + 1)
    M = ow.masked_tensor(SMALL, SMALL != 0)
    got = ow.evaluate("y[i] += M[i, j] * x[j]", M=M, x=X, y=y)
    np.testing.assert_array_equal(_array(got.filled(0) if hasattr(got, "filled") else got), WIDE @ X)
    truth = ow.asarray(SMALL != 0, format="csr")
    np.testing.assert_array_equal(ow.evaluate("y[i] += A[i, j] * x[j]", A=truth, x=X != 0, y=y), [1, 2, 1])


def test_gradients_of_operands_in_the_dtype_of_the_output() -> None:
    values = torch.tensor([2.0, 3.0], requires_grad=True)
    A = ow.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), values, (2, 2))
    y = ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=torch.tensor([5.0, 7.0]), y=torch.zeros(2, dtype=torch.float64))
    assert y.dtype == torch.float64
    y.sum().backward()
    assert values.grad.tolist() == [7, 5]

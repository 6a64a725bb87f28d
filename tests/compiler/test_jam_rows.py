"""Rows of formats that store equally many elements in each are walked side by side."""

import numpy as np
import pytest

import openwork as ow
from openwork.runtime.kernel_text import show_kernel


def test_inner_loops_are_shared() -> None:
    text = show_kernel("y(i) += A(i,j) * x(j)", {"A": "nm(2, 4)"}, {}, "loops")
    assert text.count("in range(A_size1)") == 2  # of four rows together, and of a row that remains
    assert text.count("* x[a1") == 5
    assert "range(lo, rest, 4)" in text
    for format in ("csr", "ell(4)", "bsr(2, 2)", "dense"):
        assert "rest = " not in show_kernel("y(i) += A(i,j) * x(j)", {"A": format}, {}, "loops")


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "format", ["nm(2, 4)", "nm(1, 3)", "(i, j) -> (j : dense, i // 4 : dense, i % 4 : structured(2, 4))"]
)
def test_any_number_of_rows(format: str) -> None:
    rng = np.random.default_rng(3)
    for rows in (0, 1, 3, 4, 6, 9):
        shape = (rows, 12) if format.startswith("nm") else (12, rows)
        dense = rng.integers(1, 9, shape).astype(float)
        along = 1 if format.startswith("nm") else 0
        period, stored = (3, 1) if "1, 3" in format else (4, 2)
        dense[(slice(None),) * along + (np.arange(12) % period >= stored,)] = 0
        A = ow.asarray(dense, format=format)
        for x in (
            rng.random(shape[1]),
            rng.random((shape[1], 1)),
            rng.random((shape[1], 5)),
            rng.random((shape[1], 40)),
        ):
            np.testing.assert_allclose(A @ x, dense @ x)
        y = rng.random(shape[0])
        np.testing.assert_allclose(y @ A, y @ dense)

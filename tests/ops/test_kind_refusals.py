"""What is refused says what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

R = ow.asarray(np.eye(3) + np.eye(3, k=1), format="csr")


@pytest.mark.parametrize("text", ["......", "...i...->i", "...i->......"])
@pytest.mark.parametrize("x", [R, R.to_numpy()])
def test_an_ellipsis_stands_once_in_a_term(text: str, x: Any) -> None:
    with pytest.raises(ow.ShapeError, match=r"2 ellipses\n  expected: one at most"):
        ow.einsum(text, x)


@pytest.mark.parametrize("format", ["coo", "dense"])
def test_products_over_more_indices_than_letters(format: str) -> None:
    vectors = {f"x{k}": ow.asarray(np.ones(2), format=format) for k in range(70)}
    text = "s += " + " * ".join(f"x{k}[i{k}]" for k in range(70))
    with pytest.raises(ow.UnsupportedError, match=r"product over 70 indices.*\n  supported: 52\n  help"):
        ow.evaluate(text, **vectors)


def test_numbers_of_too_many_digits() -> None:
    with pytest.raises(ow.FormatError, match=r"(?s)a number is too long.*at most 4000 digits; got 100000"):
        ow.evaluate("y[i] = x[i] + " + "9" * 100_000, x=np.ones(2))
    assert ow.evaluate("y[i] = x[i] * " + "0" * 3000 + "2", x=np.ones(2)).sum() == 4


def test_names_of_preconditioners_in_lobpcg() -> None:
    n = 40
    L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    start = np.random.default_rng(0).standard_normal((n, 2))
    for name in ("amg", "ic0", "jacobi"):
        values, _ = ow.linalg.lobpcg(L, start, M=name, largest=False, maxiter=200, tol=1e-8)
        np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(L.to_numpy())[:2], rtol=1e-6)
    with pytest.raises(ValueError, match="M='amgg' is not the name of a preconditioner"):
        ow.linalg.lobpcg(L, start, M="amgg")


def test_n_of_m_by_its_other_spelling() -> None:
    with pytest.raises(ow.FormatError, match=r"help: 2 of 4 elements is nm\(2, 4\)"):
        ow.nn.prune(torch.nn.Linear(8, 8), 0.5, "2:4")
    with pytest.raises(ow.FormatError, match=r"nm\(1, 2\)"):
        ow.format("1:2")


def test_masks_as_indices_of_arrays() -> None:
    scores = np.ones((3, 3))
    with pytest.raises(ow.UnsupportedError, match=r"x\[ow.nonzero\(t\)\]"):
        scores[R > 0] = -np.inf
    scores[ow.nonzero(R > 0)] = -np.inf
    np.testing.assert_array_equal(scores, np.where(R.to_numpy() > 0, -np.inf, 1))


def test_semirings_by_nearly_their_names() -> None:
    with pytest.raises(ow.UnsupportedError, match="did you mean 'min_plus'"):
        ow.spgemm(R, R, semiring="minplus")


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_blocks_without_rows_are_scipys(library: str) -> None:
    A = ow.asarray(ow.asarray(np.eye(4), format="bsr(2, 2)"), like=library)
    for part in (A[:0], A[:, :0], A[:0, :0]):
        assert part.to_scipy().shape == part.shape


def test_products_by_a_dense_vector_that_keep_all_indices_are_sparse() -> None:
    d, r = np.array([1.0, 2.0, 3.0]), R.to_numpy()
    for text, want in (("ij,j->ij", r * d), ("ij,i->ij", r * d[:, None]), ("ij,j->ji", (r * d).T)):
        for x in (d, ow.asarray(d)):
            got = ow.einsum(text, R, x)
            assert got.nse == R.nse
            np.testing.assert_array_equal(got.to_numpy(), want)
    assert ow.einsum("ij,j->ij", R, d).format == (R * d).format

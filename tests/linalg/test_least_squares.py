"""QR factorisations: least squares, least solutions and ranks against NumPy, in all dtypes, shapes and orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg
from openwork.errors import DTypeError, ShapeError, UnsupportedError

DIGITS = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-10, "complex128": 1e-10}


def problem(m: int, n: int, dtype: str, density: float = 0.05) -> Any:
    """A matrix of full rank."""
    rng = np.random.default_rng(m + n)
    A = sp.random_array((m, n), density=density, rng=rng) + 2 * sp.eye_array(m, n)
    if dtype[0] == "c":
        A = A + 1j * sp.random_array((m, n), density=density, rng=rng)
    return sp.csr_array(A.astype(dtype))


@pytest.mark.ci
@pytest.mark.thin(28)
@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("shape", [(150, 90), (90, 150), (60, 60)])
def test_solutions_are_the_pseudo_inverse_s(dtype: str, shape: tuple[int, int]) -> None:
    A = problem(*shape, dtype)
    rng, dense = np.random.default_rng(0), A.toarray()
    inverse = np.linalg.pinv(dense)
    for form in ("csr", "csc", "coo"):
        F = linalg.factorized(ow.asarray(A, format=form), "qr")
        assert (F.kind, F.rank, F.shape) == ("qr", min(shape), shape)
        for trans, M in (("N", inverse), ("T", inverse.T), ("H", inverse.conj().T)):
            for sides in ((), (3,), (9,), (0,)):
                b = rng.standard_normal((M.shape[1], *sides)).astype(dtype)
                want = M @ b
                found = F.solve(b, trans)
                assert found.shape == want.shape
                assert found.dtype == np.dtype(dtype)
                np.testing.assert_allclose(found, want, atol=DIGITS[dtype] * np.abs(want).max(initial=1))


@pytest.mark.thin(2)
@pytest.mark.parametrize("ordering", ["auto", "colamd", "amd", "nd", "rcm", "natural", list(range(89, -1, -1))])
def test_any_order_gives_the_same_solution(ordering: Any) -> None:
    A = problem(150, 90, "float64")
    b = np.cos(np.arange(150.0))
    F = linalg.factorized(ow.asarray(A), "qr", ordering=ordering)
    np.testing.assert_allclose(F(b), np.linalg.lstsq(A.toarray(), b)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DIGITS)
def test_rank(dtype: str) -> None:
    """Dependent columns far apart in the order, whole blocks of them, empty rows and columns, fewer rows than columns."""
    rng = np.random.default_rng(4)
    A = problem(200, 100, dtype, 0.03).tolil()
    A[:, 40] = A[:, [3]] + A[:, [77]]
    A[:, 99] = 2 * A[:, [0]]
    A[:, 12] = 0
    A[:, 60:80] = A[:, 20:40]
    A[50:60, :] = 0
    A = sp.csr_array(A)
    dense = A.toarray()
    F = linalg.factorized(ow.asarray(A), "qr")
    assert F.rank == np.linalg.matrix_rank(dense) < 100
    b = rng.standard_normal(200).astype(dtype)
    x = F(b)
    assert np.count_nonzero(x == 0) >= 100 - F.rank
    residual = np.linalg.norm(dense @ np.linalg.lstsq(dense, b)[0] - b)
    assert np.linalg.norm(dense @ x - b) <= (1 + DIGITS[dtype]) * residual
    inside = (dense @ rng.standard_normal((100, 2))).astype(dtype)  # a basic solution where there is one
    np.testing.assert_allclose(dense @ F(inside), inside, atol=DIGITS[dtype] * np.abs(inside).max())
    assert linalg.factorized(ow.asarray(A), "qr", tolerance=2.0).rank == 0
    assert F.update(2 * A.data).rank == np.linalg.matrix_rank(dense)


def test_nearly_dependent_columns_by_the_tolerance() -> None:
    A = np.eye(6, 3)
    A[:, 2] = A[:, 0] + 1e-9 * A[:, 1]
    A[1, 1] = 0
    A[3, 1] = 1
    T = ow.asarray(sp.csr_array(A))
    assert linalg.factorized(T, "qr").rank == 3
    assert linalg.factorized(T, "qr", tolerance=1e-6).rank == 2


def test_small_and_empty_matrices() -> None:
    for shape in ((1, 1), (1, 4), (4, 1)):
        F = linalg.factorized(ow.asarray(np.full(shape, 2.0), format="csr"), "qr")
        np.testing.assert_allclose(F(np.ones(shape[0])), np.linalg.pinv(np.full(shape, 2.0)) @ np.ones(shape[0]))
    for shape in ((0, 0), (0, 3), (3, 0), (3, 2)):
        F = linalg.factorized(ow.zeros(shape, format="csr"), "qr")
        assert F.rank == F.nse == 0
        assert F(np.ones((shape[0], 2))).tolist() == np.zeros((shape[1], 2)).tolist()
    long = sp.csr_array(np.diag([1.0, 2.0]))
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    wide = ow.asarray(long)
    assert wide.crd(1).dtype == np.int64
    assert linalg.factorized(wide, "qr")(np.ones(2)).tolist() == [1, 0.5]


def test_update_keeps_the_symbolic_phase() -> None:
    A = problem(150, 90, "float64")
    F = linalg.factorized(ow.asarray(A), "qr")
    symbolic, b = F.symbolic, np.sin(np.arange(150.0))
    for values in (3 * A.data, ow.asarray(A * 3)):
        assert F.update(values).symbolic is symbolic
        np.testing.assert_allclose(F(b), np.linalg.lstsq(3 * A.toarray(), b)[0], rtol=1e-9, atol=1e-12)
    with pytest.raises(ShapeError, match="another structure"):
        F.update(ow.asarray(sp.csr_array(np.eye(150, 90))))
    with pytest.raises(DTypeError, match="the factors are float64"):
        F.update(1j * A.data)
    with pytest.raises(np.linalg.LinAlgError, match="nan or inf"):
        F.update(A.data * np.nan)


def test_memory_is_what_was_said() -> None:
    A = problem(400, 200, "float64", 0.02)
    F = linalg.factorized(ow.asarray(A), "qr")
    held = F._factors.values.nbytes + F._factors.tau.nbytes
    assert F.symbolic.memory()["factor"] == held
    assert F.nse * 8 <= held
    assert F.symbolic.memory("float32")["factor"] == held // 2


def test_refused() -> None:
    A = ow.asarray(problem(20, 10, "float64"))
    with pytest.raises(ShapeError, match=r"expected \(20,\) or \(20, k\)"):
        linalg.factorized(A, "qr")(np.ones(10))
    with pytest.raises(TypeError, match="an ordering and a tolerance alone"):
        linalg.factorized(A, "qr", refine=2)
    with pytest.raises(TypeError, match="help: kind='qr' finds the rank"):
        linalg.factorized(ow.eye(3), "lu", tolerance=1e-3)
    with pytest.raises(UnsupportedError, match=r"no ordering 'clamd'; .*colamd"):
        linalg.factorized(A, "qr", ordering="clamd")

"""Direct solvers on every format, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, tensor

import openwork as ow
from openwork import linalg
from openwork.linalg.tridiagonal import is_tridiagonal

SQUARE = tuple(spec for spec in FORMATS[2] if spec != "nm(4, 4)")
DIA3 = "(b, i, j) -> (j - i : compressed, b : dense, i : range)"


def regular(n: int, seed: int = 0, dtype: str = "float64", density: float = 0.3) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < density, rng.standard_normal((n, n)), 0.0)
    out = a + np.diag(n + rng.random(n))
    if dtype == "complex128":
        return np.asarray(out + 1j * np.where(a != 0, rng.standard_normal((n, n)), 0.0))
    return np.asarray(out).astype(dtype)


def close(got: Any, want: Any, rtol: float = 1e-10) -> None:
    got = got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)
    assert got.shape == want.shape
    assert got.dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max(initial=0))


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", SQUARE)
def test_solve(spec: str) -> None:
    a, rng = regular(9), np.random.default_rng(1)
    b, c = rng.standard_normal(9), rng.standard_normal((9, 3))
    t = tensor(a, spec)
    close(linalg.solve(t, b), np.linalg.solve(a, b))
    close(linalg.solve(t, c), np.linalg.solve(a, c))
    close(linalg.solve(t, c[None].repeat(2, 0)), np.linalg.solve(a, c)[None].repeat(2, 0))
    lu = linalg.factorized(t)
    close(lu(b), np.linalg.solve(a, b))
    close(lu.solve(c, transposed=True), np.linalg.solve(a.T, c))
    close(lu.solve(b + 1j * b), np.linalg.solve(a, b + 1j * b))
    close(linalg.det(t), np.linalg.det(a))
    close(np.array(linalg.slogdet(t)), np.array(np.linalg.slogdet(a)))


@pytest.mark.parametrize("spec", ["csr", "coo", "dia"])
def test_solve_of_tridiagonal_systems(spec: str) -> None:
    """`solve` finds the three diagonals by itself."""
    a = np.diag(np.arange(3.0, 12)) - np.eye(9, k=1) + np.eye(9, k=-1) / 2
    t = tensor(a, spec)
    for b in (np.arange(9.0), np.arange(18.0).reshape(9, 2), np.arange(36.0).reshape(2, 9, 2)):
        close(linalg.solve(t, b), np.linalg.solve(a, b))


@pytest.mark.thin(6)
@pytest.mark.parametrize("spec", SQUARE[::2])
@pytest.mark.parametrize("lower", [True, False])
def test_solve_triangular(spec: str, lower: bool) -> None:
    a, rng = regular(9, 2), np.random.default_rng(1)
    side = np.tril(a) if lower else np.triu(a)
    for b in (rng.standard_normal(9), rng.standard_normal((9, 3))):
        close(linalg.solve_triangular(tensor(a, spec), b, lower=lower), np.linalg.solve(side, b))
        unit = side - np.diag(np.diag(side)) + np.eye(9)
        got = linalg.solve_triangular(tensor(a, spec), b, lower=lower, unit_diagonal=True)
        close(got, np.linalg.solve(unit, b), 1e-7)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
def test_dtypes(dtype: str) -> None:
    a = regular(8, dtype=dtype)
    b = np.arange(8).astype(dtype)
    rtol = 1e-4 if dtype == "float32" else 1e-9
    want = "float64" if dtype == "int32" else dtype
    for t in (tensor(a, "csr"), tensor(a, "csc"), tensor(a, "coo")):
        x = linalg.solve(t, b)
        assert x.dtype == want
        close(x, np.linalg.solve(a, b), rtol)
        x = linalg.solve_triangular(t, b)
        assert x.dtype == want
        close(x, np.linalg.solve(np.tril(a), b), rtol)
    band = np.triu(np.tril(a, 1), -1)
    close(linalg.solve_tridiagonal(tensor(band, "dia"), b), np.linalg.solve(band, b), rtol)


@pytest.mark.parametrize("spec", ["dense", "coo", "csf", "(i, j, k) -> (i : batch, j : dense, k : compressed)"])
def test_stacks(spec: str) -> None:
    a, rng = np.stack([regular(5, k, density=0.5) for k in range(3)]), np.random.default_rng(0)
    if "batch" in spec:
        a = np.stack([a[0], 2 * a[0], 0 - a[0]])
    t = tensor(a, spec)
    b, c = rng.standard_normal(5), rng.standard_normal((3, 5, 2))
    close(linalg.solve(t, b), np.linalg.solve(a, b[None, :, None])[..., 0])
    close(linalg.solve(t, c), np.linalg.solve(a, c))
    close(linalg.solve(t, c[:1]), np.linalg.solve(a, c[:1]))
    close(linalg.solve_triangular(t, c), np.linalg.solve(np.tril(a), c))
    band = np.triu(np.tril(a, 1), -1)
    close(linalg.solve_tridiagonal(tensor(band, spec), c), np.linalg.solve(band, c))
    close(linalg.det(t), np.linalg.det(a))
    close(linalg.trace(t, offset=1), np.trace(a, 1, 1, 2))


def test_tridiagonal_are_the_three_diagonals_in_the_middle() -> None:
    for offsets, yes in (
        ((-1, 0, 1), True),
        ((0,), True),
        ((-1,), True),
        ((0, 1), True),
        ((0, 2), False),
        ((-2, 0), False),
    ):
        band = sum(np.eye(5, k=k) for k in offsets)
        assert is_tridiagonal(tensor(band, "dia")) is yes, offsets
    assert not is_tridiagonal(tensor(np.eye(5), "csr"))


@given(st.integers(1, 7), st.integers(0, 3), st.integers(0, 3), st.integers(0, 10**6), st.sampled_from([DIA3, "coo"]))
@settings(max_examples=40)
def test_tridiagonal_pivots(n: int, stack: int, k: int, seed: int, spec: str) -> None:
    rng = np.random.default_rng(seed)
    band = np.triu(np.tril(rng.integers(-2, 3, (stack, n, n)), 1), -1).astype(float)
    b = rng.standard_normal((stack, n, k))
    singular = [m for m in range(stack) if abs(np.linalg.det(band[m])) < 1e-9]
    try:
        close(linalg.solve_tridiagonal(tensor(band, spec), b), np.linalg.solve(band, b) if stack else b, 1e-8)
        assert not singular or not n
    except np.linalg.LinAlgError:
        assert singular


@given(st.integers(0, 8), st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from(["csr", "csc", "dcsr"]))
def test_triangular_at_random(n: int, seed: int, lower: bool, unit: bool, spec: str) -> None:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < 0.5, rng.integers(-3, 4, (n, n)), 0).astype(float)
    side = np.tril(a) if lower else np.triu(a)
    if unit:
        side = side - np.diag(np.diag(side)) + np.eye(n)
    b = rng.integers(-3, 4, n).astype(float)
    if np.any(np.diag(side) == 0):
        with pytest.raises(np.linalg.LinAlgError, match="of the diagonal is 0"):
            linalg.solve_triangular(tensor(a, spec), b, lower=lower, unit_diagonal=unit)
    else:
        x = linalg.solve_triangular(tensor(a, spec), b, lower=lower, unit_diagonal=unit)
        np.testing.assert_allclose(side @ x, b, atol=1e-8 * (1 + np.abs(x).max(initial=0)))


def test_duplicates_and_disorder_are_solved_as_they_are() -> None:
    pos, crd = [0, 2, 5], [0, 0, 1, 0, 1]
    t = ow.assemble(
        "(i, j) -> (i : dense, j : compressed(nonunique, unordered))", (2, 2), pos={1: pos}, crd={1: crd},
        values=[1.0, 1.0, 3.0, 4.0, 1.0],
    )  # fmt: skip
    close(linalg.solve_triangular(t, np.array([2.0, 8.0])), np.array([1.0, 1.0]))
    close(linalg.solve(t, np.array([2.0, 8.0])), np.array([1.0, 1.0]))
    assert t.crd(1).tolist() == crd


def test_a_solve_leaves_its_operands_alone() -> None:
    a = regular(9)
    for spec in ("csr", "csc", "dia"):
        t = tensor(np.triu(np.tril(a, 1), -1), spec)
        before, b = t.to_numpy().copy(), np.ones(9)
        for solve in (linalg.solve, linalg.solve_triangular, linalg.solve_tridiagonal):
            solve(t, b)
        assert (t.to_numpy() == before).all()
        assert (b == 1).all()


def test_results_are_of_the_kind_of_the_right_side() -> None:
    t = tensor(regular(4), "csr")
    assert isinstance(linalg.solve(t, ow.ones((4,), format="dense")), ow.Tensor)
    assert isinstance(linalg.solve(t, np.ones(4)), np.ndarray)
    torch = pytest.importorskip("torch")
    assert linalg.solve(t, torch.ones(4, dtype=torch.float64)).dtype == torch.float64
    assert linalg.solve_triangular(t, torch.ones(4, dtype=torch.float64)).shape == (4,)


def test_errors() -> None:
    zero = tensor(np.array([[1.0, 2.0], [2.0, 4.0]]), "csr")
    for solve in (linalg.solve, linalg.solve_tridiagonal):
        with pytest.raises(np.linalg.LinAlgError, match=r"matrix of shape \(2, 2\) is singular(.|\n)*help: lsqr"):
            solve(zero, np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match=r"matrix 1 of the stack \(2,\): "):
        linalg.solve(tensor(np.stack([np.eye(2), np.zeros((2, 2))]), "coo"), np.ones(2))
    assert linalg.det(zero) == 0
    assert linalg.slogdet(zero) == (0, -np.inf)
    t = tensor(regular(4), "csr")
    with pytest.raises(np.linalg.LinAlgError, match=r"element \(1, 1\) of the diagonal is 0"):
        linalg.solve_triangular(tensor(np.diag([1.0, 0, 2]), "csr"), np.ones(3))
    for solve in (linalg.solve, linalg.solve_triangular):
        with pytest.raises(ow.ShapeError, match=r"right side \(3,\)\n  expected 4 rows; got 3"):
            solve(t, np.ones(3))
    with pytest.raises(ow.ShapeError, match=r"expected square matrices; got shape \(2, 3\)\n  help: lsqr"):
        linalg.solve(ow.zeros((2, 3)), np.ones(2))
    with pytest.raises(ow.ShapeError, match=r"factorized: expected one matrix; got shape \(2, 2, 2\)"):
        linalg.factorized(ow.zeros((2, 2, 2)), "qr")
    with pytest.raises(np.linalg.LinAlgError, match=r"matrix 0 of the stack: the matrix of shape \(2, 2\) is singular"):
        linalg.factorized(ow.zeros((2, 2, 2)))
    with pytest.raises(ow.UnsupportedError, match=r"elements on diagonal 3(.|\n)*help: solve\(\) takes any matrix"):
        linalg.solve_tridiagonal(tensor(np.eye(4) + np.eye(4, k=3), "csr"), np.ones(4))
    with pytest.raises(ow.UnsupportedError, match=r"inv: (.|\n)*help: solve\(A, b\) for inv\(A\) @ b"):
        linalg.inv(t)
    with pytest.raises(ow.UnsupportedError, match=r"unspecified elements are 1.0, so the matrix is dense"):
        linalg.solve(t + 1.0, np.ones(4))


def test_empty_systems() -> None:
    t = ow.zeros((0, 0))
    assert linalg.solve(t, np.ones(0)).shape == (0,)
    assert linalg.solve_triangular(t, np.ones((0, 3))).shape == (0, 3)
    assert linalg.solve_tridiagonal(t, np.ones(0)).shape == (0,)
    assert linalg.det(t) == 1
    assert linalg.solve(ow.eye(3), np.ones((3, 0))).shape == (3, 0)


def test_the_order_of_columns_is_passed_on() -> None:
    A, b = ow.asarray(np.diag([1.0, 2, 4]), format="csc"), np.ones(3)
    np.testing.assert_allclose(ow.linalg.spsolve(A, b, permc_spec="NATURAL"), [1, 0.5, 0.25])
    with pytest.raises(ValueError, match="ColPerm"):
        ow.linalg.spsolve(A, b, permc_spec="nonsense")


def test_solve_of_stacks_of_stacks_of_tridiagonal_systems() -> None:
    a = np.stack([[2 * np.eye(3) + np.eye(3, k=1)], [5 * np.eye(3) - np.eye(3, k=-1)]])
    b = np.arange(6.0).reshape(2, 1, 3, 1)
    close(linalg.solve_tridiagonal(ow.asarray(a, format="coo"), b), np.linalg.solve(a, b))


def test_factors_without_rows() -> None:
    empty = ow.asarray(np.zeros((0, 0)), format="csc")
    for solve in (linalg.factorized(empty), linalg.splu(empty).solve):
        assert solve(np.zeros(0)).shape == (0,)
        assert solve(np.zeros((0, 2))).shape == (0, 2)
    assert linalg.factorized(empty).slogdet() == (1, 0)


def test_halves_are_solved_in_single_precision() -> None:
    t = ow.asarray(np.diag([1.0, 2, 4]).astype("float16"), format="csr")
    got = linalg.solve(t, np.ones(3))
    close(got, np.array([1, 0.5, 0.25]))
    close(linalg.expm(t), np.diag(np.exp([1, 2, 4])).astype("float32"), 1e-3)


@pytest.mark.thin(6)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("format", ["dense", "csr", "coo", "csc", "bsr(2, 2)"])
def test_the_sign_of_a_determinant_that_is_nan_is_nan(format: str, dtype: str, library: str) -> None:
    dense = np.array([[[1, np.nan], [2, 3]], [[1, 2], [3, 1]]], dtype)
    for matrix in (dense[0], dense[1], np.array([[np.nan, 0], [0, 1]], dtype), np.diag([1, np.nan]).astype(dtype)):
        a = ow.asarray(ow.asarray(matrix, format=format), like=library)
        sign, log = (np.asarray(x.to_dense()) for x in np.linalg.slogdet(a))
        assert np.isnan(sign) == np.isnan(log) == np.isnan(matrix).any()
        assert np.isnan(np.asarray(ow.linalg.det(a).to_dense())) == np.isnan(log)
    if format == "dense":
        sign, log = (np.asarray(x.to_dense()) for x in ow.linalg.slogdet(ow.asarray(ow.asarray(dense), like=library)))
        assert np.isnan(sign).tolist() == np.isnan(log).tolist() == [True, False]


def test_blocks_that_stand_twice_are_added() -> None:
    """A BSR matrix of SciPy's whose blocks are stored in halves."""
    dense = np.diag(np.arange(1.0, 5.0)) + np.eye(4, k=1)
    b = scipy.sparse.bsr_array(dense, blocksize=(2, 2))
    halves = (np.repeat(b.data, 2, axis=0) / 2, np.repeat(b.indices, 2), b.indptr * 2)
    t = ow.asarray(scipy.sparse.bsr_array(halves, shape=dense.shape))
    assert not t.format.is_unique
    right = np.arange(4.0)
    np.testing.assert_allclose(ow.linalg.solve(t, right), np.linalg.solve(dense, right))
    np.testing.assert_allclose(ow.linalg.splu(t).solve(right), np.linalg.solve(dense, right))

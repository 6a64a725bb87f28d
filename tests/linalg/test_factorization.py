"""Factorisations of our own: every kind against NumPy, new values, symmetry found, and what is refused with its row."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg
from openwork.codegen import pool
from openwork.errors import DTypeError, ShapeError, UnsupportedError
from openwork.ir import interpret
from openwork.linalg.direct_solver import blas
from openwork.linalg.direct_solver.factors import Factors
from openwork.linalg.direct_solver.fronts import front_kernels
from openwork.linalg.direct_solver.graph import adjacency
from openwork.linalg.direct_solver.minimum_degree import minimum_degree
from openwork.linalg.direct_solver.symbolic import analyse
from openwork.linalg.factorization import Factorization

DTYPES = ("float32", "float64", "complex64", "complex128")
KINDS = ("cholesky", "ldl", "lu")
DIGITS = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-9, "complex128": 1e-9}


def grid(*extents: int) -> Any:
    total = sp.csr_array((1, 1))
    for n in extents:
        line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
        total = sp.kron(total, sp.eye_array(n)) + sp.kron(sp.eye_array(total.shape[0]), line)
    return sp.csr_array(total)


def matrix(kind: str, dtype: str, n: int = 300, seed: int = 0) -> Any:
    """A sparse matrix for a kind of factors: definite, indefinite with both signs on its diagonal, or without symmetry."""
    rng = np.random.default_rng(seed)
    a = sp.random_array((n, n), density=6 / n, rng=rng)
    if dtype[0] == "c":
        a = a + 1j * sp.random_array((n, n), density=6 / n, rng=rng)
    if kind == "lu":
        return sp.csr_array((a + sp.diags_array(rng.choice([-3.0, 3.0], n))).astype(dtype))
    a = a + a.conj().T
    most = float(abs(a).sum(axis=1).max())
    d = np.full(n, 1 + most) if kind == "cholesky" else rng.choice([-2.0, 2.0], n)
    return sp.csr_array((a + sp.diags_array(d)).astype(dtype))


def sides(n: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(1)
    out = [rng.standard_normal(n), rng.standard_normal((n, 5)), np.zeros((n, 0))]
    return [(x + 1j * x[::-1] if dtype[0] == "c" else x).astype(dtype) for x in out]


@pytest.fixture(params=[1, 3])
def threads(request: Any) -> Iterator[int]:
    before = ow.get_num_threads()
    ow.set_num_threads(request.param)
    yield request.param
    ow.set_num_threads(before)


@pytest.mark.thin(63)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_of_all_kinds(kind: str, dtype: str, threads: int) -> None:
    A = matrix(kind, dtype)
    dense = A.toarray().astype("complex128" if dtype[0] == "c" else "float64")
    F = linalg.factorized(ow.asarray(A), kind)
    assert F.kind == kind
    assert F.dtype == dtype
    for b in sides(300, dtype):
        for trans, M in (("N", dense), ("T", dense.T), ("H", dense.conj().T)):
            x = F.solve(b, trans)
            assert x.dtype == dtype
            np.testing.assert_allclose(x, np.linalg.solve(M, b), rtol=DIGITS[dtype], atol=DIGITS[dtype])
    sign, size = F.slogdet()
    want = np.linalg.slogdet(dense)
    np.testing.assert_allclose(sign, want.sign, atol=DIGITS[dtype])
    np.testing.assert_allclose(size, want.logabsdet, rtol=DIGITS[dtype])


@pytest.mark.thin(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "format", ["csr", "csc", "coo", "dia", "bsr(2, 2)", "dcsr", "csr(nonunique)", "csr(unordered)"]
)
def test_any_format(kind: str, format: str) -> None:
    A = matrix(kind, "complex128", 40)
    t = ow.asarray(A).asformat(format)
    b = np.arange(40.0)
    F = linalg.factorized(t, kind)
    np.testing.assert_allclose(F(b), np.linalg.solve(A.toarray(), b))
    np.testing.assert_allclose(F.solve(b, "T"), np.linalg.solve(A.toarray().T, b))
    np.testing.assert_allclose(F.slogdet()[0], np.linalg.slogdet(A.toarray())[0], atol=1e-9)
    np.testing.assert_allclose(F.update(2 * t.values)(b), np.linalg.solve(2 * A.toarray(), b))


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", [*KINDS, "superlu"])
def test_new_values_keep_the_symbolic_phase(kind: str, threads: int) -> None:
    A, B = (matrix("ldl" if kind == "superlu" else kind, "float64", seed=s) for s in (0, 0))
    B.data *= np.abs(np.cos(B.data)) + 1
    t = ow.asarray(A)
    F = linalg.factorized(t, kind)
    before, b = F.symbolic, np.ones(300)
    for values in (B.data, ow.asarray(B), t.with_values(B.data)):
        F.update(t)
        assert F.update(values) is F
        assert F.symbolic is before
        np.testing.assert_allclose(F(b), np.linalg.solve(B.toarray(), b))
    again = linalg.factorized(t.with_values(B.data), kind, ordering="amd")
    once_more = linalg.factorized(t.with_values(A.data), kind, ordering="amd")
    assert again.symbolic is once_more.symbolic


def test_update_refuses_other_structures_and_types() -> None:
    A = ow.asarray(matrix("cholesky", "float64", 30))
    F = linalg.factorized(A, "cholesky")
    b = np.ones(30)
    held = F(b)
    with pytest.raises(ShapeError, match="another structure"):
        F.update(ow.asarray(matrix("cholesky", "float64", 30, seed=4)))
    with pytest.raises(ShapeError, match="the matrix has shape"):
        F.update(ow.eye(4, format="csr"))
    with pytest.raises(DTypeError, match="the factors are float64"):
        F.update(A.values * 1j)
    with pytest.raises(np.linalg.LinAlgError, match="nan or inf"):
        F.update(A.values * np.nan)
    F.update(A)
    np.testing.assert_array_equal(F(b), held)


def test_auto_finds_out() -> None:
    n = 1600
    definite = matrix("cholesky", "float64", n)
    cases = {
        "cholesky": definite,
        "ldl": sp.csr_array(definite + sp.diags_array(-1.9 * definite.diagonal() * (np.arange(n) == 7))),
        "lu": sp.csr_array(definite + 0.3 * sp.triu(definite, 1)),
    }
    b = np.ones(n)
    for kind, A in cases.items():
        F = linalg.factorized(ow.asarray(A))
        assert F.kind == kind
        np.testing.assert_allclose(A @ F(b), b, atol=1e-9)
    F = linalg.factorized(ow.asarray(definite))
    F.update(ow.asarray(definite).with_values(-definite.data))
    assert F.kind == "ldl"
    np.testing.assert_allclose(definite @ F(b), -b, atol=1e-9)
    assert linalg.factorized(ow.asarray(definite[:50][:, :50])).kind == "superlu"


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_auto_takes_what_is_hermitian_but_for_rounding(dtype: str) -> None:
    A = matrix("cholesky", dtype, 1600)
    rounded = A.data * (1 + 4e-16 * np.random.default_rng(0).standard_normal(A.nnz))
    t = ow.asarray(sp.csr_array((rounded, A.indices, A.indptr), A.shape))
    F = linalg.factorized(t)
    assert F.kind == "cholesky"
    b = np.cos(np.arange(1600.0))
    assert np.abs(t @ F(b) - b).max() < 1e-13 * np.abs(A.data).max()
    F.update(A.data)
    assert F.kind == "cholesky"
    other = sp.csr_array(A + 1e-3 * sp.triu(A, 1))  # of the structure, and its lower triangle is definite
    F.update(other.data)
    assert F.kind == "lu"
    np.testing.assert_allclose(other @ F(b), b, atol=1e-12)
    np.testing.assert_allclose(A @ F.update(A.data)(b), b, atol=1e-12)


@pytest.mark.parametrize("kind", ["auto", "cholesky", "ldl", "lu", "qr"])
def test_zeros_of_blocks_may_be_elsewhere_in_other_values(kind: str) -> None:
    first = np.kron(np.diag(np.full(20, 9.0)) - np.eye(20, k=1) - np.eye(20, k=-1), np.eye(2))
    second = first - np.kron(np.eye(20, k=1) + np.eye(20, k=-1), np.array([[0, 0.5], [0.5, 0]]))
    b = np.arange(40.0)
    t = ow.asarray(second, format="bsr(2, 2)")
    one = ow.with_values(t, np.where(t.values == -0.5, 0, t.values))
    np.testing.assert_allclose(one.to_numpy(), first)
    for held, dense in ((one, first), (t, second), (one, first)):  # of one structure
        np.testing.assert_allclose(dense @ linalg.factorized(held, kind)(b), b, atol=1e-10)
    if kind != "qr":
        F = linalg.factorized(one, kind)
        np.testing.assert_allclose(second @ F.update(t)(b), b, atol=1e-10)
        np.testing.assert_allclose(first @ F.update(one.values)(b), b, atol=1e-10)


def test_kinds_of_one_matrix_that_read_different_elements() -> None:
    A = sp.csr_array(grid(8, 8) + sp.triu(sp.random_array((64, 64), density=0.2, rng=2), 1))
    t, b = ow.asarray(A), np.ones(64)
    for kind in ("cholesky", "lu", "cholesky"):
        x = linalg.factorized(t, kind)(b)
        np.testing.assert_allclose((A if kind == "lu" else grid(8, 8)) @ x, b, atol=1e-10)


def test_auto_goes_on_where_memory_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Factors, "factor", full)
    A = ow.asarray(grid(41, 41))
    assert linalg.factorized(A).kind == "superlu"
    with pytest.raises(MemoryError):
        linalg.factorized(A, "ldl")


@pytest.mark.parametrize("beside", [1.0, 1j, 0.9999])
def test_auto_tries_no_cholesky_where_two_rows_say_no(beside: complex, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, a = grid(41, 41), sp.lil_array((1681, 1681), dtype=np.result_type(type(beside)))
    a[5, 900], a[900, 5] = 2 * beside, np.conj(2 * beside)  # the minor of rows 5 and 900 of the sum is 4 - 4 |beside|^2
    A = sp.csr_array(rows - sp.diags_array(rows.diagonal() - 2) + a)
    tried: list[str] = []
    solver = Factorization._solver
    monkeypatch.setattr(
        Factorization, "_solver", lambda self, kind, passes: tried.append(kind) or solver(self, kind, passes)
    )
    F = linalg.factorized(ow.asarray(A))
    assert tried == (["ldl"] if abs(beside) == 1 else ["cholesky", "ldl"])
    assert F.kind == "ldl"
    b = np.ones(1681)
    np.testing.assert_allclose(A @ F(b), b, atol=1e-9)


def test_what_superlu_ends_on_is_an_error_of_linear_algebra() -> None:
    # many equal rows and empty ones, on which SuperLU's panels fail instead of finding a zero pivot
    rng = np.random.default_rng(0)
    row, col = rng.integers(0, 2000, (2, 2600))
    A = sp.csr_array((np.ones(2600), (row, col)), (3000, 3000))
    for kind in ("superlu", "lu", "auto"):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            linalg.factorized(ow.asarray(A), kind)


def test_structures_far_from_symmetric_go_to_superlu() -> None:
    rng = np.random.default_rng(8)
    A = sp.csr_array(sp.triu(sp.random_array((1700, 1700), density=0.001, rng=rng)) + 3 * sp.eye_array(1700))
    assert linalg.factorized(ow.asarray(A)).kind == "superlu"
    b = np.ones(1700)
    np.testing.assert_allclose(A @ linalg.factorized(ow.asarray(A), "lu")(b), b)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_kkt_systems(dtype: str) -> None:
    rng = np.random.default_rng(3)
    H = sp.diags_array(rng.random(120) + 0.1)
    J = sp.random_array((50, 120), density=0.08, rng=rng) + sp.eye_array(50, 120)
    if dtype[0] == "c":
        J = J + 1j * sp.random_array((50, 120), density=0.05, rng=rng)
    for corner in (None, -1e-8 * sp.eye_array(50)):
        K = sp.csr_array(sp.block_array([[H, J.conj().T], [J, corner]]))
        F = linalg.factorized(ow.asarray(K), "ldl")
        b = K @ np.ones(170)
        np.testing.assert_allclose(F(b), np.ones(170), rtol=1e-8)
        np.testing.assert_allclose(F.slogdet()[1], np.linalg.slogdet(K.toarray())[1])


def test_not_definite_names_the_row() -> None:
    A = grid(7, 8)
    A[20, 20] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite: the pivot of row 20 is not positive"):
        linalg.factorized(ow.asarray(A), "cholesky")
    A = sp.block_diag([grid(9, 9), np.array([[1.0, 2.0], [2.0, 1.0]])], format="csr")
    with pytest.raises(np.linalg.LinAlgError, match=r"the pivot of row 8[12] is not positive\n  help: kind='ldl'"):
        linalg.factorized(ow.asarray(A), "cholesky", ordering="natural")


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", ["cholesky", "ldl"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_the_lower_triangle_is_read(kind: str, format: str) -> None:
    A = matrix(kind, "complex128", 60)
    b = np.ones(60)
    want = np.linalg.solve(A.toarray(), b)
    other = sp.triu(sp.random_array((60, 60), density=0.1, rng=1), 1)
    for half in (sp.tril(A), sp.tril(A) + other):
        t = ow.asarray(sp.csr_array(half)).asformat(format)
        F = linalg.factorized(t, kind)
        np.testing.assert_allclose(F(b), want)
        np.testing.assert_allclose(F.update(t.values * 2)(b), want / 2)
        np.testing.assert_allclose(F.solve(b, "T"), np.linalg.solve(2 * A.toarray().T, b))


@pytest.mark.parametrize("kind", ["cholesky", "ldl"])
@pytest.mark.parametrize("half", [False, True])
def test_zeros_that_are_stored_are_elements_of_other_values(kind: str, half: bool) -> None:
    A = sp.csr_array(sp.tril(grid(6, 6))) if half else grid(6, 6)
    rounding = A.data * (1 + 1e-15 * np.arange(A.nnz))  # of elements that were summed in another order
    at = np.flatnonzero(A.data < 0)[:8]
    rounding[at] = 0
    t = ow.asarray(sp.csr_array((rounding, A.indices, A.indptr), A.shape))
    F = linalg.factorized(t, kind)
    b = np.ones(36)
    np.testing.assert_allclose(F.update(A.data)(b), np.linalg.solve(grid(6, 6).toarray(), b))
    assert F.symbolic.nse == linalg.factorized(ow.asarray(grid(6, 6)), kind).symbolic.nse


@pytest.mark.parametrize("kind", ["ldl", "lu"])
def test_singular_matrices_name_a_row(kind: str) -> None:
    A = sp.block_diag([grid(6, 6), np.ones((2, 2)), grid(5, 5)], format="csr")
    with pytest.raises(np.linalg.LinAlgError, match=r"singular, or nearly.* the one of row 3[67] among them"):
        linalg.factorized(ow.asarray(A), kind)
    A = sp.csr_array(A - sp.diags_array(A.diagonal() * (np.arange(A.shape[0]) >= 61)))
    A.eliminate_zeros()
    A = sp.csr_array(sp.block_array([[A, None], [None, sp.csr_array((1, 1))]]))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        linalg.factorized(ow.asarray(A), kind)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        linalg.factorized(ow.asarray(A))


@pytest.mark.parametrize("kind", ["ldl", "lu"])
def test_empty_and_dependent_rows_are_refused(kind: str) -> None:
    A = sp.lil_array(grid(9, 9))
    A[40, :] = 0
    A[:, 40] = 0
    for matrix_ in (A, sp.lil_array(sp.block_diag([grid(4, 4), np.ones((40, 40)), grid(5, 3)]))):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            linalg.factorized(ow.asarray(sp.csr_array(matrix_)), kind)


@pytest.mark.parametrize("kind", ["ldl", "lu"])
def test_badly_scaled_matrices_are_not_singular(kind: str) -> None:
    A = matrix(kind, "float64", 80)
    d = np.exp(np.linspace(-30, 30, 80))
    for S in (d, 1 / d):
        B = sp.csr_array(sp.diags_array(S) @ A @ sp.diags_array(S))
        F = linalg.factorized(ow.asarray(B), kind)
        b = B @ (1 / S)
        np.testing.assert_allclose(F(b) * S, np.ones(80), rtol=1e-6)


def test_rows_are_exchanged_for_a_zero_diagonal() -> None:
    rng = np.random.default_rng(5)
    A = sp.csr_array(sp.random_array((400, 400), density=0.01, rng=rng) + 4 * sp.eye_array(400))
    A = sp.csr_array(A[rng.permutation(400)] * np.exp(8 * rng.standard_normal(400))[:, None])
    F = linalg.factorized(ow.asarray(A), "lu")
    x = rng.standard_normal((400, 2))
    np.testing.assert_allclose(F.solve(A @ x), x, rtol=1e-6)
    b = A.T @ x
    assert np.abs(A.T @ F.solve(b, "T") - b).max() <= 1e-13 * np.abs(A).max() * np.abs(x).max()
    want = np.linalg.slogdet(A.toarray())
    assert F.slogdet()[0] == want.sign
    np.testing.assert_allclose(F.slogdet()[1], want.logabsdet)


@pytest.mark.parametrize("kind", [*KINDS, "superlu", "auto"])
def test_small_ones(kind: str) -> None:
    empty = linalg.factorized(ow.zeros((0, 0), format="csr"), kind)
    assert empty.solve(np.zeros((0, 3))).shape == (0, 3)
    assert empty.slogdet() == (1, 0)
    one = linalg.factorized(ow.asarray([[4.0]], format="csr"), kind)
    assert one(np.array([2.0])).tolist() == [0.5]
    np.testing.assert_allclose(one.update(np.array([8.0]))(np.array([2.0])), [0.25])
    np.testing.assert_allclose(one.logdet(), np.log(8.0))
    diagonal = linalg.factorized(ow.diags_array([[2.0, 4.0, 5.0]], offsets=[0], format="csr"), kind)
    np.testing.assert_allclose(diagonal(np.array([2.0, 2.0, 10.0])), [1, 0.5, 2])


@pytest.mark.thin(9)
@pytest.mark.parametrize("kind", [*KINDS, "superlu"])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_elements_of_the_inverse(kind: str, dtype: str, format: str) -> None:
    A = matrix("ldl" if kind == "superlu" else kind, dtype, 150)
    t = ow.asarray(A).asformat(format)
    F = linalg.factorized(t, kind)
    inverse = np.linalg.inv(A.toarray().astype("complex128" if dtype[0] == "c" else "float64"))
    tolerance = DIGITS[dtype] * np.abs(inverse).max()
    np.testing.assert_allclose(F.inverse_diagonal(), inverse.diagonal(), atol=tolerance)
    selected = F.selected_inverse()
    assert (selected.format, selected.nse) == (ow.format(format), A.nnz)
    np.testing.assert_allclose(selected.to_numpy(), np.where(A.toarray() != 0, inverse, 0), atol=tolerance)


def test_the_diagonal_of_the_inverse_of_a_mesh() -> None:
    A = grid(9, 10, 11)
    t = ow.asarray(A)
    want = np.linalg.inv(A.toarray())
    for ordering in ("amd", "nd", "natural"):
        F = linalg.factorized(t, "cholesky", ordering=ordering)
        np.testing.assert_allclose(F.inverse_diagonal(), want.diagonal())
        np.testing.assert_allclose(linalg.factorized(t, "ldl", ordering=ordering).inverse_diagonal(), want.diagonal())
    assert linalg.factorized(ow.zeros((0, 0), format="csr")).inverse_diagonal().shape == (0,)


def test_logarithm_of_the_determinant() -> None:
    A = grid(12, 13)
    F = linalg.factorized(ow.asarray(A), "cholesky")
    np.testing.assert_allclose(F.logdet(), np.linalg.slogdet(A.toarray())[1])
    negative = linalg.factorized(ow.asarray(-grid(3, 3)), "ldl")
    assert np.isnan(negative.logdet())
    assert negative.slogdet()[0] == -1


@pytest.mark.parametrize("ordering", ["amd", "nd", "rcm", "natural", "colamd", np.arange(143)[::-1]])
def test_orders(ordering: Any) -> None:
    A = grid(11, 13)
    F = linalg.factorized(ow.asarray(A), "cholesky", ordering=ordering)
    b = np.arange(143.0)
    np.testing.assert_allclose(A @ F(b), b, atol=1e-9)
    assert F.symbolic is not None
    assert F.nse == F.symbolic.nse >= (A.nnz + 143) // 2


def test_dissection_is_chosen_where_it_saves() -> None:
    F = linalg.factorized(ow.asarray(grid(21, 21, 21)), "cholesky")
    assert F.symbolic is not None
    assert F.symbolic.method == "nd"
    assert "by nd" in repr(F.symbolic)
    flat = linalg.factorized(ow.asarray(grid(50, 50)), "cholesky").symbolic
    assert flat is not None
    assert flat.method == "amd"


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_refined_to_double(kind: str) -> None:
    A = matrix(kind, "float64")
    F = linalg.factorized(ow.asarray(A), kind, precision="single")
    whole = linalg.factorized(ow.asarray(A), kind)
    assert F._factors.factors.values.nbytes * 2 == whole._factors.factors.values.nbytes
    x = np.cos(np.arange(600.0)).reshape(300, 2)
    for trans, M in (("N", A), ("T", A.T)):
        np.testing.assert_allclose(F.solve(M @ x, trans), x, atol=1e-12)
    coarse = linalg.factorized(ow.asarray(A), "cholesky" if kind == "cholesky" else kind, precision="single", refine=0)
    assert 1e-9 < np.abs(coarse._direct(A @ x, "N") - x).max() < 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_predicted(kind: str) -> None:
    A = ow.asarray(grid(12, 12, 12))
    linalg.factorized(A, kind)
    F = linalg.factorized(A, kind)
    assert F.symbolic is not None
    predicted = F.symbolic.memory(np.float64, ow.get_num_threads(), 2 if kind == "lu" else 1)
    assert predicted["factor"] == F._factors.factors.values.nbytes
    tracemalloc.start()
    F.update(A)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    scaled = 0 if kind == "cholesky" else 60 * A.nse  # scales of rows and columns, and a test solution
    assert predicted["work"] <= peak <= predicted["work"] + 0.2 * predicted["factor"] + 200_000 + scaled


def stack_of(kind: str, many: int, dtype: str = "float64") -> list[Any]:
    first = ow.asarray(matrix(kind, dtype, 60))
    return [first.with_values(first.values * s) for s in 1 + np.arange(many) / 3]


@pytest.mark.thin(4)
@pytest.mark.parametrize("kind", [*KINDS, "superlu"])
def test_stacks_of_one_structure_are_factored_side_by_side(kind: str, threads: int) -> None:
    parts = stack_of(kind if kind in KINDS else "lu", 6, "complex128")
    A = ow.reshape(ow.stack(parts), (2, 3, 60, 60))
    dense = A.to_numpy()
    F = linalg.factorized(A, kind)
    assert (F.kind, F.shape, len(F.parts)) == (kind, A.shape, 6)
    assert all(part.symbolic is F.symbolic for part in F.parts)
    assert F.nse == sum(part.nse for part in F.parts)
    b = np.random.default_rng(0).standard_normal((3, 60, 2))
    for factor in (1.0, 4.0, 0.5):
        np.testing.assert_allclose(F(b[0, :, 0]), np.linalg.solve(dense, b[0, :, :1])[..., 0], rtol=1e-9)
        np.testing.assert_allclose(F.solve(b, "H"), np.linalg.solve(dense.conj().mT, b), rtol=1e-9)
        for found, expected in zip(F.slogdet(), np.linalg.slogdet(dense), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        dense = factor * A.to_numpy()
        values = np.stack([factor * part.values for part in parts]).reshape(2, 3, -1)
        assert F.update(values if factor > 1 else ow.multiply(A, factor)) is F
    inverses = np.linalg.inv(0.5 * A.to_numpy())
    np.testing.assert_allclose(F.inverse_diagonal(), np.diagonal(inverses, axis1=-2, axis2=-1), rtol=1e-9)


def test_columns_are_delayed_in_stacks(threads: int) -> None:
    mesh = grid(7, 12)
    mesh.setdiag(0)
    parts = [ow.asarray(sp.csr_array(mesh * s)) for s in (1.0, 2.0, 3.0)]
    F = linalg.factorized(ow.stack(parts), "ldl")
    assert F.parts[0]._factors.factors.delayed
    b = np.arange(84.0)
    for part, found in zip(parts, F(b), strict=True):
        np.testing.assert_allclose(part @ found, b, atol=1e-9)


def test_what_stacks_refuse() -> None:
    parts = stack_of("cholesky", 3)
    parts[1] = parts[1].with_values(-parts[1].values)
    with pytest.raises(np.linalg.LinAlgError, match=r"matrix 1 of the stack: .* pivot of row"):
        linalg.factorized(ow.stack(parts), "cholesky")
    F = linalg.factorized(ow.stack(parts))
    np.testing.assert_allclose(F(np.ones(60))[1], -np.linalg.solve(stack_of("cholesky", 3)[1].to_numpy(), np.ones(60)))
    with pytest.raises(ShapeError, match="another structure than the first"):
        linalg.factorized(ow.stack([parts[0], ow.eye(60, format="csr")]))
    with pytest.raises(ShapeError, match="expected values of shape"):
        F.update(np.ones((3, 7)))
    with pytest.raises(ShapeError, match="the stack has shape"):
        F.update(ow.stack(parts[:2]))
    with pytest.raises(ShapeError, match="do not broadcast"):
        F(np.ones((2, 60, 1)))
    assert linalg.factorized(ow.zeros((2, 0, 0)))(np.ones(0)).shape == (2, 0)


def test_right_sides_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    A = grid(6, 6)
    F = linalg.factorized(ow.asarray(A), "cholesky")
    b = np.arange(36.0)
    want = F(b)
    for got in (F(torch.from_numpy(b)), F @ ow.asarray(b), F(ow.asarray(b).asformat("coo"))):
        np.testing.assert_array_equal(got.to_numpy() if isinstance(got, ow.Tensor) else got.numpy(), want)
    t = ow.asarray(torch.from_numpy(A.toarray()).to_sparse_csr())
    np.testing.assert_allclose(linalg.factorized(t, "cholesky").update(t.values * 2)(b), want / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_right_sides_are_left_alone(kind: str) -> None:
    A = matrix(kind, "float64", 40)
    b, values = np.arange(80.0).reshape(40, 2), A.data.copy()
    linalg.factorized(ow.asarray(A), kind).solve(b)
    assert np.array_equal(b, np.arange(80.0).reshape(40, 2))
    assert np.array_equal(values, A.data)


def test_what_is_refused() -> None:
    A = ow.eye(3, format="csr")
    with pytest.raises(UnsupportedError, match="did you mean 'cholesky'"):
        linalg.factorized(A, "choleski")
    with pytest.raises(UnsupportedError, match="no ordering 'amdd'"):
        linalg.factorized(A, ordering="amdd")
    with pytest.raises(UnsupportedError, match="precision is 'same' or 'single'"):
        linalg.factorized(A, precision="half")
    with pytest.raises(TypeError, match="options of SuperLU with kind='lu': permc_spec"):
        linalg.factorized(A, "lu", permc_spec="NATURAL")
    with pytest.raises(ShapeError, match="an order of 3 rows"):
        linalg.factorized(A, ordering=[0, 1, 1])
    with pytest.raises(np.linalg.LinAlgError, match="nan or inf"):
        linalg.factorized(A.with_values(A.values * np.inf), "cholesky")
    assert linalg.factorized(A, permc_spec="NATURAL").kind == "superlu"


def test_blas_has_its_threads_again() -> None:
    functions = blas._thread_functions()
    if functions is None:
        pytest.skip("not OpenBLAS")
    before = functions[0]()
    with blas.one_thread():
        assert functions[0]() == 1
    assert functions[0]() == before


@pytest.mark.parametrize("kind", KINDS)
def test_fronts_are_as_the_interpreter_has_them(kind: str) -> None:
    A = matrix(kind, "float64", 24)
    graph = adjacency(A.indptr, A.indices)
    symbolic = analyse(graph, minimum_degree(graph), "amd")
    c = sp.coo_array(A)
    entries = symbolic.entries(*c.coords, 2 if kind == "lu" else 1)
    plan, kernels = symbolic.plan(1), front_kernels(kind, "i32", "f64", "f64")
    results = []
    for run in (False, True):
        factors = Factors(symbolic, kind, "f64", entries)
        words, full, _ = factors._arguments(A.data, 1e-12, plan)
        args, whole = [*words, 4, *kernels.routines], kernels.phases["whole"]
        if run:
            whole.run(whole.pack(args), 0, len(symbolic.nodes.up))
        else:
            named = dict(zip([p.name for p in whole.params], args, strict=True))
            assert interpret.run(whole.kernel, named, 0, len(symbolic.nodes.up)) == 0
        assert not full.any()
        lower = np.concatenate(
            [
                np.tril(factors.values[at : at + m * k].reshape(k, m).T).ravel()
                if kind != "lu"
                else factors.values[at : at + m * k]
                for at, k, m in zip(factors.panel_at, factors.width, factors.width + symbolic.nodes.below, strict=True)
            ]
        )
        results.append((lower, factors.width.copy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_threads_change_rounding_alone() -> None:
    A = ow.asarray(grid(40, 40))
    b, before, out = np.ones(1600), ow.get_num_threads(), []
    for n in (1, 2, 5):
        pool.set_num_threads(n)
        out.append(linalg.factorized(A, "cholesky")(b))
    pool.set_num_threads(before)
    np.testing.assert_allclose(out[1], out[0], rtol=1e-12)
    np.testing.assert_allclose(out[2], out[0], rtol=1e-12)

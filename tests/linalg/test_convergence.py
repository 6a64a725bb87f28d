"""Iterative solvers: results against dense answers, warnings, progress, operands of every kind, and wrong ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as scipys
from matrix import tensor

import openwork as ow
from openwork import linalg

SYMMETRIC = ("cg", "minres")
GENERAL = ("bicg", "bicgstab", "cgs", "gcrotmk", "gmres", "lgmres", "qmr", "tfqmr")
FEW = ("dense", "coo", "csr", "csc", "bsr(2, 2)", "dia", "bitmap")


def poisson(n: int) -> np.ndarray[Any, Any]:
    """The Laplacian of an n by n grid."""
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


A = poisson(6)
SKEWED = A + 0.5 * np.eye(36, k=1) * (A != 0)
B = np.linspace(1, 2, 36)


@pytest.mark.parametrize("name", SYMMETRIC + GENERAL)
def test_solvers_against_dense(name: str) -> None:
    dense = A if name in SYMMETRIC else SKEWED
    want = np.linalg.solve(dense, B)
    for spec in FEW if name in ("cg", "qmr") else ("csr",):
        x, info = getattr(linalg, name)(tensor(dense, spec), B, rtol=1e-11)
        assert info == 0
        np.testing.assert_allclose(x, want, rtol=1e-7)
    t = tensor(dense.astype(np.complex128), "csr")
    if name == "minres":
        with pytest.raises(ow.UnsupportedError, match="minres: SciPy's method is for real numbers"):
            linalg.minres(t, B)
        return
    x, info = getattr(linalg, name)(t * (1 + 0j), B + 0j, np.ones(36), rtol=1e-11)
    np.testing.assert_allclose(x, want, rtol=1e-7)


@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
def test_least_squares(name: str) -> None:
    rng = np.random.default_rng(0)
    wide = np.where(rng.random((20, 7)) < 0.4, rng.standard_normal((20, 7)), 0) + np.eye(20, 7)
    b = np.arange(20.0)
    solver = getattr(linalg, name)
    x = solver(tensor(wide, "csc"), b, atol=1e-13, btol=1e-13)[0]
    np.testing.assert_allclose(x, np.linalg.lstsq(wide, b)[0], atol=1e-8)
    damped = solver(tensor(wide, "csr"), b, 0.5, atol=1e-13, btol=1e-13)[0]
    np.testing.assert_allclose(damped, np.linalg.solve(wide.T @ wide + 0.25 * np.eye(7), wide.T @ b), atol=1e-8)
    assert len(solver(tensor(wide, "csr"), b)) == len(getattr(scipys, name)(wide, b))
    with pytest.warns(ow.ConvergenceWarning, match=rf"{name}: no convergence after 1 iterations"):
        solver(tensor(wide, "csr"), b, **{"iter_lim" if name == "lsqr" else "maxiter": 1})
    seen: list[tuple[int, int]] = []
    solver(tensor(wide, "csr"), b, progress=lambda done, limit: seen.append((done, limit)))
    assert seen
    assert [d for d, _ in seen] == list(range(1, len(seen) + 1))


@pytest.mark.parametrize("name", SYMMETRIC + GENERAL)
def test_warns_once_where_it_does_not_converge(name: str) -> None:
    options = {"maxiter": 1, "inner_m": 2} if name == "lgmres" else {"maxiter": 1}
    options |= {"restart": 2} if name == "gmres" else {"m": 2} if name == "gcrotmk" else {}
    with pytest.warns(ow.ConvergenceWarning) as caught:
        x, info = getattr(linalg, name)(ow.asarray(A).asformat("csr"), B, rtol=1e-12, **options)
    assert info > 0
    assert len(caught) == 1
    found = caught[0].message
    assert isinstance(found, ow.ConvergenceWarning)
    assert found.operation == name
    assert found.iterations >= 1
    assert found.residual == pytest.approx(np.linalg.norm(B - A @ x))
    assert "help: " in str(found)
    assert f"got {found.residual:.3g}" in str(found)
    assert caught[0].filename == __file__


def test_no_warning_where_the_last_iteration_converged() -> None:
    t = ow.asarray(A).asformat("csr")
    counted: list[Any] = []
    want, _ = linalg.cg(t, B, callback=counted.append)
    n = len(counted)
    assert scipys.cg(A, B, maxiter=n)[1] == n
    x, info = linalg.cg(t, B, maxiter=n)
    assert info == 0
    np.testing.assert_array_equal(x, want)
    assert linalg.cg(t, np.zeros(36))[1] == 0
    assert linalg.cg(t, B, np.linalg.solve(A, B))[1] == 0


@pytest.mark.parametrize("name", SYMMETRIC + GENERAL)
def test_nan_ends_at_once(name: str) -> None:
    t = ow.asarray(A).asformat("csr")
    broken = t.with_values(np.where(np.arange(t.nse) == 40, np.nan, t.values))
    calls: list[Any] = []
    for matrix, right in ((t, np.where(B > 1.9, np.nan, B)), (broken, B)):
        calls.clear()
        with pytest.warns(ow.ConvergenceWarning, match=rf"{name}: no convergence: nan or inf after") as caught:
            x, info = getattr(linalg, name)(matrix, right, callback=calls.append)
        assert len(caught) == 1
        assert info > 0
        assert not np.isfinite(matrix @ x - right).all()
        assert len(calls) <= 3


def test_progress() -> None:
    t, seen = ow.asarray(A).asformat("csr"), []
    linalg.cg(t, B, maxiter=100, progress=lambda done, limit: seen.append((done, limit)))
    assert seen == [(k + 1, 100) for k in range(len(seen))]
    linalg.gmres(t, B, restart=10, maxiter=7, progress=lambda done, limit: seen.append((done, limit)))
    assert seen[-1][1] == 70
    with pytest.raises(ow.DTypeError, match="cg: progress must be True or a function of"):
        linalg.cg(t, B, progress=3)


@pytest.mark.parametrize("name", SYMMETRIC + GENERAL)
def test_divisions_by_zero_are_told_once(name: str) -> None:
    """Of a matrix of zeros: no warning of NumPy's beside ours."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        getattr(linalg, name)(ow.zeros((4, 4), format="csr"), np.ones(4), maxiter=2)
    assert {w.category for w in caught} <= {ow.ConvergenceWarning}
    assert len(caught) <= 1


def test_operators_and_functions() -> None:
    t = ow.asarray(A).asformat("csr")
    want = np.linalg.solve(A, B)
    inverse = np.linalg.inv(A)
    matrices = (t, A, sparse.csc_array(A), linalg.aslinearoperator(t), lambda x: A @ x)
    approximate = (None, linalg.jacobi(t), ow.asarray(inverse), inverse, lambda r: inverse @ r, "ssor", linalg.splu(t))
    for a in matrices:
        for m in approximate:
            if isinstance(m, str) and callable(a):
                continue
            x, info = linalg.cg(a, B, M=m, rtol=1e-11)
            assert info == 0
            np.testing.assert_allclose(x, want, rtol=1e-8)
    with pytest.raises(ow.UnsupportedError, match="bicg takes products with the adjoint"):
        linalg.bicg(lambda x: A @ x, B)
    with pytest.raises(ow.UnsupportedError, match="made of the matrix's elements"):
        linalg.cg(lambda x: A @ x, B, M="ic0")
    with pytest.raises(ow.ShapeError, match=r"an operator of shape \(36, 36\) gave a result of shape \(35,\)"):
        linalg.cg(lambda x: x[:-1], B)
    with pytest.raises(ValueError, match=r"M='jacoby' is not the name of a preconditioner[\s\S]*did you mean 'jacobi'"):
        linalg.cg(t, B, M="jacoby")


def test_products_with_operators() -> None:
    t = ow.asarray(A).asformat("csr")
    m = linalg.ilu0(t)
    for other in (scipys.aslinearoperator(2 * np.eye(36)), m):
        both = t @ other
        assert isinstance(both, scipys.LinearOperator)
        np.testing.assert_allclose(both @ B, A @ (other @ B), atol=1e-12)
        np.testing.assert_allclose(both.H @ B, other.rmatvec(A.T @ B), atol=1e-12)
    with pytest.raises(ow.ShapeError, match=r"matmul: the operands have shapes \(36, 36\) and \(3, 3\)"):
        t @ scipys.aslinearoperator(np.eye(3))
    with pytest.raises(TypeError):
        t @ object()
    eigenvalues = scipys.eigsh(t @ scipys.aslinearoperator(np.eye(36)), 1, v0=B)[0]
    np.testing.assert_allclose(eigenvalues, np.linalg.eigvalsh(A)[-1])


def test_torch_in_torch_out() -> None:
    torch = pytest.importorskip("torch")
    values = torch.from_numpy(A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = ow.asarray(values.to_sparse_csr())
    b = torch.from_numpy(B)
    given: list[Any] = []

    def inverse(r: Any) -> Any:
        given.append(r)
        return r / 4

    for name in ("cg", "gmres", "lsmr"):
        options = {} if name == "lsmr" else {"M": inverse, "rtol": 1e-11}
        x = getattr(linalg, name)(t, b, **options)[0]
        assert isinstance(x, torch.Tensor)
        np.testing.assert_allclose(A @ x.numpy(), B, rtol=1e-4)
        x = getattr(linalg, name)(t, ow.asarray(b))[0]
        assert isinstance(x, ow.Tensor)
        assert isinstance(x.values, torch.Tensor)
    assert all(isinstance(r, torch.Tensor) for r in given)
    recorded = ow.asarray(values.to_sparse_csr().requires_grad_())
    for call in (
        lambda: linalg.ilu0(recorded), lambda: linalg.cg(recorded, b, M=recorded),
        lambda: linalg.splu(recorded), lambda: linalg.expm(recorded), lambda: linalg.onenormest(recorded),
        lambda: linalg.ic0(recorded), lambda: linalg.jacobi(recorded), lambda: linalg.ssor(recorded),
        lambda: linalg.spilu(recorded), lambda: linalg.jacobi(t).solve(b.clone().requires_grad_()),
        lambda: linalg.cg(t, b, M=recorded), lambda: linalg.cg(t, b, b.clone().requires_grad_()),
    ):  # fmt: skip
        with pytest.raises(ow.UnsupportedError, match="no gradient"):
            call()


def test_wrong_operands() -> None:
    t = ow.asarray(A).asformat("csr")
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: linalg.cg(t[:3], B[:3]), ow.ShapeError, r"cg: expected a square matrix; got shape \(3, 36\)"),
        (lambda: linalg.cg(t, B[:3]), ow.ShapeError, r"cg: the matrix has shape \(36, 36\), the right side \(3,\)"),
        (lambda: linalg.minres(t, np.ones((36, 2))), ow.ShapeError, r"minres: expected one right side"),
        (lambda: linalg.cg(t, B, B[:3]), ow.ShapeError, r"cg: expected x0 of shape \(36,\); got \(3,\)"),
        (lambda: linalg.cg(t, B, M=ow.eye(3)), ow.ShapeError, r"cg: the preconditioner has shape \(3, 3\)"),
        (lambda: linalg.cg(t, B, rtol="x"), ow.DTypeError, "cg: rtol is a real number; got: 'x'"),
        (lambda: linalg.cg(t, B, maxiter=2.5), ow.DTypeError, "cg: maxiter is an integer; got: 2.5"),
        (lambda: linalg.cg(t, B, maxiters=2), TypeError, "unexpected keyword argument 'maxiters'\n  help: did you mean"),
        (lambda: linalg.cg(t, np.array(["a"] * 36)), ow.DTypeError, "cg: expected a right side of numbers"),
        (lambda: linalg.cg(t + 1.0, B), ow.UnsupportedError, "cg: unspecified elements are 1.0"),
        (lambda: linalg.lsqr(t, B[:3]), ow.ShapeError, "lsqr: the matrix has shape"),
        (lambda: linalg.cg(ow.masked_tensor(t, t != 0), B), ow.UnsupportedError, "a masked tensor is not an array"),
        (lambda: linalg.cg(ow.zeros((2, 3, 3)), np.ones(3)), ow.ShapeError, "expected one matrix"),
        (lambda: linalg.onenormest(t[:3]), ow.ShapeError, r"onenormest: expected square matrices; got shape \(3, 36\)"),
        (lambda: linalg.onenormest(t, t=1.5), ow.DTypeError, "onenormest: t is an integer"),
        (lambda: linalg.cg(t, B, maxiter=0), ValueError, "cg: expected maxiter of 1 or more; got 0"),
        (lambda: linalg.gmres(t, B, restart=0), ValueError, "gmres: expected restart of 1 or more; got 0"),
        (lambda: linalg.cg(t, B, callback=3), ow.DTypeError, "cg: callback is a function; got: 3"),
        (lambda: linalg.expm(t.with_values(t.values * np.nan)), np.linalg.LinAlgError, "expm: the matrix has elements"),
        (lambda: linalg.expm_multiply(t.with_values(t.values * np.inf), B), np.linalg.LinAlgError, "expm_multiply: the"),
        (lambda: linalg.expm(t[:3]), ow.ShapeError, "expm: expected square matrices"),
        (lambda: linalg.expm_multiply(t, B[:3]), ow.ShapeError, "expm_multiply: the matrix has shape"),
    ]  # fmt: skip
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("name", SYMMETRIC + GENERAL)
def test_small_and_integer_systems(name: str) -> None:
    solver = getattr(linalg, name)
    x, info = solver(ow.zeros((0, 0)), np.zeros(0))
    assert x.shape == (0,)
    assert info == 0
    np.testing.assert_allclose(solver(ow.asarray(np.array([[4.0]])).asformat("csr"), np.array([2.0]))[0], [0.5])
    t = ow.asarray(A).astype("int64").asformat("csr")
    x, info = solver(t, np.arange(36), rtol=1e-10)
    np.testing.assert_allclose(A @ x, np.arange(36), atol=1e-6)
    x, _ = solver(t, ow.asarray(np.eye(36)[3]).asformat("coo"), tol=1e-10)
    np.testing.assert_allclose(A @ x.to_numpy(), np.eye(36)[3], atol=1e-6)


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", ["dense", "csr", "bsr(2, 2)"])
def test_exponentials_and_norms(spec: str) -> None:
    from scipy.linalg import expm

    for dtype in ("float64", "complex128", "int64"):
        a = A.astype(dtype) * (1j if dtype == "complex128" else 1)
        t = tensor(a, spec)
        got = linalg.expm(t)
        np.testing.assert_allclose(got.to_numpy(), expm(a), rtol=1e-9, atol=1e-12)
        assert np.linalg.norm(a, 1) / 2 <= linalg.onenormest(t) <= np.linalg.norm(a, 1) + 1e-9
    assert linalg.expm(tensor(A, spec)).shape == (36, 36)
    assert linalg.expm(ow.zeros((0, 0))).shape == (0, 0)
    nilpotent = linalg.expm(ow.asarray(np.eye(5, k=1)).asformat("csr"))
    assert nilpotent.format == ow.format("csr")
    assert nilpotent.nse == 15
    assert 4 <= linalg.onenormest(linalg.aslinearoperator(A)) <= 8
    assert linalg.onenormest(ow.asarray(np.array([[-3.0]])).asformat("csr")) == 3
    stack = linalg.expm(ow.stack([tensor(A, "csr"), tensor(2 * A, "csr")]))
    np.testing.assert_allclose(stack[1].to_numpy(), expm(2 * A), rtol=1e-9)


def test_lobpcg_warns_once_with_the_same_warning() -> None:
    t, start = ow.asarray(A).asformat("csr"), np.random.default_rng(0).standard_normal((36, 2))
    with pytest.warns(ow.ConvergenceWarning, match="lobpcg: no convergence after 1 iterations") as caught:
        w, v = linalg.lobpcg(t, start, maxiter=1)
    assert len(caught) == 1
    assert caught[0].message.residual == pytest.approx(np.linalg.norm(A @ v - v * w, axis=0).max())
    assert caught[0].filename == __file__
    linalg.lobpcg(t, start, M=linalg.ic0(t), maxiter=200, tol=1e-6)


def test_least_squares_of_nan() -> None:
    t = ow.asarray(A).asformat("csr")
    for name in ("lsqr", "lsmr"):
        with pytest.warns(ow.ConvergenceWarning, match=f"{name}: no convergence"):
            getattr(linalg, name)(t, np.where(B > 1.9, np.nan, B))


def test_scipys_signatures() -> None:
    t = ow.asarray(A / 10).asformat("csr")
    want = scipys.expm_multiply(sparse.csr_array(A / 10), B, 0, 1, 3)
    np.testing.assert_allclose(linalg.expm_multiply(t, B, 0, 1, 3), want)
    np.testing.assert_allclose(linalg.spsolve(t, B, "NATURAL"), np.linalg.solve(A / 10, B))
    np.testing.assert_allclose(linalg.spsolve(A=t, b=B, use_umfpack=False), np.linalg.solve(A / 10, B))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("solver", ["cg", "minres"])
def test_a_matrix_that_is_not_hermitian_is_told(solver: str, dtype: type) -> None:
    if solver == "minres" and dtype is np.complex128:
        pytest.skip("real numbers only")
    n = 40
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).toarray().astype(dtype)
    line[0, 1:2] += 0.5j if dtype is np.complex128 else 0
    line[1:2, 0] += -0.5j if dtype is np.complex128 else 0
    skew = line.copy()
    skew[3, 4] += 1.5
    b = np.ones(n, dtype)
    for a, words in ((line, "more iterations"), (skew, f"A is not Hermitian, which {solver} needs: gmres")):
        with pytest.warns(ow.ConvergenceWarning, match=words) as caught:
            x, _ = getattr(ow.linalg, solver)(ow.asarray(a, format="csr"), b, maxiter=2)
        residual = np.linalg.norm(b - a @ x)
        said = f"a residual of norm {1e-5 * np.linalg.norm(b):.3g} at most; got {residual:.3g}"
        assert said in str(caught[0].message)
        with pytest.warns(ow.ConvergenceWarning, match=words):
            getattr(ow.linalg, solver)(lambda v, a=a: a @ v, b, maxiter=2)


def test_lobpcg_warns_of_the_residual_of_the_pencil() -> None:
    t, start = tensor(A, "csr"), np.random.default_rng(0).random((36, 2))
    b = np.diag(np.linspace(1, 2, 36))
    with pytest.warns(ow.ConvergenceWarning, match="lobpcg: no convergence after 1 iterations") as caught:
        w, v = linalg.lobpcg(t, start, B=tensor(b, "csr"), maxiter=1)
    residual = np.linalg.norm(A @ v - b @ v * w, axis=0).max()
    assert f"{residual:.3g}" in str(caught[0].message)


def test_what_an_operator_refuses_is_said_as_it_says_it() -> None:
    class Own(scipys.LinearOperator):
        def __init__(self) -> None:
            super().__init__(np.dtype(float), (3, 3))

        def _matvec(self, x: Any) -> Any:
            return x

        def _rmatvec(self, x: Any) -> Any:
            raise ow.UnsupportedError("not here")

    with pytest.raises(ow.UnsupportedError, match=r"^not here$"):
        linalg.bicg(Own(), np.ones(3))

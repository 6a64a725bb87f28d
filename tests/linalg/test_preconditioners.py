"""Preconditioners against their definitions on dense matrices, splu's object against SciPy's, and wrong operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as scipys
from matrix import FORMATS, tensor

import openwork as ow
from openwork import linalg

FEW = ("dense", "coo", "csr", "csc", "bsr(2, 2)", "dia", "bitmap")


def definite(n: int = 24, dtype: str = "float64", seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < 0.15, rng.integers(-3, 4, (n, n)), 0).astype(np.complex128)
    if dtype.startswith("complex"):
        a = a * (1 + 0.5j)
    a = a + a.conj().T
    return np.asarray((a.real if dtype[0] in "fi" else a) + 20 * np.eye(n)).astype(dtype)


def general(n: int = 24, dtype: str = "float64") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    a = np.where(rng.random((n, n)) < 0.15, rng.integers(-3, 4, (n, n)), 0) + 15 * np.eye(n)
    return np.asarray(a * (1 + 1j) if dtype.startswith("complex") else a).astype(dtype)


def sides(n: int, dtype: str) -> list[np.ndarray[Any, Any]]:
    b = np.arange(1.0, n + 1).astype("complex128" if dtype.startswith("complex") else "float64")
    return [b, np.stack([b, b[::-1], np.ones(n)], 1)]


def zero_fill_lu(a: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """ILU(0) as textbooks write it."""
    f, there = a.astype(np.result_type(a, np.float32), copy=True), a != 0
    for i in range(len(a)):
        for k in range(i):
            if there[i, k]:
                f[i, k] /= f[k, k]
                for j in range(k + 1, len(a)):
                    if there[i, j]:
                        f[i, j] -= f[i, k] * f[k, j]
    return np.tril(f, -1) + np.eye(len(a)), np.triu(f)


def inverses(a: np.ndarray[Any, Any], omega: float) -> dict[str, np.ndarray[Any, Any]]:
    """What each preconditioner is the inverse of."""
    diagonal = np.diag(np.diag(a))
    lower, upper = zero_fill_lu(a)
    down, up = diagonal / omega + np.tril(a, -1), diagonal / omega + np.triu(a, 1)
    return {
        "jacobi": diagonal,
        "ilu0": lower @ upper,
        "ssor": omega / (2 - omega) * down @ np.linalg.inv(diagonal) @ up,
    }


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_they_solve_with_what_they_stand_for(dtype: str) -> None:
    a = general(dtype=dtype)
    for omega in (1.0, 1.4):
        for name, m in inverses(a, omega).items():
            t = tensor(a, "csr")
            operator = linalg.ssor(t, omega) if name == "ssor" else getattr(linalg, name)(t)
            assert operator.dtype == np.result_type(a.dtype, np.float32 if dtype[0] != "i" else np.float64)
            for b in sides(len(a), dtype):
                for trans, dense in (("N", m), ("T", m.T), ("H", m.conj().T)):
                    got = operator.solve(b, trans)
                    np.testing.assert_allclose(
                        got, np.linalg.solve(dense, b), rtol=1e-3 if dtype == "float32" else 1e-9
                    )
                np.testing.assert_array_equal(operator @ b, operator.solve(b))
                np.testing.assert_array_equal(operator.rmatvec(b), operator.solve(b, "H"))


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_incomplete_cholesky(dtype: str) -> None:
    a = definite(dtype=dtype)
    factor = linalg.ic0(tensor(a, "csr"))
    lower = factor.L.to_numpy()
    assert factor.nse == np.count_nonzero(np.tril(a))
    np.testing.assert_array_equal(lower != 0, np.tril(a) != 0)
    m = lower @ lower.conj().T
    np.testing.assert_allclose(m[a != 0], a[a != 0], atol=1e-12)
    for b in sides(len(a), dtype):
        for trans, dense in (("N", m), ("T", m.T), ("H", m)):
            np.testing.assert_allclose(factor.solve(b, trans), np.linalg.solve(dense, b), rtol=1e-9)
    shifted = linalg.ic0(tensor(a, "csr"), shift=0.5)
    assert (shifted.shift, factor.shift) == (0.5, 0)
    np.testing.assert_allclose(np.diag(shifted.L.to_numpy() @ shifted.L.to_numpy().conj().T), 1.5 * np.diag(a))
    banded = np.diag(np.full(9, 4.0)) + np.diag(np.ones(8), 1) + np.diag(np.ones(8), -1)
    np.testing.assert_allclose(linalg.ic0(tensor(banded, "csr")).L.to_numpy(), np.linalg.cholesky(banded), atol=1e-12)


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", [s for s in FORMATS[2] if s != "nm(4, 4)"][::3])
def test_every_format(spec: str) -> None:
    a, b = definite(), np.arange(24.0)
    t = tensor(a, spec)
    for name in ("jacobi", "ssor", "ic0", "ilu0"):
        want = getattr(linalg, name)(ow.asarray(a).asformat("csr")).solve(b)
        np.testing.assert_allclose(getattr(linalg, name)(t).solve(b), want)
        x, info = linalg.cg(t, b, M=name, rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(a @ x, b, atol=1e-7)


def test_scipy_takes_them() -> None:
    a, b = definite(), np.arange(24.0)
    t = ow.asarray(a).asformat("csr")
    want = np.linalg.solve(a, b)
    for m in (linalg.jacobi(t), linalg.ssor(t), linalg.ic0(t), linalg.ilu0(t), linalg.splu(t), linalg.factorized(t)):
        np.testing.assert_allclose(scipys.cg(a, b, M=m, rtol=1e-12)[0], want)
        np.testing.assert_allclose(scipys.bicg(t, b, M=m, rtol=1e-12)[0], want)
        assert scipys.aslinearoperator(m).shape == (24, 24)


@pytest.mark.thin(15)
@pytest.mark.parametrize("spec", FEW)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_splu_is_as_scipys(spec: str, dtype: str) -> None:
    a = general(dtype=dtype)
    lu, wide = linalg.splu(tensor(a, spec)), dtype == "float32"
    held = scipys.splu(ow.asarray(a).astype(lu.dtype).to_scipy("csc"))
    assert lu.shape == (24, 24)
    assert lu.nnz == held.nnz
    np.testing.assert_array_equal(lu.perm_r, held.perm_r)
    np.testing.assert_array_equal(lu.perm_c, held.perm_c)
    np.testing.assert_array_equal(lu.L.to_numpy(), held.L.toarray())
    np.testing.assert_array_equal(lu.U.to_numpy(), held.U.toarray())
    assert lu.L.format == ow.format("csc")
    permuted = np.empty_like(a)
    permuted[np.ix_(lu.perm_r, np.arange(24))] = a
    permuted = permuted[:, np.argsort(lu.perm_c)]
    np.testing.assert_allclose((lu.L @ lu.U).to_numpy(), permuted, atol=1e-4 if wide else 1e-12)
    for b in sides(24, dtype):
        for trans, dense in (("N", a), ("T", a.T), ("H", a.conj().T)):
            np.testing.assert_allclose(lu.solve(b, trans), np.linalg.solve(dense, b), rtol=1e-2 if wide else 1e-8)
            np.testing.assert_allclose(
                linalg.factorized(tensor(a, spec)).solve(b, trans),
                np.linalg.solve(dense, b),
                rtol=1e-2 if wide else 1e-8,
            )


def test_incomplete_lu_with_a_threshold() -> None:
    a, b = general(), np.arange(24.0)
    t = ow.asarray(a).asformat("csr")
    ilu = linalg.spilu(t, drop_tol=1e-3)
    held = scipys.spilu(t.to_scipy("csc"), drop_tol=1e-3)
    np.testing.assert_array_equal(ilu.solve(b), held.solve(b))
    assert ilu.nnz == held.nnz
    operator = scipys.LinearOperator(t.shape, ilu.solve)
    for m in (ilu, operator):
        x, info = linalg.gmres(t, b, M=m, rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(a @ x, b, atol=1e-7)


def test_right_sides_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = definite(), np.arange(24.0)
    t = ow.asarray(torch.from_numpy(a)).asformat("csr")
    for m in (linalg.ic0(t), linalg.ilu0(t), linalg.splu(t), linalg.jacobi(t), linalg.ssor(t)):
        x = m.solve(torch.from_numpy(b))
        assert isinstance(x, torch.Tensor)
        np.testing.assert_array_equal(x.numpy(), m.solve(b))
        inside = m @ ow.asarray(torch.from_numpy(b))
        assert isinstance(inside, ow.Tensor)
        assert isinstance(inside.values, torch.Tensor)
    assert isinstance(linalg.ic0(t).L.values, torch.Tensor)
    assert isinstance(linalg.splu(t).U.values, torch.Tensor)


def test_right_sides_are_left_alone() -> None:
    a = ow.asarray(definite()).asformat("csr")
    for m in (linalg.ic0(a), linalg.ilu0(a), linalg.jacobi(a), linalg.ssor(a), linalg.splu(a)):
        b = np.arange(24.0)
        m.solve(b)
        np.testing.assert_array_equal(b, np.arange(24.0))
    values = a.values.copy()
    linalg.ic0(a), linalg.ilu0(a)
    np.testing.assert_array_equal(a.values, values)


def test_small_ones() -> None:
    for name in ("jacobi", "ssor", "ic0", "ilu0", "splu", "spilu", "factorized"):
        make = getattr(linalg, name)
        empty = make(ow.zeros((0, 0), format="csr"))
        assert empty.solve(np.zeros(0)).shape == (0,)
        assert empty.solve(np.zeros((0, 3))).shape == (0, 3)
        one = make(ow.asarray(np.array([[4.0]])).asformat("csr"))
        np.testing.assert_allclose(one.solve(np.array([2.0])), [0.5])
        assert one.solve(np.ones((1, 0))).shape == (1, 0)
    for make in (linalg.splu, linalg.spilu):
        lu = make(ow.zeros((0, 0), format="csr"))
        assert (lu.L.shape, lu.U.shape, lu.nnz) == ((0, 0), (0, 0), 0)
        for order in (lu.perm_r, lu.perm_c):
            assert (order.shape, order.dtype) == ((0,), np.int32)
    twice = ow.sparse_coo_tensor(np.array([[0, 0, 1], [0, 0, 1]]), np.array([1.0, 3.0, 2.0]), (2, 2))
    np.testing.assert_allclose(linalg.ic0(twice).solve(np.array([4.0, 2.0])), [1, 1])


@pytest.mark.parametrize("name", ["jacobi", "ssor", "ic0", "ilu0", "splu", "spilu"])
def test_wrong_matrices(name: str) -> None:
    make = getattr(linalg, name)
    t = ow.asarray(definite()).asformat("csr")
    with pytest.raises(ow.ShapeError, match=rf"{name}: expected square matrices; got shape \(3, 24\)"):
        make(t[:3])
    with pytest.raises(ow.ShapeError, match=rf"{name}: expected one matrix; got shape \(2, 3, 3\)"):
        make(ow.zeros((2, 3, 3)))
    with pytest.raises(ow.UnsupportedError, match=rf"{name}: unspecified elements are 1.0"):
        make(t + 1.0)
    for wrong in (np.nan, np.inf):
        with pytest.raises(np.linalg.LinAlgError, match=rf"{name}: the matrix has elements that are nan or inf"):
            make(t.with_values(np.where(np.arange(t.nse) == 9, wrong, t.values)))
    with pytest.raises(ow.UnsupportedError, match="a masked tensor is not an array"):
        make(ow.masked_tensor(t, t != 0))
    hole = definite()
    hole[5, 5] = 0
    if name in ("splu", "spilu"):
        with pytest.raises(np.linalg.LinAlgError, match="is singular"):
            make(ow.asarray(np.diag([1.0, 0, 2])).asformat("csr"))
        with pytest.raises(TypeError, match="unexpected keyword argument 'drop_toll'"):
            make(t, drop_toll=1)
    else:
        with pytest.raises(np.linalg.LinAlgError, match=rf"{name}: element \(5, 5\) of the diagonal is 0"):
            make(ow.asarray(hole).asformat("csr"))
    m = make(t)
    with pytest.raises(ow.ShapeError, match=r"solve: the matrix has shape \(24, 24\), the right side \(3,\)"):
        m.solve(np.ones(3))
    with pytest.raises(ow.DTypeError, match="solve: trans is 'N', 'T' or 'H'; got: 'X'"):
        m.solve(np.ones(24), "X")
    with pytest.raises(ow.DTypeError, match="solve: expected numbers"):
        m.solve(np.array(["a"] * 24))


def test_pivots_that_are_not_there() -> None:
    a = np.array([[1.0, 2], [2, 1]])
    with pytest.raises(np.linalg.LinAlgError, match=r"ic0: pivot 1 is not positive[\s\S]*shift=0.001"):
        linalg.ic0(ow.asarray(a).asformat("csr"))
    with pytest.raises(
        np.linalg.LinAlgError, match=r"ic0: element \(0, 0\) of the diagonal is -1.0; expected a positive"
    ):
        linalg.ic0(ow.asarray(-a).asformat("csr"))
    with pytest.raises(np.linalg.LinAlgError, match=r"ilu0: pivot 1 is 0"):
        linalg.ilu0(ow.asarray(np.ones((2, 2))).asformat("csr"))
    with pytest.raises(ValueError, match=r"ssor: expected omega between 0 and 2; got 2\.0"):
        linalg.ssor(ow.asarray(a), 2)
    with pytest.raises(ow.DTypeError, match="ic0: shift is a real number; got: 'x'"):
        linalg.ic0(ow.asarray(a), shift="x")


def test_factors_of_an_incomplete_factorization() -> None:
    """L and U agree with the matrix where it has elements; without fill-in the product is the matrix."""
    rng = np.random.default_rng(1)
    d = np.eye(8) * 4 + np.where(rng.random((8, 8)) < 0.3, rng.random((8, 8)), 0)
    p = linalg.ilu0(ow.asarray(d, format="csr"))
    lower, upper = p.L.to_numpy(), p.U.to_numpy()
    np.testing.assert_allclose((lower @ upper)[d != 0], d[d != 0])
    np.testing.assert_array_equal(np.diag(lower), np.ones(8))
    assert not np.triu(lower, 1).any()
    assert not np.tril(upper, -1).any()
    assert p.nse == np.count_nonzero(d)
    x = np.arange(8.0)
    np.testing.assert_allclose(p @ x, np.linalg.solve(upper, np.linalg.solve(lower, x)))

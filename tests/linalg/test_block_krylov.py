"""Several right sides at once against direct solutions; the dtype in which solvers compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import linalg
from openwork.errors import ConvergenceWarning, DTypeError, ShapeError

Array = np.ndarray[Any, Any]


def line(n: int, dtype: str = "float64", skew: float = 0.0) -> Any:
    a = ow.diags_array([-1.0 - skew, 2.1, -1.0 + skew], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    if dtype.startswith("complex"):
        i = ow.diags_array([-0.3j, 0.3j], offsets=[-1, 1], shape=(n, n), format="csr")
        return (a + i).asformat("csr").astype(dtype)
    return a.astype(dtype)


def sides(n: int, k: int, dtype: str = "float64") -> Array:
    rng = np.random.default_rng(k)
    b = rng.standard_normal((n, k))
    return np.asarray(b + 1j * rng.standard_normal((n, k)) if dtype.startswith("complex") else b).astype(dtype)


def solved(method: Any, a: Any, b: Array, **options: Any) -> tuple[Array, int]:
    count = 0

    def callback(_: Any) -> None:
        nonlocal count
        count += 1

    x, info = method(a, b, callback=callback, **options)
    assert info == 0
    return np.asarray(x), count


@pytest.mark.thin(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_columns_are_solved_together(name: str, dtype: str) -> None:
    method, n = getattr(linalg, name), 200
    a = line(n, dtype, 0.2 if name == "gmres" else 0.0)
    b = sides(n, 6, dtype)
    rtol = 1e-4 if dtype == "float32" else 1e-9
    for m in (None, "ic0" if name == "cg" else "ilu0", "jacobi"):
        x, count = solved(method, a, b, M=m, rtol=rtol, maxiter=400)
        assert x.dtype == dtype
        residual = np.linalg.norm(b - a.to_numpy() @ x, axis=0) / np.linalg.norm(b, axis=0)
        assert residual.max() < 3 * rtol
        if name == "cg" and m is None:
            assert count < solved(method, a, b[:, 0], rtol=rtol)[1]


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_columns_that_depend_or_have_converged(name: str) -> None:
    method, n = getattr(linalg, name), 60
    a = line(n)
    b = sides(n, 2)
    special = np.stack(
        [b[:, 0], b[:, 0], np.zeros(n), b[:, 1], b[:, 0] - 2 * b[:, 1], a @ np.eye(n)[3], np.eye(n)[0]], 1
    )
    x, _ = solved(method, a, special, rtol=1e-11, maxiter=300)
    np.testing.assert_allclose(x, np.linalg.solve(a.to_numpy(), special), atol=1e-8)
    again, count = solved(method, a, special, x0=x, rtol=1e-8)
    assert count == 0
    np.testing.assert_array_equal(again, x)
    few, _ = solved(method, a[:3, :3], np.arange(15.0).reshape(3, 5), rtol=1e-12)  # more columns than rows
    np.testing.assert_allclose(few, np.linalg.solve(a[:3, :3].to_numpy(), np.arange(15.0).reshape(3, 5)), atol=1e-9)
    assert method(a, np.zeros((n, 0)))[0].shape == (n, 0)


def test_kinds_of_operands() -> None:
    torch = pytest.importorskip("torch")
    a, b = line(30), sides(30, 3)
    want = np.linalg.solve(a.to_numpy(), b)
    dense = a.to_numpy()
    for operand in (dense, lambda v: dense @ v, linalg.aslinearoperator(a), a.asformat("dia"), a.to_scipy()):
        np.testing.assert_allclose(linalg.cg(operand, b, rtol=1e-12)[0], want, atol=1e-9)
    x, _ = linalg.gmres(a, torch.from_numpy(b), rtol=1e-12)
    assert isinstance(x, torch.Tensor)
    np.testing.assert_allclose(x.numpy(), want, atol=1e-9)
    assert isinstance(linalg.cg(a, ow.asarray(b))[0], ow.Tensor)


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_what_does_not_converge(name: str) -> None:
    method, a, b = getattr(linalg, name), line(400), sides(400, 2)
    with pytest.warns(ConvergenceWarning, match=f"{name}: no convergence"):
        _, info = method(a, b, rtol=1e-12, maxiter=2)
    assert info == 2
    with pytest.warns(ConvergenceWarning, match="nan or inf"):
        x, info = method(a, b * np.nan)
    assert (x.shape, info) == ((400, 2), 1)
    with pytest.raises(ShapeError, match="cg and gmres take several"):
        linalg.bicgstab(a, b)
    with pytest.raises(ShapeError, match="expected x0 of shape"):
        method(a, b, x0=np.ones((400, 3)))


def test_a_matrix_of_few_bits_is_solved_to_many() -> None:
    a = line(300, "float32", 0.1)
    symmetric = line(300, "float32")
    b = sides(300, 1, "float32")[:, 0]
    for name in ("cg", "minres", "gmres", "bicgstab", "lgmres", "cgs", "bicg", "qmr", "tfqmr", "gcrotmk"):
        operand = symmetric if name in ("cg", "minres") else a
        options = {"M": "ic0"} if name == "cg" else {"restart": 60} if name == "gmres" else {}
        x, info = getattr(linalg, name)(operand, b, rtol=1e-11, maxiter=2000, dtype="float64", **options)
        assert (info, x.dtype) == (0, np.float64), name
        residual = b - operand.to_numpy().astype("float64") @ x
        assert np.linalg.norm(residual) < 1e-9 * np.linalg.norm(b), name
    x, _ = linalg.cg(symmetric, np.stack([b, 2 * b], 1), rtol=1e-11, dtype=np.float64)
    assert np.linalg.norm(b - symmetric.to_numpy().astype("float64") @ x[:, 0]) < 1e-9
    for name, options in (("lsqr", {"iter_lim": 5000}), ("lsmr", {"maxiter": 5000})):
        x = getattr(linalg, name)(a, b, atol=1e-12, btol=1e-12, dtype="float64", **options)[0]
        assert x.dtype == np.float64
        assert np.linalg.norm(b - a.to_numpy().astype("float64") @ x) < 1e-8 * np.linalg.norm(b)
    for dtype in ("float16", "int64", "x", "float32"):
        with pytest.raises(DTypeError, match=r"cg: dtype='\w+' does not hold float64"):
            linalg.cg(line(9), np.ones(9), dtype=dtype)


def test_qmr_takes_one_preconditioner_of_two() -> None:
    a, b = line(60, skew=0.1), np.arange(60.0)
    inverse = linalg.jacobi(a)
    want = np.linalg.solve(a.to_numpy(), b)
    for options in ({"M1": inverse}, {"M2": inverse}, {"M1": "jacobi"}, {"M1": inverse, "M2": inverse}):
        x, info = linalg.qmr(a, b, rtol=1e-12, maxiter=600, **options)
        assert info == 0
        np.testing.assert_allclose(x, want, rtol=1e-8)

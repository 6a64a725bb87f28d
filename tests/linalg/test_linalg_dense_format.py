"""The array API's linear algebra: decompositions of dense formats, sparse Cholesky factors, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork import linalg

SPARSE = tuple(spec for spec in FORMATS[2] if not ow.format(spec, 2).is_dense and spec != "nm(4, 4)")
DTYPES = ("int32", "float32", "float64", "complex128")


def stack(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(len(shape))
    a = 3 * rng.standard_normal(shape)
    return np.asarray(a + 1j * rng.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype)


def definite(n: int, dtype: str = "float64", seed: int = 0) -> np.ndarray[Any, Any]:
    """A sparse Hermitian positive definite matrix."""
    rng = np.random.default_rng(seed)
    b = np.where(rng.random((n, n)) < 0.2, rng.standard_normal((n, n)), 0) + 2 * np.eye(n)
    if dtype[0] == "c":
        b = b + 1j * np.where(b != 0, rng.standard_normal((n, n)), 0)
    return np.asarray(b @ b.conj().T).astype(dtype)


def close(got: Any, want: Any, rtol: float = 1e-9) -> None:
    got, want = (x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x) for x in (got, want))
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    rtol = 1e-4 if got.dtype in (np.float32, np.complex64) else rtol
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max(initial=0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", ["dense", "dense_f"])
def test_decompositions(dtype: str, spec: str) -> None:
    a = stack(dtype, 5, 3)
    t = tensor(a, spec)
    u, s, vh = linalg.svd(t, full_matrices=False)
    close(s, np.linalg.svd(a, compute_uv=False))
    close(linalg.svdvals(t), s)
    close((u * s) @ vh, a.astype(u.dtype))
    assert linalg.svd(t).U.shape == (5, 5)
    q, r = linalg.qr(t)
    close(q @ r, a.astype(q.dtype))
    assert linalg.qr(t, mode="complete").Q.shape == (5, 5)
    close(linalg.pinv(t), np.linalg.pinv(a))
    same(linalg.matrix_rank(t), np.asarray(np.linalg.matrix_rank(a)))
    square = a[:3]
    for f, g in ((linalg.inv, np.linalg.inv), (linalg.det, np.linalg.det)):
        close(f(tensor(square, spec)), g(square))
    sign, log = linalg.slogdet(tensor(square, spec))
    close(sign * ow.exp(log.astype(sign.dtype)), np.linalg.det(square))
    hermitian = square + square.conj().T
    w, v = linalg.eigh(tensor(hermitian, spec))
    close(w, np.linalg.eigvalsh(hermitian))
    close(linalg.eigvalsh(tensor(hermitian, spec)), w)
    close(ow.asarray(hermitian.astype(v.dtype)) @ v, v * w)


def test_stacks() -> None:
    a = stack("float64", 2, 4, 3, 3)
    t = ow.asarray(a)
    for name in ("inv", "det", "pinv", "matrix_rank", "svdvals"):
        want = np.linalg.svd(a, compute_uv=False) if name == "svdvals" else getattr(np.linalg, name)(a)
        close(getattr(linalg, name)(t), np.asarray(want))
    close(linalg.slogdet(t).logabsdet, np.linalg.slogdet(a)[1])
    b = stack("float64", 4, 3, 2)
    close(linalg.solve(t, b), np.linalg.solve(a, b))
    close(linalg.solve(t, b[0, :, 0]), np.linalg.solve(a, b[0, :, :1])[..., 0])
    close(linalg.matrix_power(t, -2), np.linalg.matrix_power(a, -2))
    close(linalg.matrix_power(t, 0), np.linalg.matrix_power(a, 0))
    for order in (2, -2, "nuc"):
        want = np.linalg.norm(a, order, axis=(0, 2), keepdims=True)  # type: ignore[call-overload]
        close(linalg.matrix_norm(t, ord=order, axis=(0, 2), keepdims=True), want)
    rank = linalg.matrix_rank(t, rtol=np.full((2, 4), 0.9))
    s = np.linalg.svd(a, compute_uv=False)
    same(rank, (s > 0.9 * s[..., :1]).sum(-1))
    sparse = ow.asarray(a, format="coo")
    close(linalg.det(sparse), np.linalg.det(a))
    close(linalg.slogdet(sparse).logabsdet, np.linalg.slogdet(a)[1])


@pytest.mark.thin(52)
@pytest.mark.parametrize("spec", [*SPARSE, "dense"])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_of_every_format(spec: str, upper: bool) -> None:
    a = definite(9)
    want = np.linalg.cholesky(a)
    got = linalg.cholesky(tensor(np.tril(a), spec), upper=upper, ordering=None)
    close(got, want.T if upper else want)
    assert got.format.is_dense == (spec == "dense")


@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from(["float64", "complex128", "float32"]))
@settings(max_examples=30)
def test_cholesky_law(n: int, seed: int, dtype: str) -> None:
    a = definite(n, dtype, seed)
    factor = linalg.cholesky(ow.asarray(a, format="csc"), ordering=None)
    close(factor, np.linalg.cholesky(a))
    assert factor.nse <= n * (n + 1) // 2


@pytest.mark.thin(6)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "bsr(2, 2)"])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_of_sparse_matrices_is_ordered(spec: str, dtype: str, upper: bool) -> None:
    a = definite(12, dtype, 3) * (np.random.default_rng(0).random((12, 12)) < 0.3)
    a = (np.tril(a, -1) + np.conj(np.tril(a, -1)).T + 50 * np.eye(12)).astype(dtype)
    for ordering in ("auto", "amd", "nd", "rcm", "natural"):
        factor, order = linalg.cholesky(ow.asarray(a, format=spec), upper=upper, ordering=ordering)
        f = factor.to_numpy()
        assert factor.dtype == dtype
        assert sorted(order.tolist()) == list(range(12))
        assert np.array_equal(f, np.triu(f) if upper else np.tril(f))
        close(np.conj(f.T) @ f if upper else f @ np.conj(f.T), a[np.ix_(order, order)])


def test_cholesky_of_a_grid_is_sparse() -> None:
    n = 50
    line = ow.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    grid = ow.kron(line, ow.eye(n)) + ow.kron(ow.eye(n), line)
    factor, order = linalg.cholesky(grid.asformat("csr"))
    assert factor.nse < 40_000
    assert linalg.cholesky(grid.asformat("csr"), ordering=None).nse == 125_049
    rows = ow.asarray(grid, format="csr")[order][:, order]
    assert np.allclose((factor @ (factor.T @ np.ones(n * n))), rows @ np.ones(n * n))
    stacked = np.stack([definite(5, seed=k) for k in range(3)])
    found = linalg.cholesky(ow.asarray(stacked, format="coo"))
    assert found.order.shape == (3, 5)
    for k in range(3):
        f, p = found.factor.to_numpy()[k], found.order[k]
        close(f @ f.T, stacked[k][np.ix_(p, p)])
    assert linalg.cholesky(ow.zeros((0, 0), format="csr")).factor.shape == (0, 0)
    with pytest.raises(np.linalg.LinAlgError, match="the pivot of row 7 is not positive"):
        linalg.cholesky(ow.asarray(np.diag([1.0] * 7 + [-1.0, 1]), format="csr"))
    with pytest.raises(ow.UnsupportedError, match="no ordering 'amdd'"):
        linalg.cholesky(ow.eye(3), ordering="amdd")


def test_cholesky_of_sparse_stacks() -> None:
    a = np.stack([definite(5, seed=k) for k in range(3)])
    got = linalg.cholesky(ow.asarray(a, format="coo"), ordering=None)
    close(got, np.linalg.cholesky(a))
    assert not got.format.is_dense


@pytest.mark.thin(16)
@pytest.mark.parametrize(("rank", "spec"), [(r, s) for r in (1, 2, 3) for s in FORMATS[r] if "nm(" not in s])
def test_cross(rank: int, spec: str) -> None:
    shape = (*(4, 2)[: rank - 1], 3)
    a, b = dense_array(shape, 1), dense_array(shape, 2, density=0.6)
    got = linalg.cross(tensor(a, spec), tensor(b, spec))
    same(got, np.cross(a, b))
    filled = ow.asarray(b, format="coo", fill_value=b.flat[0])
    same(linalg.cross(tensor(a, spec), filled), np.cross(a, b))
    if rank == 2:
        same(linalg.cross(tensor(a, spec).T, tensor(b, spec).T, axis=0), np.cross(a, b).T)
        same(linalg.cross(tensor(a, spec), b[1]), np.cross(a, b[1]))
        if spec in ("coo", "csr"):
            assert not got.format.is_dense


def test_the_extension_has_the_products_too() -> None:
    for name in ("matmul", "tensordot", "vecdot", "matrix_transpose", "outer", "diagonal"):
        assert getattr(linalg, name) is getattr(ow, name)


def test_outer_keeps_the_sign_of_zero() -> None:
    got = ow.outer(ow.asarray([1.0, -1.0]), ow.asarray([0.0, 2.0])).to_numpy()
    same(got, np.array([[0.0, 2], [0, -2]]))
    assert np.signbit(got[1, 0])


def test_empty() -> None:
    for t in (ow.zeros((0, 0)), ow.zeros((0, 3, 3)), ow.zeros((0, 0), format="dense")):
        a = t.to_numpy()
        for name in ("inv", "det", "cholesky", "pinv", "svdvals"):
            want = np.linalg.svd(a, compute_uv=False) if name == "svdvals" else getattr(np.linalg, name)(a)
            options = {"ordering": None} if name == "cholesky" else {}
            same(getattr(linalg, name)(t, **options), np.asarray(want))
        same(linalg.matrix_rank(t), np.zeros(a.shape[:-2], np.int64))
        same(linalg.matrix_power(t, -1), a)


def test_torch_has_gradients() -> None:
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(definite(4)).requires_grad_()
    b = torch.ones(4, 2, dtype=torch.float64)
    t = ow.asarray(a)
    for got, want in (
        (linalg.cholesky(t), torch.linalg.cholesky(a)),
        (linalg.inv(t), torch.linalg.inv(a)),
        (linalg.det(t), torch.linalg.det(a)),
        (linalg.svdvals(t), torch.linalg.svdvals(a)),
        (linalg.eigh(t).eigenvalues, torch.linalg.eigvalsh(a)),
        (linalg.pinv(t), torch.linalg.pinv(a)),
        (ow.asarray(linalg.solve(t, b)), torch.linalg.solve(a, b)),
    ):
        (grad,) = torch.autograd.grad(got.to_dense().sum(), a, retain_graph=True)
        (other,) = torch.autograd.grad(want.sum(), a, retain_graph=True)
        torch.testing.assert_close(grad, other)
    assert linalg.matrix_rank(t).to_dense().dtype == torch.int64
    with pytest.raises(np.linalg.LinAlgError, match=r"inv: a matrix of shape \(2, 2\) is singular"):
        linalg.inv(ow.asarray(torch.zeros(2, 2)))


def test_errors() -> None:
    t = ow.eye(3)
    for name, remedy in (
        ("eigh", r"eigsh\(A, k\) gives k of the eigenvalues"), ("eigvalsh", r"eigsh\(A, k, return_eigenvectors=False"),
        ("svd", r"svds\(A, k\) gives"), ("svdvals", r"svds\(A, k, return_singular"), ("qr", r"lsqr\(A, b\)"),
        ("pinv", r"lsqr\(A, b\) for pinv"), ("matrix_rank", r"svds\(A, k\) shows"),
    ):  # fmt: skip
        match = rf"{name} of a sparse tensor of shape \(3, 3\): (.|\n)*help: {remedy}(.|\n)*takes 72 bytes"
        with pytest.raises(ow.UnsupportedError, match=match):
            getattr(linalg, name)(t)
    with pytest.raises(ow.UnsupportedError, match=r"inv: (.|\n)*inv takes asformat\('dense'\)"):
        linalg.inv(t)
    for spec in ("csr", "dense"):
        for matrix in (-np.eye(3), np.array([[0.0, 1], [1, 0]]), np.zeros((2, 2))):
            with pytest.raises(
                np.linalg.LinAlgError,
                match=r"is not positive definite(: the pivot of row 0 is not positive)?\n  help: factorized",
            ):
                linalg.cholesky(tensor(matrix, spec))
    zero = ow.asarray(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match=r"inv: a matrix of shape \(2, 2\) is singular\n  help: pinv"):
        linalg.inv(zero)
    with pytest.raises(np.linalg.LinAlgError, match=r"solve: the matrix of shape \(2, 2\) is singular\n  help: pinv"):
        linalg.solve(zero, np.ones(2))
    with pytest.raises(ow.ShapeError, match=r"solve: stacks \(2,\) and \(3,\) do not broadcast\n  help: extents"):
        linalg.solve(ow.asarray(np.ones((2, 2, 2))), np.ones((3, 2, 1)))
    with pytest.raises(ValueError, match="qr: mode 'r'\n  expected: 'reduced' or 'complete'"):
        linalg.qr(zero, mode="r")
    with pytest.raises(ow.ShapeError, match=r"cross: shapes \(3, 3\) and \(2, 2\)\n  expected: extent 3 along axis -1"):
        linalg.cross(t, zero)
    with pytest.raises(ow.ShapeError, match="cross: axis 2 is out of bounds"):
        linalg.cross(t, t, axis=2)


def test_eigenvalues_are_complex() -> None:
    for d in (np.array([[0.0, 1], [-1, 0]]), np.array([[2.0, 1], [0, 3]], np.float32), np.array([[1j, 2], [0, 1]])):
        values, vectors = linalg.eig(ow.asarray(d))
        kind = np.complex64 if d.dtype == np.float32 else np.complex128
        assert (values.dtype, vectors.dtype) == (kind, kind)
        v, w = values.to_numpy(), vectors.to_numpy()
        np.testing.assert_allclose(d @ w, w * v, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 5), (5, 1), (0, 4), (1, 1)])
def test_spectral_norms_of_thin_matrices(shape: tuple[int, int]) -> None:
    a = np.cos(np.arange(np.prod(shape), dtype=np.float64)).reshape(shape)
    want = np.linalg.norm(a, 2, keepdims=True) if a.size else np.zeros((1, 1))
    got = ow.linalg.norm(ow.asarray(a, format="coo"), ord=2, keepdims=True)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-14)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_upper_factors_of_stacks_of_complex_matrices(library: str) -> None:
    pytest.importorskip(library)
    a = np.array([[4, 1 - 2j], [1 + 2j, 5]])
    stack = np.stack([a, 2 * a])
    upper = ow.linalg.cholesky(ow.asarray(stack, like=library), upper=True).to_numpy()
    np.testing.assert_allclose(upper, np.conj(np.swapaxes(np.linalg.cholesky(stack), 1, 2)))


def test_systems_without_equations() -> None:
    empty = ow.asarray(np.zeros((0, 0)), format="csc")
    assert ow.linalg.splu(empty).solve(np.zeros((0, 2))).shape == (0, 2)
    assert ow.linalg.solve(empty, np.zeros((0, 2))).shape == (0, 2)
    sign, logarithm = ow.linalg.slogdet(empty)
    assert (float(sign), float(logarithm)) == (1.0, 0.0)


def test_eigenvalues_with_a_mass_matrix_and_its_inverse() -> None:
    a = np.diag(np.arange(2.0, 14.0)) + np.eye(12, k=1) + np.eye(12, k=-1)
    mass = np.arange(1.0, 13.0)
    options = {"M": ow.asarray(np.diag(mass), format="csc"), "Minv": ow.asarray(np.diag(1 / mass), format="csc")}
    got = ow.linalg.eigsh(ow.asarray(a, format="csc"), k=2, return_eigenvectors=False, **options)
    want = np.linalg.eigvalsh(a / np.sqrt(np.outer(mass, mass)))[-2:]
    np.testing.assert_allclose(np.sort(np.asarray(got)), want)

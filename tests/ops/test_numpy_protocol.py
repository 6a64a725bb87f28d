"""NumPy's functions and ufuncs on Tensors, and operands of other libraries: the same values as on the dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

import openwork as ow

rng = np.random.default_rng(0)
D, E = (rng.random((6, 5)) * (rng.random((6, 5)) < 0.5) for _ in range(2))
X = rng.random((6, 5))

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda a, b: np.exp(a),
    "add": lambda a, b: np.add(a, b),
    "power": lambda a, b: np.power(a, 2),
    "logaddexp": lambda a, b: np.logaddexp(a, b),
    "erf": lambda a, b: scipy.special.erf(a),
    "heaviside": lambda a, b: np.heaviside(a, 0.5),
    "number first": lambda a, b: np.float64(2) * a,
    "array first": lambda a, b: X + b,
    "array product": lambda a, b: X.T @ b,
    "array comparison": lambda a, b: a > X,
    "matmul": lambda a, b: np.matmul(a.T, b),
    "sum": lambda a, b: np.sum(a),
    "sum of rows": lambda a, b: np.sum(a, 1, keepdims=True),
    "std": lambda a, b: np.std(a, ddof=1),
    "mean, nothing said of keepdims": lambda a, b: np.mean(a, 1, keepdims=np._NoValue),  # type: ignore[arg-type]
    "amax": lambda a, b: np.amax(a, 1),
    "add.reduce": lambda a, b: np.add.reduce(a),
    "concatenate": lambda a, b: np.concatenate([a, b], axis=1),
    "vstack": lambda a, b: np.vstack([a, b]),
    "stack": lambda a, b: np.stack([a, b]),
    "where": lambda a, b: np.where(a > b, a, b),
    "transpose": lambda a, b: np.transpose(a),
    "ravel": lambda a, b: np.ravel(a),
    "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
    "kron": lambda a, b: np.kron(a, b),
    "clip": lambda a, b: np.clip(a, 0.1, 0.5),
    "cumsum": lambda a, b: np.cumsum(a, axis=0),
    "tril": lambda a, b: np.tril(a, -1),
    "diagonal": lambda a, b: np.diagonal(a),
    "trace": lambda a, b: np.trace(a),
    "roll": lambda a, b: np.roll(a, 2, axis=1),
    "swapaxes": lambda a, b: np.swapaxes(a, 0, 1),
    "norm": lambda a, b: np.linalg.norm(a, axis=1),
    "isclose": lambda a, b: np.isclose(a, b),
    "allclose": lambda a, b: np.allclose(a, b),
    "array_equal": lambda a, b: np.array_equal(a, a * 1),
    "shape": lambda a, b: np.shape(a),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
def test_value_as_on_the_arrays(name: str, format: str) -> None:
    want = CALLS[name](D, E)
    found = CALLS[name](ow.asarray(D, format=format), ow.asarray(E, format=format))
    found = found.to_numpy() if isinstance(found, ow.Tensor) else np.asarray(found)
    assert found.shape == np.shape(want)
    assert np.allclose(found, want)


def test_functions_that_are_not_here() -> None:
    A, W = ow.asarray(D, format="csr"), ow.asarray(D)
    assert np.allclose(np.cov(W), np.cov(D))  # a dense tensor is an array
    with pytest.raises(ow.UnsupportedError, match="cov does not take a sparse tensor"):
        np.cov(A)
    with pytest.raises(ow.UnsupportedError, match="reduceat does not take a sparse tensor"):
        np.add.reduceat(A, [0, 2])
    with pytest.raises(ow.UnsupportedError, match="mean="):
        np.var(A, mean=3.0)


def test_an_array_in_place() -> None:
    y = D.copy()
    kept = y
    y += ow.asarray(E, format="csr")
    y *= ow.asarray(E, format="csr")
    assert y is kept
    assert np.allclose(y, (D + E) * E)


def test_lists_of_dense_tensors_are_numpys() -> None:
    keys = np.array([1.0, 1.0, 0.0]), np.array([3.0, 1.0, 2.0])
    got = np.lexsort([ow.asarray(k, format="dense") for k in keys])
    np.testing.assert_array_equal(got, np.lexsort(keys))
    x, edges = np.array([0.5, 1.5, 1.7]), np.array([0.0, 1.0, 2.0])
    t, places = ow.asarray(x, format="dense"), ow.asarray(edges, format="dense")
    for got, want in zip(
        np.histogram2d(t, t, bins=[places, places]), np.histogram2d(x, x, bins=[edges, edges]), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ow.UnsupportedError, match=r"numpy\.histogram2d does not take a sparse tensor"):
        np.histogram2d(t, t, bins=[places, ow.asarray(edges, format="coo")])


def test_masked_tensors_and_expressions_go_first() -> None:
    A = ow.asarray(D, format="csr")
    assert isinstance(np.add(ow.asarray(D), ow.masked_tensor(D, D != 0)), ow.MaskedTensor)
    assert np.allclose(ow.compute(np.add(A, ow.lazy(A))).to_numpy(), 2 * D)


def test_sparse_operands_of_scipy() -> None:
    A, S = ow.asarray(D, format="csr"), sp.csr_array(E)
    for found, want in ((A + S, D + E), (A * S, D * E), (A @ S.T, D @ E.T), (ow.einsum("ij,kj->ik", A, S), D @ E.T)):
        assert isinstance(found, ow.Tensor)
        assert not found.format.is_dense
        assert np.allclose(found.to_numpy(), want)
    assert isinstance(ow.asarray(D) + S, ow.Tensor)
    assert np.allclose(ow.sddmm(S, D, D.T @ D).to_numpy(), (E != 0) * (D @ D.T @ D))


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_operands_of_torch(layout: str) -> None:
    torch = pytest.importorskip("torch")
    A, S = ow.asarray(torch.from_numpy(D), format="csr"), torch.from_numpy(E).to_sparse(layout=getattr(torch, layout))
    for found, want in ((A + S, D + E), (S * A, D * E), (A.T @ S, D.T @ E), (torch.add(A, S), D + E)):
        assert isinstance(found, ow.Tensor)
        assert np.allclose(found.to_numpy(), want)


A = np.array([[0, 1.5, 0, -2], [3, 0, 0, 0], [0, 0, 4, 1.5]])
V = np.array([0, 2, 0, 2, 1, 0])
ROW, NANS, STACK = np.array([0.0, 1, 3, 7]), np.array([0, np.nan, 1, 0, np.nan, 2.0]), np.stack([A, A[::-1]])
KEEP = np.array([True, False, True])


class Places:
    """An array to NumPy, without a length."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array([0, 2])


ARGUMENTS: tuple[tuple[np.ndarray[Any, Any], tuple[Callable[[Any], Any], ...]], ...] = (
    (A, (
        lambda x: (np.average(x), np.average(x, axis=1), np.average(x, axis=0, returned=True), np.average(x, keepdims=True)),
        lambda x: (np.compress(KEEP, x), np.compress(KEEP, x, axis=0)),
        lambda x: (np.trapezoid(x, ROW), np.trapezoid(x, A.cumsum(1)), np.trapezoid(x, ROW[:3], axis=0), np.trapezoid(x, dx=2.0)),
        lambda x: (np.histogram(x, 5, density=True), np.histogram(x, [-3, 0, 1, 5])),
        lambda x: (np.atleast_1d(x), np.delete(x, 5), np.delete(x, 1, axis=0), np.delete(x, slice(0, 2), axis=1)),
        lambda x: (np.insert(x, 1, 7, axis=1), np.insert(x, 2, 7), np.vsplit(x, 3), np.hsplit(x, [1, 3])),
        lambda x: (np.flipud(x), np.fliplr(x), [np.rot90(x, k) for k in range(5)], np.rot90(x, 1, (1, 0))),
        lambda x: (np.resize(x, (2, 3)), np.resize(x, (5, 5)), np.resize(x, (0, 3)), np.size(x), np.size(x, 1)),
        lambda x: (np.resize(x[:0], (2, 3)), np.resize(x, 0), np.ptp(x), np.ptp(x, 0), np.ptp(x, 1, keepdims=True)),
        lambda x: (np.delete(x, slice(None, None, 2)), np.delete(x, KEEP, axis=0), np.delete(x, [-1, 0], axis=1)),
        lambda x: (np.insert(x, slice(0, 2), 5, axis=0), np.insert(x, [1, 3], 5, axis=1), np.insert(x, [2, 0], [7, 8])),
        lambda x: (np.array_equal(x, A), np.array_equal(x, A[:2]), np.array_equiv(x, A[0]), np.array_equiv(x, A[:, :2])),
        lambda x: (np.iscomplexobj(x), np.isrealobj(x), np.iscomplexobj(x * 1j)),
        lambda x: (np.add(x, x), np.add.outer(x, x), np.add(x, x, dtype=np.float32), np.select([x > 3, x > 1, x < 0], [x, -x, x * 7], 0.5)),
        lambda x: [np.real_if_close(x * (1 + c * 1j), tol) for c in (0.3, 1e-3, 1e-14) for tol in (100, 0.5, 0.01, 1e14, 1)],
        lambda x: (np.remainder(x, ROW + 1), x[Places()], x[:, Places()]),
        lambda x: (np.broadcast_arrays(x, ROW), np.broadcast_arrays(x, 1.0), np.broadcast_to(x, (1, 1, 3, 4))),
        lambda x: (np.heaviside(x, [1.0, 2, 3, 4]), np.heaviside((1.0, 0, -1, 2), x), np.heaviside(x, x[0, 1]), np.heaviside(x[0, 1], x)),
        lambda x: (np.add(x, 1, signature="ff->f", casting="unsafe"), np.add(x, 1, dtype=np.float32)),
        lambda x: (np.einsum(x, [..., 1], [1, ...]), np.einsum(x, [0, 1], [1, 0]), np.einsum("ij,jk->ki", x, np.ones((4, 2)))),
        lambda x: (np.einsum("ij,j->ji", x, ROW), np.einsum("ij,kl->ljik", x, np.ones((2, 3))), np.einsum("ii->i", x[:, :3])),
        lambda x: (np.quantile(x, 0.5, method="lower"), np.quantile(x, [0.2, 0.5], axis=0, method="nearest")),
    )),
    (V, (
        lambda x: (np.bincount(x), np.bincount(x, np.arange(6.0)), np.bincount(x, minlength=9)),
        lambda x: (np.meshgrid(x, x), np.meshgrid(x, x[:2], indexing="ij"), np.broadcast_to(x, (1, 6)), np.broadcast_to(x, (1, 2, 6))),
        lambda x: (np.quantile(x, 0.5, method="lower"), np.quantile(x[None] + x[:, None], [0.1, 0.5], axis=0, method="higher")),
        lambda x: (np.bincount(x[:0]), np.bincount(x[:0], minlength=2), np.bincount(x * 0), np.bincount(x * 3, minlength=2)),
        lambda x: (np.trim_zeros(x), np.trim_zeros(x, "f"), np.trim_zeros(x * 0)),
        lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True),
    )),
    (NANS, (
        lambda x: (np.unique(x), np.unique(x, equal_nan=False)),
        lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True),
    )),
    (A.astype(np.float32), (
        lambda x: (np.vstack([x, x]), np.hstack([x, x]), np.vstack([x], dtype=np.float64), np.hstack([x], dtype=np.float64)),
    )),
    (np.array([0, complex(np.nan, 1), complex(np.inf, -np.inf), 2j]), (lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=3, posinf=1, neginf=2)),)),
    (STACK, (lambda x: (x[[0, 1], :, [1, 2]], x[np.ix_([0, 1], [1, 2], [0, 3])], x[[[0], [1]], [[0, 2]], [[1], [2]]]),
             lambda x: (np.dsplit(x, 2), np.average(x, axis=(0, 2)), np.rot90(x, 1, (0, 2)), np.dot(x, A.T),
                     np.matmul(x, np.ones((1, 4, 2))), np.matmul(x, np.ones((1, 1, 4, 2))), np.matmul(x, np.ones((3, 1, 4, 2))),
                     np.einsum("...ij,...jk->...ik", x, np.ones((1, 4, 2))), np.einsum("...i,...i->...", x, np.ones((1, 1, 4))),
                     np.einsum("ijk,k->ji", x, ROW), np.dot(x, x.swapaxes(1, 2)), np.dot(x, x[0].T), np.dot(x[0], x.swapaxes(1, 2)), np.dot(x, ROW)),)),
)  # fmt: skip


def agree(got: Any, want: Any, which: Any) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want), which
        for g, w in zip(got, want, strict=True):
            agree(g, w, which)
    else:
        got = got.to_numpy() if isinstance(got, ow.Tensor) else got
        np.testing.assert_array_equal(got, want, err_msg=str(which))
        assert (np.shape(got), np.asarray(got).dtype) == (np.shape(want), np.asarray(want).dtype), which


def test_variants_of_arguments() -> None:
    """What samples of the names leave out: defaults, axes, empty results, NaN."""
    for x, functions in ARGUMENTS:
        t = ow.asarray(x, format="coo")
        for k, function in enumerate(functions):
            agree(function(t), function(x), (x.shape, k))


def test_dtypes_are_asked_of_tensors() -> None:
    t, whole = ow.asarray(A, format="csr"), ow.asarray(V, format="coo")
    assert np.result_type(t, np.float32) == np.float64
    for casting in ("no", "safe", "same_kind"):
        for x, dtype in ((t, "float32"), (t, "complex128"), (whole, "float64"), (whole, "int8")):
            assert np.can_cast(x, dtype, casting) == np.can_cast(x.dtype, dtype, casting)  # type: ignore[arg-type]
        assert np.can_cast("float32", t, casting) == np.can_cast("float32", "float64", casting)  # type: ignore[arg-type]


def test_expressions_are_computed_for_arguments_of_ufuncs() -> None:
    t = ow.asarray(A, format="csr")
    agree(np.add(t, ow.lazy(t), dtype=np.float32), np.add(A, A, dtype=np.float32), "dtype")
    agree(np.add(t, ow.lazy(t), out=ow.zeros((3, 4), format="csr")), A + A, "out, a Tensor")
    agree(np.sum(ow.lazy(t), out=np.zeros(())), A.sum(), "out, an array")


def test_operands_of_torch_in_the_dtype_of_a_loop() -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(A, format="csr")
    got = np.add(torch.ones(4, dtype=torch.float64), t, dtype=np.float32)
    assert got.dtype == torch.float32
    assert got.equal(torch.from_numpy(A).float() + 1)
    agree(np.heaviside(t, torch.tensor(2.0, dtype=torch.float64)), np.heaviside(A, 2.0), "an array of rank 0")
    with pytest.raises(ow.UnsupportedError, match="no gradient"):
        np.heaviside(t, torch.tensor(2.0, dtype=torch.float64, requires_grad=True))
    with pytest.raises(ow.UnsupportedError, match=r"numpy\.add: out= is of type Tensor"):
        np.add(t, 1.0, out=torch.zeros(3, 4))


UNORDERED = "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"


@pytest.mark.parametrize("spec", ["csr", "coo", "dense", "dia", UNORDERED])
def test_copies_share_nothing(spec: str) -> None:
    """Of a tensor of the same structure, of another, of its own transpose, and of SciPy's array."""
    x, y = np.diag([1.0, 2, 3]) + np.eye(3, k=1), np.diag([4.0, 0, 6]) + np.eye(3, k=-1)
    for a, b in ((x, 2 * x), (x, y)):
        for transposed in (False, True):
            t, source = ow.asarray(a.copy(), format=spec), ow.asarray(b.copy(), format=spec)
            np.copyto(t, source.T if transposed else source)
            t *= 2.0
            same = b.T if transposed else b
            agree(t, 2 * same, spec)
            agree(source, b, spec)
    t = ow.asarray(x.copy(), format=spec)
    view = t.T
    np.copyto(t, view)
    agree(t, x.T, spec)
    s = sp.csr_array(y)
    np.copyto(t, s)
    t *= 2.0
    agree(t, 2 * y, spec)
    assert np.array_equal(s.toarray(), y)
    np.copyto(t, 1.5, where=x > 0)
    agree(t, np.where(x > 0, 1.5, 2 * y), spec)

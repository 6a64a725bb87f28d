"""SciPy's classes on the left of a Tensor, its solvers over one, and the conversions that it asks for."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from scipy import optimize
from scipy.sparse import csgraph

import openwork as ow

KINDS = [f"{f}_{c}" for f in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok") for c in ("array", "matrix")]
FORMATS = ("csr", "csc", "coo", "dcsr", "bsr(2, 2)", "dia", "bitmap", "ell(6)", "dense")
OPERATORS = ("add", "sub", "mul", "matmul", "truediv", "eq", "ne", "lt", "le", "gt", "ge")
REFLECTED = ("add", "sub")
"""Operators that SciPy's classes leave to what stands on their right; of the others they ask an array first."""
ASK = r"to_scipy\(\).*\n?.*openwork.asarray\(S\) @ t.*openwork.write"


def matrix(dtype: Any = float) -> np.ndarray:
    """Symmetric and positive definite."""
    rng = np.random.default_rng(3)
    a = rng.integers(1, 4, (6, 6)) * (rng.random((6, 6)) < 0.3)
    a = (a + a.T + 20 * np.eye(6)).astype(dtype)
    if a.dtype.kind == "c":
        upper = np.triu(1j * (a != 0), 1)
        a = (a + upper - upper.T).astype(dtype)
    return a


def plain(x: Any) -> np.ndarray:
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x)


@pytest.mark.thin(8)
@pytest.mark.parametrize("kind", KINDS)
def test_operators_of_scipys_classes_leave_a_tensor_to_its_own_or_are_refused(kind):
    """A dense tensor is an array to SciPy; a sparse one is refused, where SciPy asks for an array, with a remedy."""
    a, b = matrix(), np.diag([1.0, 0, 3, 0, 5, 6])
    s = getattr(sp, kind)(b)
    for format in ("csr", "bitmap", "dense"):
        t = ow.asarray(a, format=format)
        for name in OPERATORS:
            run = getattr(operator, name)
            product = name == "mul" and kind.endswith("matrix")
            with np.errstate(all="ignore"):
                expected = run(b, a)
                ours = run(ow.asarray(s), t)
                np.testing.assert_allclose(plain(ours), expected, err_msg=f"{name} {format}")
                if name in REFLECTED or format == "dense":
                    found = run(s, t)
                    assert name not in REFLECTED or isinstance(found, ow.Tensor), (name, format)
                    np.testing.assert_allclose(plain(found), b @ a if product else expected, err_msg=f"{name} {format}")
                    continue
            with pytest.raises(ow.UnsupportedError, match=ASK):
                run(s, t)
        if format == "dense":
            np.testing.assert_allclose(plain(s.dot(t)), b @ a)
        else:
            with pytest.raises(ow.UnsupportedError, match=ASK):
                s.dot(t)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_of_a_tensor_take_scipys_classes(kind):
    a, b = matrix(), np.diag([1.0, 0, 3, 0, 5, 6])
    s, t = getattr(sp, kind)(b), ow.asarray(a, format="csr")
    for name in ("add", "sub", "mul", "matmul", "eq", "gt"):
        found = getattr(operator, name)(t, s)
        assert isinstance(found, ow.Tensor)
        np.testing.assert_allclose(plain(found), getattr(operator, name)(a, b), err_msg=name)


def test_vectors_and_other_ranks_on_the_right_of_scipys():
    a, v = matrix(), np.array([0.0, 2, 0, 0, 1, 0])
    s, t = sp.csr_array(a), ow.asarray(v, format="coo")
    for name in ("matmul", "mul"):
        with pytest.raises(ow.UnsupportedError, match=ASK):
            getattr(operator, name)(s, t)
        np.testing.assert_allclose(plain(getattr(operator, name)(ow.asarray(s), t)), getattr(operator, name)(a, v))
    np.testing.assert_allclose(plain(s + 0 * ow.asarray(a)), a)
    np.testing.assert_allclose(plain(s * ow.asarray(2.0)), 2 * a)
    stack = ow.asarray(np.stack([a, 2 * a]), format="csf")
    np.testing.assert_allclose(plain(sp.coo_array(a) + stack), a + np.stack([a, 2 * a]))


def test_lazy_tensors_and_torchs_buffers_on_the_right_of_scipys():
    a = matrix()
    s, later = sp.csc_array(a), ow.lazy(ow.asarray(a, format="csr"))
    for name in OPERATORS:
        run = getattr(operator, name)
        left = s if name in REFLECTED else ow.asarray(s)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(plain(ow.compute(run(left, later))), run(a, a), err_msg=name)
        if name not in REFLECTED:
            with pytest.raises(ow.UnsupportedError, match=ASK):
                run(s, later)
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.tensor(a), format="csr")
    for name in ("add", "mul", "matmul", "eq"):
        run = getattr(operator, name)
        np.testing.assert_allclose(plain(run(s if name == "add" else ow.asarray(s), t)), run(a, a), err_msg=name)


def test_numpy_on_the_left():
    a = matrix()
    t, x = ow.asarray(a, format="csr"), np.arange(36.0).reshape(6, 6)
    for name in OPERATORS:
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                plain(getattr(operator, name)(x, t)), getattr(operator, name)(x, a), err_msg=name
            )
    with pytest.warns(PendingDeprecationWarning):
        np.testing.assert_allclose(plain(np.matrix(x) * t), x @ a)
    np.testing.assert_allclose(plain(np.float64(3) * t), 3 * a)


def test_an_index_or_an_argument_is_no_operand():
    s, t = sp.csr_array(matrix()), ow.asarray(matrix(), format="csr")
    for call in (
        lambda: s.multiply(t),
        lambda: s.maximum(t),
        lambda: np.asarray(t),
        lambda: spl.aslinearoperator(s) @ t,
    ):
        with pytest.raises(ow.UnsupportedError, match=r"to_scipy\(\).*\n?.*openwork.write"):
            call()
    with pytest.raises(ValueError, match="unrecognized") as refused:
        sp.csr_array(t)
    assert "to_scipy()" in str(refused.value.__cause__)


class Reflecting:
    def __radd__(self, other: Any) -> str:
        return "reflected"

    __rmatmul__ = __rsub__ = __radd__


def test_strangers_get_their_turn():
    t = ow.asarray(matrix(), format="csr")
    assert t + Reflecting() == t - Reflecting() == t @ Reflecting() == "reflected"
    assert (t == None) is False  # noqa: E711
    assert (t != None) is True  # noqa: E711
    assert (t == "a") is False
    assert (t == object()) is False
    for other in (None, "a", object(), {}, lambda: 0):
        for name in ("add", "matmul", "mul", "lt"):
            with pytest.raises(TypeError, match=r"unsupported operand|not supported|is an index"):
                getattr(operator, name)(t, other)


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", FORMATS)
def test_solvers_take_a_tensor_of_any_format(format):
    a, b = matrix(), np.arange(1.0, 7)
    t, x = ow.asarray(a, format=format), np.linalg.solve(a, b)
    for name in ("cg", "gmres", "bicg", "bicgstab", "cgs", "qmr", "tfqmr", "minres", "lgmres", "gcrotmk"):
        found, info = getattr(spl, name)(t, b, rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(found, x, rtol=1e-6, err_msg=name)
    for name in ("lsqr", "lsmr"):
        np.testing.assert_allclose(getattr(spl, name)(t, b, atol=1e-12, btol=1e-12)[0], x, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_eigenvalues_and_the_like_take_a_tensor(dtype):
    a, rng = matrix(dtype), np.random.default_rng(0)
    t, v = ow.asarray(a, format="csc"), rng.random(6).astype(dtype)
    all_of, tolerance = np.linalg.eigvalsh(a), 1e-3 if dtype == "float32" else 1e-8
    np.testing.assert_allclose(np.sort(spl.eigsh(t, k=2, v0=v)[0]), all_of[-2:], rtol=tolerance)
    np.testing.assert_allclose(np.sort(spl.eigs(t, k=2, v0=v)[0].real), all_of[-2:], rtol=tolerance)
    np.testing.assert_allclose(np.sort(spl.svds(t, k=2, v0=v)[1]), all_of[-2:], rtol=tolerance)
    np.testing.assert_allclose(spl.onenormest(t), abs(a).sum(0).max(), rtol=tolerance)
    from scipy.linalg import expm

    np.testing.assert_allclose(spl.expm_multiply(t / 20, v), expm(a / 20) @ v, rtol=1e-4)
    w, _ = spl.lobpcg(t, rng.random((6, 1)).astype(dtype), tol=1e-4, maxiter=60)
    np.testing.assert_allclose(w, all_of[-1:], rtol=1e-3)


@pytest.mark.thin(3)
@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64"])
def test_linear_operator_products(dtype):
    rng = np.random.default_rng(1)
    a = (rng.integers(0, 3, (4, 6)) * (1j if dtype == "complex64" else 1)).astype(dtype)
    x, y = rng.random(6), rng.random(4) + 1j
    for format in FORMATS:
        t = ow.asarray(a, format=format)
        op = spl.aslinearoperator(t)
        assert (op.shape, op.dtype) == (a.shape, np.dtype(dtype))
        for found, expected in (
            (t.matvec(x), a @ x),
            (t.matvec(x[:, None]), (a @ x)[:, None]),
            (t.rmatvec(y), a.conj().T @ y),
            (t.matmat(np.eye(6)), a),
            (t.rmatmat(np.eye(4)), a.conj().T),
            (op @ x, a @ x),
            (op.H @ y, a.conj().T @ y),
        ):
            assert isinstance(found, np.ndarray)
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_conversions_share_memory_where_the_layout_is_there():
    a = matrix()
    for name in ("csr", "csc", "coo", "bsr", "dia"):
        t = ow.asarray(sp.csr_array(a).asformat(name))
        found = getattr(t, f"to{name}")()
        assert (found.format, type(found).__name__) == (name, f"{name}_array")
        assert np.shares_memory(found.data, t.values)
        if name != "dia":
            indices = found.coords[1] if name == "coo" else found.indices
            assert np.shares_memory(indices, t.crd(1))
        copied = getattr(t, f"to{name}")(copy=True)
        assert not np.shares_memory(copied.data, t.values)
        np.testing.assert_array_equal(copied.toarray(), a)


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", FORMATS)
def test_conversions_of_every_format(format):
    a = matrix()
    t = ow.asarray(a, format=format)
    for name in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        found = getattr(t, f"to{name}")()
        assert found.format == name
        np.testing.assert_array_equal(found.toarray(), a)
    assert t.tobsr(blocksize=(3, 2)).blocksize == (3, 2)
    with pytest.raises(ow.UnsupportedError, match="unspecified elements are 1"):
        ow.asarray(a, format="csr", fill_value=1).tocsr()


ASKING: dict[str, Callable[[Any], Any]] = {
    "connected_components": csgraph.connected_components, "dijkstra": csgraph.dijkstra, "shortest_path": csgraph.shortest_path,
    "minimum_spanning_tree": csgraph.minimum_spanning_tree, "laplacian": csgraph.laplacian, "breadth_first_order": lambda x: csgraph.breadth_first_order(x, 0),
    "linprog": lambda x: optimize.linprog(np.ones(6), A_ub=x, b_ub=np.ones(6)), "lsq_linear": lambda x: optimize.lsq_linear(x, np.ones(6)),
    "csr_array": sp.csr_array, "csc_matrix": sp.csc_matrix, "coo_array": sp.coo_array, "dok_array": sp.dok_array,
}  # fmt: skip
CLASS_FIRST: dict[str, Callable[[Any], Any]] = {
    "maximum_flow": lambda x: csgraph.maximum_flow(x.astype("int32"), 0, 1), "structural_rank": csgraph.structural_rank,
    "reverse_cuthill_mckee": csgraph.reverse_cuthill_mckee, "norm": spl.norm, "inv": spl.inv,
}  # fmt: skip


@pytest.mark.parametrize("name", [*ASKING, *CLASS_FIRST])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_what_asks_for_scipys_class_refuses_a_tensor_and_takes_to_scipy(name):
    """By an error that names `to_scipy()` where a Tensor is asked at all, by SciPy's where it asks for the class first."""
    t = ow.asarray(matrix(), format="csr")
    call = {**ASKING, **CLASS_FIRST}[name]
    with pytest.raises((ow.UnsupportedError, TypeError, ValueError)) as found:
        call(t)
    if name in ASKING:
        said = [
            str(error) for error in (found.value, found.value.__cause__, found.value.__context__) if error is not None
        ]
        assert any("to_scipy() gives SciPy's sparse array" in text for text in said), said
    call(t.to_scipy())


def test_the_older_matrix_class_is_over_the_same_memory():
    t = ow.asarray(matrix(), format="csr")
    old = sp.csr_matrix(t.to_scipy())
    assert isinstance(old, sp.spmatrix)
    assert np.shares_memory(old.data, t.values)

"""The arrays of `openwork.compat.scipy_sparse`: each holds a Tensor over SciPy's buffers, and spells it as SciPy does."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as theirs

import openwork as ow
from openwork.compat import scipy_sparse as sp

A = np.array([[1.0, 0, 2, 0], [0, 0, 3, 0], [4, 5, 0, 6], [0, 0, 0, 7]])
KINDS = [f"{f}_{c}" for f in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok") for c in ("array", "matrix")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_holds_a_tensor(kind):
    made = getattr(sp, kind)(A)
    assert isinstance(made.tensor, ow.Tensor)
    assert ow.asarray(made) is made.tensor
    assert sp.issparse(made)
    assert isinstance(made, sp.sparray if kind.endswith("array") else sp.spmatrix)
    assert sp.isspmatrix(made) == kind.endswith("matrix")
    assert (made.format, made.shape, made.ndim, made.dtype) == (kind[:3], (4, 4), 2, np.float64)
    np.testing.assert_array_equal(made.toarray(), A)
    assert type(made.to_scipy()).__name__ == kind
    if kind[:3] not in ("lil", "dok"):
        assert np.shares_memory(made.data, made.tensor.values)
    for other in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        np.testing.assert_array_equal(made.asformat(other).toarray(), A)
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), made.copy()):
        assert type(twin) is type(made)
        np.testing.assert_array_equal(twin.toarray(), A)
    assert repr(made) == repr(made.to_scipy())


@pytest.mark.thin(6)
@pytest.mark.parametrize("kind", KINDS)
def test_operations_give_what_scipy_gives(kind):
    x, s = getattr(sp, kind)(A), getattr(theirs, kind)(A)
    d = np.arange(16.0).reshape(4, 4)
    for call in (
        lambda m: m + m, lambda m: m - m.T, lambda m: m * 2, lambda m: 3 * m, lambda m: m / 2, lambda m: m @ m, lambda m: m @ d,
        lambda m: d @ m, lambda m: m @ d[0], lambda m: m * m, lambda m: m + d, lambda m: d - m, lambda m: m.multiply(d),
        lambda m: abs(-m), lambda m: m.sum(axis=0), lambda m: m.sum(), lambda m: m.mean(axis=1), lambda m: m > 2, lambda m: m != m.T,
        lambda m: m.max(axis=0) if m.format in ("csr", "csc", "coo", "bsr") else m.sum(), lambda m: m.tocsr().sqrt(),
        lambda m: m.T, lambda m: m.reshape(2, 8), lambda m: m.astype(np.float32), lambda m: m.diagonal(), lambda m: m.maximum(1 - m.toarray()),
        lambda m: m.tocsr()[1:3, ::2], lambda m: m.tocsr()[[0, 2], [2, 1]], lambda m: m.tocsr()[2], lambda m: m.tocsc()[:, 2],
        lambda m: m.tocsr()[m.tocsr() > 2], lambda m: m.trace(), lambda m: m.dot(m), lambda m: m.nnz, lambda m: m.tocsr()[0, 2],
        lambda m: m.conj(), lambda m: m.power(2), lambda m: m**2, lambda m: m.count_nonzero(), lambda m: m.nnz,
    ):  # fmt: skip
        got, want = call(x), call(s)
        assert sp.issparse(got) == theirs.issparse(want)
        if sp.issparse(got):
            assert type(got).__module__.startswith("openwork")
            assert type(got).__name__.endswith(kind[4:])
            assert got.dtype == want.dtype
            got, want = got.toarray(), want.toarray()
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_buffers_are_written_through_and_replaced():
    x = sp.csr_array(A)
    x.data *= 2
    np.testing.assert_array_equal(x.tensor.to_numpy(), 2 * A)
    x.data = x.data / 2
    np.testing.assert_array_equal(x.toarray(), A)
    x[0, 1] = 9
    x[2] = 0
    x[:, 3] = sp.csr_array([[1.0], [0], [0], [2]])
    want = A.copy()
    want[0, 1], want[2], want[:, 3] = 9, 0, [1, 0, 0, 2]
    np.testing.assert_array_equal(x.toarray(), want)
    x.eliminate_zeros()
    x.setdiag(5)
    np.fill_diagonal(want, 5)
    np.testing.assert_array_equal(x.toarray(), want)
    assert x.nnz == np.count_nonzero(want)
    x.resize(2, 3)
    assert (x.shape, x.tensor.shape) == ((2, 3), (2, 3))


def test_zeros_annihilate_as_they_do_there():
    x = sp.csr_array(A)
    assert x.multiply(np.full((4, 4), np.inf)).nnz == x.nnz
    assert (x * np.nan).nnz == x.nnz


def test_results_of_two_operands_store_no_zeros():
    x, s = sp.csr_array(A), theirs.csr_array(A)
    y, u = sp.csr_array(np.diag([1.0, 2, 0, 3])), theirs.csr_array(np.diag([1.0, 2, 0, 3]))
    assert (x != x.copy()).nnz == (x - x).nnz == (x > 99).nnz == 0
    for call in (
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a != b, lambda a, b: a > b, lambda a, b: a > 3,
        lambda a, b: a.maximum(b), lambda a, b: a.minimum(b), lambda a, b: a.multiply(A), lambda a, b: a == 2,
    ):  # fmt: skip
        assert call(x, y).nnz == call(s, u).nnz


def test_functions_of_the_module():
    x, s = sp.csr_array(A), theirs.csr_array(A)
    for name, args in (
        ("hstack", 1),
        ("vstack", 1),
        ("block_diag", 1),
        ("kron", 2),
        ("kronsum", 2),
        ("tril", 0),
        ("triu", 0),
        ("find", 0),
    ):
        mine, other = ([x, x], [s, s]) if args == 1 else ((x, x), (s, s)) if args == 2 else (x, s)
        run = (lambda f, g: f(*g)) if args == 2 else (lambda f, g: f(g))
        got, want = run(getattr(sp, name), mine), run(getattr(theirs, name), other)
        if name == "find":
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
            continue
        assert (type(got).__name__, got.format) == (type(want).__name__, want.format)
        np.testing.assert_array_equal(got.toarray(), want.toarray())
    assert sp.eye_array(3).format == "dia"
    assert sp.random_array((4, 5), density=0.5).nnz == 10
    assert sp.isspmatrix_csr(sp.csr_matrix(A))
    assert not sp.isspmatrix_csr(x)
    assert sp.SparseEfficiencyWarning is theirs.SparseEfficiencyWarning
    with pytest.raises(AttributeError):
        _ = sp.nothing


def test_files(tmp_path):
    x = sp.csc_array(A)
    sp.save_npz(tmp_path / "a.npz", x)
    back = sp.load_npz(tmp_path / "a.npz")
    assert type(back) is sp.csc_array
    np.testing.assert_array_equal(back.toarray(), A)


@pytest.mark.parametrize(
    "name", ["cg", "gmres", "minres", "bicgstab", "lsqr", "spsolve", "spsolve_triangular", "expm_multiply"]
)
def test_linalg(name):
    b = np.arange(1.0, 5)
    m = {"spsolve_triangular": np.tril(A + 9 * np.eye(4))}.get(name, A @ A.T + 9 * np.eye(4))
    got, want = (getattr(s.linalg, name)(s.csr_array(m), b) for s in (sp, theirs))
    np.testing.assert_allclose(*(x[0] if isinstance(x, tuple) else x for x in (got, want)), rtol=1e-4)


@pytest.mark.ci
def test_direct_solvers_are_ours():
    m = np.kron(np.eye(500), A @ A.T + 9 * np.eye(4))
    x, b = sp.csr_array(m), np.arange(2000.0)
    assert sp.linalg.factorized(x).__self__._factors.kind == "cholesky"
    np.testing.assert_allclose(sp.linalg.factorized(x)(b), theirs.linalg.spsolve(x.to_scipy(), b))
    sides = sp.linalg.spsolve(x, sp.csc_array(np.eye(2000)[:, :3]))
    assert type(sides) is sp.csr_array
    np.testing.assert_allclose(sides.toarray(), np.linalg.inv(m)[:, :3], atol=1e-12)
    lu = sp.linalg.splu(sp.csc_array(m[:8, :8]))
    assert type(lu.L) is type(lu.U) is sp.csc_array
    np.testing.assert_allclose((lu.L @ lu.U).toarray()[lu.perm_r][:, lu.perm_c], m[:8, :8], atol=1e-12)
    with pytest.raises(TypeError, match="Cannot cast array data"):
        lu.solve(1j * np.ones(8))
    with pytest.raises(RuntimeError, match="singular"):
        sp.linalg.factorized(0 * x)


def test_linalg_of_matrices_and_graphs():
    m = A @ A.T + np.diag([1.0, 2, 3, 4])
    x = sp.csc_array(m)
    for options in ({}, {"sigma": 0.5}, {"M": sp.diags_array([1.0, 2, 3, 4])}):
        want = {k: v.to_scipy() if sp.issparse(v) else v for k, v in options.items()}
        np.testing.assert_allclose(
            sp.linalg.eigsh(x, k=1, **options)[0], theirs.linalg.eigsh(theirs.csc_array(m), k=1, **want)[0], rtol=1e-8
        )
    inverse = sp.linalg.inv(x)
    assert type(inverse) is sp.csc_array
    np.testing.assert_allclose(inverse.toarray(), np.linalg.inv(m), atol=1e-12)
    np.testing.assert_allclose(sp.linalg.splu(x).solve(np.ones(4)), np.linalg.solve(m, np.ones(4)))
    assert sp.linalg.norm(x) == pytest.approx(np.linalg.norm(m))
    assert sp.csgraph.connected_components(sp.csr_array(np.kron(np.eye(2), np.ones((2, 2)))))[0] == 2
    tree = sp.csgraph.minimum_spanning_tree(x)
    assert sp.issparse(tree)


def test_only_products_are_asked_of_a_tensor(monkeypatch):
    """A matrix that is to be factorised, as `sigma` asks, goes to SciPy as its array; others as an operator."""
    asked = []
    monkeypatch.setattr(sp.linalg, "_operator", lambda x: asked.append(x) or x)
    x = sp.csc_array(A @ A.T + np.diag([1.0, 2, 3, 4]))
    for options, operators in (({}, 1), ({"sigma": 0.5}, 0), ({"sigma": None}, 1), ({"sigma": 0}, 0)):
        asked.clear()
        sp.linalg.eigsh(x, k=1, **options)
        assert len(asked) == operators, options


def test_with_tensors_and_scipys_own():
    x, t, s = sp.csr_array(A), ow.asarray(A, format="bitmap"), theirs.csr_array(A)
    for other in (t, s, A):
        for got in (x @ other, x + other, x - other, other @ x, x.dot(other)):
            kind = ow.Tensor if other is t else np.ndarray if other is A else theirs.csr_array
            assert isinstance(got, (kind, sp.csr_array))
    np.testing.assert_array_equal((s @ x).toarray(), A @ A)
    np.testing.assert_array_equal((t @ x).to_numpy(), A @ A)
    for made in (sp.csr_array(t), sp.coo_array(ow.asarray(A)), sp.csr_array(x), sp.csc_array(s)):
        np.testing.assert_array_equal(made.toarray(), A)
    assert np.asarray(x).dtype == object
    for made in (theirs.coo_array(x), theirs.vstack([s, x])[:4], theirs.csc_array(x)):
        np.testing.assert_array_equal(made.toarray(), A)
    np.testing.assert_array_equal(s.multiply(x).toarray(), A * A)


def test_isinstance_and_operators_of_scipys_take_an_array_for_scipys():
    x, s = sp.csr_array(A), theirs.csr_array(A)
    assert isinstance(x, theirs.csr_array)
    assert isinstance(sp.dok_matrix(A), theirs.spmatrix)
    assert not isinstance(x, theirs.csc_array)
    assert theirs.issparse(x)
    assert type(x) is sp.csr_array
    for got, want in ((s + x, A + A), (s @ x, A @ A), (s * x, A * A), (s != x, A != A), (s - x, A - A)):
        assert type(got) is theirs.csr_array
        np.testing.assert_array_equal(got.toarray(), want)
    for kind in KINDS:
        for other in (sp.coo_array, sp.dia_matrix, sp.lil_array, sp.dok_matrix, sp.bsr_array, sp.csc_matrix):
            left, right = getattr(theirs, kind)(A), other(A)
            for run in (operator.add, operator.sub, operator.matmul, operator.ne):
                np.testing.assert_array_equal(run(left, right).toarray(), run(A, A), err_msg=f"{kind} {other}")
    assert ow.asarray(x) is x.tensor


def test_scikit_learn_takes_an_array_for_scipys():
    decomposition = pytest.importorskip("sklearn.decomposition")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    svd = decomposition.TruncatedSVD(2, algorithm="arpack", random_state=0)
    np.testing.assert_allclose(svd.fit_transform(sp.csr_array(A)), svd.fit_transform(theirs.csr_array(A)))
    np.testing.assert_allclose(
        preprocessing.normalize(sp.csc_array(A)).toarray(), preprocessing.normalize(theirs.csc_array(A)).toarray()
    )


def test_strangers_get_their_turn():
    class Reflecting:
        __array_ufunc__ = None

        def __radd__(self, other: Any) -> str:
            return "reflected"

    x = sp.csr_array(A)
    assert x + Reflecting() == "reflected"
    assert (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(NotImplementedError):
        x + 1
    with pytest.raises(ValueError, match="inconsistent"):
        x + sp.csr_array((2, 2))
    with pytest.raises(ValueError, match="dimension mismatch"):
        x @ np.ones(3)


def test_sums_are_numbers_and_arrays_of_numpy() -> None:
    a = sp.csr_array(np.eye(3))
    assert (type(a.sum()), type(a.mean()), type(a.sum(axis=0))) == (np.float64, np.float64, np.ndarray)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_blocks_of_nothing(shape: tuple[int, int]) -> None:
    found = ow.asarray(np.zeros(shape), format="bsr(2, 2)").to_scipy()
    assert (found.format, found.shape, found.blocksize, found.nnz) == ("bsr", shape, (2, 2), 0)

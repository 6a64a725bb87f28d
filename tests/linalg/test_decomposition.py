"""CP and Tucker decompositions: exact tensors are found again, the fit is the dense one, arguments are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import decomposition
from openwork.storage.specified import coordinates

RNG = np.random.default_rng(4)


def low_rank(shape: tuple[int, ...], rank: int) -> np.ndarray[Any, Any]:
    """A sum of outer products of sparse vectors."""
    out = np.zeros(shape)
    for _ in range(rank):
        term: Any = 1.0
        for n in shape:
            term = np.multiply.outer(term, np.where(RNG.random(n) < 0.5, RNG.random(n) + 0.5, 0.0))
        out += term
    return out


X = low_rank((6, 7, 8), 3)
NOISE = np.where(RNG.random((6, 5, 4)) < 0.4, RNG.standard_normal((6, 5, 4)), 0)


def fit(x: Any, model: Any) -> float:
    return 1 - float(np.linalg.norm(x - model) / np.linalg.norm(x))


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", ["coo", "csf", "dense"])
def test_cp_finds_an_exact_decomposition(format: str) -> None:
    found = decomposition.cp_als(ow.asarray(X, format=format), 3, maxiter=500, tol=1e-9, rng=1)
    assert found.fit > 0.999
    assert found.converged
    np.testing.assert_allclose(found.fit, fit(X, found.full()), atol=1e-6)
    assert [f.shape for f in found.factors] == [(6, 3), (7, 3), (8, 3)]
    for f in found.factors:
        np.testing.assert_allclose((f * f).sum(0), 1)
    assert (np.diff(found.weights) <= 0).all()


@pytest.mark.parametrize("format", ["coo", "csf", "dense"])
def test_tucker_finds_an_exact_decomposition(format: str) -> None:
    found = decomposition.tucker(ow.asarray(X, format=format), 3, tol=1e-10, rng=1)
    assert found.fit > 0.999999
    np.testing.assert_allclose(found.full(), X, atol=1e-6)
    for f in found.factors:
        np.testing.assert_allclose(f.T @ f, np.eye(3), atol=1e-12)


def test_the_fit_rises_and_is_that_of_the_dense_model() -> None:
    t = ow.asarray(NOISE, format="csf")
    for found in (
        decomposition.cp_als(t, 2, tol=0, maxiter=12, rng=3),
        decomposition.tucker(t, (2, 3, 2), tol=0, maxiter=12, rng=3),
    ):
        assert len(found.fits) == 12
        assert not found.converged
        assert (np.diff(found.fits) > -1e-9).all()
        np.testing.assert_allclose(found.fit, fit(NOISE, found.full()), atol=1e-9)


@pytest.mark.parametrize("make", [decomposition.cp_als, decomposition.tucker])
def test_models_are_arrays(make: Any) -> None:
    for format in ("csf", "coo", "dense"):
        model = make(ow.asarray(X, format=format), 3, rng=1)
        assert model.shape == X.shape
        np.testing.assert_allclose(fit(X, model.to_numpy()), model.fit, atol=1e-6)
        np.testing.assert_array_equal(np.asarray(model), model.full())
        assert np.asarray(model, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="copy=False"):
        np.array(model, copy=False)
    huge = ow.sparse_coo_tensor(np.arange(12).reshape(3, 4) * 1000, np.ones(4), (10**6,) * 3)
    model = make(huge, 1, maxiter=1, rng=1)
    with pytest.raises(ow.SizeError, match=r"to_numpy: an array of shape \(1000000, 1000000, 1000000\)"):
        model.to_numpy()


def test_a_tensor_of_rank_4_factors_that_are_given_and_other_dtypes() -> None:
    x = low_rank((3, 4, 5, 3), 2)
    start = [RNG.random((n, 2)) for n in x.shape]
    t = ow.asarray(x, format="coo")
    first, again = (decomposition.cp_als(t, 2, init=start, maxiter=300, tol=1e-8) for _ in range(2))
    assert first.fit == again.fit > 0.99
    assert decomposition.tucker(t, (2, 2, 2, 2), rng=0).fit > 0.99
    single = decomposition.cp_als(ow.asarray(X.astype(np.float32), format="coo"), 3, rng=1)
    assert single.factors[0].dtype == np.float32
    assert decomposition.cp_als(ow.asarray((X > 1), format="coo"), 2, rng=1).factors[0].dtype == np.float64
    matrix = decomposition.tucker(ow.asarray(X[0], format="csr"), 2, tol=1e-12, rng=0)
    np.testing.assert_allclose(
        np.sort(np.abs(np.linalg.svd(matrix.core)[1])), np.sort(np.linalg.svd(X[0])[1][:2]), rtol=1e-6
    )
    assert decomposition.cp_als(ow.zeros((3, 4, 5)), 2).fit == 1


def test_torch_buffers() -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.from_numpy(X.copy()), format="coo")
    assert decomposition.cp_als(t, 3, rng=1).fits == decomposition.cp_als(ow.asarray(X, format="coo"), 3, rng=1).fits
    with pytest.raises(ow.UnsupportedError, match="no gradient"):
        decomposition.tucker(t.requires_grad_(), 2)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: decomposition.cp_als(X, 0), ow.ShapeError, "rank=0"),
    (lambda: decomposition.cp_als(X, 1.5), ow.DTypeError, "rank is an integer"),
    (lambda: decomposition.cp_als(X[0, 0], 1), ow.ShapeError, "two dimensions"),
    (lambda: decomposition.cp_als(X * 1j, 1), ow.DTypeError, "complex"),
    (lambda: decomposition.cp_als(X, 2, init="nvecs"), ow.UnsupportedError, "init='nvecs'"),
    (lambda: decomposition.cp_als(X, 2, init=[X[0]]), ow.ShapeError, "expected:"),
    (lambda: decomposition.cp_als(ow.asarray(X, format="coo", fill_value=1.0), 2), ow.UnsupportedError, "are 1.0"),
    (lambda: decomposition.cp_als(X, 2, maxiter=0), ow.ShapeError, "maxiter=0"),
    (lambda: decomposition.tucker(X, 9), ow.ShapeError, "ranks=9"),
    (lambda: decomposition.tucker(X, (2, 2)), ow.ShapeError, "one for each"),
    (lambda: decomposition.tucker(X, (5, 2, 2)), ow.ShapeError, "more than the product"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals(k: int) -> None:
    call, error, words = REFUSED[k]
    with pytest.raises(error, match=words):
        call()


def test_products_with_a_result_in_any_format() -> None:
    t, m = ow.asarray(NOISE, format="csf"), RNG.random((4, 3))
    for format in ("coo", "csf", "dense"):
        for got, want in (
            (ow.ttm(t, m, 2, format=format), NOISE @ m),
            (ow.ttv(t, m[:, 0], 2, format=format), NOISE @ m[:, 0]),
            (ow.tensordot(t, m, axes=1, format=format), NOISE @ m),
        ):
            assert isinstance(got, ow.Tensor)
            assert got.format == ow.format(format, got.ndim)
            np.testing.assert_allclose(got.to_numpy(), want)
    factors = [RNG.random((n, 2)) for n in NOISE.shape]
    right = ow.mttkrp(t, factors, 0, format="csr")
    np.testing.assert_allclose(right.to_numpy(), np.einsum("ijk,jr,kr->ir", NOISE, *factors[1:]))
    assert ow.ttm(t, m, 2, format="coo").nse == 3 * ow.pattern(t).astype("int64").max(axis=2).sum()


RULE = {
    "csf": ("csf", "(i, j, r) -> (i : compressed, j : compressed, r : dense)"),
    "coo": ("coo", "(i, j, r) -> (i : compressed(nonunique), j : singleton, r : dense)"),
    "(i, j, k) -> (i : dense, j : compressed, k : compressed)": (
        "csr",
        "(i, j, r) -> (i : dense, j : compressed, r : dense)",
    ),
    "(i, j, k) -> (j : compressed, i : compressed, k : compressed)": (
        "dcsc",
        "(i, j, r) -> (j : compressed, i : compressed, r : dense)",
    ),
    "(i, j, k) -> (i : dense, j // 2 : compressed, j % 2 : dense, k : dense)": (
        "coo",
        "(i, j, r) -> (i : compressed(nonunique), j : singleton, r : dense)",
    ),
    "(i, j, k) -> (i : dense, j : dense, k : compressed)": (None, None),
    "bitmap": (None, None),
    "dense": (None, None),
}


@pytest.mark.thin(4)
@pytest.mark.parametrize("format", RULE)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_formats_of_results_by_rule(format: str, library: str) -> None:
    like = np.asarray if library == "numpy" else pytest.importorskip("torch").from_numpy
    rng = np.random.default_rng(5)
    x = np.where(rng.random((4, 6, 5)) < 0.3, rng.integers(-3, 4, (4, 6, 5)), 0).astype(float)
    t, m = ow.asarray(like(x), format=format), rng.integers(1, 5, (5, 3)).astype(float)
    fibres = len({(i, j) for i, j, _ in coordinates(t._storage)[0].T.tolist()})
    cases = [
        (ow.ttv(t, like(m[:, 0].copy()), 2), x @ m[:, 0], RULE[format][0]),
        (ow.ttm(t, like(m), -1), x @ m, RULE[format][1]),
        (ow.tensordot(t, like(m), axes=1), x @ m, RULE[format][1]),
        (ow.ttm(t, ow.asarray(like(m)), 2), x @ m, RULE[format][1]),
    ]
    for got, want, named in cases:
        assert isinstance(got, ow.Tensor) is (named is not None) or got is cases[3][0]
        if named is not None:
            assert got.format == ow.format(named, got.ndim)
            assert got.nse == fibres * (3 if got.ndim == 3 else 1)
        np.testing.assert_array_equal(got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got), want)
    if RULE[format][0] is not None:
        for d, n in enumerate(x.shape):  # the other dimensions, and the array first
            w = rng.random((2, n))
            got = ow.tensordot(like(w), t, axes=([1], [d]))
            assert isinstance(got, ow.Tensor) or format not in ("csf", "coo")
            got = got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)
            np.testing.assert_allclose(got, np.tensordot(w, x, axes=([1], [d])))
        both = ow.tensordot(t, like(np.ones((5, 6))), axes=([1, 2], [1, 0]))
        assert type(both) is type(like(m))
        np.testing.assert_array_equal(np.asarray(both), x.sum((1, 2)))


def test_what_the_rule_leaves_to_einsum() -> None:
    t = ow.asarray(NOISE, format="csf")
    assert isinstance(ow.ttv(t, [1.0] * 4, 2), ow.Tensor)
    assert ow.ttm(ow.asarray(np.zeros((2, 3, 4)), format="coo"), np.ones((4, 2)), 2).nse == 0
    for call, error in (
        (lambda: ow.ttv(t, np.ones(5), 2), ow.ShapeError),
        (lambda: ow.ttv(t, np.ones((4, 2)), 2), ow.ShapeError),
        (lambda: ow.ttm(t, np.ones(4), 2), ow.ShapeError),
        (lambda: ow.ttv(t + 1, np.ones(4), 2), ow.UnsupportedError),
    ):
        with pytest.raises(error, match=r"einsum|tt[vm]: dimension 2 of a tensor"):
            call()


def test_gradients_of_results_by_rule() -> None:
    torch = pytest.importorskip("torch")
    x, m = torch.tensor(NOISE), torch.tensor(RNG.random((NOISE.shape[1], 2)))
    a, p = ow.asarray(x, format="csf").requires_grad_(), x.clone().requires_grad_()
    ours, theirs = m.clone().requires_grad_(), m.clone().requires_grad_()
    (ow.ttm(a, ours, 1).to_dense() ** 2).sum().backward()
    (torch.einsum("abc,bz->azc", p, theirs) ** 2).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(torch.as_tensor(a.grad.to_numpy()), p.grad * (x != 0))


@pytest.mark.parametrize("ring", ["plus_times", "min_plus", "any_pair", "any_first", "lor_land", "max_min"])
def test_results_are_of_one_kind_whatever_the_semiring(ring: str) -> None:
    s = ow.asarray(np.eye(3), format="csr")
    for text, others in (("ij,jk->ik", (np.eye(3),)), ("ij,j->i", (np.ones(3),)), ("ij,ij->", (np.eye(3),))):
        assert isinstance(ow.einsum(text, s, *others, semiring=ring), np.ndarray)
        assert isinstance(ow.einsum(text, s, *map(ow.asarray, others), semiring=ring), ow.Tensor)
        sparse = [ow.asarray(x, format="csr" if x.ndim == 2 else "coo") for x in others]
        assert isinstance(ow.einsum(text, s, *sparse, semiring=ring), ow.Tensor)


def test_what_was_meant() -> None:
    s = ow.asarray(np.eye(3), format="csr")
    with pytest.raises(TypeError, match="did you mean 'semiring'"):
        ow.einsum("ij,jk->ik", s, s, semirng="min_plus")
    with pytest.raises(ow.UnsupportedError, match="did you mean 'min_plus'"):
        ow.einsum("ij,jk->ik", s, s, semiring="min_pls")
    with pytest.raises(TypeError, match="did you mean 'keepdims'"):
        ow.sum(s, keepdim=True)


def test_what_was_meant_by_names_and_arguments() -> None:
    a = ow.asarray(np.eye(3), format="csr")
    for call, error, words in (
        (lambda: ow.linalg.nrm, AttributeError, "did you mean 'norm'"),
        (lambda: ow.graph.pagernk, AttributeError, "did you mean 'pagerank'"),
        (lambda: decomposition.cp_al, AttributeError, "did you mean 'cp_als'"),
        (lambda: ow.solve, AttributeError, r"'solve'\n  help: openwork.linalg.solve$"),
        (lambda: ow.linalg.kron, AttributeError, r"help: openwork.kron$"),
        (lambda: ow.GraphConv, AttributeError, r"help: openwork.nn.GraphConv$"),
        (lambda: a.cp_als, AttributeError, r"help: openwork.decomposition.cp_als$"),
        (lambda: ow.io.raed, AttributeError, "did you mean 'read'"),
        (lambda: ow.plot.spyy, AttributeError, "did you mean 'spy'"),
        (lambda: a / a[:2].sum(axis=0)[:2], ow.ShapeError, "extents agree"),
        (lambda: a[:2] / a[:2].sum(axis=1), ow.ShapeError, r"keepdims=True .* or \[\.\.\., None\]"),
        (lambda: a[:2] - np.ones(2), ow.ShapeError, "keepdims=True"),
        (lambda: a.astype("flaot32"), ow.DTypeError, "did you mean 'float32'"),
        (lambda: ow.evaluate("C[i,j] mim= A[i,j]", A=a), ow.FormatError, "did you mean min="),
        (lambda: ow.asarray(a, formt="csr"), TypeError, "did you mean 'format'"),
        (lambda: ow.random((3, 3), 0.1, fromat="csr"), TypeError, "did you mean 'format'"),
        (lambda: ow.zeros((3, 3), dtpe=float), TypeError, "did you mean 'dtype'"),
        (lambda: ow.softmax(a, dim=1), TypeError, "unexpected keyword argument 'dim'\n  help: did you mean 'axis'"),
        (
            lambda: a.sum(dim=0),
            TypeError,
            "sum.. got an unexpected keyword argument 'dim'\n  help: did you mean 'axis'",
        ),
        (lambda: ow.random((3, 3), 0.1, seed=0), TypeError, "did you mean 'rng'"),
        (lambda: ow.linalg.cg(a, np.ones(3), tolerance=1e-3), TypeError, "did you mean 'rtol'"),
        (
            lambda: ow.einsum("ij->j", a, optimize=True),
            TypeError,
            "help: it takes subscripts, operands, format, semiring",
        ),
        (lambda: a.asformat("lil"), ow.FormatError, r"help: csr and coo are written to as these are, A\[i, j\] = v"),
        (lambda: ow.random((4, 5, 6), 0.1, format="csr"), ow.FormatError, "csr does not have 3 dimensions"),
    ):
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(AttributeError):
        ow.linalg._nothing  # noqa: B018


LONE = [
    ("ij,jk->i", ((4, 5), (5, 3))), ("ij,jk->", ((4, 5), (5, 3))), ("ijk,jr->ir", ((3, 4, 5), (4, 2))), ("ij,k->k", ((4, 5), (3,))),
    ("ij,jk,l->i", ((4, 5), (5, 3), (2,))), ("ij,ik,jl->", ((4, 5), (4, 3), (5, 2))), ("ij,k->ik", ((4, 5), (3,))), ("ij,jkk->i", ((4, 5), (5, 3, 3))),
]  # fmt: skip


@pytest.mark.thin(15)
@pytest.mark.parametrize(("text", "shapes"), LONE)
@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_indices_of_one_operand_alone(text: str, shapes: Any, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    xs = [(rng.integers(60, 90, s) * (rng.random(s) < 0.7)).astype(dtype) for s in shapes]
    for k, x in enumerate(xs):
        for format in ("coo", "csf"):
            given: list[Any] = list(xs)
            given[k] = ow.asarray(x.astype(float), format=format)
            plain = [y.astype(float) for y in xs]
            found = ow.einsum(text, *given)
            np.testing.assert_allclose(ow.asarray(found).to_numpy(), np.einsum(text, *plain))
            for ring in ("min_plus", "max_min"):
                if len(xs) == 2 and "kk" not in text:
                    ow.einsum(text, *given, semiring=ring)
    same = [ow.asarray(xs[0], format="coo"), *xs[1:]]
    found = ow.einsum(text, *same)
    assert found.dtype == dtype
    np.testing.assert_allclose(np.asarray(found), np.einsum(text, *xs))


def test_a_sum_over_one_operand_comes_first() -> None:
    a, x = ow.asarray(np.eye(4), format="csr"), np.ones((4, 3))
    plan = str(ow.explain(lambda: ow.einsum("ij,jk->i", a, x)))
    assert "out[i] += T0[i, j] * T1[j]" in plan.replace("T2", "T1")


def test_pca_of_more_columns_than_rows() -> None:
    rng = np.random.default_rng(3)
    d = np.where(rng.random((6, 15)) < 0.4, rng.standard_normal((6, 15)), 0)
    for center in (True, False):
        found = ow.linalg.pca(ow.asarray(d, format="csr"), 2, center=center)
        _, sigma, vt = np.linalg.svd(d - d.mean(0) if center else d, full_matrices=False)
        np.testing.assert_allclose(found.singular_values, sigma[:2])
        np.testing.assert_allclose(np.abs(found.components), np.abs(vt[:2]), atol=1e-8)


def test_a_model_prints_as_one_line() -> None:
    t = ow.asarray(np.ones((2, 3, 4)), format="csf")
    assert str(decomposition.cp_als(t, 1, rng=0)).startswith("CP(rank=1, shape=(2, 3, 4), fit=1.0000, ")
    assert str(decomposition.tucker(t, 1, rng=0)).startswith("Tucker(ranks=(1, 1, 1), shape=(2, 3, 4), fit=1.0000, ")
    assert str(decomposition.cp_als(t, 1, rng=0, maxiter=1)).endswith("1 iterations, not converged)")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t: ow.ttm(t, np.ones((5, 2)), 2),
            "ttm: dimension 2 of a tensor (2, 3, 4), with (5, 2)\n  expected: (4, r)",
        ),
        (lambda t: ow.ttv(t, np.ones(5), 1), "ttv: dimension 1 of a tensor (2, 3, 4), with (5,)\n  expected: (3,)"),
        (lambda t: ow.mttkrp(t, [None, np.ones((3, 2)), np.ones((9, 2))], 0), "expected: -, (3, r), (4, r)"),
        (lambda t: ow.mttkrp(t, [np.ones((3, 2))], 0), "mttkrp: 1 factors of a tensor of 3 dimensions"),
    ],
)
def test_factors_that_do_not_fit_are_told_in_words_of_the_call(call: Callable[[ow.Tensor], Any], message: str) -> None:
    with pytest.raises(ow.ShapeError) as caught:
        call(ow.asarray(np.ones((2, 3, 4)), format="csf"))
    assert message in str(caught.value)

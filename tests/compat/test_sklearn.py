"""scikit-learn's estimators over Tensors: through `to_sklearn`, and as they are where it dispatches to the array API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize
from sklearn.svm import LinearSVC

FORMATS = ("csr", "csc", "coo", "dcsr", "bsr(2, 2)", "bitmap")


@pytest.fixture(scope="module")
def digits() -> tuple[sp.csr_array, np.ndarray]:
    """A hundred handwritten digits, half of whose pixels are zero."""
    images, labels = load_digits(return_X_y=True)
    return sp.csr_array(images[::18]), labels[::18]


ESTIMATORS = {
    "TruncatedSVD": lambda x, y: TruncatedSVD(3, power_iteration_normalizer="QR", random_state=0).fit_transform(x),
    "NMF": lambda x, y: NMF(3, init="random", random_state=0, max_iter=20, tol=0.1).fit_transform(x),
    "LogisticRegression": lambda x, y: LogisticRegression(C=1e-3, tol=0.1).fit(x, y).predict_proba(x),
    "Ridge": lambda x, y: Ridge(solver="sparse_cg").fit(x, y).predict(x),
    "NearestNeighbors": lambda x, y: NearestNeighbors(n_neighbors=3).fit(x).kneighbors(x)[0],
    "cosine_similarity": lambda x, y: cosine_similarity(x),
    "normalize": lambda x, y: normalize(x),
    "KMeans": lambda x, y: KMeans(4, n_init=1, random_state=0).fit(x).cluster_centers_,
    "MultinomialNB": lambda x, y: MultinomialNB().fit(x, y).predict(x),
    "LinearSVC": lambda x, y: LinearSVC(tol=0.1, random_state=0).fit(x, y).decision_function(x),
    "RandomForest": lambda x, y: RandomForestClassifier(3, random_state=0).fit(x, y).predict(x),
    "pipeline": lambda x, y: (
        make_pipeline(MaxAbsScaler(), TruncatedSVD(4, random_state=0), Ridge()).fit(x, y).predict(x)
    ),
    "scaled": lambda x, y: (
        make_pipeline(StandardScaler(with_mean=False), LogisticRegression(tol=0.1)).fit(x, y).predict(x)
    ),
}


def dense(x: Any) -> np.ndarray:
    return x.toarray() if sp.issparse(x) else x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x)


@pytest.mark.thin(2, rest="ci")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_take_what_to_sklearn_gives(name, digits):
    x, y = digits
    want = dense(ESTIMATORS[name](x, y))
    got = dense(ESTIMATORS[name](*ow.to_sklearn(ow.asarray(x), ow.asarray(y))))
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["TruncatedSVD", "LogisticRegression", "NearestNeighbors", "normalize"])
def test_estimators_refuse_a_sparse_tensor_by_naming_the_conversion(name, digits):
    x, y = digits
    with pytest.raises(ow.UnsupportedError, match=r"to_scipy\(\).*scikit-learn"):
        ESTIMATORS[name](ow.asarray(x), y)


@pytest.mark.parametrize("format", FORMATS)
def test_to_sklearn_of_every_format(format, digits):
    x = digits[0][:, :62]
    t = ow.asarray(x).asformat(format)
    made = ow.to_sklearn(t)
    assert (type(made).__name__, made.indices.dtype) == (("csc_array" if format == "csc" else "csr_array"), np.int32)
    np.testing.assert_array_equal(made.toarray(), x.toarray())
    if format in ("csr", "csc"):
        for got, held in ((made.data, t.values), (made.indices, t.crd(1)), (made.indptr, t.pos(1))):
            assert np.shares_memory(got, held)


def test_to_sklearn_of_other_operands():
    dense_one, labels = np.arange(6.0).reshape(2, 3), np.array([1, 0])
    x, y, weights = ow.to_sklearn(ow.asarray(dense_one), ow.asarray(labels, format="coo"), None)
    assert x is not None
    assert np.shares_memory(x, dense_one)
    assert (y.tolist(), weights) == ([1, 0], None)
    wide = sp.csr_array(dense_one)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    made = ow.to_sklearn(ow.asarray(wide))
    assert made.indices.dtype == made.indptr.dtype == np.int32
    assert np.shares_memory(made.data, wide.data)
    twice = ow.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    assert ow.to_sklearn(twice).data.tolist() == [3.0, 3.0]
    torch = pytest.importorskip("torch")
    recorded = ow.asarray(torch.eye(3, dtype=torch.float64), format="csr").requires_grad_()
    with pytest.raises(ow.UnsupportedError, match="detach"):
        ow.to_sklearn(recorded)
    np.testing.assert_array_equal(ow.to_sklearn(recorded.detach()).toarray(), np.eye(3))
    assert isinstance(ow.to_sklearn(torch.ones(3)), np.ndarray)
    with pytest.raises(ow.UnsupportedError, match="unspecified elements are 1"):
        ow.to_sklearn(ow.asarray(dense_one, format="csr", fill_value=1))
    with pytest.raises(ow.ShapeError, match="samples by features"):
        ow.to_sklearn(ow.zeros((2, 3, 4)))


def test_text(digits):
    texts = (Path(__file__).parent / "scripts" / "text.py").read_text().splitlines()
    counted = TfidfVectorizer().fit_transform(texts)
    t = ow.asarray(counted)
    assert t.nse == counted.nnz
    assert np.shares_memory(t.values, counted.data)
    weighted = t * (t.sum(axis=0).to_numpy() > 1)
    scores = cosine_similarity(ow.to_sklearn(weighted))
    lengths = np.sqrt((weighted * weighted).sum(axis=1).to_numpy())
    lengths[lengths == 0] = 1
    np.testing.assert_allclose(scores, (weighted @ weighted.T).to_numpy() / np.outer(lengths, lengths), atol=1e-12)
    reduced = TruncatedSVD(2, algorithm="arpack", random_state=0).fit_transform(ow.to_sklearn(t))
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=0), np.sort(ow.linalg.svds(t, 2)[1])[::-1])


@pytest.mark.parametrize("name", ["TruncatedSVD", "cosine_similarity", "normalize", "LogisticRegression"])
def test_estimators_that_dispatch_take_a_tensor_as_it_is(name, digits, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    x, y = digits
    want = dense(ESTIMATORS[name](x, y))
    with config_context(array_api_dispatch=True):
        got = ESTIMATORS[name](ow.asarray(x), y)
    assert isinstance(got, ow.Tensor)
    np.testing.assert_allclose(dense(got), want, rtol=1e-4, atol=0.05 if name == "LogisticRegression" else 1e-6)


@pytest.mark.parametrize("format", FORMATS)
def test_principal_components(format, digits):
    x = digits[0][:, :62]
    images = x.toarray()
    t = ow.asarray(x).asformat(format)
    found = ow.linalg.pca(t, 3, v0=np.ones(62))
    mean = images.mean(axis=0)
    u, s, vt = np.linalg.svd(images - mean, full_matrices=False)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.singular_values, s[:3])
    np.testing.assert_allclose(np.abs(found.components), np.abs(vt[:3]), atol=1e-7)
    np.testing.assert_allclose(np.abs(found.scores), np.abs(u * s)[:, :3], atol=1e-7)
    np.testing.assert_allclose(found.transform(t), found.scores, atol=1e-7)
    np.testing.assert_allclose(found.explained_variance_ratio, (s**2 / (s**2).sum())[:3])
    np.testing.assert_allclose(found.explained_variance, s[:3] ** 2 / (len(images) - 1))
    assert (found.components[np.arange(3), np.abs(found.components).argmax(axis=1)] > 0).all()


def test_principal_components_without_centring_and_refusals(digits):
    t = ow.asarray(digits[0])
    found = ow.linalg.pca(t, 2, center=False)
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(digits[0].toarray())[1][:2])
    assert not found.mean.any()
    assert ow.linalg.pca(t.astype("float32"), 1).scores.dtype == np.float32
    assert ow.linalg.pca(t.astype("int64"), 1).scores.dtype == np.float64
    for k in (0, 64):
        with pytest.raises(ow.ShapeError, match=f"k = {k}"):
            ow.linalg.pca(t, k)
    with pytest.raises(ow.DTypeError, match="complex"):
        ow.linalg.pca(t * 1j, 2)

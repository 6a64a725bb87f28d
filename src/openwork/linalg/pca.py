"""A sparse matrix -> its largest singular values and vectors by random vectors; of samples, its principal components.

Centred products are those of the matrix less a product of rank one: nothing is made dense.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import DTypeError, ShapeError, Tensor
from ..advice.table import table_text
from ..advice.units import percent_text
from ..integers import integer
from ..progress import Progress, ignore, reporting
from ..runtime.at_operand import at_operand
from ..storage.buffers import cast, numpy_dtype
from .operands import counts, dense, matrix, numbers, options_of, solve_scalar
from .operator import aslinearoperator, counted, is_operator

__all__ = ["PCA", "SVD", "pca", "randomized_svd"]

Array = np.ndarray[Any, Any]


class SVD(NamedTuple):
    """u (m, k), singular values s (k,), the largest first, vh (k, n).

    Examples
    --------
    >>> A = ow.asarray([[3.0, 0], [0, 2.0], [0, 0]], format="csr")
    >>> ow.linalg.randomized_svd(A, 2, rng=0).s.round(6)
    array([3., 2.])
    """

    u: Array
    s: Array
    vh: Array

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=20, edgeitems=6, linewidth=100):
            return f"SVD(u: {self.u.shape}, s={self.s}, vh: {self.vh.shape})"


@at_operand
def randomized_svd(
    a: Any, k: int = 6, *, oversample: int = 10, iterations: int = 4, rng: Any = None, progress: Progress = None
) -> SVD:  # fmt: skip
    """`k` singular values and vectors of a matrix of any format, or of a LinearOperator, by subspace iteration.

    Parameters
    ----------
    a : Tensor, array or LinearOperator, shape (m, n); `openwork.dask.BlockMatrix` for instance
    k : how many, at most min(m, n)
    oversample : how many vectors more are iterated
    iterations : how often the block is multiplied by A.H @ A; more for singular values that are close together
    rng : a seed or generator of NumPy
    progress : True for a bar on stderr, or a function of (done, total): of blocks of products

    Returns
    -------
    SVD: u, s, vh; s is never above the exact values by more than rounding

    Cost: 2 * iterations + 2 products with k + oversample vectors each, a block at a time, where Lanczos (`svds`) has
    several times as many, one vector at a time.
    Source: Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 53(2), 2011, algorithm 4.4.
    See also: svds, pca, svd.

    Examples
    --------
    >>> A = ow.diags_array([np.arange(1.0, 31.0)], format="csr")
    >>> u, s, vh = ow.linalg.randomized_svd(A, 2, rng=0)
    >>> s.round(1)
    array([30., 29.])
    """
    operator = aslinearoperator(a if is_operator(a) else matrix(a, "randomized_svd"))
    k = integer(k, "randomized_svd", "k", boolean=False)
    oversample = integer(oversample, "randomized_svd", "oversample", boolean=False)
    iterations = integer(iterations, "randomized_svd", "iterations", boolean=False)
    m, n = operator.shape
    if not 1 <= k <= min(m, n) or oversample < 0 or iterations < 0:
        raise ShapeError(
            f"randomized_svd: k={k}, oversample={oversample}, iterations={iterations} of shape {(m, n)}"
            f"\n  expected: k from 1 to {min(m, n)}, the others from 0"
        )
    normal = getattr(operator, "normal_matmat", None) or (lambda x: operator.rmatmat(operator.matmat(x)))
    dtype = np.result_type(operator.dtype, np.float32)
    x = np.random.default_rng(rng).standard_normal((n, min(k + oversample, m, n))).astype(dtype)
    with reporting(progress, "randomized_svd") as passes:
        step = passes.begin("randomized_svd", "products") or ignore
        for done in range(1, iterations + 1):
            x = normal(np.linalg.qr(x)[0])
            step(2 * done, 2 * iterations + 2)
        q = np.linalg.qr(operator.matmat(np.linalg.qr(x)[0]))[0]
        step(2 * iterations + 1, 2 * iterations + 2)
        left, s, vh = np.linalg.svd(operator.rmatmat(q).conj().T, full_matrices=False)
        step(2 * iterations + 2, 2 * iterations + 2)
    return SVD((q @ left)[:, :k], s[:k], vh[:k])


_SHOWN = 20
"""Components that the prompt shows."""
_COLUMNS = ("component", "singular value", "variance", "share", "sum of shares")


class PCA(NamedTuple):
    """Principal components, the largest first.

    scores : (samples, k), the samples in the coordinates of the components
    components : (k, features), of length 1, orthogonal; the largest magnitude of each has a positive sign
    explained_variance : (k,), with one less than the samples as denominator
    explained_variance_ratio : (k,), of the variance of all features
    singular_values : (k,), of the centred matrix
    mean : (features,), zero where it was not centred

    Examples
    --------
    >>> X = ow.asarray([[1.0, 0], [0, 1.0], [2.0, 0]], format="csr")
    >>> found = ow.linalg.pca(X, 1)
    >>> found.scores.shape, found.components.shape
    ((3, 1), (1, 2))
    """

    scores: np.ndarray[Any, Any]
    components: np.ndarray[Any, Any]
    explained_variance: np.ndarray[Any, Any]
    explained_variance_ratio: np.ndarray[Any, Any]
    singular_values: np.ndarray[Any, Any]
    mean: np.ndarray[Any, Any]

    def __repr__(self) -> str:
        return f"{self._title()}\n{table_text(_COLUMNS, self._rows(), (), line=False)}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in self._rows())
        return f"<p>{self._title()}</p><table><tr>{head}</tr>{body}</table>"

    def _title(self) -> str:
        """What is found, in a line."""
        (samples, k), features = self.scores.shape, len(self.mean)
        share = percent_text(float(self.explained_variance_ratio.sum()))
        return f"PCA({samples:,} samples x {features:,} features, k={k}, {share} of the variance)"

    def _rows(self) -> list[list[str]]:
        """Of each of the first components: its number, singular value, variance, its share, the sum of shares."""
        ratios = self.explained_variance_ratio
        columns = self.singular_values, self.explained_variance, ratios, np.cumsum(ratios)
        rows = [
            [str(k + 1), f"{s:.4g}", f"{v:.4g}", percent_text(r), percent_text(c)]
            for k, (s, v, r, c) in enumerate(zip(*(column.tolist() for column in columns), strict=True))
        ]
        return rows if len(rows) <= _SHOWN else [*rows[: _SHOWN - 1], ["..."] * len(_COLUMNS)]

    def transform(self, a: Any) -> np.ndarray[Any, Any]:
        """Scores of other samples: `(a - mean) @ components.T`.

        a : Tensor or array, shape (samples, features)
        """
        product = dense(matrix(a, "pca") @ np.ascontiguousarray(self.components.T))
        scores: np.ndarray[Any, Any] = product - self.mean @ self.components.T
        return scores


def pca(
    a: Any, k: int = 2, *, center: bool = True, v0: Any = None, tol: float | None = 0.0, maxiter: int | None = None,
    solver: str = "arpack", rng: Any = None, progress: Progress = None,
) -> PCA:  # fmt: skip
    """The first `k` principal components of a matrix of samples by features, of any format.

    Parameters
    ----------
    a : Tensor or array of real numbers, shape (samples, features), two samples or more
    k : less than both extents
    center : whether the mean of each feature is taken off; without, the truncated singular value decomposition
    v0, tol, maxiter, solver, rng : those of `scipy.sparse.linalg.svds`
    progress : True for a bar on stderr, or a function of (products, None)

    Returns
    -------
    PCA, a named tuple of NumPy arrays: `scores`, `components`, `explained_variance`, `explained_variance_ratio`,
    `singular_values` and `mean`; its `transform` takes other samples

    Guarantees: equal to the decomposition of the dense centred matrix, up to the solver's tolerance.
    Cost: products with the matrix and two vectors each; nothing of its size is made.
    Raises ShapeError for `k` out of range, DTypeError for complex numbers.

    See also: PCA, svds, to_sklearn.

    Examples
    --------
    >>> X = ow.random((100, 20), 0.1, format="csr", rng=0)
    >>> found = ow.linalg.pca(X, 3)
    >>> found.scores.shape, found.components.shape
    ((100, 3), (3, 20))
    >>> np.allclose(found.transform(X), found.scores)
    True
    """
    import scipy.sparse.linalg as scipys

    t, k = matrix(a, "pca"), integer(k, "pca", "k")
    options = options_of("svds", {"v0": v0, "tol": tol, "maxiter": maxiter, "solver": solver, "rng": rng}, 1)
    counts("pca", options)
    numbers("pca", options)
    scalar = solve_scalar(t)
    if t.ndim != 2 or not 0 < k < min(t.shape):
        raise ShapeError(f"pca: k = {k} of shape {t.shape}\n  expected: 1 or more, less than both extents\n  help: svd")
    if scalar[0] == "c":
        raise DTypeError(f"pca: dtype {t.dtype} is complex\n  help: take the real part first")
    n, dtype = t.shape[0], numpy_dtype(scalar)
    t = Tensor._from_storage(t._storage.with_values(cast(t.values, scalar)))
    mean = dense(t.mean(axis=0)) if center else np.zeros(t.shape[1], dtype)
    operator = aslinearoperator(t)

    def forward(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        product: np.ndarray[Any, Any] = operator.matmat(x) - mean @ x
        return product

    def backward(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        product: np.ndarray[Any, Any] = operator.rmatmat(y) - np.outer(mean, y.sum(axis=0))
        return product

    centred = scipys.LinearOperator(
        t.shape, matvec=lambda x: forward(x.reshape(-1, 1)), rmatvec=lambda y: backward(y.reshape(-1, 1)),
        matmat=forward, rmatmat=backward, dtype=dtype,
    )  # fmt: skip
    with reporting(progress, "pca") as passes:
        u, sigma, vt = scipys.svds(counted(centred, passes.begin("pca", "products")), k=k, **options)
    order = np.argsort(-sigma)
    u, sigma, vt = u[:, order], sigma[order], vt[order]
    signs = np.sign(vt[np.arange(k), np.abs(vt).argmax(axis=1)])
    total = dense((t * t).sum(axis=0)) / n - mean**2
    variance = sigma**2 / (n - 1)
    ratio = variance / (total.sum() * n / (n - 1))
    return PCA(u * sigma * signs, vt * signs[:, None], variance, ratio, sigma, mean)

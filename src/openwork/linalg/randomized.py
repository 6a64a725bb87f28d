"""A matrix or operator -> its largest singular values and vectors, by products with blocks of random vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ShapeError
from ..integers import integer
from ..progress import Progress, ignore, reporting
from ..runtime.at_operand import at_operand
from .operands import matrix
from .operator import aslinearoperator, is_operator

__all__ = ["SVD", "randomized_svd"]

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

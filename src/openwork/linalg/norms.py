"""A vector or matrix of any format -> its norms, trace and integer powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import openwork as ow

from .. import ShapeError, Tensor, UnsupportedError, asarray, eye
from ..integers import integer, integers
from ..ops.axes import axes_of
from ..ops.reductions.norms import p_norm
from ..reals import real
from ..storage.buffers import cast, is_torch, numpy_dtype
from .dense_format import linear_algebra, svdvals
from .eigen import svds
from .operands import matrix, solve_scalar, square

__all__ = ["matrix_norm", "matrix_power", "norm", "trace", "vector_norm"]


def _tensor(x: Any) -> Tensor:
    t = x if isinstance(x, Tensor) else asarray(x)
    return t if t._storage.scalar[0] in "fc" or t._storage.scalar == "bf16" else t.astype("float64")


def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of a vector or matrix of any format, as `numpy.linalg.norm` and `scipy.sparse.linalg.norm` name them.

    Parameters
    ----------
    x : Tensor
    ord : None for the 2-norm of all elements; "fro", 1, -1, 2, inf, -inf, 0 (of vectors), or any p (of vectors)
    axis : an axis for norms of vectors, a pair of them for norms of matrices; None takes all (of rank 1 or 2)
    keepdims : keep the reduced dimensions with extent 1

    Returns
    -------
    Tensor, real, sparse or dense as that of `sum`

    Raises UnsupportedError for norms that need all singular values.

    Cost: O(nse); "nuc", 2 and -2 O(n**3).
    See also: vector_norm, matrix_norm, onenormest.

    Examples
    --------
    >>> float(ow.linalg.norm(ow.asarray([[3.0, 0], [0, 4.0]], format="csr")))
    5.0
    """
    t = _tensor(x)
    if axis is None and ord is None:
        return vector_norm(t, axis=None, keepdims=keepdims)
    sequences = (tuple, list) if is_torch(t.values) else (tuple,)
    axes = tuple(range(t.ndim)) if axis is None else integers(axis, "norm", "axis", boolean=False, sequences=sequences)
    if len(axes) == 1:
        return vector_norm(t, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(f"norm: ord={ord!r} of {len(axes)} dimensions\n  help: name one axis or two")
    return matrix_norm(t, keepdims=keepdims, ord="fro" if ord is None else ord, axis=axes)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The p-norm of the elements over `axis`, all of them without: p any number, inf, -inf, or 0 (which counts).

    Parameters
    ----------
    x : the tensor, of any format

    Returns
    -------
    Tensor, real, without the dimensions `axis`

    Cost: O(nse).
    See also: norm, matrix_norm.

    Examples
    --------
    >>> float(ow.linalg.vector_norm(ow.asarray([3.0, 0, 4.0], format="coo")))
    5.0
    """
    ord = ord if type(ord) is int else real(ord, "vector_norm", "ord")
    return p_norm(_tensor(x), ord, axis, keepdims)


def matrix_norm(
    x: Any, /, *, keepdims: bool = False, ord: Any = "fro", axis: tuple[int, int] = (-2, -1)
) -> Any:  # fmt: skip
    """A norm of matrices: "fro", 1 and -1 (columns), inf and -inf (rows), 2 (of one matrix, by `svds`).

    Of dense format also 2, -2 and "nuc" of stacks, by all singular values.

    Returns
    -------
    Tensor, real, of the batch dimensions

    Cost: O(nse); "nuc", 2 and -2 O(n**3).
    See also: norm, vector_norm, svds.

    Examples
    --------
    >>> float(ow.linalg.matrix_norm(ow.asarray([[3.0, 0], [0, 4.0]], format="csr")))
    5.0
    """
    t = matrix(_tensor(x), "matrix_norm")
    rows, cols = _two_axes(axis, t.ndim)
    if ord == "fro":
        return vector_norm(t, axis=(rows, cols), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        first, second = (rows, cols) if abs(ord) == 1 else (cols, rows)
        sums = p_norm(t, 1, first, True)
        return (sums.max if ord > 0 else sums.min)(axis=(first, second), keepdims=keepdims)
    if ord in (2, -2, "nuc") and t.format.is_dense:
        return _by_singular_values(t, ord, rows, cols, keepdims)
    if ord == 2 and t.ndim == 2:
        return _spectral(t, keepdims)
    raise UnsupportedError(
        f"matrix_norm: ord={ord!r} of shape {t.shape}\n  supported: 'fro', 1, -1, inf, -inf; 2 of one matrix"
        "\n  help: numpy.linalg.norm(A.to_numpy(), ord) for the norms that need all singular values"
    )


def _two_axes(axis: Any, ndim: int) -> tuple[int, int]:
    axes = axes_of(axis, ndim, "matrix_norm")
    if len(axes) != 2:
        raise ShapeError(f"matrix_norm: axis={axis!r}\n  expected: a pair of axes\n  help: vector_norm takes one")
    return axes[0], axes[1]


def _by_singular_values(t: Tensor, ord: Any, rows: int, cols: int, keepdims: bool) -> Tensor:
    order = [*(d for d in range(t.ndim) if d not in (rows, cols)), rows, cols]
    sigma = svdvals(t.transpose(order))
    out = (sigma.sum if ord == "nuc" else sigma.max if ord > 0 else sigma.min)(axis=-1)
    shape = tuple(1 if d in (rows, cols) else n for d, n in enumerate(t.shape) if keepdims or d not in (rows, cols))
    return Tensor._from_dense(out.to_dense().reshape(shape))


def _spectral(t: Tensor, keepdims: bool) -> Tensor:
    if min(t.shape) <= 2:
        largest = np.linalg.norm(t.to_numpy(), 2) if min(t.shape) else 0.0
    elif not bool((t != 0).any()):
        largest = 0.0
    else:  # a vector of ones has no part in the largest singular vector of a graph's Laplacian
        start = np.random.default_rng(0).standard_normal(min(t.shape)).astype(numpy_dtype(t._storage.scalar))
        largest = svds(t, 1, return_singular_vectors=False, v0=start)[0]
    real = np.zeros((), t.to_numpy().dtype if t.size == 0 else numpy_dtype(t._storage.scalar)).real.dtype
    return Tensor._from_dense(np.full((1, 1) if keepdims else (), largest, real))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of the diagonal `offset` of matrices of any format: a Tensor of the batch dimensions.

    Parameters
    ----------
    dtype : of the sum; that of `sum` if left out

    Returns
    -------
    Tensor of the batch dimensions

    Cost: O(nse).
    See also: diagonal.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> float(ow.linalg.trace(L).to_numpy())
    8.0
    """
    t = x if isinstance(x, Tensor) else asarray(x)
    if t.ndim < 2:
        raise ShapeError(f"trace: expected a matrix; got shape {t.shape}\n  help: a trace is over two dimensions")
    return ow.trace(t, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matrix_power(a: Any, n: int, /) -> Any:
    """The product of n factors `a`, by repeated squaring; the identity for n = 0. Of dense format also for negative n.

    Returns
    -------
    Tensor, shape (..., n, n), sparse where `a` is

    Raises UnsupportedError for a negative n of a sparse format.

    Cost: O(log n) products.
    See also: matmul, expm.

    Examples
    --------
    >>> ow.linalg.matrix_power(ow.asarray([[0, 1], [1, 0]], format="csr"), 2).to_numpy()
    array([[1, 0],
           [0, 1]])
    """
    t, n = square(a, "matrix_power"), integer(n, "matrix_power", "n")
    if (t.format.is_dense and (n <= 0 or t.ndim > 2)) or not t.size:
        array = t.to_dense() if n >= 0 else cast(t.to_dense(), solve_scalar(t))
        return Tensor._from_dense(linear_algebra("matrix_power", array, n))
    if n < 0:
        raise UnsupportedError(f"matrix_power: n={n} needs the inverse\n  help: factorized(A), and solve {-n} times")
    if n == 0:
        if t.ndim != 2:
            raise UnsupportedError("matrix_power: n=0 of a stack\n  supported: one matrix")
        return eye(t.shape[0], dtype=t.dtype, format=t.format)
    power: Any = t
    out: Any = None
    while n:
        if n & 1:
            out = power if out is None else out @ power
        n >>= 1
        power = power @ power if n else power
    return out

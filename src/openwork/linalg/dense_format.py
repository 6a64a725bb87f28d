"""Tensors of dense format -> dense decompositions (eig, svd, qr, pinv, ...), by NumPy or torch on the array.

A sparse operand is refused with the name of the function for sparse matrices: nothing is densified in silence. Over
torch values torch computes, so that results have gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import Tensor, UnsupportedError
from ..storage.buffers import as_array, is_torch, numpy_dtype
from .operands import dense_array, matrix, solve_scalar, square

__all__ = [
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "linear_algebra",
    "matrix_rank",
    "pinv",
    "qr",
    "svd",
    "svdvals",
]


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def eigh(x: Any, /) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices of dense format, shape (..., n, n), in ascending order.

    Eigenvalues ascend, shape (..., n); eigenvectors are columns. Only the lower triangle is read.

    Returns
    -------
    tuple (eigenvalues, eigenvectors), shapes (..., n) and (..., n, n)

    Raises UnsupportedError for a sparse format.

    Cost: O(n**3).
    See also: eigsh, eigvalsh, svd.

    Examples
    --------
    >>> values, vectors = ow.linalg.eigh(ow.asarray([[2.0, 0], [0, 3.0]]))
    >>> values.to_numpy()
    array([2., 3.])
    """
    a = _dense_operand(square(x, "eigh"), "eigh", "eigsh(A, k) gives k of the eigenvalues and eigenvectors")
    return EighResult(*(Tensor._from_dense(part) for part in linear_algebra("eigh", a)))


def eigvalsh(x: Any, /) -> Tensor:
    """The eigenvalues of Hermitian matrices, of dense format: ascending, shape (..., n). See `eigh`.

    Returns
    -------
    Tensor, dense, ascending, shape (..., n)

    Cost: O(n**3).
    See also: eigh, eigsh.

    Examples
    --------
    >>> ow.linalg.eigvalsh(ow.asarray([[2.0, 0], [0, 3.0]])).to_numpy()
    array([2., 3.])
    """
    remedy = "eigsh(A, k, return_eigenvectors=False) gives k of the eigenvalues"
    return Tensor._from_dense(linear_algebra("eigvalsh", _dense_operand(square(x, "eigvalsh"), "eigvalsh", remedy)))


def eig(x: Any, /) -> EigResult:
    """The eigenvalues and eigenvectors of square matrices of dense format, shape (..., n, n), in no order.

    Eigenvectors are columns. Raises UnsupportedError for a sparse format.

    Returns
    -------
    tuple (eigenvalues, eigenvectors), shapes (..., n) and (..., n, n), complex

    Cost: O(n**3).
    See also: eigh, eigs, eigvals.

    Examples
    --------
    >>> values, vectors = ow.linalg.eig(ow.asarray([[2.0, 0], [0, 3.0]]))
    >>> np.sort(values.to_numpy().real)
    array([2., 3.])
    """
    a = _dense_operand(square(x, "eig"), "eig", "eigs(A, k) gives k of the eigenvalues and eigenvectors")
    return EigResult(*(Tensor._from_dense(_as_complex(part)) for part in linear_algebra("eig", a)))


def eigvals(x: Any, /) -> Tensor:
    """The eigenvalues of square matrices of dense format: complex, in no order, shape (..., n). See `eig`.

    Returns
    -------
    Tensor, dense, complex, shape (..., n)

    Cost: O(n**3).
    See also: eig, eigs.

    Examples
    --------
    >>> np.sort(ow.linalg.eigvals(ow.asarray([[2.0, 0], [0, 3.0]])).to_numpy().real)
    array([2., 3.])
    """
    remedy = "eigs(A, k, return_eigenvectors=False) gives k of the eigenvalues"
    return Tensor._from_dense(
        _as_complex(linear_algebra("eigvals", _dense_operand(square(x, "eigvals"), "eigvals", remedy)))
    )


def _as_complex(array: Any) -> Any:
    """The array in the complex dtype of its precision: NumPy leaves real what has no imaginary parts."""
    if is_torch(array) or array.dtype.kind == "c":
        return array
    return array.astype(np.complex64 if array.dtype == np.float32 else np.complex128)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition x = U @ diag(S) @ Vh of matrices of dense format, shape (..., m, n).

    Parameters
    ----------
    full_matrices : U and Vh square; without, of min(m, n) columns and rows

    Returns
    -------
    tuple (U, S, Vh) of dense Tensors

    Singular values descend. Raises UnsupportedError for a sparse format.

    Cost: O(n**3).
    See also: svds, svdvals, pca.

    Examples
    --------
    >>> U, S, Vh = ow.linalg.svd(ow.asarray([[3.0, 0], [0, 2.0]]))
    >>> S.to_numpy()
    array([3., 2.])
    """
    a = _dense_operand(matrix(x, "svd"), "svd", "svds(A, k) gives k of the singular values and vectors")
    return SVDResult(*(Tensor._from_dense(p) for p in linear_algebra("svd", a, full_matrices=full_matrices)))


def svdvals(x: Any, /) -> Tensor:
    """The singular values of matrices of dense format: descending, shape (..., min(m, n)). See `svd`.

    Returns
    -------
    Tensor, dense, descending, shape (..., min(m, n))

    Cost: O(n**3).
    See also: svd, svds.

    Examples
    --------
    >>> ow.linalg.svdvals(ow.asarray([[3.0, 0], [0, 2.0]])).to_numpy()
    array([3., 2.])
    """
    remedy = "svds(A, k, return_singular_vectors=False) gives k of the singular values"
    return Tensor._from_dense(_singular_values(_dense_operand(matrix(x, "svdvals"), "svdvals", remedy)))


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """The factors Q of orthonormal columns and R upper triangular, with x = Q @ R, of matrices of dense format.

    Parameters
    ----------
    mode : "reduced", Q of shape (..., m, min(m, n)), or "complete", Q of shape (..., m, m)

    Returns
    -------
    tuple (Q, R) of dense Tensors

    Raises ValueError for another mode, UnsupportedError for a sparse format.

    Cost: O(n**3).
    See also: svd, lsqr.

    Examples
    --------
    >>> Q, R = ow.linalg.qr(ow.asarray([[0, 2.0], [1.0, 0]]))
    >>> np.allclose((Q @ R).to_numpy(), [[0, 2], [1, 0]])
    True
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode {mode!r}\n  expected: 'reduced' or 'complete'")
    a = _dense_operand(matrix(x, "qr"), "qr", "lsqr(A, b) solves least squares")
    return QRResult(*(Tensor._from_dense(part) for part in linear_algebra("qr", a, mode=mode)))


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverses of matrices of dense format: shape (..., n, m).

    Parameters
    ----------
    rtol : singular values up to rtol times the largest count as 0; max(m, n) * eps without; one for each matrix
        where it is an array

    Returns
    -------
    Tensor, dense, shape (..., n, m)

    Raises UnsupportedError for a sparse format.

    Cost: O(n**3).
    See also: inv, lsqr.

    Examples
    --------
    >>> ow.linalg.pinv(ow.asarray([[2.0, 0], [0, 0]])).to_numpy()
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    a = _dense_operand(matrix(x, "pinv"), "pinv", "lsqr(A, b) for pinv(A) @ b")
    tolerance = _tolerance(a, rtol)
    if is_torch(a):
        return Tensor._from_dense(linear_algebra("pinv", a, rtol=tolerance))
    return Tensor._from_dense(linear_algebra("pinv", a, tolerance))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """How many singular values of matrices of dense format are larger than rtol times the largest one: int64.

    Parameters
    ----------
    rtol : max(m, n) * eps without; one for each matrix where it is an array

    Returns
    -------
    Tensor, dense, int64, of the batch dimensions

    Raises UnsupportedError for a sparse format.

    Cost: O(n**3).
    See also: svdvals.

    Examples
    --------
    >>> int(ow.linalg.matrix_rank(ow.asarray([[1.0, 0], [0, 0]])))
    1
    """
    remedy = "svds(A, k) shows how fast the singular values fall"
    a = _dense_operand(matrix(x, "matrix_rank"), "matrix_rank", remedy)
    values = _singular_values(a)
    threshold = (_tolerance(a, rtol) * values[..., 0])[..., None] if values.shape[-1] else 0
    counts = (values > threshold).sum(-1)
    return Tensor._from_dense(counts if is_torch(counts) else np.asarray(counts, np.int64))


def linear_algebra(name: str, *args: Any, **options: Any) -> Any:
    """The function of NumPy's or torch's `linalg`.

    Raises numpy.linalg.LinAlgError where there is no result, for either library.
    """
    if not is_torch(args[0]):
        return getattr(np.linalg, name)(*args, **options)
    import torch

    try:
        return getattr(torch.linalg, name)(*args, **options)
    except torch.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"{name}: {error}") from error


def _dense_operand(t: Tensor, operation: str, remedy: str) -> Any:
    array = dense_array(t)
    if array is None:
        nbytes = t.size * numpy_dtype(solve_scalar(t)).itemsize
        raise UnsupportedError(
            f"{operation} of a sparse tensor of shape {t.shape}: the result is dense, and so would be the work"
            f"\n  supported: tensors of dense format\n  help: {remedy}; asformat('dense') takes {nbytes} bytes"
        )
    return array


def _singular_values(a: Any) -> Any:
    return linear_algebra("svdvals", a) if is_torch(a) else np.linalg.svd(a, compute_uv=False)


def _tolerance(a: Any, rtol: Any) -> Any:
    """The relative tolerance, in the library of `a`."""
    if rtol is None:
        if is_torch(a):
            import torch

            return max(a.shape[-2:]) * torch.finfo(a.dtype).eps
        return max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    tolerance = rtol.to_dense() if isinstance(rtol, Tensor) else rtol
    return tolerance if isinstance(tolerance, float | int) else as_array(tolerance, like=a)

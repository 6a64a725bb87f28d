"""A Hermitian positive definite matrix -> its Cholesky factor: LAPACK's of dense format, a sparse one by SuperLU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interop.constructors import asarray
from ..ops.manipulation.joining import stack
from ..ops.manipulation.shaping import reshape
from ..ops.result_format import to_result_format
from ..storage.buffers import is_torch
from ..tensor.tensor import Tensor
from .dense_format import linear_algebra
from .operands import dense_array, matrices, narrow_indices, scipy_matrix, solve_scalar, square

__all__ = ["cholesky"]


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The factors of Hermitian positive definite matrices: x = L @ L^H, or U^H @ U where `upper`.

    Parameters
    ----------
    x : Tensor, shape (..., n, n), any format; only its lower triangle is read
    upper : give U, the conjugate transpose of L

    Returns
    -------
    Tensor, shape (..., n, n), dense where `x` is, else in its format where that suits: rows and columns stay in their
    order, so what is not zero of the factor depends on it

    Cost: that of SuperLU without pivoting. `factorized` orders columns to keep the factors small, which is better for
    solving. Of a dense tensor over torch values torch's, with gradients.
    Raises numpy.linalg.LinAlgError where a matrix is not positive definite.

    See also: solve, ic0, det.

    Examples
    --------
    >>> A = ow.asarray([[4.0, 2.0], [2.0, 2.0]])
    >>> ow.linalg.cholesky(A).to_numpy()
    array([[2., 0.],
           [1., 1.]])
    """
    t = square(x, "cholesky")
    array = dense_array(t)
    if array is not None:
        try:
            lower = linear_algebra("cholesky", array)
        except np.linalg.LinAlgError as error:
            raise _indefinite_error(t.shape) from error
        if upper:
            lower = lower.mH if is_torch(lower) else np.conjugate(np.swapaxes(lower, -1, -2))
        return Tensor._from_dense(lower)
    scalar = solve_scalar(t)
    factors = [_factor(m, scalar, upper) for m in matrices(t, scalar)]
    if t.ndim == 2:
        return to_result_format(factors[0]._storage, t.format)
    return to_result_format(reshape(stack(factors), t.shape)._storage, t.format)


def _factor(m: Tensor, scalar: str, upper: bool) -> Tensor:
    """The factor of one sparse matrix, from L and the pivots of an LU factorisation that keeps the diagonal."""
    from scipy.sparse import diags_array, tril
    from scipy.sparse.linalg import splu

    matrix = scipy_matrix(m, "csc", scalar)
    lower = tril(matrix, -1, "csc")
    hermitian = (lower + lower.conj().T + diags_array(matrix.diagonal().real, dtype=matrix.dtype)).tocsc()
    options = {"SymmetricMode": True, "DiagPivotThresh": 0.0, "Equil": False}
    try:
        lu = splu(narrow_indices(hermitian), permc_spec="NATURAL", options=options)
    except RuntimeError as error:
        raise _indefinite_error(m.shape) from error
    pivots = lu.U.diagonal().real
    unpermuted = np.array_equal(lu.perm_r, np.arange(len(pivots))) and np.array_equal(lu.perm_c, lu.perm_r)
    if not unpermuted or not bool(np.all(pivots > 0)):
        raise _indefinite_error(m.shape)
    factor = (lu.L @ diags_array(np.sqrt(pivots))).astype(matrix.dtype)
    return asarray(factor.conj().T.tocsc() if upper else factor.tocsc())


def _indefinite_error(shape: tuple[int, ...]) -> Exception:
    return np.linalg.LinAlgError(
        f"cholesky: a matrix of shape {shape} is not positive definite\n  help: factorized(A) is an LU factorisation"
    )

"""A matrix -> its solutions, inverse and determinant, by SuperLU; of dense ones by NumPy or torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import Tensor, UnsupportedError
from ..runtime.gradient_hook import differentiable
from ..storage.buffers import as_array, cast, is_torch, numpy_dtype, to_numpy
from .dense_format import linear_algebra
from .factoring import factorized
from .factorization import Factorization
from .operands import (
    check_rows,
    dense,
    dense_array,
    matrices,
    right_side,
    solve_scalar,
    square,
    value_buffers,
)
from .stacked import broadcast_stacks, solve_stack
from .tridiagonal import is_tridiagonal, solve_tridiagonal

__all__ = ["det", "inv", "slogdet", "solve", "spsolve"]


@differentiable(lambda a, b: value_buffers(a, b))
def solve(a: Any, b: Any, /) -> Any:
    """The solution x of `a @ x = b`, by a direct method.

    Parameters
    ----------
    a : Tensor, shape (..., n, n), any format
    b : a vector (n,), or right sides (..., n, k) whose batch dimensions broadcast with those of `a`

    Returns
    -------
    of the kind of `b`: an array of its library, or a dense Tensor; shape (..., n) for a vector, (..., n, k) else

    Cost: that of SuperLU with a column ordering that keeps fill-in low; O(n) for a `dia` matrix of the three middle
    diagonals, which is solved by a compiled kernel. A matrix of dense format is solved by NumPy, or by torch with
    gradients where it has torch values.
    Raises numpy.linalg.LinAlgError for a singular matrix, ShapeError where the shapes do not fit.

    See also: factorized, cg, spsolve, solve_triangular.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x = ow.linalg.solve(L, b)
    >>> np.allclose(L @ x, b)
    True
    """
    t = square(a, "solve")
    if t.format.is_dense:
        return _solve_dense(t, b)
    right, to_result = right_side(b, a)
    check_rows("solve", t, right)
    if is_tridiagonal(t):
        return solve_tridiagonal(t, b)
    return to_result(solve_stack(t, right, lambda m, r, scalar: Factorization(m, scalar).apply(r)))


def _solve_dense(t: Tensor, b: Any) -> Any:
    """`solve` of a dense matrix by the array library, torch's where either operand is torch's."""
    matrix: Any = t.to_dense()
    right = b.to_dense() if isinstance(b, Tensor) else as_array(b)
    check_rows("solve", t, right)
    like = matrix if is_torch(matrix) else right
    scalar = solve_scalar(t, right)
    matrix, sides = (cast(as_array(x, like=like), scalar) for x in (matrix, right))
    vector = sides.ndim == 1
    sides = sides[:, None] if vector else sides
    broadcast_stacks(t.shape[:-2], sides.shape[:-2])
    try:
        x = linear_algebra("solve", matrix, sides)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"solve: the matrix of shape {t.shape} is singular\n  help: pinv(A) @ b gives the least-squares solution"
        ) from error
    x = x[..., 0] if vector else x
    if isinstance(b, Tensor):
        return Tensor._from_dense(x)
    return x if is_torch(b) else to_numpy(x)


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """`solve`, by SciPy's name and signature; SuperLU factorises, with `permc_spec` its order of columns.

    An array of one column, dense or SciPy's, is a vector, and so is the solution, as there.

    Returns
    -------
    array or Tensor of the kind of `b`

    Cost: that of `splu`.
    See also: solve, factorized.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> np.allclose(L @ ow.linalg.spsolve(L, b), b)
    True
    """
    if not isinstance(b, Tensor) and not is_torch(b):
        b = b if hasattr(b, "tocsc") else np.asarray(b)
        if b.ndim == 2 and b.shape[1] == 1:
            b = (b.toarray() if hasattr(b, "tocsc") else b)[:, 0]
    return solve(A, b) if permc_spec is None else factorized(A, permc_spec=permc_spec).solve(b)


def inv(a: Any, /) -> Any:
    """The inverses of square matrices of dense format, shape (..., n, n).

    Returns
    -------
    Tensor, dense, shape (..., n, n)

    Raises numpy.linalg.LinAlgError for a singular matrix, UnsupportedError for a sparse format: the inverse of a sparse
    matrix is dense, and not what solves systems.

    Cost: O(n**3).
    See also: solve, pinv, factorized.

    Examples
    --------
    >>> ow.linalg.inv(ow.asarray([[2.0, 0], [0, 4.0]])).to_numpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    t = square(a, "inv")
    array = dense_array(t)
    if array is None:
        raise UnsupportedError(
            "inv: the inverse of a sparse matrix has no zeros to speak of"
            "\n  help: solve(A, b) for inv(A) @ b, factorized(A) to solve again and again; inv takes asformat('dense')"
        )
    try:
        return Tensor._from_dense(linear_algebra("inv", array))
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"inv: a matrix of shape {t.shape} is singular\n  help: pinv(A) has a pseudo-inverse for every matrix"
        ) from error


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


@differentiable(value_buffers)
def slogdet(a: Any, /) -> SlogdetResult:
    """(sign, logabsdet) of the determinants of square matrices, through LU; (0, -inf) for a singular one, NaN for both
    of a determinant that is NaN, of which the libraries give signs of 1, -1 and 0.

    Dense Tensors of the batch dimensions; the logarithms are real.

    Returns
    -------
    tuple (sign, logabsdet) of dense Tensors of the batch dimensions

    Cost: that of `splu`.
    See also: det, splu.

    Examples
    --------
    >>> sign, logabs = ow.linalg.slogdet(ow.asarray([[2.0, 0], [0, 3.0]], format="csr"))
    >>> float(sign), round(float(logabs), 3)
    (1.0, 1.792)
    """
    t = square(a, "slogdet")
    scalar, array = solve_scalar(t), dense_array(t)
    if array is not None:
        parts: Any = _signs_of_nan(*linear_algebra("slogdet", array))
    else:
        dtype = numpy_dtype(scalar)
        pairs = [_slogdet(m, scalar) for m in matrices(t, scalar)]
        signs, logs = zip(*pairs, strict=True) if pairs else ((), ())
        arrays = np.array(signs, dtype), np.array(logs, dtype.type(0).real.dtype)
        parts = tuple(x.reshape(t.shape[:-2]) for x in arrays)
    like = t.values if is_torch(t.values) else None
    return SlogdetResult(*(Tensor._from_dense(as_array(p, like=like)) for p in parts))


def _signs_of_nan(sign: Any, log: Any) -> tuple[Any, Any]:
    """Signs and logarithms, the signs NaN where the logarithms are."""
    if is_torch(sign):
        import torch

        return torch.where(log.detach().isnan(), torch.full_like(sign, float("nan")), sign), log
    nan = np.full((), complex(np.nan, np.nan) if np.iscomplexobj(sign) else np.nan, np.asarray(sign).dtype)
    return np.where(np.isnan(log), nan, sign), log


def _slogdet(m: Tensor, scalar: str) -> tuple[Any, Any]:
    try:
        return Factorization(m, scalar).slogdet()
    except np.linalg.LinAlgError:
        dtype = numpy_dtype(scalar)
        if not np.isfinite(to_numpy(m.values)).all():
            return dtype.type(np.nan + (0 if dtype.kind == "f" else 1j * np.nan)), np.full((), np.nan, dtype).real[()]
        return dtype.type(0), -np.full((), np.inf, dtype).real[()]


@differentiable(value_buffers)
def det(a: Any, /) -> Tensor:
    """The determinants of square matrices, through LU; 0 for a singular one. Large ones overflow: see `slogdet`.

    A dense Tensor of the batch dimensions.

    Returns
    -------
    Tensor, dense, of the batch dimensions

    Cost: that of `splu`.
    See also: slogdet, splu.

    Examples
    --------
    >>> float(ow.linalg.det(ow.asarray([[2.0, 0], [0, 3.0]], format="csr")))
    6.0
    """
    t = square(a, "det")
    array = dense_array(t)
    if array is not None:
        determinant = linear_algebra("det", array)
        return Tensor._from_dense(determinant if is_torch(determinant) else np.asarray(determinant))
    sign, log = slogdet(t)
    determinant = np.asarray(dense(sign) * np.exp(dense(log)))
    return Tensor._from_dense(as_array(determinant, like=t.values if is_torch(t.values) else None))

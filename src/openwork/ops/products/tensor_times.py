"""A tensor and vectors, matrices or factors -> their product over some dimensions: `ttv`, `ttm`, `mttkrp`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...format.format import Format
from ...interop.operands import adopt_foreign
from ...provided import provided
from ...runtime.formats import resolve_format
from ...runtime.operation import operation
from ...storage.buffers import is_array
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..axes import axis_of
from .einsum import einsum
from .sparse_by_dense import fibre_product

__all__ = ["contract_to_kept_format", "mttkrp", "mttkrp_subscripts", "ttm", "ttm_letters", "ttv", "ttv_letters"]

_LETTERS = "abcdefghijklmnopq"
"""Of dimensions; `r` and `z` are those of factors."""


def contract_to_kept_format(a: Any, b: Any, left: str, right: str, output: str, format: str | Format | None) -> Any:
    """The product of two operands by letters: `einsum`, but of a sparse tensor with a dense array as `fibre_product`
    stores it, or from there in the format that is asked for."""
    a, b = (adopt_foreign(x.compute() if is_lazy(x) else x) for x in (a, b))
    target = None if format is None else resolve_format(format, len(output))
    if target is None or (set(output) - set(left) and set(output) - set(right) and not target.is_dense):
        arrays = [_dense(x) for x in (a, b)]
        result = fibre_product(a, arrays[1], left, right, output)
        result = fibre_product(b, arrays[0], right, left, output) if result is None else result
        if result is not None:
            return result if target is None else result.asformat(target)
    return einsum(f"{left},{right}->{output}", a, b, format=format)


def _dense(x: Any) -> Any:
    """An operand that is no sparse tensor as an array."""
    if isinstance(x, Tensor):
        return x.to_dense() if x.format.is_dense else x
    return x if is_array(x) else np.asarray(x)


@operation(masked=provided("masked mttkrp"), returns="any", shape="product", dtype="promoted")
def mttkrp(t: Any, factors: list[Any], dim: int, *, format: str | Format | None = None) -> Any:
    """Matricised tensor times Khatri-Rao product: the kernel of alternating least squares for CP decompositions.

    Parameters
    ----------
    t : Tensor, shape (n_0, ..., n_{d-1})
    factors : one array (n_k, r) for each dimension; that of `dim` is not read and may be None
    dim : the dimension that stays
    format : of the result; without, an array: one dimension of the tensor stays, as in a product of matrices

    Returns
    -------
    array (n_dim, r): out[i, r] = sum of t[..., i, ...] times the product over k != dim of factors[k][i_k, r]

    Cost: O(nse * r), less where factors are shared by a fibre.
    Source: Bader and Kolda, Efficient MATLAB computations with sparse and factored tensors, SISC 2007.

    See also: ttm, ttv, decomposition.cp_als.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> ow.mttkrp(T, [None, np.eye(2), np.eye(2)], 0)
    array([[1., 1.],
           [1., 1.]])
    """
    text, others = mttkrp_subscripts(t.ndim, dim)
    if len(factors) != t.ndim:
        raise ShapeError(f"mttkrp: {len(factors)} factors of a tensor of {t.ndim} dimensions\n  help: one for each")
    try:
        return einsum(text, t, *(factors[k] for k in others), format=format)
    except ShapeError:
        shapes = ", ".join("-" if k == dim % t.ndim else str(np.shape(f)) for k, f in enumerate(factors))
        wanted = ", ".join("-" if k not in others else f"({n}, r)" for k, n in enumerate(t.shape))
        raise ShapeError(f"mttkrp: factors {shapes} of a tensor {t.shape}\n  expected: {wanted}") from None


def mttkrp_subscripts(ndim: int, dim: int) -> tuple[str, list[int]]:
    """The sum of products that `mttkrp` is, and the dimensions whose factors it has."""
    letters, dim = _LETTERS[:ndim], axis_of(dim, ndim, "mttkrp", "dim")
    others = [k for k in range(ndim) if k != dim]
    return f"{letters},{','.join(letters[k] + 'r' for k in others)}->{letters[dim]}r", others


@operation(masked=provided("masked ttv"), returns="any", shape="product", dtype="promoted")
def ttv(t: Any, v: Any, dim: int, *, format: str | Format | None = None) -> Any:
    """Tensor times vector: the sum over dimension `dim` of t times v, shape without that dimension.

    format : of the result; without, of a sparse tensor of three dimensions or more and a dense vector, sparse with the
        tensor's levels of the other dimensions; of a matrix an array, as that of `A @ v`

    Parameters
    ----------
    v : a vector (n_dim,)

    Cost: O(nse).
    See also: ttm, mttkrp, tensordot.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> ow.ttv(T, np.array([1.0, 2.0]), 0).to_numpy()
    array([[3., 3.],
           [3., 3.]])
    """
    letters = ttv_letters(t.ndim, dim)
    try:
        return contract_to_kept_format(t, v, *letters, format)
    except ShapeError:
        raise _misfit("ttv", t, dim, v, "") from None


def ttv_letters(ndim: int, dim: int) -> tuple[str, str, str]:
    """The letters of the tensor, of the vector and of the result."""
    letters, d = _LETTERS[:ndim], axis_of(dim, ndim, "ttv", "dim")
    return letters, letters[d], letters[:d] + letters[d + 1 :]


@operation(masked=provided("masked ttm"), returns="any", shape="product", dtype="promoted")
def ttm(t: Any, m: Any, dim: int, *, format: str | Format | None = None) -> Any:
    """Tensor times matrix (n_dim, r): dimension `dim` is replaced by one of extent r.

    format : of the result; without, of a sparse tensor of three dimensions or more and a dense matrix, sparse with the
        tensor's levels of the other dimensions and dense along `dim`; of a matrix an array, as that of `A @ m`

    Parameters
    ----------
    m : a matrix (n_dim, r)

    Cost: O(nse * r).
    See also: ttv, mttkrp, tensordot, decomposition.tucker.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> ow.ttm(T, np.ones((2, 3)), 2).shape
    (2, 2, 3)
    """
    letters = ttm_letters(t.ndim, dim)
    try:
        return contract_to_kept_format(t, m, *letters, format)
    except ShapeError:
        raise _misfit("ttm", t, dim, m, "r") from None


def _misfit(operation: str, t: Any, dim: int, x: Any, rest: str) -> ShapeError:
    """The error of a vector or matrix that does not fit a dimension."""
    return ShapeError(
        f"{operation}: dimension {dim} of a tensor {tuple(t.shape)}, with {np.shape(x)}"
        f"\n  expected: ({t.shape[dim]},{rest and f' {rest}'})"
    )


def ttm_letters(ndim: int, dim: int) -> tuple[str, str, str]:
    """The letters of the tensor, of the matrix and of the result."""
    letters, d = _LETTERS[:ndim], axis_of(dim, ndim, "ttm", "dim")
    return letters, letters[d] + "z", f"{letters[:d]}z{letters[d + 1 :]}"

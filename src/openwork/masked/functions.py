"""The functions of `torch.masked`, by its names and arguments: a tensor and a mask -> a masked tensor.

    ow.masked.sum(A, 1, mask=A > 0)          A: masked tensor, Tensor of any format, array of NumPy's or torch's

torch's own functions read torch's layouts and buffers and cannot be overridden, so these stand beside them. An element
takes part where the mask is True. Without a mask a masked tensor says it, a sparse Tensor by what it stores; all of a
dense one do. A sparse Tensor with a mask has the mask's elements, the fill value where it stores none. Results are
torch's where something takes part, and missing where nothing does, in place of the identity of the operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, Tensor, asarray, broadcast_to, sparse_mask
from ..integers import integer
from ..ops import mask_formats as forms
from ..storage.buffers import Array, as_array, is_array, is_torch
from . import order, products
from .construct import as_masked_tensor, strided_tensor
from .elementwise import binary, unary
from .reductions import reduce
from .structure import restricted, sampled
from .tensor import MaskedTensor, wrap

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _combined(operation: str, input: Any, mask: Any, dtype: Any = None) -> MaskedTensor:
    """The masked tensor of what takes part. Raises ShapeError for a mask that does not broadcast to the input."""
    if isinstance(input, MaskedTensor):
        m = input if mask is None else _narrowed(operation, input, mask)
    elif isinstance(input, Tensor) and not input.format.is_dense and input.ndim:
        m = as_masked_tensor(input if mask is None else _at_mask(operation, input, mask))
    else:
        array = input.to_dense() if isinstance(input, Tensor) else input if is_array(input) else np.asarray(input)
        shape = tuple(array.shape)
        bits = np.ones(shape, np.bool_) if mask is None else _bits(operation, mask, shape)
        m = strided_tensor(array, as_array(bits, like=array))
    return m if dtype is None else m.astype(dtype)


def _bits(operation: str, mask: Any, shape: tuple[int, ...]) -> Array:
    """A mask as a dense bool array of a shape."""
    if isinstance(mask, MaskedTensor):
        mask = mask.filled(False)
    array = mask.to_dense() if isinstance(mask, Tensor) or (is_torch(mask) and not _strided(mask)) else mask
    array = as_array(array) if is_array(array) else np.asarray(array)
    found = array if array.dtype in (np.bool_,) or str(array.dtype) == "torch.bool" else array != 0
    try:
        return _expanded(found, shape)
    except (ValueError, RuntimeError):
        raise _no_broadcast(operation, tuple(found.shape), shape) from None


def _expanded(x: Any, shape: tuple[int, ...]) -> Array:
    """An array repeated to a shape, without a copy."""
    return x.expand(shape) if is_torch(x) else np.broadcast_to(x, shape)


def _no_broadcast(operation: str, mask: tuple[int, ...], shape: tuple[int, ...]) -> ShapeError:
    return ShapeError(f"{operation}: mask of shape {mask}\n  expected: it broadcasts to {shape}\n  help: reshape it")


def _strided(x: Any) -> bool:
    return str(x.layout) == "torch.strided"


def _narrowed(operation: str, m: MaskedTensor, mask: Any) -> MaskedTensor:
    """The elements of a masked tensor where a mask is True too."""
    bits = as_array(_bits(operation, mask, m.shape), like=m.values)
    s = m._tensor._storage
    keep = sampled(s, bits.reshape(s.shape), s.shape)
    return wrap(restricted(m, keep), m._scalar)


def _at_mask(operation: str, t: Tensor, mask: Any) -> Tensor:
    """The elements of a sparse Tensor where a mask is True, in its format, with a bitmap where that stores more."""
    pattern = asarray(mask.filled(False) if isinstance(mask, MaskedTensor) else mask)
    if pattern.shape != t.shape:
        try:
            pattern = broadcast_to(pattern, t.shape)
        except ShapeError:
            raise _no_broadcast(operation, pattern.shape, t.shape) from None
    return sparse_mask(t, pattern.asformat("coo").prune().asformat(forms.fitting(t.format)))


def _reduced(
    op: str, input: Any, dim: Any, keepdim: bool | None, dtype: Any, mask: Any, **options: Any
) -> MaskedTensor:
    return reduce(op, _combined(op, input, mask, dtype), dim, bool(keepdim), **options)


def sum(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The sum of what takes part; integers are summed in 64 bits.

    Cost: O(nse).
    See also: mean, prod, cumsum.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.sum(m))
    3.0
    """
    return _reduced("sum", input, dim, keepdim, dtype, mask)


def prod(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The product of what takes part; integers are multiplied in 64 bits.

    Cost: O(nse).
    See also: sum, cumprod.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.prod(m))
    2.0
    """
    return _reduced("prod", input, dim, keepdim, dtype, mask)


def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The mean of what takes part.

    Cost: O(nse).
    See also: sum, var, median.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.mean(m))
    1.5
    """
    return _reduced("mean", input, dim, keepdim, dtype, mask)


def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The largest of what takes part.

    Cost: O(nse).
    See also: amin, argmax.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.amax(m))
    2.0
    """
    return _reduced("max", input, dim, keepdim, dtype, mask)


def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The least of what takes part.

    Cost: O(nse).
    See also: amax, argmin.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.amin(m))
    1.0
    """
    return _reduced("min", input, dim, keepdim, dtype, mask)


def argmax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """Where the largest of what takes part is first.

    Cost: O(nse).
    See also: amax.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> int(ow.masked.argmax(m))
    1
    """
    return _reduced("argmax", input, dim, keepdim, dtype, mask)


def argmin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """Where the least of what takes part is first.

    Cost: O(nse).
    See also: amin.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> int(ow.masked.argmin(m))
    0
    """
    return _reduced("argmin", input, dim, keepdim, dtype, mask)


def logsumexp(input: Any, dim: Any, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The logarithm of the sum of exponentials of what takes part.

    Cost: O(nse).
    See also: log_softmax.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> round(float(ow.masked.logsumexp(m, 0)), 3)
    2.313
    """
    return _reduced("logsumexp", input, dim, keepdim, dtype, mask)


def norm(
    input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> MaskedTensor:
    """The vector norm of what takes part.

    Cost: O(nse).
    See also: normalize.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.norm(m))
    2.23606797749979
    """
    return _reduced("norm", input, dim, keepdim, dtype, mask, ord=ord)


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Any = None,
) -> MaskedTensor:  # fmt: skip
    """The variance of what takes part; divided by one less than its number, unless `correction` is another.

    Cost: O(nse).
    See also: std, mean.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.var(m))
    0.5
    """
    return _reduced("var", input, dim, keepdim, dtype, mask, correction=_correction(unbiased, correction))


def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Any = None,
) -> MaskedTensor:  # fmt: skip
    """The square root of `var`.

    Cost: O(nse).
    See also: var, mean.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> round(float(ow.masked.std(m)), 3)
    0.707
    """
    return _reduced("std", input, dim, keepdim, dtype, mask, correction=_correction(unbiased, correction))


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if correction is not None:
        return correction
    return 1.0 if unbiased is None else float(unbiased)


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The lower of the two in the middle of what takes part.

    Cost: O(nse log nse).
    See also: mean.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.median(m, 0))
    1.0
    """
    return order.lower_median(_combined("median", input, mask, dtype), integer(dim, "median", "dim"), bool(keepdim))[0]


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """Running sums of what takes part; missing elsewhere.

    Cost: O(size).
    See also: cumprod, sum.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.cumsum(m, 0))
    MaskedTensor(
      [  1.0000,   3.0000,       --]
    )
    """
    return order.cumulative_sum(_combined("cumsum", input, mask, dtype), axis=integer(dim, "cumsum", "dim"))


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """Running products of what takes part; missing elsewhere.

    Cost: O(size).
    See also: cumsum, prod.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.cumprod(m, 0))
    MaskedTensor(
      [  1.0000,   2.0000,       --]
    )
    """
    return order.cumulative_prod(_combined("cumprod", input, mask, dtype), axis=integer(dim, "cumprod", "dim"))


def softmax(input: Any, axis: int = -1, *, dim: int | None = None, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """The exponentials along an axis, divided by their sum, of what takes part.

    Cost: O(nse).
    See also: log_softmax, softmin.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.softmax(m, 0))
    MaskedTensor(
      [  0.2689,   0.7311,       --]
    )
    """
    return products.softmax(_combined("softmax", input, mask, dtype), axis if dim is None else dim)


def log_softmax(
    input: Any, axis: int = -1, *, dim: int | None = None, dtype: Any = None, mask: Any = None
) -> MaskedTensor:
    """The logarithm of `softmax`.

    Cost: O(nse).
    See also: softmax, logsumexp.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.log_softmax(m, 0))
    MaskedTensor(
      [ -1.3133,  -0.3133,       --]
    )
    """
    return products.log_softmax(_combined("log_softmax", input, mask, dtype), axis if dim is None else dim)


def softmin(input: Any, dim: int = -1, *, dtype: Any = None, mask: Any = None) -> MaskedTensor:
    """`softmax` of the negatives.

    Cost: O(nse).
    See also: softmax.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.softmin(m, 0))
    MaskedTensor(
      [  0.7311,   0.2689,       --]
    )
    """
    return products.softmax(unary("neg", _combined("softmin", input, mask, dtype)), integer(dim, "softmin", "dim"))


def normalize(
    input: Any, p: float | None = 2, axis: int = -1, eps: float = 1e-12, *, ord: float | None = None,
    dim: int | None = None, dtype: Any = None, mask: Any = None,
) -> MaskedTensor:  # fmt: skip
    """The elements divided by the norm along an axis of what takes part, no less than `eps`.

    Cost: O(nse).
    See also: norm, layer_norm.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.normalize(m, 2, 0))
    MaskedTensor(
      [  0.4472,   0.8944,       --]
    )
    """
    m = _combined("normalize", input, mask, dtype)
    return products.normalize(m, p if ord is None else ord, axis if dim is None else dim, eps)


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> MaskedTensor:
    """`log(exp(input) + exp(other))` where both take part, the one that does where one does.

    Cost: O(nse of both).
    See also: logsumexp.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.logaddexp(m, m))
    MaskedTensor(
      [  1.6931,   2.6931,       --]
    )
    """
    a, b = _combined("logaddexp", input, input_mask), _combined("logaddexp", other, other_mask)
    out = binary("logaddexp", a, b, "union")
    return out if dtype is None else out.astype(dtype)

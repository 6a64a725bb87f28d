"""Two tensors, sparse or dense -> `tensordot`, `dot`, `inner`, `outer`, `vdot`, `vecdot`, `kron`, `kronsum`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...format import coo
from ...integers import AxisError, integer, integers
from ...interop.constructors import asarray
from ...interop.operands import adopt_foreign
from ...provided import provided
from ...runtime.contraction.kronecker import kronecker
from ...runtime.contraction.sparse import Term, pair, result_format
from ...runtime.conversion.convert import convert
from ...runtime.formats import resolve_format
from ...runtime.operation import operation
from ...runtime.semirings import semiring as semiring_of
from ...runtime.zero_annihilation import FINITE, bounded
from ...storage.buffers import as_array, is_array, is_torch, length, to_numpy
from ...storage.storage import Storage
from ...tensor.lazy import is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..creation import eye, zeros_like
from ..manipulation.shaping import reshape
from .einsum import einsum
from .matmul import matmul

if TYPE_CHECKING:
    from ...format.format import Format
    from ...tensor.tensor import Tensor
from .spgemm import _tensor
from .tensor_times import contract_to_kept_format

__all__ = ["dot", "inner", "kron", "kronsum", "outer", "tensordot", "vdot", "vecdot"]


@operation(method=True, returns="any", shape="product", dtype="promoted", fill="zero", format="product")
def tensordot(
    a: Any, b: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2, format: str | Format | None = None
) -> Any:
    """The sum of products over pairs of dimensions.

    Parameters
    ----------
    a, b : Tensors or dense arrays
    axes : the last `axes` dimensions of `a` with the first ones of `b`, or the dimensions of each, pair by pair

    Returns
    -------
    what `einsum` gives: the other dimensions of `a`, then those of `b`; of a sparse tensor with a dense array, where
    two dimensions of the tensor or more stay, sparse with the tensor's levels of these and dense along the array's

    Guarantees: what `einsum` guarantees; with `axes=0`, where nothing is summed, 0 times infinity or NaN is NaN, as in
    `outer`.
    Raises ShapeError if the dimensions' extents differ or there are fewer than asked for.

    Cost: that of `einsum`.
    See also: einsum, matmul, ttm.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> ow.tensordot(A, A, axes=1).to_numpy()
    array([[2., 0.],
           [0., 2.]])
    """
    a, b = _array(a), _array(b)
    pairs: Any = axes
    if not isinstance(axes, tuple | list) and getattr(axes, "ndim", 0) == 0:
        n = integer(axes, "tensordot", "axes")
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: axes={n} of operands with {a.ndim} and {b.ndim} dimensions\n  help: name fewer"
            )
        pairs = range(a.ndim - n, a.ndim), range(n)
    if len(pairs) != 2:
        raise ShapeError(f"tensordot: axes={axes}\n  expected: a number, or the dimensions of each operand")
    left, right = (
        [_axis("tensordot", d, x.ndim) for d in integers(p, "tensordot", "axes")]
        for p, x in zip(pairs, (a, b), strict=True)
    )
    if len(left) != len(right) or any(a.shape[m] != b.shape[n] for m, n in zip(left, right, strict=False)):
        raise ShapeError(
            f"tensordot: dimensions {left} of shape {tuple(a.shape)} and {right} of shape {tuple(b.shape)} do not pair"
            "\n  help: name as many of each, of equal extents"
        )
    left_letters = ascii_letters[: a.ndim]
    right_letters = list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for m, n in zip(left, right, strict=True):
        right_letters[n] = left_letters[m]
    out = "".join(c for c in (*left_letters, *right_letters) if (c in left_letters) != (c in right_letters))
    are_dense = not any(_is_sparse(x) for x in (a, b))
    if not left and (are_dense or not _all_finite(a, b)):
        product = a[(..., *(None,) * b.ndim)] * b
        if are_dense:
            return product if format is None else asarray(product, format=format)
        of_zeros = contract_to_kept_format(_zeros(a), _zeros(b), left_letters, "".join(right_letters), out, format)
        return product.asformat(of_zeros.format) if _is_tensor(of_zeros) else product.to_dense()
    return contract_to_kept_format(a, b, left_letters, "".join(right_letters), out, format)


@operation(method=True, places="b", returns="product", shape="product", dtype="promoted", fill="zero", format="product")
def dot(a: Any, b: Any, /) -> Any:
    """The sums over the last dimension of `a` and the last but one of `b`, or its only one, as `numpy.dot`.

    Returns
    -------
    `a @ b` where neither has more than two dimensions, `a * b` where one is a number; else what `tensordot` gives:
    the other dimensions of `a`, then those of `b`

    Raises ShapeError if the extents differ.

    Cost: that of `matmul` and `tensordot`.
    See also: matmul, vdot, tensordot.

    Examples
    --------
    >>> ow.dot(ow.asarray([[0, 2], [1, 0]], format="csr"), np.array([10, 20]))
    array([40, 10])
    """
    if type(b) is np.ndarray and type(a) is Tensor and 1 <= b.ndim <= 2 and 1 <= len(a._raw_storage.shape) <= 2:
        return matmul(a, b)
    a, b = (x if getattr(x, "_storage", None) is not None else _array(x) for x in (a, b))
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim == 1 or (a.ndim <= 2 and b.ndim == 2):
        return matmul(a, b)
    return tensordot(a, b, axes=((-1,), (-2,)))


@operation(returns="product", shape="product", dtype="promoted", fill="zero", format="product")
def inner(a: Any, b: Any, /) -> Any:
    """The sums over the last dimensions of both, as `numpy.inner`; `a * b` where one is a number.

    Cost: that of `tensordot`.
    See also: matmul, vecdot, tensordot.

    Examples
    --------
    >>> int(ow.inner(ow.asarray([0, 2, 3], format="coo"), ow.asarray([4, 5, 0], format="coo")))
    10
    """
    a, b = _array(a), _array(b)
    return tensordot(a, b, axes=((-1,), (-1,))) if a.ndim and b.ndim else a * b


@operation(returns="product", shape="product", dtype="promoted", fill="dense")
def vdot(a: Any, b: Any, /) -> Any:
    """The sum of conj(a) * b over all elements, both read as vectors, as `numpy.vdot`.

    Cost: O(nse of both).
    See also: vecdot, inner, dot.

    Examples
    --------
    >>> int(ow.vdot(ow.asarray([0, 2, 3], format="coo"), ow.asarray([4, 5, 0], format="coo")))
    10
    """
    a, b = _array(a), _array(b)
    if tuple(a.shape) == tuple(b.shape) and len(a.shape) <= len(ascii_letters):
        indices = ascii_letters[: len(a.shape)]
        return einsum(f"{indices},{indices}->", _conjugate(a), b)
    return vecdot(_vector(a), _vector(b))


@operation(
    method=True,
    torch=("outer", "ger"),
    masked=provided("masked outer"),
    returns="product",
    shape="product",
    dtype="promoted",
    fill="zero",
    format="product",
)
def outer(a: Any, b: Any, /, *, format: str | Format | None = None) -> Any:
    """The products of all elements of `a` with all of `b`, both read as vectors: shape (a.size, b.size).

    Guarantees: NumPy's result; 0 times infinity or NaN is NaN, unspecified zeros included.

    Cost: O(nse of the result).
    See also: kron, sddmm.

    Examples
    --------
    >>> ow.outer(ow.asarray([0, 2], format="coo"), ow.asarray([3, 0], format="coo")).to_numpy()
    array([[0, 0],
           [6, 0]])
    """
    a, b = (_vector(_array(x)) for x in (a, b))
    return tensordot(a, b, axes=0, format=format)


def _is_sparse(x: Any) -> bool:
    return _is_tensor(x) and not x.format.is_dense


def _zeros(x: Any) -> Any:
    """Without elements in the format of `x`, if it is sparse."""
    return zeros_like(x).asformat(x.format) if _is_sparse(x) else x


def _all_finite(*operands: Any) -> bool:
    """Whether all operands are finite and of fill value 0, so that every unspecified product of two elements is 0."""
    return all(
        not x._storage.fill_value and bounded(x._storage.values, FINITE)
        if _is_tensor(x)
        else bool(np.isfinite(to_numpy(x, detach=True)).all())
        for x in operands
    )


@operation(
    method=True,
    torch=("vdot", "vecdot(a, b, /, dim: axis = -1)"),
    masked=provided("masked vecdot"),
    returns="product",
    shape="product",
    dtype="promoted",
    fill="zero",
    format="product",
)
def vecdot(a: Any, b: Any, /, *, axis: int = -1) -> Any:
    """The sum over `axis` of conj(a) * b, the other dimensions broadcast.

    Raises ShapeError if the extents along `axis` differ.

    Cost: O(nse of both).
    See also: vdot, inner, matmul.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 3]], format="csr")
    >>> ow.vecdot(A, A).to_numpy()
    array([ 4, 10])
    """
    a, b = (_axis_last(_array(x), axis) for x in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"vecdot: extents {a.shape[-1]} and {b.shape[-1]} along axis {axis}\n  help: slice or transpose an operand"
        )
    return einsum("...i,...i->...", _conjugate(a), b)


@operation(method=True, torch="kron", dtype="promoted", shape="multiplied", fill="f(fill)", format="sparse")
def kron(a: Any, b: Any, /, *, format: str | Format | None = None) -> Tensor:
    """The Kronecker product: every element of `a` times the whole of `b`, in blocks.

    Parameters
    ----------
    a, b : Tensors or dense arrays; the one with fewer dimensions gets ones in front
    format : the result's; without, that of the operands where it is the same, else "csr", or "coo" by rank

    Returns
    -------
    Tensor, shape the products of the operands' extents

    Guarantees: NumPy's result; 0 times infinity or NaN is NaN, unspecified zeros included.
    Cost: O(nse of the result) and one conversion.

    See also: kronsum, outer, block_diag.

    Examples
    --------
    >>> ow.kron(ow.eye(2), np.array([[1, 2]])).to_numpy()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    a, b = one_library(*(x if _is_tensor(x) else asarray(x) for x in (a, b)))
    ndim = max(a.ndim, b.ndim)
    stored = [x._storage for x in (a, b)]
    if not _all_finite(a, b):
        return _kron_with_fill(a, b, format)
    direct = kronecker(*stored)
    if direct is not None:
        target = result_format(stored, direct.shape) if format is None else resolve_format(format, ndim)
        return _tensor(convert(direct, target))
    letters = ascii_letters[:ndim], ascii_letters[ndim : 2 * ndim]
    left, right = (Term(group[ndim - len(s.shape) :], s) for group, s in zip(letters, stored, strict=True))
    product = pair(left, right, left.letters + right.letters, semiring_of("plus_times"))
    shapes = [(1,) * (ndim - x.ndim) + tuple(x.shape) for x in (a, b)]
    if ndim == 0:
        return _tensor(product.storage)
    s = convert(product.storage, coo(a.ndim + b.ndim))
    crd_of = {c: to_numpy(x) for c, x in zip(product.letters, s.crd, strict=True)}
    zero = np.zeros(1, np.int64)
    crd = [
        crd_of.get(high, zero).astype(np.int64) * shapes[1][d] + crd_of.get(low, zero)
        for d, (high, low) in enumerate(zip(*letters, strict=True))
    ]
    shape = tuple(m * n for m, n in zip(*shapes, strict=True))
    target = result_format(stored, shape) if format is None else resolve_format(format, ndim)
    return _tensor(convert(_to_unordered_coo(crd, shape, s), target))


@operation(shape="multiplied", dtype="promoted", fill="zero", format="sparse")
def kronsum(a: Any, b: Any, /, format: str | Format | None = None) -> Tensor:
    """The Kronecker sum `kron(I, a) + kron(b, I)` of square matrices, the identities as large as the other one.

    format : the result's; without, that of the sum. Raises ShapeError for what is no square matrix.

    Cost: O(nse of the result).
    See also: kron, diags_array.

    Examples
    --------
    >>> A = ow.asarray([[0, 1], [1, 0]], format="csr")
    >>> ow.kronsum(A, A).to_numpy()
    array([[0, 1, 1, 0],
           [1, 0, 0, 1],
           [1, 0, 0, 1],
           [0, 1, 1, 0]])
    """
    a, b = (x if _is_tensor(x) else asarray(x) for x in (a, b))
    for x in (a, b):
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise ShapeError(f"kronsum: a matrix of shape {tuple(x.shape)}\n  expected: square\n  help: use kron")
    ones = [eye(x.shape[0], dtype=x.dtype, format="csr") for x in (b, a)]
    out = kron(ones[0], a) + kron(b, ones[1])
    return out if format is None else out.asformat(format)


def _kron_with_fill(a: Tensor, b: Tensor, format: object) -> Tensor:
    """`kron` where unspecified elements take part: the elementwise product of a[i, 1, j, 1] and b[1, k, 1, l]."""
    ndim = max(a.ndim, b.ndim)
    shapes = [(1,) * (ndim - x.ndim) + tuple(x.shape) for x in (a, b)]
    expanded = [
        reshape(x, tuple(n for m in s for n in ((m, 1), (1, m))[k]))
        for k, (x, s) in enumerate(zip((a, b), shapes, strict=True))
    ]
    product = reshape(expanded[0] * expanded[1], tuple(m * n for m, n in zip(*shapes, strict=True)))
    if format is None:
        format = result_format([x._storage for x in (a, b)], product.shape)
    return product.asformat(resolve_format(format, ndim))


def _to_unordered_coo(crd: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...], s: Storage) -> Storage:
    """The values of `s` at coordinates in any order -> unordered COO of another shape."""
    count = length(s.values)
    index_dtype = np.int32 if max((*shape, count)) < 2**31 else np.int64
    like = s.values
    pos = as_array(np.array([0, count], index_dtype), like=like)
    arrays = tuple(
        as_array(np.ascontiguousarray(np.broadcast_to(c, count).astype(index_dtype)), like=like) for c in crd
    )
    format = coo(len(shape), unique=False, ordered=False)
    return Storage(shape, format, s.scalar, s.fill_value, (pos, *(None,) * (len(shape) - 1)), arrays, like)


def _is_tensor(x: Any) -> bool:

    return isinstance(x, Tensor)


def _array(x: Any) -> Any:
    x = x.compute() if is_lazy(x) else x
    x = adopt_foreign(x)
    return x if _is_tensor(x) or is_array(x) else np.asarray(x)


def _axis(operation: str, d: int, ndim: int) -> int:
    d = integer(d, operation, "axis", boolean=operation != "vecdot")
    if not -ndim <= d < ndim:
        raise AxisError(f"{operation}: axis {d} of {ndim} dimensions\n  help: axes are {-ndim} to {ndim - 1}")
    return d % ndim


def _vector(x: Any) -> Any:
    """All elements in one dimension, row-major."""
    if not _is_tensor(x):
        return x.reshape(-1)
    if x.ndim == 1:
        return x
    if x.format.is_dense:
        return type(x)._from_dense(x.to_dense().reshape(-1))
    s = convert(x._storage, coo(x.ndim))
    linear = np.zeros(length(s.values), np.int64)
    for c, n in zip(s.crd, s.shape, strict=True):
        linear = linear * n + to_numpy(c)
    return _tensor(convert(_to_unordered_coo([linear], (math.prod(s.shape),), s), coo(1)))


def _axis_last(x: Any, axis: int) -> Any:
    """The operand with dimension `axis` last."""
    d = _axis("vecdot", axis, x.ndim)
    order = [k for k in range(x.ndim) if k != d] + [d]
    if order == list(range(x.ndim)):
        return x
    return x.permute(order) if is_torch(x) else x.transpose(order)


def _conjugate(x: Any) -> Any:
    if _is_tensor(x):
        s = x._storage
        return x if s.scalar[0] != "c" else _tensor(s.with_values(_conjugate(s.values), s.fill_value.conjugate()))
    return np.conjugate(x) if isinstance(x, np.ndarray) else x.conj().resolve_conj()

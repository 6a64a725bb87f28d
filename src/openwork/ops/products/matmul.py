"""`matmul`: two operands -> their matrix product; two sparse operands go to `spgemm`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ... import tuning
from ...errors import ShapeError, UnsupportedError
from ...interop.operands import adopted, sparse_or_array
from ...ir.index import Access, Apply, Assignment
from ...provided import provided
from ...runtime.contract import contract
from ...runtime.contraction.small_product import small_product
from ...runtime.duplicates import summed
from ...runtime.operation import operation
from ...runtime.outer_ranges import STEP
from ...runtime.promote import promote
from ...runtime.strided import Strided, strided
from ...storage.buffers import Array, as_array, cast, dtype_of, is_torch, library_of, scalar_of, torch_module
from ...storage.scalars import largest
from ...storage.storage import Storage
from ...tensor.lazy import Lazy, defer
from ...tensor.tensor import Tensor
from .dense import dense_matmul
from .spgemm import sparse_matmul

__all__ = ["matmul"]

_EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}


@operation(
    lazy=True,
    torch=("matmul", "mm", "mv", "bmm"),
    masked=provided("masked matmul"),
    returns="product",
    shape="product",
    dtype="promoted",
    fill="zero",
    format="product",
)
def matmul(a: Any, b: Any, /, *, out: Any = None) -> Any:
    """The matrix product with NumPy's rules for vectors and stacks of matrices.

    Parameters
    ----------
    a, b : Tensor or dense array; at least one a Tensor
    out : the array or dense Tensor that the product is written to and that is returned, as numpy.matmul's, or
        torch.matmul's where it is torch's

    Returns
    -------
    an array of the dense operand's library; a dense Tensor where both operands are Tensors; of two sparse tensors a
    sparse one, in their format where it is the same, else "csr" (see `spgemm`, which takes semirings and masks)

    Guarantees: a sparse operand is walked in its own format, nothing is densified. Floating-point sums may
    differ from a dense product in their order; what is unspecified takes no part, whatever infinity or NaN it meets.
    Cost: O(nse * columns). A dense operand that is not contiguous along the columns is packed once.
    Raises ShapeError if the inner extents differ, or where `out` has another shape, DTypeError where it has a dtype
    that the product's does not cast to.

    See also: einsum, addmm, spgemm, sddmm.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> ow.matmul(A, np.array([10.0, 20.0]))
    array([40., 10.])
    """
    if out is not None:
        library = torch_module() if is_torch(out.values if isinstance(out, Tensor) else out) else np
        return library.matmul(a, b, out=out)
    if type(a) is Lazy or type(b) is Lazy:
        return defer("matmul", "matmul", matmul, (a, b))
    a, b = adopted(a, b)
    both = isinstance(a, Tensor) and isinstance(b, Tensor)
    if both and len(a.shape) == 2 == len(b.shape) and a.shape[1] == b.shape[0]:
        small = small_product(a._storage, b._storage)
        if small is not None:
            return Tensor._from_storage(small)
    a = a if type(a) is np.ndarray else sparse_or_array(a)
    b = b if type(b) is np.ndarray else sparse_or_array(b)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        _check_shapes(tuple(a.shape), tuple(b.shape))
        result = dense_matmul(a, b)
        return Tensor._from_dense(result) if both else result
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        _check_shapes(a.shape, b.shape)
        return sparse_matmul(a, b)
    result = _product(a, b)
    return Tensor._from_dense(result) if both else result


@lru_cache(maxsize=256)
def product_statement(
    a: int, b: int, ones_a: tuple[int, ...], ones_b: tuple[int, ...], sparse_left: bool
) -> Assignment:
    """`y[..., i, k] += A[..., i, j] * x[..., j, k]` for operands of ranks a and b.

    ones_a, ones_b: stack dimensions of extent one that broadcast. Those of the sparse operand get an index of
    their own, those of the dense one are left out (the caller drops them).
    """
    stacks = max(a, b, 2) - 2
    names = [f"b{k}" for k in range(stacks)]

    def indices(ndim: int, core: tuple[str, ...], ones: tuple[int, ...], sparse: bool) -> tuple[str, ...]:
        if ndim == 1:
            return ("j",)
        stack = names[stacks - (ndim - 2) :]
        stack_indices = [f"u{d}" if d in ones and sparse else s for d, s in enumerate(stack) if sparse or d not in ones]
        return (*stack_indices, *core)

    left = indices(a, ("i", "j"), ones_a, sparse_left)
    right = indices(b, ("j", "k"), ones_b, not sparse_left)
    out = (*names, *(("i",) if a > 1 else ()), *(("k",) if b > 1 else ()))
    return Assignment(Access("y", out), "+=", Apply("mul", (Access("A", left), Access("B", right))))


def _check_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if not a or not b:
        raise ShapeError(f"matmul: a scalar has no matrix product, got shapes {a} and {b}\n  help: multiply with *")
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise ShapeError(
            f"matmul: inner extents differ, {a[-1]} and {inner}, in shapes {a} and {b}"
            "\n  help: transpose an operand with .T, or check the order of the operands"
        )
    if len(a) < 3 or len(b) < 3:
        return
    for m, n in zip(a[-3::-1], b[-3::-1], strict=False):
        if m != n and 1 not in (m, n):
            raise ShapeError(f"matmul: stacks of shapes {a[:-2]} and {b[:-2]} do not broadcast\n  help: reshape one")


def _product(a: Any, b: Any) -> Array:
    """The product of a sparse tensor and a dense array, in either order."""

    left = isinstance(a, Tensor)
    storage: Storage = a._storage if left else b._storage
    array: Array = b if left else a
    shape_a, shape_b = (storage.shape, tuple(array.shape)) if left else (tuple(array.shape), storage.shape)
    _check_shapes(shape_a, shape_b)
    if storage.fill_value:
        return _filled_product(storage, array, left)
    view = strided(array)
    ones_a: tuple[int, ...] = ()
    ones_b: tuple[int, ...] = ()
    if array.ndim > 2 or len(storage.shape) > 2:
        ones_a, ones_b = _unit_stack_dims(shape_a, shape_b)
        view = _drop_unit_dims(view, ones_b if left else ones_a)
    stmt = product_statement(len(shape_a), len(shape_b), ones_a, ones_b, left)
    scalar = promote((storage.scalar, view.scalar), "numpy" if type(array) is np.ndarray else library_of(array))
    sparse, dense = ("A", "B") if left else ("B", "A")
    return contract(stmt, {sparse: storage, dense: view}, scalar, array)


def _unit_stack_dims(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Stack dimensions of extent one, of either operand, that the other one stretches or also has."""

    def ones(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        stack, other = x[:-2], y[:-2]
        pairs = [(d, other[d - len(stack)] if len(stack) - d <= len(other) else None) for d in range(len(stack))]
        return tuple(d for d, n in pairs if stack[d] == 1 and n is not None and n != 1)

    return ones(a, b), ones(b, a)


def _drop_unit_dims(view: Strided, dims: tuple[int, ...]) -> Strided:
    """The view without the dimensions `dims`, of extent one."""
    if not dims:
        return view
    remaining = [d for d in range(len(view.shape)) if d not in dims]
    owner = view.owner.reshape(tuple(view.shape[d] for d in remaining))
    return strided(owner)


def _filled_product(storage: Storage, array: Array, left: bool) -> Array:
    """The product of a storage whose fill value f is not 0: that of its values less f, and f times the array's sums.

    All in the dtype of the result, as less than f may not be in that of the storage; bool is counted in int64. Where
    values less f would lose their digits, ranges of the tensor are dense in turn: O(size) time, and memory for a range.
    Of duplicates, f is subtracted from the sum.
    """
    storage = summed(storage)
    fill = storage.fill_value
    scalar = promote((storage.scalar, scalar_of(array)), library_of(array))
    counted = "i64" if scalar == "bool" else scalar
    fill, array = (int(fill) if isinstance(fill, bool) else fill), cast(array, counted)
    if _loses_values(storage, counted):
        product = _product_by_ranges(Tensor._from_storage(storage).astype(dtype_of(counted, array)), array, left)
        return as_array(cast(product, scalar))
    less = Tensor._from_storage(storage.with_values(cast(storage.values, counted) - fill, 0))
    result = _product(less, array) if left else _product(array, less)
    result = as_array(result + _fill_contribution(fill, array, left, storage.shape))
    return cast(result != 0 if scalar == "bool" else result, scalar)


def _loses_values(s: Storage, counted: str) -> bool:
    """Whether, in the dtype of the products, a fill value is infinite or NaN, or so large that a value less it is
    infinite or keeps less than half of its digits; never of integers, whose differences and sums are exact.
    """
    if counted not in _EPSILON:
        return False
    if not np.isfinite(s.fill_value):
        return True
    sizes, fill, epsilon = abs(cast(s.values, counted)), abs(s.fill_value), _EPSILON[counted]
    small = (sizes < fill * epsilon**0.5) & ((sizes > 0) | (fill * epsilon >= 1))
    return bool((small | (sizes > largest(counted) - fill) & (sizes < float("inf"))).any())


def _product_by_ranges(t: Tensor, array: Array, left: bool) -> Array:
    """The product, of ranges of rows or columns of a matrix made dense in turn; of other ranks at once.

    Raises UnsupportedError for tensors of which every element cannot be visited.
    """
    if t.size > tuning.VISITED_ELEMENTS:
        raise UnsupportedError(
            f"matmul of a tensor of shape {t.shape} whose fill value {t.fill_value} hides the digits of its elements"
            "\n  help: with_values(A.values, fill_value=0), and add what the fill value gives"
        )
    if t.ndim != 2:
        dense = t.to_dense()
        return dense_matmul(dense, array) if left else dense_matmul(array, dense)
    n, width = t.shape if left else t.shape[::-1]
    step = max(1, STEP // max(width, 1))
    parts = []
    for first in range(0, n, step) if n else [0]:
        if left:
            parts.append(dense_matmul(t[first : first + step].to_dense(), array))
        else:
            parts.append(dense_matmul(array, t[:, first : first + step].to_dense()))
    axis = -1 if not left or array.ndim == 1 else -2
    if is_torch(array):
        import torch

        return torch.cat(parts, axis)
    return np.concatenate(parts, axis)


def _fill_contribution(fill: Any, array: Array, left: bool, sparse: tuple[int, ...]) -> Array:
    """The contribution of a fill value to the product: fill times the sums of the dense operand."""
    if left:
        sums = array.sum(0 if array.ndim == 1 else -2)
        sums = sums if len(sparse) == 1 or array.ndim == 1 else sums[..., None, :]
    else:
        sums = array.sum(-1)
        sums = sums if len(sparse) == 1 or array.ndim == 1 else sums[..., :, None]
    return fill * sums

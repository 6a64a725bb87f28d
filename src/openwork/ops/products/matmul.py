"""`matmul`: one sparse operand with a dense one here, two sparse ones in `tensor_products`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ... import tuning
from ...checked import CHECKED
from ...codegen import pool
from ...errors import ShapeError
from ...interop.operands import adopted, plain
from ...ir.index import Access, Apply, Assignment
from ...late import late
from ...runtime import trace
from ...runtime.contract import contract
from ...runtime.contraction.prepared import quick_product
from ...runtime.gradient_hook import rule, tracked, transformed
from ...runtime.operation import operation
from ...runtime.prepared import Ready, key_of, recall, remember
from ...runtime.prepared_results import template
from ...runtime.promote import compute_scalar, promote
from ...runtime.strided import LINE, Strided, fresh, on_lines, strided
from ...storage.buffers import Array, address, bare, is_torch, length, library_of, numpy_dtype
from ...storage.memory import LARGE
from ...storage.storage import Storage
from ...tensor.lazy import defer, is_lazy
from ...tensor.tensor import Tensor
from .spgemm import sparse_matmul

__all__ = ["matmul"]


SMALL = tuning.RECORDED_PRODUCT


@operation(
    lazy=True,
    torch=("matmul", "mm", "mv", "bmm", "smm", "hspmm"),
    masked=late("masked.products", "matmul"),
    returns="product",
    shape="product",
    dtype="promoted",
)
def matmul(a: Any, b: Any, /) -> Any:
    """The matrix product with NumPy's rules for vectors and stacks of matrices.

    Parameters
    ----------
    a, b : Tensor or dense array; at least one a Tensor

    Returns
    -------
    an array of the dense operand's library; a dense Tensor where both operands are Tensors; of two sparse tensors a
    sparse one, in their format where it is the same, else "csr" (see `spgemm`, which takes semirings and masks)

    Guarantees: a sparse operand is walked in its own format, nothing is densified. Floating-point sums may
    differ from a dense product in their order.
    Cost: O(nse * columns). A dense operand that is not contiguous along the columns is packed once.
    Raises ShapeError if the inner extents differ.
    """
    left = type(b) is np.ndarray
    if left is not (type(a) is np.ndarray) and not trace.steps:
        array, storage = (b, getattr(a, "_storage", None)) if left else (a, getattr(b, "_storage", None))
        if storage is not None:
            ready = (storage._plans or storage.plans).products.get((left, array.shape, array.dtype))
            if ready is not None and (y := ready.run(array, storage)) is not None:
                return y
    elif _torch is not None and not trace.steps:
        left = type(b) is _torch.Tensor
        array, x = (b, a) if left else (a, b)
        if type(array) is _torch.Tensor and hasattr(type(x), "_kept"):
            s = x._storage
            ready = (s._plans or s.plans).products.get((left, array.shape, array.dtype))
            if ready is not None and (y := ready.run(array, s, type(x) is Tensor)) is not None:
                return y
    return _matmul(a, b)


_torch: Any = None
"""torch, once a product of its tensors was prepared."""
_forward: Any = None
"""torch's state of forward derivatives."""
_address: Callable[[Any], int] = address
"""The address of a torch tensor that is known to have one."""


class _Product:
    """A product ready to run on an array of known shape and dtype."""

    __slots__ = ("dtype", "lined", "make", "ready", "shape")

    def __init__(self, ready: Ready, shape: tuple[int, ...], scalar: str) -> None:
        self.ready, self.shape, self.dtype = ready, shape, numpy_dtype(scalar)
        self.lined = ready.inputs[0][2]
        self.make: Callable[..., Any] = np.zeros
        if ready.prepared.schedule.writes_all:
            self.make = fresh if math.prod(shape) * self.dtype.itemsize >= LARGE else np.empty

    def run(self, b: np.ndarray[Any, Any], storage: Storage) -> np.ndarray[Any, Any] | None:
        """The product with an array of the known shape and dtype; None where the launch does not hold for it."""
        flags = b.flags
        if not (flags.c_contiguous and flags.aligned and self.ready.threads == pool.threads):
            return None
        y: np.ndarray[Any, Any] = self.make(self.shape, self.dtype)
        if self.lined and address(b) % LINE:
            b = on_lines(strided(b)).owner
        self.ready.start_one((storage._addresses or storage.addresses)[-1], address(b), address(y))
        return y


class _TorchProduct(_Product):
    """A product ready to run on a tensor of torch's of known shape and dtype."""

    __slots__ = ("itemsize", "like", "step")

    def __init__(self, ready: Ready, like: Any, itemsize: int, step: Any = None) -> None:
        self.ready, self.shape, self.dtype, self.lined = ready, like.shape, like.dtype, False
        self.step = step
        self.make = _torch.empty_like if ready.prepared.schedule.writes_all else _torch.zeros_like
        self.like = template(like.detach())
        self.itemsize = itemsize

    def run(self, b: Any, storage: Storage, plain: bool = True) -> Any:
        """The product with a tensor of the known shape and dtype, recorded where torch records, of a `plain` Tensor;
        None where the launch does not hold for it: no plain memory, or a tangent or a transform takes part."""
        if self.ready.threads != pool.threads or b.layout is not _torch.strided or not b.is_cpu:
            return None
        if _forward._current_level >= 0 or _torch._C._functorch.maybe_current_level() is not None:
            return None
        at, values = _address(b), storage.values
        if not at or at % self.itemsize or not b.is_contiguous() or b.is_neg() or (b.is_complex() and b.is_conj()):
            return None
        if (b.requires_grad or values.requires_grad) and _torch.is_grad_enabled():
            return None if self.step is None or not plain else self.step(storage, b)
        y = self.make(self.like)
        self.ready.start_one(_address(values), at, _address(y))
        return y


def _checked_address(x: Any) -> int:
    return address(x.detach())


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
        kept = [f"u{d}" if d in ones and sparse else s for d, s in enumerate(stack) if sparse or d not in ones]
        return (*kept, *core)

    left = indices(a, ("i", "j"), ones_a, sparse_left)
    right = indices(b, ("j", "k"), ones_b, not sparse_left)
    out = (*names, *(("i",) if a > 1 else ()), *(("k",) if b > 1 else ()))
    return Assignment(Access("y", out), "+=", Apply("mul", (Access("A", left), Access("B", right))))


def _matmul(a: Any, b: Any) -> Any:

    if is_lazy(a) or is_lazy(b):
        return defer("matmul", "matmul", matmul, (a, b))
    a, b = adopted(a), adopted(b)
    both = isinstance(a, Tensor) and isinstance(b, Tensor)
    if both and len(a.shape) == 2 == len(b.shape) and a.shape[1] == b.shape[0] and not trace.steps:
        small = quick_product(a._storage, b._storage)
        if small is not None:
            return Tensor._from_storage(small)
    a, b = plain(a), plain(b)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        _check_shapes(tuple(a.shape), tuple(b.shape))
        result = a @ b
        return Tensor._from_dense(result) if both else result
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        _check_shapes(a.shape, b.shape)
        return sparse_matmul(a, b)
    result = _product(a, b)
    return Tensor._from_dense(result) if both else result


def _check_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if not a or not b:
        raise ShapeError(f"matmul: a scalar has no matrix product, got shapes {a} and {b}\n  help: multiply with *")
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise ShapeError(
            f"matmul: inner extents differ, {a[-1]} and {inner}, in shapes {a} and {b}"
            "\n  help: transpose an operand with .T, or check the order of the operands"
        )
    for m, n in zip(a[-3::-1], b[-3::-1], strict=False):
        if m != n and 1 not in (m, n):
            raise ShapeError(f"matmul: stacks of shapes {a[:-2]} and {b[:-2]} do not broadcast\n  help: reshape one")


def _product(a: Any, b: Any) -> Array:
    """The product of a sparse tensor and a dense array, in either order."""

    left = isinstance(a, Tensor)
    storage: Storage = a._storage if left else b._storage
    array: Array = b if left else a
    _check_shapes(tuple(a.shape), tuple(b.shape))
    view = strided(array)
    ones_a, ones_b = _broadcast(tuple(a.shape), tuple(b.shape))
    dropped = _drop(view, ones_b if left else ones_a)
    stmt = product_statement(a.ndim, b.ndim, ones_a, ones_b, left)
    scalar = promote((storage.scalar, view.scalar), library_of(array))
    sparse, dense = ("A", "B") if left else ("B", "A")
    shifted = _without_fill(storage)
    values = {sparse: shifted, dense: dropped}
    result = contract(stmt, values, scalar, array)
    if storage.fill_value:
        return result + _fill_part(storage.fill_value, array, left, storage.shape)
    if storage.batches == 1 and len(storage.shape) == 2:
        if not is_torch(array):
            _remember(stmt, values, scalar, storage, array, result, left)
        elif storage.library == "torch":
            _remember_torch(stmt, values, scalar, storage, array, result, left)
    return result


def _remember_torch(
    stmt: Assignment, values: Any, scalar: str, storage: Storage, array: Any, result: Any, left: bool
) -> None:
    """The same of a tensor of torch's; what is recorded, or no plain memory, is asked at every call."""
    global _torch, _forward, _address
    torch = sys.modules["torch"]
    if compute_scalar(scalar) != scalar or type(array) is not torch.Tensor or type(result) is not torch.Tensor:
        return
    if torch.compiler.is_compiling() or not array.is_contiguous() or transformed((storage.values, array, result)):
        return
    sparse, dense = ("A", "B") if left else ("B", "A")
    recorded = tracked((storage.values, array, result))
    step = None
    if recorded:
        if array.dtype != result.dtype or storage.values.dtype != result.dtype or result.is_complex():
            return
        if max(length(storage.values), array.numel(), result.numel()) > SMALL:
            return
        plain = {sparse: storage.with_values(bare(storage.values)), dense: strided(bare(array))}
        contract(stmt, plain, scalar, bare(array))
    ready = recall(storage, key_of(stmt, scalar, values))
    if ready is not None and not ready.problem.copies and result.is_contiguous() and not ready.inputs[0][2]:
        _torch, _forward = torch, torch.autograd.forward_ad
        _address = _checked_address if CHECKED else torch.Tensor.data_ptr
        if recorded:
            step = rule("prepared_step")(stmt, sparse, dense, ready, result.detach())
        remember(storage, (left, array.shape, array.dtype), _TorchProduct(ready, result, array.element_size(), step))


def _remember(
    stmt: Assignment, values: Any, scalar: str, storage: Storage, array: Any, result: Any, left: bool
) -> None:
    """Keep the launch for the next call with an array of this shape and type."""
    if compute_scalar(scalar) != scalar or type(array) is not np.ndarray or storage.library != "numpy":
        return
    if not array.flags.c_contiguous or not array.flags.aligned or not array.dtype.isnative:
        return
    ready = recall(storage, key_of(stmt, scalar, values))
    if ready is not None and not ready.problem.copies and result.flags.c_contiguous:
        remember(storage, (left, array.shape, array.dtype), _Product(ready, result.shape, scalar))


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Stack dimensions of extent one, of either operand, that the other one stretches or also has."""

    def ones(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        stack, other = x[:-2], y[:-2]
        pairs = [(d, other[d - len(stack)] if len(stack) - d <= len(other) else None) for d in range(len(stack))]
        return tuple(d for d, n in pairs if stack[d] == 1 and n is not None and n != 1)

    return ones(a, b), ones(b, a)


def _drop(view: Strided, dims: tuple[int, ...]) -> Strided:
    """The view without the dimensions `dims`, of extent one."""
    if not dims:
        return view
    kept = [d for d in range(len(view.shape)) if d not in dims]
    owner = view.owner.reshape(tuple(view.shape[d] for d in kept))
    return strided(owner)


def _without_fill(s: Storage) -> Storage:
    """A storage of fill 0 over values less the fill; itself where the fill is 0."""
    if not s.fill_value:
        return s
    return s.with_values(s.values - s.fill_value, 0)


def _fill_part(fill: Any, array: Array, left: bool, sparse: tuple[int, ...]) -> Array:
    """What the unspecified elements' common value adds: fill times the sums of the dense operand."""
    if left:
        sums = array.sum(0 if array.ndim == 1 else -2)
        sums = sums if len(sparse) == 1 or array.ndim == 1 else sums[..., None, :]
    else:
        sums = array.sum(-1)
        sums = sums if len(sparse) == 1 or array.ndim == 1 else sums[..., :, None]
    return fill * sums

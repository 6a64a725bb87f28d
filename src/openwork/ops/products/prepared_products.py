"""Prepared calls of products of a Tensor and an array, by key, shape and dtype: kept with the structure and run again.

The general road of a product leaves its prepared call with `remember_product`; `matmul`, `einsum` and others look it up
by a key of theirs and by shape and dtype of the array.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ... import tuning
from ...checked import CHECKED
from ...codegen import pool
from ...ir.index import Assignment
from ...runtime import trace
from ...runtime.gradient_hook import rule, tracked, transformed
from ...runtime.prepared import PreparedCall, key_of, recall, remember
from ...runtime.prepared_results import template
from ...runtime.promote import compute_scalar
from ...runtime.strided import LINE, fresh, on_lines, strided
from ...storage.buffers import PLAIN_TENSORS, address, is_torch, numpy_dtype
from ...storage.memory import LARGE
from ...storage.storage import Storage
from ...tensor.tensor import Tensor

__all__ = ["contiguous", "reduce_recalled", "remember_product", "remember_transposed", "run_recalled", "torch"]

PACKED = tuning.PACKED_OPERAND


def run_recalled(key: tuple[Hashable, ...], a: Any, b: Any) -> Any:
    """Run the prepared product of one Tensor with one array that is kept under `key`; None where there is none.

    What other names of products do, whose operands are not two matrices; `matmul` asks by itself.
    """
    if trace.steps:
        return None
    left = hasattr(type(a), "_raw_storage")
    x, array = (a, b) if left else (b, a)
    array_type = type(array)
    if type(x) is not Tensor or (array_type is not np.ndarray and array_type not in PLAIN_TENSORS):
        return None
    s = x._storage
    prepared = (s._plans or s.plans).products.get((*key, left, array.shape, array.dtype))
    return None if prepared is None else prepared.run(array, s)


def reduce_recalled(key: Hashable, x: Any) -> Tensor | None:
    """Run the prepared reduction of one Tensor that is kept under `key`; None where there is none."""
    if type(x) is not Tensor or trace.steps:
        return None
    s = x._storage
    prepared = (s._plans or s.plans).reductions.get(key)
    result = None if prepared is None else prepared(s)
    return None if result is None else Tensor._from_storage(result)


def remember_product(
    key: tuple[Hashable, ...], stmt: Assignment, values: Any, scalar: str, storage: Storage, array: Any, result: Any,
    left: bool,
) -> None:  # fmt: skip
    """Keep the prepared call of a product of a storage and an array, which has just run, for `run_recalled`.

    left : whether the storage is the first operand
    """
    if not storage.format.is_unique:  # whether duplicates are summed first depends on the numbers
        return
    if not is_torch(array):
        _remember_numpy(stmt, values, scalar, storage, array, result, (*key, left))
    elif storage.library == "torch":
        _remember_torch(stmt, values, scalar, storage, array, result, (*key, left))


def contiguous(array: Any) -> Any:
    """The array in row-major order: itself, where it is."""
    return array.contiguous() if is_torch(array) else np.ascontiguousarray(array)


def remember_transposed(storage: Storage, transposed: Storage, array: Any) -> None:
    """Keep that `array @ storage` is the prepared product of the transposed storage, where that has one."""
    rows = (*array.shape[:-2], array.shape[-1], array.shape[-2])
    prepared = transposed.plans.products.get((True, rows, array.dtype))
    if prepared is not None:
        remember(storage, (False, array.shape, array.dtype), _TransposedProduct(prepared))


torch: Any = None
"""torch, once a product of its tensors was prepared."""
_forward: Any = None
"""torch's state of forward derivatives."""
_address: Callable[[Any], int] = address
"""The address of a torch tensor that is known to have one."""


class _PreparedProduct:
    """A prepared product with an array of known shape and dtype: array -> product."""

    __slots__ = ("dtype", "lined", "make", "prepared_call", "shape")

    def __init__(self, prepared: PreparedCall, shape: tuple[int, ...], scalar: str) -> None:
        self.prepared_call, self.shape, self.dtype = prepared, shape, numpy_dtype(scalar)
        self.lined = prepared.inputs[0][2]
        self.make: Callable[..., Any] = np.zeros
        if prepared.prepared.schedule.writes_all:
            self.make = fresh if math.prod(shape) * self.dtype.itemsize >= LARGE else np.empty

    def run(self, b: np.ndarray[Any, Any], storage: Storage) -> np.ndarray[Any, Any] | None:
        """The product with an array of the known shape and dtype; None where the launch does not hold for it."""
        flags = b.flags
        if self.prepared_call.threads != pool.threads or not flags.aligned:
            return None
        if not flags.c_contiguous:
            if b.size > PACKED:
                return None
            b = np.ascontiguousarray(b)
        y: np.ndarray[Any, Any] = self.make(self.shape, self.dtype)
        if self.lined and address(b) % LINE:
            b = on_lines(strided(b)).owner
        if (short := self.prepared_call.short) is not None:
            if code := short(storage.values, b, y):
                self.prepared_call.end(code)
            return y
        self.prepared_call.start_one((storage._addresses or storage.addresses)[-1], address(b), address(y))
        return y


class _PreparedTorchProduct(_PreparedProduct):
    """A prepared product with a torch tensor of known shape and dtype: tensor -> product."""

    __slots__ = ("is_complex", "itemsize", "like", "step")

    def __init__(self, prepared: PreparedCall, like: Any, operand: Any, step: Any = None) -> None:
        self.prepared_call, self.shape, self.dtype, self.lined = prepared, like.shape, like.dtype, False
        self.step = step
        self.make = torch.empty_like if prepared.prepared.schedule.writes_all else torch.zeros_like
        self.like = template(like.detach())
        self.itemsize, self.is_complex = operand.element_size(), operand.is_complex()

    def run(self, b: Any, storage: Storage, is_base_class: bool = True) -> Any:
        """The product with a tensor of the known shape and dtype, recorded where torch records and x is no subclass.

        None where the launch does not hold for it: no plain memory, or a tangent or a transform takes part.
        """
        if self.prepared_call.threads != pool.threads or b.layout is not torch.strided or not b.is_cpu:
            return None
        if _forward._current_level >= 0 or torch._C._functorch.maybe_current_level() is not None:
            return None
        if not b.is_contiguous() and b.numel() <= PACKED:
            b = b.contiguous()
        b_address, values = _address(b), storage.values
        if (
            not b_address
            or b_address % self.itemsize
            or not b.is_contiguous()
            or b.is_neg()
            or (self.is_complex and b.is_conj())
        ):
            return None
        if (b.requires_grad or values.requires_grad) and torch.is_grad_enabled():
            step = self.step
            return None if step is None or not is_base_class else step.apply(step, storage, values, b)
        y = self.make(self.like)
        if (short := self.prepared_call.short) is not None:
            if code := short(values.data_ptr(), b_address, y.data_ptr()):
                self.prepared_call.end(code)
            return y
        self.prepared_call.start_one(_address(values), b_address, _address(y))
        return y


class _TransposedProduct:
    """A prepared product of a transposed matrix: array -> the transpose of its product with the array's."""

    __slots__ = ("product",)

    def __init__(self, product: Any) -> None:
        self.product = product

    def run(self, b: Any, storage: Storage, is_base_class: bool = True) -> Any:
        """The product with an array of the known shape and dtype; None where torch records it or it does not hold."""
        if type(b) is np.ndarray:
            y = self.product.run(np.ascontiguousarray(b.T), storage)
        elif (b.requires_grad or storage.values.requires_grad) and torch.is_grad_enabled():
            return None  # its gradients are those of the transposed storage
        else:
            y = self.product.run(b.mT.contiguous(), storage, is_base_class)
        return None if y is None else y.T


def _checked_address(x: Any) -> int:
    return address(x.detach())


def _remember_torch(
    stmt: Assignment, values: Any, scalar: str, storage: Storage, array: Any, result: Any, key: tuple[Hashable, ...]
) -> None:
    """Keep the prepared call of a product with a torch tensor; each later call asks whether torch records it."""
    global torch, _forward, _address
    torch = sys.modules["torch"]
    if compute_scalar(scalar) != scalar or type(array) not in PLAIN_TENSORS or type(result) is not torch.Tensor:
        return
    if torch.compiler.is_compiling() or not array.is_contiguous() or transformed((storage.values, array, result)):
        return
    sparse = next(n for n, v in values.items() if v is storage)
    dense = next(n for n in values if n != sparse)
    on_graph = tracked((storage.values, array, result))
    step = None
    if on_graph:
        if array.dtype != result.dtype or storage.values.dtype != result.dtype or result.is_complex():
            return
        step = rule("prepared_step")(stmt, sparse, dense, scalar, storage, array)
        prepared = None if step is None else step.forward.prepared_call
    else:
        prepared = recall(storage, key_of(stmt, scalar, values))
    if prepared is not None and not prepared.problem.copies and result.is_contiguous() and not prepared.inputs[0][2]:
        _forward = torch.autograd.forward_ad
        _address = _checked_address if CHECKED else torch.Tensor.data_ptr
        remember(
            storage,
            (*key, array.shape, array.dtype),
            _PreparedTorchProduct(prepared, result, array, step),
        )


def _remember_numpy(
    stmt: Assignment, values: Any, scalar: str, storage: Storage, array: Any, result: Any, key: tuple[Hashable, ...]
) -> None:
    """Keep the prepared call of a product with a NumPy array, for arrays of this shape and dtype."""
    if compute_scalar(scalar) != scalar or type(array) is not np.ndarray or storage.library != "numpy":
        return
    if not array.flags.c_contiguous or not array.flags.aligned or not array.dtype.isnative:
        return
    prepared = recall(storage, key_of(stmt, scalar, values))
    if prepared is not None and not prepared.problem.copies and result.flags.c_contiguous:
        remember(storage, (*key, array.shape, array.dtype), _PreparedProduct(prepared, result.shape, scalar))

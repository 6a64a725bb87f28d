"""In-place forms: a tensor and the result of an operation on it -> the tensor holding that result.

One rule for `A += B`, `A[key] = v`, `A.mul_(3)`, `A.zero_()`, `A.copy_(B)` and all others: where the result has the
structure and the fill value of the tensor, it is written into the values, and whatever shares them (`A.T`, a SciPy
matrix, a torch tensor) sees it. Otherwise the tensor takes the result's buffers, and what shared the old ones keeps
them. Shape, dtype, format and library of the tensor stay. A result on a graph is taken over: what was recorded of the
old values stays right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, ReadOnlyError, ShapeError, UnsupportedError
from ..provided import provided
from ..runtime.gradient_hook import any_dense_gradient
from ..storage import buffers
from ..storage.buffers import Array, is_torch
from ..storage.iso import contiguous, is_iso
from ..storage.recorded import is_recorded, is_transformed
from ..storage.storage import Storage

if TYPE_CHECKING:
    from .tensor import Tensor

asarray = provided("asarray", __name__)


__all__ = ["assign_result", "holds", "make_writable", "refuse_dense_gradient", "replace_storage"]

_KINDS = {"i": 1, "u": 1, "f": 2, "b": 2, "c": 3}


def make_writable(t: Tensor, operation: str) -> None:
    """Raise where a tensor's elements may not be changed: read-only memory, or a leaf that requires a gradient.

    Where they are one value in the place of all, the tensor gets values of its own.
    """
    values = t._storage.values
    if is_iso(values):
        t._storage = t._storage.with_own_values(contiguous(values))
    elif isinstance(values, np.ndarray):
        if not values.flags.writeable:
            raise ReadOnlyError(
                f"{operation}: the values of the tensor are read-only, as the array is that they were taken from"
                "\n  help: clone() the tensor, or asarray(..., copy=True)"
            )
    elif values.requires_grad and t.requires_grad and t.is_leaf and _recording():
        raise UnsupportedError(
            f"{operation}: the tensor is a leaf that requires a gradient\n  help: use the operation that gives a"
            " new tensor, A.at[key].set(value) for elements, or change it in torch.no_grad()"
        )


def refuse_dense_gradient(operation: str, x: Any) -> None:
    """Raise where `x` has recorded gradients at every element, and an ordinary tensor is to take them over in place.

    That tensor has a place for the gradients of its stored elements alone.
    """
    if any_dense_gradient((x,)) and x.requires_grad and _recording():
        raise UnsupportedError(
            f'{operation}: the operand is of grad="dense", the tensor that changes is not: gradients would be lost'
            '\n  help: asarray(A, grad="dense") first, or an operation that gives a new tensor'
        )


def assign_result(t: Tensor, operation: str, result: Any) -> Tensor:
    """Replace the elements of `t` by those of `result`. Raises ShapeError or DTypeError where it cannot hold them."""
    refuse_dense_gradient(operation, result)
    make_writable(t, operation)
    s = t._storage
    if type(result) is type(t) and _write_values(s, result._raw_storage):
        _copy_fill_sign(t, result._raw_storage)
        return t
    operand: Tensor = asarray(result)
    if operand.shape != t.shape:
        raise ShapeError(
            f"{operation}: the result has shape {operand.shape}; got {t.shape} to hold it\n  help: reshape it"
        )
    if not holds(s, operand._storage.scalar):
        raise DTypeError(
            f"{operation}: the result has dtype {operand.dtype}, the tensor {t.dtype}\n  help: convert it first"
        )
    operand = operand.asformat(s.format)
    values = buffers.cast(operand._storage.values, s.scalar)
    storage = operand._storage.with_values(values) if values is not operand._storage.values else operand._storage
    if storage.library != s.library:
        storage = storage.mapped(lambda b: buffers.as_array(b, like=s.values))
    replace_storage(t, storage)
    return t


def _write_values(s: Storage, result: Storage) -> bool:
    """Copy a result's values into those of `s` where both share structure, dtype and fill value; whether it was so."""
    if result._structure is None or result._structure is not s._structure or result.scalar != s.scalar:
        return False
    if not _same_fill(s.fill_value, result.fill_value) or _on_graph(result.values) or _on_graph(s.values):
        return False
    _write(s.values, result.values)
    return True


def _write(values: Any, new: Any) -> None:
    if isinstance(values, np.ndarray):
        values[...] = new
    else:
        values.copy_(new)


def replace_storage(t: Tensor, storage: Storage) -> None:
    """Give `t` the elements of a storage of its shape, dtype, format and library: in its values where these fit."""
    s = t._storage
    values = s.values
    if storage is s:
        return
    if not _on_graph(storage.values) and not _on_graph(values) and _same_structure(s, storage):
        _write(values, storage.values)
        _copy_fill_sign(t, storage)
        return
    if storage.values is values:  # what shared the values keeps them
        storage = storage.with_values(buffers.copied(storage.values))
    t._storage = storage


def _same_fill(a: Any, b: Any) -> bool:
    """Whether two fill values are equal, or both NaN."""
    return bool(a == b or (a != a and b != b))


def _copy_fill_sign(t: Tensor, result: Storage) -> None:
    """Replace a zero fill value by the result's where only their signs differ: 0 * -1 is -0."""
    s = t._storage
    a, b = s.fill_value, result.fill_value
    if a is not b and a == 0 and s.scalar == result.scalar and str(a) != str(b):
        t._storage = s.with_values(s.values, b)


def _same_structure(s: Storage, other: Storage) -> bool:
    """Whether positions, coordinates and the fill value are the same."""
    if not _same_fill(s.fill_value, other.fill_value) or buffers.length(s.values) != buffers.length(other.values):
        return False
    pairs = zip((*s.pos, *s.crd), (*other.pos, *other.crd), strict=True)
    return all(x is y or (x is not None and y is not None and _equal(x, y)) for x, y in pairs)


def _equal(x: Array, y: Array) -> bool:
    if buffers.length(x) != buffers.length(y):
        return False
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool((x == y).all())


def _on_graph(values: Array) -> bool:
    """Whether writing into the values would be recorded, or they belong to a transform of torch.func."""
    return is_torch(values) and bool(is_recorded(values) or is_transformed(values))


def _recording() -> bool:
    import torch

    return bool(torch.is_grad_enabled())


def holds(s: Storage, scalar: str) -> bool:
    """Whether an in-place form may convert elements of this dtype to that of `s`, by the rule of the library of `s`.

    Both let wider elements of a kind into narrower ones; NumPy does not let signed integers into unsigned ones.
    """
    if s.scalar[0] == "u" and scalar[0] == "i" and not is_torch(s.values):
        return False
    return _kind(scalar) <= _kind(s.scalar)


def _kind(scalar: str) -> int:
    """bool, integers, floating and complex numbers, in the order in which each holds those before."""
    return 0 if scalar == "bool" else _KINDS[scalar[0]]

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
from ..late import late
from ..storage import buffers
from ..storage.buffers import Array, is_torch
from ..storage.storage import Storage

if TYPE_CHECKING:
    from .tensor import Tensor

if TYPE_CHECKING:
    from ..interop.sources import asarray
else:
    asarray = late("interop.sources", "asarray")


__all__ = ["become", "hold", "refuse", "write"]

_KINDS = {"i": 1, "u": 1, "f": 2, "b": 2, "c": 3}


def refuse(t: Tensor, operation: str) -> None:
    """Raise where a tensor's elements may not be changed: read-only memory, or a leaf that requires a gradient."""
    values = t._storage.values
    if isinstance(values, np.ndarray):
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


def become(t: Tensor, operation: str, result: Any) -> Tensor:
    """`t`, with the elements of `result`. Raises ShapeError or DTypeError where it cannot hold them."""

    refuse(t, operation)
    return hold(t, operation, result)


def hold(t: Tensor, operation: str, result: Any) -> Tensor:
    """`become` of a tensor whose elements may be changed."""

    s = t._storage
    if type(result) is type(t) and _is_written(s, result._kept):
        _take_sign(t, result._kept)
        return t
    made: Tensor = asarray(result)
    if made.shape != t.shape:
        raise ShapeError(
            f"{operation}: the result has shape {made.shape}; got {t.shape} to hold it\n  help: reshape it"
        )
    if _kind(made._storage.scalar) > _kind(s.scalar):
        raise DTypeError(
            f"{operation}: the result has dtype {made.dtype}, the tensor {t.dtype}\n  help: convert it first"
        )
    made = made.asformat(s.format)
    values = buffers.cast(made._storage.values, s.scalar)
    found = made._storage.with_values(values) if values is not made._storage.values else made._storage
    if found.library != s.library:
        found = found.mapped(lambda b: buffers.as_array(b, like=s.values))
    write(t, found)
    return t


def _is_written(s: Storage, found: Storage) -> bool:
    """Write the values of a result over the very index buffers of `s`, of its type; whether it was one."""
    if found._structure is None or found._structure is not s._structure or found.scalar != s.scalar:
        return False
    if not _is_one(s.fill_value, found.fill_value) or _on_graph(found.values) or _on_graph(s.values):
        return False
    if type(s.values) is np.ndarray and type(found.values) is np.ndarray:
        s.values[...] = found.values
    elif is_torch(s.values) and is_torch(found.values):
        s.values.copy_(found.values)
    else:
        return False
    return True


def write(t: Tensor, found: Storage) -> None:
    """Have `t` hold what a storage of its shape, dtype, format and library does."""
    s = t._storage
    values = s.values
    if found.values is values:
        return
    if not _on_graph(found.values) and not _on_graph(values) and _same_structure(s, found):
        if isinstance(values, np.ndarray):
            values[...] = found.values
        else:
            values.copy_(found.values)
        _take_sign(t, found)
        return
    if any(x is y for x in s.buffers for y in (found.values,)):
        found = found.with_values(buffers.copied(found.values))
    t._storage = found


def _is_one(a: Any, b: Any) -> bool:
    """Whether fill values are equal, or both NaN."""
    return bool(a == b or (a != a and b != b))


def _take_sign(t: Tensor, found: Storage) -> None:
    """Have the fill value the signs of a result's, of which it has the value: 0 * -1 is -0."""
    s = t._storage
    a, b = s.fill_value, found.fill_value
    if a is not b and a == 0 and s.scalar == found.scalar and str(a) != str(b):
        t._storage = s.with_values(s.values, b)


def _same_structure(s: Storage, found: Storage) -> bool:
    """Whether positions, coordinates and the fill value are the same."""
    if not _is_one(s.fill_value, found.fill_value) or buffers.length(s.values) != buffers.length(found.values):
        return False
    pairs = zip((*s.pos, *s.crd), (*found.pos, *found.crd), strict=True)
    return all(x is y or (x is not None and y is not None and _equal(x, y)) for x, y in pairs)


def _equal(x: Array, y: Array) -> bool:
    if buffers.length(x) != buffers.length(y):
        return False
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool((x == y).all())


def _on_graph(values: Array) -> bool:
    """Whether writing into the values would be recorded, or they belong to a transform of torch.func."""
    return is_torch(values) and bool(buffers.is_recorded(values) or buffers.is_transformed(values))


def _recording() -> bool:
    import torch

    return bool(torch.is_grad_enabled())


def _kind(scalar: str) -> int:
    """bool, integers, floating and complex numbers, in the order in which each holds those before."""
    return 0 if scalar == "bool" else _KINDS[scalar[0]]

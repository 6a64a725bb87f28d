"""An assignment in index notation on dense NumPy arrays -> its result: the oracle for every kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ShapeError
from .arithmetic import FUNCTIONS, of_numbers
from .index import PRESENCE, Access, Apply, Assignment, Expression, Literal

__all__ = ["evaluate"]

Array = np.ndarray[Any, Any]


def evaluate(assignment: Assignment, arrays: Mapping[str, Any], extents: Mapping[str, int] | None = None) -> Array:
    """The result of `assignment`, as a dense array of the dtype that NumPy's promotion gives.

    Parameters
    ----------
    arrays : the operands by name, anything `np.asarray` takes; numbers for scalars
    extents : of indices that no operand on the right has

    Integers follow the kernels, not NumPy, where the two differ: x // 0 is 0. A reduction keeps the dtype and
    over nothing gives the operation's identity. Raises ShapeError where operands disagree.
    """
    operands = {name: np.asarray(a) for name, a in arrays.items()}
    sizes = dict(extents or {})
    for access in assignment.accesses:
        _measure(access, operands[access.tensor].shape, sizes)
    order = assignment.indices
    if missing := [i for i in order if i not in sizes]:
        raise ShapeError(f"{assignment}: nothing on the right tells the extent of {', '.join(missing)}")
    with np.errstate(all="ignore"):
        value = np.asarray(_value(assignment.rhs, operands, order))
        full = np.broadcast_to(value, tuple(sizes[i] for i in order))
        return _reduce(full, assignment.reduction, len(assignment.free_indices))


def _measure(access: Access, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    if len(shape) != len(access.indices):
        raise ShapeError(f"{access} has {len(access.indices)} indices; got an array of shape {shape}")
    for i, n in zip(access.indices, shape, strict=True):
        if sizes.setdefault(i, n) != n:
            raise ShapeError(f"index {i} has extent {sizes[i]}; got {n} in {access}")


def _value(e: Expression, operands: Mapping[str, Array], order: tuple[str, ...]) -> Any:
    match e:
        case Literal(value):
            return value
        case Access(tensor, indices):
            return _aligned(operands[tensor], indices, order)
        case Apply(op, args):
            values = [_value(a, operands, order) for a in args]
            if op in PRESENCE:
                return values[0]
            if all(not isinstance(v, np.ndarray) for v in values):
                return of_numbers(op, values)
            if len(values) == 1 or op in ("select", "pow", "floordiv", "sign", "div"):
                values = [_typed(v, values) for v in values]
            return np.asarray(FUNCTIONS[op](*values))


def _typed(value: Any, others: list[Any]) -> Any:
    """A Python number as an array of the dtype that it promotes to beside the others."""
    if isinstance(value, np.ndarray):
        return value
    arrays = [o for o in others if isinstance(o, np.ndarray) and o.dtype != np.bool_]
    return np.asarray(value, np.result_type(value, *(o.dtype for o in arrays)))


def _aligned(array: Array, indices: tuple[str, ...], order: tuple[str, ...]) -> Array:
    """`array` with one dimension per index of `order`, of extent 1 where it has none; a repeated index
    takes the diagonal."""
    axis_of = {i: n for n, i in enumerate(order)}
    kept_indices = sorted(set(indices), key=order.index)
    diagonal = np.einsum(array, [axis_of[i] for i in indices], [axis_of[i] for i in kept_indices]) if indices else array
    return diagonal.reshape([diagonal.shape[kept_indices.index(i)] if i in kept_indices else 1 for i in order])


def _reduce(value: Array, op: str, keep: int) -> Array:
    axes = tuple(range(keep, value.ndim))
    if not axes:
        return value.copy()
    kind = np.dtype(np.bool_) if op in ("or", "and") else value.dtype
    function = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}.get(op)
    if function is None:
        function = np.logical_or if op == "or" else np.logical_and
    if op in ("min", "max"):
        return np.asarray(function.reduce(value, axis=axes, initial=_extreme(value.dtype, op)))
    return np.asarray(function.reduce(value, axis=axes, dtype=kind))


def _extreme(dtype: np.dtype[Any], op: str) -> Any:
    """The identity of min or max."""
    if dtype.kind == "b":
        return op == "min"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if op == "min" else info.min
    return dtype.type(np.inf if op == "min" else -np.inf)

"""Elementwise operations on masked tensors: any function of arrays, called on the values of one structure.

A function of single elements needs no coordinates where its operands have equal structures: it is called once on the
buffers of values, so that every function of the array library works, on every format, and torch differentiates it.
Values of missing elements are computed along where that is cheaper than leaving them out; nobody sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..ops.gradients import tracked
from ..ops.shaping import broadcast_to
from ..ops.tensor import Tensor
from ..ops.values import apply
from ..storage.buffers import Array, as_array, is_array, is_torch, length, scalar_of
from ..storage.storage import Storage
from .structure import common, pattern, present_on, require_equal, restricted, sampled, settled, values_on

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = ["binary", "lift", "select", "stretched", "unary"]

HOW = ("equal", "intersection", "union")


def unary(op: str, m: MaskedTensor) -> MaskedTensor:
    """An operation of the loop IR, by name, of every specified element."""
    return lift(lambda v: apply(op, v), (m,), op)


def binary(op: str, a: Any, b: Any, how: str = "equal") -> MaskedTensor:
    """`a op b`, elementwise with broadcasting; at least one operand is masked.

    Parameters
    ----------
    op : name of an operation of the loop IR: "add", "mul", "lt", ...
    a, b : masked tensors, Tensors, dense arrays, scalars
    how : "equal": masks have to agree; "intersection": an element is specified where it is in both; "union": where it
        is in either, and where it is in one only the result is that one

    Returns
    -------
    MaskedTensor in the format of the first masked operand

    Raises ShapeError where shapes do not broadcast, or masks that have to agree differ; it names the first place.
    """
    return lift(lambda x, y: apply(op, x, y), (a, b), op, how)


def lift(function: Callable[..., Any], operands: tuple[Any, ...], operation: str, how: str = "equal") -> MaskedTensor:
    """`function`, of arrays of values, on the specified elements of the operands."""
    from .tensor import MaskedTensor

    if how not in HOW:
        raise UnsupportedError(f"{operation}: how={how!r}\n  supported: {', '.join(HOW)}")
    operands = tuple(_operand(x) for x in operands)
    shape = _shape(operation, operands)
    masked = [stretched(x, shape) if isinstance(x, MaskedTensor) else None for x in operands]
    first = next(m for m in masked if m is not None)
    others = [m for m in masked if m is not None and m is not first]
    if how == "union" and len(others) == 1 and len(operands) == 2:
        return _united(function, first, others[0])
    s = first._tensor._storage
    if how == "intersection" and others:
        s = _folded(how, first, others)
    values = []
    for x, m in zip(operands, masked, strict=True):
        if m is None:
            values.append(sampled(s, x, shape) if is_array(x) and x.ndim else _weak(x, s))
        elif how == "intersection" and others:
            values.append(values_on(s, m))
        else:
            values.append(m.values if m is first else require_equal(operation, first, m))
    if tracked(v for v in values if is_array(v)):
        from .isolation import isolated

        return remade(s, isolated(function, values, s), not shape)
    return remade(s, _called(function, values), not shape)


def _folded(how: str, first: MaskedTensor, others: list[MaskedTensor]) -> Storage:
    from .tensor import wrap

    s = common(how, first, others[0])
    for m in others[1:]:
        s = common(how, wrap(Tensor._from_storage(s)), m)
    return s


def _weak(x: Any, s: Storage) -> Any:
    """A scalar operand; an array of rank 0 of the other library comes over."""
    if is_array(x) and is_torch(x) != is_torch(s.values):
        return as_array(x, like=s.values)
    return x


def _called(function: Callable[..., Any], values: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        return function(*values)


def remade(s: Storage, values: Array, scalar: bool) -> MaskedTensor:
    """The masked tensor of a structure over other values."""
    from .tensor import python_value, wrap

    if tuple(values.shape) != (length(s.values),):
        raise ShapeError(
            f"a function of {length(s.values)} specified elements gave an array of shape {tuple(values.shape)}"
            "\n  help: functions of single elements can be lifted only"
        )
    found = s.with_values(values)
    return wrap(Tensor._from_storage(found.with_values(values, python_value(0, found))), scalar)


def _operand(x: Any) -> Any:
    """An operand as a masked tensor, an array, or a Python scalar."""
    from .tensor import MaskedTensor

    if isinstance(x, MaskedTensor) or is_array(x) or isinstance(x, bool | int | float | complex | np.generic):
        return x
    if isinstance(x, Tensor):
        if x.format.is_dense or not x.ndim:
            return x.to_dense()
        raise UnsupportedError(
            "a masked tensor with a sparse Tensor: are its unspecified elements missing, or its fill value?"
            "\n  help: as_masked_tensor(t) makes them missing, t.to_dense() the fill value"
        )
    return np.asarray(x)


def _shape(operation: str, operands: tuple[Any, ...]) -> tuple[int, ...]:
    shapes = [tuple(getattr(x, "shape", ())) for x in operands]
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        listed = " and ".join(str(s) for s in shapes)
        raise ShapeError(f"{operation}: shapes {listed} do not broadcast\n  help: reshape an operand") from None


def stretched(m: MaskedTensor, shape: tuple[int, ...]) -> MaskedTensor:
    """The masked tensor broadcast to a shape."""
    from .tensor import wrap

    if m.shape == shape:
        return m
    wide = broadcast_to(m._tensor, shape)
    return wrap(settled(wide, m.format))


def _united(function: Callable[..., Any], a: MaskedTensor, b: MaskedTensor) -> MaskedTensor:
    s = common("union", a, b)
    x, y = values_on(s, a), values_on(s, b)
    both = _called(function, [x, y])
    here, there = present_on(s, a), present_on(s, b)
    where = _where(both)
    return remade(s, where(here & there, both, _cast(where(here, x, y), both)), a._scalar)


def _where(like: Array) -> Callable[..., Any]:
    if is_torch(like):
        import torch

        where: Callable[..., Any] = torch.where
        return where
    return np.where


def _cast(values: Array, like: Array) -> Array:
    from ..storage.buffers import cast

    return cast(values, scalar_of(like))


def select(condition: Any, a: Any, b: Any) -> MaskedTensor:
    """The elements of `a` where the condition holds, of `b` elsewhere; missing where the one asked for is, or it is.

    condition : bool array, or masked tensor
    a, b : masked tensors, of one format where both are; a dense operand or scalar is specified everywhere, so that
        the result is strided
    """
    from .tensor import MaskedTensor, wrap

    shape = _shape("where", tuple(_operand(x) for x in (condition, a, b)))
    like = next(x for x in (a, b, condition) if isinstance(x, MaskedTensor))
    mixed = not all(isinstance(x, MaskedTensor) for x in (a, b))
    made = [_whole(x, shape, like) if not isinstance(x, MaskedTensor) else stretched(x, shape) for x in (a, b)]
    made = [x.to_dense() if mixed else x for x in made]
    picked = []
    for m, wanted in zip(made, (True, False), strict=True):
        if isinstance(condition, MaskedTensor):
            c = stretched(condition, shape)
            held, keep = _known(m, c.to_dense() if mixed else c)
        else:
            held = m
            keep = sampled(m._tensor._storage, condition if is_array(condition) else np.asarray(condition), shape)
        keep = keep if keep.ndim else pattern(held._tensor._storage).values & keep
        picked.append(wrap(restricted(held, keep == wanted), m._scalar))
    return lift(lambda x, y: x, tuple(picked), "where", "union")


def _known(m: MaskedTensor, condition: MaskedTensor) -> tuple[MaskedTensor, Array]:
    """The elements for which a masked condition is known, and what it is."""
    both = common("intersection", m, condition)
    return remade(both, values_on(both, m), m._scalar), values_on(both, condition)


def _whole(x: Any, shape: tuple[int, ...], like: MaskedTensor) -> MaskedTensor:
    """A dense operand or scalar, everywhere specified."""
    from .construct import strided_tensor

    given = _operand(x)
    if is_torch(like.values):
        array = given if is_array(given) else like.values.new_tensor(given)
    else:
        array = given if is_array(given) else np.asarray(given, np.result_type(given, like.values.dtype))
    array = as_array(array, like=like.values)
    wide = array.expand(shape) if is_torch(array) else np.broadcast_to(array, shape)
    ones = np.ones(shape, np.bool_)
    return strided_tensor(wide, as_array(ones, like=like.values))

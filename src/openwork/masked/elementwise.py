"""Elementwise operations on masked tensors: any function of arrays, called on the values of one structure.

A function of single elements needs no coordinates where its operands have equal structures: it is called once on the
buffers of values, so that every function of the array library works, on every format, and torch differentiates it.
Values of missing elements are computed along where that is cheaper than leaving them out; nobody sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ShapeError, Tensor, UnsupportedError, broadcast_to, sparse_mask
from ..integers import common_shape
from ..interop.operands import adopt_foreign
from ..ir.index import Access, Apply, Expression, Literal
from ..ir.ops import arity
from ..ops import mask_formats as forms
from ..ops.indexing.taking import values_at
from ..provided import provided, provides
from ..runtime.gradient_hook import tracked
from ..runtime.values import apply
from ..storage.buffers import Array, as_array, is_array, is_torch, scalar_of
from ..storage.equal_coordinates import same_structure
from ..storage.storage import Storage
from ..tensor.lazy import is_lazy
from .structure import in_one_library, merged, require_equal, sampled, settled, values_on
from .tensor import MaskedTensor, wrap, zero

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = ["binary", "clip", "lift", "select", "stretched", "unary"]

isolated = provided("masked isolated", __name__)
"""Needs torch: loaded where values are recorded."""

HOW = ("equal", "intersection", "union")


@provides("masked unary")
def unary(op: str, m: MaskedTensor) -> MaskedTensor:
    """An operation of the loop IR, by name, of every specified element."""
    return lift(lambda v: apply(op, v), (m,), op)


@provides("masked binary")
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
    MaskedTensor in the format of the first masked operand. Operands that are not masked have a value everywhere: that
    of a sparse Tensor is its fill value where it stores none

    Raises ShapeError where shapes do not broadcast, or masks that have to agree differ; it names the first place.

    Cost: O(nse of both).
    See also: lift, select.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.binary("add", m, m))
    MaskedTensor(
      [  2.0000,   4.0000,       --]
    )
    """
    return lift(lambda x, y: apply(op, x, y), (a, b), op, how, op if arity(op) is not None else None)


@provides("masked clip")
def clip(m: MaskedTensor, /, min: Any = None, max: Any = None) -> MaskedTensor:
    """The elements, no less than `min` and no more than `max`; None is no limit."""
    out = m if min is None else binary("max", m, min)
    return out if max is None else binary("min", out, max)


@provides("masked lift")
def lift(
    function: Callable[..., Any], operands: tuple[Any, ...], operation: str, how: str = "equal", op: str | None = None
) -> MaskedTensor:
    """`function`, of arrays of values, on the specified elements of the operands.

    op : the operation of the loop IR that the function is, if it is one: masks that differ are then walked once, and
        computed on the way

    Cost: O(nse of the operands).
    See also: binary.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.lift(np.square, [m], "square"))
    MaskedTensor(
      [  1.0000,   4.0000,       --]
    )
    """

    operands = tuple(in_one_library(*map(_operand, operands)))
    if all(type(x) is MaskedTensor for x in operands) and how in HOW:
        structures = [x._tensor._storage for x in operands]
        first, alike = structures[0], all(x._scalar == operands[0]._scalar for x in operands)
        if alike and all(s is first or same_structure(first, s) for s in structures[1:]):
            return _computed(function, [s.values for s in structures], first, operands[0].shape)
    if how not in HOW:
        raise UnsupportedError(f"{operation}: how={how!r}\n  supported: {', '.join(HOW)}")
    shape = _shape(operation, operands)
    masked = [x for x in operands if isinstance(x, MaskedTensor)]
    sparse = op is not None and any(isinstance(x, Tensor) for x in operands)
    if sparse or (how != "equal" and len(masked) > 1):
        return _unequal(function, operands, shape, how, op)
    wide = [stretched(x, shape) if isinstance(x, MaskedTensor) else None for x in operands]
    first = next(m for m in wide if m is not None)
    s = first._tensor._storage
    values = [
        _elements(s, x, shape) if m is None else m.values if m is first else require_equal(operation, first, m)
        for x, m in zip(operands, wide, strict=True)
    ]
    return _computed(function, values, s, shape)


def _elements(s: Storage, x: Any, shape: tuple[int, ...]) -> Any:
    """The elements of an operand that is not masked in the places of a structure."""
    if isinstance(x, Tensor):
        t = broadcast_to(x, shape)
        return sparse_mask(t, Tensor._from_storage(s)).values if tracked((t.values,)) else values_at(t, s)
    return sampled(s, x, shape) if is_array(x) and x.ndim else _weak(x, s)


def _computed(function: Callable[..., Any], values: list[Any], s: Storage, shape: tuple[int, ...]) -> MaskedTensor:
    if tracked(values):
        return remade(s, isolated(function, values, s), not shape)
    return remade(s, _called(function, values), not shape)


def _unequal(
    function: Callable[..., Any], operands: tuple[Any, ...], shape: tuple[int, ...], how: str, op: str | None
) -> MaskedTensor:
    """Of structures that may differ: one pass where the operation compiles; else the values are taken where all are
    specified, and what is specified by one only is put beside."""

    named = {f"x{k}": x for k, x in enumerate(operands)}
    masked = {name: x for name, x in named.items() if isinstance(x, MaskedTensor)}
    like = next(iter(masked.values())).format
    united = how == "union" and len(masked) == len(operands) == 2
    either = Apply("either", (Access("x0"), Access("x1")))
    mergeable = all(hasattr(x, "shape") for x in operands) and not tracked(_buffer(x) for x in operands)
    if op is not None and mergeable:
        e = Apply(op, tuple(map(Access, named)))
        return merged(Apply("either", (e, either)) if united else e, named, like, shape)
    place: Expression = Access(next(iter(masked)))
    for name in list(masked)[1:]:
        place = Apply("given", (place, Access(name)))
    s = merged(place, masked, like, shape)._tensor._storage
    values = [
        values_on(s, stretched(x, shape)) if isinstance(x, MaskedTensor) else _elements(s, x, shape) for x in operands
    ]
    both = _computed(function, values, s, shape)
    if not united:
        return both
    return merged(Apply("either", (Access("both"), either)), {"both": both, **masked}, like, shape)


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

    if tuple(values.shape) != (len(s.values),):
        raise ShapeError(
            f"a function of {len(s.values)} specified elements gave an array of shape {tuple(values.shape)}"
            "\n  help: functions of single elements can be lifted only"
        )
    return wrap(Tensor._from_storage(s.with_values(values, zero(scalar_of(values)))), scalar)


def _operand(x: Any) -> Any:
    """An operand as a masked tensor, an array, or a Python scalar; what is to be computed later is now."""
    x = x.compute() if is_lazy(x) else x

    if isinstance(x, MaskedTensor) or is_array(x) or isinstance(x, bool | int | float | complex | np.generic):
        return x
    x = adopt_foreign(x)
    if isinstance(x, Tensor):
        return x.to_dense() if x.format.is_dense or not x.ndim else x
    return np.asarray(x)


def _shape(operation: str, operands: tuple[Any, ...]) -> tuple[int, ...]:
    shapes = [tuple(getattr(x, "shape", ())) for x in operands]
    return common_shape(operation, shapes)


def stretched(m: MaskedTensor, shape: tuple[int, ...]) -> MaskedTensor:
    """The masked tensor broadcast to a shape."""

    if m.shape == shape:
        return m
    wide = broadcast_to(m._tensor, shape)
    return wrap(settled(wide, m.format))


def _buffer(x: Any) -> Any:
    """The values of an operand."""
    return x if is_array(x) else x.values


@provides("masked select")
def select(condition: Any, a: Any, b: Any) -> MaskedTensor:
    """The elements of `a` where the condition holds, of `b` elsewhere; missing where the one asked for is, or it is.

    condition : bool array, or masked tensor
    a, b : masked tensors, of one format where both are; a dense operand or scalar is specified everywhere, so that
        the result is strided

    Cost: O(nse of all).
    See also: binary, lift.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.select(np.array([True, True, False]), m, m * 2))
    MaskedTensor(
      [  1.0000,   2.0000,       --]
    )
    """

    named = {name: _operand(x) for name, x in zip("cab", (condition, a, b), strict=True)}
    shape = _shape("where", tuple(named.values()))
    like = next(x for x in (named["a"], named["b"], named["c"]) if isinstance(x, MaskedTensor))
    whole = not (isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor))
    format = forms.strided(len(shape)) if whole else like.format
    parts = [Access(name) if hasattr(x, "shape") else Literal(x) for name, x in named.items()]
    arrays = {name: x for name, x in named.items() if hasattr(x, "shape")}
    return merged(Apply("select", tuple(parts)), arrays, format, shape)

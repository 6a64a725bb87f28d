"""Elementwise operations of one tensor, or of a tensor with a scalar or a dense array -> a Tensor, or a dense array.

A map of the stored values is one call of the array library on the values buffer, and the same call on the fill
value; the structure is shared. What needs coordinates (a dense operand) is a compiled single-operand kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.plan_cache import PlanCache
from ...integers import common_shape
from ...interop.operands import adopt_foreign, is_foreign_sparse, sparse_or_array
from ...ir.index import Access, Apply, Assignment, Expression, Literal
from ...provided import provides
from ...runtime.contract import sample, update
from ...runtime.conversion.remap import has_gaps
from ...runtime.duplicates import is_finite, summed
from ...runtime.float_errors import report, report_dense, report_integers
from ...runtime.gradient_hook import differentiable, rule
from ...runtime.strided import strided
from ...runtime.values import apply, apply_scalar, apply_with_warnings, negative_power, user_name
from ...runtime.zero_annihilation import FINITE, bounded
from ...storage.buffers import is_array, is_torch, numpy_dtype, scalar_of
from ...storage.iso import ONE_PLACE, spread
from ...storage.recorded import is_batched, is_recorded
from ...storage.scalars import keeps_sums, python_scalar
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ...tensor.lazy import as_number, defer, is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..manipulation.repetition import broadcast_to
from .map_plans import keep_scaling, scaled
from .nonfinite_products import add_nonfinite
from .pointwise import merge, merge_equal

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["by_values", "cached_fill", "check_powers", "elementwise", "unary"]

_LINEAR_UNARY = {"neg", "real", "imag", "conj"}
_PYTHONS = (float, int, bool, complex)
_NUMBERS = (*_PYTHONS, np.float64)
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}


@provides("unary")
def unary(op: str, t: Tensor) -> Tensor:
    """`op` of every element: stored values are mapped, and so is the fill value.

    Parameters
    ----------
    op : name of an operation of the loop IR ("sin", "neg", "sqrt", ...)
    t : Tensor of any format

    Returns
    -------
    Tensor of the same shape, format and structure; its fill value is `op` of that of `t`

    Guarantees: equal to the operation on the dense array, unspecified elements included. Duplicates of a nonunique
    format are summed first unless the operation is linear.
    Raises DTypeError where the dtype has no such operation.
    """

    if is_lazy(t):
        return defer("elementwise", op, partial(_unary_of_computed, op), (t,))  # type: ignore[return-value]
    s = _unique_storage(t, op in _LINEAR_UNARY and not t.fill_value and t._storage.scalar != "bool")
    call = apply if has_gaps(s) else apply_with_warnings
    x = s.values
    if type(x) is np.ndarray:
        n = len(x)
        if x.strides == ONE_PLACE:
            x = x[:1]
        values, fill = (
            call(op, x),
            apply_scalar(op, x, (s.fill_value,), loud=call is apply_with_warnings and _is_partial(s)),
        )
        values = values if len(values) == n else spread(values, n)
    else:
        values = _on_values(s, lambda v: call(op, v)) if is_recorded(x) else call(op, x)
        fill = cached_fill(s, op, lambda: apply_scalar(op, x, (s.fill_value,)))
    result = s.with_values(values, fill)
    if call is apply:
        report(Apply(op, (Access("A", ()),)), {"A": tuple(range(t.ndim))}, {"A": s}, result)
    return Tensor._from_storage(result)


def _is_partial(s: Storage) -> bool:
    """Whether some element is not specified: then the fill value is one of the elements."""
    return bool(s.values.shape[0] < prod(s.shape))


def by_values(t: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Any elementwise function, on the stored values and on the fill value; duplicates are summed first."""

    s = _unique_storage(t, False)
    fill = function(np.full(1, s.fill_value, numpy_dtype(s.scalar)))
    return Tensor._from_storage(s.with_values(_on_values(s, function), fill[0].item()))


@differentiable(lambda s, _: (s.values,))
def _on_values(s: Storage, function: Callable[[Any], Any]) -> Any:
    """A function of the stored values."""
    return function(s.values)


def _unary_of_computed(op: str, x: Any) -> Any:
    """The unary operation of a Tensor, or of an array."""
    return apply(op, x) if is_array(x) else unary(op, x)


def _unique_storage(t: Tensor, keep: bool) -> Storage:
    """The storage of `t`, duplicates summed unless they may be kept: CSR stays CSR."""
    return t._storage if keep else summed(t._storage)


@provides("elementwise")
def elementwise(op: str, a: Any, b: Any, zero_annihilates: bool = False) -> Any:
    """`a op b`, elementwise with broadcasting, for a Tensor with a scalar, a dense array or a Tensor.

    zero_annihilates: an unspecified zero makes a product or quotient zero even where it meets infinity, NaN or, as a
    dividend, 0. Without, the result is NumPy's, and one pass over the operands tells whether it differs.

    Returns
    -------
    With a scalar: a Tensor of the same structure. With a dense array: a Tensor of the sparse operand's structure for
    products and quotients of a tensor of fill 0, and of NaN besides where NumPy has it; else a dense array of the
    array's library.
    Raises ShapeError if the shapes do not broadcast.
    """
    if (type(b) in _NUMBERS and hasattr(type(a), "_raw_storage")) or (
        type(a) in _NUMBERS and hasattr(type(b), "_raw_storage")
    ):
        return _with_scalar(op, a, b, zero_annihilates)
    s = getattr(a, "_storage", None)
    t = s if a is b else getattr(b, "_storage", None)
    if s is not None and t is not None and type(s.values) is not type(t.values):
        a, b = one_library(a, b)
        s, t = a._storage, b._storage
    if s is not None and t is not None and not (s.format.is_dense or t.format.is_dense):
        if op == "pow":
            check_powers(a, b)
        if s.shape == t.shape:
            return a._from_storage(merge_equal(op, s, t, zero_annihilates))
        return merge(op, a, b, zero_annihilates)
    if is_lazy(a) or is_lazy(b):
        return defer("elementwise", op, partial(elementwise, op), (as_number(a, b), as_number(b, a)))
    if is_foreign_sparse(a) or is_foreign_sparse(b):
        return elementwise(op, adopt_foreign(a), adopt_foreign(b), zero_annihilates)

    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return apply(op, a, b)
    a, b = one_library(_plain_operand(a, b), _plain_operand(b, a))
    if _is_scalar(a) or _is_scalar(b):
        return _with_scalar(op, a, b, zero_annihilates)
    both = isinstance(a, Tensor) and isinstance(b, Tensor)
    a, b = sparse_or_array(a), sparse_or_array(b)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        result = apply_with_warnings(op, a, b)
        return Tensor._from_dense(result) if both else result
    if op == "pow":
        check_powers(a, b)
    result = _with_dense(op, a, b, zero_annihilates)
    return Tensor._from_dense(result) if both and not isinstance(result, Tensor) else result


def check_powers(base: Any, exponent: Any) -> None:
    """PowerError where an element of an integer exponent of an integer is negative, as NumPy has it of arrays.

    Torch truncates: over its buffers nothing is refused.
    """
    s = getattr(exponent, "_storage", None)
    values = exponent if s is None else s.values
    like = base if is_array(base) else base._storage.values
    if is_torch(values) or is_torch(like) or values.dtype.kind != "i" or like.dtype.kind not in "iub":
        return
    if 0 in base.shape or 0 in exponent.shape:
        return
    if s is not None:
        s = _unique_storage(exponent, False)
        values = s.values[coordinates(s)[1]] if has_gaps(s) else s.values
        if s.fill_value < 0 and _is_partial(s):
            raise negative_power(f"{s.fill_value}, the fill value of the exponent")
    smallest = int(values.min(initial=0))
    if smallest < 0:
        raise negative_power(f"{smallest}")


def _is_scalar(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic) or (is_array(x) and x.ndim == 0)


def _plain_operand(x: Any, beside: Any) -> Any:
    """A Tensor of rank 0 beside one of a higher rank as the array of rank 0 that it holds, which is a scalar; arrays of
    subclasses, whose methods may be others, as those of `np.matrix`, as plain ones; anything else itself.
    """
    if isinstance(x, Tensor) and not x.ndim and isinstance(beside, Tensor) and beside.ndim:
        return x.to_dense()
    return np.asarray(x) if type(x) is not np.ndarray and isinstance(x, np.ndarray) else x


def _with_scalar(op: str, a: Any, b: Any, zero_annihilates: bool) -> Tensor:
    left = isinstance(a, Tensor)
    t: Tensor = a if left else b
    number_operand = b if left else a
    values = t._raw_storage.values
    if type(number_operand) is np.float64 and type(values) is np.ndarray and values.dtype == np.float64:
        number_operand = float(number_operand)
        a, b = (t, number_operand) if left else (number_operand, t)
    number = type(number_operand) in _PYTHONS
    if not number and isinstance(number_operand, np.generic | np.ndarray) and is_torch(values):
        number_operand = number_operand.item()  # torch would take bool and complex64 for floats
        a, b = (t, number_operand) if left else (number_operand, t)
        number = type(number_operand) in _PYTHONS
    one = type(values) is np.ndarray and values.strides == ONE_PLACE and len(values) > 0
    if not one and (type(number_operand) is float or type(number_operand) is int):
        prepared_result = scaled(op, t, number_operand, left)
        if prepared_result is not None:
            return prepared_result
    if not number and is_array(number_operand):
        number_operand = number_operand[()] if isinstance(number_operand, np.ndarray) else number_operand
    linear = not t._raw_storage.fill_value and (op == "mul" or (op == "div" and left))
    if not number and is_torch(number_operand) and (is_batched if linear else is_recorded)(number_operand):
        recorded: Tensor = rule("with_number")(op, a, b)
        return recorded
    if not t.ndim and is_torch(number_operand):  # of rank 1 as the value's buffer: torch's rule of dtypes reads ranks
        number_operand = number_operand.reshape(1)
    s = _unique_storage(t, linear and _scales_duplicates(op, values, number_operand, left))
    call = apply if has_gaps(s) else apply_with_warnings
    zero_stays = zero_annihilates and linear
    if zero_stays:
        fill = None
    elif number:
        fill = _fill_with_number(op, s, number_operand, left, call is apply_with_warnings)
    else:
        fill_operand = (s.fill_value,)
        loud = call is apply_with_warnings and _is_partial(s)
        fill = apply_scalar(
            op, s.values, *((fill_operand, number_operand) if left else (number_operand, fill_operand)), loud=loud
        )
    x = s.values[:1] if one and s.is_iso else s.values
    if type(x) is np.ndarray or not is_recorded(x):
        values = call(op, x, number_operand) if left else call(op, number_operand, x)
        values = values if len(values) == len(s.values) else spread(values, len(s.values))
    else:
        values = _on_values(s, lambda v: call(op, v, number_operand) if left else call(op, number_operand, v))
    if not s.format.is_unique and not is_finite(values):
        t = Tensor._from_storage(summed(s))
        return _with_scalar(op, t if left else a, b if left else t, zero_annihilates)
    result = s.with_values(values, python_scalar(0, scalar_of(values)) if zero_stays else fill)
    if call is not apply and number and s is t._raw_storage:
        keep_scaling(op, s, number_operand, left, result)
    elif call is apply and not zero_stays and isinstance(number_operand, int | float | complex):
        pair: tuple[Expression, Expression] = (Access("A", ()), Literal(number_operand))
        report(Apply(op, pair if left else pair[::-1]), {"A": tuple(range(t.ndim))}, {"A": s}, result)
    return Tensor._from_storage(result)


def _scales_duplicates(op: str, values: Any, number: Any, left: bool) -> bool:
    """Whether values times or by a number keep sums: their type does, and the number is neither infinite nor NaN, nor
    a divisor of 0."""
    size = abs(number)
    if not (size < float("inf") and (size > 0 or op == "mul")):
        return False
    few = values[:0]
    result = apply(op, few, number) if left else apply(op, number, few)
    return keeps_sums(scalar_of(values), scalar_of(result))


_fills: PlanCache[Any, Any] = PlanCache("fill values", 1 << 12)


def cached_fill(s: Storage, key: Any, compute: Callable[[], Any]) -> Any:
    """The fill value of a result, computed once for a kind of operand."""
    key = key, s.kind
    fill = _fills.get(key, _fills)
    return _fills.keep(key, compute()) if fill is _fills else fill


def _fill_with_number(op: str, s: Storage, number: Any, left: bool, loud: bool) -> Any:
    """The fill value of a tensor and a number. Kept for its kind where no warning belongs to it: over torch
    buffers, and of 0 scaled by a number of which its sign alone matters."""
    scaling = op in _SCALING and left and not s.fill_value and type(number) is not complex and s.scalar in _WIDE
    ordinary = scaling and _LEAST < abs(number) < 1 / _LEAST
    torch_like = type(s.values) is not np.ndarray
    fill_operand = (s.fill_value,)
    if not (ordinary or torch_like):
        return apply_scalar(
            op, s.values, *((fill_operand, number) if left else (number, fill_operand)), loud=loud and _is_partial(s)
        )
    key = (op, type(number), number > 0 if ordinary else repr(number), left)
    return cached_fill(
        s, key, lambda: apply_scalar(op, s.values, *((fill_operand, number) if left else (number, fill_operand)))
    )


_SCALING = frozenset(("mul", "div"))
_WIDE = frozenset(("f32", "f64", "c64", "c128"))
_LEAST = 1e-30
"""Numbers between this and its inverse are neither 0 nor infinite in any of these types."""


@lru_cache(maxsize=256)
def _statement(op: str, ndim: int, dims: tuple[int, ...], left: bool) -> Assignment:
    """C[...] = A[...] op D[those of `dims`], A sparse; swapped where A is not on the left."""
    names = tuple(f"i{k}" for k in range(ndim))
    sparse, dense = Access("A", names), Access("D", tuple(names[d] for d in dims))
    return Assignment(Access("C", names), "=", Apply(op, (sparse, dense) if left else (dense, sparse)))


def _with_dense(op: str, a: Any, b: Any, zero_annihilates: bool) -> Any:

    left = isinstance(a, Tensor)
    t: Tensor = a if left else b
    array = b if left else a
    shape = common_shape(user_name(op), (t.shape, tuple(array.shape)))
    if shape != t.shape:
        t = broadcast_to(t, shape)
    linear = op in ("mul", "div") and left and not t.fill_value
    s = _unique_storage(t, linear and keeps_sums(t._storage.scalar, _result_scalar(op, t._storage, array, left)))
    keeps_structure = not s.fill_value and (op == "mul" or (op in ("div", "floordiv", "mod") and left))
    new_dims = len(shape) - array.ndim
    dims = tuple(new_dims + d for d in range(array.ndim) if array.shape[d] != 1)
    squeezed = array.reshape(tuple(n for n in array.shape if n != 1))
    stmt = _statement(op, len(shape), dims, left)
    scalar = _result_scalar(op, s, array, left)
    if keeps_structure:
        result_storage = sample(stmt, {"A": s, "D": strided(squeezed)}, scalar)
        if not s.format.is_unique and not is_finite(result_storage.values):
            s = summed(s)
            result_storage = sample(stmt, {"A": s, "D": strided(squeezed)}, scalar)
        result_storage = result_storage if zero_annihilates else add_nonfinite(op, result_storage, s.scalar, array)
        if isinstance(array, np.ndarray) and result_storage.scalar[0] in "iu":
            report_integers(_pair(op, left), {"A": s, "D": array}, numpy_dtype(result_storage.scalar))
        elif (
            isinstance(array, np.ndarray)
            and result_storage.scalar not in ("bool", "bf16")
            and not bounded(result_storage.values, FINITE)
        ):
            report_dense(_pair(op, left), {"A": s, "D": array}, Tensor._from_storage(result_storage).to_numpy())
        return Tensor._from_storage(result_storage)
    result = _dense_result(op, s, array, squeezed, stmt, left, shape)
    report_dense(_pair(op, left), {"A": s, "D": array}, result)
    return result


def _pair(op: str, left: bool) -> Apply:
    """The operation of a sparse and a dense operand, for what is told of its result."""
    both: tuple[Expression, Expression] = (Access("A", ()), Access("D", ()))
    return Apply(op, both if left else both[::-1])


def _result_scalar(op: str, s: Storage, array: Any, left: bool) -> str:
    """The scalar type that the array library gives the operation, by the types of the operands."""
    key = op, s.values.dtype, array.dtype, left
    scalar = _RESULTS.get(key)
    if scalar is None:
        values, elements = s.values[:0], array.reshape(-1)[:0]
        scalar = _RESULTS.keep(key, scalar_of(apply(op, values, elements) if left else apply(op, elements, values)))
    return scalar


_RESULTS: PlanCache[Any, str] = PlanCache("scalar types of operations with dense arrays")


@differentiable(lambda op, s, array, *_: (s.values, array))
def _dense_result(
    op: str, s: Storage, array: Any, squeezed: Any, stmt: Assignment, left: bool, shape: tuple[int, ...]
) -> Any:
    """The operation on the fill value everywhere, then overwritten at the stored elements: a dense array."""
    like = s.values
    fill: Any
    if is_torch(array):
        import torch

        fill = torch.full((), s.fill_value, dtype=like.dtype if is_torch(like) else torch.from_numpy(like[:0]).dtype)
        fill = fill.expand(shape)
    else:
        fill = np.broadcast_to(np.asarray(s.fill_value, dtype=like.dtype if not is_torch(like) else None), shape)
    out = apply(op, fill, array) if left else apply(op, array, fill)
    if s.values.shape[0] and 0 not in shape:
        compute = _result_scalar("add", s, array, left) if op in _COMPARISONS else None
        update(stmt, {"A": s, "D": strided(squeezed)}, out, compute)
    return out

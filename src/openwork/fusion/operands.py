"""Index notation and tensors by name -> expressions with diagonals and numbers resolved, or lazy ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..interop.sources import asarray
from ..ir.arithmetic import of_numbers
from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..ops.elementwise.maps import check_powers, elementwise, unary
from ..ops.elementwise.selection import where
from ..ops.indexing.index import insert_dims
from ..runtime.operation import namespace
from ..runtime.overrides import takes_over
from ..runtime.values import negative_power
from ..storage.buffers import is_torch
from ..tensor.dtypes import isdtype
from ..tensor.lazy import lazy
from ..tensor.tensor import Tensor

__all__ = ["align_dims", "check_exponents", "rename_tensors", "replace_diagonals", "substitute", "to_lazy"]


def replace_diagonals(e: Expression, tensors: Mapping[str, Any]) -> tuple[Expression, dict[str, Any]]:
    """`A[i, i]` -> an access to a diagonal of A, a number's name -> the number, sqrt(4.0) -> 2.0; and the tensors with
    the diagonals."""
    values = dict(tensors)
    return _replace_diagonals(e, values), values


def _replace_diagonals(x: Expression, values: dict[str, Any]) -> Expression:
    """The expression without indices that an access repeats; their diagonals are added to `values`."""
    if isinstance(x, Apply):
        return _of_numbers(Apply(x.op, tuple(_replace_diagonals(a, values) for a in x.args)))
    if not isinstance(x, Access):
        return x
    value, indices = values[x.tensor], list(x.indices)
    if not hasattr(value, "ndim"):
        return Literal(value)
    while (repeated := next((i for i in indices if indices.count(i) > 1), None)) is not None:
        first, second = (k for k, i in enumerate(indices) if i == repeated and indices[:k].count(repeated) < 2)
        value = namespace().diagonal(value if takes_over(value) else asarray(value), axis1=first, axis2=second)
        indices = [i for k, i in enumerate(indices) if k not in (first, second)] + [repeated]
    if len(indices) == len(x.indices):
        return x
    name = f"{x.tensor} at {', '.join(x.indices)}"
    values[name] = value
    return Access(name, tuple(indices))


def _of_numbers(x: Apply) -> Expression:
    """The value of an operation on numbers; an operation on anything else, and 2 ** -1, which is refused, itself."""
    numbers = [a.value for a in x.args if isinstance(a, Literal)]
    if len(numbers) < len(x.args):
        return x
    if x.op == "pow" and isinstance(numbers[0], int) and isinstance(numbers[1], int) and numbers[1] < 0:
        return x
    return Literal(of_numbers(x.op, numbers))


def check_exponents(e: Expression, tensors: Mapping[str, Any]) -> None:
    """PowerError for integers to the power of a tensor with negative ones; an exponent that is computed is refused."""
    if not isinstance(e, Apply):
        return
    for arg in e.args:
        check_exponents(arg, tensors)
    if e.op != "pow" or not all(_is_integer(arg, tensors) for arg in e.args):
        return
    base, exponent = e.args
    if isinstance(exponent, Access):
        check_powers(
            next((tensors[a.tensor] for a in accesses(base)), tensors[exponent.tensor]), tensors[exponent.tensor]
        )
    elif isinstance(exponent, Literal):
        if isinstance(exponent.value, int) and exponent.value < 0:
            raise negative_power(f"{exponent.value}")
    else:
        raise UnsupportedError(
            f"evaluate: {e}: whether an integer exponent is negative is asked of a tensor; got an expression"
            "\n  help: assign the exponent to a tensor in a statement of its own, or take floating-point numbers"
        )


def _is_integer(e: Expression, tensors: Mapping[str, Any]) -> bool:
    """Whether the expression is of integers or truths alone, of NumPy's."""
    values = [tensors[a.tensor] for a in accesses(e)]
    if isinstance(e, Literal):
        return isinstance(e.value, int)
    return all(not is_torch(getattr(x, "values", x)) and isdtype(x.dtype, ("bool", "integral")) for x in values)


def rename_tensors(e: Expression, names: Mapping[str, str]) -> Expression:
    match e:
        case Access(tensor, indices):
            return Access(names[tensor], indices)
        case Apply(op, args):
            return Apply(op, tuple(rename_tensors(a, names) for a in args))
    return e


def substitute(e: Expression, old: Expression, new: Expression) -> Expression:
    if e == old:
        return new
    return Apply(e.op, tuple(substitute(a, old, new) for a in e.args)) if isinstance(e, Apply) else e


def to_lazy(e: Expression, order: tuple[str, ...], tensors: Mapping[str, Any]) -> Any:
    match e:
        case Literal(value):
            return value
        case Access(tensor, indices):
            return lazy(align_dims(tensors[tensor], indices, order))
        case Apply("select", args):
            return where(*(to_lazy(a, order, tensors) for a in args))
        case Apply(op, (arg,)):
            return unary(op, to_lazy(arg, order, tensors))
        case Apply(op, (left, right)):
            return elementwise(op, to_lazy(left, order, tensors), to_lazy(right, order, tensors))
    raise UnsupportedError(f"evaluate: {e} cannot be reduced\n  help: assign it to a name first, then reduce that")


def align_dims(value: Any, indices: tuple[str, ...], order: tuple[str, ...]) -> Any:
    """A view with a dimension for each index of `order`, of extent 1 where the operand has none."""
    permutation = sorted(range(len(indices)), key=lambda k: order.index(indices[k]))
    new = tuple(k for k, i in enumerate(order) if i not in indices)
    if isinstance(value, Tensor):
        permuted = (
            value._storage.permute(permutation) if permutation != list(range(len(permutation))) else value._storage
        )
        return Tensor._from_storage(insert_dims(permuted, new) if new else permuted)
    array = value.transpose(permutation) if isinstance(value, np.ndarray) else value.permute(*permutation)
    sizes = iter(array.shape)
    return array.reshape(tuple(1 if k in new else next(sizes) for k in range(len(order))))

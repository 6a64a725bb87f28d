"""Expressions of index notation and tensors by name, made ready: diagonals, numbers, exponents, order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..interop.sources import asarray
from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..ops.elementwise.functions import where
from ..ops.elementwise.maps import check_powers, elementwise, unary
from ..ops.indexing.index import insert_dims
from ..ops.manipulation.triangles import diagonal
from ..runtime.values import negative_power
from ..storage.buffers import is_torch
from ..tensor.dtypes import isdtype
from ..tensor.lazy import lazy
from ..tensor.tensor import Tensor

__all__ = ["check_exponents", "laid", "lazily", "plain_accesses", "renamed", "swapped"]


def plain_accesses(e: Expression, known: Mapping[str, Any]) -> tuple[Expression, dict[str, Any]]:
    """`A[i, i]` becomes an access of the diagonal of A, and a number's name the number."""
    values = dict(known)
    return _plainly(e, values), values


def _plainly(x: Expression, values: dict[str, Any]) -> Expression:
    """The expression without indices that an access repeats, whose diagonals are added to the values."""
    if isinstance(x, Apply):
        return Apply(x.op, tuple(_plainly(a, values) for a in x.args))
    if not isinstance(x, Access):
        return x
    value, indices = values[x.tensor], list(x.indices)
    if not hasattr(value, "ndim"):
        return Literal(value)
    while (again := next((i for i in indices if indices.count(i) > 1), None)) is not None:
        first, second = (k for k, i in enumerate(indices) if i == again and indices[:k].count(again) < 2)
        value = diagonal(asarray(value), axis1=first, axis2=second)
        indices = [i for k, i in enumerate(indices) if k not in (first, second)] + [again]
    if len(indices) == len(x.indices):
        return x
    name = f"{x.tensor} at {', '.join(x.indices)}"
    values[name] = value
    return Access(name, tuple(indices))


def check_exponents(e: Expression, known: Mapping[str, Any]) -> None:
    """PowerError for integers to the power of a tensor with negative ones; an exponent that is computed is refused."""
    if not isinstance(e, Apply):
        return
    for arg in e.args:
        check_exponents(arg, known)
    if e.op != "pow" or not all(_is_integer(arg, known) for arg in e.args):
        return
    base, exponent = e.args
    if isinstance(exponent, Access):
        check_powers(next((known[a.tensor] for a in accesses(base)), known[exponent.tensor]), known[exponent.tensor])
    elif isinstance(exponent, Literal):
        if isinstance(exponent.value, int) and exponent.value < 0:
            raise negative_power(f"{exponent.value}")
    else:
        raise UnsupportedError(
            f"evaluate: {e}: whether an integer exponent is negative is asked of a tensor; got an expression"
            "\n  help: assign the exponent to a tensor in a statement of its own, or take floating-point numbers"
        )


def _is_integer(e: Expression, known: Mapping[str, Any]) -> bool:
    """Whether the expression is of integers or truths alone, of NumPy's."""
    values = [known[a.tensor] for a in accesses(e)]
    if isinstance(e, Literal):
        return isinstance(e.value, int)
    return all(not is_torch(getattr(x, "values", x)) and isdtype(x.dtype, ("bool", "integral")) for x in values)


def renamed(e: Expression, names: Mapping[str, str]) -> Expression:
    match e:
        case Access(tensor, indices):
            return Access(names[tensor], indices)
        case Apply(op, args):
            return Apply(op, tuple(renamed(a, names) for a in args))
    return e


def swapped(e: Expression, old: Expression, new: Expression) -> Expression:
    if e == old:
        return new
    return Apply(e.op, tuple(swapped(a, old, new) for a in e.args)) if isinstance(e, Apply) else e


def lazily(e: Expression, order: tuple[str, ...], known: Mapping[str, Any]) -> Any:
    match e:
        case Literal(value):
            return value
        case Access(tensor, indices):
            return lazy(laid(known[tensor], indices, order))
        case Apply("select", args):
            return where(*(lazily(a, order, known) for a in args))
        case Apply(op, (arg,)):
            return unary(op, lazily(arg, order, known))
        case Apply(op, (left, right)):
            return elementwise(op, lazily(left, order, known), lazily(right, order, known))
    raise UnsupportedError(f"evaluate: {e} cannot be reduced\n  help: assign it to a name first, then reduce that")


def laid(value: Any, indices: tuple[str, ...], order: tuple[str, ...]) -> Any:
    """A view with the dimensions of `order`, of extent 1 where it has none."""
    place = sorted(range(len(indices)), key=lambda k: order.index(indices[k]))
    new = tuple(k for k, i in enumerate(order) if i not in indices)
    if isinstance(value, Tensor):
        turned = value._storage.permute(place) if place != list(range(len(place))) else value._storage
        return Tensor._from_storage(insert_dims(turned, new) if new else turned)
    array = value.transpose(place) if isinstance(value, np.ndarray) else value.permute(*place)
    sizes = iter(array.shape)
    return array.reshape(tuple(1 if k in new else next(sizes) for k in range(len(order))))

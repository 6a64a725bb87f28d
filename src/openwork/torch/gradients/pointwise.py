"""Gradient rules of elementwise expressions: torch's operations on operands' values gathered at the result's elements.

The kernel that walks the operands together gives the structure of the result, which is constant, and its values. The
same expression, in torch's operations on values taken from the operands, gives the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import torch

from ...ir.loop import Cast, Const, Expr, Op, Var
from ...ir.types import COMPLEX, FLOATS
from ...runtime.values import apply
from ...storage.buffers import as_array, torch_dtype
from ...storage.recorded import is_dual, is_transformed
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .function import Rule, apply_rule

__all__ = ["DIFFERENTIABLE", "dense_result", "evaluate", "known", "with_gradient_of"]

DIFFERENTIABLE = frozenset((*FLOATS, *COMPLEX))
"""The scalar types that have gradients."""


class _Known(Rule):
    """A known value with the gradient of another computation of it."""

    __slots__ = ()

    def forward(self, value: torch.Tensor, computed: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return None, grad


def with_gradient_of(value: torch.Tensor, computed: torch.Tensor) -> torch.Tensor:
    """`value` with the gradient of `computed`; under a transform or with a tangent `computed` itself."""
    return computed if is_dual(computed) or is_transformed(computed) else known(value, computed)


def known(value: torch.Tensor, computed: torch.Tensor) -> torch.Tensor:
    """`value` with the gradient of `computed`."""
    result: torch.Tensor = apply_rule(_KNOWN, value, computed)
    return result


_KNOWN = _Known()


def evaluate(e: Expr, values: Mapping[str, Any], specified: Mapping[str, Any] | None = None) -> Any:
    """An expression of the loop IR by torch's operations; `specified`: masks of operands with missing elements."""
    match e:
        case Var(name, _):
            return values[name]
        case Const(value, _):
            return value
        case Cast(arg, type):
            converted = evaluate(arg, values, specified)
            dtype = torch_dtype(type.scalar)
            return (
                converted.to(dtype) if isinstance(converted, torch.Tensor) else torch.as_tensor(converted, dtype=dtype)
            )
        case Op("given", (first, _), _):
            return evaluate(first, values, specified)
        case Op("either", (first, second), _):
            has_first = _where_specified(first, values, specified or {})
            first_value = evaluate(first, values, specified)
            return (
                first_value
                if has_first is None
                else torch.where(has_first, first_value, evaluate(second, values, specified))
            )
        case Op("select", args, _):
            return torch.where(*(evaluate(a, values, specified) for a in args))
        case Op(op, args, _):
            return apply(op, *(evaluate(a, values, specified) for a in args))
    raise TypeError(f"{e} is not an elementwise expression")


def _where_specified(e: Expr, values: Mapping[str, Any], specified: Mapping[str, Any]) -> Any:
    """Where an expression has a value, by the rules of `compiler.fill`; None: everywhere."""
    match e:
        case Var(name, _):
            return specified.get(name)
        case Cast(arg, _):
            return _where_specified(arg, values, specified)
        case Op("either", (first, second), _):
            a, b = (_where_specified(x, values, specified) for x in (first, second))
            return None if a is None or b is None else a | b
        case Op("select", (test, *arms), _) if any(_where_specified(a, values, specified) is not None for a in arms):
            always = torch.ones((), dtype=torch.bool)
            arms_specified = [always if (h := _where_specified(a, values, specified)) is None else h for a in arms]
            specified_here, test_specified = (
                torch.where(evaluate(test, values, specified), *arms_specified),
                _where_specified(test, values, specified),
            )
            return specified_here if test_specified is None else specified_here & test_specified
        case Op(_, args, _):
            masks = [h for a in args if (h := _where_specified(a, values, specified)) is not None]
            return None if not masks else reduce(torch.logical_and, masks)
    return None


def dense_result(op: str, s: Storage, array: Any, narrow: Any, stmt: Any, left: bool, shape: tuple[int, ...]) -> Any:
    """The rule of an operation with a dense operand whose result is dense."""
    dense = Tensor._from_storage(s).to_dense()
    array = as_array(array, like=dense)
    return apply(op, dense, array) if left else apply(op, array, dense)

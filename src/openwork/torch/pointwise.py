"""Gradients of elementwise expressions: each operand's values are taken where the result has elements, and torch does
the rest.

The kernel that walks the operands together gives the structure of the result, which is constant, and its values. The
same expression, in torch's operations on values taken from the operands, gives the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import torch

from ..compiler.fill import is_missing
from ..ir.loop import Cast, Const, Expr, Op, Var
from ..ir.types import COMPLEX, FLOATS
from ..runtime.coiterate.plan import MergePlan
from ..runtime.coiterate.run import run_plan as run
from ..runtime.values import apply
from ..storage.buffers import as_array, is_dual, is_transformed, outside, torch_dtype
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .permutation_gradient import gathered, located, plain, present, structure, unique

__all__ = ["DIFFERENTIABLE", "dense_result", "evaluate", "exactly", "run_plan"]

DIFFERENTIABLE = frozenset((*FLOATS, *COMPLEX))
"""The scalar types that have gradients."""


class _Exactly(torch.autograd.Function):  # type: ignore[misc]
    """A value that is known, with the gradient of another way to compute it."""

    @staticmethod
    def forward(ctx: Any, known: torch.Tensor, computed: torch.Tensor) -> torch.Tensor:
        return known.view_as(known)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, grads[0]


def exactly(known: torch.Tensor, computed: torch.Tensor) -> torch.Tensor:
    """`known`, with the gradient of `computed`, or `computed` with its tangent."""
    if is_dual(computed) or is_transformed(computed):
        return computed
    result: torch.Tensor = _Exactly.apply(known, computed)
    return result


def evaluate(e: Expr, values: Mapping[str, Any], there: Mapping[str, Any] | None = None) -> Any:
    """An expression of the loop IR by torch's operations; `there`: where operands are that may be missing."""
    match e:
        case Var(name, _):
            return values[name]
        case Const(value, _):
            return value
        case Cast(arg, type):
            found = evaluate(arg, values, there)
            dtype = torch_dtype(type.scalar)
            return found.to(dtype) if isinstance(found, torch.Tensor) else torch.as_tensor(found, dtype=dtype)
        case Op("given", (first, _), _):
            return evaluate(first, values, there)
        case Op("either", (first, second), _):
            held = _specified(first, values, there or {})
            one = evaluate(first, values, there)
            return one if held is None else torch.where(held, one, evaluate(second, values, there))
        case Op("select", args, _):
            return torch.where(*(evaluate(a, values, there) for a in args))
        case Op(op, args, _):
            return apply(op, *(evaluate(a, values, there) for a in args))
    raise TypeError(f"{e} is no elementwise expression")


def _specified(e: Expr, values: Mapping[str, Any], there: Mapping[str, Any]) -> Any:
    """Where an expression has a value, by the rules of `compiler.fill`; None: everywhere."""
    match e:
        case Var(name, _):
            return there.get(name)
        case Cast(arg, _):
            return _specified(arg, values, there)
        case Op("either", (first, second), _):
            a, b = (_specified(x, values, there) for x in (first, second))
            return None if a is None or b is None else a | b
        case Op("select", (test, *arms), _) if any(_specified(a, values, there) is not None for a in arms):
            every = torch.ones((), dtype=torch.bool)
            held = [every if (h := _specified(a, values, there)) is None else h for a in arms]
            chosen, known = torch.where(evaluate(test, values, there), *held), _specified(test, values, there)
            return chosen if known is None else chosen & known
        case Op(_, args, _):
            several = [h for a in args if (h := _specified(a, values, there)) is not None]
            return None if not several else reduce(torch.logical_and, several)
    return None


_run = outside()(run)


def run_plan(plan: MergePlan, storages: tuple[Storage, ...], shape: tuple[int, ...]) -> Storage:
    """The rule of `runtime.coiterate.run.run_plan`."""
    if plan.scalar not in DIFFERENTIABLE:
        return _run(plan, tuple(plain(s) for s in storages), shape)
    united = _run(plan, tuple(structure(s) for s in storages), shape)
    values, there, here = {}, {}, present(united)
    for (name, dims), s in zip(plan.dims.items(), storages, strict=True):
        s, places = unique(s), located(unique(s), united, dims)
        lacking = is_missing(plan.regions.fills[name])
        if lacking:
            there[name] = places > 0
        taken = gathered(s.values, places, [1 if lacking else s.fill_value])
        values[name] = taken if here is None else taken.masked_fill(~here, 1)
    computed = evaluate(plan.regions.expr, values, there).to(united.values.dtype)
    return united.with_values(exactly(united.values, computed.expand_as(united.values)))


def dense_result(op: str, s: Storage, array: Any, narrow: Any, stmt: Any, left: bool, shape: tuple[int, ...]) -> Any:
    """The rule of an operation with a dense operand whose result is dense."""
    mine = Tensor._from_storage(s).to_dense()
    array = as_array(array, like=mine)
    return apply(op, mine, array) if left else apply(op, array, mine)

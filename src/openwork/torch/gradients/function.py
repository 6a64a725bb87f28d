"""A rule and torch's tensors -> the rule's value, on torch's graph: the one `autograd.Function` of the package.

    class Scaled(Rule):
        def forward(self, x, y): return x * y                             # of tensors that torch does not record
        def gradients(self, saved, grad, needed): return grad * saved[1], grad * saved[0]

A rule says what a function of tensors computes and what its derivatives are, in functions of tensors that are recorded
again, so that there are derivatives of any order. What is no tensor, such as structures, the rule holds itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["Rule", "apply_rule", "map_batch"]

Gradients = Sequence[torch.Tensor | None]
_current_level = torch._C._functorch.maybe_current_level
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def map_batch(
    size: int, dims: Sequence[Any], operands: Sequence[Any], function: Callable[..., torch.Tensor]
) -> torch.Tensor:
    """`function` of each item of a batch, stacked; `dims` are the operands' batch dimensions, None without."""
    rows = [[x if d is None else x.select(d, k) for x, d in zip(operands, dims, strict=True)] for k in range(size)]
    return torch.stack([function(*row) for row in rows])


class Rule:
    """What a function of tensors computes, and its derivatives.

    materializes : whether the gradients of several values that have none are zeros, not None
    """

    __slots__ = ()
    materializes = True

    def forward(self, *tensors: Any) -> Any:
        """The value, or values, of tensors that torch does not record."""
        raise NotImplementedError

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        """What the derivatives read: tensors, or None for each that they do not. needed : whose gradients are asked"""
        return tensors

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Gradients:
        """The gradient of each tensor, None where none is needed. grad : the value's; of several values, a tuple"""
        raise NotImplementedError

    def tangent(self, saved: Sequence[Any], tangents: Gradients) -> Any:
        """The tangent of the value, of those of the tensors."""
        raise NotImplementedError

    def batch(self, size: int, dims: Sequence[Any], tensors: Sequence[Any]) -> Any:
        """The values of a batch, stacked in front, one item at a time. dims : the tensors' batch dimensions, or None"""
        return map_batch(size, dims, tensors, lambda *items: apply_rule(self, *items))

    def constant(self, output: Any) -> Sequence[torch.Tensor]:
        """Which of several values have no gradient."""
        return ()


class Statement(torch.autograd.Function):  # type: ignore[misc]
    """The function of torch's that every rule is applied by."""

    @staticmethod
    def forward(rule: Rule, *tensors: Any) -> Any:
        return rule.forward(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        rule = ctx.rule = inputs[0]
        if type(output) is tuple:
            ctx.mark_non_differentiable(*rule.constant(output))
            ctx.set_materialize_grads(rule.materializes)
        saved = rule.saved(inputs[1:], output, ctx.needs_input_grad[1:])
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad = grads[0] if len(grads) == 1 else grads
        return None, *ctx.rule.gradients(ctx.saved_tensors, grad, ctx.needs_input_grad[1:])

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
        return ctx.rule.tangent(ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info: Any, dims: Any, rule: Rule, *tensors: Any) -> Any:
        values = rule.batch(info.batch_size, dims[1:], tensors)
        return values, (0,) * len(values) if type(values) is tuple else 0


_outside_transforms = super(torch.autograd.Function, Statement).apply
"""`Statement.apply` where no transform of `torch.func` takes part: without the binding of names, ten microseconds."""


def apply_rule(rule: Rule, *tensors: Any) -> Any:
    """The value of a rule for these tensors, which torch records where it records one of them."""
    if _current_level() is None:
        for x in tensors:
            if type(x) is torch.Tensor and _is_wrapped(x):  # left by a transform that has ended
                return Statement.apply(rule, *tensors)
        return _outside_transforms(rule, *tensors)
    return Statement.apply(rule, *tensors)

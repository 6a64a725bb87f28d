"""Calls of differentiable functions -> their gradient rules, where torch records an operand.

Kernels run on addresses, outside torch's graph. A function that runs kernels is marked `differentiable`; where one of
its operands is a torch tensor that is recorded, the rule of its name is called instead, with all operands over torch
buffers, and calls the function again on operands without a graph. The rules live in a front end, which provides them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import UnsupportedError
from ..lazy_docstring import TypeText, unquote_types
from ..provided import provided
from ..storage.buffers import PLAIN_TENSORS
from ..storage.recorded import is_recorded, is_transformed

__all__ = [
    "any_dense_gradient", "by_rule", "dense_gradient_type", "differentiable", "rule", "tracked",
    "transformed", "with_grad", "with_grad_parameter",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Rules = Mapping[str, Callable[..., Any]]

dense_gradient_type: type | None = None
"""The type of Tensors whose operations have gradients at every element, once there is one."""


def tracked(buffers: Iterable[Any]) -> bool:
    """Whether torch records what happens to one of these buffers: for a gradient, a tangent or a transform."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if torch._C._functorch.maybe_current_level() is None and torch.autograd.forward_ad._current_level < 0:
        records, is_wrapped = torch.is_grad_enabled(), torch._C._functorch.is_functorch_wrapped_tensor
        for b in buffers:
            if type(b) is np.ndarray or not (type(b) in PLAIN_TENSORS or hasattr(b, "requires_grad")):
                continue
            if (records and b.requires_grad) or is_wrapped(b):  # a transform that has ended leaves tensors too
                return True
        return False
    return any(type(b) is not np.ndarray and hasattr(b, "requires_grad") and is_recorded(b) for b in buffers)


def transformed(buffers: Iterable[Any]) -> bool:
    """Whether one of these buffers belongs to a transform of `torch.func`."""
    return any(type(b) is not np.ndarray and hasattr(b, "requires_grad") and is_transformed(b) for b in buffers)


def rule(name: str) -> Callable[..., Any]:
    """The gradient rule of an operation.

    Raises UnsupportedError where there is none.
    """
    function = _rules().get(name)
    if function is None:
        raise UnsupportedError(f"{name} has no gradient\n  help: detach() the operands, or use torch.no_grad()")
    return function


@cache
def _rules() -> Rules:
    """The rules that a front end provides, asked for once."""
    rules: Rules = provided("torch rules").resolve()
    return rules


def differentiable(operands: Callable[..., Iterable[Any]]) -> Callable[[F], F]:
    """Call the rule of the function's name instead where torch records one of the buffers `operands(*args)`."""

    def mark(function: F) -> F:
        name = function.__name__.strip("_")

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if "torch" in sys.modules and tracked(buffers := tuple(operands(*args))):
                return by_rule(call, name, buffers, args, kwargs)
            return function(*args, **kwargs)

        return cast("F", call)

    return mark


def by_rule(
    function: Callable[..., Any], name: str, buffers: Sequence[Any], args: tuple[Any, ...],
    kwargs: Mapping[str, Any], whole: bool = False,
) -> Any:  # fmt: skip
    """The result of a function by the rule of its name, where torch records one of these buffers that it reads.

    whole : whether these are all buffers of the arguments, so that none is NumPy's where none of these is
    """
    if sys.modules["torch"]._C._functorch.maybe_current_level() is not None and transformed(buffers):
        return rule("transformed")(function, name, buffers, args, kwargs)
    if whole:
        for b in buffers:
            if type(b) is np.ndarray:
                break
        else:
            return rule(name)(*args, **kwargs)
    return rule(name)(*rule("over_torch")(args), **kwargs)


@cache
def with_grad(function: F) -> F:
    """A public function that takes `grad=` besides its own arguments.

    "sparse", the default, gives a sparse operand the gradient of its stored elements; "dense" that of every element, as
    far back as operations say so: to a tensor of `ow.asarray(obj, grad="dense")`, which says it for all that follow.
    """
    name = function.__name__

    @wraps(function)
    def call(*args: Any, grad: str | None = None, **kwargs: Any) -> Any:
        if grad is None and (dense_gradient_type is None or not any_dense_gradient((*args, *kwargs.values()))):
            return function(*args, **kwargs)
        return rule("dense_gradient")(function, name, grad, args, kwargs)

    call.__module__ = __name__.partition(".")[0]
    call.plain = function  # type: ignore[attr-defined]
    unquote_types(function)
    call.__signature__ = with_grad_parameter(signature(function))  # type: ignore[attr-defined]
    return cast("F", call)


_GRAD = Parameter("grad", Parameter.KEYWORD_ONLY, default=None, annotation=TypeText("str | None"))


def with_grad_parameter(own: Signature) -> Signature:
    """The signature of a function that takes `grad=` besides its own arguments, after those by name."""
    parameters = list(own.parameters.values())
    many = bool(parameters) and parameters[-1].kind is Parameter.VAR_KEYWORD
    return own.replace(parameters=[*parameters[: len(parameters) - many], _GRAD, *parameters[len(parameters) - many :]])


def any_dense_gradient(args: Iterable[Any]) -> bool:
    """Whether one of these operands, or of a list of them, has gradients at every element."""
    if dense_gradient_type is None:
        return False
    return any(type(a) is dense_gradient_type or (type(a) in (tuple, list) and any_dense_gradient(a)) for a in args)

"""Functions of torch that ask none of their operands -> the same, which hand over to ours where an operand is ours.

    torch.masked.sum(A, 1, mask=M)       openwork.masked.sum(A, 1, mask=M)
    torch.autograd.gradcheck(f, (A,))    openwork.torch.gradcheck(f, (A,))

    torch.func.grad(f)                   the gradient of f by its arguments, Tensors among them

torch's functions ask their operands for `__torch_function__`. Those that torch writes in Python have to be wrapped for
that (`torch.overrides.wrap_torch_function`), and a few are not. Once the first of torch's tensors is met, the code of
these functions is replaced by a call that looks at the operands; with operands of torch's alone it calls torch's own
code, which stands in `__wrapped__`. The function objects stay, so that names imported from torch before hand over too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from operator import attrgetter
from types import FunctionType
from typing import Any

from ..storage.buffers import at_first_tensor
from .gradient_hook import rule

__all__ = ["HANDED_OVER", "TRANSFORMS"]

_MASKED = (
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
)  # fmt: skip

HANDED_OVER: dict[tuple[str, str], str] = {
    **{("torch.masked", name): f"masked.{name}" for name in _MASKED},
    **{("torch.autograd", name): f"torch.{name}" for name in ("gradcheck", "gradgradcheck")},
}
"""Module and name of torch's function -> the name of ours in the package."""

TRANSFORMS = tuple(
    (module, name)
    for module, names in {
        "torch.func": (
            "functional_call", "grad", "grad_and_value", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap",
        ),
        "torch.autograd.functional": ("hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"),
        "torch.autograd.graph": ("get_gradient_edge", "register_multi_grad_hook"),
        "torch.utils.checkpoint": ("checkpoint",),
    }.items()
    for name in names
)  # fmt: skip
"""Module and name of torch's functions that are told at a later call, or in lists, of what they work on: always handed
over, to the rule `transform`. `torch.func.hessian` consists of them."""

_PACKAGE = __name__.partition(".")[0]


def _has_ours(arguments: Any) -> bool:
    """Whether a Tensor or masked tensor is among the arguments, or in a tuple or list of them."""
    for x in arguments:
        if hasattr(type(x), "_raw_storage") or hasattr(type(x), "__openwork_function__"):
            return True
        if isinstance(x, tuple | list) and _has_ours(x):
            return True
    return False


def _with_operands(theirs: Callable[..., Any], ours: str) -> Callable[..., Any]:
    """torch's function, or ours where one of the operands is."""
    find = attrgetter(ours)

    def function(*args: Any, **kwargs: Any) -> Any:
        if _has_ours(args) or (kwargs and _has_ours(kwargs.values())):
            return find(sys.modules[_PACKAGE])(*args, **kwargs)
        return theirs(*args, **kwargs)

    return function


def _transform(theirs: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The transform of this name, of functions that take and give Tensors too."""
    return lambda *args, **kwargs: rule("transform")(name, theirs, args, kwargs)


def _call(*args: Any, _handing_over: Callable[..., Any], **kwargs: Any) -> Any:
    return _handing_over(*args, **kwargs)


def _replace(home: Any, name: str, function_of: Callable[..., Callable[..., Any]], argument: str) -> None:
    """Have a function of torch call `function_of(its own code as a function, argument)`."""
    theirs: Any = getattr(home, name, None)
    while getattr(theirs, "__closure__", None) and hasattr(theirs, "__wrapped__"):
        theirs = theirs.__wrapped__  # that a decorator of torch's calls
    if type(theirs) is not FunctionType or theirs.__closure__:
        return  # another version's, which has no such function
    own = FunctionType(theirs.__code__, theirs.__globals__, name, theirs.__defaults__)
    update_wrapper(own, theirs)
    own.__kwdefaults__ = theirs.__kwdefaults__
    own.__dict__.pop("__wrapped__")
    theirs.__code__, theirs.__defaults__ = _call.__code__, None
    theirs.__kwdefaults__ = {"_handing_over": function_of(own, argument)}
    theirs.__dict__["__wrapped__"] = own


def _replace_functions() -> None:
    for (module, name), ours in HANDED_OVER.items():
        _replace(sys.modules.get(module), name, _with_operands, ours)
    for module, name in TRANSFORMS:
        _replace(sys.modules.get(module), name, _transform, f"{module}.{name}")


at_first_tensor.insert(0, _replace_functions)  # before the rules of the tracer, which name them

"""Functions of torch that ask none of their operands -> the same, which hand over to ours where an operand is ours.

    torch.masked.sum(A, 1, mask=M)       openwork.masked.sum(A, 1, mask=M)
    torch.autograd.gradcheck(f, (A,))    openwork.torch.gradcheck(f, (A,))

torch's functions ask their operands for `__torch_function__`. Those that torch writes in Python have to be wrapped for
that (`torch.overrides.wrap_torch_function`), and a few are not. Once the first of torch's tensors is met they are
wrapped here, by their public names; with operands of torch's alone they are torch's own functions, which stand in
`__wrapped__`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any

from ..storage.buffers import at_first_tensor

__all__ = ["HANDED_OVER"]

_MASKED = (
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
)  # fmt: skip

HANDED_OVER: dict[tuple[str, str], str] = {
    **{("torch.masked", name): f"masked.{name}" for name in _MASKED},
    **{("torch.autograd", name): f"torch.{name}" for name in ("gradcheck", "gradgradcheck")},
}
"""Module and name of torch's function -> the name of ours in the package."""

_PACKAGE = __name__.partition(".")[0]


def _has_ours(arguments: Any) -> bool:
    """Whether a Tensor or masked tensor is among the arguments, or in a tuple or list of them."""
    for x in arguments:
        if hasattr(type(x), "_raw_storage") or hasattr(type(x), "__openwork_function__"):
            return True
        if isinstance(x, tuple | list) and _has_ours(x):
            return True
    return False


def _handing_over(module: str, theirs: Callable[..., Any], ours: str) -> Callable[..., Any]:
    find = attrgetter(ours)

    @wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        if _has_ours(args) or (kwargs and _has_ours(kwargs.values())):
            return find(sys.modules[_PACKAGE])(*args, **kwargs)
        return theirs(*args, **kwargs)

    function.__module__ = module  # pickles find it by its public name
    return function


def _wrap_functions() -> None:
    for (module, name), ours in HANDED_OVER.items():
        home = sys.modules.get(module)
        theirs = getattr(home, name, None)
        if callable(theirs):
            setattr(home, name, _handing_over(module, theirs, ours))


at_first_tensor.insert(0, _wrap_functions)  # before the rules of the tracer, which name them

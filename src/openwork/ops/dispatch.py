"""Functions of the namespace on operands that are more than a Tensor: the operand's type takes the call over.

A type that has `__openwork_function__(function, args, kwargs)` is asked for the result; masked tensors are of such a
type. The functions themselves know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from typing import Any

from .too_large import FAILURES, size_error

__all__ = ["overridable", "takes_over"]

_HOOK = "__openwork_function__"


def takes_over(x: Any) -> bool:
    """Whether an operand's type takes calls over."""
    return hasattr(type(x), _HOOK)


@cache
def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the namespace, which asks the types of its operands first."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            kind = type(x)
            if hasattr(kind, _HOOK):
                return kind.__openwork_function__(function, args, kwargs)
            if kind is list or kind is tuple or kind is dict:
                found = _inside(x.values() if kind is dict else x)
                if found is not None:
                    return found.__openwork_function__(function, args, kwargs)
        try:
            return function(*args, **kwargs)
        except FAILURES as error:
            refused = size_error(function.__name__, error, _operands(args))
            if refused is None:
                raise
            raise refused from None

    call.__module__ = __name__.partition(".")[0]
    return call


def _operands(args: Iterable[Any]) -> Iterator[Any]:
    """The arguments, and those in lists of them."""
    for x in args:
        yield from x if isinstance(x, list | tuple) else (x,)


def _inside(several: Iterable[Any]) -> Any:
    """The type of the first operand of a list that takes calls over; numbers are looked at no further."""
    for x in several:
        if hasattr(type(x), _HOOK):
            return type(x)
        if isinstance(x, int | float | complex | list):
            return None
    return None

"""A method of an operator -> the same, run where the operator's data are, if they are in one other process.

A type that has `__openwork_run__(function, args, kwargs)` computes the result of a method, of which it is the first
argument, or gives NotImplemented: then the method runs here, and its products go there one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from ..errors import argument_hint

__all__ = ["at_operand"]

F = TypeVar("F", bound=Callable[..., Any])
_HOOK = "__openwork_run__"


def at_operand(function: F) -> F:
    """The method, which the type of its first argument may run elsewhere, by the method's module and name.

    A keyword that it does not have is a TypeError with the one that is like it."""

    names = tuple(signature(function).parameters)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for key in kwargs:
            if key not in names:
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {key!r}{argument_hint(key, names)}"
                )
        run = getattr(type(args[0]), _HOOK, None) if args else None
        if run is not None:
            result = run(args[0], function, args, kwargs)
            if result is not NotImplemented:
                return result
        return function(*args, **kwargs)

    return cast(F, call)

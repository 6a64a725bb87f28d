"""Functions of the namespace: operands whose type takes the call over, and operands so long that it is handed over.

A type that has `__openwork_function__(function, args, kwargs)` is asked for the result; masked tensors are of such a
type. A call with long operands runs on a helper thread, as a whole: between its kernels it sorts, searches and gathers
by NumPy, and the main thread could not answer signals meanwhile. The functions themselves know nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import suggestion
from ..interruptible import LONG, whole
from . import gradient_hook
from .too_large import FAILURES, size_error

__all__ = ["answering", "asking", "is_long", "overridable", "takes_over"]

F = TypeVar("F", bound=Callable[..., Any])
_HOOK = "__openwork_function__"
_FEW = 8
"""Operands of a list that are looked at."""


def takes_over(x: Any) -> bool:
    """Whether an operand's type takes calls over."""
    return hasattr(type(x), _HOOK)


@cache
def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the namespace, which asks the types of its operands first."""

    plain = getattr(function, "plain", None)
    """the function itself, of one that takes `grad=` too"""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            kind = type(x)
            if kind is list or kind is tuple or kind is dict:
                found = _inside(x.values() if kind is dict else x)
                if found is not None:
                    return _taken_over(found, function, args, kwargs)
            elif kind not in _PLAIN and _has_hook(kind):
                return _taken_over(kind, function, args, kwargs)
        try:
            if is_long(args):
                return whole(function, args, kwargs)
            if plain is None or gradient_hook.full is not None or "grad" in kwargs:
                return function(*args, **kwargs)
            return plain(*args, **kwargs)
        except FAILURES as error:
            refused = size_error(function.__name__, error, _operands(args))
            if refused is None:
                raise
            raise refused from None
        except TypeError as error:
            meant = _meant(function, kwargs, error)
            if not meant:
                raise
            raise TypeError(f"{error}{meant}") from None

    call.__module__ = __name__.partition(".")[0]
    return call


@cache
def asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the namespace that makes tensors, which says what was meant by an argument that it has not."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            meant = _meant(function, kwargs, error)
            if not meant:
                raise
            raise TypeError(f"{error}{meant}") from None

    return call


def _meant(function: Callable[..., Any], kwargs: dict[str, Any], error: TypeError) -> str:
    """What to say of an argument that the function has not, where it has one of nearly that name."""
    if type(error) is not TypeError or "unexpected keyword argument" not in str(error):
        return ""
    known = signature(function).parameters
    return next((suggestion(key, known) for key in kwargs if key not in known), "")


_NUMBERS: frozenset[type] = frozenset((int, float, bool, complex, str, type(None), slice))
_PLAIN: set[type] = {np.ndarray, *_NUMBERS}
"""Types that are known to take no calls over: those, and ours."""


def _has_hook(kind: type) -> bool:
    """Whether a type that is met for the first time takes calls over."""
    if hasattr(kind, _HOOK):
        return True
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        _PLAIN.add(kind)
    return False


def _taken_over(kind: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the type of an operand makes of a call."""
    if is_long(args):
        return whole(kind.__openwork_function__, (function, args, kwargs), {})
    return kind.__openwork_function__(function, args, kwargs)


def answering(function: F) -> F:
    """The function, which changes no operand, so that the main thread answers signals while operands are long."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_long(args):
            return whole(function, args, kwargs)
        return function(*args, **kwargs)

    return cast("F", call)


def is_long(args: Iterable[Any]) -> bool:
    """Whether one of the operands, or of a list of them, is long, and none a torch tensor's: torch has states of
    threads, such as `no_grad`."""
    found = False
    for x in args:
        kind = type(x)
        if kind in _NUMBERS:
            continue
        if kind is np.ndarray:
            found = found or x.size >= LONG
        elif kind is list or kind is tuple:
            found = found or is_long(x[:_FEW])
        else:
            held = x if hasattr(kind, "_kept") else getattr(x, "_tensor", None)
            kept = None if held is None else getattr(held, "_kept", None)
            if kept is not None:
                if type(kept.values) is not np.ndarray:
                    return False
                found = found or len(kept.values) >= LONG
    return found


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

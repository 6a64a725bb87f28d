"""A function of the namespace -> the function with overrides by operands' types, and long calls on a helper thread.

A type that has `__openwork_function__(function, args, kwargs)` computes the result, as masked tensors do. A call with
long operands runs on a helper thread, as a whole: between its kernels it sorts, searches and gathers by NumPy, and the
main thread could not answer signals meanwhile. The functions themselves are independent of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import argument_hint
from ..interruptible import LONG, whole
from . import gradient_hook
from .library_errors import FAILURES, explain

__all__ = ["answering", "with_hints", "is_long", "overridable", "takes_over"]

F = TypeVar("F", bound=Callable[..., Any])
_HOOK = "__openwork_function__"
_FEW = 8
"""Operands of a list that are looked at."""


def takes_over(x: Any) -> bool:
    """Whether an operand's type takes calls over."""
    return hasattr(type(x), _HOOK)


@cache
def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the namespace, which types of its operands may override."""

    plain = getattr(function, "plain", None)
    """the function itself, of one that takes `grad=` too"""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        long = False
        for x in args:
            kind = type(x)
            if kind in _NUMBERS:
                continue
            if kind is list or kind is tuple or kind is dict:
                overriding = _overriding_type(x.values() if kind is dict else x)
                if overriding is not None:
                    return _call_override(overriding, function, args, kwargs)
                long = True
            elif kind not in _PLAIN and _has_hook(kind):
                return _call_override(kind, function, args, kwargs)
            elif not long:
                storage = getattr(x, "_raw_storage", None)
                values = x if storage is None else storage.values
                long = type(values) is np.ndarray and values.size >= LONG if kind in _PLAIN else True
        try:
            if long and is_long(args):
                return whole(function, args, kwargs)
            if plain is None or gradient_hook.dense_gradient_type is not None or "grad" in kwargs:
                return function(*args, **kwargs)
            return plain(*args, **kwargs)
        except FAILURES as error:
            explain(function.__name__, error, _operands(args))
            raise
        except TypeError as error:
            explain(function.__name__, error, ())
            hint = _hint_of_argument(function, kwargs, error)
            if not hint:
                raise
            raise TypeError(f"{error}{hint}") from None

    call.__module__ = __name__.partition(".")[0]
    return call


@cache
def with_hints(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the namespace that makes tensors; an error of a misspelt argument names the nearest one."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            explain(function.__name__, error, ())
            hint = _hint_of_argument(function, kwargs, error)
            if not hint:
                raise
            raise TypeError(f"{error}{hint}") from None

    return call


def _hint_of_argument(function: Callable[..., Any], kwargs: dict[str, Any], error: TypeError) -> str:
    """The hint for an argument that the function does not have, where it has one of nearly that name."""
    if type(error) is not TypeError or "unexpected keyword argument" not in str(error):
        return ""
    known = signature(function).parameters
    return next((argument_hint(key, known) for key in kwargs if key not in known), "")


_NUMBERS: frozenset[type] = frozenset((int, float, bool, complex, str, type(None), slice))
_PLAIN: set[type] = {np.ndarray, *_NUMBERS}
"""Types that are known to have no override: those, the package's own and torch's."""


def _has_hook(kind: type) -> bool:
    """Whether a type has an override; types of the package and of torch without one are remembered."""
    if hasattr(kind, _HOOK):
        return True
    if kind.__module__.partition(".")[0] in (__name__.partition(".")[0], "torch"):
        _PLAIN.add(kind)
    return False


def _call_override(kind: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call by the override of an operand's type."""
    try:
        if is_long(args):
            return whole(kind.__openwork_function__, (function, args, kwargs), {})
        return kind.__openwork_function__(function, args, kwargs)
    except FAILURES as error:
        explain(function.__name__, error, _operands(args))
        raise


def answering(function: F) -> F:
    """A function that changes no operand, run on a helper thread for long ones, so that signals are answered."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_long(args):
            return whole(function, args, kwargs)
        return function(*args, **kwargs)

    return cast("F", call)


def is_long(args: Iterable[Any]) -> bool:
    """Whether one of the operands, or of a list of them, is long, and none is over torch buffers: torch has state per
    thread, such as `no_grad`."""
    long = False
    for x in args:
        kind = type(x)
        if kind in _NUMBERS:
            continue
        if kind is np.ndarray:
            long = long or x.size >= LONG
        elif kind is list or kind is tuple:
            long = long or is_long(x[:_FEW])
        else:
            tensor = x if hasattr(kind, "_raw_storage") else getattr(x, "_tensor", None)
            storage = None if tensor is None else getattr(tensor, "_raw_storage", None)
            if storage is not None:
                if type(storage.values) is not np.ndarray:
                    return False
                long = long or len(storage.values) >= LONG
    return long


def _operands(args: Iterable[Any]) -> Iterator[Any]:
    """The arguments, and those in lists of them."""
    for x in args:
        yield from x if isinstance(x, list | tuple) else (x,)


def _overriding_type(items: Iterable[Any]) -> Any:
    """The type of the first operand of a list that overrides calls; a list that begins with numbers has none."""
    for x in items:
        if hasattr(type(x), _HOOK):
            return type(x)
        if isinstance(x, int | float | complex | list):
            return None
    return None

"""Adds the operations of the registry as methods to tensors: `A.log1p()` is `ow.log1p(A)`, for either library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from ..runtime.gradient_hook import rule
from ..storage.buffers import is_torch
from ..tables import LAZY, MASKED, METHODS
from .numpy_names import by_numpy

__all__ = ["LazyMethods", "MaskedMethods", "Methods"]

_PACKAGE = __name__.partition(".")[0]


class Methods:
    """The mixin of `Tensor` whose methods are operations; over torch buffers torch's method of that name goes first."""

    __slots__ = ()


class LazyMethods:
    """The mixin of `Lazy`: methods without arguments are deferred, others compute the tensor first."""

    __slots__ = ()


class MaskedMethods:
    """The mixin of `MaskedTensor`: operations whose blocks say what they do with masked tensors."""

    __slots__ = ()


def _operation(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(sys.modules[_PACKAGE], name)(self, *args, **kwargs)


def _torch_method_or_operation(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    storage = getattr(self, "_kept", None)
    if storage is not None and is_torch(storage.values):
        torch_method = rule("torch_method")(self, name)
        if torch_method is not None:
            return torch_method(*args, **kwargs)
    try:
        return _operation(self, name, args, kwargs)
    except TypeError:
        if _accepts(getattr(sys.modules[_PACKAGE], name), self, args, kwargs) or not callable(getattr(np, name, None)):
            raise
    return by_numpy(name, (self, *args), kwargs)


def _accepts(function: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the function has these arguments."""
    try:
        signature(function).bind(self, *args, **kwargs)
    except TypeError:
        return False
    return True


def _deferred(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(self.compute(), name)(*args, **kwargs) if args or kwargs else _operation(self, name, args, kwargs)


def _method(run: Callable[..., Any], kind: str, name: str, summary: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(self, name, args, kwargs)

    call.__name__, call.__qualname__, call.__doc__ = name, f"{kind}.{name}", summary
    return call


for _class, _kind, _run, _names in (
    (Methods, "Tensor", _torch_method_or_operation, METHODS.keys()),
    (LazyMethods, "Lazy", _deferred, LAZY),
    (MaskedMethods, "MaskedTensor", _operation, MASKED),
):
    for _name in METHODS.keys() & _names:
        setattr(_class, _name, _method(_run, _kind, _name, METHODS[_name]))

"""Operations as methods of tensors: `A.log1p()` is `ow.log1p(A)`, over NumPy and torch buffers alike."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..runtime.gradient_hook import rule
from ..storage.buffers import is_torch
from ..tables import LAZY, MASKED, METHODS

__all__ = ["LazyMethods", "MaskedMethods", "Methods"]

_PACKAGE = __name__.partition(".")[0]


def _method(name: str, summary: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        kept = getattr(self, "_kept", None)
        if kept is not None and is_torch(kept.values):
            theirs = rule("torch_method")(self, name)
            if theirs is not None:
                return theirs(*args, **kwargs)
        return getattr(sys.modules[_PACKAGE], name)(self, *args, **kwargs)

    call.__name__, call.__qualname__, call.__doc__ = name, f"Tensor.{name}", summary
    return call


class Methods:
    """The mixin whose methods are operations; torch's of that name over torch buffers, where it has one."""

    __slots__ = ()


class LazyMethods:
    """The same for tensors to be computed later: of the tensor alone they are deferred, else they compute it first."""

    __slots__ = ()


def _deferred(name: str, summary: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return getattr(self.compute(), name)(*args, **kwargs)
        return getattr(sys.modules[_PACKAGE], name)(self)

    call.__name__, call.__qualname__, call.__doc__ = name, f"Lazy.{name}", summary
    return call


class MaskedMethods:
    """The same for masked tensors: operations whose blocks say what they do with them."""

    __slots__ = ()


def _masked(name: str, summary: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(sys.modules[_PACKAGE], name)(self, *args, **kwargs)

    call.__name__, call.__qualname__, call.__doc__ = name, f"MaskedTensor.{name}", summary
    return call


for _name, _summary in METHODS.items():
    setattr(Methods, _name, _method(_name, _summary))
    if _name in LAZY:
        setattr(LazyMethods, _name, _deferred(_name, _summary))
    if _name in MASKED:
        setattr(MaskedMethods, _name, _masked(_name, _summary))

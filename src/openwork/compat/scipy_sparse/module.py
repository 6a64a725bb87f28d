"""A module of SciPy's -> its functions with arrays of ours: arguments go over as SciPy's, results come back as ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from .array import unwrapped, wrapped

__all__ = ["bridged", "names"]


def bridged(function: Callable[..., Any], convert: Callable[[Any], Any] = unwrapped) -> Callable[..., Any]:
    """A function of SciPy's, its arguments converted, sparse results wrapped."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapped(function(*map(convert, args), **{key: convert(value) for key, value in kwargs.items()}))

    return call


def names(module: ModuleType) -> list[str]:
    """What the module has that is public."""
    return [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]

"""A pure function of formats -> the function with a cache, whose keys include the names of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from .format import Format

__all__ = ["cached"]

P = ParamSpec("P")
R = TypeVar("R")


def cached(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A least-recently-used cache. Equal formats may name their dimensions differently, and results and errors show
    these names, so they are part of the key."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        remembered = lru_cache(maxsize)(lambda names, *args, **kwargs: function(*args, **kwargs))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return remembered(tuple(a.dims for a in args if isinstance(a, Format)), *args, **kwargs)  # type: ignore[arg-type]

        return call

    return decorate

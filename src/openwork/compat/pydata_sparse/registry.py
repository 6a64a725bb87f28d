"""A function of pydata/sparse's name -> the one here, where it is more than openwork's operation of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS", "own"]

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def own(f: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function under its name."""
    FUNCTIONS[f.__name__] = f
    return f

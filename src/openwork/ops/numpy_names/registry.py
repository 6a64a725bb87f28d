"""NumPy's functions that are no operations of the namespace: name -> what computes them on Tensors.

    @numpy_function("fliplr")
    def fliplr(m): ...

An operation of the namespace needs no entry: NumPy's function of its name arrives there, and its block names others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["FUNCTIONS", "numpy_function"]

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By NumPy's name; of `numpy.linalg` and the like with the module, "linalg.multi_dot". Arguments are NumPy's."""


def numpy_function(*names: str) -> Callable[[F], F]:
    """Register a function as NumPy's functions of these names."""

    def register(function: F) -> F:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register

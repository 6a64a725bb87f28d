"""NumPy's functions that are no operations of the namespace: name -> what computes them on Tensors.

    @numpy_function("fliplr")
    def fliplr(m): ...

An operation of the namespace needs no entry: NumPy's function of its name arrives there, and its block names others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...namespaces import entering

__all__ = ["FUNCTIONS", "numpy_function"]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By NumPy's name; of `numpy.linalg` and the like with the module, "linalg.multi_dot". Arguments are NumPy's."""

numpy_function = entering(FUNCTIONS)
"""Registers a function as NumPy's functions of these names."""

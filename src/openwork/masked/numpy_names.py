"""NumPy's functions on masked tensors, by name: what `__array_function__` looks up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import products, shaping
from .elementwise import select

__all__ = ["ACCUMULATIONS", "FUNCTIONS", "REDUCTIONS", "function_named", "method_named"]

REDUCTIONS = {
    "add": "sum", "multiply": "prod", "minimum": "amin", "maximum": "amax", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
"""Ufuncs and the reduction that each is."""
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}


def _method(name: str) -> Callable[..., Any]:
    def function(m: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(m, name)(*args, **kwargs)

    return function


def _along(name: str) -> Callable[..., Any]:
    def function(m: Any, axis: Any = None, **kwargs: Any) -> Any:
        return getattr(m, name)(axis=axis, **kwargs)

    return function


def _spread(name: str) -> Callable[..., Any]:
    def function(m: Any, axis: Any = None, ddof: float = 0, **kwargs: Any) -> Any:
        return getattr(m, name)(axis=axis, correction=ddof, **kwargs)

    return function


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: _method(name)
        for name in (
            "argsort", "reshape", "squeeze", "roll", "flip", "take", "tril", "triu", "broadcast_to", "clip",
            "transpose",
        )
    },
    **{
        name: _along(name)
        for name in (
            "sum", "prod", "mean", "any", "all", "amin", "amax", "min", "max", "argmin", "argmax", "cumsum", "cumprod",
            "median",
        )
    },
    "nonzero": _method("nonzero"),
    "unique": _method("unique"),
    "ravel": _method("flatten"),
    "sort": _method("sort"),
    "expand_dims": _method("unsqueeze"),
    "var": _spread("var"),
    "std": _spread("std"),
    "where": select,
    "concatenate": shaping.concat,
    "stack": shaping.stack,
    "einsum": products.einsum,
    "dot": products.matmul,
    "matmul": products.matmul,
}  # fmt: skip
"""The functions by NumPy's name."""


def function_named(name: str) -> Callable[..., Any] | None:
    """The function that NumPy's of this name is here."""
    return FUNCTIONS.get(name)


def method_named(method: str, ufunc: str) -> str | None:
    """The method that a ufunc's "reduce" or "accumulate" is here."""
    return {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}.get(method, {}).get(ufunc)

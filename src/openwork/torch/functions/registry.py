"""torch's functions by name -> the functions of Tensors that do the same.

    @torch_function("flatten", "ravel")
    def flatten(t, start_dim=0, end_dim=-1): ...

An operation whose block spells torch's function (`runtime.operation`) is found by that; here stand the functions that
torch alone has, and those that mean something else in torch than in the namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...namespaces import entering
from ...runtime.operation import block
from ...tables import TORCH

__all__ = ["CHECKED", "FUNCTIONS", "MOVES", "PREPARED", "checked", "operation_of", "prepared_by", "torch_function"]

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""torch's functions by name, those of the modules that are loaded."""

PREPARED: dict[Any, Callable[..., Any]] = {}
"""torch's functions -> what runs their prepared calls: arguments by place -> the result, None where none is kept."""

prepared_by = entering(PREPARED)
"""Registers what runs the prepared calls of torch's functions."""
_enter = entering(FUNCTIONS)

MOVES: set[str] = set()
"""Those of them that only move the elements of their first operand: masked tensors take them as they are."""


CHECKED: set[Callable[..., Any]] = set()
"""Those that refuse by themselves what torch does, without the time that it takes to ask torch."""


def checked(function: F) -> F:
    """The function, which refuses by itself what torch does."""
    CHECKED.add(function)
    return function


def torch_function(*names: str, moves: bool = False) -> Callable[[F], F]:
    """Register what does torch's functions of these names."""
    if moves:
        MOVES.update(names)
    return _enter(*names)


def operation_of(name: str) -> Callable[..., Any]:
    """The operation whose block spells torch's function of this name, called with torch's arguments."""
    operation = block(TORCH[name])
    spelled, function = operation.spelled("torch", name), operation.function
    if spelled.signature is None:
        return function
    return lambda *args, **kwargs: spelled.call(function, args, kwargs)

"""From a function of tensors to its block: the one record that says where and how an operation is public.

    @operation(method=True, numpy="nansum", masked=lambda m, **options: m.sum(**options))
    def nansum(x, /, *, axis=None, dtype=None, keepdims=False): ...

Everything that lists operations reads these records: the namespace and its stub, the methods of Tensors of either
library, both NumPy protocols, torch's names, masked and lazy tensors, the reference page (`openwork.tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["OPERATIONS", "Operation", "operation"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Operation:
    """An operation, and where it is public.

    name : in the namespace
    function : what computes it; it knows nothing of the rest
    method : whether it is a method of Tensors too, the tensor first
    numpy : names of NumPy's functions and ufuncs that it is, besides the one of its own name
    torch : names of torch's functions that it is, where torch's table has none; `dim` is axis, `keepdim` keepdims
    masked : "elements" where it maps specified elements, "moves" where it only moves them, a function of masked
        tensors, or None where it does not take them
    lazy : whether it is deferred on tensors to be computed later; else they are computed first
    grad : whether it takes `grad=`, the elements that have gradients
    operands : whether its operands' types are asked for the result: not of functions that make tensors
    """

    name: str
    function: Callable[..., Any]
    method: bool
    numpy: tuple[str, ...]
    torch: tuple[str, ...]
    masked: str | Callable[..., Any] | None
    lazy: bool
    grad: bool
    operands: bool

    @property
    def module(self) -> str:
        """Where the block stands."""
        return self.function.__module__.removeprefix("openwork.")

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())


OPERATIONS: dict[str, Operation] = {}
"""The blocks of the modules that are loaded, by name."""


def _names(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def operation(
    name: str | None = None,
    *,
    method: bool = False,
    numpy: str | tuple[str, ...] = (),
    torch: str | tuple[str, ...] = (),
    masked: str | Callable[..., Any] | None = None,
    lazy: bool = False,
    grad: bool = True,
    operands: bool = True,
) -> Callable[[F], F]:
    """Register a function as the operation of its name; see `Operation`."""

    def register(function: F) -> F:
        called = name or function.__name__
        OPERATIONS[called] = Operation(
            called, function, method, _names(numpy), _names(torch), masked, lazy, grad and operands, operands
        )
        return function

    return register

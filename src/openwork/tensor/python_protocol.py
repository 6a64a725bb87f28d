"""Python's built-in functions on tensors: `len`, `iter`, `bool`, and of one element `float`, `round`, `format`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from ..errors import DTypeError, ShapeError
from ..integers import integer
from ..storage.buffers import host_values, is_torch

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["PythonProtocol", "ScalarError"]


class ScalarError(ShapeError, DTypeError):
    """A tensor of several elements where Python needs a number."""


class PythonProtocol:
    """The mixin of tensors, lazy ones too, with the methods that Python's built-in functions call."""

    __slots__ = ()

    def __len__(self) -> int:
        shape = cast("Tensor", self).shape
        if not shape:
            raise TypeError("len() of a tensor of rank 0")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (cast("Tensor", self)[k] for k in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        """Whether an element equals the value, as NumPy says it: NaN equals nothing."""
        equal = self == value
        return equal if isinstance(equal, bool) else bool(equal.any())

    def item(self, *place: Any) -> Any:
        """The value of a tensor of one element as a Python scalar, or of the element at a place.

        place : its coordinates, or its number in row-major order
        """
        me = cast("Tensor", self)
        if place:
            return self._at("item", place[0] if len(place) == 1 and isinstance(place[0], tuple) else place).item()
        if me.size != 1:
            raise ShapeError(
                f"item: expected a tensor of one element; got shape {me.shape}\n  help: index it, or to_numpy()"
            )
        return host_values(me.to_dense()).reshape(-1)[0].item()

    def _at(self, operation: str, place: tuple[Any, ...]) -> Any:
        """The element at coordinates, or at one place of the row-major order."""
        me = cast("Tensor", self)
        coordinates = [integer(k, operation, "a place") for k in place]
        if len(coordinates) == 1 and len(me.shape) != 1:
            if not -me.size <= coordinates[0] < me.size:
                raise IndexError(f"{operation}: place {coordinates[0]} of {int(me.size)} elements")
            linear, coordinates = coordinates[0] % me.size, []
            for n in me.shape[::-1]:
                coordinates.insert(0, linear % n)
                linear //= n
        if len(coordinates) != len(me.shape):
            raise ShapeError(
                f"{operation}: {len(coordinates)} coordinates of a tensor of shape {me.shape}\n  help: give all"
            )
        return me[tuple(coordinates)]

    def _number(self, operation: str) -> Any:
        """The element, for a function of Python's that takes one number."""
        me = cast("Tensor", self)
        if math.prod(me.shape) != 1:
            raise ScalarError(
                f"{operation}: only a tensor of one element is a number; got shape {me.shape}"
                "\n  help: index it, or reduce it with sum(), any() or all()"
            )
        return self.item()

    def _real(self, operation: str) -> Any:
        value = self._number(operation)
        if isinstance(value, complex):
            raise DTypeError(f"{operation}: {value} is complex\n  help: take .real first, or complex()")
        return value

    def __bool__(self) -> bool:
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._real("int"))

    def __float__(self) -> float:
        return float(self._real("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        me = cast("Tensor", self)
        if (not me.shape or is_torch(me.values)) and math.prod(me.shape) == 1:
            value = self.item()
            if type(value) is int:
                return value
        raise DTypeError(
            f"only an integer tensor of rank 0 is an index; got shape {me.shape}, dtype {me.dtype}\n  help: int()"
        )

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._rank_0("round"), digits)

    def __trunc__(self) -> int:
        return math.trunc(self._rank_0("trunc"))

    def __floor__(self) -> int:
        return math.floor(self._rank_0("floor"))

    def __ceil__(self) -> int:
        return math.ceil(self._rank_0("ceil"))

    def _rank_0(self, operation: str) -> float:
        shape = cast("Tensor", self).shape
        if shape:
            raise ScalarError(
                f"{operation}: Python's takes one number; got a tensor of shape {shape}"
                f"\n  help: openwork.{operation}(t) takes every element"
            )
        number: float = self._real(operation)
        return number

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        shape = cast("Tensor", self).shape
        if shape:
            raise ScalarError(
                f"format: {spec!r} is of one number; got a tensor of shape {shape}\n  help: str(t), or format elements"
            )
        return format(self.item(), spec)

    def __divmod__(self, other: Any) -> Any:
        return _divmod_result(cast("Tensor", self).__floordiv__(other), lambda: cast("Tensor", self).__mod__(other))

    def __rdivmod__(self, other: Any) -> Any:
        return _divmod_result(cast("Tensor", self).__rfloordiv__(other), lambda: cast("Tensor", self).__rmod__(other))


def _divmod_result(quotient: Any, remainder: Callable[[], Any]) -> Any:
    """`(quotient, remainder)`; NotImplemented where the other operand's type goes first."""
    return NotImplemented if quotient is NotImplemented else (quotient, remainder())

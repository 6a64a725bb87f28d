"""Axis arguments, checked."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..integers import AxisError, integer, integers
from ..interop.sources import asarray
from ..tensor.tensor import Tensor

__all__ = ["AxisError", "as_tensor", "axes_of", "axis_of", "exchanged"]


def as_tensor(x: Any) -> Tensor:
    """The operand as a Tensor."""
    return x if isinstance(x, Tensor) else asarray(x)


def axis_of(axis: Any, ndim: int, operation: str, name: str = "axis", *, boolean: bool = True) -> int:
    """The axis, counted from the front. Raises AxisError where there is none, DTypeError for no integer."""
    at = integer(axis, operation, name, boolean=boolean)
    if not -ndim <= at < ndim:
        raise AxisError(
            f"{operation}: axis {at} is out of bounds for array of dimension {ndim}"
            f"\n  help: axes go from {-ndim} to {ndim - 1}"
        )
    return at + ndim * (at < 0)


def exchanged(ndim: int, first: Any, second: Any, operation: str) -> list[int]:
    """The order of `ndim` dimensions, two of them exchanged."""
    order = list(range(ndim))
    a, b = axis_of(first, ndim, operation), axis_of(second, ndim, operation)
    order[a], order[b] = b, a
    return order


def axes_of(
    axes: Any,
    ndim: int,
    operation: str,
    name: str = "axis",
    *,
    boolean: bool = True,
    sequences: tuple[type, ...] | None = None,
) -> tuple[int, ...]:
    """Several axes in one of the `sequences`, or one, each at most once."""
    given = integers(axes, operation, name, boolean=boolean, sequences=sequences)
    found = tuple(axis_of(axis, ndim, operation) for axis in given)
    if len(set(found)) < len(found):
        raise ShapeError(f"{operation}: repeated axis in {given}\n  help: name each axis once")
    return found

"""Axis arguments, as users give them -> axes counted from 0, checked against the number of dimensions."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..integers import AxisError, integer, integers
from ..interop.sources import asarray
from ..provided import provides
from ..tensor.tensor import Tensor

__all__ = ["AxisError", "as_tensor", "axes_of", "axis_of", "swapped_axes"]


def as_tensor(x: Any) -> Tensor:
    """The operand as a Tensor."""
    return x if isinstance(x, Tensor) else asarray(x)


@provides("axis_of")
def axis_of(axis: Any, ndim: int, operation: str, name: str = "axis", *, boolean: bool = True) -> int:
    """An axis argument -> the axis counted from 0. Raises AxisError where there is none, DTypeError for no integer."""
    index = integer(axis, operation, name, boolean=boolean)
    if not -ndim <= index < ndim:
        raise AxisError(
            f"{operation}: axis {index} is out of bounds for array of dimension {ndim}"
            f"\n  help: axes go from {-ndim} to {ndim - 1}"
        )
    return index + ndim * (index < 0)


@provides("swapped_axes")
def swapped_axes(ndim: int, first: Any, second: Any, operation: str) -> list[int]:
    """The permutation of `ndim` dimensions that exchanges two of them."""
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
    """One axis, or several in one of the `sequences` -> distinct axes counted from 0; ShapeError for a repeated one."""
    arguments = integers(axes, operation, name, boolean=boolean, sequences=sequences)
    counted = tuple(axis_of(axis, ndim, operation) for axis in arguments)
    if len(set(counted)) < len(counted):
        raise ShapeError(f"{operation}: repeated axis in {arguments}\n  help: name each axis once")
    return counted

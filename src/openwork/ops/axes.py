"""Axis arguments, checked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from .sources import asarray
from .tensor import Tensor

__all__ = ["AxisError", "as_extents", "as_tensor", "axes_of", "axis_of"]


class AxisError(ShapeError, IndexError):
    """An axis that a tensor does not have."""


def as_tensor(x: Any) -> Tensor:
    """The operand as a Tensor."""
    return x if isinstance(x, Tensor) else asarray(x)


def axis_of(axis: Any, ndim: int, operation: str) -> int:
    """The axis, counted from the front. Raises AxisError where there is none, TypeError for no integer."""
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise AxisError(
            f"{operation}: axis {at} is out of bounds for array of dimension {ndim}"
            f"\n  help: axes go from {-ndim} to {ndim - 1}"
        )
    return at + ndim * (at < 0)


def axes_of(axes: Any, ndim: int, operation: str) -> tuple[int, ...]:
    """Several axes, or one, each at most once."""
    given: Sequence[Any] = tuple(axes) if isinstance(axes, Sequence) else (axes,)
    found = tuple(axis_of(axis, ndim, operation) for axis in given)
    if len(set(found)) < len(found):
        raise ShapeError(f"{operation}: repeated axis in {given}\n  help: name each axis once")
    return found


def as_extents(shape: Any, operation: str) -> tuple[int, ...]:
    """A shape as a tuple of Python integers."""
    try:
        return (operator.index(shape),)
    except TypeError:
        pass
    try:
        return tuple(operator.index(n) for n in shape)
    except TypeError as error:
        raise ShapeError(f"{operation}: {shape!r} is no shape\n  help: write (rows, columns)") from error

"""Integer arguments: what a caller gave -> Python ints, or an error that names the operation and the argument.

Every public parameter that is an integer goes through here: what has `__index__` is one (Python's and NumPy's integers,
arrays and tensors of rank 0), floats, complex numbers, text and None are not.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import DTypeError, ShapeError, broadcast_error

__all__ = ["AxisError", "ExtentError", "common_shape", "extents", "integer", "integers"]

_SHOWN = 60


class AxisError(ShapeError, IndexError):
    """An axis that a tensor does not have."""


class ExtentError(ShapeError, DTypeError):
    """A shape that is no sequence of integers."""


def integer(value: Any, operation: str, name: str, *, boolean: bool = True) -> int:
    """`value` as a Python int; True and False are 1 and 0 where `boolean` says so, as in NumPy's function of that name.

    Raises DTypeError, a TypeError, for what is no integer.
    """
    if type(value) is int:
        return value
    try:
        found = operator.index(value)
    except TypeError:
        raise _refused(value, operation, name) from None
    if not boolean and type(value).__name__ in ("bool", "bool_"):
        raise _refused(value, operation, name)
    return int(found)


def integers(
    values: Any, operation: str, name: str, *, boolean: bool = True, sequences: tuple[type, ...] | None = None
) -> tuple[int, ...]:
    """An integer, or a sequence of them, as a tuple of Python ints.

    sequences : the types that may hold several; without, all that have an order: no sets, mappings, iterators or text
    """
    if type(values) is int:
        return (values,)
    if not (_is_sequence(values) if sequences is None else isinstance(values, sequences)):
        return (integer(values, operation, name, boolean=boolean),)
    return tuple([integer(v, operation, name, boolean=boolean) for v in values])


def _is_sequence(values: Any) -> bool:
    """Whether it has a first element, a second, ...: tuples, lists, ranges, arrays and tensors of rank 1 or more."""
    if isinstance(values, tuple | list | range):
        return True
    if isinstance(values, str | bytes | bytearray | Mapping) or getattr(values, "ndim", 1) == 0:
        return False
    return hasattr(values, "__len__") and hasattr(values, "__getitem__")


def extents(shape: Any, operation: str, name: str = "a shape", *, negative: bool = False) -> tuple[int, ...]:
    """A shape, one extent or several, as a tuple of Python ints.

    Raises ExtentError, a ShapeError and a TypeError, for what is no shape, ShapeError for a negative extent.
    """
    try:
        found = integers(shape, operation, name, boolean=False)
    except DTypeError:
        raise ExtentError(
            f"{operation}: {name} is a tuple of integers; got: {_shown(shape)}\n  help: write (rows, columns)"
        ) from None
    if not negative and any(n < 0 for n in found):
        raise ShapeError(f"{operation}: shape {found} has a negative extent\n  help: extents are 0 or more")
    return found


def common_shape(operation: str, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to, of any number of elements. Raises ShapeError where they do not broadcast."""
    rank = max(map(len, shapes), default=0)
    out = []
    for column in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes), strict=True):
        larger = set(map(int, column)) - {1}  # torch's SymInt has no hash
        if len(larger) > 1:
            raise broadcast_error(operation, [tuple(s) for s in shapes])
        out.append(larger.pop() if larger else 1)
    return tuple(out)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _refused(value: Any, operation: str, name: str) -> DTypeError:
    return DTypeError(
        f"{operation}: {name} is an integer; got: {_shown(value)} of type {type(value).__name__}"
        f"\n  help: give an int{_remedy(value)}"
    )


def _remedy(value: Any) -> str:
    """The integer that a float like 2.0 was meant to be; a tuple in the place of other collections."""
    if isinstance(value, float) and value.is_integer():
        return f", {int(value)}"
    return ", or a tuple of ints where several are taken" if hasattr(value, "__iter__") else ""

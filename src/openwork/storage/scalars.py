"""A number and a scalar type -> the Python scalar that is a fill value of that type."""

from __future__ import annotations

from typing import Any

from ..errors import DTypeError

__all__ = ["python_scalar", "rounds"]


def python_scalar(value: Any, scalar: str) -> Any:
    """`value` as the Python scalar of a scalar type's kind."""
    if scalar == "bool":
        return bool(value)
    if scalar in ("c64", "c128"):
        return complex(value)
    if isinstance(value, complex):
        raise DTypeError(f"fill value {value} does not fit {scalar}\n  help: give a real fill value")
    if scalar[0] in "fb":
        return float(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise DTypeError(f"fill value {value} does not fit {scalar}\n  help: use a floating-point dtype")
    return int(value)


def rounds(scalar: str, other: str) -> bool:
    """Whether a conversion from one scalar type to another is not additive, as it truncates or maps to bool."""
    return other == "bool" or (scalar[0] in "fbc" and other[0] in "iu")

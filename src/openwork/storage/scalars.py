"""A number and a scalar type -> the Python scalar that is a fill value of that type, or why it is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError

__all__ = ["IntegerRangeError", "given_number", "keeps_sums", "largest", "python_scalar"]

_LARGEST = {
    "f16": float(np.finfo("f2").max), "bf16": (2 - 2**-7) * 2.0**127, "f32": float(np.finfo("f4").max),
    "f64": float(np.finfo("f8").max), "c64": float(np.finfo("f4").max), "c128": float(np.finfo("f8").max),
}  # fmt: skip


class IntegerRangeError(DTypeError, OverflowError):
    """A Python number that the integer dtype beside it does not hold; an OverflowError as NumPy's."""


def given_number(value: Any, scalar: str, subject: str, remedy: str) -> Any:
    """A number as a caller gives it -> the Python scalar of the type.

    Raises DTypeError, IntegerRangeError for whole numbers beyond an integer type, where the type does not hold it.
    """
    number: Any = value.item() if getattr(value, "ndim", None) == 0 else value
    if not isinstance(number, bool | int | float | complex):
        raise DTypeError(f"{subject}: expected a number; got {type(value).__name__}\n  help: {remedy}")
    is_finite, fits = abs(number) < float("inf"), scalar[0] == "c" or not number.imag
    number = number if scalar[0] == "c" else number.real if fits else number
    kind: type[DTypeError] = DTypeError
    if fits and (scalar == "bool" or scalar[0] in "iu"):
        fits = is_finite and number == int(number)
        if fits and not _lowest(scalar) <= number <= _highest(scalar):
            fits, kind = False, IntegerRangeError
    elif is_finite:
        fits = fits and abs(number) <= largest(scalar)
    if not fits:
        raise kind(f"{subject}: {number} does not fit {scalar}\n  help: {remedy}")
    return python_scalar(number, scalar)


def largest(scalar: str) -> float:
    """The largest finite number of a floating-point or complex scalar type."""
    return _LARGEST[scalar]


def _lowest(scalar: str) -> int:
    return -(1 << int(scalar[1:]) - 1) if scalar[0] == "i" else 0


def _highest(scalar: str) -> int:
    return 1 if scalar == "bool" else (1 << int(scalar[1:]) - (scalar[0] == "i")) - 1


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


def keeps_sums(scalar: str, other: str) -> bool:
    """Whether a conversion from one scalar type to another is additive: of integers, modulo a power of 2, to no more
    bits, of real to complex numbers of the same precision."""
    if scalar == other:
        return True
    if scalar[0] in "iu" and other[0] in "iu":
        return int(scalar[1:]) >= int(other[1:])
    return (scalar, other) in (("f32", "c64"), ("f64", "c128"))

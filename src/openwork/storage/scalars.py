"""A number and a scalar type -> the Python scalar that is a fill value of that type, or why it is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import DTypeError

__all__ = ["IntegerRangeError", "check_integers_fit", "given_fill", "python_scalar", "rounds"]

_LARGEST = {"f16": 65504.0, "f32": 3.4028234663852886e38, "bf16": 3.3895313892515355e38, "c64": 3.4028234663852886e38}


class IntegerRangeError(DTypeError, OverflowError):
    """A Python number that the integer dtype beside it does not hold; an OverflowError as NumPy's."""


def given_fill(value: Any, scalar: str, function: str) -> Any:
    """A fill value as a caller gives it -> the Python scalar of the type; DTypeError where the type holds it not."""
    number = value.item() if getattr(value, "ndim", None) == 0 else value
    if not isinstance(number, bool | int | float | complex):
        raise DTypeError(f"{function}: fill_value={value!r} is no number\n  help: give one number")
    finite = abs(number) < float("inf")
    if finite and scalar[0] in "iu" and not isinstance(number, complex):
        check_integers_fit([number], scalar, f"{function}: fill_value")
    made = python_scalar(number, scalar)
    if (scalar[0] in "iu" and made != number) or (finite and abs(made) > _LARGEST.get(scalar, float("inf"))):
        raise DTypeError(f"{function}: fill_value={value!r} does not fit {scalar}\n  help: give a dtype that holds it")
    return made


def check_integers_fit(numbers: Iterable[Any], scalar: str, subject: str) -> None:
    """Raises IntegerRangeError for a number beyond an integer type, infinity and NaN; fractions are let through."""
    bits = int(scalar[1:]) - (scalar[0] == "i")
    lowest = -(1 << bits) if scalar[0] == "i" else 0
    for number in numbers:
        if not lowest - 1 < number < 1 << bits:
            raise IntegerRangeError(
                f"{subject}: {number} is out of bounds for {scalar}\n  help: convert with .astype(...) to a wider dtype"
            )


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

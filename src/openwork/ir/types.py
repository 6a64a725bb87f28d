"""Scalar and vector types of the loop IR, and the sizes of their elements."""

from __future__ import annotations

from functools import cache

from ..classes import frozen

__all__ = [
    "BOOL",
    "COMPLEX",
    "FLOATS",
    "I64",
    "INTEGERS",
    "SCALARS",
    "SIGNED",
    "UNSIGNED",
    "Type",
    "itemsize",
    "real_of",
    "type_of",
]

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
SCALARS = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

_SIZES = {"bool": 1, "f16": 2, "bf16": 2, "c64": 8, "c128": 16}
_SIZES |= {scalar: int(scalar[1:]) // 8 for scalar in SCALARS if scalar not in _SIZES}
_REAL = {"c64": "f32", "c128": "f64"}


def itemsize(scalar: str) -> int:
    """Bytes of one element in memory."""
    return _SIZES[scalar]


def real_of(scalar: str) -> str:
    """The real scalar type of a complex one's parts; any other type is its own."""
    return _REAL.get(scalar, scalar)


@frozen
class Type:
    """A scalar type, or `lanes` of it side by side; printed `f64` and `f64x8`."""

    scalar: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.scalar if self.lanes == 1 else f"{self.scalar}x{self.lanes}"

    @property
    def is_integer(self) -> bool:
        return self.scalar in INTEGERS

    @property
    def is_float(self) -> bool:
        return self.scalar in FLOATS

    @property
    def is_complex(self) -> bool:
        return self.scalar in COMPLEX

    def with_lanes(self, lanes: int) -> Type:
        return self if lanes == self.lanes else type_of(self.scalar, lanes)

    def with_scalar(self, scalar: str) -> Type:
        return self if scalar == self.scalar else type_of(scalar, self.lanes)


@cache
def type_of(scalar: str, lanes: int = 1) -> Type:
    """The type; one object for each."""
    return Type(scalar, lanes)


BOOL = Type("bool")
I64 = Type("i64")

"""A Python value and a scalar type -> the nearest value of that type: the semantics of `const` and of `Cast`."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from .types import COMPLEX, FLOATS, INTEGERS, itemsize, real_of

FloatArray = np.ndarray[Any, np.dtype[np.float32]]

__all__ = ["fit", "int_range", "round_bf16", "round_float"]


@cache
def int_range(scalar: str) -> tuple[int, int]:
    """The least and greatest integer of the type."""
    bits = 8 * itemsize(scalar)
    return (0, (1 << bits) - 1) if scalar[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def fit(value: bool | int | float | complex, scalar: str) -> bool | int | float | complex:
    """`value` as the type holds it: integers wrap, floats round to nearest even, a float becomes an integer
    by truncation and saturation (NaN gives 0), a complex number becomes real by its real part."""
    if isinstance(value, complex) and scalar not in COMPLEX:
        return bool(value) if scalar == "bool" else fit(value.real, scalar)
    if scalar == "bool":
        return bool(value)
    if scalar in INTEGERS:
        return _integer(value, scalar)  # type: ignore[arg-type]
    if scalar in FLOATS:
        return round_float(_float(value), scalar)  # type: ignore[arg-type]
    part = real_of(scalar)
    z = value if isinstance(value, complex) else complex(_float(value), 0.0)
    return complex(round_float(z.real, part), round_float(z.imag, part))


def _integer(value: bool | int | float, scalar: str) -> int:
    lo, hi = int_range(scalar)
    if type(value) is int and lo <= value <= hi:
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return hi if value >= hi else lo if value <= lo else int(value)
    return (int(value) - lo) % (hi - lo + 1) + lo


def _float(value: bool | int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_float(value: float, scalar: str) -> float:
    """The nearest value of a floating-point type, as a Python float; f16 and bf16 by way of f32, as machines
    and PyTorch convert. NaN is always the one object `math.nan`."""
    if value != value:
        return math.nan
    if scalar == "f64":
        return value
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
        if scalar == "bf16":
            return float(round_bf16(np.asarray(narrow))[()])
        return float(np.float16(narrow) if scalar == "f16" else narrow)


def round_bf16(value: FloatArray) -> FloatArray:
    """Round float32 to bfloat16, nearest even, the result held in float32."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + odd) & np.uint64(0xFFFF0000)).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(value), np.float32(np.nan), rounded.reshape(np.shape(value))).astype(np.float32)

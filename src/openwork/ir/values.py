"""Conversion of one Python value to what a scalar type can hold: the meaning of `const` and of `Cast`."""

from __future__ import annotations

import math

import numpy as np

from .types import COMPLEX, FLOATS, INTEGERS, itemsize, real_of

__all__ = ["fit", "int_range", "round_bf16", "round_float"]


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
    """The nearest value of a floating-point type, as a Python float; NaN is always the one object `math.nan`."""
    if value != value:
        return math.nan
    if scalar == "f64":
        return value
    if scalar == "bf16":
        return float(round_bf16(np.float64(value)))
    with np.errstate(over="ignore"):
        return float(np.float16(value) if scalar == "f16" else np.float32(value))


def round_bf16(value: np.ndarray | np.float64 | np.float32) -> np.ndarray | np.float32:
    """Round float64 or float32 to bfloat16, nearest even, the result held in float32.

    A float64 is rounded once, to odd in float32 first, so that the second rounding is exact.
    """
    wide = np.asarray(value)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = wide.astype(np.float32)
        if wide.dtype == np.float64:
            away = np.abs(narrow.astype(np.float64)) > np.abs(wide)
            narrow = np.where(away, np.nextafter(narrow, np.float32(0)), narrow)
            inexact = (narrow.astype(np.float64) != wide) & np.isfinite(wide)
        else:
            inexact = np.zeros(wide.shape, bool)
    bits = np.ascontiguousarray(narrow).view(np.uint32).astype(np.uint64) | inexact.astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
    result = np.where(np.isnan(narrow), np.float32(np.nan), rounded.astype(np.uint32).view(np.float32))
    return result.astype(np.float32).reshape(wide.shape) if wide.ndim else np.float32(result.reshape(())[()])

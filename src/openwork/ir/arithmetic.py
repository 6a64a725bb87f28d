"""An operation of the loop IR and its operands, NumPy scalars or arrays of lanes -> the result: the reference.

f16 and bf16 are held in float32, as in the machine code; every other type in its own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import CompilerBug, DTypeError
from .operations import OPERATIONS
from .types import Type
from .values import int_range, round_bf16

__all__ = ["DTYPES", "FUNCTIONS", "Value", "apply", "convert", "expm1", "of_numbers"]

Value = Any
"""A NumPy scalar, or an array of shape (lanes,)."""

DTYPES: dict[str, type[np.generic]] = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float32,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
"""The dtype that holds values of each scalar type."""


def apply(op: str, args: Sequence[Value], type: Type) -> Value:
    """The operation on evaluated operands; `type` is the operation's result type."""
    function = FUNCTIONS.get(op)
    if function is None:
        raise CompilerBug(f"interpreter: unknown operation {op!r}")
    result = function(*args)
    return result if result.dtype == DTYPES[type.scalar] else result.astype(DTYPES[type.scalar])


def convert(value: Value, source: Type, target: Type) -> Value:
    """Cast: integers wrap, floats round, a float becomes an integer by truncation and saturation, NaN 0."""
    if source.is_complex and not target.is_complex and target.scalar != "bool":
        value, source = value.real, source.with_scalar("f64")
    if source.is_float and target.is_integer:
        value = _saturate(value, target.scalar)
    if target.scalar == "f16":
        value = np.asarray(value).astype(np.float32).astype(np.float16)
    elif target.scalar == "bf16":
        value = round_bf16(np.asarray(value).astype(np.float32))
    value = np.asarray(value).astype(DTYPES[target.scalar])
    if target.lanes > 1:
        return np.broadcast_to(value, (target.lanes,))
    return value[()]


def _saturate(value: Value, scalar: str) -> Value:
    lo, hi = int_range(scalar)
    wide = np.asarray(value, np.float64)
    in_range = (wide > float(lo)) & (wide < float(hi))  # float(hi) may be hi + 1: then also out of range
    truncated = np.where(in_range, wide, 0).astype(DTYPES[scalar])
    ends = np.where(wide >= float(hi), np.array(hi, DTYPES[scalar]), np.array(lo, DTYPES[scalar]))
    return np.where(in_range, truncated, np.where(np.isnan(wide), DTYPES[scalar](0), ends))


def _integer_power(base: Value, exponent: Value) -> Value:
    """Repeated squaring with wraparound; a negative exponent gives the exact value truncated (0 for base 0)."""
    result, square, rest = base * 0 + 1, base, exponent
    while np.any(rest > 0):
        result = np.where(rest & 1, result * square, result)
        square, rest = square * square, rest >> 1
    unit = (base == 1) | (base == -1) if exponent.dtype.kind == "i" else base == 1
    inverse = np.where(unit, np.where(exponent & 1, base, 1), 0)
    return np.where(exponent < 0, inverse, result).astype(base.dtype)


def _power(base: Value, exponent: Value) -> Value:
    if base.dtype.kind in "iu":
        return _integer_power(base, exponent)
    return np.power(np.atleast_1d(base), exponent).reshape(np.shape(base))[()]


def _divide(a: Value, b: Value) -> Value:
    if a.dtype.kind == "c" and np.any(b == 0):  # NumPy's scalar and array quotients differ there
        quotient: Value = np.divide(np.atleast_1d(a), np.atleast_1d(b))
        return quotient if np.ndim(a) else quotient[0]
    return np.divide(a, b)


def _round(x: Value) -> Value:
    return np.rint(x) if x.dtype.kind in "fc" else x


def _reciprocal(x: Value) -> Value:
    return (
        np.reciprocal(np.atleast_1d(x)).reshape(np.shape(x))[()]
        if x.dtype.kind == "c"
        else _divide(np.ones_like(x)[()], x)
    )


def _for_floats(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda x: function(x) if x.dtype.kind == "f" else x


def expm1(x: Value) -> Value:
    """exp(x) - 1. Complex: with the array API's values at infinities, NaN and real numbers, where NumPy has NaN."""
    out = np.expm1(x)
    if out.dtype.kind != "c" or np.isfinite(out).all():
        return out
    re, im = np.real(x), np.imag(x)
    is_real, no_direction = im == 0, np.isinf(re) & ~np.isfinite(im)
    fixed = np.empty_like(out)
    fixed.real = np.where(is_real | no_direction, np.expm1(re), out.real)
    fixed.imag = np.where(is_real, im, np.where(no_direction & (re < 0), 0, out.imag))
    return fixed[()]


def _erf(x: Value) -> Value:
    values = np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x, np.float64))
    return values.astype(x.dtype) if x.ndim else x.dtype.type(values)


def _on_bits(function: Callable[[int, int], int]) -> Callable[[Value], Value]:
    """A function of an integer's bits, as an unsigned number, and of their count -> the function of NumPy integers."""

    def apply_to(x: Value) -> Value:
        width = 8 * x.dtype.itemsize
        bits = [function(int(v) & ((1 << width) - 1), width) for v in np.ravel(x)]
        return np.array(bits, x.dtype).reshape(np.shape(x))[()]

    return apply_to


def _bit(x: Value, k: Value) -> Value:
    in_range = (k >= 0) & (k < 8 * x.dtype.itemsize)
    is_set: Any = (np.right_shift(x, np.where(in_range, k, 0).astype(x.dtype)) & 1).astype(bool) & in_range
    return is_set[()]


def _expand(x: Value, mask: Value) -> Value:
    if not np.ndim(x):
        return x if mask else x.dtype.type(0)
    out = np.zeros_like(x)
    out[mask] = x[: np.count_nonzero(mask)]
    return out


def _lanes_of_two(x: Value, y: Value, first: int) -> Value:
    """Every second lane of x and then of y."""
    lanes = np.concatenate([np.atleast_1d(x), np.atleast_1d(y)])[first::2]
    return lanes if np.ndim(x) else lanes[0]


def _permute(x: Value, index: Value) -> Value:
    """Lanes of x by their numbers, modulo the number of lanes."""
    return np.atleast_1d(x)[index % np.size(x)]


def _select(cond: Value, a: Value, b: Value) -> Value:
    selected: Any = np.where(cond, a, b)
    return selected[()]


_BY_NUMPY: dict[str, Callable[..., Value]] = {
    name: getattr(np, o.numpy) for name, o in OPERATIONS.items() if o.numpy is not None and hasattr(np, o.numpy)
}
_SPECIAL: dict[str, Callable[..., Value]] = {
    "div": _divide,
    "pow": _power,
    "expm1": expm1,
    "erf": _erf,
    "floor": _for_floats(np.floor),
    "ceil": _for_floats(np.ceil),
    "trunc": _for_floats(np.trunc),
    "round": _round,
    "square": lambda x: x * x,
    "reciprocal": _reciprocal,
    "signbit": lambda x: np.signbit(x) if x.dtype.kind == "f" else np.less(x, x.dtype.type(0)),
    "select": _select,
    "fma": lambda a, b, c: a * b + c,
    "ctz": _on_bits(lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width),
    "popcount": _on_bits(lambda bits, width: bits.bit_count()),
    "ramp": lambda x: x + np.arange(np.size(x), dtype=x.dtype).reshape(np.shape(x)),
    "bit": _bit,
    "bits": lambda x: np.sum(np.left_shift(np.int64(1), np.arange(np.size(x))), where=x),
    "expand": _expand,
    "permute": _permute,
    "evens": lambda x, y: _lanes_of_two(x, y, 0),
    "odds": lambda x, y: _lanes_of_two(x, y, 1),
    "hsum": np.add.reduce,
    "hprod": np.multiply.reduce,
    "hmin": np.minimum.reduce,
    "hmax": np.maximum.reduce,
}

FUNCTIONS: dict[str, Callable[..., Value]] = {**_BY_NUMPY, **_SPECIAL}
"""The function of each operation: NumPy's, or one whose result differs from NumPy's."""

_INTEGERS: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
    "square": lambda v: v * v, "pow": operator.pow, "shl": lambda v, n: v << n if n >= 0 else 0,
}  # fmt: skip
"""Operations on Python's integers, which have no width: the operands beside them decide about that."""
_BITS = 1024
"""More than the exponents of float64 reach."""


def of_numbers(op: str, numbers: Sequence[Any]) -> Any:
    """An operation on Python numbers -> a Python number; integers are exact. DTypeError beyond the range of floats."""
    exact = _INTEGERS.get(op) if all(type(v) is int for v in numbers) else None
    if exact is None or (op == "pow" and numbers[1] < 0):
        return FUNCTIONS[op](*(np.asarray(v)[()] for v in numbers)).item()
    if op in ("pow", "shl") and numbers[1] > _BITS and numbers[0] not in ((0, 1, -1) if op == "pow" else (0,)):
        raise DTypeError(f"{op} of {numbers[0]} and {numbers[1]} is beyond every dtype\n  help: write a float")
    return exact(*numbers)

"""Scalar types of operands -> that of the result, by NumPy's promotion or torch's; Python scalars are weak."""

from __future__ import annotations

from functools import lru_cache, reduce

import numpy as np

from ..errors import DTypeError
from ..ir.types import COMPLEX, FLOATS, INTEGERS, UNSIGNED
from ..storage.buffers import numpy_dtype, scalar_name

__all__ = ["HALF", "accumulator", "compute_scalar", "promote", "promote_ranks", "weak"]

HALF = ("f16", "bf16")
"""Types of half precision, which are computed in float32."""


@lru_cache(maxsize=1024)
def promote(scalars: tuple[str, ...], library: str = "numpy") -> str:
    """The scalar type of an operation on operands of these types, in whatever order.

    NumPy's rule is of all at once: int8, uint16 and float32 make float32, though the integers alone make int32.
    """
    if library == "numpy" and "bf16" not in scalars:
        return scalar_name(np.result_type(*map(numpy_dtype, scalars)))
    return reduce(lambda a, b: _pair(a, b, library), sorted(scalars, key=_kind, reverse=True))


def _pair(a: str, b: str, library: str) -> str:
    if a == b:
        return a
    if library == "torch":
        mixed = _kind(a) != _kind(b)
        if mixed:
            wide, other = (a, b) if _kind(a) > _kind(b) else (b, a)
            return "c128" if wide == "c64" and other == "f64" else wide
    if "bf16" in (a, b):
        other = b if a == "bf16" else a
        if other in FLOATS:
            return "f32" if other == "f16" else other
        return other if other in COMPLEX else "bf16" if other in ("bool", "i8", "u8") else "f32"
    return scalar_name(np.result_type(numpy_dtype(a), numpy_dtype(b)))


def promote_ranks(with_dimensions: tuple[str, ...], rank_0: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    """The scalar type of an operation of torch's: a tensor of rank 0 widens none with dimensions within its kind, and
    a number, given as the type that torch takes it for, neither.

    Raises DTypeError where it is torch's complex32.
    """
    kinds = [promote(scalars, "torch") for scalars in (with_dimensions, rank_0, numbers) if scalars]
    return reduce(lambda lower, higher: _over(higher, lower), reversed(kinds))


def _over(higher: str, lower: str) -> str:
    if _kind(higher) >= _kind(lower) and higher != "bool":
        return higher
    if _kind(higher) != 2:
        return promote((higher, lower), "torch")
    if higher == "f16":
        raise DTypeError(
            "float16 and a complex number make complex32, which no operation takes\n  help: astype(float32)"
        )
    return "c128" if higher == "f64" else "c64"


def _kind(scalar: str) -> int:
    return 0 if scalar == "bool" else 1 if scalar in INTEGERS else 2 if scalar in FLOATS else 3


@lru_cache(maxsize=1024)
def weak(scalar: str, value_kind: type) -> str:
    """The type of an operation of a tensor with a Python scalar, which never widens within its kind."""
    rank = {bool: 0, int: 1, float: 2, complex: 3}[value_kind]
    if _kind(scalar) >= rank:
        return scalar
    if rank == 1:
        return "i64"
    if rank == 2:
        return "f64"
    return "c64" if scalar in ("f16", "bf16", "f32") else "c128"


def accumulator(scalar: str, library: str) -> str:
    """The type that the array API standard sums in: integers in 64 bits, bool as integers; torch, which has few
    functions of uint64, sums in int64."""
    if scalar in UNSIGNED:
        return "i64" if library == "torch" and scalar != "u64" else "u64"
    return "i64" if scalar == "bool" or scalar in INTEGERS else scalar


def compute_scalar(scalar: str) -> str:
    """The type that kernels compute in: half precision in float32, all else in its own."""
    return "f32" if scalar in HALF else scalar

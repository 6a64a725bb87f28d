"""From the types of operands to that of a result, by the rules that the blocks of operations name.

result_scalar("accumulated", "i32", "numpy") == "i64"        a sum of 32-bit integers has 64 bits
"""

from __future__ import annotations

from ..errors import UnsupportedError
from ..ir.operations import OPERATIONS
from ..ir.types import COMPLEX, FLOATS, real_of
from .promote import accumulator

__all__ = ["DTYPES", "FILLS", "FORMATS", "SHAPES", "elementwise_rules", "in_words", "result_scalar"]

SHAPES = {
    "same": "that of the operand",
    "broadcast": "that which the operands broadcast to",
    "reduced": "without the dimensions `axis`, or with extent 1 there for `keepdims`",
    "moved": "as the arguments say",
    "product": "the free dimensions of the operands",
    "multiplied": "the extents of the operands, multiplied",
    "joined": "that of the operands one behind the other",
    "counted": "as many as the elements say",
}
DTYPES = {
    "same": "that of the operand (of bool NumPy's, where the result is a number)",
    "promoted": "that which the operands promote to",
    "bool": "bool",
    "int64": "int64",
    "real": "that of the parts of a complex number, else the operand's",
    "float": "the operand's, float64 for integers and bool",
    "real float": "that of the parts of a complex number, else the operand's; of integers and bool float64",
    "floating": "the operand's; of integers and bool NumPy's, float16 to float64 by their width, or torch's default",
    "promoted float": "that which the operands promote to; of integers and bool float64, or torch's default",
    "promoted floating": "that which the operands promote to; of integers and bool NumPy's, float16 to float64 by their"
    " width, or torch's default",
    "semiring": "that which the operands promote to, or that of a semiring which has its own",
    "accumulated": "the operand's, 64 bits for integers and bool",
}
FILLS = {
    "f(fill)": "what the function gives for the fill values",
    "same": "that of the operand",
    "scaled": "that of the operand, times the factor that it is multiplied by",
    "zero": "0; with a semiring the identity of its sum",
    "dense": "none: the result is dense",
    "reduced": "the reduction of a fibre that stores nothing; none where the result is dense",
}
FORMATS = {
    "same": "that of the operand; of several of different formats, that of the first that has all dimensions",
    "like": "one like that of the operand, for the result's rank: sparse of sparse ones, dense of dense ones",
    "product": "of sparse operands theirs where it has the result's rank, else CSR or COO; with a dense one dense",
    "sparse": "sparse, of dense operands too",
    "dense": "dense",
    "reduced": "dense where fewer than two dimensions stay, or only dense ones of the operand; else sparse, in the"
    " operand's levels of these",
}


_EXCEPTIONS = {"div": "promoted float", "erf": "float", "reciprocal": "same"}
"""Dtype rules of operations whose result differs from that of the loop IR's operation."""


def elementwise_rules(op: str, arity: int) -> tuple[str, str, str]:
    """The rules of shape, dtype and fill value of an elementwise operation."""
    row = OPERATIONS.get(op)
    kind = "promoted" if arity > 1 else "same"
    if op in _EXCEPTIONS:
        kind = _EXCEPTIONS[op]
    elif row is not None and row.result != "same":
        kind = row.result
    elif row is None or "floating" in row.traits:
        kind = "promoted floating" if arity > 1 else "floating"
    return "broadcast" if arity > 1 else "same", kind, "f(fill)"


def in_words(shape: str | None, dtype: str | None, fill: str | None, format: str | None) -> str:
    """What the rules of a result say, a sentence for each that there is."""
    rules = (
        ("Shape", SHAPES, shape),
        ("Dtype", DTYPES, dtype),
        ("Fill value", FILLS, fill),
        ("Format", FORMATS, format),
    )
    return " ".join(f"{what}: {words[rule]}." for what, words, rule in rules if rule is not None)


def result_scalar(rule: str, scalar: str, library: str) -> str:
    """The type of a result of one operand of this type. Raises UnsupportedError for a rule of several operands."""
    if rule in ("bool", "int64"):
        return {"bool": "bool", "int64": "i64"}[rule]
    if rule == "same":
        return scalar
    if rule == "real":
        return real_of(scalar) if scalar in COMPLEX else scalar
    if rule == "real float":
        return result_scalar("float", result_scalar("real", scalar, library), library)
    if rule == "float":
        return scalar if scalar in (*FLOATS, *COMPLEX) else "f64"
    if rule == "floating":
        return _floating(scalar, library)
    if rule == "accumulated":
        return accumulator(scalar, library)
    raise UnsupportedError(f"dtype rule {rule!r} is of several operands\n  help: promote them first")


def _floating(scalar: str, library: str) -> str:
    if scalar in (*FLOATS, *COMPLEX):
        return scalar
    if library == "torch":
        return "f32"
    return {"bool": "f16", "i8": "f16", "u8": "f16", "i16": "f32", "u16": "f32"}.get(scalar, "f64")

"""An operation on floating-point values -> LLVM IR; f16 and bf16 are computed in float, rounded by casts and stores."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.ops import COMPARISONS
from ..ir.types import Type, real_of
from .emit_builder import PURE, Builder, register_type
from .emit_exponential import exponential, is_expanded

__all__ = ["float_op", "math_call"]

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INTRINSICS = {
    "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "sin": "sin",
    "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven", "abs": "fabs",
    "pow": "pow", "copysign": "copysign",
}  # fmt: skip
_EVERYWHERE = ("sqrt", "floor", "ceil", "trunc", "round", "abs", "copysign")
"""Intrinsics that every target has an instruction for; the others are calls of a library."""
_LIBRARY = ("expm1", "log1p", "asinh", "acosh", "atanh", "erf", "atan2", "hypot", "fmod")


def float_op(b: Builder, op: str, t: Type, *args: str) -> str:
    """One of the operations of `ir.ops` on floating-point values of type `t`."""
    text = b.type(t)
    if op in _BINARY:
        return b.ins(f"{_BINARY[op]} {b.flags} {text} {args[0]}, {args[1]}")
    if op == "div":
        return b.ins(f"fdiv {text} {args[0]}, {args[1]}")
    if op in COMPARISONS:
        return b.ins(f"fcmp {_PREDICATES[op]} {text} {args[0]}, {args[1]}")
    if op in _EVERYWHERE or op in _LIBRARY or op in _INTRINSICS:
        return math_call(b, op, t, *args)
    special = _SPECIAL.get(op)
    if special is None:
        raise b.unsupported(op, t)
    return special(b, t, *args)


def math_call(b: Builder, op: str, t: Type, *args: str) -> str:
    """A mathematical function: expanded, an intrinsic, or a call per lane of libm; on a device as its row says."""
    if is_expanded(op, b.target):
        return exponential(b, op, t, *args)
    if op in _EVERYWHERE or (b.target.is_cpu and op in _INTRINSICS):
        return b.intrinsic(_INTRINSICS[op], t, *args)
    if not b.target.is_cpu:
        return b.device_function(op, t, *args)
    scalar = register_type(t.scalar)
    name = op + ("f" if scalar == "float" else "")
    # of an fmod whose dividend cannot be infinite LLVM makes an instruction that is said never to be NaN: it is, of NaN
    kind = f"{PURE} nobuiltin" if op == "fmod" else PURE
    out = [b.call(scalar, name, *((scalar, b.lane(a, t, i)) for a in args), attributes=kind) for i in range(t.lanes)]
    return b.gather_lanes(out, t)


def _extreme(name: str) -> Callable[[Builder, Type, str, str], str]:
    """The larger or the smaller of two numbers, NaN where one of them is; in plain instructions for OpenCL, where LLVM
    makes `fmax` of the intrinsic, which leaves NaN out."""

    def build(b: Builder, t: Type, x: str, y: str) -> str:
        if b.target.kind != "spirv":
            return b.intrinsic(name, t, x, y, flags="nsz")
        beyond = b.ins(f"fcmp {'ogt' if name == 'maximum' else 'olt'} {b.type(t)} {x}, {y}")
        return b.select(b.ins(f"or i1 {beyond}, {_isnan(b, t, x)}"), x, y, t)

    return build


def _isnan(b: Builder, t: Type, x: str) -> str:
    return b.ins(f"fcmp uno {b.type(t)} {x}, {b.const(0.0, t)}")


def _isinf(b: Builder, t: Type, x: str) -> str:
    return b.ins(f"fcmp oeq {b.type(t)} {b.intrinsic('fabs', t, x)}, {b.const(float('inf'), t)}")


def _isfinite(b: Builder, t: Type, x: str) -> str:
    return b.ins(f"fcmp olt {b.type(t)} {b.intrinsic('fabs', t, x)}, {b.const(float('inf'), t)}")


def _signbit(b: Builder, t: Type, x: str) -> str:
    bits = register_type("i64" if t.scalar == "f64" else "i32", t.lanes)
    raw = b.ins(f"bitcast {b.type(t)} {x} to {bits}")
    return b.ins(f"icmp slt {bits} {raw}, {'0' if t.lanes == 1 else 'zeroinitializer'}")


def _sign(b: Builder, t: Type, x: str) -> str:
    """-1, 1, 0 for both zeros, NaN itself."""
    text, zero = b.type(t), b.const(0.0, t)
    other = b.ins(f"fadd {text} {x}, {zero}")
    up = b.select(b.ins(f"fcmp ogt {text} {x}, {zero}"), b.const(1.0, t), other, t)
    return b.select(b.ins(f"fcmp olt {text} {x}, {zero}"), b.const(-1.0, t), up, t)


def _parts(b: Builder, t: Type, x: str, y: str) -> tuple[str, str]:
    """C's remainder of x / y, and the mask of where y must be added for it to have y's sign."""
    text, zero = b.type(t), b.const(0.0, t)
    mask = register_type("bool", t.lanes)
    remainder = math_call(b, "fmod", t, x, y)
    nonzero = b.ins(f"fcmp une {text} {remainder}, {zero}")
    ordered = b.ins(f"fcmp ord {text} {remainder}, {y}")
    below = b.ins(f"fcmp olt {text} {y}, {zero}")
    negative = b.ins(f"fcmp olt {text} {remainder}, {zero}")
    crosses = b.ins(f"xor {mask} {below}, {negative}")
    return remainder, b.ins(f"and {mask} {ordered}, {b.ins(f'and {mask} {nonzero}, {crosses}')}")


def _mod(b: Builder, t: Type, x: str, y: str) -> str:
    """Python's remainder: of y's sign, a zero included; NaN where y is 0."""
    text, zero = b.type(t), b.const(0.0, t)
    remainder, must_move = _parts(b, t, x, y)
    shifted = b.select(must_move, b.ins(f"fadd {text} {remainder}, {y}"), remainder, t)
    signed = b.intrinsic("copysign", t, zero, y)
    return b.select(b.ins(f"fcmp oeq {text} {shifted}, {zero}"), signed, shifted, t)


def _floordiv(b: Builder, t: Type, x: str, y: str) -> str:
    """Python's floor division; x / y where y is 0."""
    text, zero = b.type(t), b.const(0.0, t)
    remainder, must_move = _parts(b, t, x, y)
    quotient = b.ins(f"fdiv {text} {b.ins(f'fsub {text} {x}, {remainder}')}, {y}")
    quotient = b.select(must_move, b.ins(f"fsub {text} {quotient}, {b.const(1.0, t)}"), quotient, t)
    floor = b.intrinsic("floor", t, quotient)
    gap = b.ins(f"fcmp ogt {text} {b.ins(f'fsub {text} {quotient}, {floor}')}, {b.const(0.5, t)}")
    floor = b.select(gap, b.ins(f"fadd {text} {floor}, {b.const(1.0, t)}"), floor, t)
    true_quotient = b.ins(f"fdiv {text} {x}, {y}")
    signed_zero = b.intrinsic("copysign", t, zero, true_quotient)
    floor = b.select(b.ins(f"fcmp oeq {text} {quotient}, {zero}"), signed_zero, floor, t)
    return b.select(b.ins(f"fcmp oeq {text} {y}, {zero}"), true_quotient, floor, t)


def _fma(b: Builder, t: Type, x: str, y: str, z: str) -> str:
    return b.intrinsic("fmuladd", t, x, y, z, flags=b.flags)


def _reduce(name: str, start: float | None = None) -> Callable[[Builder, Type, str], str]:
    def build(b: Builder, t: Type, x: str) -> str:
        if t.lanes == 1:
            return x
        scalar, full = register_type(t.scalar), f"llvm.vector.reduce.{name}.{b.suffix(t)}"
        if start is None:
            return b.call(scalar, full, (b.type(t), x))
        neutral = b.const(start, Type(real_of(t.scalar)))
        return b.call(scalar, full, (scalar, neutral), (b.type(t), x), flags="reassoc contract")

    return build


_SPECIAL: dict[str, Callable[..., str]] = {
    "min": _extreme("minimum"),
    "max": _extreme("maximum"),
    "mod": _mod,
    "floordiv": _floordiv,
    "neg": lambda b, t, x: b.ins(f"fneg {b.type(t)} {x}"),
    "sign": _sign,
    "isnan": _isnan,
    "isinf": _isinf,
    "isfinite": _isfinite,
    "signbit": _signbit,
    "square": lambda b, t, x: b.ins(f"fmul {b.flags} {b.type(t)} {x}, {x}"),
    "reciprocal": lambda b, t, x: b.ins(f"fdiv {b.type(t)} {b.const(1.0, t)}, {x}"),
    "real": lambda b, t, x: x,
    "conj": lambda b, t, x: x,
    "imag": lambda b, t, x: b.const(0.0, t),
    "fma": _fma,
    "hsum": _reduce("fadd", -0.0),
    "hprod": _reduce("fmul", 1.0),
    "hmin": _reduce("fminimum"),
    "hmax": _reduce("fmaximum"),
}

"""The operations of the loop IR: their signatures, and constructors that promote and fold nothing but types."""

from __future__ import annotations

from .loop import Cast, Const, Expr, Load, Op
from .types import BOOL, FLOATS, I64, INTEGERS, Type, real_of

__all__ = ["ARITHMETIC", "BITWISE", "COMPARISONS", "LOGICAL", "REDUCTIONS", "UNARY", "cast", "const", "load", "op"]

ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "min", "max", "atan2", "hypot", "copysign")
BITWISE = ("band", "bor", "bxor", "shl", "shr")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("and", "or", "xor", "not")
UNARY = (
    "neg", "abs", "sign", "sqrt", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc",
    "round", "isnan", "isinf", "isfinite", "bnot", "real", "imag", "conj", "square", "reciprocal", "signbit",
)  # fmt: skip
REDUCTIONS = ("hsum", "hprod", "hmin", "hmax")
"""Vector to scalar."""

_RANK = {s: i for i, s in enumerate(("bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", *FLOATS, "c64", "c128"))}


def const(value: bool | int | float | complex, type: Type | str = I64) -> Const:
    """A constant of `type`, the value converted to Python's kind for it."""
    t = Type(type) if isinstance(type, str) else type
    if t.scalar == "bool":
        return Const(bool(value), t)
    if t.is_complex:
        return Const(complex(value), t)
    if t.is_float:
        return Const(float(value), t)  # type: ignore[arg-type]
    return Const(int(value), t)  # type: ignore[arg-type]


def cast(expr: Expr, type: Type | str) -> Expr:
    """`expr` as `type`; itself when it is so already, a new constant when it is one."""
    t = Type(type, expr.type.lanes) if isinstance(type, str) else type
    if expr.type == t:
        return expr
    if isinstance(expr, Const) and t.lanes == expr.type.lanes and not (expr.type.is_complex and not t.is_complex):
        if not (expr.type.is_float and not (t.is_float or t.is_complex)):
            return const(expr.value, t)
    return Cast(expr, t)


def load(buffer: str, scalar: str, index: Expr, lanes: int = 1) -> Load:
    """`lanes` consecutive elements of `buffer` from `index`, or a gather when the index is a vector."""
    return Load(buffer, cast(index, I64.with_lanes(index.type.lanes)), Type(scalar, max(lanes, index.type.lanes)))


def op(name: str, *args: Expr) -> Expr:
    """The operation `name`, operands promoted to their common type (a constant takes the other's type),
    scalars broadcast to the lanes of the widest."""
    if name == "select":
        cond, *rest = args
        a, b = _promote(rest)
        lanes = max(cond.type.lanes, a.type.lanes)
        cond, a, b = (_spread(x, lanes) for x in (cond, a, b))
        return Op(name, (cond, a, b), a.type)
    if name == "fma":
        a, b, c = _promote(list(args))
        return Op(name, (a, b, c), a.type)
    if name in REDUCTIONS:
        return Op(name, args, args[0].type.with_lanes(1))
    if name in LOGICAL:
        bools = _promote([cast(a, "bool") for a in args])
        return Op(name, tuple(bools), bools[0].type)
    if name in UNARY:
        return _unary(name, args[0])
    operands = tuple(_promote(list(args)))
    if name in COMPARISONS:
        return Op(name, operands, BOOL.with_lanes(operands[0].type.lanes))
    return Op(name, operands, operands[0].type)


def _unary(name: str, arg: Expr) -> Expr:
    if name in ("isnan", "isinf", "isfinite", "signbit"):
        return Op(name, (arg,), BOOL.with_lanes(arg.type.lanes))
    if name in ("real", "imag") or (name == "abs" and arg.type.is_complex):
        return Op(name, (arg,), arg.type.with_scalar(real_of(arg.type.scalar)))
    return Op(name, (arg,), arg.type)


def _spread(expr: Expr, lanes: int) -> Expr:
    return expr if expr.type.lanes == lanes else cast(expr, expr.type.with_lanes(lanes))


def _promote(args: list[Expr]) -> list[Expr]:
    lanes = max(a.type.lanes for a in args)
    free = [a for a in args if not isinstance(a, Const)] or args
    scalar = max((a.type.scalar for a in free), key=_RANK.__getitem__)
    for a in args:  # a constant of a wider kind (2.5 with an integer variable) still decides
        if isinstance(a, Const) and _kind(a.type.scalar) > _kind(scalar):
            scalar = a.type.scalar
    return [_spread(cast(a, a.type.with_scalar(scalar)), lanes) for a in args]


def _kind(scalar: str) -> int:
    return 0 if scalar == "bool" else 1 if scalar in INTEGERS else 2 if scalar in FLOATS else 3

"""An operation on two index expressions -> the folded expression: `p * 1 + 0 -> p`, constants computed."""

from __future__ import annotations

from ..ir.loop import Const, Expr
from ..ir.ops import const, op
from ..ir.types import I64

__all__ = ["fold"]

_ZERO, _ONE = const(0), const(1)


def fold(name: str, a: Expr, b: Expr) -> Expr:
    """`a name b` for i64, without the zeros and ones that level functions are full of."""
    if isinstance(a, Const) and isinstance(b, Const):
        x, y = int(a.value.real), int(b.value.real)
        match name:
            case "add":
                return const(x + y)
            case "sub":
                return const(x - y)
            case "mul":
                return const(x * y)
            case "min":
                return const(min(x, y))
            case "max":
                return const(max(x, y))
            case "floordiv" | "mod" if y > 0:
                return const(x // y if name == "floordiv" else x % y)
    if a.type == I64 and b.type == I64:
        if isinstance(a, Const) or isinstance(b, Const):
            match name:
                case "add" if a == _ZERO:
                    return b
                case "add" | "sub" if b == _ZERO:
                    return a
                case "mul" if _ZERO in (a, b):
                    return _ZERO
                case "mul" if a == _ONE:
                    return b
                case "mul" | "floordiv" if b == _ONE:
                    return a
                case "floordiv" | "mod" if isinstance(b, Const):
                    return _divide(name, a, int(b.value.real))
        elif name in ("min", "max") and a == b:
            return a
    return op(name, a, b)


def _divide(name: str, a: Expr, divisor: int) -> Expr:
    """Floor division and remainder by a power of two are a shift and a mask."""
    if divisor > 0 and divisor & (divisor - 1) == 0:
        if name == "mod":
            return op("band", a, const(divisor - 1))
        return op("shr", a, const(divisor.bit_length() - 1))
    return op(name, a, const(divisor))

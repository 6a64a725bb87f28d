"""An operation on integers or bools -> LLVM IR that never traps: x // 0 and x % 0 are 0, too large shifts 0 or -1."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.ops import COMPARISONS
from ..ir.types import SIGNED, Type
from .emit_builder import Builder, register_type

__all__ = ["bool_op", "compare", "integer_op", "positive_constant"]

_SIMPLE = {"band": "and", "bor": "or", "bxor": "xor"}
_BOOLS = {
    "and": "and", "or": "or", "xor": "xor", "band": "and", "bor": "or", "bxor": "xor", "add": "or", "mul": "and",
    "min": "and", "max": "or", "sub": "xor", "ne": "xor",
}  # fmt: skip
_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_IDENTITY = ("floor", "ceil", "trunc", "round", "real", "conj")
_REDUCE = {"hsum": "add", "hprod": "mul", "hmin": "min", "hmax": "max"}


def compare(b: Builder, op: str, t: Type, x: str, y: str) -> str:
    """Comparison of integers or bools."""
    sign = "" if op in ("eq", "ne") else "s" if t.scalar in SIGNED else "u"
    return b.ins(f"icmp {sign}{_PREDICATES[op]} {b.type(t)} {x}, {y}")


def integer_op(b: Builder, op: str, t: Type, *args: str) -> str:
    """One of the operations of `ir.ops` on integers of type `t`."""
    text = b.type(t)
    signed = t.scalar in SIGNED
    if op in ("add", "sub", "mul"):
        return b.ins(f"{op}{b.nowrap if t.scalar == 'i64' else ''} {text} {args[0]}, {args[1]}")
    if op in COMPARISONS:
        return compare(b, op, t, *args)
    if op in _SIMPLE:
        return b.ins(f"{_SIMPLE[op]} {text} {args[0]}, {args[1]}")
    if op in ("min", "max"):
        return b.intrinsic(f"{'s' if signed else 'u'}{op}", t, *args)
    if op in _REDUCE:
        return _reduce(b, op, t, args[0])
    if op in _IDENTITY:
        return args[0]
    special = _SPECIAL.get(op)
    if special is None:
        raise b.unsupported(op, t)
    return special(b, t, *args)


def bool_op(b: Builder, op: str, t: Type, *args: str) -> str:
    """One of the operations of `ir.ops` on bools; sums are `or`, products are `and`."""
    text = b.type(t)
    if op in _BOOLS:
        return b.ins(f"{_BOOLS[op]} {text} {args[0]}, {args[1]}")
    if op == "eq":
        return b.ins(f"xor {text} {b.ins(f'xor {text} {args[0]}, {args[1]}')}, {b.const(True, t)}")
    if op in COMPARISONS:
        return compare(b, op, t, *args)
    if op in ("not", "bnot"):
        return b.ins(f"xor {text} {args[0]}, {b.const(True, t)}")
    if op in ("isnan", "isinf", "signbit", "imag"):
        return b.const(False, t)
    if op == "isfinite":
        return b.const(True, t)
    if op in _IDENTITY:
        return args[0]
    if op in ("hsum", "hmax", "hprod", "hmin"):
        kind = "or" if op in ("hsum", "hmax") else "and"
        return b.call("i1", f"llvm.vector.reduce.{kind}.{b.suffix(t)}", (text, args[0])) if t.lanes > 1 else args[0]
    raise b.unsupported(op, t)


def positive_constant(text: str) -> int | None:
    """The value of a positive integer constant's text (splats included), else None."""
    digits = text.removesuffix(")").rpartition(" ")[2]
    return int(digits) if digits.isdigit() and int(digits) > 0 and not text.startswith("%") else None


def _reduce(b: Builder, op: str, t: Type, x: str) -> str:
    if t.lanes == 1:
        return x
    name = _REDUCE[op]
    if name in ("min", "max"):
        name = ("s" if t.scalar in SIGNED else "u") + name
    return b.call(register_type(t.scalar), f"llvm.vector.reduce.{name}.{b.suffix(t)}", (b.type(t), x))


def _division(b: Builder, t: Type, x: str, y: str) -> tuple[str, str, str, str]:
    """Quotient, remainder truncated towards zero, and the divisor made safe; y == 0 as the mask."""
    text = b.type(t)
    zero, one = b.const(0, t), b.const(1, t)
    signed = t.scalar in SIGNED
    if positive_constant(y):
        safe, is_zero = y, ""
    else:
        is_zero = b.ins(f"icmp eq {text} {y}, {zero}")
        safe = b.select(is_zero, one, y, t)
        if signed:  # MIN // -1 traps: x // -1 is computed as a negation by the callers
            minus = b.ins(f"icmp eq {text} {safe}, {b.const(-1, t)}")
            safe = b.select(minus, one, safe, t)
    kind = "s" if signed else "u"
    quotient = b.ins(f"{kind}div {text} {x}, {safe}")
    remainder = b.ins(f"sub {text} {x}, {b.ins(f'mul {text} {quotient}, {safe}')}")
    return quotient, remainder, safe, is_zero


def _floordiv(b: Builder, t: Type, x: str, y: str) -> str:
    text, zero = b.type(t), b.const(0, t)
    constant = positive_constant(y)
    signed = t.scalar in SIGNED
    if constant and constant & (constant - 1) == 0:
        shift = "ashr" if signed else "lshr"
        return b.ins(f"{shift} {text} {x}, {b.const(constant.bit_length() - 1, t)}")
    quotient, remainder, safe, is_zero = _division(b, t, x, y)
    if signed:
        differs = _crosses(b, t, remainder, safe)
        down = b.ins(f"sub {text} {quotient}, {b.const(1, t)}")
        quotient = b.select(differs, down, quotient, t)
        if is_zero:
            minus = b.ins(f"icmp eq {text} {y}, {b.const(-1, t)}")
            quotient = b.select(minus, b.ins(f"sub {text} {zero}, {x}"), quotient, t)
    return b.select(is_zero, zero, quotient, t) if is_zero else quotient


def _mod(b: Builder, t: Type, x: str, y: str) -> str:
    text, zero = b.type(t), b.const(0, t)
    constant = positive_constant(y)
    if constant and constant & (constant - 1) == 0:
        return b.ins(f"and {text} {x}, {b.const(constant - 1, t)}")
    _, remainder, safe, is_zero = _division(b, t, x, y)
    if t.scalar in SIGNED:
        differs = _crosses(b, t, remainder, safe)
        remainder = b.select(differs, b.ins(f"add {text} {remainder}, {safe}"), remainder, t)
    return b.select(is_zero, zero, remainder, t) if is_zero else remainder


def _crosses(b: Builder, t: Type, remainder: str, divisor: str) -> str:
    """remainder != 0 and of the other sign than the divisor: truncation and floor differ."""
    text, zero = b.type(t), b.const(0, t)
    mask = register_type("bool", t.lanes)
    nonzero = b.ins(f"icmp ne {text} {remainder}, {zero}")
    signs = b.ins(f"icmp slt {text} {b.ins(f'xor {text} {remainder}, {divisor}')}, {zero}")
    return b.ins(f"and {mask} {nonzero}, {signs}")


def _shl(b: Builder, t: Type, x: str, y: str) -> str:
    return _shift(b, t, "shl", x, y)


def _shr(b: Builder, t: Type, x: str, y: str) -> str:
    text = b.type(t)
    if t.scalar not in SIGNED:
        return _shift(b, t, "lshr", x, y)
    width = int(t.scalar[1:])
    return b.ins(f"ashr {text} {x}, {b.intrinsic('umin', t, y, b.const(width - 1, t))}")


def _shift(b: Builder, t: Type, kind: str, x: str, y: str) -> str:
    text, width = b.type(t), int(t.scalar[1:])
    constant = positive_constant(y)
    if constant and constant < width:
        return b.ins(f"{kind} {text} {x}, {y}")
    fits = b.ins(f"icmp ult {text} {y}, {b.const(width, t)}")
    amount = b.select(fits, y, b.const(0, t), t)
    return b.select(fits, b.ins(f"{kind} {text} {x}, {amount}"), b.const(0, t), t)


def _neg(b: Builder, t: Type, x: str) -> str:
    return b.ins(f"sub {b.type(t)} {b.const(0, t)}, {x}")


def _abs(b: Builder, t: Type, x: str) -> str:
    if t.scalar not in SIGNED:
        return x
    text = b.type(t)
    return b.call(text, f"llvm.abs.{b.suffix(t)}", (text, x), ("i1", "false"))


def _sign(b: Builder, t: Type, x: str) -> str:
    text, zero = b.type(t), b.const(0, t)
    positive = b.ins(f"icmp {'sgt' if t.scalar in SIGNED else 'ne'} {text} {x}, {zero}")
    up = b.select(positive, b.const(1, t), zero, t)
    if t.scalar not in SIGNED:
        return up
    return b.select(b.ins(f"icmp slt {text} {x}, {zero}"), b.const(-1, t), up, t)


def _signbit(b: Builder, t: Type, x: str) -> str:
    if t.scalar not in SIGNED:
        return b.const(False, t.with_scalar("bool"))
    return b.ins(f"icmp slt {b.type(t)} {x}, {b.const(0, t)}")


def _fma(b: Builder, t: Type, x: str, y: str, z: str) -> str:
    return integer_op(b, "add", t, integer_op(b, "mul", t, x, y), z)


def _bit(b: Builder, t: Type, x: str, k: str) -> str:
    width = int(t.scalar[1:])
    inside = b.ins(f"icmp ult {b.type(t)} {k}, {b.const(width, t)}")
    at = b.select(inside, k, b.const(0, t), t)
    low = b.ins(f"and {b.type(t)} {b.ins(f'lshr {b.type(t)} {x}, {at}')}, {b.const(1, t)}")
    mask = register_type("bool", t.lanes)
    return b.ins(f"and {mask} {inside}, {b.ins(f'icmp ne {b.type(t)} {low}, {b.const(0, t)}')}")


def _ramp(b: Builder, t: Type, x: str) -> str:
    if t.lanes == 1:
        return x
    numbers = ", ".join(f"{register_type(t.scalar)} {i}" for i in range(t.lanes))
    return b.ins(f"add {b.type(t)} {x}, <{numbers}>")


def _pow(b: Builder, t: Type, x: str, y: str) -> str:
    """Repeated squaring, wrapping; a negative exponent gives 1 / (x ** -y) truncated (0 unless x is 1 or -1)."""
    text = register_type(t.scalar)
    name = f"ow.pow.{t.scalar}"
    if name not in b.helpers:
        b.helpers[name] = _POW.format(
            name=name, T=text, test=_POW_SIGNED if t.scalar in SIGNED else _POW_UNSIGNED
        ).replace("TYPE", text)
    lanes = range(t.lanes)
    out = [b.call(text, name, (text, b.lane(x, t, i)), (text, b.lane(y, t, i))) for i in lanes]
    return b.gather_lanes(out, t)


_POW_UNSIGNED = "br label %head"
_POW_SIGNED = """%negative = icmp slt TYPE %y, 0
  br i1 %negative, label %inverse, label %head
inverse:
  %one = icmp eq TYPE %x, 1
  %minus = icmp eq TYPE %x, -1
  %odd0 = and TYPE %y, 1
  %odd = icmp ne TYPE %odd0, 0
  %unit = select i1 %odd, TYPE -1, TYPE 1
  %value = select i1 %minus, TYPE %unit, TYPE 0
  %final = select i1 %one, TYPE 1, TYPE %value
  ret TYPE %final"""
_POW = """define internal {T} @{name}({T} %x, {T} %y) nounwind willreturn memory(none) {{
entry:
  {test}
head:
  %base = phi {T} [ %x, %entry ], [ %square, %body ]
  %left = phi {T} [ %y, %entry ], [ %half, %body ]
  %acc = phi {T} [ 1, %entry ], [ %next, %body ]
  %more = icmp ne {T} %left, 0
  br i1 %more, label %body, label %done
body:
  %bit = trunc {T} %left to i1
  %times = mul {T} %acc, %base
  %next = select i1 %bit, {T} %times, {T} %acc
  %square = mul {T} %base, %base
  %half = lshr {T} %left, 1
  br label %head
done:
  ret {T} %acc
}}"""

_SPECIAL: dict[str, Callable[..., str]] = {
    "div": _floordiv,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "shl": _shl,
    "shr": _shr,
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "square": lambda b, t, x: integer_op(b, "mul", t, x, x),
    "bnot": lambda b, t, x: b.ins(f"xor {b.type(t)} {x}, {b.const(-1, t)}"),
    "imag": lambda b, t, x: b.const(0, t),
    "isnan": lambda b, t, x: b.const(False, t.with_scalar("bool")),
    "isinf": lambda b, t, x: b.const(False, t.with_scalar("bool")),
    "isfinite": lambda b, t, x: b.const(True, t.with_scalar("bool")),
    "signbit": _signbit,
    "ctz": lambda b, t, x: b.call(b.type(t), f"llvm.cttz.{b.suffix(t)}", (b.type(t), x), ("i1", "false")),
    "popcount": lambda b, t, x: b.call(b.type(t), f"llvm.ctpop.{b.suffix(t)}", (b.type(t), x)),
    "bit": _bit,
    "ramp": _ramp,
    "fma": _fma,
}

"""exp, exp2, expm1 and tanh of real values -> LLVM IR without calls, so that loops over them become vectors.

    n = round(x / log 2);   r = x - n log 2;   exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1);   exp(r) - 1 = r + r^2 q(r)

Each step is one instruction of every lane. The polynomials q are minimax on |r| <= log(2) / 2, of relative errors
2^-28 (f32) and 2^-58 (f64). Errors measured against 50 digits: exp and exp2 below 1 ulp, expm1 2, tanh 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..classes import frozen
from ..ir.types import Type
from .emit_builder import Builder, register_type
from .target import Target

__all__ = ["EXPONENTIALS", "exponential", "is_expanded"]


@frozen
class _Parameters:
    """Of a scalar type: log(2) in two parts, of which n times the first is exact in a fused product; bounds of x
    beyond which exp is 0 and infinite; 1.5 * 2^(digits - 1), to which adding rounds to an integer; the digits of the
    significand, the bias of the exponent; the coefficients of q."""

    high: float
    low: float
    least: float
    most: float
    rounding: float
    digits: int
    bias: int
    q: tuple[float, ...]


_OF = {
    "float": _Parameters(
        0.693145751953125, 1.428606765330187e-06, -104.0, 89.0, 1.5 * 2**23, 23, 127,
        (0.4999999343082196, 0.16666520386238248, 0.04166839104636029, 0.008368746298706617, 0.0013814527597126895),
    ),
    "double": _Parameters(
        0.6931471803691238, 1.9082149292705877e-10, -746.0, 710.0, 1.5 * 2**52, 52, 1023,
        (
            0.5000000000000011, 0.1666666666666641, 0.04166666666652969, 0.008333333333494976, 0.0013888888943769102,
            0.00019841269505814615, 2.480149294080228e-05, 2.7557586744444913e-06, 2.7630309201716835e-07,
            2.5000042862710414e-08,
        ),
    ),
}  # fmt: skip
EXPONENTIALS = ("exp", "exp2", "expm1", "tanh")


def is_expanded(op: str, target: Target) -> bool:
    """Whether this operation is expanded: where fused products are one instruction."""
    features = target.features.split(",")
    has_fma = not target.is_cpu or "+fma" in features or target.triple.startswith(("aarch64", "arm64"))
    return op in EXPONENTIALS and has_fma


def exponential(b: Builder, op: str, t: Type, x: str) -> str:
    """One of `EXPONENTIALS` of a floating-point value."""
    e = _Emitter(b, t)
    return {"exp": e.exp, "exp2": e.exp2, "expm1": e.expm1, "tanh": e.tanh}[op](x)


class _Emitter:
    def __init__(self, b: Builder, t: Type) -> None:
        self.p = _OF[register_type(t.scalar)]
        self.b, self.t = b, t if t.scalar == "f64" else t.with_scalar("f32")
        self.text = b.type(t)
        self.width = 64 if self.p.digits == 52 else 32
        self.word = Type(f"i{self.width}", t.lanes)

    def const(self, value: float) -> str:
        return self.b.const(value, self.t)

    def ins(self, kind: str, x: str, y: str) -> str:
        return self.b.ins(f"{kind} {self.text} {x}, {y}")

    def fma(self, x: str, y: str, z: str) -> str:
        return self.b.intrinsic("fma", self.t, x, y, z)

    def power_of(self, x: str, least: float, most: float, scaled: Callable[[str], str]) -> str:
        """`scaled` of x within bounds, 0 below the least: nothing is computed there that has to be rounded to a
        denormal number, which takes processors hundreds of cycles."""
        is_zero = self.ins("fcmp olt", x, self.const(least))
        bounded = self.b.select(self.ins("fcmp ogt", x, self.const(most)), self.const(most), x, self.t)
        value = scaled(self.b.select(is_zero, self.const(0.0), bounded, self.t))
        return self.b.select(is_zero, self.const(0.0), value, self.t)

    def clamp(self, x: str, least: float, most: float) -> str:
        """x within bounds; NaN stays."""
        for kind, bound in (("ogt", self.const(most)), ("olt", self.const(least))):
            x = self.b.select(self.ins(f"fcmp {kind}", x, bound), bound, x, self.t)
        return x

    def nearest(self, x: str, scale: float) -> tuple[str, str]:
        """The integer nearest to x * scale, as a number and as a word."""
        raised = self.fma(x, self.const(scale), self.const(self.p.rounding))
        number = self.ins("fsub", raised, self.const(self.p.rounding))
        word = self.b.type(self.word)
        bits = self.b.ins(f"bitcast {self.text} {raised} to {word}")
        base = self.b.ins(f"bitcast {self.text} {self.const(self.p.rounding)} to {word}")
        return number, self.b.ins(f"sub {word} {bits}, {base}")

    def power(self, n: str) -> str:
        """2^n for an n whose power is a normal number."""
        word = self.b.type(self.word)
        biased = self.b.ins(f"add {word} {n}, {self.b.const(self.p.bias, self.word)}")
        shifted = self.b.ins(f"shl {word} {biased}, {self.b.const(self.p.digits, self.word)}")
        return self.b.ins(f"bitcast {word} {shifted} to {self.text}")

    def less_one(self, r: str) -> str:
        """exp(r) - 1 for |r| <= log(2) / 2."""
        q = self.const(self.p.q[-1])
        for c in reversed(self.p.q[:-1]):
            q = self.fma(q, r, self.const(c))
        return self.fma(self.ins("fmul", r, r), q, r)

    def reduced(self, x: str) -> tuple[str, str, str]:
        """n, as a number and as a word, and r of x."""
        number, n = self.nearest(x, 1 / math.log(2))
        r = self.fma(number, self.const(-self.p.high), x)
        return number, n, self.fma(number, self.const(-self.p.low), r)

    def scaled(self, r: str, number: str, n: str) -> str:
        """2^n exp(r), rounded once where 2^n is no normal number: by two powers, or one instruction."""
        value = self.ins("fadd", self.less_one(r), self.const(1.0))
        if self.t.lanes * self.width == 512 and "+avx512f" in self.b.target.features.split(","):
            name = f"llvm.x86.avx512.mask.scalef.p{'s' if self.width == 32 else 'd'}.512"
            mask = (f"i{self.t.lanes}", "-1")
            return self.b.call(self.text, name, *((self.text, x) for x in (value, number, value)), mask, ("i32", "4"))
        word = self.b.type(self.word)
        half = self.b.ins(f"ashr {word} {n}, {self.b.const(1, self.word)}")
        rest = self.b.ins(f"sub {word} {n}, {half}")
        return self.ins("fmul", self.ins("fmul", value, self.power(half)), self.power(rest))

    def exp(self, x: str) -> str:
        def scaled(x: str) -> str:
            number, n, r = self.reduced(x)
            return self.scaled(r, number, n)

        return self.power_of(x, self.p.least, self.p.most, scaled)

    def exp2(self, x: str) -> str:
        def scaled(x: str) -> str:
            number, n = self.nearest(x, 1.0)
            rest = self.ins("fsub", x, number)
            r = self.fma(rest, self.const(self.p.high), self.ins("fmul", rest, self.const(self.p.low)))
            return self.scaled(r, number, n)

        return self.power_of(x, self.p.least / math.log(2), self.p.most / math.log(2), scaled)

    def expm1(self, x: str) -> str:
        """Half of it twice, as 2^n is infinite for the largest x; x itself where it is tiny, zeros with their sign."""
        _, n, r = self.reduced(self.clamp(x, -2.0 * self.p.digits, self.p.most))
        word = self.b.type(self.word)
        half = self.power(self.b.ins(f"sub {word} {n}, {self.b.const(1, self.word)}"))
        value = self.fma(half, self.less_one(r), self.ins("fsub", half, self.const(0.5)))
        value = self.ins("fadd", value, value)
        size = self.b.intrinsic("fabs", self.t, x)
        is_tiny = self.ins("fcmp olt", size, self.const(2.0 ** (-self.p.digits - 2)))
        return self.b.select(is_tiny, x, value, self.t)

    def tanh(self, x: str) -> str:
        """-y / (2 + y) with y = exp(-2 |x|) - 1, and the sign of x."""
        size = self.b.intrinsic("fabs", self.t, x)
        y = self.expm1(self.ins("fmul", size, self.const(-2.0)))
        value = self.ins("fdiv", y, self.ins("fadd", y, self.const(2.0)))
        return self.b.intrinsic("copysign", self.t, value, x)

"""Mathematical functions -> LLVM IR for devices whose LLVM target has no intrinsic for them and links no library.

    x = 2^k m, m from sqrt(1/2) to sqrt(2);  f = m - 1;  s = f / (2 + f);  log(m) = f - (f^2 / 2 - s (f^2 / 2 + r(s^2)))

The polynomials r are those of Sun's fdlibm, of relative errors 2^-58 (f64) and 2^-34 (f32). Errors against
those in long double: log 1 ulp, log2 2, log1p and log10 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..classes import frozen
from ..errors import UnsupportedError
from ..ir.types import Type
from .emit_builder import Builder, register_type

__all__ = ["own_function"]


def own_function(b: Builder, op: str, t: Type, *args: str) -> str:
    """A function of real values in line. Raises UnsupportedError, by name, for one that is not there."""
    build = _OWN.get(op)
    if build is None:
        raise UnsupportedError(
            f"{op} of {t} on {b.target.kind}\n  supported there: arithmetic, sqrt, rounding, exp, exp2, expm1, tanh,"
            " log, log1p, log2, log10\n  help: move the tensor with .to('cpu') first"
        )
    return build(b, t, *args)


def _remainder(b: Builder, t: Type, x: str, y: str) -> str:
    return b.ins(f"frem {b.type(t)} {x}, {y}")


def _hypot(b: Builder, t: Type, x: str, y: str) -> str:
    """sqrt(x^2 + y^2) = m sqrt(1 + (n / m)^2), m the larger in size: no square overflows."""
    text = b.type(t)
    first, second = b.intrinsic("fabs", t, x), b.intrinsic("fabs", t, y)
    larger, smaller = b.intrinsic("maxnum", t, first, second), b.intrinsic("minnum", t, first, second)
    ratio = b.ins(f"fdiv {text} {smaller}, {larger}")
    root = b.intrinsic("sqrt", t, b.intrinsic("fma", t, ratio, ratio, b.const(1.0, t)))
    scaled = b.ins(f"fmul {text} {larger}, {root}")
    plain = b.ins(f"or i1 {_is(b, t, larger, 0.0)}, {_is(b, t, larger, float('inf'))}")
    value = b.select(plain, larger, scaled, t)
    unordered = b.ins(f"fcmp uno {text} {x}, {y}")
    infinite = _is(b, t, larger, float("inf"))
    nan = b.ins(f"fadd {text} {x}, {y}")
    return b.select(infinite, b.const(float("inf"), t), b.select(unordered, nan, value, t), t)


@frozen
class _Logarithm:
    """Of a scalar type: digits of the significand; the bits of sqrt(1/2); the least normal number, and a power of two
    that makes subnormal ones normal; log(2) in two parts; the coefficients of r."""

    digits: int
    root: int
    least: float
    lift: int
    high: float
    low: float
    r: tuple[float, ...]


_LOG = {
    "float": _Logarithm(
        23, 0x3F3504F3, 2.0**-126, 25, 0.693138122558594, 9.05800061445916e-06,
        (0.6666666269302368, 0.40000972151756287, 0.2849878668785095, 0.24279078841209412),
    ),
    "double": _Logarithm(
        52, 0x3FE6A09E667F3BCD, 2.0**-1022, 54, 0.693147180369123816490, 1.90821492927058770002e-10,
        (
            0.6666666666666735130, 0.3999999999940941908, 0.2857142874366239149, 0.2222219843214978396,
            0.1818357216161805012, 0.1531383769920937332, 0.1479819860511658591,
        ),
    ),
}  # fmt: skip


class _Log:
    """Logarithms of one value, in instructions of its type."""

    def __init__(self, b: Builder, t: Type, x: str) -> None:
        self.b, self.p = b, _LOG[register_type(t.scalar)]
        self.t = t if t.scalar == "f64" else t.with_scalar("f32")
        self.word, self.text, self.x = f"i{64 if self.p.digits == 52 else 32}", b.type(self.t), x
        p = self.p
        small = b.ins(f"fcmp olt {self.text} {x}, {self.number(p.least)}")
        bits = b.ins(
            f"bitcast {self.text} {b.select(small, self.of('fmul', x, 2.0**p.lift), x, self.t)} to {self.word}"
        )
        power = b.ins(f"ashr {self.word} {b.ins(f'sub {self.word} {bits}, {p.root}')}, {p.digits}")
        k = b.ins(f"sitofp {self.word} {power} to {self.text}")
        self.k = b.select(small, self.of("fsub", k, float(p.lift)), k, self.t)
        shifted = b.ins(f"sub {self.word} {bits}, {b.ins(f'shl {self.word} {power}, {p.digits}')}")
        self.f = self.of("fsub", b.ins(f"bitcast {self.word} {shifted} to {self.text}"), 1.0)
        s = self.of("fdiv", self.f, self.of("fadd", self.f, 2.0))
        z, r = self.of("fmul", s, s), self.number(p.r[-1])
        for c in p.r[-2::-1]:
            r = b.intrinsic("fma", self.t, z, r, self.number(c))
        self.half = self.of("fmul", self.of("fmul", self.f, self.f), 0.5)
        self.rest = self.of("fmul", s, self.of("fadd", self.half, self.of("fmul", z, r)))

    def number(self, value: float) -> str:
        return self.b.const(value, self.t)

    def of(self, kind: str, x: str, y: str | float) -> str:
        return self.b.ins(f"{kind} {self.text} {x}, {self.number(y) if isinstance(y, float) else y}")

    def defined(self, value: str) -> str:
        """The value, -inf of 0, inf of inf, NaN of what is less than 0 and of NaN."""
        b, t, x = self.b, self.t, self.x
        value = b.select(_is(b, t, x, math.inf), x, value, t)
        value = b.select(_is(b, t, x, 0.0), self.number(-math.inf), value, t)
        least = b.ins(f"fcmp ult {self.text} {x}, {self.number(0.0)}")
        return b.select(least, self.number(math.nan), value, t)

    def log(self) -> str:
        low = self.of("fadd", self.rest, self.of("fmul", self.k, self.p.low))
        inner = self.of("fsub", self.of("fsub", self.half, low), self.f)
        return self.defined(self.of("fsub", self.of("fmul", self.k, self.p.high), inner))

    def log2(self) -> str:
        of_m = self.of("fsub", self.f, self.of("fsub", self.half, self.rest))
        return self.defined(self.b.intrinsic("fma", self.t, of_m, self.number(1 / math.log(2)), self.k))


def _log(b: Builder, t: Type, x: str) -> str:
    return _Log(b, t, x).log()


def _log2(b: Builder, t: Type, x: str) -> str:
    return _Log(b, t, x).log2()


def _log10(b: Builder, t: Type, x: str) -> str:
    found = _Log(b, t, x)
    return found.of("fmul", found.log(), 1 / math.log(10))


def _log1p(b: Builder, t: Type, x: str) -> str:
    """log(u) x / (u - 1), u = 1 + x: what u rounds away is made up for."""
    u = b.ins(f"fadd {b.type(t)} {x}, {b.const(1.0, t)}")
    found = _Log(b, t, u)
    less = found.of("fsub", u, 1.0)
    scaled = found.of("fmul", found.log(), found.of("fdiv", x, less))
    plain = b.ins(f"or i1 {_is(b, t, less, 0.0)}, {_is(b, t, x, math.inf)}")
    return b.select(plain, x, scaled, t)


def _is(b: Builder, t: Type, x: str, value: float) -> str:
    return b.ins(f"fcmp oeq {b.type(t)} {x}, {b.const(value, t)}")


_OWN: dict[str, Callable[..., str]] = {
    "fmod": _remainder, "hypot": _hypot, "log": _log, "log1p": _log1p, "log2": _log2, "log10": _log10,
}  # fmt: skip

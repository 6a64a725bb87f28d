"""An operation on complex values, each a pair (real, imaginary) of registers -> LLVM IR."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UnsupportedError
from ..ir.types import Type, real_of
from .emit_builder import Builder, Parts, register_type
from .emit_complex_power import divide, power, reciprocal, sign
from .emit_float import float_op, math_call

__all__ = ["complex_op"]

_LIBRARY = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh",
)  # fmt: skip
_LN2, _LN10 = 0.6931471805599453, 2.302585092994046


def complex_op(b: Builder, op: str, t: Type, *args: Parts) -> Parts:
    """One of the operations of `ir.ops` on complex values of type `t`."""
    if op in _LIBRARY:
        return _library(b, op, t, *args)
    special = _OPS.get(op)
    if special is None:
        raise b.unsupported(op, t)
    return special(b, _real(t), *args)


def _real(t: Type) -> Type:
    return t.with_scalar(real_of(t.scalar))


def _on_parts(op: str) -> Callable[..., Parts]:
    """The real operation on both parts."""

    def build(b: Builder, r: Type, *args: Parts) -> Parts:
        return tuple(float_op(b, op, r, *(a[k] for a in args)) for k in range(2))

    return build


def _mul(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
    f = b.flags
    t = b.type(r)
    re = b.ins(f"fsub {f} {t} {b.ins(f'fmul {f} {t} {x[0]}, {y[0]}')}, {b.ins(f'fmul {f} {t} {x[1]}, {y[1]}')}")
    im = b.ins(f"fadd {f} {t} {b.ins(f'fmul {f} {t} {x[0]}, {y[1]}')}, {b.ins(f'fmul {f} {t} {x[1]}, {y[0]}')}")
    return re, im


def _fma(b: Builder, r: Type, x: Parts, y: Parts, z: Parts) -> Parts:
    re = float_op(b, "fma", r, x[0], y[0], z[0])
    im = float_op(b, "fma", r, x[0], y[1], z[1])
    minus = b.ins(f"fneg {b.type(r)} {x[1]}")
    return float_op(b, "fma", r, minus, y[1], re), float_op(b, "fma", r, x[1], y[0], im)


def _library(b: Builder, op: str, t: Type, *args: Parts) -> Parts:
    """A call of C's complex function in double precision, lane by lane."""
    if not b.target.is_cpu:
        raise UnsupportedError(f"{op} of {t} values is not supported on a device; arithmetic and abs are")
    r, wide = _real(t), Type("f64")
    out: list[Parts] = []
    for i in range(t.lanes):
        words = [("double", _widen(b, b.lane(p, r, i), r.scalar)) for a in args for p in a]
        pair = b.call("{ double, double }", "c" + op, *words)
        lanes = tuple(b.ins(f"extractvalue {{ double, double }} {pair}, {k}") for k in range(2))
        out.append(tuple(b.ins(f"fptrunc {b.type(wide)} {p} to float") if r.scalar == "f32" else p for p in lanes))
    return tuple(b.gather_lanes([p[k] for p in out], r) for k in range(2))


def _power(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
    if not b.target.is_cpu:
        raise UnsupportedError("pow of complex values is not supported on a device; arithmetic and abs are")
    return power(b, r, x, y)


def _widen(b: Builder, x: str, scalar: str) -> str:
    return b.ins(f"fpext float {x} to double") if scalar == "f32" else x


def _abs(b: Builder, r: Type, x: Parts) -> Parts:
    return (math_call(b, "hypot", r, x[0], x[1]),)


def _eq(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
    return (_logical(b, r, "and", float_op(b, "eq", r, x[0], y[0]), float_op(b, "eq", r, x[1], y[1])),)


def _ne(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
    return (_logical(b, r, "or", float_op(b, "ne", r, x[0], y[0]), float_op(b, "ne", r, x[1], y[1])),)


def _logical(b: Builder, r: Type, kind: str, x: str, y: str) -> str:
    return b.ins(f"{kind} {register_type('bool', r.lanes)} {x}, {y}")


def _order(strict: str, last: str) -> Callable[[Builder, Type, Parts, Parts], Parts]:
    """Lexicographic: real parts first, imaginary parts where those are equal; false where a part is NaN."""

    def build(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
        first = float_op(b, strict, r, x[0], y[0])
        ordered = b.ins(f"fcmp ord {b.type(r)} {x[1]}, {y[1]}")
        tie = _logical(b, r, "and", float_op(b, "eq", r, x[0], y[0]), float_op(b, last, r, x[1], y[1]))
        return (_logical(b, r, "or", _logical(b, r, "and", first, ordered), tie),)

    return build


def _extreme(strict: str, last: str) -> Callable[[Builder, Type, Parts, Parts], Parts]:
    """The lexicographic minimum or maximum; a NaN in either operand is the result."""

    def build(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
        keep = _logical(b, r, "or", _order(strict, last)(b, r, x, y)[0], _nan(b, r, x))
        return tuple(b.select(keep, p, q, r) for p, q in zip(x, y, strict=True))

    return build


def _nan(b: Builder, r: Type, x: Parts) -> str:
    return b.ins(f"fcmp uno {b.type(r)} {x[0]}, {x[1]}")


def _on_either_part(op: str, kind: str) -> Callable[[Builder, Type, Parts], Parts]:
    return lambda b, r, x: (_logical(b, r, kind, float_op(b, op, r, x[0]), float_op(b, op, r, x[1])),)


def _scaled(op: str, factor: float) -> Callable[[Builder, Type, Parts], Parts]:
    def build(b: Builder, r: Type, x: Parts) -> Parts:
        log = _library(b, op, r.with_scalar("c64" if r.scalar == "f32" else "c128"), x)
        return tuple(float_op(b, "mul", r, p, b.const(factor, r)) for p in log)

    return build


def _exp2(b: Builder, r: Type, x: Parts) -> Parts:
    scaled = tuple(float_op(b, "mul", r, p, b.const(_LN2, r)) for p in x)
    return _library(b, "exp", r.with_scalar("c64" if r.scalar == "f32" else "c128"), scaled)


def _expm1(b: Builder, r: Type, x: Parts) -> Parts:
    """exp(z) - 1 without cancellation: expm1(x) cos(y) - 2 sin(y/2)^2, exp(x) sin(y).

    Where y is 0, or infinity meets a y without a direction, the real part is expm1(x); the imaginary one is y, or 0.
    """
    t, zero = b.type(r), b.const(0.0, r)
    half = math_call(b, "sin", r, float_op(b, "mul", r, x[1], b.const(0.5, r)))
    twice = float_op(b, "mul", r, b.const(2.0, r), float_op(b, "mul", r, half, half))
    real_expm1 = math_call(b, "expm1", r, x[0])
    product = float_op(b, "mul", r, real_expm1, math_call(b, "cos", r, x[1]))
    im = float_op(b, "mul", r, math_call(b, "exp", r, x[0]), math_call(b, "sin", r, x[1]))
    flat = b.ins(f"fcmp oeq {t} {x[1]}, {zero}")
    nonfinite_angle = b.ins(f"fcmp une {t} {b.ins(f'fsub {t} {x[1]}, {x[1]}')}, {zero}")
    no_direction = _logical(b, r, "and", float_op(b, "isinf", r, x[0]), nonfinite_angle)
    real = b.select(_logical(b, r, "or", flat, no_direction), real_expm1, float_op(b, "sub", r, product, twice), r)
    vanishes = _logical(b, r, "and", no_direction, b.ins(f"fcmp olt {t} {x[0]}, {zero}"))
    return real, b.select(flat, x[1], b.select(vanishes, zero, im, r), r)


def _log1p(b: Builder, r: Type, x: Parts) -> Parts:
    real = float_op(b, "add", r, x[0], b.const(1.0, r))
    return math_call(b, "log", r, math_call(b, "hypot", r, real, x[1])), math_call(b, "atan2", r, x[1], real)


def _fold(op: str) -> Callable[[Builder, Type, Parts], Parts]:
    """A horizontal reduction, lane after lane."""

    def build(b: Builder, r: Type, x: Parts) -> Parts:
        one = r.with_lanes(1)
        lanes = [tuple(b.lane(p, r, i) for p in x) for i in range(r.lanes)]
        out = lanes[0]
        for lane in lanes[1:]:
            out = _OPS[op](b, one, out, lane)
        return out

    return build


_OPS: dict[str, Callable[..., Parts]] = {
    "add": _on_parts("add"),
    "sub": _on_parts("sub"),
    "mul": _mul,
    "div": divide,
    "pow": _power,
    "fma": _fma,
    "neg": _on_parts("neg"),
    "round": _on_parts("round"),
    "abs": _abs,
    "sign": sign,
    "eq": _eq,
    "ne": _ne,
    "lt": _order("lt", "lt"),
    "le": _order("lt", "le"),
    "gt": _order("gt", "gt"),
    "ge": _order("gt", "ge"),
    "min": _extreme("lt", "le"),
    "max": _extreme("gt", "ge"),
    "isnan": _on_either_part("isnan", "or"),
    "isinf": _on_either_part("isinf", "or"),
    "isfinite": _on_either_part("isfinite", "and"),
    "real": lambda b, r, x: (x[0],),
    "imag": lambda b, r, x: (x[1],),
    "conj": lambda b, r, x: (x[0], b.ins(f"fneg {b.type(r)} {x[1]}")),
    "square": lambda b, r, x: _mul(b, r, x, x),
    "reciprocal": reciprocal,
    "exp2": _exp2,
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _scaled("log", 1.0 / _LN2),
    "log10": _scaled("log", 1.0 / _LN10),
    "hsum": lambda b, r, x: tuple(float_op(b, "hsum", r, p) for p in x),
    "hprod": _fold("mul"),
    "hmin": _fold("min"),
    "hmax": _fold("max"),
}

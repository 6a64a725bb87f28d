"""A value and two types -> the value converted: between scalar types, and broadcast to lanes.

Floating-point to integer saturates (NaN gives 0); integers wrap; anything non-zero (NaN too) is true;
complex to real keeps the real part. Rounding to f16 and bf16 is to nearest, ties to even,
by way of f32.
"""

from __future__ import annotations

from ..errors import CompilerBug
from ..ir.types import SIGNED, Type, itemsize, real_of
from ..ir.values import int_range
from .emit_builder import Builder, Parts, register_type

__all__ = ["convert", "half_from_bits", "half_to_bits"]


def convert(b: Builder, parts: Parts, src: Type, dst: Type) -> Parts:
    """`parts` of type `src` as `dst`."""
    if src.lanes not in (1, dst.lanes):
        raise CompilerBug(f"code generation: no cast from {src} to {dst}")
    if src.scalar != dst.scalar:
        parts = _scalar(b, parts, src, dst.with_lanes(src.lanes))
    if src.lanes != dst.lanes:
        return tuple(b.broadcast(p, real_of(dst.scalar), dst.lanes) for p in parts)
    return parts


def _scalar(b: Builder, parts: Parts, src: Type, dst: Type) -> Parts:
    part = src.with_scalar(real_of(src.scalar))
    if dst.is_complex:
        real = dst.with_scalar(real_of(dst.scalar))
        out = tuple(_real(b, p, part, real) for p in parts)
        return out if src.is_complex else (out[0], b.const(0.0, real))
    if src.is_complex and dst.scalar == "bool":
        mask = register_type("bool", dst.lanes)
        re, im = (_real(b, p, part, dst) for p in parts)
        return (b.ins(f"or {mask} {re}, {im}"),)
    return (_real(b, parts[0], part, dst),)


def _real(b: Builder, x: str, src: Type, dst: Type) -> str:
    a, c = b.type(src), b.type(dst)
    if src.scalar == dst.scalar:
        return x
    if dst.scalar == "bool":
        if src.is_float:
            return b.ins(f"fcmp une {a} {x}, {b.const(0.0, src)}")
        return b.ins(f"icmp ne {a} {x}, {b.const(0, src)}")
    if src.is_float:
        return _float_to_float(b, x, src, dst) if dst.is_float else _float_to_integer(b, x, src, dst)
    if dst.is_float:
        kind = "sitofp" if src.scalar in SIGNED else "uitofp"
        return _round(b, b.ins(f"{kind} {a} {x} to {c}"), dst)
    if src.scalar == "bool":
        return b.ins(f"zext {a} {x} to {c}")
    before, after = itemsize(src.scalar), itemsize(dst.scalar)
    if before == after:
        return x
    kind = "trunc" if before > after else "sext" if src.scalar in SIGNED else "zext"
    out = b.ins(f"{kind} {a} {x} to {c}")
    if kind == "sext" and dst.scalar == "i64" and x in b.origins:
        b.origins[out] = b.origins[x]
    return out


def _float_to_integer(b: Builder, x: str, src: Type, dst: Type) -> str:
    kind = "fptosi" if dst.scalar in SIGNED else "fptoui"
    if b.target.kind == "spirv":
        return _saturated(b, x, src, dst, kind)
    return b.call(b.type(dst), f"llvm.{kind}.sat.{b.suffix(dst)}.{b.suffix(src)}", (b.type(src), x))


def _saturated(b: Builder, x: str, src: Type, dst: Type, kind: str) -> str:
    """`llvm.fptosi.sat` in plain instructions: a runtime of OpenCL lacks the function for vectors of 32."""
    a, c, (low, high) = b.type(src), b.type(dst), int_range(dst.scalar)
    below = b.ins(f"fcmp ole {a} {x}, {b.const(float(low), src)}")
    above = b.ins(f"fcmp oge {a} {x}, {b.const(float(high + 1), src)}")
    nan = b.ins(f"fcmp uno {a} {x}, {x}")
    outside = b.ins(f"or i1 {nan}, {b.ins(f'or i1 {below}, {above}')}")
    inside = b.ins(f"{kind} {a} {b.ins(f'select i1 {outside}, {a} {b.const(0.0, src)}, {a} {x}')} to {c}")
    out = b.ins(f"select i1 {below}, {c} {low}, {c} {inside}")
    return b.ins(f"select i1 {above}, {c} {high}, {c} {out}")


def _float_to_float(b: Builder, x: str, src: Type, dst: Type) -> str:
    if dst.scalar == "f64":
        return b.ins(f"fpext {b.type(src)} {x} to {b.type(dst)}")
    near = b.ins(f"fptrunc {b.type(src)} {x} to {b.type(dst)}") if src.scalar == "f64" else x
    return _round(b, near, dst)


def _round(b: Builder, x: str, t: Type) -> str:
    """Round a float register to what `t` can hold."""
    if t.scalar not in ("f16", "bf16"):
        return x
    return half_from_bits(b, half_to_bits(b, x, t), t)


def half_to_bits(b: Builder, x: str, t: Type) -> str:
    """The memory form of an f16 (`half`) or bf16 (`i16`) held in a float register."""
    text, vector = b.type(t), "" if t.lanes == 1 else f"{t.lanes} x "
    shape = (lambda s: f"<{vector}{s}>") if vector else (lambda s: s)
    if t.scalar == "f16":
        return b.ins(f"fptrunc {text} {x} to {shape('half')}")
    word, bits = Type("i32", t.lanes), register_type("i32", t.lanes)
    raw = b.ins(f"bitcast {text} {x} to {bits}")
    high = b.ins(f"lshr {bits} {raw}, {b.const(16, word)}")
    odd = b.ins(f"and {bits} {high}, {b.const(1, word)}")
    bias = b.ins(f"add {bits} {odd}, {b.const(0x7FFF, word)}")
    near = b.ins(f"lshr {bits} {b.ins(f'add {bits} {raw}, {bias}')}, {b.const(16, word)}")
    quiet = b.ins(f"or {bits} {high}, {b.const(0x40, word)}")
    nan = b.ins(f"fcmp uno {text} {x}, {b.const(0.0, t)}")
    return b.ins(f"trunc {bits} {b.select(nan, quiet, near, word)} to {shape('i16')}")


def half_from_bits(b: Builder, x: str, t: Type) -> str:
    """The float register of an f16 or bf16 in its memory form."""
    text, lanes = b.type(t), t.lanes
    shape = (lambda s: f"<{lanes} x {s}>") if lanes > 1 else (lambda s: s)
    if t.scalar == "f16":
        return b.ins(f"fpext {shape('half')} {x} to {text}")
    word, bits = Type("i32", lanes), register_type("i32", lanes)
    wide = b.ins(f"zext {shape('i16')} {x} to {bits}")
    return b.ins(f"bitcast {bits} {b.ins(f'shl {bits} {wide}, {b.const(16, word)}')} to {text}")

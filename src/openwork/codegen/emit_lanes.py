"""An operation across lanes -> LLVM IR: expansion by a mask, every second lane of two vectors, masks as the bits of an
integer and back."""

from __future__ import annotations

from ..ir.loop import Cast, Const, Expr, Op
from ..ir.types import Type, real_of
from .emit_builder import Builder, Parts, register_type

__all__ = ["bits_of_lanes", "deinterleave", "expand", "is_lanes_of_bits", "lanes_of_bits"]

_EXPANDING = {("64", 8): "avx512f", ("32", 16): "avx512f", ("64", 4): "avx512vl", ("32", 8): "avx512vl"}
"""The CPU feature that has an instruction to expand a vector, by width and number of lanes."""


def expand(b: Builder, t: Type, x: Parts, mask: str) -> Parts:
    """The first lanes where the mask is true, and 0 elsewhere."""
    real = Type("f32" if t.scalar == "c64" else "f64", t.lanes) if t.is_complex else t
    return tuple(_expand(b, real, part, mask) for part in x)


def _expand(b: Builder, t: Type, x: str, mask: str) -> str:
    zero = b.const(False if t.scalar == "bool" else 0.0 if t.is_float else 0, t)
    if t.lanes == 1:
        return b.select(mask, x, zero, t)
    width = t.scalar[1:]
    feature = _EXPANDING.get((width, t.lanes)) if t.scalar != "bool" else None
    if feature is not None and f"+{feature}" in b.target.features.split(","):
        vector = b.type(t)
        arguments = ((vector, x), (vector, zero), (f"<{t.lanes} x i1>", mask))
        return b.call(vector, f"llvm.x86.avx512.mask.expand.{b.suffix(t)}", *arguments)
    lanes, at = [], "0"
    scalar = t.with_lanes(1)
    for k in range(t.lanes):
        value = b.ins(f"extractelement {b.type(t)} {x}, i64 {at}")
        lane_mask = b.lane(mask, t.with_scalar("bool"), k)
        lanes.append(b.select(lane_mask, value, b.const(False if t.scalar == "bool" else 0, scalar), scalar))
        at = b.ins(f"add i64 {at}, {b.ins(f'zext i1 {lane_mask} to i64')}")
    return b.gather_lanes(lanes, t)


def deinterleave(b: Builder, t: Type, x: Parts, y: Parts, first: int) -> Parts:
    """The lanes `first`, `first` + 2, ... of x and then of y."""
    if t.lanes == 1:
        return (x, y)[first]
    part = b.type(t.with_scalar(real_of(t.scalar)))
    places = [2 * i + first for i in range(t.lanes)]
    return tuple(b.shuffle(one, other, part, places) for one, other in zip(x, y, strict=True))


def is_lanes_of_bits(e: Op) -> bool:
    """Whether lane k of the operation is bit k of one integer, which has that many bits."""
    x, k = e.args
    is_broadcast = isinstance(x, Cast) and x.arg.type == x.type.with_lanes(1) and x.type.is_integer
    return is_broadcast and e.type.lanes in (8, 16, 32, 64) and e.type.lanes <= int(x.type.scalar[1:]) and _is_iota(k)


def _is_iota(e: Expr) -> bool:
    """Whether a vector is 0, 1, 2, ..."""
    if not isinstance(e, Op) or e.op != "ramp":
        return False
    base = e.args[0].arg if isinstance(e.args[0], Cast) else e.args[0]
    return isinstance(base, Const) and base.value == 0


def lanes_of_bits(b: Builder, value: str, t: Type, lanes: int) -> str:
    """The low bits of an integer of type `t` as truth values: bit k in lane k."""
    if int(t.scalar[1:]) > lanes:
        value = b.ins(f"trunc {register_type(t.scalar)} {value} to i{lanes}")
    return b.ins(f"bitcast i{lanes} {value} to <{lanes} x i1>")


def bits_of_lanes(b: Builder, mask: str, lanes: int) -> str:
    """Truth values as an i64: lane k is bit k."""
    if lanes > 1:
        mask = b.ins(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
    return mask if lanes == 64 else b.ins(f"zext i{lanes} {mask} to i64")

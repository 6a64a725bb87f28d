"""An operation across lanes -> LLVM IR: expansion by a mask, lanes by their numbers, every second lane of two vectors,
masks as the bits of an integer and back."""

from __future__ import annotations

from ..ir.loop import Cast, Const, Expr, Op
from ..ir.types import Type, real_of
from .emit_builder import Builder, Parts, register_type

__all__ = ["bits_of_lanes", "deinterleave", "expand", "is_lanes_of_bits", "lanes_of_bits", "permute"]

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


_PERMUTING = {
    ("64", 8): ("avx512f", "llvm.x86.avx512.permvar.df.512", "llvm.x86.avx512.vpermi2var.pd.512"),
    ("32", 16): ("avx512f", "llvm.x86.avx512.permvar.sf.512", "llvm.x86.avx512.vpermi2var.ps.512"),
    ("32", 8): ("avx2", "llvm.x86.avx2.permps", None),
}
"""The CPU feature that has an instruction to permute vectors of floats by numbers of lanes, by width and lanes of the
result; LLVM's function of one vector, which it calls for integers too, and that of two."""


def permute(b: Builder, t: Type, x: Parts, index_type: Type, index: str) -> Parts:
    """The lanes of x whose numbers, modulo their count, are those of `index`."""
    part = t.with_scalar(real_of(t.scalar))
    return tuple(_permute(b, part, one, index_type, index) for one in x)


def _permute(b: Builder, t: Type, x: str, index_type: Type, index: str) -> str:
    width = "32" if b.type(t.with_lanes(1)) in ("float", "i32") else "64" if t.scalar[1:] == "64" else ""
    feature, one, two = _PERMUTING.get((width, index_type.lanes), ("", "", None))
    if feature and f"+{feature}" in b.target.features.split(",") and t.lanes >= index_type.lanes:
        return _permuted(b, t, x, index_type.lanes, _resized(b, index_type, index, width), (width, one, two))
    wide, values = _resized(b, index_type, index, "64"), []
    for k in range(index_type.lanes):
        at = b.ins(f"and i64 {b.lane(wide, index_type.with_scalar('u64'), k)}, {t.lanes - 1}")
        values.append(x if t.lanes == 1 else b.ins(f"extractelement {b.type(t)} {x}, i64 {at}"))
    return b.gather_lanes(values, t.with_lanes(index_type.lanes))


def _resized(b: Builder, t: Type, value: str, width: str) -> str:
    """Integers with their low bits alone, or zeros above them: numbers of lanes need no more."""
    target = b.type(Type(f"u{width}", t.lanes))
    if t.scalar[1:] == width:
        return value
    return b.ins(f"{'trunc' if int(t.scalar[1:]) > int(width) else 'zext'} {b.type(t)} {value} to {target}")


def _permuted(b: Builder, t: Type, x: str, lanes: int, index: str, by: tuple[str, str, str | None]) -> str:
    """The lanes of x: of one or two registers by one instruction, of more by one for each half and a selection."""
    width, one, two = by
    vector, integers = b.type(t.with_lanes(lanes)), f"<{lanes} x i{width}>"
    floats = f"<{lanes} x {'float' if width == '32' else 'double'}>"

    def called(name: str, *arguments: tuple[str, str]) -> str:
        cast = [(k, b.ins(f"bitcast {vector} {v} to {k}") if k == floats != vector else v) for k, v in arguments]
        out = b.call(floats, name, *cast)
        return out if floats == vector else b.ins(f"bitcast {floats} {out} to {vector}")

    if t.lanes == lanes:
        return called(one, (floats, x), (integers, index))
    half = t.with_lanes(t.lanes // 2)
    low, high = (b.shuffle(x, "poison", b.type(t), list(range(k, k + half.lanes))) for k in (0, half.lanes))
    if two is not None and half.lanes == lanes:
        return called(two, (floats, low), (integers, index), (floats, high))
    low, high = (_permuted(b, half, part, lanes, index, by) for part in (low, high))
    bit = b.ins(f"and {integers} {index}, splat (i{width} {half.lanes})")
    is_high = b.ins(f"icmp ne {integers} {bit}, zeroinitializer")
    return b.select(is_high, high, low, t.with_lanes(lanes))


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

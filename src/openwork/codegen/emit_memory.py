"""A load, store, gather, scatter or prefetch of a scalar type -> LLVM IR, with the type's layout in memory.

A bool is a byte, f16 and bf16 are two bytes, a complex value is two reals side by side.
"""

from __future__ import annotations

from ..ir.types import Type, itemsize, real_of
from .emit_builder import Builder, Parts, memory_type, register_type
from .emit_cast import half_from_bits, half_to_bits
from .target import gathers

__all__ = ["element", "element_type", "half_from_bits", "half_to_bits", "load", "prefetch", "store"]


def load(b: Builder, pointer: str, index: str, index_type: Type, t: Type, mutable: bool) -> Parts:
    """`t` from `pointer[index]`: one element, consecutive elements, or a gather by an index vector."""
    if index_type.lanes > 1:
        return _gather(b, pointer, index, t)
    if t.is_complex:
        return _load_complex(b, pointer, index, t)
    address = _address(b, pointer, index, memory_type(t.scalar))
    out = _load(b, address, t)
    if t.lanes > 1 and t.scalar in ("i32", "i64") and not mutable:
        b.origins[out] = (address, t.scalar)
    return (out,)


def store(b: Builder, pointer: str, index: str, index_type: Type, value: Parts, t: Type) -> None:
    """Write `value` of type `t` to `pointer[index]` and the elements after it (scattered by an index vector)."""
    if index_type.lanes > 1:
        _scatter(b, pointer, index, value, t)
    elif t.is_complex:
        _store_complex(b, pointer, index, value, t)
    else:
        _store(b, _address(b, pointer, index, memory_type(t.scalar)), value[0], t)


def prefetch(b: Builder, pointer: str, index: str, index_type: Type, scalar: str) -> None:
    """Prefetch the cache lines of elements; the address may be out of bounds."""
    element = f"[{itemsize(scalar)} x i8]"
    for i in range(index_type.lanes):
        if b.target.is_cpu:
            address = b.ins(f"getelementptr {element}, ptr {pointer}, i64 {b.lane(index, index_type, i)}")
            b.call("void", "llvm.prefetch.p0", ("ptr", address), ("i32", "0"), ("i32", "3"), ("i32", "1"))


def element_type(scalar: str) -> str:
    """The type of an element in memory."""
    return f"[2 x {register_type(scalar)}]" if Type(scalar).is_complex else memory_type(scalar)


def element(b: Builder, pointer: str, index: str, scalar: str) -> str:
    """The address of `pointer[index]`."""
    return _address(b, pointer, index, element_type(scalar))


def _address(b: Builder, pointer: str, index: str, element: str) -> str:
    return b.offset(element, pointer, index)


def _addresses(b: Builder, pointer: str, index: str, lanes: int, element: str) -> str:
    return b.ins(f"getelementptr inbounds {element}, ptr {pointer}, <{lanes} x i64> {index}")


def _decode(b: Builder, raw: str, t: Type) -> str:
    """The register form of a loaded value."""
    if t.scalar == "bool":
        return b.ins(f"icmp ne {memory_type('bool', t.lanes)} {raw}, {'0' if t.lanes == 1 else 'zeroinitializer'}")
    return half_from_bits(b, raw, t) if t.scalar in ("f16", "bf16") else raw


def _encode(b: Builder, value: str, t: Type) -> str:
    """The memory form of a register."""
    if t.scalar == "bool":
        return b.ins(f"zext {b.type(t)} {value} to {memory_type('bool', t.lanes)}")
    return half_to_bits(b, value, t) if t.scalar in ("f16", "bf16") else value


def _load(b: Builder, address: str, t: Type) -> str:
    raw = b.ins(f"load {memory_type(t.scalar, t.lanes)}, {b.pointer(address)}, align {itemsize(t.scalar)}")
    return _decode(b, raw, t)


def _store(b: Builder, address: str, value: str, t: Type) -> None:
    raw = _encode(b, value, t)
    b.do(f"store {memory_type(t.scalar, t.lanes)} {raw}, {b.pointer(address)}, align {itemsize(t.scalar)}")


def _load_complex(b: Builder, pointer: str, index: str, t: Type) -> Parts:
    part, size = register_type(t.scalar), itemsize(t.scalar) // 2
    base = _address(b, pointer, index, f"[2 x {part}]")
    if t.lanes == 1:
        second = b.offset(part, base, "1")
        return tuple(b.ins(f"load {part}, {b.pointer(p)}, align {size}") for p in (base, second))
    wide = f"<{2 * t.lanes} x {part}>"
    raw = b.ins(f"load {wide}, ptr {base}, align {size}")
    return tuple(b.shuffle(raw, "poison", wide, [2 * i + k for i in range(t.lanes)]) for k in range(2))


def _store_complex(b: Builder, pointer: str, index: str, value: Parts, t: Type) -> None:
    part, size = register_type(t.scalar), itemsize(t.scalar) // 2
    base = _address(b, pointer, index, f"[2 x {part}]")
    if t.lanes == 1:
        second = b.offset(part, base, "1")
        for p, v in zip((base, second), value, strict=True):
            b.do(f"store {part} {v}, {b.pointer(p)}, align {size}")
        return
    mixed = [i + k * t.lanes for i in range(t.lanes) for k in range(2)]
    wide = b.shuffle(value[0], value[1], register_type(t.scalar, t.lanes), mixed)
    b.do(f"store <{2 * t.lanes} x {part}> {wide}, ptr {base}, align {size}")


def _gather(b: Builder, pointer: str, index: str, t: Type) -> Parts:
    if t.is_complex:
        part = t.with_scalar(real_of(t.scalar))
        return tuple(_decode(b, _gather_part(b, p, part), part) for p in _complex_addresses(b, pointer, index, t))
    if index in b.origins and not gathers(b.target):
        return (_gather_by_lanes(b, pointer, index, t),)
    addresses = _addresses(b, pointer, index, t.lanes, memory_type(t.scalar))
    return (_decode(b, _gather_part(b, addresses, t), t),)


def _gather_by_lanes(b: Builder, pointer: str, index: str, t: Type) -> str:
    """The gather lane by lane, each index read again as a scalar: many processors do this faster than they gather."""
    address, scalar = b.origins[index]
    lanes = []
    for i in range(t.lanes):
        place = b.ins(f"getelementptr inbounds {scalar}, ptr {address}, i64 {i}")
        at = b.ins(f"load {scalar}, ptr {place}, align {itemsize(scalar)}")
        wide = b.ins(f"sext {scalar} {at} to i64") if scalar != "i64" else at
        lanes.append(_load(b, _address(b, pointer, wide, memory_type(t.scalar)), t.with_lanes(1)))
    return b.gather_lanes(lanes, t)


def _complex_addresses(b: Builder, pointer: str, index: str, t: Type) -> Parts:
    part = register_type(t.scalar)
    real = _addresses(b, pointer, index, t.lanes, f"[2 x {part}]")
    return real, b.ins(f"getelementptr inbounds {part}, <{t.lanes} x ptr> {real}, i64 1")


def _gather_part(b: Builder, addresses: str, t: Type) -> str:
    raw, n = memory_type(t.scalar, t.lanes), t.lanes
    return b.call(
        raw,
        f"llvm.masked.gather.{_spelling(t)}.v{n}p0",
        (f"<{n} x ptr>", addresses),
        ("i32", str(itemsize(t.scalar))),
        (f"<{n} x i1>", "splat (i1 true)"),
        (raw, "poison"),
    )


def _scatter(b: Builder, pointer: str, index: str, value: Parts, t: Type) -> None:
    part = t.with_scalar(real_of(t.scalar))
    if t.is_complex:
        places = _complex_addresses(b, pointer, index, t)
    else:
        places = (_addresses(b, pointer, index, t.lanes, memory_type(t.scalar)),)
    n = t.lanes
    for addresses, v in zip(places, value, strict=True):
        b.call(
            "void",
            f"llvm.masked.scatter.{_spelling(part)}.v{n}p0",
            (memory_type(part.scalar, n), _encode(b, v, part)),
            (f"<{n} x ptr>", addresses),
            ("i32", str(itemsize(part.scalar))),
            (f"<{n} x i1>", "splat (i1 true)"),
        )


def _spelling(t: Type) -> str:
    base = {"float": "f32", "double": "f64", "half": "f16"}.get(m := memory_type(t.scalar), m)
    return f"v{t.lanes}{base}"

"""A kernel -> its entry point in LLVM IR: unpacks 64-bit words into parameters and calls the kernel's body."""

from __future__ import annotations

from ..ir.loop import Buffer, Kernel
from ..ir.types import Type, itemsize
from .emit_builder import Builder, register_type
from .emit_cast import half_from_bits
from .target import Target

__all__ = ["entry"]


def entry(kernel: Kernel, target: Target, extra: int = 0) -> str:
    """The entry point `i64 @NAME(ptr args, i64 lo, i64 hi)`; `extra` further words are passed to the body unchanged."""
    b = Builder(target)
    call = []
    for i, p in enumerate(kernel.params):
        place = b.ins(f"getelementptr inbounds i64, ptr %args, i64 {i}")
        if isinstance(p, Buffer):
            call.append(f"ptr {b.ins(f'load ptr, ptr {place}')}")
        else:
            word = b.ins(f"load i64, ptr {place}")
            call += [f"{register_type(p.scalar)} {x}" for x in unpack(b, word, p.scalar)]
    if kernel.ranged:
        call += ["i64 %lo", "i64 %hi"]
    for i in range(len(kernel.params), len(kernel.params) + extra):
        place = b.ins(f"getelementptr inbounds i64, ptr %args, i64 {i}")
        call.append(f"i64 {b.ins(f'load i64, ptr {place}')}")
    status = b.ins(f'call i64 @"{kernel.name}.body"({", ".join(call)})')
    b.do(f"ret i64 {status}")
    head = f'define i64 @"{kernel.name}"(ptr captures(none) readonly %args, i64 %lo, i64 %hi) nounwind {{'
    return "\n".join([head, "entry:", *b.lines, "}"])


def unpack(b: Builder, word: str, scalar: str) -> tuple[str, ...]:
    """The value of a scalar parameter from its 64-bit word."""
    if scalar == "c64":
        return _float(b, word), _float(b, b.ins(f"lshr i64 {word}, 32"))
    if scalar == "f64":
        return (b.ins(f"bitcast i64 {word} to double"),)
    if scalar == "f32":
        return (_float(b, word),)
    if scalar in ("f16", "bf16"):
        bits = b.ins(f"trunc i64 {word} to i16")
        half = b.ins(f"bitcast i16 {bits} to half") if scalar == "f16" else bits
        return (half_from_bits(b, half, Type(scalar)),)
    if scalar == "bool":
        return (b.ins(f"icmp ne i64 {word}, 0"),)
    return (word,) if itemsize(scalar) == 8 else (b.ins(f"trunc i64 {word} to {register_type(scalar)}"),)


def _float(b: Builder, word: str) -> str:
    return b.ins(f"bitcast i32 {b.ins(f'trunc i64 {word} to i32')} to float")

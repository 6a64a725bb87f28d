"""Instructions as text -> the lines of a function in LLVM IR: temporaries, blocks, declarations, types, constants."""

from __future__ import annotations

import math
import struct
from functools import cache

from ..errors import CompilerBug
from ..ir.types import Type, real_of
from .target import Target

__all__ = ["PURE", "Builder", "Parts", "bits_of", "memory_type", "register_type", "round_float"]

Parts = tuple[str, ...]
"""A value in registers: one LLVM value, or (real, imaginary) for a complex type."""

_REGISTERS = {"bool": "i1", "f16": "float", "bf16": "float", "f32": "float", "f64": "double"}
_MEMORY = {"bool": "i8", "f16": "half", "bf16": "i16"}
PURE = "nounwind willreturn memory(none)"


@cache
def register_type(scalar: str, lanes: int = 1) -> str:
    """LLVM's type of one part of a value: `double`, `<8 x float>`. f16 and bf16 are computed in float."""
    real = real_of(scalar)
    base = _REGISTERS.get(real) or f"i{real[1:]}"
    return base if lanes == 1 else f"<{lanes} x {base}>"


@cache
def memory_type(scalar: str, lanes: int = 1) -> str:
    """LLVM's type of an element (of one part, for a complex one) in memory."""
    base = _MEMORY.get(scalar) or register_type(scalar)
    return base if lanes == 1 else f"<{lanes} x {base}>"


def bits_of(value: float, scalar: str) -> int:
    """The bit pattern of `value` rounded to a floating-point scalar type."""
    if scalar == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    if scalar == "bf16":
        bits = bits_of(value, "f32")
        if math.isnan(value):
            return (bits >> 16) | 0x40
        return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    kind, word = ("<f", "<I") if scalar == "f32" else ("<e", "<H")
    try:
        packed = struct.pack(kind, value)
    except OverflowError:
        packed = struct.pack(kind, math.copysign(math.inf, value))
    return int(struct.unpack(word, packed)[0])


def round_float(value: float, scalar: str) -> float:
    """`value` rounded to a floating-point scalar type."""
    bits = bits_of(value, scalar)
    if scalar == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    kind, word = {"f64": ("<d", "<Q"), "f32": ("<f", "<I"), "f16": ("<e", "<H")}[scalar]
    return float(struct.unpack(kind, struct.pack(word, bits))[0])


class Builder:
    """Accumulates the text of one function, and the declarations that its module needs."""

    def __init__(self, target: Target, reassociate: bool = False) -> None:
        self.target = target
        self.flags = "reassoc nsz contract" if reassociate else "contract"
        self.nowrap = ""
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.metadata: list[str] = []
        self.block = "entry"
        self._count = 0
        self.spaces: dict[str, int] = {}
        """pointer -> its address space, of a device; 0 of others"""
        self.origins: dict[str, tuple[str, str]] = {}
        """vector loaded from constant memory -> its address and the scalar type there, i32 or i64"""

    def fresh(self, stem: str = "t") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def ins(self, text: str) -> str:
        """An instruction with a result; returns the result's name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + text)

    def start(self, label: str) -> None:
        """Begin the block `label`; the one before must have ended in a branch."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, cond: str, yes: str, no: str) -> None:
        self.do(f"br i1 {cond}, label %{yes}, label %{no}")

    def pointer(self, name: str) -> str:
        """A pointer with its type."""
        space = self.spaces.get(name)
        return f"ptr addrspace({space}) {name}" if space else f"ptr {name}"

    def offset(self, element: str, pointer: str, index: str) -> str:
        """The address of so many elements after a pointer."""
        out = self.ins(f"getelementptr inbounds {element}, {self.pointer(pointer)}, i64 {index}")
        if pointer in self.spaces:
            self.spaces[out] = self.spaces[pointer]
        return out

    def alloca(self, type: str) -> str:
        name = "%" + self.fresh("a")
        self.allocas.append(f"  {name} = alloca {type}{self.target.private}")
        if self.target.private:
            self.spaces[name] = int(self.target.private.strip("), ").rpartition("(")[2])
        return name

    def node(self, text: str) -> str:
        """A metadata node; returns its reference."""
        if text in self.metadata:
            return f"!{self.metadata.index(text)}"
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    def call(self, result: str, name: str, *args: tuple[str, str], flags: str = "", attributes: str = PURE) -> str:
        """Call an external function or intrinsic, declaring it."""
        if name not in self.helpers:
            types = ", ".join(t for t, _ in args)
            extra = "" if name.startswith("llvm.") else " " + attributes
            self.declarations[name] = f"declare {result} @{name}({types}){extra}"
        text = ", ".join(f"{t} {v}" for t, v in args)
        if result == "void":
            self.do(f"call void @{name}({text})")
            return ""
        return self.ins(f"call {flags + ' ' if flags else ''}{result} @{name}({text})")

    def intrinsic(self, name: str, type: Type, *args: str, flags: str = "") -> str:
        """A call of `llvm.<name>`, overloaded on one type that all `args` and the result have."""
        text = register_type(type.scalar, type.lanes)
        return self.call(text, f"llvm.{name}.{self.suffix(type)}", *((text, a) for a in args), flags=flags)

    @staticmethod
    def suffix(type: Type) -> str:
        """How an intrinsic's name spells a register type: `f64`, `v8i32`."""
        base = {"i1": "i1", "float": "f32", "double": "f64"}.get(r := register_type(type.scalar), r)
        return base if type.lanes == 1 else f"v{type.lanes}{base}"

    def type(self, type: Type) -> str:
        return register_type(type.scalar, type.lanes)

    def const(self, value: bool | int | float, type: Type) -> str:
        """The text of a real constant, splat over the lanes."""
        scalar = real_of(type.scalar)
        if scalar == "bool":
            text = "true" if value else "false"
        elif scalar in _REGISTERS:
            text = f"0x{bits_of(round_float(float(value), scalar), 'f64'):016X}"
        else:
            text = str(int(value))
        return text if type.lanes == 1 else f"splat ({register_type(scalar)} {text})"

    def broadcast(self, value: str, scalar: str, lanes: int) -> str:
        vector = register_type(scalar, lanes)
        one = self.ins(f"insertelement {vector} poison, {register_type(scalar)} {value}, i64 0")
        return self.ins(f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def lane(self, value: str, type: Type, index: int) -> str:
        return value if type.lanes == 1 else self.ins(f"extractelement {self.type(type)} {value}, i64 {index}")

    def gather_lanes(self, values: list[str], type: Type) -> str:
        """A vector of `type` from the values of its lanes."""
        if type.lanes == 1:
            return values[0]
        vector = "poison"
        for i, v in enumerate(values):
            vector = self.ins(f"insertelement {self.type(type)} {vector}, {register_type(type.scalar)} {v}, i64 {i}")
        return vector

    def select(self, cond: str, a: str, b: str, type: Type) -> str:
        mask = register_type("bool", type.lanes)
        text = self.type(type)
        return self.ins(f"select {mask} {cond}, {text} {a}, {text} {b}")

    def shuffle(self, a: str, b: str, vector: str, indices: list[int]) -> str:
        mask = ", ".join(f"i32 {i}" for i in indices)
        return self.ins(f"shufflevector {vector} {a}, {vector} {b}, <{len(indices)} x i32> <{mask}>")

    def device_function(self, op: str, t: Type, *args: str) -> str:
        """A mathematical function on a device; its emitter knows."""
        raise self.unsupported(op, t)

    def unsupported(self, what: str, type: Type) -> CompilerBug:
        return CompilerBug(f"code generation: {what} is not defined on {type}")

"""A kernel with a grid -> LLVM IR text for a device: one emitter, whose differences are the rows of `device_targets`.

Parameters are the kernel's in order: buffers as pointers to global memory, scalars by value, a complex one as two.
What has no atomic instruction is a loop of compare-and-swap on the 32- or 64-bit word that holds the element, so that
buffers begin and end at whole words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import CompilerBug, UnsupportedError
from ..ir.loop import Atomic, Barrier, Buffer, Kernel, Local, Shuffle, Stmt, Swap, Var
from ..ir.ops import op
from ..ir.rewrite import operands, statements, subexpressions
from ..ir.types import SIGNED, Type, itemsize, real_of
from . import emit_memory
from .device_targets import Device
from .emit import Emitter
from .emit_builder import Builder, Parts, register_type
from .emit_device_math import own_function

__all__ = ["emit_device"]


def emit_device(kernel: Kernel, device: Device) -> str:
    """LLVM IR text of a kernel with a grid.

    Raises UnsupportedError, by name, for functions and atomics that the device has not.
    """
    return _DeviceEmitter(kernel, device).text()


class _DeviceBuilder(Builder):
    def __init__(self, device: Device, reassociate: bool) -> None:
        super().__init__(device.target, reassociate)
        self.device = device

    def device_function(self, op: str, t: Type, *args: str) -> str:
        if not self.device.builtins:
            return own_function(self, op, t, *args)
        scalar = register_type(t.scalar)
        name = "fmod" if op == "fmod" else op
        mangled = f"_Z{len(name)}{name}{'fd'[scalar == 'double'] * len(args)}"
        return self.call(f"spir_func {scalar}", mangled, *((scalar, a) for a in args))


class _DeviceEmitter(Emitter):
    def __init__(self, kernel: Kernel, device: Device) -> None:
        super().__init__(kernel, device.target)
        if kernel.grid is None:
            raise CompilerBug(f"code generation: {kernel.name} has no grid")
        self.device, self.grid = device, kernel.grid
        self.b: _DeviceBuilder = _DeviceBuilder(device, kernel.reassociate)
        self.globals: list[str] = []

    def text(self) -> str:
        function = self.function()
        parts = [f'target triple = "{self.target.triple}"', *self.globals, function]
        used = [d for d in self.device.declarations if _name_of(d) in function]
        parts += [*used, *self.b.declarations.values(), *self.b.helpers.values()]
        parts += [f"!{i} = {text}" for i, text in enumerate(self.b.metadata)]
        return "\n".join(parts) + "\n"

    def function(self) -> str:
        b, k, row = self.b, self.kernel, self.device
        params = []
        for p in k.params:
            if isinstance(p, Buffer):
                name = f"%b.{p.name}"
                self.buffers[p.name] = (name, p.scalar)
                b.spaces[name] = 1
                params.append(f"ptr addrspace(1) noalias {'' if p.mutable else 'readonly '}{name}")
            else:
                parts = tuple(f"%p.{p.name}.{i}" for i in range(2 if p.scalar in ("c64", "c128") else 1))
                self.names[p.name] = parts
                params += [f"{register_type(p.scalar)} {x}" for x in parts]
        for name, text in row.numbers:
            if any(_reads(s, name) for s in k.body):
                value = b.ins(text)
                self.names[name] = (b.ins(f"zext i32 {value} to i64") if " i32 @" in text else value,)
        self.body(k.body)
        b.do("ret void")
        sizes = {"items": self.grid.items, "subgroup": self.grid.subgroup}
        tags = "".join(f" !{name} {b.node(node.format(**sizes))}" for name, node in row.metadata)
        attributes = row.attributes.format(**sizes)
        head = f'define {row.convention} void @"{k.name}"({", ".join(params)}) {attributes}{tags} {{'
        return "\n".join([head, "entry:", *b.allocas, *b.lines, "}"])

    def statement(self, s: Stmt) -> None:
        emit_statement = _STATEMENTS.get(type(s))
        if emit_statement is None:
            super().statement(s)
        else:
            emit_statement(self, s)

    def local(self, s: Local) -> None:
        """Memory of the group: a global of the module, in its address space."""
        name = f'@"{self.kernel.name}.{s.buffer}"'
        element = emit_memory.element_type(s.scalar)
        self.globals.append(f"{name} = internal addrspace(3) global [{s.size} x {element}] undef, align 16")
        self.buffers[s.buffer] = (name, s.scalar)
        self.b.spaces[name] = 3

    def barrier(self, s: Barrier) -> None:
        for line in self.device.barrier:
            self.b.do(line)

    def shuffle(self, s: Shuffle) -> None:
        self.names[s.name] = tuple(
            self.moved(p, Type(real_of(s.value.type.scalar)), s.mask) for p in self.expr(s.value)
        )

    def moved(self, value: str, t: Type, mask: int) -> str:
        """A register of another lane, word by word."""
        b, text = self.b, register_type(t.scalar)
        if text == "double":
            raw = b.ins(f"bitcast double {value} to i64")
            return b.ins(f"bitcast i64 {self.moved(raw, Type('i64'), mask)} to double")
        if text == "i64":
            halves = [b.ins(f"trunc i64 {x} to i32") for x in (value, b.ins(f"lshr i64 {value}, 32"))]
            low, high = (b.ins(f"zext i32 {self.word(h, mask)} to i64") for h in halves)
            return b.ins(f"or i64 {low}, {b.ins(f'shl i64 {high}, 32')}")
        if text == "float":
            raw = b.ins(f"bitcast float {value} to i32")
            return b.ins(f"bitcast i32 {self.word(raw, mask)} to float")
        if text == "i32":
            return self.word(value, mask)
        return b.ins(f"trunc i32 {self.word(b.ins(f'zext {text} {value} to i32'), mask)} to {text}")

    def word(self, value: str, mask: int) -> str:
        last = ""
        for line in self.device.shuffle:
            last = self.b.ins(line.format(value=value, mask=mask, last=last))
        return last

    # -- atomics -----------------------------------------------------------------------------------------------------

    def atomic(self, s: Atomic) -> None:
        pointer, scalar = self.buffer(s.buffer)
        index = self.offset(s.index)
        t = Type(scalar)
        value = self.expr(s.value)
        self.guard(s.buffer, index, s.index.type, 1)
        if t.is_complex and (s.op == "add" or scalar == "c128"):
            self.on_parts(s, pointer, index, t, value)
        elif scalar == "c64":
            self.swap(s.op, pointer, index, t, value)
        else:
            self.on_real(s.op, pointer, index, t, value[0])

    def on_parts(self, s: Atomic, pointer: str, index: str, t: Type, value: Parts) -> None:
        """Sums of complex numbers are those of their parts."""
        if s.op != "add":
            raise UnsupportedError(
                f"atomic {s.op} of {t} on {self.target.kind}, whose words are 64 bits\n  supported: sums"
                "\n  help: a format whose rows are the result's, csr say, needs no atomics"
            )
        twice = self.b.ins(f"mul i64 {index}, 2")
        for k, part in enumerate(value):
            at = twice if k == 0 else self.b.ins(f"add i64 {twice}, 1")
            self.on_real("add", pointer, at, Type(real_of(t.scalar)), part)

    def on_real(self, name: str, pointer: str, index: str, t: Type, value: str) -> None:
        b = self.b
        whole = t.scalar in ("i32", "u32", "i64", "u64")
        kind = name if whole and name in ("add", "min", "max") else None
        if kind in ("min", "max") and t.scalar not in SIGNED:
            kind = "u" + kind
        if name == "add" and t.scalar in self.device.adds_floats:
            kind = "fadd"
        if kind is None:
            self.swap(name, pointer, index, t, (value,))
            return
        address = b.offset(register_type(t.scalar), pointer, index)
        text = register_type(t.scalar)
        b.do(f"{b.fresh('%old')} = atomicrmw {kind} {b.pointer(address)}, {text} {value} {self.device.scope} monotonic")

    def compare_and_swap(self, s: Swap) -> None:
        b, (pointer, scalar) = self.b, self.buffer(s.buffer)
        index, word = self.offset(s.index), register_type(scalar)
        (expected,), (value,) = self.expr(s.expected), self.expr(s.value)
        self.guard(s.buffer, index, s.index.type, 1)
        place = b.pointer(b.offset(word, pointer, index))
        orders = f"{self.device.scope} monotonic monotonic"
        pair = b.ins(f"cmpxchg {place}, {word} {expected}, {word} {value} {orders}")
        self.names[s.name] = (b.ins(f"extractvalue {{ {word}, i1 }} {pair}, 0"),)

    def swap(self, name: str, pointer: str, index: str, t: Type, value: Parts) -> None:
        """A loop of compare-and-swap on the word that holds an element."""
        b, bits = self.b, 8 * itemsize(t.scalar)
        word = "i64" if bits == 64 else "i32"
        shift = ""
        if bits < 32:
            at = b.ins(f"mul i64 {index}, {bits // 8}")
            address = b.offset("i32", pointer, b.ins(f"lshr i64 {at}, 2"))
            place = b.ins(f"shl i64 {b.ins(f'and i64 {at}, 3')}, 3")
            shift = b.ins(f"trunc i64 {place} to i32")
        else:
            address = b.offset(word, pointer, index)
        before, stem = b.block, b.fresh("swap")
        size = 8 if word == "i64" else 4
        first = b.ins(f"load {word}, {b.pointer(address)}, align {size}")
        b.jump(f"{stem}.try")
        b.start(f"{stem}.try")
        old = f"%{stem}.old"
        b.do(f"{old} = phi {word} [ {first}, %{before} ], [ %{stem}.seen, %{stem}.try ]")
        new = self.changed(name, old, t, value, shift)
        orders = f"{self.device.scope} monotonic monotonic"
        pair = b.ins(f"cmpxchg {b.pointer(address)}, {word} {old}, {word} {new} {orders}")
        b.do(f"%{stem}.seen = extractvalue {{ {word}, i1 }} {pair}, 0")
        done = b.ins(f"extractvalue {{ {word}, i1 }} {pair}, 1")
        b.branch(done, f"{stem}.done", f"{stem}.try")
        b.start(f"{stem}.done")

    def changed(self, name: str, old: str, t: Type, value: Parts, shift: str) -> str:
        """The word `old` with the element in it changed. shift : the element's place in bits, where it is shorter."""
        b = self.b
        kind = f"i{8 * itemsize(t.scalar)}"
        raw = old if not shift else b.ins(f"trunc i32 {b.ins(f'lshr i32 {old}, {shift}')} to {kind}")
        result = self.applied(name, t, _decoded(b, raw, t), value)
        word = _encoded(b, result, t)
        if not shift:
            return word
        ones = (1 << 8 * itemsize(t.scalar)) - 1
        mask = b.ins(f"shl i32 {ones}, {shift}")
        kept = b.ins(f"and i32 {old}, {b.ins(f'xor i32 {mask}, -1')}")
        wide = b.ins(f"zext {kind} {word} to i32")
        return b.ins(f"or i32 {kept}, {b.ins(f'shl i32 {wide}, {shift}')}")

    def applied(self, name: str, t: Type, old: Parts, value: Parts) -> Parts:
        """An operation of the loop IR on registers."""
        names = self.names
        self.names = {**names, "old of atomic": old, "new of atomic": value}
        result = self.expr(op(name, Var("old of atomic", t), Var("new of atomic", t)))
        self.names = names
        return result


def _decoded(b: Builder, raw: str, t: Type) -> Parts:
    """The registers of an element, of the integer that it is in memory."""
    match t.scalar:
        case "c64":
            halves = [b.ins(f"trunc i64 {x} to i32") for x in (raw, b.ins(f"lshr i64 {raw}, 32"))]
            return tuple(b.ins(f"bitcast i32 {h} to float") for h in halves)
        case "f32" | "f64":
            return (b.ins(f"bitcast i{t.scalar[1:]} {raw} to {register_type(t.scalar)}"),)
        case "bool":
            return (b.ins(f"icmp ne i8 {raw}, 0"),)
        case "f16":
            return (emit_memory.half_from_bits(b, b.ins(f"bitcast i16 {raw} to half"), t),)
        case "bf16":
            return (emit_memory.half_from_bits(b, raw, t),)
    return (raw,)


def _encoded(b: Builder, parts: Parts, t: Type) -> str:
    """The integer of an element in memory."""
    match t.scalar:
        case "c64":
            low, high = (b.ins(f"zext i32 {b.ins(f'bitcast float {p} to i32')} to i64") for p in parts)
            return b.ins(f"or i64 {low}, {b.ins(f'shl i64 {high}, 32')}")
        case "f32" | "f64":
            return b.ins(f"bitcast {register_type(t.scalar)} {parts[0]} to i{t.scalar[1:]}")
        case "bool":
            return b.ins(f"zext i1 {parts[0]} to i8")
        case "f16":
            return b.ins(f"bitcast half {emit_memory.half_to_bits(b, parts[0], t)} to i16")
        case "bf16":
            return emit_memory.half_to_bits(b, parts[0], t)
    return parts[0]


def _name_of(declaration: str) -> str:
    return declaration.split("@")[1].split("(")[0] + "("


def _reads(s: Stmt, name: str) -> bool:
    return any(
        isinstance(e, Var) and e.name == name for x in statements((s,)) for o in operands(x) for e in subexpressions(o)
    )


_STATEMENTS: dict[type, Callable[[_DeviceEmitter, Any], None]] = {
    Local: _DeviceEmitter.local,
    Barrier: _DeviceEmitter.barrier,
    Shuffle: _DeviceEmitter.shuffle,
    Atomic: _DeviceEmitter.atomic,
    Swap: _DeviceEmitter.compare_and_swap,
}

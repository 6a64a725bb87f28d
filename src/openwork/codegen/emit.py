"""A kernel of loop IR -> LLVM IR text.

A kernel becomes two functions::

    i64 @NAME(ptr args, i64 lo, i64 hi)     reads one 64-bit word per parameter and calls
    i64 @NAME.body(...)                     the kernel itself: every buffer is a noalias pointer

A word holds a pointer, an integer (sign- or zero-extended), a bool as 0 or 1, or the bits of a floating-point
value in its low end (c64: real part low, imaginary part high). The result is the kernel's status: 0 is success,
1 is memory exhausted, anything else came from a `return`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import CompilerBug
from ..ir.loop import (
    Alloc,
    Assign,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Mut,
    Op,
    Prefetch,
    Return,
    Stmt,
    Store,
    Var,
    While,
)
from ..ir.types import I64, Type, itemsize
from . import emit_memory
from .emit_builder import Builder, Parts, register_type, round_float
from .emit_cast import convert
from .emit_complex import complex_op
from .emit_entry import entry
from .emit_float import float_op
from .emit_integer import bool_op, integer_op
from .emit_lanes import bits_of_lanes, deinterleave, expand, is_lanes_of_bits, lanes_of_bits, permute
from .target import Target, host

__all__ = ["emit"]

_OFFSETS = ("add", "sub", "mul")


def emit(kernel: Kernel, target: Target | None = None) -> str:
    """LLVM IR text of `kernel` for `target` (the host by default).

    Raises CompilerBug where the kernel is not well-typed; `ir.verify` says more about why.
    """
    target = target or host()
    return Emitter(kernel, target).module(entry(kernel, target))


class Emitter:
    """Emits one kernel. `names` maps names in scope to their values, `cells` the Muts to their stack slots."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.b = Builder(target, kernel.reassociate)
        self.names: dict[str, Parts] = {}
        self.cells: dict[str, Parts] = {}
        self.buffers: dict[str, tuple[str, str]] = {}
        self.constant = frozenset(p.name for p in kernel.params if isinstance(p, Buffer) and not p.mutable)
        self.workspaces: list[str] = []

    def module(self, entry: str) -> str:
        """The module's text, with the text of the entry point."""
        parts = [f'target triple = "{self.target.triple}"', self.function(), entry]
        parts += self.b.helpers.values()
        parts += self.b.declarations.values()
        parts += [f"!{i} = {text}" for i, text in enumerate(self.b.metadata)]
        return "\n".join(parts) + "\n"

    def function(self) -> str:
        b, k = self.b, self.kernel
        params = []
        for p in k.params:
            if isinstance(p, Buffer):
                self.buffers[p.name] = (f"%b.{p.name}", p.scalar)
                params.append(f"ptr noalias captures(none) {'' if p.mutable else 'readonly '}%b.{p.name}")
            else:
                parts = tuple(f"%p.{p.name}.{i}" for i in range(2 if p.scalar in ("c64", "c128") else 1))
                self.names[p.name] = parts
                params += [f"{register_type(p.scalar)} {x}" for x in parts]
        if k.ranged:
            params += ["i64 %lo", "i64 %hi"]
            self.names["lo"], self.names["hi"] = ("%lo",), ("%hi",)
        params += self.extra()
        self.status = b.alloca("i64")
        b.do(f"store i64 0, ptr {self.status}")
        self.body(k.body)
        b.jump("exit")
        b.start("exit")
        for cell in self.workspaces:
            raw = b.ins(f"load ptr, ptr {cell}")
            b.call("void", "free", ("ptr", raw), attributes="nounwind")
        b.do(f"ret i64 {b.ins(f'load i64, ptr {self.status}')}")
        head = f'define internal i64 @"{k.name}.body"({", ".join(params)}) noinline nounwind mustprogress {{'
        clear = [f"  store ptr null, ptr {cell}" for cell in self.workspaces]
        return "\n".join([head, "entry:", *b.allocas, *clear, *b.lines, "}"])

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        """A block of statements: names that it binds go out of scope at its end."""
        names, cells = dict(self.names), dict(self.cells)
        for s in stmts:
            self.statement(s)
        self.names, self.cells = names, cells

    def statement(self, s: Stmt) -> None:
        emit_statement = _STATEMENTS.get(type(s))
        if emit_statement is None:
            raise CompilerBug(f"code generation: {self.kernel.name} has no grid, and says {s}")
        emit_statement(self, s)

    def extra(self) -> list[str]:
        """Further parameters of the body, for a subclass."""
        return []

    def guard(self, buffer: str, index: str, index_type: Type, lanes: int) -> None:
        """Called before `lanes` elements are read or written, for a subclass."""

    def guard_size(self, buffer: str, size: str) -> None:
        """Called before a workspace is made, for a subclass."""

    def guard_cast(self, e: Cast, value: str) -> None:
        """Called before an integer is made narrower, for a subclass."""

    def let(self, s: Let) -> None:
        self.names[s.name] = self.expr(s.value)

    def mut(self, s: Mut) -> None:
        text = self.b.type(s.value.type)
        values = self.expr(s.value)
        self.cells[s.name] = tuple(self.b.alloca(text) for _ in values)
        self.assign_parts(self.cells[s.name], values, text)

    def assign(self, s: Assign) -> None:
        if s.name not in self.cells:
            raise CompilerBug(f"code generation: {self.kernel.name} assigns {s.name}, which is no variable in scope")
        self.assign_parts(self.cells[s.name], self.expr(s.value), self.b.type(s.value.type))

    def assign_parts(self, cells: Parts, values: Parts, text: str) -> None:
        for cell, value in zip(cells, values, strict=True):
            self.b.do(f"store {text} {value}, {self.b.pointer(cell)}")

    def buffer(self, name: str) -> tuple[str, str]:
        try:
            return self.buffers[name]
        except KeyError:
            raise CompilerBug(f"code generation: {self.kernel.name} has no buffer {name}") from None

    def store(self, s: Store) -> None:
        pointer, _ = self.buffer(s.buffer)
        if s.buffer in self.constant:
            raise CompilerBug(f"code generation: {self.kernel.name} stores to {s.buffer}, which is only read")
        index = self.offset(s.index)
        value = self.expr(s.value)
        self.guard(s.buffer, index, s.index.type, s.value.type.lanes)
        emit_memory.store(self.b, pointer, index, s.index.type, value, s.value.type)

    def prefetch(self, s: Prefetch) -> None:
        pointer, scalar = self.buffer(s.buffer)
        (index,) = self.expr(s.index)
        emit_memory.prefetch(self.b, pointer, index, s.index.type, scalar)

    def call(self, s: Call) -> None:
        """A C function of pointers; values are copied to slots of the stack, which all calls of the place share."""
        pointers = [self.reference(a) if isinstance(a, Load) else self.slot(a) for a in s.args]
        function = self.b.ins(f"inttoptr i64 {self.var(s.function, I64)[0]} to ptr")
        self.b.do(f"call void {function}({', '.join(f'ptr {p}' for p in pointers)}) nounwind")

    def reference(self, e: Load) -> str:
        """The address of an element."""
        pointer, scalar = self.buffer(e.buffer)
        at = self.offset(e.index)
        self.guard(e.buffer, at, e.index.type, 1)
        return emit_memory.element(self.b, pointer, at, scalar)

    def slot(self, e: Expr) -> str:
        """The address of a copy of a value."""
        slot = self.b.alloca(emit_memory.element_type(e.type.scalar))
        emit_memory.store(self.b, slot, "0", I64, self.expr(e), e.type)
        return slot

    def loop(self, s: For) -> None:
        b = self.b
        lo, hi = self.offset(s.lo), self.offset(s.hi)
        before, stem = b.block, b.fresh("for")
        b.jump(f"{stem}.head")
        b.start(f"{stem}.head")
        index = f"%{stem}.{s.name}"
        b.do(f"{index} = phi i64 [ {lo}, %{before} ], [ %{stem}.next, %{stem}.latch ]")
        b.branch(b.ins(f"icmp slt i64 {index}, {hi}"), f"{stem}.body", f"{stem}.exit")
        b.start(f"{stem}.body")
        outer = self.names
        self.names = {**outer, s.name: (index,)}
        self.body(s.body)
        self.names = outer
        b.jump(f"{stem}.latch")
        b.start(f"{stem}.latch")
        b.do(f"%{stem}.next = add nsw i64 {index}, {s.step}")
        b.do(f"br label %{stem}.head{self.hints(s)}")
        b.start(f"{stem}.exit")

    def hints(self, s: For) -> str:
        """The loop's metadata; `distinct` keeps equal loops apart."""
        if not s.hints:
            return ""
        nodes = ", ".join(self.b.node(f"!{{{_hint(h)}}}") for h in s.hints)
        me = len(self.b.metadata)
        return f", !llvm.loop {self.b.node(f'distinct !{{!{me}, {nodes}}}')}"

    def repeat(self, s: While) -> None:
        b, stem = self.b, self.b.fresh("while")
        b.jump(f"{stem}.head")
        b.start(f"{stem}.head")
        (cond,) = self.expr(s.cond)
        b.branch(cond, f"{stem}.body", f"{stem}.exit")
        b.start(f"{stem}.body")
        self.body(s.body)
        b.jump(f"{stem}.head")
        b.start(f"{stem}.exit")

    def choose(self, s: If) -> None:
        b, stem = self.b, self.b.fresh("if")
        (cond,) = self.expr(s.cond)
        b.branch(cond, f"{stem}.then", f"{stem}.else" if s.orelse else f"{stem}.exit")
        b.start(f"{stem}.then")
        self.body(s.then)
        b.jump(f"{stem}.exit")
        if s.orelse:
            b.start(f"{stem}.else")
            self.body(s.orelse)
            b.jump(f"{stem}.exit")
        b.start(f"{stem}.exit")

    def alloc(self, s: Alloc) -> None:
        """A workspace aligned to a cache line; freed at the function's exit. Too large a size is status 1."""
        b, stem, width = self.b, self.b.fresh("alloc"), itemsize(s.scalar)
        cell = b.alloca("ptr")
        self.workspaces.append(cell)
        (count,) = self.expr(s.size)
        self.guard_size(s.buffer, count)
        size = b.intrinsic("smax", I64, count, "0")
        fits = b.ins(f"icmp slt i64 {size}, {(1 << 62) // width}")
        b.branch(fits, f"{stem}.get", f"{stem}.fail")
        b.start(f"{stem}.get")
        bytes_ = b.ins(f"add nuw nsw i64 {b.ins(f'mul nuw nsw i64 {size}, {width}')}, 64")
        if s.zeroed:
            raw = b.call("noalias ptr", "calloc", ("i64", bytes_), ("i64", "1"), attributes=_CALLOC)
        else:
            raw = b.call("noalias ptr", "malloc", ("i64", bytes_), attributes=_MALLOC)
        b.do(f"store ptr {raw}, ptr {cell}")
        b.branch(b.ins(f"icmp eq ptr {raw}, null"), f"{stem}.fail", f"{stem}.ok")
        b.start(f"{stem}.fail")
        b.do(f"store i64 1, ptr {self.status}")
        b.jump("exit")
        b.start(f"{stem}.ok")
        above = b.ins(f"getelementptr inbounds i8, ptr {raw}, i64 63")
        aligned = b.call("ptr", "llvm.ptrmask.p0.i64", ("ptr", above), ("i64", "-64"))
        self.buffers[s.buffer] = (aligned, s.scalar)

    def leave(self, s: Return) -> None:
        b = self.b
        (status,) = self.expr(s.status)
        b.do(f"store i64 {status}, ptr {self.status}")
        b.jump("exit")
        b.start(b.fresh("dead"))

    def offset(self, e: Expr) -> str:
        """An index: sums and products at its root cannot wrap, as nothing in memory is that far."""
        if isinstance(e, Op) and e.op in _OFFSETS and e.type.scalar == "i64":
            x, y = (self.offset(a) for a in e.args)
            return self.b.ins(f"{e.op} nsw {self.b.type(e.type)} {x}, {y}")
        return self.expr(e)[0]

    def expr(self, e: Expr) -> Parts:
        if isinstance(e, Var):
            return self.var(e.name, e.type)
        if isinstance(e, Op):
            return self.op(e)
        if isinstance(e, Const):
            return self.const(e.value, e.type)
        if isinstance(e, Load):
            pointer, _ = self.buffer(e.buffer)
            at = self.offset(e.index)
            self.guard(e.buffer, at, e.index.type, e.type.lanes)
            return emit_memory.load(self.b, pointer, at, e.index.type, e.type, e.buffer not in self.constant)
        if isinstance(e, Cast):
            parts = self.expr(e.arg)
            if e.arg.type.is_integer and e.type.is_integer:
                self.guard_cast(e, parts[0])
            return convert(self.b, parts, e.arg.type, e.type)
        raise CompilerBug(f"code generation: {e!r} is no expression of the loop IR")

    def var(self, name: str, type: Type) -> Parts:
        if (cells := self.cells.get(name)) is not None:
            return tuple(self.b.ins(f"load {self.b.type(type)}, {self.b.pointer(c)}") for c in cells)
        if (value := self.names.get(name)) is not None:
            return value
        raise CompilerBug(f"code generation: {self.kernel.name} uses {name}, which is not in scope")

    def const(self, value: bool | int | float | complex, type: Type) -> Parts:
        if type.is_complex:
            c = complex(value)
            return self.b.const(c.real, type), self.b.const(c.imag, type)
        if type.is_float:
            value = round_float(float(value), type.scalar)  # type: ignore[arg-type]
        return (self.b.const(value, type),)  # type: ignore[arg-type]

    def op(self, e: Op) -> Parts:
        if e.type.lanes == 1 and e.op in ("and", "or") and _touches_memory(e.args[1]):
            return self.short_circuit(e)
        if e.op == "select":
            return self.select(e)
        if e.op == "expand":
            return expand(self.b, e.type, self.expr(e.args[0]), self.expr(e.args[1])[0])
        if e.op in ("evens", "odds"):
            return deinterleave(self.b, e.type, self.expr(e.args[0]), self.expr(e.args[1]), e.op == "odds")
        if e.op == "permute":
            x, index = e.args
            return permute(self.b, x.type, self.expr(x), index.type, self.expr(index)[0])
        if e.op == "bits":
            return (bits_of_lanes(self.b, self.expr(e.args[0])[0], e.args[0].type.lanes),)
        if e.op == "bit" and is_lanes_of_bits(e):
            (source,) = (a.arg for a in e.args[:1] if isinstance(a, Cast))
            return (lanes_of_bits(self.b, self.expr(source)[0], source.type, e.type.lanes),)
        args = [self.expr(a) for a in e.args]
        t = e.args[0].type
        if t.is_complex:
            return complex_op(self.b, e.op, t, *args)
        flat = [a[0] for a in args]
        if t.is_float:
            return (float_op(self.b, e.op, t, *flat),)
        if t.scalar == "bool":
            return (bool_op(self.b, e.op, t, *flat),)
        return (integer_op(self.b, e.op, t, *flat),)

    def short_circuit(self, e: Op) -> Parts:
        """`and`/`or` whose right side reads memory: it is evaluated only where it decides, as in Python."""
        b, stem = self.b, self.b.fresh("and" if e.op == "and" else "or")
        (left,) = self.expr(e.args[0])
        before = b.block
        yes, no = (f"{stem}.more", f"{stem}.exit")
        b.branch(left, *((yes, no) if e.op == "and" else (no, yes)))
        b.start(yes)
        (right,) = self.expr(e.args[1])
        after = b.block
        b.jump(no)
        b.start(no)
        return (b.ins(f"phi i1 [ {'false' if e.op == 'and' else 'true'}, %{before} ], [ {right}, %{after} ]"),)

    def select(self, e: Op) -> Parts:
        """`a if c else b`; an arm that reads memory is evaluated only where it is chosen."""
        b = self.b
        cond, yes, no = e.args
        (c,) = self.expr(cond)
        if cond.type.lanes > 1 or not (_touches_memory(yes) or _touches_memory(no)):
            return tuple(b.select(c, x, y, e.type) for x, y in zip(self.expr(yes), self.expr(no), strict=True))
        stem = b.fresh("select")
        b.branch(c, f"{stem}.then", f"{stem}.else")
        b.start(f"{stem}.then")
        xs, first = self.expr(yes), b.block
        b.jump(f"{stem}.exit")
        b.start(f"{stem}.else")
        ys, second = self.expr(no), b.block
        b.jump(f"{stem}.exit")
        b.start(f"{stem}.exit")
        text = b.type(e.type)
        return tuple(b.ins(f"phi {text} [ {x}, %{first} ], [ {y}, %{second} ]") for x, y in zip(xs, ys, strict=True))


_MALLOC = 'nounwind allockind("alloc,uninitialized") allocsize(0) "alloc-family"="malloc"'
_CALLOC = 'nounwind allockind("alloc,zeroed") allocsize(0, 1) "alloc-family"="malloc"'


def _touches_memory(e: Expr) -> bool:
    match e:
        case Load():
            return True
        case Op():
            return any(_touches_memory(a) for a in e.args)
        case Cast():
            return _touches_memory(e.arg)
    return False


def _hint(hint: str) -> str:
    name, _, number = hint.partition(":")
    return {
        "vector": '!"llvm.loop.vectorize.enable", i1 true',
        "novector": '!"llvm.loop.vectorize.enable", i1 false',
        "nounroll": '!"llvm.loop.unroll.disable"',
        "unroll": f'!"llvm.loop.unroll.count", i32 {number or 1}',
    }[name]


_STATEMENTS: dict[type, Callable[[Emitter, Any], None]] = {
    Let: Emitter.let,
    Mut: Emitter.mut,
    Assign: Emitter.assign,
    Store: Emitter.store,
    For: Emitter.loop,
    While: Emitter.repeat,
    If: Emitter.choose,
    Alloc: Emitter.alloc,
    Prefetch: Emitter.prefetch,
    Call: Emitter.call,
    Return: Emitter.leave,
}

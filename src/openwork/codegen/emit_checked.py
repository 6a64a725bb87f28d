"""A kernel -> LLVM IR text with bounds checks: of every index in its buffer, of every narrowed integer in its type.

The code is that of `emit` with a comparison before each load, store, gather and scatter, of parameters and workspaces
alike; one that fails is recorded and ends the kernel. The caller passes two more words for each buffer, the ends of its
indices, and two for the record::

    words = [parameters ..., first and last + 1 of each buffer ..., address of the record, number of the kernel]

The line of a violation is that of the kernel's text; it is found by emitting the kernel again, so that code from disk
needs nothing beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace

from ..classes import frozen
from ..ir.loop import Assign, Buffer, Cast, Expr, For, If, Kernel, Let, Load, Mut, Op, Param, Stmt, Store, Var, While
from ..ir.printer import show
from ..ir.types import Type, itemsize
from ..ir.values import int_range
from .emit import Emitter
from .emit_entry import entry
from .target import host

__all__ = ["VIOLATION", "Site", "emit_checked", "sites"]

VIOLATION = 1 << 62
"""The status of a kernel that a check has ended: greater than any other, so that the pool returns it."""


@frozen
class Site:
    """A check: the number of the line of loop IR and its text, and the buffer or the type that is checked."""

    line: int
    text: str
    subject: str
    kind: str

    def describe(self, index: int, low: int, high: int) -> str:
        """The text of a violation by an index, a size or a number."""
        if self.kind == "cast":
            return f"{index} cast to {self.subject}, which holds {low} to {high - 1}"
        if self.kind == "size":
            return f"workspace {self.subject} of {index} elements"
        before = f" and {-low} before its first" if low else ""
        return f"index {index} of {self.subject}, which has {high} elements{before}"


def emit_checked(kernel: Kernel) -> str:
    """LLVM IR text of the kernel with its checks, for the host."""
    return CheckedEmitter(kernel).text()


def sites(kernel: Kernel) -> list[Site]:
    """The checks of a kernel, in the order of their numbers."""
    emitter = CheckedEmitter(kernel)
    emitter.text()
    return emitter.sites


class CheckedEmitter(Emitter):
    """Emits a kernel with its checks; `sites` are those made so far."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, host())
        self.sites: list[Site] = []
        self.ends: dict[str, tuple[str, str]] = {}
        self.lines = _lines(kernel)
        self.valued = _valued(kernel)
        self.now: tuple[int, str] = (0, "")
        self.names_of_ends = [f"{p.name}.{end}" for p in _buffers(kernel.params) for end in ("low", "high")]

    def text(self) -> str:
        return self.module(entry(self.kernel, self.target, len(self.names_of_ends) + 2))

    def extra(self) -> list[str]:
        for p in _buffers(self.kernel.params):
            self.ends[p.name] = (f"%e.{p.name}.low", f"%e.{p.name}.high")
        return [*(f"i64 %e.{name}" for name in self.names_of_ends), "i64 %record", "i64 %number"]

    def statement(self, s: Stmt) -> None:
        self.now = next(self.lines)
        super().statement(s)

    def guard(self, buffer: str, index: str, index_type: Type, lanes: int) -> None:
        low, high = self.ends[buffer]
        b = self.b
        if index_type.lanes == 1:
            if lanes > 1:  # consecutive elements: none at all where the last + 1 wraps
                high = b.ins(f"sub i64 {high}, {lanes - 1}")
            self.check(index, low, high, Site(*self.now, buffer, "index"), self.ends[buffer])
            return
        self.check_lanes(index, index_type, low, high, Site(*self.now, buffer, "index"))

    def guard_size(self, buffer: str, size: str) -> None:
        self.ends[buffer] = ("0", size)
        self.fork(self.b.ins(f"icmp sge i64 {size}, 0"), lambda: size, ("0", "0"), Site(*self.now, buffer, "size"))

    def guard_cast(self, e: Cast, value: str) -> None:
        src, dst = e.arg.type, e.type
        if itemsize(dst.scalar) >= itemsize(src.scalar) or _reads(e.arg, self.valued):
            return
        first, last = int_range(dst.scalar)
        least, most = int_range(src.scalar)
        low, high = str(max(first, least)), str(min(last, most) + 1)
        word = src.with_scalar("i64")
        if itemsize(src.scalar) < 8:
            kind = "sext" if src.scalar[0] == "i" else "zext"
            value = self.b.ins(f"{kind} {self.b.type(src)} {value} to {self.b.type(word)}")
        site = Site(*self.now, dst.scalar, "cast")
        if src.lanes > 1:
            self.check_lanes(value, word, low, high, site)
        else:
            self.check(value, low, high, site, (low, high))

    def check(self, index: str, low: str, high: str, site: Site, ends: tuple[str, str]) -> None:
        """Leave the kernel unless low <= index < high."""
        b = self.b
        above = b.ins(f"icmp sge i64 {index}, {low}")
        below = b.ins(f"icmp slt i64 {index}, {high}")
        self.fork(b.ins(f"and i1 {above}, {below}"), lambda: index, ends, site)

    def check_lanes(self, index: str, type: Type, low: str, high: str, site: Site) -> None:
        """Leave the kernel unless low <= index < high in every lane; the first violation is recorded."""
        b, n = self.b, type.lanes
        lows, highs = (b.broadcast(end, "i64", n) for end in (low, high))
        above = b.ins(f"icmp sge {b.type(type)} {index}, {lows}")
        below = b.ins(f"icmp slt {b.type(type)} {index}, {highs}")
        good = b.ins(f"bitcast <{n} x i1> {b.ins(f'and <{n} x i1> {above}, {below}')} to i{n}")

        def first() -> str:
            bad = b.ins(f"xor i{n} {good}, -1")
            lane = b.call(f"i{n}", f"llvm.cttz.i{n}", (f"i{n}", bad), ("i1", "false"))
            return b.ins(f"extractelement {b.type(type)} {index}, i{n} {lane}")

        self.fork(b.ins(f"icmp eq i{n} {good}, -1"), first, (low, high), site)

    def fork(self, good: str, index: Callable[[], str], ends: tuple[str, str], site: Site) -> None:
        b, stem = self.b, self.b.fresh("check")
        b.branch(good, f"{stem}.good", f"{stem}.bad")
        b.start(f"{stem}.bad")
        words = [("i64", "%record"), ("i64", "%number"), ("i64", str(len(self.sites)))]
        words += [("i64", index()), *(("i64", end) for end in ends)]
        b.helpers["violated"] = _VIOLATED
        b.do(f"call void @violated({', '.join(f'{t} {v}' for t, v in words)})")
        b.do(f"store i64 {VIOLATION}, ptr {self.status}")
        b.jump("exit")
        b.start(f"{stem}.good")
        self.sites.append(site)


_VIOLATED = """define internal void @violated(i64 %at, i64 %number, i64 %site, i64 %index, i64 %low, i64 %high) \
noinline cold nounwind {
entry:
  %record = inttoptr i64 %at to ptr
  %pair = cmpxchg ptr %record, i64 0, i64 %number seq_cst seq_cst
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %write, label %exit
write:
  %p1 = getelementptr i64, ptr %record, i64 1
  store i64 %site, ptr %p1
  %p2 = getelementptr i64, ptr %record, i64 2
  store i64 %index, ptr %p2
  %p3 = getelementptr i64, ptr %record, i64 3
  store i64 %low, ptr %p3
  %p4 = getelementptr i64, ptr %record, i64 4
  store i64 %high, ptr %p4
  br label %exit
exit:
  ret void
}"""
"""Write a record, unless another thread has written one that is not read yet."""


def _lines(kernel: Kernel) -> Iterator[tuple[int, str]]:
    """The number and the text of each statement's line in the kernel's text, in the order of the emitter."""
    text = show(kernel).split("\n")
    head = show(replace(kernel, body=())).count("\n")
    for line in _numbers(kernel.body, head + 1)[0]:
        yield line, text[line - 1].strip()


def _numbers(body: Sequence[Stmt], at: int) -> tuple[list[int], int]:
    """The lines of the statements of a block that begins at line `at`, and the line after it."""
    lines = []
    for s in body:
        lines.append(at)
        at += 1
        blocks: tuple[Sequence[Stmt], ...] = ()
        if isinstance(s, For | While):
            blocks = (s.body,)
        elif isinstance(s, If):
            blocks = (s.then, s.orelse) if s.orelse else (s.then,)
        for k, block in enumerate(blocks):
            chained = len(block) == 1 and isinstance(block[0], If)
            inner, at = _numbers(block, at + (k == 1 and not chained))
            lines += inner
    return lines, at if body else at + 1


_INDICES = re.compile(
    r"(\w+_)?[abm]?(pos|crd)\d*|key\d*|(out_)?counts|order(_out)?|bounds|cuts|ends|flops|keys|leaves|low|meta|most|places"
    r"|raw|rows|cols|at|sizes|slots|starts|stops"
)
"""Names of parameters that hold positions, coordinates and numbers of elements; integers of others wrap as NumPy's."""


def _valued(kernel: Kernel) -> frozenset[str]:
    """The names that hold elements of tensors, or values computed from them."""
    valued = {p.name for p in kernel.params if not _INDICES.fullmatch(p.name) and _holds_values(p)}
    bindings = [(name, e) for name, e in _bindings(kernel.body) if not _INDICES.fullmatch(name)]
    before = -1
    while len(valued) > before:
        before = len(valued)
        valued.update(name for name, e in bindings if _reads(e, valued))
    return frozenset(valued)


def _holds_values(p: Param) -> bool:
    return isinstance(p, Buffer) or p.scalar != "i64"


def _bindings(body: Sequence[Stmt]) -> Iterator[tuple[str, Expr]]:
    """(variable or buffer, expression) of every binding, assignment and store."""
    for s in body:
        match s:
            case Let(name, value) | Mut(name, value) | Assign(name, value) | Store(name, _, value):
                yield name, value
            case For() | While():
                yield from _bindings(s.body)
            case If():
                yield from _bindings((*s.then, *s.orelse))


def _reads(e: Expr, names: Set[str]) -> bool:
    """Whether a number depends on any of the names; a truth value does not count."""
    if e.type.scalar == "bool":
        return False
    match e:
        case Var(name, _):
            return name in names
        case Load(buffer, index, _):
            return buffer in names or _reads(index, names)
        case Cast(arg, _):
            return arg.type.is_float or _reads(arg, names)
        case Op(_, args, _):
            return any(_reads(a, names) for a in args)
    return False


def _buffers(params: Sequence[Param]) -> list[Buffer]:
    return [p for p in params if isinstance(p, Buffer)]

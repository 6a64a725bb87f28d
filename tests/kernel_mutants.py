"""Broken kernels: every small change of a kernel's loop IR, each with a description of what was broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from openwork.ir.loop import (
    Alloc,
    Assign,
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
    Stmt,
    Store,
    Var,
    While,
)
from openwork.ir.ops import cast, const, op
from openwork.ir.printer import show
from openwork.ir.types import I64

__all__ = ["Mutant", "fuelled", "mutants"]

Body = tuple[Stmt, ...]
Mutant = tuple[str, Kernel]

_SWAPPED = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "min": "max", "max": "min", "add": "sub", "sub": "add",
}  # fmt: skip


def mutants(kernel: Kernel) -> Iterator[Mutant]:
    """Each kernel that differs in one place: a guard dropped, a bound or an offset off by one, a wrong stride, a wrong
    start of a register, an operation exchanged, a statement left out. Prefetches are hints and left alone."""
    for what, body in _bodies(kernel.body):
        yield what, replace(kernel, body=body)


def fuelled(kernel: Kernel, fuel: int = 10_000) -> Kernel:
    """The kernel with a limit on the steps of its while loops: a broken one ends, too."""

    def limited(body: Body) -> Body:
        return tuple(_limited(s, limited) for s in body)

    return replace(kernel, body=(Mut("fuel", const(fuel)), *limited(kernel.body)))


def _limited(stmt: Stmt, limited: object) -> Stmt:
    assert callable(limited)
    match stmt:
        case For():
            return replace(stmt, body=limited(stmt.body))
        case If(cond, then, orelse):
            return If(cond, limited(then), limited(orelse))
        case While(cond, body):
            left = Var("fuel", I64)
            tick = Assign("fuel", op("sub", left, const(1)))
            return While(op("and", op("gt", left, const(0)), cond), (tick, *limited(body)))
    return stmt


def _bodies(body: Body) -> Iterator[tuple[str, Body]]:
    for at, stmt in enumerate(body):
        for what, fresh in _statement(stmt):
            yield what, (*body[:at], *fresh, *body[at + 1 :])


def _statement(stmt: Stmt) -> Iterator[tuple[str, Body]]:
    line = show(stmt).split("\n", 1)[0]
    match stmt:
        case Mut(name, Const() as start):
            value = not start.value if start.type.scalar == "bool" else start.value + 1
            yield f"wrong start of {line}", (Mut(name, const(0 if value == start.value else value, start.type)),)
        case Let(name, value) | Mut(name, value):
            for what, e in _expressions(value):
                yield f"{what} in {line}", (replace(stmt, value=e),)
        case Assign(name, value):
            yield f"no {line}", ()
            for what, e in _expressions(value):
                yield f"{what} in {line}", (Assign(name, e),)
        case Store(buffer, index, value):
            yield f"no {line}", ()
            yield f"next element of {line}", (Store(buffer, op("add", index, const(1)), value),)
            for what, e in _expressions(index):
                yield f"{what} in the place of {line}", (Store(buffer, e, value),)
            for what, e in _expressions(value):
                yield f"{what} in {line}", (Store(buffer, index, e),)
        case For():
            yield from _for(stmt, line)
        case While(cond, body):
            yield from ((f"{what} in {line}", (While(e, body),)) for what, e in _expressions(cond))
            yield from ((what, (While(cond, inner),)) for what, inner in _bodies(body))
        case If(cond, then, orelse):
            yield f"no guard {line}", then
            if orelse:
                yield f"only else of {line}", orelse
            yield from ((f"{what} in {line}", (If(e, then, orelse),)) for what, e in _expressions(cond))
            yield from ((what, (If(cond, inner, orelse),)) for what, inner in _bodies(then))
            yield from ((what, (If(cond, then, inner),)) for what, inner in _bodies(orelse))
        case Alloc() | Prefetch():
            return


def _for(loop: For, line: str) -> Iterator[tuple[str, Body]]:
    one = const(loop.step)
    yield f"first step left out of {line}", (replace(loop, lo=op("add", loop.lo, one)),)
    yield f"last step left out of {line}", (replace(loop, hi=op("sub", loop.hi, one)),)
    yield f"a step too many of {line}", (replace(loop, hi=op("add", loop.hi, one)),)
    yield f"a step too early of {line}", (replace(loop, lo=op("sub", loop.lo, one)),)
    if loop.step > 1:
        yield f"half the steps of {line}", (replace(loop, step=2 * loop.step),)
    for what, e in _expressions(loop.lo):
        yield f"{what} in {line}", (replace(loop, lo=e),)
    for what, e in _expressions(loop.hi):
        yield f"{what} in {line}", (replace(loop, hi=e),)
    yield from ((what, (replace(loop, body=inner),)) for what, inner in _bodies(loop.body))


def _expressions(e: Expr) -> Iterator[tuple[str, Expr]]:
    match e:
        case Load(buffer, index, type):
            yield f"next element of {show(e)}", Load(buffer, op("add", index, const(1)), type)
            yield from ((what, Load(buffer, i, type)) for what, i in _expressions(index))
        case Cast(arg, type):
            yield from ((what, Cast(a, type)) for what, a in _expressions(arg))
        case Op(name, args, type):
            if name == "and":
                yield from ((f"only {show(a)} of {show(e)}", a) for a in args)
            if name in _SWAPPED:
                yield f"{_SWAPPED[name]} for {name} in {show(e)}", Op(_SWAPPED[name], args, type)
            for at, arg in enumerate(args):
                if name == "mul" and arg.type == I64:
                    yield f"wrong stride {show(arg)}", Op(name, _with(args, at, op("add", arg, const(1))), type)
                elif isinstance(arg, Const):
                    wrong = cast(const(arg.value + 1, arg.type.scalar), arg.type)
                    yield f"{show(wrong)} for {show(arg)}", Op(name, _with(args, at, wrong), type)
                yield from ((what, Op(name, _with(args, at, a), type)) for what, a in _expressions(arg))


def _with(args: tuple[Expr, ...], at: int, fresh: Expr) -> tuple[Expr, ...]:
    return (*args[:at], fresh, *args[at + 1 :])

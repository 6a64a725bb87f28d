"""Loop IR -> text that `ir.text` reads, with operators and the fewest parentheses.

Guarantees: `parse(show(k)) == k` for every kernel that `ir.verify` accepts; the text depends on the kernel alone.
Casts that the reader inserts are left out where that reads better: the type of a literal operand, the broadcast of a
literal, the widening of an index to i64.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

import numpy as np

from ..errors import CompilerBug
from . import ops
from .loop import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
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
    Local,
    Mut,
    Op,
    Param,
    Prefetch,
    Return,
    Shuffle,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from .operations import INFIX
from .text_expr import literal
from .types import I64, Type

__all__ = ["show"]

_SELECT, _NOT, _NEGATE, _ATOM = 1, 4, 12, 14
_COMPARE, _POWER = INFIX["eq"][1], INFIX["pow"][1]
_AUGMENTED = {"add", "sub", "mul", "div", "floordiv", "mod", "pow", "bor", "bxor", "band", "shl", "shr"}
_Text = tuple[str, int]
"""Text and how tightly it binds."""


def show(node: Kernel | Stmt | Expr | Iterable[Stmt]) -> str:
    """The text of a kernel, a statement, several statements, or an expression."""
    match node:
        case Kernel():
            return _kernel(node)
        case Const() | Var() | Load() | Op() | Cast():
            return _expr(node)[0]
        case Iterable():
            return "\n".join(_block(node))
    return "\n".join(_stmt(node))


def _kernel(kernel: Kernel) -> str:
    params = ["lo: i64", "hi: i64"] if kernel.ranged else []
    params += [_param(p) for p in kernel.params]
    head = f"def {kernel.name}({', '.join(params)}):"
    if len(head) > 110:
        rows = textwrap.wrap(", ".join(params), 105, break_long_words=False, break_on_hyphens=False)
        head = f"def {kernel.name}(\n        " + "\n        ".join(rows) + "):"
    flags = ["reassociate"] if kernel.reassociate else []
    if kernel.grid is not None:
        flags.append(f"grid of {kernel.grid.items}, subgroups of {kernel.grid.subgroup}")
    if flags:
        head += f"  # {', '.join(flags)}"
    lines = [*(f"# {note}" for note in kernel.notes), head]
    return "\n".join([*lines, *_indented(kernel.body)])


def _param(param: Param) -> str:
    if isinstance(param, Buffer):
        return f"{param.name}: {param.scalar}[{'mut' if param.mutable else 'const'}]"
    return f"{param.name}: {param.scalar}"


def _block(body: Iterable[Stmt]) -> list[str]:
    return [line for s in body for line in _stmt(s)] or ["pass"]


def _indented(body: Iterable[Stmt]) -> list[str]:
    return ["    " + line for line in _block(body)]


def _stmt(stmt: Stmt) -> list[str]:
    match stmt:
        case Let(name, value):
            return [f"{name} = {show(value)}"]
        case Mut(name, value):
            return [f"{name}: {value.type} = {_converted(value, value.type)}"]
        case Assign(name, value):
            return [_assignment(name, Var(name, value.type), value)]
        case Store(buffer, index, value):
            old = Load(buffer, index, value.type)
            return [_assignment(f"{buffer}[{_offset(index)}]", old, value)]
        case For(name, lo, hi, body, step, hints):
            bounds = [_offset(hi)] if lo == Const(0, I64) and step == 1 else [_offset(lo), _offset(hi)]
            bounds += [str(step)] if step != 1 else []
            comment = f"  # {' '.join(hints)}" if hints else ""
            return [f"for {name} in range({', '.join(bounds)}):{comment}", *_indented(body)]
        case While(cond, body):
            return [f"while {_condition(cond)}:", *_indented(body)]
        case If():
            return _if("if", stmt)
        case Alloc(buffer, scalar, size, zeroed):
            return [f"{buffer}: {scalar}[{_offset(size)}] = {'zeros' if zeroed else 'empty'}"]
        case Prefetch(buffer, index):
            return [f"prefetch({buffer}, {_offset(index)})"]
        case Call(function, args):
            return [f"call({', '.join((function, *(show(a) for a in args)))})"]
        case Return(status):
            return [f"return {_offset(status)}"]
        case Local(buffer, scalar, length):
            return [f"{buffer}: {scalar}[{length}] = local"]
        case Atomic(name, buffer, index, value):
            return [f"atomic({name!r}, {buffer}[{_offset(index)}], {show(value)})"]
        case Swap(name, buffer, index, expected, value):
            return [f"{name} = swap({buffer}[{_offset(index)}], {show(expected)}, {show(value)})"]
        case Shuffle(name, value, mask):
            return [f"{name} = shuffle({show(value)}, {mask})"]
        case Barrier():
            return ["barrier()"]


def _if(word: str, stmt: If) -> list[str]:
    lines = [f"{word} {_condition(stmt.cond)}:", *_indented(stmt.then)]
    match stmt.orelse:
        case ():
            return lines
        case (If() as nested,):
            return lines + _if("elif", nested)
    return [*lines, "else:", *_indented(stmt.orelse)]


def _assignment(target: str, old: Expr, value: Expr) -> str:
    """`target = value` or `target op= operand`. A consecutive store takes its lanes from the right-hand side,
    so a literal there keeps its own."""
    consecutive = isinstance(old, Load) and old.type.lanes != old.index.type.lanes
    match value:
        case Op(op, (left, right), _) if op in _AUGMENTED and left == old:
            for operand in (right,) if consecutive else (_bare(right), right):
                if _rebuilt(op, (left, operand)) == value:
                    return f"{target} {INFIX[op][0]}= {show(operand)}"
    return f"{target} = {show(value) if consecutive else _converted(value, value.type)}"


def _converted(value: Expr, to: Type) -> str:
    """The text of `value` where the reader converts to `to` anyway: a literal needs no type."""
    uncast = _bare(value)
    return show(uncast if ops.cast(uncast, to) == value else value)


def _condition(value: Expr) -> str:
    """The text of a single `value` where the reader converts to bool anyway."""
    match value:
        case Cast(arg, type) if ops.cast(arg, type) == value:
            return show(arg)
    return show(value)


def _offset(value: Expr) -> str:
    """The text of `value` where the reader converts to i64 anyway."""
    match value:
        case Cast(arg, type) if type.scalar == "i64" and arg.type.is_integer and ops.cast(arg, type) == value:
            return show(arg)
    return show(value)


def _expr(expr: Expr) -> _Text:
    match expr:
        case Const():
            return _const(expr)
        case Var(name, _):
            return name, _ATOM
        case Load(buffer, index, type):
            if type.lanes == index.type.lanes:
                return f"{buffer}[{_offset(index)}]", _ATOM
            return f"vload({buffer}, {_offset(index)}, {type.lanes})", _ATOM
        case Op(op, args, _):
            return _op(op, args, expr)
        case Cast(arg, type):
            uncast = _bare(arg)
            if isinstance(arg, Const) and ops.cast(uncast, type) == expr:
                return f"{type}({show(uncast)})", _ATOM
            short = ops.cast(arg, type) == expr and (type.lanes > 1 or arg.type.lanes == 1)
            return f"{type}({show(arg)})" if short else f"cast({show(arg)}, {type})", _ATOM


def _const(const: Const) -> _Text:
    value, type = const.value, const.type
    if type.lanes > 1:
        return f"const({_const(Const(value, type.with_lanes(1)))[0]}, {type})", _ATOM
    if isinstance(value, complex):
        text = f"complex({_float(value.real, type.scalar)}, {_float(value.imag, type.scalar)})"
        return (text if type.scalar == "c128" else f"{type}({text})"), _ATOM
    text = _float(value, type.scalar) if isinstance(value, float) else str(value)
    if type.scalar in ("bool", "i64", "f64"):
        return text, _NEGATE if text[0] == "-" else _ATOM
    return f"{type}({text})", _ATOM


def _float(value: float, scalar: str) -> str:
    if not math.isfinite(value):
        return str(value)
    text = str(np.float32(value)) if scalar in ("f32", "c64") else repr(value)
    return text if "." in text or "e" in text else text + ".0"


def _bare(expr: Expr) -> Expr:
    """The constant that the shortest literal for `expr` reads as; `expr` when it is no constant."""
    match expr:
        case Cast(Const(_, inner) as const, type) if type == inner.with_lanes(type.lanes):
            return _bare(const)
        case Const(value, type) if type.lanes == 1 and not isinstance(value, complex):
            if isinstance(value, float) and type.scalar == "f32":
                value = float(_float(value, "f32"))
            return literal(value) or expr
    return expr


def _rebuilt(op: str, args: tuple[Expr, ...]) -> Expr | None:
    try:
        return ops.op(op, *args)
    except CompilerBug:
        return None


def _op(op: str, args: tuple[Expr, ...], expr: Op) -> _Text:
    uncast = tuple(_bare(a) for a in args)
    if any(a is not b for a, b in zip(args, uncast, strict=True)) and _rebuilt(op, uncast) == expr:
        args = uncast
    if op in INFIX:
        word, level = INFIX[op]
        left, right = (level, level + 1) if level != _POWER else (_ATOM, _NEGATE)
        if level == _COMPARE:
            left = level + 1
        return f"{_tight(args[0], left)} {word} {_tight(args[1], right)}", level
    if op == "neg" and not isinstance(args[0], Const):
        return f"-{_tight(args[0], _NEGATE)}", _NEGATE
    if op == "bnot":
        return f"~{_tight(args[0], _NEGATE)}", _NEGATE
    if op == "not":
        return f"not {_tight(args[0], _NOT)}", _NOT
    if op == "select":
        cond, a, b = (_tight(x, n) for x, n in zip(args, (2, 2, _SELECT), strict=True))
        return f"{a} if {cond} else {b}", _SELECT
    return f"{op}({', '.join(show(a) for a in args)})", _ATOM


def _tight(expr: Expr, level: int) -> str:
    text, binds = _expr(expr)
    return text if binds >= level else f"({text})"

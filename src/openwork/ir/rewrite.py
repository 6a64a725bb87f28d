"""Rewrite rules and loop IR -> rewritten loop IR: combinators that chain rules and walk trees.

A rule takes a node and returns its replacement, or None where it does not apply. An expression becomes an
expression; a statement becomes a sequence of statements, possibly empty. Unchanged nodes are not rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_

from ..errors import CompilerBug
from .loop import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
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
    Prefetch,
    Return,
    Shuffle,
    Stmt,
    Store,
    Swap,
    Var,
    While,
    map_expr,
)
from .ops import cast, const, load
from .types import I64, Type

__all__ = [
    "Body",
    "ExprRule",
    "StmtRule",
    "assigned",
    "chain",
    "fixpoint",
    "free_variables",
    "map_stmt",
    "operands",
    "rewrite_kernel",
    "statements",
    "subexpressions",
    "substitute",
    "walk",
    "walk_body",
    "with_one_element",
]

Body = tuple[Stmt, ...]
ExprRule = Callable[[Expr], "Expr | None"]
StmtRule = Callable[[Stmt], "Body | None"]


def chain(*rules: ExprRule) -> ExprRule:
    """The first rule that applies."""

    def rule(expr: Expr) -> Expr | None:
        for r in rules:
            if (new := r(expr)) is not None:
                return new
        return None

    return rule


def fixpoint(rule: ExprRule, limit: int = 64) -> ExprRule:
    """`rule` at the root for as long as it applies; CompilerBug when that does not end."""

    def repeated(expr: Expr) -> Expr | None:
        new = rule(expr)
        if new is None:
            return None
        for _ in range(limit):
            following = rule(new)
            if following is None:
                return new
            new = following
        raise CompilerBug(f"rewrite: no fixpoint after {limit} steps: {new}")

    return repeated


def walk(expr: Expr, rule: ExprRule) -> Expr:
    """Apply `rule` everywhere, bottom-up: a node is visited after its operands."""
    if isinstance(expr, Op):
        args = tuple([walk(a, rule) for a in expr.args])
        rebuilt: Expr = expr if all(map(is_, expr.args, args)) else Op(expr.op, args, expr.type)
    elif isinstance(expr, (Var, Const)):  # a union would be made anew each time
        rebuilt = expr
    else:
        rebuilt = map_expr(expr, lambda e: walk(e, rule))
    new = rule(rebuilt)
    return rebuilt if new is None else new


def walk_body(body: Iterable[Stmt], expr_rule: ExprRule | None, stmt_rule: StmtRule | None = None) -> Body:
    """Apply the rules everywhere in `body`, bottom-up: expressions first, inner statements before outer ones."""
    visit: Callable[[Expr], Expr] = (lambda e: walk(e, expr_rule)) if expr_rule else (lambda e: e)
    result: list[Stmt] = []
    for stmt in body:
        rebuilt = map_stmt(stmt, visit, lambda b: walk_body(b, expr_rule, stmt_rule))
        new = stmt_rule(rebuilt) if stmt_rule else None
        result.extend((rebuilt,) if new is None else new)
    return tuple(result)


def rewrite_kernel(kernel: Kernel, change: Callable[[Body], Body]) -> Kernel:
    """The kernel with its body changed; itself where that is equal."""
    body = change(kernel.body)
    return kernel if body == kernel.body else replace(kernel, body=body)


def with_one_element(kernel: Kernel, buffers: Collection[str]) -> Kernel:
    """The kernel reading element 0 of these buffers, once, wherever it reads an element of them."""
    read = {p.name: Var(f"{p.name}_0", Type(p.scalar)) for p in kernel.params if p.name in buffers}
    if not read:
        return kernel

    def first(e: Expr) -> Expr | None:
        return cast(read[e.buffer], e.type) if isinstance(e, Load) and e.buffer in read else None

    def unneeded(s: Stmt) -> Body | None:
        return () if isinstance(s, Prefetch) and s.buffer in read else None

    reads = [Let(x.name, load(buffer, x.type.scalar, const(0))) for buffer, x in read.items()]
    return replace(kernel, body=(*reads, *walk_body(kernel.body, first, unneeded)))


def map_stmt(stmt: Stmt, visit: Callable[[Expr], Expr], descend: Callable[[Body], Body]) -> Stmt:
    """Rebuild `stmt` with `visit` applied to its expressions and `descend` to the bodies inside."""
    match stmt:
        case Let(name, value):
            return Let(name, visit(value))
        case Mut(name, value):
            return Mut(name, visit(value))
        case Assign(name, value):
            return Assign(name, visit(value))
        case Store(buffer, index, value):
            return Store(buffer, visit(index), visit(value))
        case For(name, lo, hi, body, step, hints):
            return For(name, visit(lo), visit(hi), descend(body), step, hints)
        case While(cond, body):
            return While(visit(cond), descend(body))
        case If(cond, then, orelse):
            return If(visit(cond), descend(then), descend(orelse))
        case Alloc(buffer, scalar, size, zeroed):
            return Alloc(buffer, scalar, visit(size), zeroed)
        case Prefetch(buffer, index):
            return Prefetch(buffer, visit(index))
        case Call(function, args):
            return Call(function, tuple(_reference(a, visit) for a in args))
        case Return(status):
            return Return(visit(status))
        case Atomic(name, buffer, index, value):
            return Atomic(name, buffer, visit(index), visit(value))
        case Swap(name, buffer, index, expected, value):
            return Swap(name, buffer, visit(index), visit(expected), visit(value))
        case Shuffle(name, value, mask):
            return Shuffle(name, visit(value), mask)
        case Local() | Barrier():
            return stmt


def _reference(arg: Expr, visit: Callable[[Expr], Expr]) -> Expr:
    """An argument of a call rewritten; one that stands for a place in a buffer still does."""
    new = visit(arg)
    if isinstance(arg, Load) and not isinstance(new, Load):
        return Load(arg.buffer, visit(arg.index), arg.type)
    return new


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of the statement itself, not of the bodies inside."""
    match stmt:
        case Let(_, e) | Mut(_, e) | Assign(_, e) | Return(e) | Shuffle(_, e, _):
            return (e,)
        case Alloc(_, _, e, _) | Prefetch(_, e) | While(e, _) | If(e, _, _):
            return (e,)
        case Store(_, index, value) | Atomic(_, _, index, value):
            return (index, value)
        case Swap(_, _, index, expected, value):
            return (index, expected, value)
        case Local() | Barrier():
            return ()
        case Call(function, args):
            return (Var(function, I64), *args)
        case For(_, lo, hi, _, _, _):
            return (lo, hi)


def bodies(stmt: Stmt) -> tuple[Body, ...]:
    match stmt:
        case For(_, _, _, body, _, _) | While(_, body):
            return (body,)
        case If(_, then, orelse):
            return (then, orelse)
    return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, outer before inner, in order."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything inside it, outer before inner, an operation's first operand before its second."""
    stack = [expr]
    while stack:
        e = stack.pop()
        yield e
        if isinstance(e, Op):
            stack.extend(e.args[::-1])
        elif isinstance(e, Load):
            stack.append(e.index)
        elif isinstance(e, Cast):
            stack.append(e.arg)


def free_variables(node: Expr | Iterable[Stmt]) -> tuple[Var, ...]:
    """The variables used and not bound inside, each once, in order of first use."""
    variables: dict[Var, None] = {}
    if isinstance(node, Iterable):
        _free(node, frozenset(), variables)
    else:
        variables.update(dict.fromkeys(e for e in subexpressions(node) if isinstance(e, Var)))
    return tuple(variables)


def _free(body: Iterable[Stmt], bound: frozenset[str], variables: dict[Var, None]) -> None:
    for stmt in body:
        used = (e for o in operands(stmt) for e in subexpressions(o))
        variables.update(dict.fromkeys(e for e in used if isinstance(e, Var) and e.name not in bound))
        if isinstance(stmt, Assign) and stmt.name not in bound:
            variables[Var(stmt.name, stmt.value.type)] = None
        inner = bound | {stmt.name} if isinstance(stmt, For) else bound
        for part in bodies(stmt):
            _free(part, inner, variables)
        if isinstance(stmt, (Let, Mut, Swap, Shuffle)):
            bound = bound | {stmt.name}


def assigned(body: Iterable[Stmt]) -> frozenset[str]:
    """The names that an Assign inside changes, and the buffers that a Store inside writes or a Call may."""
    names: set[str] = set()
    for s in statements(body):
        if isinstance(s, Assign):
            names.add(s.name)
        elif isinstance(s, Store | Atomic | Swap):
            names.add(s.buffer)
        elif isinstance(s, Call):
            names.update(a.buffer for a in s.args if isinstance(a, Load))
    return frozenset(names)


def substitute(
    body: Iterable[Stmt], values: Mapping[str, Expr], buffers: Mapping[str, str] | None = None
) -> tuple[Stmt, ...]:
    """Replace variables by expressions and rename buffers, workspaces and assigned variables included.

    The caller ensures that no replacement is captured: names bound inside are not renamed.
    """
    renamed = buffers or {}

    def rule(expr: Expr) -> Expr | None:
        match expr:
            case Var(name, type) if name in values:
                return values[name] if values[name].type == type else None
            case Load(buffer, index, type) if buffer in renamed:
                return Load(renamed[buffer], index, type)
        return None

    def stmt_rule(stmt: Stmt) -> Body | None:
        match stmt:
            case Assign(name, value) if isinstance(target := values.get(name), Var):
                return (Assign(target.name, value),)
            case Store(buffer, index, value) if buffer in renamed:
                return (Store(renamed[buffer], index, value),)
            case Alloc(buffer, scalar, size, zeroed) if buffer in renamed:
                return (Alloc(renamed[buffer], scalar, size, zeroed),)
            case Prefetch(buffer, index) if buffer in renamed:
                return (Prefetch(renamed[buffer], index),)
            case Atomic(_, buffer, _, _) | Swap(_, buffer, _, _, _) | Local(buffer, _, _) if buffer in renamed:
                return (replace(stmt, buffer=renamed[buffer]),)
            case Call(function, args) if isinstance(target := values.get(function), Var):
                return (Call(target.name, args),)
        return None

    return walk_body(body, rule, stmt_rule)

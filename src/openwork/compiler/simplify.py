"""A kernel -> a simpler one: expressions by the table of `simplify_rules`, statements by the rules below.

    x = 3; f(x)                      -> f(3)                   a Let of a constant or an unchanging variable
    x = e                            -> (nothing)              a Let, or a Mut, that nothing reads
    x: T = e  (never assigned)       -> x = e
    x = x                            -> (nothing)
    if True: A else: B               -> A                      and B for False
    if c: pass else: B               -> if not c: B            nothing when both are empty
    for i in range(a, b): A          -> (nothing)              when b <= a for sure, or A is empty
    for i in range(a, a + 1): A      -> A with i = a
    for i: for q in i's children: A  -> one loop           where A does not use i: `flatten`
    while False: A                   -> (nothing)
    return s; A                      -> return s
    w: T[n] = zeros  (never read)    -> (nothing)              with the stores to it

Expressions have no effects; a load that nothing needs is dropped. Names stay as they are unless two that were in
different scopes come to be in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from ..errors import CompilerBug
from ..ir import ops
from ..ir.loop import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Call,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Mut,
    Prefetch,
    Return,
    Shuffle,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from ..ir.rewrite import Body, bodies, fixpoint, map_stmt, operands, statements, subexpressions, substitute, walk
from .simplify_rules import constant, expression_rule
from .single.collapse_loops import flattened, positions

__all__ = ["simplify", "simplify_expr"]

_ROUNDS = 20
_rule = fixpoint(expression_rule)


def simplify_expr(expr: Expr) -> Expr:
    """The expression simplified until nothing changes."""
    for _ in range(_ROUNDS):
        new = walk(expr, _rule)
        if new == expr:
            return new
        expr = new
    raise CompilerBug(f"simplify: no fixpoint: {expr}")


def simplify(kernel: Kernel) -> Kernel:
    """The kernel simplified until nothing changes.

    Guarantees: it computes the same; simplify(simplify(k)) == simplify(k).
    """
    body = kernel.body
    normal = _NormalForms()
    for _ in range(_ROUNDS):
        pass_ = _Pass(kernel, body, normal)
        new = pass_.drop(pass_.block(body, {}))
        if new == body:
            return kernel if body == kernel.body else replace(kernel, body=body)
        body = new
    raise CompilerBug(f"simplify: kernel {kernel.name!r} has no fixpoint")


class _NormalForms:
    """Expressions in normal form, by identity, which are not rewritten again; held, so that no other gets their id."""

    def __init__(self) -> None:
        self.roots: dict[int, Expr] = {}
        """expressions to whose root no rule applies"""
        self.trees: set[int] = set()
        """expressions to which no rule applies anywhere, where no value is substituted for a variable"""
        self._names: dict[int, tuple[Expr, frozenset[str], frozenset[str]]] = {}

    def names(self, expr: Expr) -> tuple[Expr, frozenset[str], frozenset[str]]:
        """The expression, the variables and the buffers in it."""
        found = self._names.get(id(expr))
        if found is None:
            parts = list(subexpressions(expr))
            variables = frozenset([e.name for e in parts if isinstance(e, Var)])
            found = self._names[id(expr)] = expr, variables, frozenset([e.buffer for e in parts if isinstance(e, Load)])
        return found


class _Pass:
    """One walk over the body, top-down with the values of Lets, so that what they enable is seen at once."""

    def __init__(self, kernel: Kernel, body: Body, normal: _NormalForms) -> None:
        self.normal = normal
        stmts = list(statements(body))
        self.bindings = Counter(s.name for s in stmts if isinstance(s, Let | Mut | For))
        self.bindings.update(s.buffer for s in stmts if isinstance(s, Alloc))
        self.bindings.update(p.name for p in kernel.params)
        self.assigned = {s.name for s in stmts if isinstance(s, Assign)}
        self.positions = positions(kernel)

    def expr(self, expr: Expr, values: dict[str, Expr]) -> Expr:
        if isinstance(expr, Var):
            return values.get(expr.name, expr)
        if id(expr) in self.normal.trees and values.keys().isdisjoint(self.normal.names(expr)[1]):
            return expr
        roots = self.normal.roots

        def rule(e: Expr) -> Expr | None:
            if isinstance(e, Var):
                return values.get(e.name)
            if id(e) in roots:
                return None
            new = _rule(e)
            if new is None:
                roots[id(e)] = e
            return new

        new = walk(expr, rule)
        if new is expr:
            self.normal.names(expr)  # held
            self.normal.trees.add(id(expr))
        return new

    def block(self, body: Body, values: dict[str, Expr]) -> Body:
        """The simplified statements; `values` is what the names of this scope stand for."""
        result: list[Stmt] = []
        for stmt in body:
            result.extend(self.stmt(stmt, values))
            if result and isinstance(result[-1], Return):
                break
        return tuple(result)

    def stmt(self, stmt: Stmt, values: dict[str, Expr]) -> Body:
        match stmt:
            case Let(name, value):
                return self._let(name, self.expr(value, values), values)
            case Mut(name, value):
                values.pop(name, None)
                new = self.expr(value, values)
                return (Mut(name, new),) if name in self.assigned else self._let(name, new, values)
            case Assign(name, value):
                new = self.expr(value, values)
                return () if new == Var(name, new.type) else (Assign(name, new),)
            case Store(buffer, index, value):
                return (Store(buffer, self.expr(index, values), self.expr(value, values)),)
            case For():
                return self._for(stmt, values)
            case While(cond, body):
                test = self.expr(cond, values)
                return () if constant(test) is False else (While(test, self.block(body, dict(values))),)
            case If(cond, then, orelse):
                return self._if(self.expr(cond, values), then, orelse, values)
            case Alloc(buffer, scalar, size, zeroed):
                return (Alloc(buffer, scalar, self.expr(size, values), zeroed),)
            case Prefetch(buffer, index):
                return (Prefetch(buffer, self.expr(index, values)),)
            case Call() | Local() | Atomic() | Swap() | Shuffle() | Barrier():
                return (map_stmt(stmt, lambda e: self.expr(e, values), lambda b: b),)
            case Return(status):
                return (Return(self.expr(status, values)),)

    def _let(self, name: str, value: Expr, values: dict[str, Expr]) -> Body:
        values.pop(name, None)
        if constant(value) is not None or (isinstance(value, Var) and value.name not in self.assigned):
            values[name] = value
            return ()
        return (Let(name, value),)

    def _if(self, cond: Expr, then: Body, orelse: Body, values: dict[str, Expr]) -> Body:
        value = constant(cond)
        if value is not None:
            return self.block(self._hoisted(then if value else orelse), values)
        then_body, else_body = self.block(then, dict(values)), self.block(orelse, dict(values))
        if not then_body and not else_body:
            return ()
        if not then_body:
            return (If(self.expr(ops.op("not", cond), {}), else_body),)
        return (If(cond, then_body, else_body),)

    def _for(self, loop: For, values: dict[str, Expr]) -> Body:
        lo, hi = self.expr(loop.lo, values), self.expr(loop.hi, values)
        count = constant(simplify_expr(ops.op("sub", hi, lo)))
        if isinstance(count, int) and count <= 0:
            return ()
        if isinstance(count, int) and count <= loop.step:
            return self.block(self._hoisted((Let(loop.name, lo), *loop.body)), values)
        inner = dict(values)
        inner.pop(loop.name, None)
        body = self.block(loop.body, inner)
        new = For(loop.name, lo, hi, body, loop.step, loop.hints)
        return (flattened(new, self.positions) or new,) if body else ()

    def _hoisted(self, body: Body) -> Body:
        """`body` for the scope outside, its own names renamed where the kernel has them twice."""
        renamed: dict[str, Expr] = {}
        result: list[Stmt] = []
        for stmt in body:
            (new,) = substitute((stmt,), renamed) if renamed else (stmt,)
            if isinstance(new, Let | Mut) and self.bindings[new.name] > 1:
                fresh = self._fresh(new.name)
                renamed[new.name] = Var(fresh, new.value.type)
                new = replace(new, name=fresh)
            result.append(new)
        return tuple(result)

    def _fresh(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self.bindings:
            number += 1
        fresh = f"{name}_{number}"
        self.bindings[name] -= 1
        self.bindings[fresh] += 1
        if name in self.assigned:
            self.assigned.add(fresh)
        return fresh

    def drop(self, body: Body) -> Body:
        """Remove what nothing reads, until all that is left is read."""
        while True:
            new = _living(body, self.read(body))
            if new == body:
                return body
            body = new

    def read(self, body: Body) -> set[str]:
        """The names and buffers that something other than their own Assign reads."""
        read: set[str] = set()
        allocated: set[str] = set()
        touched: set[str] = set()
        for stmt in statements(body):
            for operand in operands(stmt):
                _, variables, buffers = self.normal.names(operand)
                read |= variables - {stmt.name} if isinstance(stmt, Assign) else variables
                read |= buffers
            if isinstance(stmt, Alloc):
                allocated.add(stmt.buffer)
            elif isinstance(stmt, (Store, Prefetch, Atomic, Swap)):
                touched.add(stmt.buffer)
        return read | (touched - allocated)


def _living(body: Body, read: Collection[str]) -> Body:
    """The statements without those of which nothing is read."""
    rebuilt = (map_stmt(s, _same, lambda b: _living(b, read)) if bodies(s) else s for s in body)
    return tuple([s for s in rebuilt if not _is_dead(s, read)])


def _same(expr: Expr) -> Expr:
    return expr


def _is_dead(stmt: Stmt, read: Collection[str]) -> bool:
    match stmt:
        case Let(name, _) | Mut(name, _) | Assign(name, _):
            return name not in read
        case Store(buffer, _, _) | Alloc(buffer, _, _, _) | Prefetch(buffer, _):
            return buffer not in read
        case For(_, _, _, ()) | If(_, (), ()):
            return True
    return False

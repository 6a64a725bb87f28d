"""Fragments of loop IR as text -> statements of loop IR, in a kernel under construction.

A `Block` is a place where statements go, with the names that are visible there. `run` takes statements in the
syntax of `ir.loop`; a name that stands for a callable is a hole, filled by calling it with the block it stands in::

    block.run('''
    for r in range(0, rows):
        ROW
    ''', ROW=lambda inner: inner.run("count[r] += 1"))

Names that fragments bind are made unique in the kernel, so that fragments compose. Integers loaded from
buffers of positions and coordinates (`wide`) become i64 at once.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from ..classes import frozen
from ..errors import CompilerBug
from ..ir.loop import (
    Alloc,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Mut,
    Param,
    Prefetch,
    Return,
    Scalar,
    Stmt,
    Store,
    Var,
    While,
)
from ..ir.ops import cast, const, load, op
from ..ir.syntax import expression_tree, statement_trees
from ..ir.text_expr import OPERATORS, ExprReader
from ..ir.types import I64, SCALARS, Type
from .fold import fold
from .operand import ParamRef

__all__ = ["Array", "Block", "Builder", "Hole", "Name", "Parameters"]


@frozen
class Array:
    """A buffer by its name in fragments; elements are read as i64 where `wide`, `offset` is added to every index."""

    name: str
    scalar: str
    wide: bool = False
    offset: Expr | None = None

    def read(self, index: Expr, lanes: int = 1) -> Expr:
        value = load(self.name, self.scalar, self._at(index), lanes)
        return cast(value, I64.with_lanes(lanes)) if self.wide else value

    def write(self, index: Expr, value: Expr) -> Store:
        return Store(self.name, cast(self._at(index), I64), cast(value, Type(self.scalar, value.type.lanes)))

    def _at(self, index: Expr) -> Expr:
        return index if self.offset is None else fold("add", self.offset, index)


Hole = Callable[["Block"], None]
Name = Expr | Array | Hole | int | bool | str
"""What a name of a fragment may stand for; a str is a scalar type."""


class Parameters:
    """The parameters of a kernel, in the order of their first use."""

    def __init__(self) -> None:
        self._params: dict[str, Param] = {}

    def buffer(self, ref: ParamRef | str, scalar: str, mutable: bool = False) -> str:
        """Declare a buffer, once, and give its name."""
        name = _name_of(ref)
        self._params.setdefault(name, Buffer(name, scalar, mutable))
        return name

    def scalar(self, ref: ParamRef | str, scalar: str = "i64") -> Var:
        """Declare a scalar, once, and give its variable."""
        name = _name_of(ref)
        self._params.setdefault(name, Scalar(name, scalar))
        return Var(name, Type(scalar))

    def __contains__(self, name: str) -> bool:
        return name in self._params

    def __iter__(self) -> Iterator[Param]:
        return iter(self._params.values())


def _name_of(ref: ParamRef | str) -> str:
    return ref if isinstance(ref, str) else ref.name


class Builder:
    """The kernel being built: its parameters and the names in use."""

    def __init__(self, name: str, *, ranged: bool = False) -> None:
        self.name = name
        self.ranged = ranged
        self.params = Parameters()
        self._used: set[str] = {"lo", "hi"}
        self.body: list[Stmt] = []
        env: dict[str, Name] = {"lo": Var("lo", I64), "hi": Var("hi", I64)} if ranged else {}
        self.top = Block(self, self.body, env)

    def fresh(self, base: str) -> str:
        """A name derived from `base` that the kernel does not use yet."""
        name, n = base, 1
        while name in self._used or name in self.params:
            name, n = f"{base}_{n}", n + 1
        self._used.add(name)
        return name

    def buffer(self, name: str, scalar: str, *, mutable: bool = False, wide: bool = False) -> Array:
        """Declare a buffer parameter, once."""
        array = Array(self.params.buffer(name, scalar, mutable), scalar, wide)
        self.top.env.setdefault(name, array)
        return array

    def scalar(self, name: str, scalar: str = "i64") -> Var:
        """Declare a scalar parameter, once."""
        var = self.params.scalar(name, scalar)
        self.top.env.setdefault(name, var)
        return var

    def kernel(self, notes: tuple[str, ...] = (), reassociate: bool = False) -> Kernel:
        return Kernel(
            self.name, tuple(self.params), tuple(self.body), ranged=self.ranged, reassociate=reassociate, notes=notes
        )


@lru_cache(maxsize=1024)
def _statements(text: str) -> list[ast.stmt]:
    return statement_trees(textwrap.dedent(text))


@lru_cache(maxsize=1024)
def _expression(text: str) -> ast.expr:
    return expression_tree(text)


class Block:
    """A sequence of statements under construction, with the values of the names in scope."""

    def __init__(
        self, builder: Builder, stmts: list[Stmt], env: dict[str, Name], mutable: frozenset[str] = frozenset()
    ):
        self.builder = builder
        self.stmts = stmts
        self.env = env
        self._mutable = mutable

    def run(self, text: str, **names: Name) -> None:
        """Append the statements of `text`."""
        block = self._with(names)
        for node in _statements(text):
            block._statement(node)
        for name in names:
            block.env.pop(name, None)
        self.env.update((k, v) for k, v in block.env.items() if k not in names)
        self._mutable = block._mutable

    def expr(self, text: str, **names: Name) -> Expr:
        """The expression `text` here."""
        return self._with(names)._expr(_expression(text))

    def let(self, base: str, value: Expr) -> Expr:
        """Bind `value` to a new name; a constant or a variable stays as it is."""
        if isinstance(value, Const | Var):
            return value
        name = self.builder.fresh(base)
        self.stmts.append(Let(name, value))
        return Var(name, value.type)

    def mut(self, base: str, value: Expr) -> Var:
        """A variable that `assign` may change."""
        name = self.builder.fresh(base)
        self.stmts.append(Mut(name, value))
        return Var(name, value.type)

    def assign(self, var: Var, value: Expr) -> None:
        self.stmts.append(Assign(var.name, cast(value, var.type)))

    def store(self, array: Array, index: Expr, value: Expr) -> None:
        self.stmts.append(array.write(index, value))

    def loop(
        self,
        base: str,
        lo: Expr,
        hi: Expr,
        body: Callable[[Block, Var], None],
        hints: tuple[str, ...] = (),
        step: int = 1,
    ) -> None:
        """`for base in range(lo, hi, step)`."""
        name = self.builder.fresh(base)
        inner = self.nested()
        body(inner, Var(name, I64))
        self.stmts.append(For(name, cast(lo, I64), cast(hi, I64), tuple(inner.stmts), step, hints))

    def when(self, cond: Expr, then: Hole, orelse: Hole | None = None) -> None:
        """`if cond`, with an optional `else`."""
        then_block, else_block = self.nested(), self.nested()
        then(then_block)
        if orelse is not None:
            orelse(else_block)
        self.stmts.append(If(cond, tuple(then_block.stmts), tuple(else_block.stmts)))

    def loop_while(self, test: Expr, body: Hole) -> None:
        """`while test`."""
        inner = self.nested()
        body(inner)
        self.stmts.append(While(test, tuple(inner.stmts)))

    def nested(self) -> Block:
        """An empty block that sees the names of this one; whoever asks for it puts its statements somewhere."""
        return Block(self.builder, [], dict(self.env), self._mutable)

    def _with(self, names: Mapping[str, Name]) -> Block:
        return Block(self.builder, self.stmts, {**self.env, **names}, self._mutable)

    def _bind(self, base: str, type: Type, mutable: bool) -> str:
        name = self.builder.fresh(base)
        self.env[base] = Var(name, type)
        self._mutable = self._mutable | {name} if mutable else self._mutable
        return name

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Name(id=name)):
                hole = self.env[name]
                if not callable(hole):
                    raise CompilerBug(f"fragment: {name} is no hole")
                hole(self)
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefetch"), args=[ast.Name(id=name), index])):
                array = self._array(name)
                self.stmts.append(Prefetch(array.name, cast(array._at(self._expr(index)), I64)))
            case ast.Expr(value=ast.Call(func=ast.Name(id="vstore"), args=[ast.Name(id=name), index, value])):
                self.store(self._array(name), self._expr(index), self._expr(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, self._expr(value))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=index)], value=value):
                self.store(self._array(name), self._expr(index), self._expr(value))
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                current = self.env[name]
                assert isinstance(current, Var)
                self._assign(name, self._binary(operator, current, self._expr(value)))
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name), slice=index), op=operator, value=value):
                array, at = self._array(name), self._expr(index)
                self.store(array, at, self._binary(operator, array.read(at), self._expr(value)))
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Subscript(value=kind, slice=size), value=ast.Name(id=initial)
            ):
                scalar = self._scalar(kind)
                buffer = self.builder.fresh(name)
                self.env[name] = Array(buffer, scalar, wide=scalar in ("i32", "i64"))
                self.stmts.append(Alloc(buffer, scalar, self._expr(size), initial == "zeros"))
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
                first = self._expr(value)
                type = Type(self._scalar(kind), first.type.lanes)
                first = cast(first, type)
                self.stmts.append(Mut(self._bind(name, type, True), first))
            case ast.Return(value=ast.expr() as value):
                self.stmts.append(Return(cast(self._expr(value), I64)))
            case ast.Pass():
                pass
            case _:
                self._compound(node)

    def _compound(self, node: ast.stmt) -> None:
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), body=body):
                lo, hi = (self._expr(b) for b in bounds)
                inner = self.nested()
                var = inner._bind(name, I64, False)
                inner._suite(body)
                self.stmts.append(For(var, cast(lo, I64), cast(hi, I64), tuple(inner.stmts)))
            case ast.While(test=test, body=body):
                inner = self.nested()
                inner._suite(body)
                self.stmts.append(While(self._expr(test), tuple(inner.stmts)))
            case ast.If(test=test, body=body, orelse=orelse):
                then, other = self.nested(), self.nested()
                then._suite(body)
                other._suite(orelse)
                self.stmts.append(If(self._expr(test), tuple(then.stmts), tuple(other.stmts)))
            case _:
                raise CompilerBug(f"fragment: {ast.unparse(node)} is not in the language")

    def _suite(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self._statement(node)

    def _assign(self, name: str, value: Expr) -> None:
        current = self.env.get(name)
        if isinstance(current, Var) and current.name in self._mutable:
            self.assign(current, value)
        else:
            self.stmts.append(Let(self._bind(name, value.type, False), value))

    def _array(self, name: str) -> Array:
        array = self.env[name]
        if not isinstance(array, Array):
            raise CompilerBug(f"fragment: {name} is no buffer")
        return array

    def _scalar(self, node: ast.expr) -> str:
        assert isinstance(node, ast.Name)
        scalar = self.env.get(node.id, node.id)
        assert isinstance(scalar, str), node.id
        return scalar

    def _binary(self, operator: ast.operator, a: Expr, b: Expr) -> Expr:
        return _READER._op(operator, OPERATORS[type(operator)], a, b)

    def _expr(self, node: ast.expr) -> Expr:
        return _READER.expr(node, self)


class _Reader(ExprReader[Block]):
    """Expressions of fragments, folded as they are read."""

    def _name(self, node: ast.AST, name: str, scope: Block) -> Expr:
        if name not in scope.env:
            raise self.error(node, f"fragment: unknown name {name}; known: {', '.join(scope.env)}")
        value = scope.env[name]
        if isinstance(value, int):
            return const(value, "bool" if isinstance(value, bool) else "i64")
        if isinstance(value, str | Array) or callable(value):
            raise self.error(node, f"fragment: {name} is no value")
        return value

    def _element(self, node: ast.AST, target: ast.expr, index: Expr, scope: Block, lanes: int = 1) -> Expr:
        array = scope._array(target.id if isinstance(target, ast.Name) else ast.unparse(target))
        return array.read(index) if lanes == 1 else load(array.name, array.scalar, array._at(index), lanes)

    def _unary(self, node: ast.AST, operator: ast.unaryop, operand: ast.expr, scope: Block) -> Expr:
        if isinstance(operator, ast.USub):
            return fold("sub", const(0), self.expr(operand, scope))
        return super()._unary(node, operator, operand, scope)

    def _op(self, node: ast.AST, name: str, *args: Expr) -> Expr:
        if len(args) != 2:
            return op(name, *args)
        if name == "add" and all(a.type.scalar == "bool" for a in args):
            name = "or"
        return fold(name, *args)

    def _call(self, node: ast.Call, name: str, args: list[ast.expr], scope: Block) -> Expr:
        kind = scope.env.get(name, name)
        if isinstance(kind, str) and kind in SCALARS:
            return cast(self.expr(args[0], scope), kind)
        return super()._call(node, name, args, scope)


_READER = _Reader()

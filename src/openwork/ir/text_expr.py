"""Python's syntax tree of an expression -> loop IR: the reader of all texts of the compiler, syntax as in `ir.text`.

    a[i] + 1 if p < q else b        what a name, an element and an operation are is the subclass's: of a kernel's text
                                    here, of fragments in `compiler.build`, of level functions in `compiler`

Index notation, which users write, has a reader of its own (`ir.index_text`), whose errors point into the text.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Generic, TypeVar

from ..classes import define
from ..errors import CompilerBug, marked
from . import ops
from .index import PREFIX
from .loop import Buffer, Cast, Const, Expr, Load, Op, Var
from .operations import INFIX
from .syntax import expression_tree
from .types import SCALARS, Type

__all__ = ["OPERATORS", "ExprParser", "ExprReader", "Scope", "error", "literal", "read_type"]


def _operator(text: str) -> type[ast.AST]:
    """The class of the operator of `a + b`, say."""
    match expression_tree(text):
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.UnaryOp(op=operator) | ast.Compare(ops=[operator]):
            return type(operator)
    raise CompilerBug(f"{text!r} has no operator of Python")


OPERATORS = {_operator(f"a {word} b"): op for op, (word, _) in INFIX.items()}
OPERATORS |= {_operator(f"{word} a"): op for op, (word, _) in PREFIX.items()}
"""The operations of Python's operators; index notation reads the same table."""

_VECTOR = re.compile(r"([A-Za-z_]\w*?)x(\d+)$")
_NAMED = {"inf": math.inf, "nan": math.nan}


@define(slots=False)
class Scope:
    """The names visible at a point: expressions and buffers, and which of the names may be assigned."""

    names: dict[str, Expr | Buffer] = field(default_factory=dict)
    muts: dict[str, Type] = field(default_factory=dict)

    def child(self) -> Scope:
        return Scope(dict(self.names), dict(self.muts))


def error(node: ast.AST | None, lines: list[str], message: str) -> CompilerBug:
    """A CompilerBug that names the line of `node`, with a caret under it."""
    row = getattr(node, "lineno", None)
    if row is None or not 0 < row <= len(lines):
        return CompilerBug(f"loop IR text: {message}")
    source, column = lines[row - 1], getattr(node, "col_offset", 0)
    return CompilerBug(f"loop IR text, line {row}: {message}\n{marked(source, column)}")


def read_type(name: str, substitutions: Mapping[str, str]) -> Type | None:
    """The type called `name` after substitution (`f64`, `f64x8`, `T`, `Tx8`), None when there is no such type."""
    name = substitutions.get(name, name)
    if name in SCALARS:
        return Type(name)
    if match := _VECTOR.fullmatch(name):
        scalar = substitutions.get(match[1], match[1])
        if scalar in SCALARS and int(match[2]) > 0:
            return Type(scalar, int(match[2]))
    return None


def literal(value: object) -> Const | None:
    """The constant that a bare literal stands for: bool, i64 (u64 from 2**63 on), f64 or c128."""
    match value:
        case bool():
            return Const(value, Type("bool"))
        case int():
            return Const(value, Type("i64" if value < 1 << 63 else "u64")) if value < 1 << 64 else None
        case float():
            return ops.const(value, "f64")
        case complex():
            return ops.const(value, "c128")
    return None


S = TypeVar("S")


class ExprReader(Generic[S]):
    """Turns trees of expressions into loop IR within a scope of some kind."""

    def expr(self, node: ast.expr, scope: S) -> Expr:
        """The loop IR of a tree."""
        match node:
            case ast.Constant(value=value):
                return self._literal(node, value)
            case ast.Name(id=name):
                return self._name(node, name, scope)
            case ast.UnaryOp(op=operator, operand=operand):
                return self._unary(node, operator, operand, scope)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                return self._op(node, OPERATORS[type(operator)], self.expr(left, scope), self.expr(right, scope))
            case ast.BoolOp(op=operator, values=values):
                result = self.expr(values[0], scope)
                for term in values[1:]:
                    result = self._op(node, OPERATORS[type(operator)], result, self.expr(term, scope))
                return result
            case ast.Compare():
                return self._compare(node, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._op(node, "select", *(self.expr(e, scope) for e in (test, body, orelse)))
            case ast.Subscript(value=ast.Name() as target, slice=index):
                return self._element(node, target, self.expr(index, scope), scope)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(node, name, args, scope)
        raise self.error(node, f"{ast.unparse(node)!r} is not in the syntax")

    def error(self, node: ast.AST | None, message: str) -> CompilerBug:
        return CompilerBug(f"loop IR text: {message}" + (f"\n  {ast.unparse(node)}" if node is not None else ""))

    def integer(self, node: ast.expr) -> int:
        """A literal integer."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        raise self.error(node, f"expected a literal integer, got {ast.unparse(node)!r}")

    def _name(self, node: ast.AST, name: str, scope: S) -> Expr:
        raise NotImplementedError

    def _element(self, node: ast.AST, target: ast.expr, index: Expr, scope: S, lanes: int = 1) -> Expr:
        raise NotImplementedError

    def _literal(self, node: ast.AST, value: object) -> Const:
        constant = literal(value)
        if constant is None:
            raise self.error(node, f"{value!r} is no literal of the loop IR")
        return constant

    def _unary(self, node: ast.AST, operator: ast.unaryop, operand: ast.expr, scope: S) -> Expr:
        if isinstance(operator, ast.UAdd):
            return self.expr(operand, scope)
        return self._op(node, OPERATORS[type(operator)], self.expr(operand, scope))

    def _compare(self, node: ast.Compare, scope: S) -> Expr:
        operands = [self.expr(e, scope) for e in (node.left, *node.comparators)]
        result: Expr | None = None
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(operator) not in OPERATORS:
                raise self.error(node, "expected one of == != < <= > >=")
            term = self._op(node, OPERATORS[type(operator)], left, right)
            result = term if result is None else self._op(node, "and", result, term)
        assert result is not None
        return result

    def _op(self, node: ast.AST, name: str, *args: Expr) -> Expr:
        return ops.op(name, *args)

    def _call(self, node: ast.Call, name: str, args: list[ast.expr], scope: S) -> Expr:
        special = getattr(self, f"_call_{name}", None)
        if special is None:
            return self._op(node, name, *(self.expr(a, scope) for a in args))
        result = special(node, args, scope)
        assert isinstance(result, (Const, Var, Load, Op, Cast))
        return result

    def _arguments(self, node: ast.Call, args: list[ast.expr], count: int) -> list[ast.expr]:
        if len(args) != count:
            raise self.error(node, f"{ast.unparse(node.func)}() takes {count} arguments, got {len(args)}")
        return args

    def _call_vload(self, node: ast.Call, args: list[ast.expr], scope: S) -> Expr:
        target, index, lanes = self._arguments(node, args, 3)
        return self._element(node, target, self.expr(index, scope), scope, self.integer(lanes))

    def _call_broadcast(self, node: ast.Call, args: list[ast.expr], scope: S) -> Expr:
        value, lanes = self._arguments(node, args, 2)
        arg = self.expr(value, scope)
        return ops.cast(arg, arg.type.with_lanes(self.integer(lanes)))


class ExprParser(ExprReader[Scope]):
    """Expressions of a kernel's text; `lines` serve the error messages."""

    def __init__(self, lines: list[str], substitutions: Mapping[str, str]) -> None:
        self.lines = lines
        self.substitutions = substitutions

    def error(self, node: ast.AST | None, message: str) -> CompilerBug:
        return error(node, self.lines, message)

    def type(self, node: ast.expr) -> Type:
        """A type annotation: a bare name."""
        type = read_type(node.id, self.substitutions) if isinstance(node, ast.Name) else None
        if type is None:
            raise self.error(node, f"expected a type, got {ast.unparse(node)!r}")
        return type

    def buffer(self, node: ast.expr, scope: Scope) -> Buffer:
        buffer = scope.names.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(buffer, Buffer):
            raise self.error(node, f"{ast.unparse(node)!r} is not a buffer here")
        return buffer

    def integer(self, node: ast.expr) -> int:
        """A literal integer, or a substitution that is one."""
        if isinstance(node, ast.Name) and (text := self.substitutions.get(node.id, "")).isdecimal():
            return int(text)
        return super().integer(node)

    def _name(self, node: ast.AST, name: str, scope: Scope) -> Expr:
        bound = scope.names.get(name)
        if isinstance(bound, Buffer):
            raise self.error(node, f"buffer {name!r} is used without an index")
        if bound is not None:
            return bound
        if name in self.substitutions:
            text = self.substitutions[name]
            return ExprParser([text], self.substitutions).expr(expression_tree(text.strip()), scope)
        if name in _NAMED:
            return ops.const(_NAMED[name], "f64")
        raise self.error(node, f"unknown name {name!r}; known: {', '.join(sorted(scope.names)) or 'none'}")

    def _unary(self, node: ast.AST, operator: ast.unaryop, operand: ast.expr, scope: Scope) -> Expr:
        number = isinstance(operand, ast.Constant) and type(operand.value) in (int, float, complex)
        named = isinstance(operand, ast.Name) and operand.id in _NAMED and operand.id not in scope.names
        if isinstance(operator, ast.USub) and (number or named):
            value = operand.value if isinstance(operand, ast.Constant) else _NAMED[ast.unparse(operand)]
            if type(value) is int and value == 1 << 63:
                return ops.const(-value, "i64")
            return self._literal(node, -value)  # type: ignore[operator]
        return super()._unary(node, operator, operand, scope)

    def _element(self, node: ast.AST, target: ast.expr, index: Expr, scope: Scope, lanes: int = 1) -> Expr:
        return self._load(node, self.buffer(target, scope), index, lanes)

    def _load(self, node: ast.AST, buffer: Buffer, index: Expr, lanes: int = 1) -> Load:
        if not (index.type.is_integer or index.type.scalar == "bool"):
            raise self.error(node, f"an index of type {index.type}")
        return ops.load(buffer.name, buffer.scalar, index, lanes)

    def _call(self, node: ast.Call, name: str, args: list[ast.expr], scope: Scope) -> Expr:
        if (to := read_type(name, self.substitutions)) is not None:
            if len(args) != 1:
                raise self.error(node, f"{name}() takes one argument, got {len(args)}")
            arg = self.expr(args[0], scope)
            return ops.cast(arg, to if to.lanes > 1 else to.with_lanes(arg.type.lanes))
        return super()._call(node, self.substitutions.get(name, name), args, scope)

    def _op(self, node: ast.AST, name: str, *args: Expr) -> Expr:
        count = ops.arity(name)
        if count is None:
            raise self.error(node, f"unknown operation {name!r}")
        if name in ("min", "max") and len(args) > 2:
            args = (self._op(node, name, *args[:-1]), args[-1])
        if len(args) != count:
            raise self.error(node, f"{name} takes {count} operands, got {len(args)}")
        try:
            return ops.op(name, *args)
        except CompilerBug as problem:
            raise self.error(node, str(problem)) from None

    def _call_cast(self, node: ast.Call, args: list[ast.expr], scope: Scope) -> Expr:
        value, to = self._arguments(node, args, 2)
        return Cast(self.expr(value, scope), self.type(to))

    def _call_const(self, node: ast.Call, args: list[ast.expr], scope: Scope) -> Expr:
        value, to = self._arguments(node, args, 2)
        arg = self.expr(value, scope)
        if not isinstance(arg, Const):
            raise self.error(node, "const() takes a literal")
        return ops.const(arg.value, self.type(to))

    def _call_complex(self, node: ast.Call, args: list[ast.expr], scope: Scope) -> Expr:
        parts = [self.expr(a, scope) for a in self._arguments(node, args, 2)]
        if not all(isinstance(p, Const) and not p.type.is_complex for p in parts):
            raise self.error(node, "complex() takes two real literals")
        real, imaginary = (float(p.value) for p in parts if isinstance(p, Const))  # type: ignore[arg-type]
        return ops.const(complex(real, imaginary), "c128")

    def _call_len(self, node: ast.Call, args: list[ast.expr], scope: Scope) -> Expr:
        """`len(name)` is the value that the scope binds to that text."""
        bound = scope.names.get(ast.unparse(node))
        if bound is None or isinstance(bound, Buffer):
            raise self.error(node, f"the length of {ast.unparse(args[0])!r} is not known here")
        return bound

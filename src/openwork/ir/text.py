"""Text -> loop IR: a subset of Python, read with `ast` and never executed.

    def spmv(lo: i64, hi: i64, pos: I[const], crd: I[const], A: T[const], x: T[const], y: T[mut]):
        for i in range(lo, hi):                # vector unroll:4
            acc: T = 0.0
            for p in range(pos[i], pos[i + 1]):
                acc += A[p] * x[crd[p]]
            y[i] = acc

`lo: i64, hi: i64` as the first parameters make the kernel ranged. `x = e` is a Let where x is new and an Assign where
x is a Mut (`x: T = e`), which holds e: a wider type is an error. A comment after `for` that holds nothing but hints
gives the loop's hints, and `# reassociate` after `def` sets that flag, `# grid of 64, subgroups of 16` makes a kernel
of the device form; comment lines before `def` are the kernel's notes. Also read: `vload(A, i, 8)`, `vstore(y, i, v)`,
`broadcast(v, 8)`, `prefetch(B, i)`, `call(dgemm, i32(n), A[i])`, `inf`, `nan`, `complex(re, im)`, `w: i64[n] = zeros`
(or `empty`), `a if c else b`, `a <= b < c`, `cast(e, f32)` (a Cast node even where `f32(e)` would fold), `const(0.0,
f64x8)`. Operands are promoted as `ir.ops.op` says.

Substitutions replace names of types (`T="f64"`), of operations (`OP="max"`), lane counts (`W="8"`), and, where
nothing of that name is bound, whole expressions (`fill="0.0"`).
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..errors import CompilerBug
from . import ops
from .loop import (
    GRID_VARIABLES,
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Expr,
    For,
    Grid,
    If,
    Kernel,
    Let,
    Local,
    Mut,
    Param,
    Prefetch,
    Return,
    Scalar,
    Shuffle,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from .syntax import syntax_tree
from .text_expr import OPERATORS, ExprParser, Scope, error
from .types import I64, Type

__all__ = ["Environment", "inlined", "parse", "parse_expr", "parse_stmts"]

Environment = Mapping[str, "Type | str | Buffer | Expr"]
"""Name -> its meaning: a variable of a type, a buffer (of its own name, whatever the key), or an expression."""

_HINTS = re.compile(r"(novector|vector|nounroll|unroll:\d+)([\s,]+(novector|vector|nounroll|unroll:\d+))*")


_COMMENT = re.compile(r"'[^']*'|\"[^\"]*\"|#(.*)")
"""A string, or a comment with its text."""
_GRID = re.compile(r"grid of (\d+), subgroups of (\d+)")


def parse(text: str, *, reassociate: bool = False, **substitutions: str) -> Kernel:
    """Read one kernel; raises CompilerBug that names the line."""
    text = textwrap.dedent(text).strip("\n")
    lines = text.splitlines()
    comments = _comments(text)
    tree = _tree(text, "exec")
    assert isinstance(tree, ast.Module)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise error(tree.body[0] if tree.body else None, lines, "expected one kernel: def name(...): ...")
    definition = tree.body[0]
    parser = _StmtParser(lines, substitutions, comments)
    params = [parser.param(a) for a in definition.args.args]
    ranged = params[:2] == [Scalar("lo"), Scalar("hi")]
    heads = [comments.get(r, "") for r in range(definition.lineno, definition.body[0].lineno)]
    grid = next((Grid(int(m[1]), int(m[2])) for m in map(_GRID.search, heads) if m), None)
    names: dict[str, Expr | Buffer] = {} if grid is None else {name: Var(name, I64) for name in GRID_VARIABLES}
    scope = Scope({**names, **{p.name: p if isinstance(p, Buffer) else Var(p.name, Type(p.scalar)) for p in params}})
    body = parser.block(definition.body, scope)
    notes = tuple(comments[r] for r in sorted(comments) if r < definition.lineno)
    flag = reassociate or any("reassociate" in head for head in heads)
    return Kernel(definition.name, tuple(params[2:] if ranged else params), body, ranged, flag, notes, grid)


def parse_expr(text: str, env: Environment | None = None, **substitutions: str) -> Expr:
    """Read one expression over the names of `env`."""
    text = text.strip()
    tree = _tree(text, "eval")
    assert isinstance(tree, ast.Expression)
    return ExprParser(text.splitlines(), substitutions).expr(tree.body, _scope(env or {}))


def parse_stmts(
    text: str, env: Environment | None, mutable: Iterable[str] = (), **substitutions: str
) -> tuple[Stmt, ...]:
    """Read statements over the names of `env`; those in `mutable` are variables that may be assigned."""
    text = textwrap.dedent(text).strip("\n")
    tree = _tree(text, "exec")
    assert isinstance(tree, ast.Module)
    scope = _scope(env or {})
    for name in mutable:
        bound = scope.names[name]
        assert isinstance(bound, Var), name
        scope.muts[name] = bound.type
    return _StmtParser(text.splitlines(), substitutions, _comments(text)).block(tree.body, scope)


def inlined(text: str, parts: Mapping[str, str]) -> str:
    """The text with every line that holds nothing but a name of `parts` replaced by that part, indented as the line is.

    Parts are replaced in order: one may name those after it.
    """
    return _inlined(text, tuple(parts.items()))


@lru_cache(maxsize=512)
def _inlined(text: str, parts: tuple[tuple[str, str], ...]) -> str:
    for name, part in parts:
        if name in text:
            lines = text.splitlines()
            for at, line in enumerate(lines):
                if line.strip() == name:
                    lines[at] = textwrap.indent(part.strip("\n"), line[: len(line) - len(line.lstrip())])
            text = "\n".join(lines)
    return text


def _tree(text: str, mode: str) -> ast.AST:
    try:
        return syntax_tree(text, mode, "<kernel>")
    except SyntaxError as error:
        raise CompilerBug(
            f"loop IR text, line {error.lineno}: {error.msg}\n  {(error.text or text).rstrip()}"
        ) from None


def _scope(env: Environment) -> Scope:
    names: dict[str, Expr | Buffer] = {}
    for name, bound in env.items():
        kind = Type(bound) if isinstance(bound, str) else bound
        names[name] = Var(name, kind) if isinstance(kind, Type) else kind
    return Scope(names)


def _comments(text: str) -> dict[int, str]:
    """The comment of each line that has one, without the mark."""
    marked = ((row, line) for row, line in enumerate(text.split("\n"), 1) if "#" in line)
    found = ((row, m[1]) for row, line in marked for m in _COMMENT.finditer(line) if m[1] is not None)
    return {row: comment.strip() for row, comment in found}


class _StmtParser(ExprParser):
    def __init__(self, lines: list[str], substitutions: Mapping[str, str], comments: Mapping[int, str]) -> None:
        super().__init__(lines, substitutions)
        self.comments = comments

    def param(self, node: ast.arg) -> Param:
        match node.annotation:
            case ast.Name() as name:
                return Scalar(node.arg, self._scalar(name))
            case ast.Subscript(value=scalar, slice=ast.Name(id="const" | "mut" as access)):
                return Buffer(node.arg, self._scalar(scalar), access == "mut")
        raise self.error(node, f"parameter {node.arg!r} needs a type: f64, f64[const] or f64[mut]")

    def _scalar(self, node: ast.expr) -> str:
        type = self.type(node)
        if type.lanes > 1:
            raise self.error(node, f"expected a scalar type, got {type}")
        return type.scalar

    def block(self, nodes: list[ast.stmt], scope: Scope) -> tuple[Stmt, ...]:
        """Statements in `scope`, which they extend."""
        result = (self.stmt(n, scope) for n in nodes if not _is_filler(n))
        return tuple(result)

    def stmt(self, node: ast.stmt, scope: Scope) -> Stmt:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="shuffle"), args=[value, mask])
            ):
                moved = self.expr(value, scope)
                self._bind(node, name, Var(name, moved.type), scope)
                return Shuffle(name, moved, self.integer(mask))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="swap"), args=args)):
                return self._swap(node, name, args, scope)
            case ast.Expr(value=ast.Call(func=ast.Name(id="barrier"), args=[])):
                return Barrier()
            case ast.Expr(value=ast.Call(func=ast.Name(id="atomic"), args=[ast.Constant(value=op), place, value])):
                if not isinstance(place, ast.Subscript) or not isinstance(op, str):
                    raise self.error(node, "expected atomic('OP', BUFFER[INDEX], VALUE)")
                target, index = place.value, place.slice
                stored = self._store(node, self.buffer(target, scope), self.expr(index, scope), self.expr(value, scope))
                return Atomic(op, stored.buffer, stored.index, stored.value)
            case ast.Assign(targets=[target], value=value):
                return self._assign(node, target, self.expr(value, scope), scope)
            case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in OPERATORS:
                return self._augment(node, target, OPERATORS[type(operator)], self.expr(value, scope), scope)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if value is not None:
                return self._declare(node, name, annotation, value, scope)
            case ast.For(target=ast.Name(id=name), orelse=[]):
                return self._for(node, name, scope)
            case ast.While(test=test, body=body, orelse=[]):
                return While(self._condition(test, scope), self.block(body, scope.child()))
            case ast.If(test=test, body=body, orelse=orelse):
                cond = self._condition(test, scope)
                return If(cond, self.block(body, scope.child()), self.block(orelse, scope.child()))
            case ast.Return(value=value):
                status: Expr = ops.const(0) if value is None else ops.cast(self.expr(value, scope), I64)
                return Return(status)
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefetch"), args=[target, index])):
                return Prefetch(self.buffer(target, scope).name, self._offset(index, scope))
            case ast.Expr(value=ast.Call(func=ast.Name(id="call"), args=[ast.Name(id=function), *args])):
                return Call(self._function(node, function, scope), tuple(self.expr(a, scope) for a in args))
            case ast.Expr(value=ast.Call(func=ast.Name(id="vstore"), args=[target, index, value])):
                return self._store(node, self.buffer(target, scope), self.expr(index, scope), self.expr(value, scope))
        raise self.error(node, f"{ast.unparse(node).splitlines()[0]!r} is not in the syntax")

    def _swap(self, node: ast.stmt, name: str, args: list[ast.expr], scope: Scope) -> Swap:
        if len(args) != 3 or not isinstance(args[0], ast.Subscript):
            raise self.error(node, "expected NAME = swap(BUFFER[INDEX], EXPECTED, VALUE)")
        buffer, index = self.buffer(args[0].value, scope), self.expr(args[0].slice, scope)
        expected, value = (self._store(node, buffer, index, self.expr(a, scope)) for a in args[1:])
        self._bind(node, name, Var(name, value.value.type), scope)
        return Swap(name, value.buffer, value.index, expected.value, value.value)

    def _function(self, node: ast.stmt, name: str, scope: Scope) -> str:
        bound = scope.names.get(name)
        if not isinstance(bound, Var) or bound.type != I64:
            raise self.error(node, f"{name!r} is not the address of a function, an i64")
        return bound.name

    def _offset(self, node: ast.expr, scope: Scope) -> Expr:
        value = self.expr(node, scope)
        if not (value.type.is_integer or value.type.scalar == "bool"):
            raise self.error(node, f"expected an integer, got {value.type}")
        return ops.cast(value, I64.with_lanes(value.type.lanes))

    def _condition(self, node: ast.expr, scope: Scope) -> Expr:
        return ops.cast(self.expr(node, scope), "bool")

    def _bind(self, node: ast.AST, name: str, bound: Expr | Buffer, scope: Scope) -> None:
        if name in scope.names:
            raise self.error(node, f"{name!r} is bound already")
        scope.names[name] = bound

    def _assign(self, node: ast.stmt, target: ast.expr, value: Expr, scope: Scope) -> Stmt:
        match target:
            case ast.Name(id=name) if name in scope.muts:
                bound = scope.names[name]
                assert isinstance(bound, Var)
                kind = scope.muts[name]
                if not ops.holds(kind, value):
                    help = f"declare {name} as {value.type.scalar}, or write {kind.scalar}(...)"
                    raise self.error(node, f"{value.type} does not fit in {name!r}, which is {kind}\n  help: {help}")
                return Assign(bound.name, ops.cast(value, kind))
            case ast.Name(id=name):
                self._bind(node, name, Var(name, value.type), scope)
                return Let(name, value)
            case ast.Subscript(value=buffer, slice=index):
                return self._store(node, self.buffer(buffer, scope), self.expr(index, scope), value)
        raise self.error(node, f"cannot assign to {ast.unparse(target)!r}")

    def _augment(self, node: ast.stmt, target: ast.expr, op: str, value: Expr, scope: Scope) -> Stmt:
        match target:
            case ast.Name(id=name) if name not in scope.muts:
                raise self.error(node, f"{name!r} is not a variable that can change (declare it: {name}: type = value)")
            case ast.Subscript(value=name_node, slice=index_node):
                buffer, index = self.buffer(name_node, scope), self.expr(index_node, scope)
                old = self._load(node, buffer, index, value.type.lanes)
                return self._store(node, buffer, index, self._op(node, op, old, value))
        return self._assign(node, target, self._op(node, op, self.expr(target, scope), value), scope)

    def _store(self, node: ast.stmt, buffer: Buffer, index: Expr, value: Expr) -> Store:
        if not buffer.mutable:
            raise self.error(node, f"buffer {buffer.name!r} is only read")
        offset = self._load(node, buffer, index).index
        lanes = max(value.type.lanes, index.type.lanes)
        return Store(buffer.name, offset, ops.cast(value, Type(buffer.scalar, lanes)))

    def _declare(self, node: ast.stmt, name: str, annotation: ast.expr, value: ast.expr, scope: Scope) -> Stmt:
        if isinstance(annotation, ast.Subscript):
            scalar, size = self._scalar(annotation.value), self._offset(annotation.slice, scope)
            if not (isinstance(value, ast.Name) and value.id in ("zeros", "empty", "local")):
                raise self.error(node, "a workspace is declared `= zeros` or `= empty`, local memory `= local`")
            self._bind(node, name, Buffer(name, scalar, mutable=True), scope)
            if value.id == "local":
                return Local(name, scalar, self.integer(annotation.slice))
            return Alloc(name, scalar, size, value.id == "zeros")
        kind = self.type(annotation)
        initial = ops.cast(self.expr(value, scope), kind)
        self._bind(node, name, Var(name, kind), scope)
        scope.muts[name] = kind
        return Mut(name, initial)

    def _for(self, node: ast.For, name: str, scope: Scope) -> For:
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[hi]):
                lo_expr: Expr = ops.const(0)
                hi_expr, step = self._offset(hi, scope), 1
            case ast.Call(func=ast.Name(id="range"), args=[lo, hi, *rest]) if len(rest) < 2:
                lo_expr, hi_expr = self._offset(lo, scope), self._offset(hi, scope)
                step = self.integer(rest[0]) if rest else 1
            case _:
                raise self.error(node, "expected `for name in range(...)`")
        if step <= 0:
            raise self.error(node, f"the step is {step}; expected a positive one")
        inner = scope.child()
        self._bind(node, name, Var(name, I64), inner)
        return For(name, lo_expr, hi_expr, self.block(node.body, inner), step, self._hints(node))

    def _hints(self, node: ast.For) -> tuple[str, ...]:
        comment = self.comments.get(node.lineno, "")
        return tuple(re.split(r"[\s,]+", comment)) if _HINTS.fullmatch(comment) else ()


def _is_filler(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )

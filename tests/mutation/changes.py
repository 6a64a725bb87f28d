"""Source text -> every small change of it: operators, comparisons, constants, conditions, statements, arguments, names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Change", "changes", "makes_sense"]

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
_COMMUTATIVE = {"max", "min", "np.maximum", "np.minimum", "np.multiply", "np.add", "math.gcd", "math.lcm"}
_NAMED_BY_MACHINES = {"__all__", "__slots__", "__match_args__"}
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Change:
    """Characters [start, end) of the text become `after`. `lines` are those of the statement, `body` of its function."""

    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str
    lines: tuple[int, int]
    body: tuple[int, int] | None

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.after + text[self.end :]

    def __str__(self) -> str:
        return f"{self.line} [{self.kind}]: {_one_line(self.before)} -> {_one_line(self.after)}"


def changes(text: str) -> list[Change]:
    """All changes of a module's text, in order; none of docstrings, annotations, messages and `__all__`."""
    return list(_Finder(text).module(ast.parse(text)))


def makes_sense(change: Change, text: str) -> bool:
    """Whether the changed text compiles, to something else than the text as it was."""
    try:
        other = ast.parse(change.apply(text))
        compile(other, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return ast.dump(other) != ast.dump(ast.parse(text))


class _Finder:
    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        for row in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(row))
        self.rows = text.splitlines()
        self.body: tuple[int, int] | None = None
        self.names: list[str] = []
        self.lines = (1, 1)

    def at(self, line: int, column: int) -> int:
        """The character of a line's byte `column`."""
        return self.starts[line - 1] + len(self.rows[line - 1].encode()[:column].decode())

    def change(self, node: ast.expr | ast.stmt, kind: str, after: str) -> Change:
        start, end = self.at(node.lineno, node.col_offset), self.at(node.end_lineno or 0, node.end_col_offset or 0)
        return Change(node.lineno, kind, start, end, self.text[start:end], after, self.lines, self.body)

    def other(self, node: ast.expr, kind: str, after: ast.expr) -> Change:
        return self.change(node, kind, f"({ast.unparse(after)})")

    def module(self, tree: ast.Module) -> Iterator[Change]:
        yield from self.statements(tree.body)

    def statements(self, body: list[ast.stmt]) -> Iterator[Change]:
        for stmt in body:
            if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
                continue  # a docstring
            yield from self.statement(stmt)

    def statement(self, stmt: ast.stmt) -> Iterator[Change]:
        before = self.lines, self.body, self.names
        self.lines = stmt.lineno, stmt.end_lineno or stmt.lineno
        match stmt:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self.function(stmt)
            case ast.ClassDef():
                yield from self.statements(stmt.body)
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal():
                pass
            case ast.Raise():
                yield self.change(stmt, "statement dropped", "pass")
            case ast.Assign(targets=[ast.Name(id=name)]) if name in _NAMED_BY_MACHINES:
                pass
            case ast.If(test=test) if ast.unparse(test).endswith("TYPE_CHECKING"):
                pass
            case _:
                yield from self.parts(stmt)
        self.lines, self.body, self.names = before

    def function(self, f: Functions) -> Iterator[Change]:
        for value in (*f.args.defaults, *(d for d in f.args.kw_defaults if d is not None)):
            yield from self.expression(value)
        if any("overload" in ast.unparse(d) for d in f.decorator_list):
            return
        self.body = f.body[0].lineno, f.end_lineno or f.lineno
        arguments = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        bound = [n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.names = sorted({*self.names, *arguments, *bound} - {"self", "cls", "_"})
        yield from self.statements(f.body)

    def parts(self, stmt: ast.stmt) -> Iterator[Change]:
        """A statement that may be dropped, its expressions, and the statements inside."""
        match stmt:
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
                yield self.change(stmt, "statement dropped", "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self.change(stmt, "statement dropped", "pass")
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self.change(stmt, "result dropped", "return None")
            case ast.Break() | ast.Continue():
                yield self.change(stmt, "statement dropped", "pass")
            case ast.If(test=test):
                yield from self.condition(test)
            case ast.While(test=test):
                yield self.change(test, "condition", "False")
            case _:
                pass
        if isinstance(stmt, ast.AugAssign) and type(stmt.op) in _OPERATORS:
            swapped = ast.AugAssign(stmt.target, _OPERATORS[type(stmt.op)](), stmt.value)
            yield self.change(stmt, "operator", ast.unparse(swapped))
        for name, field in ast.iter_fields(stmt):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for item in field if isinstance(field, list) else [field]:
                yield from self.part(item)

    def part(self, item: object) -> Iterator[Change]:
        match item:
            case ast.stmt():
                yield from self.statement(item)
            case ast.expr():
                yield from self.expression(item)
            case ast.ExceptHandler():
                yield from self.statements(item.body)
            case ast.match_case():
                if item.guard is not None:
                    yield from self.condition(item.guard)
                    yield from self.expression(item.guard)
                yield from self.statements(item.body)
            case ast.withitem():
                yield from self.expression(item.context_expr)

    def condition(self, test: ast.expr) -> Iterator[Change]:
        yield self.change(test, "condition", f"(not ({ast.unparse(test)}))")
        for value in ("True", "False"):
            yield self.change(test, "condition", value)

    def expression(self, e: ast.expr) -> Iterator[Change]:
        match e:
            case ast.JoinedStr():
                return  # a text for people, or a key: its parts are changed where they are computed
            case ast.BinOp(op=op) if type(op) in _OPERATORS and not _is_text(e):
                yield self.other(e, "operator", ast.BinOp(e.left, _OPERATORS[type(op)](), e.right))
            case ast.BoolOp():
                yield self.other(
                    e, "operator", ast.BoolOp(ast.Or() if isinstance(e.op, ast.And) else ast.And(), e.values)
                )
                for at in range(len(e.values)):
                    left = e.values[:at] + e.values[at + 1 :]
                    yield self.other(e, "operand dropped", left[0] if len(left) == 1 else ast.BoolOp(e.op, left))
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
                yield self.other(e, "operator", e.operand)
            case ast.Compare():
                yield from self.comparison(e)
            case ast.IfExp(test=test):
                yield from self.condition(test)
            case ast.Call():
                yield from self.call(e)
            case ast.Constant():
                yield from self.constant(e)
                return
            case ast.Name(ctx=ast.Load(), id=name):
                others = [n for n in self.names if n != name] if name in self.names else []
                yield from (self.change(e, "name", other) for other in others)
                return
            case ast.Lambda():
                yield from self.expression(e.body)
                return
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for test in (t for g in e.generators for t in g.ifs):
                    yield from self.condition(test)
        yield from self.inside(e)

    def inside(self, e: ast.expr) -> Iterator[Change]:
        for node in ast.iter_child_nodes(e):
            if isinstance(node, ast.keyword):
                yield from self.expression(node.value)
            elif isinstance(node, ast.comprehension):
                for part in (node.iter, *node.ifs):
                    yield from self.expression(part)
            elif isinstance(node, ast.expr):
                yield from self.expression(node)

    def comparison(self, e: ast.Compare) -> Iterator[Change]:
        for at, op in enumerate(e.ops):
            for other in _COMPARISONS[type(op)]:
                yield self.other(
                    e, "comparison", ast.Compare(e.left, [*e.ops[:at], other(), *e.ops[at + 1 :]], e.comparators)
                )
        for part in (e.left, *e.comparators):
            texts = [part] if isinstance(part, ast.Constant) else getattr(part, "elts", [])
            for text in texts:
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield self.change(text, "constant", repr(f"not {text.value}"))

    def call(self, e: ast.Call) -> Iterator[Change]:
        for at, (one, two) in enumerate(zip(e.args, e.args[1:], strict=False)):
            if not isinstance(one, ast.Starred) and not isinstance(two, ast.Starred) and not _commutes(e):
                args = [*e.args[:at], two, one, *e.args[at + 2 :]]
                yield self.other(e, "arguments swapped", ast.Call(e.func, args, e.keywords))
        for at, keyword in enumerate(e.keywords):
            if keyword.arg is not None and keyword.arg != "strict":  # which asserts, and gives nothing
                rest = e.keywords[:at] + e.keywords[at + 1 :]
                yield self.other(e, "argument dropped", ast.Call(e.func, e.args, rest))

    def constant(self, e: ast.Constant) -> Iterator[Change]:
        match e.value:
            case bool():
                yield self.change(e, "constant", str(not e.value))
            case int():
                yield self.change(e, "constant", f"({e.value + 1})")
                yield self.change(e, "constant", f"({e.value - 1})")
            case float():
                yield self.change(e, "constant", f"({e.value + 1!r})")


def _commutes(e: ast.Call) -> bool:
    """Whether the call's arguments are numbers or arrays in any order."""
    return not e.keywords and ast.unparse(e.func) in _COMMUTATIVE


def _is_none(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is None


def _is_text(e: ast.BinOp) -> bool:
    sides = (e.left, e.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())

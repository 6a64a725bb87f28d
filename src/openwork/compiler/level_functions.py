"""The text of a level function, and the level of an operand -> loop IR."""

from __future__ import annotations

import ast
from functools import lru_cache

from ..classes import frozen
from ..errors import CompilerBug
from ..format.expression import Div, Expression, Mod, Sub
from ..format.level import LevelFormat
from ..ir.loop import Expr
from ..ir.ops import cast, const, load
from ..ir.syntax import expression_tree
from ..ir.text_expr import ExprReader
from .build import Parameters
from .fold import fold
from .intervals import Interval
from .operand import Operand, ParamRef

__all__ = ["Level", "evaluate", "is_signed", "position_at"]


def is_signed(e: Expression) -> bool:
    """Whether the expression takes negative values, so that its level's coordinates begin below zero."""
    match e:
        case Sub():
            return True
        case Div(base, _):
            return is_signed(base)
    return False


def position_at(parent: Expr, c: Expr, low: Expr, size: Expr) -> Expr:
    """The position of coordinate `c` below the position `parent` of a result, in a level with one for every coordinate.

    p, c, lo, N -> p * N + (c - lo), as the levels' own `locate` says of operands.
    """
    return fold("add", fold("mul", parent, size), fold("sub", c, low))


@lru_cache(maxsize=512)
def _tree(text: str) -> ast.expr:
    return expression_tree(text)


def evaluate(text: str, level: Level, env: dict[str, Expr], lanes: int = 1) -> Expr:
    """Loop IR of a level function's text; names come from `env` (`p`, `q`, `c`, `batch`), else from the level.

    With several lanes, buffers are read at that many consecutive positions.
    """

    return _Reader(text, level, lanes).expr(_tree(text), env)


class _Reader(ExprReader[dict[str, Expr]]):
    """Sums and products of names and of elements of the level's buffers, and comparisons of these."""

    def __init__(self, text: str, level: Level, lanes: int) -> None:
        self.text, self.level, self.lanes = text, level, lanes

    def error(self, node: ast.AST | None, message: str) -> CompilerBug:
        return CompilerBug(f"level function {self.text!r} of {self.level.format.name}: {message}")

    def _name(self, node: ast.AST, name: str, scope: dict[str, Expr]) -> Expr:
        value = scope.get(name)
        return self.level.name(name) if value is None else value

    def _element(self, node: ast.AST, target: ast.expr, index: Expr, scope: dict[str, Expr], lanes: int = 1) -> Expr:
        return self.level.load(ast.unparse(target), index, scope.get("batch"), self.lanes)

    def _op(self, node: ast.AST, name: str, *args: Expr) -> Expr:
        return fold(name, args[0], args[1])


@frozen(slots=False)
class Level:
    """Level `index` of the operand `tensor`, as a kernel sees it; its interval is a parameter where none is given."""

    tensor: str
    index: int
    operand: Operand
    params: Parameters
    interval: Interval | None = None

    @property
    def format(self) -> LevelFormat:
        assert self.operand.format is not None
        return self.operand.format.levels[self.index].format

    @property
    def expression(self) -> Expression:
        assert self.operand.format is not None
        return self.operand.format.levels[self.index].expression

    @property
    def constant_extent(self) -> int | None:
        """The number of coordinates, where the format alone tells it."""
        e = self.expression
        return e.divisor if isinstance(e, Mod) else None

    def name(self, name: str) -> Expr:
        """The value of a name in level functions: `lo` and `hi`, the extent `N`, an argument of the level format."""
        if name == "hi":
            return fold("add", self.name("lo"), self.name("N"))
        if self.interval is not None and name in ("lo", "N"):
            return self.interval.lo if name == "lo" else self.interval.size
        if name == "lo":
            signed = is_signed(self.expression)
            return self.params.scalar(ParamRef("lower", self.tensor, self.index)) if signed else const(0)
        if name == "N":
            n = self.constant_extent
            return const(n) if n is not None else self.params.scalar(ParamRef("size", self.tensor, self.index))
        arguments = dict(zip(self.format.parameters, self.format.arguments, strict=True))
        if name in arguments:
            return const(arguments[name])
        raise CompilerBug(f"level function of {self.format.name} uses the unknown name {name!r}")

    def load(self, buffer: str, index: Expr, batch: Expr | None, lanes: int = 1) -> Expr:
        """One element of the level's pos or crd, widened to i64 unless it is a bool."""
        scalar = (self.operand.pos if buffer == "pos" else self.operand.crd)[self.index]
        if scalar is None:
            raise CompilerBug(f"level {self.index} of {self.tensor} ({self.format.name}) stores no {buffer}")
        name = self.params.buffer(ParamRef(buffer, self.tensor, self.index), scalar)
        value = load(name, scalar, self.sliced(buffer, index, batch), lanes)
        return value if scalar == "bool" else cast(value, "i64")

    def sliced(self, part: str, index: Expr, batch: Expr | None) -> Expr:
        """`index` within the batch's slice of a buffer."""
        if batch is None:
            return index
        stride = self.params.scalar(ParamRef("slice", self.tensor, self.index, part))
        return fold("add", fold("mul", batch, stride), index)

"""Workspaces of a co-iteration: rows of coordinates and values below one parent, stored by one loop, read by the next.

A row holds the intersection of some operands on the innermost level, or the value of a part of an expression there.
Its buffers are as long as the shortest operand or the level's extent, and are written anew for every parent: while rows
are short they stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...format.expression import Expression
from ...ir.loop import Alloc, Expr, Load, Var
from ...ir.ops import cast, const, load, op
from ...ir.types import I64
from ..build import Array, Block, Builder
from ..conversion.level_runs import Kind, Run
from .code_size import SLACK
from .cursor import Cursor, Source, Walker
from .output import Output

__all__ = ["Column", "RowOutput", "Row", "workspace"]

Column = Callable[[Expr], Expr]
"""The value at a position."""


def workspace(builder: Builder, name: str, scalar: str, size: Expr, wide: bool = False) -> Array:
    """A temporary buffer of `size` + SLACK elements: vector code reads and writes past the end."""
    buffer = builder.fresh(name)
    builder.top.stmts.append(Alloc(buffer, scalar, op("add", size, const(SLACK)), False))
    return Array(buffer, scalar, wide)


class Row(Source):
    """A row of at most `size` elements, walked like an operand's level. `at`: the variable of its position, where other
    operands are read at the same position."""

    def __init__(
        self,
        name: str,
        expression: Expression,
        crd: Array,
        count: Expr,
        size: Expr,
        column: Column,
        at: Var | None = None,
    ) -> None:
        self.name, self.expression, self.crd, self.count, self.size = name, expression, crd, count, size
        self.column, self.at = column, at

    @property
    def nlevels(self) -> int:
        return 1

    @property
    def has_followers(self) -> bool:
        return self.at is not None

    def counts(self, cursor: Cursor) -> Expression | None:
        return self.expression

    def at_leaf(self, cursor: Cursor) -> bool:
        return cursor.depth == 1

    def is_walked(self, point: Cursor) -> bool:
        return True

    def contiguous(self, cursor: Cursor) -> bool:
        """Not for rows of matches: they are short, and were stored one by one just before a block would be loaded."""
        return self.element_type is not None

    @property
    def element_type(self) -> str | None:
        at = Var("at", I64)
        value = self.column(at)
        return value.type.scalar if isinstance(value, Load) and value.index == at else None

    def coordinate_block(self, cursor: Cursor, q: Expr, lanes: int, beyond: int = 0) -> tuple[Expr | None, Expr]:
        read = load(self.crd.name, self.crd.scalar, q, lanes)
        return None, cast(read, "i64") if self.crd.wide else read

    def scalar(self, cursor: Cursor) -> str:
        return self.crd.scalar

    def unique(self, cursor: Cursor) -> bool:
        return True

    def may_lack(self, cursor: Cursor, entered: bool) -> bool:
        return False

    def coordinate(self, point: Cursor, q: Expr, lanes: int = 1) -> Expr:
        return self.crd.read(q, lanes)

    def seeks(self, cursor: Cursor) -> bool:
        return True

    def before(self, point: Cursor, q: Expr, c: Expr) -> Expr:
        return op("lt", self.crd.read(q), c)

    def walker(self, block: Block, cursor: Cursor, lower: Expr | None, upper: Expr | None) -> Walker:
        return self.restart(block) if self.at is None else Walker(self.at, self.count)

    def restart(self, block: Block) -> Walker:
        """A walker from the row's begin, with a position of its own."""
        return Walker(block.mut(f"q{self.name}", const(0)), self.count)

    def value(self, position: Expr, batch: Expr | None) -> Expr:
        return self.column(position)


class RowOutput(Output):
    """The output of a loop into a row of the workspace, in place of the result's last level."""

    def __init__(self, block: Block, out: Output, at: int, crd: Array, values: Array, scalar: str) -> None:
        self.builder, self.format, self.crd, self.values = out.builder, out.format, crd, values
        self.target = replace(out.target, scalar=scalar)
        run = Run(Kind.CHAIN, at, at)
        self.runs, self.chains = (run,), [run]
        self.count = block.mut("n", const(0))
        self.counters = {run: self.count}

    def visits_all(self, at: int) -> bool:
        return False

    def _index_buffer(self, part: str, at: int) -> Array:
        return self.crd

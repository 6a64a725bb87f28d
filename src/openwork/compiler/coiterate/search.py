"""A monotone predicate over positions -> loop IR of a search for where it ends: bisection, or galloping.

high, step = at, 1                               gallop: a goal d positions away takes 2 log d comparisons
while high < end and before(high):
    at = high + 1
    high += step; step += step
bisection between at and min(high, end)
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.loop import Expr, Var
from ...ir.ops import const, op
from ..build import Block

__all__ = ["bisect", "gallop"]

Before = Callable[[Expr], Expr]
"""Whether a position lies before the goal: true up to some position, false from there on."""


def bisect(block: Block, low: Var, high: Var, before: Before) -> None:
    """Move `low` to the first position from there to `high` that does not lie before the goal."""

    def halve(inner: Block) -> None:
        middle = inner.let("middle", op("shr", op("add", low, high), const(1)))
        inner.when(
            before(middle), lambda b: b.assign(low, op("add", middle, const(1))), lambda b: b.assign(high, middle)
        )

    block.run("while TEST:\n    HALVE", TEST=op("lt", low, high), HALVE=halve)


def gallop(block: Block, at: Var, end: Expr, before: Before) -> None:
    """As `bisect` up to `end`, in time logarithmic in the distance."""
    high, step = block.mut("high", at), block.mut("step", const(1))

    def leap(inner: Block) -> None:
        inner.assign(at, op("add", high, const(1)))
        inner.assign(high, op("add", high, step))
        inner.assign(step, op("add", step, step))

    block.run("while TEST:\n    LEAP", TEST=op("and", op("lt", high, end), before(high)), LEAP=leap)
    block.assign(high, op("min", high, end))
    bisect(block, at, high, before)

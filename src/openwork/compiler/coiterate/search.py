"""Emits searches among ordered positions: bisection, and galloping by leaps that grow from where one stands.

high, step = at, 1                               gallop: a goal that is d places away takes 2 log d looks
while high < end and before(high):
    at = high + 1
    high += step; step += step
between at and min(high, end) by halves
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.loop import Expr, Var
from ...ir.ops import const, op
from ..build import Block

__all__ = ["bisect", "gallop"]

Before = Callable[[Expr], Expr]
"""Whether a place lies before the goal; it does up to some place, and no more from there on."""


def bisect(block: Block, low: Var, high: Var, before: Before) -> None:
    """Move `low` to the first place from there to `high` that does not lie before the goal."""

    def halve(inner: Block) -> None:
        middle = inner.let("middle", op("shr", op("add", low, high), const(1)))
        inner.when(
            before(middle), lambda b: b.assign(low, op("add", middle, const(1))), lambda b: b.assign(high, middle)
        )

    block.run("while TEST:\n    HALVE", TEST=op("lt", low, high), HALVE=halve)


def gallop(block: Block, at: Var, end: Expr, before: Before) -> None:
    """As `bisect`, in time that grows with how far it is."""
    high, step = block.mut("high", at), block.mut("step", const(1))

    def leap(inner: Block) -> None:
        inner.assign(at, op("add", high, const(1)))
        inner.assign(high, op("add", high, step))
        inner.assign(step, op("add", step, step))

    block.run("while TEST:\n    LEAP", TEST=op("and", op("lt", high, end), before(high)), LEAP=leap)
    block.assign(high, op("min", high, end))
    bisect(block, at, high, before)

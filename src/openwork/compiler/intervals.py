"""Expressions of levels over extents and coordinates -> their intervals and values as loop IR."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ..classes import frozen
from ..format.cached import cached
from ..format.expression import Add, Dim, Div, Expression, Mod, Sub, dimensions
from ..format.format import Format
from ..ir.loop import Expr
from ..ir.ops import const, op
from .build import Block
from .fold import fold

__all__ = ["Gap", "Interval", "coordinate_of", "gaps", "interval_of", "intervals"]


@frozen
class Interval:
    """The coordinates lo <= c < lo + size of a level, as expressions over the extents."""

    lo: Expr
    size: Expr

    @property
    def hi(self) -> Expr:
        return fold("add", self.lo, self.size)


def interval_of(e: Expression, extents: Sequence[Expr]) -> Interval:
    """`format.expression.interval` over expressions; a remainder's size is its constant divisor."""
    match e:
        case Dim(i):
            return Interval(const(0), extents[i])
        case Add(Dim(i), Dim(j)) | Sub(Dim(i), Dim(j)):
            m, n = extents[i], extents[j]
            nonempty = op("and", op("gt", m, const(0)), op("gt", n, const(0)))
            size = op("select", nonempty, fold("sub", fold("add", m, n), const(1)), const(0))
            if isinstance(e, Add):
                return Interval(const(0), size)
            return Interval(op("select", nonempty, fold("sub", const(1), n), const(0)), size)
        case Div(base, c):
            inner = interval_of(base, extents)
            lo = fold("floordiv", inner.lo, const(c))
            last = fold("floordiv", fold("sub", inner.hi, const(1)), const(c))
            return Interval(lo, fold("sub", fold("add", last, const(1)), lo))
        case Mod(_, c):
            return Interval(const(0), const(c))


def intervals(block: Block, prefix: str, format: Format, extents: Sequence[Expr]) -> tuple[Interval, ...]:
    """The intervals of all levels, bound to names `{prefix}_lo{l}` and `{prefix}_n{l}` here."""
    named = []
    for at, level in enumerate(format.levels):
        e = level.expression
        interval = interval_of(e, extents)
        above = {d for x in format.levels[:at] for d in dimensions(x.expression)}
        if _size(e) is not None and not above.issuperset(dimensions(e)):
            nonempty = reduce(lambda a, b: op("and", a, b), [op("gt", extents[d], const(0)) for d in dimensions(e)])
            interval = Interval(interval.lo, op("select", nonempty, interval.size, const(0)))
        named.append(Interval(block.let(f"{prefix}_lo{at}", interval.lo), block.let(f"{prefix}_n{at}", interval.size)))
    return tuple(named)


def coordinate_of(e: Expression, dims: Sequence[Expr]) -> Expr:
    """The value of a level expression at dimension coordinates."""
    match e:
        case Dim(i):
            return dims[i]
        case Add(Dim(i), Dim(j)):
            return fold("add", dims[i], dims[j])
        case Sub(Dim(i), Dim(j)):
            return fold("sub", dims[i], dims[j])
        case Div(base, c):
            return fold("floordiv", coordinate_of(base, dims), const(c))
        case Mod(base, c):
            return fold("mod", coordinate_of(base, dims), const(c))


@frozen
class Gap:
    """A split that leaves slots without a value: the sum of `form`, (level, factor) each, must lie below `size`.

    In `i % 6 // 4`, `i % 6 % 4` six values of i spread over two times four slots: 4 * (i % 6 // 4) + i % 6 % 4 < 6.
    """

    dims: tuple[int, ...]
    form: tuple[tuple[int, int], ...]
    size: int


@cached(4096)
def gaps(format: Format) -> tuple[Gap, ...]:
    """The splits of a format's levels that leave slots without a value."""
    levels = {level.expression: at for at, level in enumerate(format.levels)}
    splits: dict[Expression, int] = {}
    parts: list[Expression] = list(levels)
    while parts:
        if isinstance(e := parts.pop(), Div | Mod):
            splits[e.base] = e.divisor
            parts.append(e.base)

    def form(e: Expression) -> dict[int, int]:
        if e in levels:
            return {levels[e]: 1}
        quotient, remainder = form(Div(e, splits[e])), form(Mod(e, splits[e]))
        return {at: factor * splits[e] for at, factor in quotient.items()} | remainder

    sizes = {e: size for e, c in splits.items() if (size := _size(e)) is not None and size % c}
    return tuple(Gap(tuple(dimensions(e)), tuple(sorted(form(e).items())), size) for e, size in sizes.items())


def _size(e: Expression) -> int | None:
    """How many coordinates a remainder's level has, or a quotient's of one; None for others."""
    match e:
        case Div(base, c):
            size = _size(base)
            return None if size is None else -(-size // c)
        case Mod(_, c):
            return c
    return None

"""Hypothesis strategies for formats and shapes: every level format and property, blocks, diagonals, hybrids, batch."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from openwork.format.expression import Add, Dim, Div, Expression, Mod, Sub
from openwork.format.format import Format, Level
from openwork.format.inverse import solve
from openwork.format.level import LevelFormat
from openwork.format.levels import Batch, Bitmap, Compressed, Dense, Ell, LooseCompressed, Range, Singleton, Structured

__all__ = ["formats", "shapes"]


@st.composite
def formats(
    draw: st.DrawFn,
    ndim: int | None = None,
    *,
    max_ndim: int = 4,
    kinds: Sequence[type[LevelFormat]] | None = None,
    max_batch: int = 2,
    max_dense: int = 2,
    blocks: bool = True,
    diagonals: bool = True,
    properties: bool = True,
) -> Format:
    """Any legal format. `kinds` limits the level formats (dense is always allowed), `properties=False` gives unique
    and ordered levels, as far as the kinds leave a choice: coordinates need a nonunique level."""
    rank = draw(st.integers(0, max_ndim)) if ndim is None else ndim
    order = draw(st.permutations(range(rank)))
    allowed = tuple(kinds) if kinds is not None else ALL
    batch = draw(st.integers(0, min(max_batch, rank))) if Batch in allowed else 0
    batch = batch if draw(st.integers(0, 3)) == 0 else 0
    dense = draw(st.integers(0, min(max_dense, rank - batch))) if draw(st.booleans()) else 0
    sparse = order[batch : rank - dense]
    expressions = _expressions(draw, list(sparse), blocks, diagonals)
    suffix = [Level(Dim(d), Dense()) for d in order[rank - dense :]]
    levels = [Level(Dim(d), Batch()) for d in order[:batch]]
    levels += _levels(draw, expressions, batch, allowed, properties)
    names = draw(st.sampled_from(["ijklmnop", "abcdefgh", ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"]]))
    return Format(tuple(names[:rank]), tuple(levels + suffix))


def shapes(ndim: int, *, max_extent: int = 7) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of this rank; extents of 0 and 1 come often."""
    extent = st.one_of(st.integers(1, max_extent), st.integers(2, max_extent), st.integers(0, max_extent))
    return st.tuples(*[extent] * ndim)


ALL = (Dense, Batch, Compressed, LooseCompressed, Singleton, Range, Structured, Bitmap, Ell)


def _expressions(draw: st.DrawFn, dims: list[int], blocks: bool, diagonals: bool) -> list[Expression]:
    """Invertible level expressions of these dimensions, in any order."""
    whole: list[Expression] = [Dim(d) for d in dims]
    if diagonals and len(dims) >= 2 and draw(st.integers(0, 3)) == 0:
        i, j = Dim(dims[0]), Dim(dims[1])
        whole[:2] = [draw(st.sampled_from([Sub(j, i), Sub(i, j), Add(i, j)])), i]
        if draw(st.booleans()):
            return whole
    parts: list[Expression] = []
    for e in whole:
        parts += _split(draw, e) if blocks and draw(st.integers(0, 3)) == 0 else [e]
    return list(draw(st.permutations(parts)))


def _split(draw: st.DrawFn, e: Expression) -> list[Expression]:
    """e cut in blocks: two parts, or three for nested ones."""
    inner = draw(st.integers(1, 4))
    if draw(st.integers(0, 3)):
        return [Div(e, inner), Mod(e, inner)]
    outer = inner * draw(st.integers(2, 3))
    if inner == 1:
        return [Div(e, outer), Mod(e, outer)]
    middle = draw(st.sampled_from([Div(Mod(e, outer), inner), Mod(Div(e, inner), outer // inner)]))
    return [Div(e, outer), middle, Mod(e, inner)]


def _levels(
    draw: st.DrawFn, expressions: list[Expression], batch: int, allowed: Sequence[type[LevelFormat]], properties: bool
) -> list[Level]:
    levels: list[Level] = []
    only_dense = False
    for at, e in enumerate(expressions):
        last = at == len(expressions) - 1
        above = levels[-1].format if levels else None
        kinds = [kind for kind in allowed if kind is not Batch and _fits(kind, e, expressions, at, above)] or [Dense]
        if only_dense:
            kinds = [Dense]
        elif above is not None and not above.unique:
            kinds = [Singleton]
        usual = [Range] if Range in kinds else [kind for kind in kinds if kind in (Dense, Compressed, Structured)]
        kind = draw(st.sampled_from(usual if usual and draw(st.booleans()) else kinds))
        levels.append(Level(e, _level_format(draw, kind, e, above, allowed, last, properties)))
        structured = kind is Structured
        repeats = not levels[-1].format.unique and properties
        only_dense = only_dense or structured or (repeats and (Singleton not in allowed or not draw(st.integers(0, 7))))
    return levels


def _fits(
    kind: type[LevelFormat], e: Expression, expressions: list[Expression], at: int, above: LevelFormat | None
) -> bool:
    if kind is Singleton:
        return above is not None
    if kind is Range:
        return isinstance(e, Dim) and _completes(expressions, at)
    if kind is Structured:
        return isinstance(e, Mod)
    if kind is Ell:
        base = e
        while isinstance(base, Div):
            base = base.base
        return not isinstance(base, Sub)
    return True


def _completes(expressions: list[Expression], at: int) -> bool:
    """Whether the level at this place is what makes a second dimension known."""
    last = {d: max(form) for d, form in solve(expressions).forms.items()}
    return sum(level == at for level in last.values()) > 1


def _level_format(
    draw: st.DrawFn,
    kind: type[LevelFormat],
    e: Expression,
    above: LevelFormat | None,
    allowed: Sequence[type[LevelFormat]],
    last: bool,
    properties: bool,
) -> LevelFormat:
    arguments: list[int] = []
    if kind is Structured:
        assert isinstance(e, Mod)
        arguments = [draw(st.integers(1, e.divisor)), e.divisor]
    elif kind is Ell:
        arguments = [draw(st.integers(1, 4))]
    ordered = not (properties and "unordered" in kind.may_be and draw(st.integers(0, 3)) == 0)
    chained = Singleton in allowed and not last
    may_repeat = "nonunique" in kind.may_be and (properties or chained)
    may_repeat = may_repeat and (kind is not Singleton or (above is not None and not above.unique))
    unique = not (may_repeat and draw(st.integers(0, 2)) == 0)
    return kind(*arguments, unique=unique, ordered=ordered)

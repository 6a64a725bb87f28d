"""Dimensions and levels -> the first problem of the format by a list of rules, or the inverse of its map."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from openwork.format.expression import Add, Dim, Div, Mod, Sub, depth, dimensions, render
from openwork.format.inverse import Digit, Solution, digit, solve
from openwork.format.level import MAX_INTEGER, Level, LevelFormat
from openwork.format.message import Problem

__all__ = ["MAX_DEPTH", "MAX_DIMENSIONS", "MAX_LEVELS", "RESERVED", "check"]

MAX_DIMENSIONS = 64
MAX_LEVELS = 128
MAX_DEPTH = 16
MAX_PLACE = 2**62
RESERVED = ("floordiv", "mod")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

Dims: TypeAlias = Sequence[str]
Levels: TypeAlias = Sequence[Level]


def check(dims: Dims, levels: Levels) -> Problem | Solution:
    """The first problem, or the inverse of the map of a format that has none."""
    for rule in RULES:
        if problem := rule(dims, levels):
            return problem
    solution = solve([level.expression for level in levels])
    return _redundant(dims, levels, solution) or _missing(dims, solution) or _range(dims, levels, solution) or solution


def _dimension_names(dims: Dims, levels: Levels) -> Problem | None:
    for d, name in enumerate(dims):
        if d >= MAX_DIMENSIONS:
            what, detail = "too many dimensions", f"expected: at most {MAX_DIMENSIONS}; got: {len(dims)}"
            return Problem(("dim", d), what, detail, "merge dimensions with reshape first")
        if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED:
            what, detail = "not a dimension's name", f"expected: a letter, then letters, digits or _; got: {name}"
            return Problem(("dim", d), what, detail, f"name it i{d}")
        if name in dims[:d]:
            what, detail = "a dimension is declared twice", f"expected: {len(dims)} different names; got: {name} again"
            return Problem(("dim", d), what, detail, f"rename one of them, or leave out the second {name}")
    return None


def _expressions(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels):
        place, e = ("expression", at), level.expression
        if at >= MAX_LEVELS:
            detail = f"expected: at most {MAX_LEVELS}; got: {len(levels)}"
            return Problem(place, "too many levels", detail, "use fewer nested blocks")
        if depth(e) > MAX_DEPTH:
            detail = f"expected: at most {MAX_DEPTH} divisions in one expression; got: {depth(e)}"
            return Problem(place, "an expression is nested too deep", detail, "i // 4 // 4 is i // 16")
        for d in dimensions(e):
            if not 0 <= d < len(dims):
                detail = f"known dimensions: {', '.join(dims) or 'none'}; got: dimension {d}"
                return Problem(place, "a level uses an unknown dimension", detail, "declare it on the left")
        base = e
        while isinstance(base, Div | Mod):
            c, base = base.divisor, base.base
            if type(c) is not int or not 1 <= c <= MAX_INTEGER:
                detail = f"expected: an integer from 1 to {MAX_INTEGER}; got: {c}"
                return Problem(place, "a divisor is not a positive integer", detail, "use the size of the block")
        if isinstance(base, Add | Sub) and base.left == base.right:
            name = dims[base.left.index]
            detail = f"expected: two different dimensions; got: {name} and {name}"
            return Problem(
                place, "a diagonal of one dimension with itself", detail, f"write {name}, or another dimension"
            )
    return None


def _level_formats(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels):
        if not isinstance(level.format, LevelFormat):
            detail = f"expected: a LevelFormat; got: {level.format!r}"
            return Problem(("format", at), "not a level format", detail, "write Dense(), Compressed(), ...")
    return None


def _sizes(dims: Dims, levels: Levels) -> Problem | None:
    seen: dict[Digit, int] = {}
    for at, level in enumerate(levels):
        e = level.expression
        text = render(e, dims)
        x: Digit | None = digit(e)
        if x in seen:
            detail = f"expected: {render(levels[seen[x]].expression, dims)} once; got: {text} again"
            return Problem(("expression", at), "a level repeats an earlier one", detail, "leave this level out")
        assert x is not None
        seen[x] = at
        if x.size < 0 or (x.size == 1 and not _split(levels, x)):
            detail = f"expected: an expression of more than one value; got: {text}"
            return Problem(("expression", at), "a level's coordinate is always 0", detail, "leave this level out")
        while x is not None:
            if x.place * max(x.size, 1) > MAX_PLACE:
                detail = f"expected: at most 2**62 for their product; got: {x.place * max(x.size, 1)}"
                return Problem(("expression", at), "divisors are too large together", detail, "use smaller blocks")
            x = x.base if isinstance(x.base, Digit) else None
    return None


def _split(levels: Levels, x: Digit) -> bool:
    """Whether some level is the `e // 1` that belongs to an `e % 1`: blocks of size 1 are blocks."""
    parts = (level.expression for level in levels)
    return any(isinstance(e, Div) and e.divisor == 1 and digit(e)[:2] == x[:2] for e in parts)


def _batch(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels):
        if not level.format.batched:
            continue
        name = render(level.expression, dims)
        if not isinstance(level.expression, Dim):
            detail = f"expected: a dimension; got: {name}"
            return Problem(
                ("expression", at), "a batch level is not a plain dimension", detail, f"write {name} : dense"
            )
        if at and not levels[at - 1].format.batched:
            detail = f"expected: batch levels first; got: batch below {levels[at - 1].format.name}"
            help = f"move {name} : batch to the front, or write {name} : dense"
            return Problem(("format", at), "a batch level is not leading", detail, help)
    return None


def _singleton(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels):
        if not level.format.is_singleton:
            continue
        name = render(level.expression, dims)
        if all(above.format.batched for above in levels[:at]):
            what = "singleton cannot come first" if at == 0 else "singleton cannot stand below batch levels only"
            detail = f"expected: a level above that says how many elements there are; got: {name} : {level.format}"
            help = f"write {name} : compressed(nonunique) for coordinates, or put a level above it"
            return Problem(("format", at), what, detail, help)
        if not level.format.unique and levels[at - 1].format.unique:
            what = "a nonunique singleton below a unique level"
            detail = f"expected: nonunique above it, as one child cannot repeat; got: {levels[at - 1].format}"
            help = "leave nonunique out, or make the level above nonunique"
            return Problem(("nonunique", at), what, detail, help)
    return None


def _nonunique(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels[:-1]):
        below = levels[at + 1]
        if level.format.unique or below.format.is_singleton:
            continue
        if all(deeper.format.is_dense for deeper in levels[at + 1 :]):
            continue
        detail = f"expected: singleton below it, or dense levels only; got: {below.format}"
        help = f"leave nonunique out, or write {render(below.expression, dims)} : singleton"
        return Problem(("nonunique", at), "a nonunique level whose children are not singletons", detail, help)
    return None


def _structured(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels):
        if not level.format.is_structured:
            continue
        m, e = level.format.arguments[-1], level.expression
        text = render(e, dims)
        if not isinstance(e, Mod) or e.divisor != m:
            what = f"{level.format} needs the remainder by {m}"
            detail = f"expected: e % {m}; got: {text}"
            base = render(e.base, dims) if isinstance(e, Mod) else text
            base = f"({base})" if isinstance(e, Add | Sub) else base
            help = f"write {base} // {m} above and {base} % {m} : {level.format}"
            return Problem(("expression", at), what, detail, help)
        for below in levels[at + 1 :]:
            if not below.format.is_dense:
                detail = f"expected: nothing below it, or dense; got: {below.format}"
                return Problem(
                    ("format", at), "structured is not last", detail, f"move {text} : {level.format} to the end"
                )
    return None


def _ell(dims: Dims, levels: Levels) -> Problem | None:
    for at, level in enumerate(levels):
        base = level.expression
        while isinstance(base, Div):
            base = base.base
        if level.format.has_sentinel and isinstance(base, Sub):
            text = render(level.expression, dims)
            detail = f"expected: a coordinate that is never negative, as -1 marks an unused slot; got: {text}"
            help = "use compressed, or ell on a dimension"
            return Problem(("expression", at), "ell on an expression that can be negative", detail, help)
    return None


def _redundant(dims: Dims, levels: Levels, solution: Solution) -> Problem | None:
    """The problem of a level that no dimension needs."""
    for x, form in solution.unused:
        used = [dims[d] for d in dimensions(_innermost(x))]
        if all(d in solution.forms for d in dimensions(_innermost(x))):
            at = max(form)
            known = " and ".join(used) + (" are known" if len(used) > 1 else " is known")
            detail = f"expected: levels that are all needed; got: {render(levels[at].expression, dims)}, but {known}"
            return Problem(("expression", at), "a level is redundant", detail, "leave this level out")
    return None


def _missing(dims: Dims, solution: Solution) -> Problem | None:
    """The problem of a dimension that cannot be recovered."""
    for x, form in sorted(solution.unused, key=lambda item: -_nesting(item[0])):
        if need := _partner(x, solution, dims):
            e = _digit_text(_base_text(x, dims), x.place, x.size)
            what = f"the map is not invertible: {e} without {need}"
            kind = "dense" if x.place > 1 and not x.size else "compressed"
            detail, help = f"expected: a level for {need}; got: {e} alone", f"add {need} : {kind}"
            return Problem(("expression", max(form)), what, detail, help)
    for x, form in solution.unused:
        left, right = (dims[d] for d in dimensions(_innermost(x)))
        text = render(_innermost(x), dims)
        what = f"the map is not invertible: neither {left} nor {right} follows from {text}"
        detail = f"expected: a level for {left} or {right} as well; got: {text} alone"
        help = f"add {left} : range after it"
        pair = set(dimensions(_innermost(x)))
        others = [render(_innermost(y), dims) for y, _ in solution.unused if set(dimensions(_innermost(y))) == pair]
        if len(others) > 1:
            detail = f"expected: a level for {left} or {right} itself; got: {' and '.join(others)}"
            help = f"write {left} in place of {others[-1]}"
        return Problem(("expression", max(form)), what, detail, help)
    for d, name in enumerate(dims):
        if d not in solution.forms:
            what = f"the map is not invertible: dimension {name} does not follow from the levels"
            detail = f"expected: levels that determine {name}; got: none"
            return Problem(("dim", d), what, detail, f"add {name} : dense to the levels, or leave {name} out")
    return None


def _partner(x: Digit, solution: Solution, dims: Dims) -> str | None:
    """The text of the digit that x lacks for a complete base."""
    text = _base_text(x, dims)
    same = [y.place for y, _ in solution.unused if y.base == x.base]
    if x.size:
        low = x.place * x.size
        high = min((place for place in same if place > low), default=0)
        if high and high % low == 0:
            return f"{text} % {high} // {low}"
        return None if low in same else f"{text} // {low}"
    return f"{text} % {x.place}" if x.place > 1 and x.place == min(same) else None


def _innermost(x: Digit) -> Dim | Add | Sub:
    return _innermost(x.base) if isinstance(x.base, Digit) else x.base


def _nesting(x: Digit) -> int:
    return 1 + _nesting(x.base) if isinstance(x.base, Digit) else 0


def _base_text(x: Digit, dims: Dims) -> str:
    if isinstance(x.base, Digit):
        return _digit_text(_base_text(x.base, dims), x.base.place, x.base.size)
    text = render(x.base, dims)
    return text if isinstance(x.base, Dim) else f"({text})"


def _digit_text(base: str, place: int, size: int) -> str:
    return base + (f" // {place}" if place > 1 else "") + (f" % {size}" if size else "")


def _range(dims: Dims, levels: Levels, solution: Solution) -> Problem | None:
    last = {d: max(form) for d, form in solution.forms.items()}
    for at, level in enumerate(levels):
        if not level.format.is_range:
            continue
        text = render(level.expression, dims)
        if not isinstance(level.expression, Dim):
            what, detail = "range on something else than a dimension", f"expected: a dimension; got: {text}"
            return Problem(("expression", at), what, detail, f"write {text} : dense")
        if not any(d != level.expression.index and last[d] == at for d in last):
            what = "range without a diagonal above it"
            detail = f"expected: an earlier level i + j or i - j with {text} in it; got: none"
            return Problem(("format", at), what, detail, f"write {text} : dense, or put the diagonal's level above")
    return None


RULES: tuple[Callable[[Dims, Levels], Problem | None], ...] = (
    _dimension_names,
    _expressions,
    _level_formats,
    _sizes,
    _batch,
    _singleton,
    _nonunique,
    _structured,
    _ell,
)

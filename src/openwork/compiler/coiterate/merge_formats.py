"""Formats of the operands of a merge -> the format of its result, and those that operands out of order convert to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...format import build
from ...format.cached import cached
from ...format.expression import Dim, Expression, Mod, dimensions, rename
from ...format.format import Format, Level
from ..conversion.level_runs import is_unique

__all__ = [
    "levels_in_order",
    "loops_over",
    "merge_format",
    "default_format",
    "project",
    "is_projectable",
    "with_bitmap",
]

Dims = tuple[int | None, ...]
"""For each dimension of an operand that of the result; None for one that is broadcast."""


@cached(1024)
def merge_format(format: Format) -> Format:
    """The format with the same level expressions that a merge assembles: every level located, or appended to.

    Unordered, nonunique and loose levels become ordered, unique and compressed ones; coordinate chains stay chains.
    """
    levels: list[Level] = []
    chained = False
    for at, level in enumerate(format.levels):
        kind = level.format
        if kind.is_located:
            chained = False
            levels.append(build.dense(level.expression) if kind.batched else level)
            continue
        following = at + 1 < format.nlevels and format.levels[at + 1].format.is_singleton
        head = following and not kind.unique
        if kind.is_compressed or (chained and kind.is_singleton):
            levels.append(Level(level.expression, replace(kind, unique=not head, ordered=True)))
        else:
            levels.append(build.compressed(level.expression, unique=not head))
        chained = head
    return Format(format.dims, tuple(levels))


def default_format(ndim: int) -> Format:
    """The format of a result that does not follow an operand's: CSR for a matrix, all levels compressed otherwise."""
    names = tuple(f"i{d}" for d in range(ndim))
    kinds = [build.dense if ndim == 2 and d == 0 else build.compressed for d in range(ndim)]
    return Format(names, tuple(level(Dim(d)) for d, level in enumerate(kinds)))


def levels_in_order(format: Format, dims: Dims, order: Sequence[Expression]) -> tuple[Expression | None, ...] | None:
    """The expression of each level in the result's dimensions, if an operand can be walked by loops in this order.

    Whether an operand has the coordinate of the last loop must be known there: no broadcast dimension that may lack an
    element may follow.
    """
    if not (format.is_ordered and is_unique(format)):
        return None
    levels_counted: list[Expression | None] = []
    next_loop = 0
    for level in format.levels:
        mapped = [dims[d] for d in dimensions(level.expression)]
        if all(d is None for d in mapped):
            levels_counted.append(None)
            continue
        if any(d is None for d in mapped):
            return None
        e = rename(level.expression, [d if d is not None else 0 for d in dims])
        while next_loop < len(order) and order[next_loop] != e:
            next_loop += 1
        if next_loop == len(order):
            return None
        next_loop += 1
        levels_counted.append(e)
    last_counted = max((k for k, e in enumerate(levels_counted) if e is not None), default=-1)
    below = format.levels[last_counted + 1 :] if last_counted >= 0 and next_loop == len(order) else ()
    return None if any(level.format.functions.may_lack for level in below) else tuple(levels_counted)


def is_projectable(target: Format, dims: Dims) -> bool:
    """Whether the target without the dimensions that an operand lacks is a format: no level expression is split."""
    result_dims = {d for d in dims if d is not None}
    return all(len(result_dims.intersection(needs)) in (0, len(needs)) for needs in _level_dimensions(target))


def _level_dimensions(target: Format) -> list[set[int]]:
    return [set(dimensions(level.expression)) for level in target.levels]


@cached(1024)
def with_bitmap(format: Format) -> Format | None:
    """The format with a bitmap where its last level has all children; None for a last level that lacks some itself."""
    if not format.levels:
        return None
    *above, last = format.levels
    if not (last.format.is_dense or last.format.is_range or last.format.is_structured):
        return None
    return Format(format.dims, (*above, build.bitmap(last.expression)))


def project(target: Format, dims: Dims, lacking: bool = False) -> Format:
    """The target without the dimensions that an operand lacks, in the operand's own: one that loops over the target
    can walk. Broadcast dimensions come first, dense. `lacking`: it records which elements are missing."""
    operand_dim = {d: k for k, d in enumerate(dims) if d is not None}
    names = tuple(f"i{k}" for k in range(len(dims)))
    levels = [build.dense(Dim(k)) for k, d in enumerate(dims) if d is None]
    for level in target.levels:
        if not all(d in operand_dim for d in dimensions(level.expression)):
            continue
        e = rename(level.expression, [operand_dim.get(d, 0) for d in range(target.ndim)])
        located = level.format.is_dense or isinstance(level.expression, Mod)
        levels.append(build.dense(e) if located else build.compressed(e))
    projection = Format(names, tuple(levels))
    return (with_bitmap(projection) if lacking else None) or projection


def loops_over(format: Format, dims: Dims, ndim: int) -> Format:
    """The loops that walk an operand of this format in its own order, then the dimensions that it lacks.

    dims: for each dimension of the operand that of the loops, never None.
    """
    names = tuple(f"i{d}" for d in range(ndim))
    place = [d for d in dims if d is not None]
    levels = [Level(rename(level.expression, place), level.format) for level in merge_format(format).levels]
    others = [build.dense(Dim(d)) for d in range(ndim) if d not in place]
    return Format(names, (*levels, *others))

"""A format, a shape and its index buffers -> the positions of each level, and lengths by the level functions' text.

Lengths are those of one batch slice; the buffers hold `batches` slices one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..format import functions
from .buffers import Array

if TYPE_CHECKING:
    from ..format.format import Format
    from ..format.level import LevelFormat

__all__ = ["batches", "evaluate", "positions"]


def evaluate(text: str, level: LevelFormat, values: Mapping[str, int]) -> int:
    """The value of a level function's text over integers, such as "parents * n"."""
    names = dict(zip(level.parameters, level.arguments, strict=True))
    return int(functions.evaluate(text, {**names, **values}))


def batches(format: Format, intervals: Sequence[tuple[int, int]]) -> int:
    """The number of batch slices of a tensor whose levels have these coordinate ranges."""
    return math.prod(hi - lo for lo, hi in intervals[: format.batch_ndim])


def positions(format: Format, shape: Sequence[int], crd: Sequence[Array | None]) -> tuple[int, ...]:
    """Positions of each level over all slices, root to leaf; a level that stores coordinates has one per stored one."""
    counts: list[int] = []
    texts, batch_ndim, slices, parents = format.position_texts, format.batch_ndim, 1, 1
    dims = format.level_dims
    if dims is not None and len(shape) == len(format.dims):
        extents = list(map(shape.__getitem__, dims))
    else:
        extents = [hi - lo for lo, hi in format.level_intervals(shape)]
    for at, n in enumerate(extents):
        stored = crd[at]
        if at < batch_ndim:
            slices *= n
            counts.append(slices)
            continue
        if stored is not None:
            parents = stored.shape[0] // slices if slices else 0
        elif (text := texts[at]) is None:
            parents *= n
        else:
            parents = evaluate(text, format.levels[at].format, {"parents": parents, "N": n})
        counts.append(parents * slices)
    return tuple(counts)

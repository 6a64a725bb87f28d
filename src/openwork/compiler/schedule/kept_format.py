"""A tensor's format and the dimensions that stay -> the format of a reduction's result, or of a product with an array.

(i : compressed, j : compressed, k : compressed), k summed   ->  (i : compressed, j : compressed)
(i : dense, j : dense, k : compressed), k summed             ->  dense
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from string import ascii_letters
from typing import Any

from ...format import coo
from ...format import format as parse
from ...format.expression import Dim
from ...format.format import Format, Level

__all__ = ["DENSE", "kept_format", "level_order"]

DENSE = parse("dense", 1).levels[0].format


@lru_cache(maxsize=1024)
def kept_format(format: Format, kept: tuple[int, ...], free: int = 0, unit: tuple[int, ...] = ()) -> Format | None:
    """The format of a result that has the dimensions `kept` of a tensor, in this order, then `free` dense ones.

    Dense, compressed and bitmap levels stay as they are, in their order, without duplicates, and batches are dense; of
    all others the result is COO. None where a dense array is the result: where fewer than two dimensions are kept, or
    all of them dense.

    unit : dimensions among `kept` that are reduced to an extent of 1, which count for nothing
    """
    if len(kept) - len(unit) < 2 or format.is_dense:
        return None
    level_of = {x.expression.index: x.format for x in format.levels if isinstance(x.expression, Dim)}
    levels = [level_of.get(d) for d in kept if d not in unit]
    if len(level_of) == len(format.levels) and all(x is not None and (x.is_dense or x.batched) for x in levels):
        return None
    order = level_order(format, kept)
    plain = [_plain(level_of.get(kept[k])) for k in order]
    if None in plain:
        plain = [x.format for x in coo(len(kept)).levels]
    result = [Level(Dim(k), x) for k, x in zip(order, plain, strict=True) if x is not None]
    result += [Level(Dim(len(kept) + k), DENSE) for k in range(free)]
    names = (*(format.dims[d] for d in kept), *(c for c in ascii_letters if c not in format.dims))
    return Format(names[: len(kept) + free], tuple(result))


def _plain(level: Any) -> Any:
    """A level format without duplicates that may stand below any other; None of those that may not."""
    if level is None or not (level.is_dense or level.batched or level.is_compressed or level.is_bitmap):
        return None
    if level.is_compressed:
        return replace(level, unique=True, ordered=True)
    return DENSE if level.batched else level


def level_order(format: Format, dims: Sequence[int]) -> list[int]:
    """The order of `dims` by the format's levels, as positions in `dims`, where each level holds one dimension."""
    expressions = [level.expression for level in format.levels]
    if not all(isinstance(e, Dim) for e in expressions):
        return list(range(len(dims)))
    return [dims.index(e.index) for e in expressions if isinstance(e, Dim) and e.index in dims]

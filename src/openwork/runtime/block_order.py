"""A block size and the order of elements inside a block -> the blocked format, and back from arrays of blocks."""

from __future__ import annotations

from functools import lru_cache

from ..format import format as parse
from ..format.format import Format
from ..storage import buffers
from ..storage.buffers import Array

__all__ = ["block_format", "flat_blocks"]


@lru_cache(maxsize=256)
def block_format(name: str, block: tuple[int, int], batch: int, dense: int, column_major: bool) -> Format:
    """The format "bsr" or "bsc" with blocks of this size, elements row- or column-major inside a block."""
    format = parse(f"{name}({block[0]}, {block[1]})", 2 + batch + dense, batch=batch, dense=dense)
    if not column_major:
        return format
    levels = list(format.levels)
    levels[batch + 2], levels[batch + 3] = levels[batch + 3], levels[batch + 2]
    return Format(format.dims, tuple(levels))


def flat_blocks(values: Array, batch: int) -> tuple[Array, bool]:
    """Values of axes (*batch, blocks, rows, columns, *dense) with their axes in memory order; whether column-major.

    Values of any other order are returned as they are.
    """
    if buffers.is_contiguous(values):
        return values, False
    swapped = values.swapaxes(batch + 1, batch + 2)
    return (swapped, True) if buffers.is_contiguous(swapped) else (values, False)

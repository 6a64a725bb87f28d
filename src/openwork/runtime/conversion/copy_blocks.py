"""A storage and a stage between formats with the same dense tail -> the result: head converted, blocks copied."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...compiler.conversion import Stage
from ...compiler.conversion.blocks import blocks_of, copy_blocks_kernel
from ...format.expression import interval
from ...format.format import Format
from ...storage.buffers import as_array, empty, length, scalar_of
from ...storage.storage import Storage
from .conversion_kernels import call
from .ranges import PARALLEL, Ranges, of_numbers

__all__ = ["move_blocks"]


def move_blocks(storage: Storage, stage: Stage, convert: Callable[[Storage, Format], Storage]) -> Storage:
    """Convert by blocks; `convert` converts the heads."""
    blocks = blocks_of(storage.format, stage.target)
    assert blocks is not None
    split = storage.format.nlevels - len(blocks.sizes)
    spans = [hi - lo for lo, hi in storage.format.level_intervals(storage.shape)[split:]]
    size = prod(spans)
    count = length(storage.values) // size if size else 0
    numbers: Any = as_array(np.arange(count, dtype=np.int32 if count < 1 << 31 else np.int64), like=storage.values)
    shape = tuple(interval(e, storage.shape)[1] for e in blocks.dims)
    head = Storage(
        shape, blocks.source, scalar_of(numbers), 0, storage.pos[:split], storage.crd[:split], numbers
    )  # fmt: skip
    moved_head = convert(head, blocks.target)
    at, count_moved = moved_head.values, length(moved_head.values)
    values = empty(count_moved * size, storage.scalar, storage.values)
    arguments = {"at": at, "x": storage.values, "out": values}
    arguments |= {f"extent{k}": n for k, n in enumerate(spans)}
    ranges = of_numbers(count_moved, count_moved * size if count_moved * size >= PARALLEL else 0) or Ranges(
        (0, count_moved)
    )
    key = f"copy blocks {storage.scalar} {scalar_of(at)} {blocks.sizes} {blocks.order}"
    if count_moved and size:
        call(key, lambda: copy_blocks_kernel(storage.scalar, scalar_of(at), blocks), arguments, ranges)
    none = (None,) * len(blocks.sizes)
    return Storage(
        storage.shape, stage.target, storage.scalar, storage.fill_value,
        (*moved_head.pos, *none), (*moved_head.crd, *none), values,
    )  # fmt: skip

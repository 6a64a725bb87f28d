"""A format and buffers -> the smallest shape that they fit: the derivation of the PyTorch notes, for any format.

A batch extent is a leading axis of a buffer; the coordinates of a dense level follow from the buffers below; a level
that stores coordinates has `max(crd.max() + 1, diff(pos).max())` of them, the second term where it is unique.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ShapeError
from ..format.expression import Mod
from .buffers import Array, to_numpy

if TYPE_CHECKING:
    from ..format.format import Format

__all__ = ["infer_shape"]


def infer_shape(format: Format, pos: Mapping[int, Array], crd: Mapping[int, Array], values: Array) -> tuple[int, ...]:
    """The smallest shape that the buffers fit, given with their batch, block and dense axes where they have them.

    Raises ShapeError where the buffers leave an extent open.
    """
    walk = _Walk(format, _batch(format, pos, crd, values))
    for at in range(format.batch_ndim, len(format.levels)):
        walk.step(at, pos.get(at), crd.get(at))
    walk.finish(values)
    top = [walk.top[at] for at in range(len(format.levels))]
    shape = [max(sum(a * top[at] for at, a in form) + 1, 0) for form in format.inverse]
    return tuple(shape)


def _batch(format: Format, pos: Mapping[int, Array], crd: Mapping[int, Array], values: Array) -> tuple[int, ...]:
    n = format.batch_ndim
    if n == 0:
        return ()
    for buffer in (*pos.values(), *crd.values(), values):
        if buffer.ndim > n:
            return tuple(int(x) for x in buffer.shape[:n])
    raise ShapeError(
        f"the batch extents of {format} do not follow from one-dimensional buffers\n  help: give the shape"
    )


class _Walk:
    """A walk from root to leaf; `open` holds the levels whose extents follow from a deeper buffer's length."""

    def __init__(self, format: Format, batch: tuple[int, ...]) -> None:
        self.format = format
        self.batch = batch
        self.slices = math.prod(batch)
        self.top: dict[int, int] = {at: n - 1 for at, n in enumerate(batch)}
        self.parents = 1
        self.open: list[int] = []
        self.trailing: list[int] = []

    def _per_slice(self, buffer: Array) -> int:
        n = math.prod(buffer.shape)
        return n // self.slices if self.slices else 0

    def step(self, at: int, pos: Array | None, crd: Array | None) -> None:

        level = self.format.levels[at]
        fixed = level.expression.divisor if isinstance(level.expression, Mod) else None
        if crd is None:
            self.trailing.append(at)
            if fixed is None:
                self.open.append(at)
            else:
                self.top[at] = fixed - 1
                self.parents *= fixed
            return
        stored = self._per_slice(crd)
        if level.format.is_bitmap:
            self.open.append(at)
            self._close(stored)
        else:
            if pos is not None:
                loose = level.format.is_loose
                self._close(self._per_slice(pos) // 2 if loose else self._per_slice(pos) - 1)
            else:
                self._close(stored // (level.format.slots or 1))
            self.top[at] = fixed - 1 if fixed is not None else _highest(crd, pos, level.format.unique, self.slices)
        self.parents, self.open, self.trailing = stored, [], []

    def _close(self, total: int) -> None:
        """The open levels have `total` positions together."""
        if len(self.open) > 1:
            names = ", ".join(str(at) for at in self.open)
            raise ShapeError(f"the extents of levels {names} of {self.format} do not follow\n  help: give the shape")
        for at in self.open:
            self.top[at] = max(total, 0) // self.parents - 1 if self.parents else -1
        self.open = []

    def finish(self, values: Array) -> None:
        axes = values.shape[-len(self.trailing) :] if self.trailing else ()
        stored_axis = 0 if len(self.batch) + len(self.trailing) == len(self.format.levels) else 1
        if self.trailing and values.ndim == len(self.batch) + stored_axis + len(self.trailing):
            for at, extent in zip(self.trailing, axes, strict=True):
                self.top.setdefault(at, int(extent) - 1)
        elif self.open:
            self._close(self._per_slice(values))


def _highest(crd: Array, pos: Array | None, unique: bool, slices: int) -> int:
    coordinates = to_numpy(crd)
    top = int(coordinates.max()) if coordinates.size else -1
    if pos is None or not unique or not slices:
        return top
    rows = to_numpy(pos).reshape(slices, -1)
    widths = np.diff(rows, axis=1)
    return max(top, int(widths.max()) - 1 if widths.size else -1)

"""A batched storage and a selection of batch slices -> these slices: views of its buffers, in the format of a slice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...format.cached import cached
from ...format.expression import Dim, rename
from ...format.format import Format, Level
from ...storage.buffers import Array, length
from ...storage.recorded import of_recording
from ...storage.storage import Storage
from .keys import Selection, Span

__all__ = ["batch_slices"]


def batch_slices(s: Storage, selection: Selection) -> tuple[Storage, Selection] | None:
    """The slices at the integers and ranges that a selection has for the outermost batch dimensions, and what is left
    of the selection; None where it has neither, index arrays, or slices are stored out of order or with duplicates.

    Cost: O(1), the slices are views.
    """
    found, s_now, rest = False, s, selection
    while _may_cut(s_now.format, rest):
        d = _outermost(s_now.format)
        k, span = rest.integers.get(d), rest.spans.get(d)
        if k is not None:
            format = _without_outermost(s_now.format)
            if format is None:
                break
            s_now, rest, found = _cut(s_now, k, k + 1, format, d), _without(rest, d), True
            continue
        if span is not None and span.step == 1 and not span.covers(s_now.shape[d]):
            s_now = _cut(s_now, span.start, span.start + span.count, s_now.format, d)
            spans = {**rest.spans, d: Span(0, 1, span.count)}
            rest, found = replace(rest, spans=spans), True
        break
    return (s_now, rest) if found else None


def _may_cut(format: Format, selection: Selection) -> bool:
    return bool(format.batch_ndim and format.is_ordered and format.is_unique and not selection.has_arrays)


def _outermost(format: Format) -> int:
    """The dimension of the outermost batch level."""
    expression = format.levels[0].expression
    assert isinstance(expression, Dim)
    return expression.index


@cached(1024)
def _without_outermost(format: Format) -> Format | None:
    """The format of a slice at one coordinate of the outermost batch level; None where it stores nothing but values."""
    d = _outermost(format)
    position = [k - (k > d) for k in range(format.ndim)]
    levels = tuple(Level(rename(level.expression, position), level.format) for level in format.levels[1:])
    out = Format((*format.dims[:d], *format.dims[d + 1 :]), levels)
    return None if out.is_dense else out


def _cut(s: Storage, first: int, last: int, format: Format, d: int) -> Storage:
    """The slices first <= k < last of the outermost batch level, in the format given."""
    count, extent = last - first, s.shape[d]
    shape = (*s.shape[:d], *([count] if format.ndim == s.format.ndim else []), *s.shape[d + 1 :])

    def part(buffer: Array) -> Array:
        size = length(buffer) // extent
        return buffer[first * size : last * size]

    dropped = s.format.nlevels - format.nlevels
    pos, crd = ([None if b is None else part(b) for b in group[dropped:]] for group in (s.pos, s.crd))
    values = part(s.values) if isinstance(s.values, np.ndarray) else of_recording(part(s.values))
    return Storage(shape, format, s.scalar, s.fill_value, tuple(pos), tuple(crd), values)


def _without(selection: Selection, d: int) -> Selection:
    """The selection of what is left when the integer of dimension d has been taken."""

    def moved(k: int) -> int:
        return k - (k > d)

    return replace(
        selection,
        integers={moved(k): at for k, at in selection.integers.items() if k != d},
        spans={moved(k): span for k, span in selection.spans.items()},
        axes=[axis if axis.dim is None else replace(axis, dim=moved(axis.dim)) for axis in selection.axes],
    )

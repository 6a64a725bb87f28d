"""`.smtx` of the deep learning matrix collection: "rows, columns, entries", the row pointers, the column indices."""

from __future__ import annotations

import numpy as np

from ..shared.compressed import compressed
from ..shared.records import Buffers, Header, Options
from .scan import scan, whole_numbers
from .scan_layout import Layout, Rest
from .source import Text

__all__ = ["header", "read"]


def header(text: Text) -> Header:
    rows, columns, entries, _ = _sizes(text)
    return Header("smtx", (rows, columns), "pattern", entries=entries)


def read(text: Text, options: Options) -> Buffers:
    """Compressed rows of ones."""
    rows, columns, entries, body = _sizes(text)
    layout = Layout(0, 1, "i64", comment="", rest=Rest.NEXT)
    numbers = scan(text, body, layout, rows + 1 + entries, (), options.progress).values
    pos, crd = numbers[: rows + 1], numbers[rows + 1 :]
    if pos[0] != 0 or pos[-1] != entries or (pos[1:] < pos[:-1]).any():
        text.fail(body, f"row pointers must rise from 0 to {entries}")
    if crd.size and (int(crd.min()) < 0 or int(crd.max()) >= columns):
        worst = int(crd.min()) if int(crd.min()) < 0 else int(crd.max())
        text.fail(text.next_line(body)[1], f"column index {worst} is outside 0..{columns - 1}")
    dtype = np.int32 if max(rows, columns, entries) < 2**31 else np.int64
    return compressed("i", (rows, columns), pos.astype(dtype), crd.astype(dtype), np.ones(entries))


def _sizes(text: Text) -> tuple[int, int, int, int]:
    line, following = text.next_line(0)
    numbers = whole_numbers(text, line.replace(b",", b" "), 0)
    if len(numbers) != 3:
        text.fail(0, f"expected rows, columns, entries, got {len(numbers)} numbers")
    return numbers[0], numbers[1], numbers[2], following

"""svmlight / libsvm: `label index:value ...` per line, "#" starts a comment; labels are left out.

Indices start at 1 unless a 0 occurs (or `base=` says so), as scikit-learn's `zero_based="auto"` has it.
"""

from __future__ import annotations

import re

import numpy as np

from ...interruptible import repeat
from ..shared.compressed import compressed
from ..shared.records import Array, Buffers, Options
from .scan import scan
from .scan_layout import Layout, Rest
from .source import Text

__all__ = ["looks_like", "read"]

_BLOCK = 1 << 20
"""Bytes of lines that are taken apart at a time."""
_COMMENT = re.compile(rb"#[^\r\n]*")


def looks_like(head: bytes) -> bool:
    """Whether a line of the beginning is a label and pairs."""
    return bool(re.search(rb"(?m)^[+-]?[\d.eE+-]+(\s+\d+:\S+)+\s*$", head[:4096].rsplit(b"\n", 1)[0]))


def read(text: Text, options: Options) -> Buffers:
    """Rows as compressed rows, in file order."""
    numbers, first, counts = _numbers(text, options)
    pairs = np.ones(numbers.size, np.bool_)
    pairs[first] = False
    pair_numbers = numbers[pairs]
    index, values = pair_numbers[0::2], pair_numbers[1::2]
    columns = index.astype(np.int64)
    base = options.base if options.base is not None else int(not (columns.size and columns.min() == 0))
    if columns.size and columns.min() < base:
        text.fail(0, f"an index {int(columns.min())} occurs, below the first one, {base}")
    extent = int(columns.max()) + 1 - base if columns.size else 0
    pos = np.concatenate([[0], np.cumsum(counts // 2)])
    dtype = np.int32 if max(extent, values.size) < 2**31 else np.int64
    shape = (counts.size, extent)
    return compressed("i", shape, pos.astype(dtype), (columns - base).astype(dtype), np.ascontiguousarray(values))


def _numbers(text: Text, options: Options) -> tuple[Array, Array, Array]:
    """All numbers in order, the positions of the rows' labels among them, and the count of numbers by row."""
    numbers: list[Array] = [np.empty(0)]
    counts: list[Array] = [np.empty(0, np.int64)]
    position, line = 0, text.first
    while position < text.size:
        stop = _line_end(text, position + _BLOCK)
        raw = text.part(position, min(stop, text.size))
        block_numbers, rows = _parse_block(text, position, line, raw)
        numbers.append(block_numbers)
        counts.append(rows)
        position, line = stop, line + raw.count(b"\n") + raw.count(b"\r") - raw.count(b"\r\n")
        if options.progress is not None:
            options.progress(min(position, text.size), text.size)
    per_row = np.concatenate(counts)
    return np.concatenate(numbers), np.cumsum(per_row) - per_row, per_row


def _line_end(text: Text, position: int) -> int:
    """Where the line that holds `position` ends, the end of the text where it is the last."""
    return text.next_line(position)[1] if position < text.size else text.size


def _parse_block(text: Text, at: int, line: int, raw: bytes) -> tuple[Array, Array]:
    """The numbers of whole lines that begin at byte `at`, and how many each row has."""
    if b"#" in raw:
        raw = _COMMENT.sub(lambda m: b" " * len(m[0]), raw)
    data = np.frombuffer(raw + b"\n", np.uint8)
    is_ink = data > 32
    colon = data == ord(":")
    is_number = is_ink & ~colon
    number_starts = np.flatnonzero(is_number & ~np.concatenate([[False], is_number[:-1]]))
    ends = np.flatnonzero(is_number & ~np.concatenate([is_number[1:], [False]])) + 1
    row = np.cumsum((data == 10) | (data == 13))[number_starts]
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    counts = np.diff(np.append(starts, row.size))
    number_in_row = np.arange(row.size) - repeat(starts, counts)
    misplaced = np.flatnonzero(colon[ends] != (number_in_row % 2 == 1))
    without_value = np.flatnonzero(counts % 2 == 0)
    if misplaced.size or int(colon.sum()) != int((number_in_row % 2 == 1).sum()):
        text.fail(
            at + (int(number_starts[misplaced[0]]) if misplaced.size else 0), "expected a label, then pairs index:value"
        )
    if without_value.size:
        text.fail(at + int(number_starts[starts[without_value[0]]]), "expected a label, then pairs index:value")
    spaced = Text.of(raw.replace(b":", b" "), text.name, line)
    numbers = scan(spaced, 0, Layout(0, 1, "f64", comment="", rest=Rest.NEXT), row.size, ()).values
    index = numbers[number_in_row % 2 == 1]
    not_integer = np.flatnonzero(~((index >= 0) & (index < 2**53) & (index == np.floor(index))))
    if not_integer.size:
        place_at = at + int(number_starts[number_in_row % 2 == 1][not_integer[0]])
        shown = text.token(place_at).split(":")[0]
        text.fail(place_at, f"expected an index that is a whole number, got {shown!r}")
    return numbers, counts

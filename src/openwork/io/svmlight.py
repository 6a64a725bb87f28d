"""svmlight / libsvm: `label index:value ...` per line, "#" starts a comment; `labels` gives what `read` leaves.

Indices start at 1 unless a 0 occurs (or `base=` says so), as scikit-learn's `zero_based="auto"` has it.
"""

from __future__ import annotations

import re

import numpy as np

from ..interruptible import repeat
from .compressed import compressed
from .records import Array, Buffers, Options
from .scan import scan
from .scan_layout import Layout, Rest
from .source import Text

__all__ = ["labels", "looks_like", "read"]

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
    rest = numbers[pairs]
    index, values = rest[0::2], rest[1::2]
    columns = index.astype(np.int64)
    base = options.base if options.base is not None else int(not (columns.size and columns.min() == 0))
    if columns.size and columns.min() < base:
        text.fail(0, f"an index {int(columns.min())} occurs, below the first one, {base}")
    extent = int(columns.max()) + 1 - base if columns.size else 0
    pos = np.concatenate([[0], np.cumsum(counts // 2)])
    dtype = np.int32 if max(extent, values.size) < 2**31 else np.int64
    shape = (counts.size, extent)
    return compressed("i", shape, pos.astype(dtype), (columns - base).astype(dtype), np.ascontiguousarray(values))


def labels(text: Text) -> Array:
    """The label of each row."""
    numbers, first, _ = _numbers(text, Options())
    return numbers[first]


def _numbers(text: Text, options: Options) -> tuple[Array, Array, Array]:
    """All numbers in order, where each row's label stands among them, and how many numbers each row has."""
    numbers: list[Array] = [np.empty(0)]
    counts: list[Array] = [np.empty(0, np.int64)]
    at, line = 0, text.first
    while at < text.size:
        stop = _line_end(text, at + _BLOCK)
        raw = text.part(at, min(stop, text.size))
        found, rows = _block(text, at, line, raw)
        numbers.append(found)
        counts.append(rows)
        at, line = stop, line + raw.count(b"\n") + raw.count(b"\r") - raw.count(b"\r\n")
        if options.progress is not None:
            options.progress(min(at, text.size), text.size)
    per_row = np.concatenate(counts)
    return np.concatenate(numbers), np.cumsum(per_row) - per_row, per_row


def _line_end(text: Text, position: int) -> int:
    """Where the line that holds `position` ends, the end of the text where it is the last."""
    return text.next_line(position)[1] if position < text.size else text.size


def _block(text: Text, at: int, line: int, raw: bytes) -> tuple[Array, Array]:
    """The numbers of whole lines that begin at byte `at`, and how many each row has."""
    if b"#" in raw:
        raw = _COMMENT.sub(lambda m: b" " * len(m[0]), raw)
    data = np.frombuffer(raw + b"\n", np.uint8)
    solid = data > 32
    colon = data == ord(":")
    part = solid & ~colon
    begins = np.flatnonzero(part & ~np.concatenate([[False], part[:-1]]))
    ends = np.flatnonzero(part & ~np.concatenate([part[1:], [False]])) + 1
    row = np.cumsum((data == 10) | (data == 13))[begins]
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    counts = np.diff(np.append(starts, row.size))
    place = np.arange(row.size) - repeat(starts, counts)
    wrong = np.flatnonzero(colon[ends] != (place % 2 == 1))
    even = np.flatnonzero(counts % 2 == 0)
    if wrong.size or int(colon.sum()) != int((place % 2 == 1).sum()):
        text.fail(at + (int(begins[wrong[0]]) if wrong.size else 0), "expected a label, then pairs index:value")
    if even.size:
        text.fail(at + int(begins[starts[even[0]]]), "expected a label, then pairs index:value")
    spaced = Text.of(raw.replace(b":", b" "), text.name, line)
    numbers = scan(spaced, 0, Layout(0, 1, "f64", comment="", rest=Rest.NEXT), row.size, ()).values
    index = numbers[place % 2 == 1]
    odd = np.flatnonzero(~((index >= 0) & (index < 2**53) & (index == np.floor(index))))
    if odd.size:
        place_at = at + int(begins[place % 2 == 1][odd[0]])
        shown = text.token(place_at).split(":")[0]
        text.fail(place_at, f"expected an index that is a whole number, got {shown!r}")
    return numbers, counts

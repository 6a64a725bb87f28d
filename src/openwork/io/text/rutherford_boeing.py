"""Rutherford-Boeing and Harwell-Boeing (Duff, Grimes, Lewis: "The Rutherford-Boeing sparse matrix collection", 1997):
compressed columns in fixed-width Fortran records. Right-hand sides are not read; elemental matrices are refused.
"""

from __future__ import annotations

import re

import numpy as np

from ...classes import frozen
from ...errors import UnsupportedError
from ...interruptible import repeat
from ..shared.compressed import compressed
from ..shared.records import Array, Buffers, Header, Options
from ..shared.symmetry import KEEP, contradiction
from .scan import LIMIT, scan
from .scan_layout import Layout, Rest
from .source import Text

__all__ = ["header", "looks_like", "read"]

_FIELDS = {"r": ("real", "f64", 1), "c": ("complex", "f64", 2), "i": ("integer", "i64", 1), "p": ("pattern", "f64", 0)}
_SYMMETRIES = {"u": "general", "r": "general", "s": "symmetric", "h": "hermitian", "z": "skew-symmetric"}
_FORMAT = re.compile(r"\(\s*(?:\d+\s*p\s*,?\s*)?(\d*)\s*([iedfg])\s*(\d+)(?:\.\d+)?(?:e\d+)?\s*\)", re.IGNORECASE)
_BLOCK = 1 << 18
"""Bytes of lines that are taken apart at a time."""
_PARENTHESES = re.compile(r"\([^()]*\)")


@frozen
class _Record:
    """A Fortran format: `count` fields of `width` characters on each line."""

    count: int
    width: int


@frozen
class _Header:
    title: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    entries: int
    formats: tuple[_Record, ...]
    line: int
    """The number of the line where the pointers begin, and its first byte."""
    body: int


def looks_like(head: bytes) -> bool:
    """Whether the third line begins with a matrix type such as RUA, and the fourth with a Fortran format."""
    lines = head.split(b"\n", 4)
    return len(lines) > 4 and bool(re.match(rb"\s*[rciq p][suhzr][ae]\s", lines[2].lower())) and b"(" in lines[3]


def header(text: Text) -> Header:
    h = _read_header(text)
    return Header("Rutherford-Boeing", h.shape, h.field, h.symmetry, h.entries, (h.title,))


def read(text: Text, options: Options) -> Buffers:
    """Compressed columns as they stand in the file, the stored triangle only where it is symmetric."""
    h = _read_header(text)
    columns = h.shape[1]
    cursor = _Cursor(text, h.body, h.line)
    at_pos = cursor.line
    pos = cursor.numbers(columns + 1, h.formats[0], Layout(0, 1, "i64", comment="", rest=Rest.NEXT), "column pointers")
    _check_pointers(text, pos, h, at_pos)
    at_crd = cursor.line
    crd = cursor.numbers(h.entries, h.formats[1], Layout(0, 1, "i64", comment="", rest=Rest.NEXT), "row indices")
    out_of_range = np.flatnonzero((crd < 1) | (crd > h.shape[0]))
    if out_of_range.size:
        k = int(out_of_range[0])
        _refuse(
            text, at_crd + k // h.formats[1].count, f"row index {crd[k]} (entry {k + 1}) is outside 1..{h.shape[0]}"
        )
    _, scalar, parts = _FIELDS[h.field[0]]
    layout = Layout(0, 1, scalar, comment="", rest=Rest.NEXT)
    values: Array = np.ones(h.entries)
    if parts:
        values = cursor.numbers(h.entries * parts, h.formats[2], layout, "values")
    if parts == 2:
        values = values.view(np.complex128)
    if options.progress is not None:
        options.progress(text.size, text.size)
    if h.symmetry != "general" and options.symmetry == "expand":
        _check_symmetry(text, h, pos, crd, values, at_crd)
    dtype = np.int32 if max(*h.shape, h.entries + 1) < 2**31 else np.int64
    return compressed("j", h.shape, (pos - 1).astype(dtype), (crd - 1).astype(dtype), values, h.symmetry)


def _check_symmetry(text: Text, h: _Header, pos: Array, crd: Array, values: Array, line: int) -> None:
    column = repeat(np.arange(1, h.shape[1] + 1), np.diff(pos))
    if fault := contradiction(crd - 1, column - 1, values, h.symmetry):
        _refuse(text, line + fault[0] // h.formats[1].count, fault[1], KEEP)


def _refuse(text: Text, line: int, message: str, help: str = "") -> None:
    position = 0
    for _ in range(line - text.first):
        _, position = text.next_line(position)
    text.fail(position, message, help)


def _check_pointers(text: Text, pos: Array, head: _Header, line: int) -> None:
    last = head.entries + 1
    if pos[0] != 1 or pos[-1] != last:
        k = 0 if pos[0] != 1 else pos.size - 1
        _refuse(
            text,
            line + k // head.formats[0].count,
            f"column pointer {k + 1} must be {1 if not k else last}, got {pos[k]}",
        )
    decreasing = np.flatnonzero(pos[1:] < pos[:-1])
    if decreasing.size:
        k = int(decreasing[0]) + 1
        _refuse(text, line + k // head.formats[0].count, f"column pointer {k + 1} falls from {pos[k - 1]} to {pos[k]}")


class _Cursor:
    """Reads one section of fixed-width fields after the other."""

    def __init__(self, text: Text, position: int, line: int) -> None:
        self.text, self.line = text, line
        ends = np.flatnonzero(text.data[position:] == 10) + position
        self.starts, self.ends = np.concatenate([[position], ends + 1])[: ends.size], ends
        self.next = 0

    def numbers(self, count: int, record: _Record, layout: Layout, what: str) -> Array:
        """The next `count` numbers; what follows starts on a new line."""
        lines = min(-(-count // record.count), self.starts.size - self.next)
        part = Text.of(self._spaced(lines, record), self.text.name, self.line)
        room = (part.size + 1) // 2
        if count > room:
            part.fail(part.size, f"the file ends before the {count} {what} that are declared")
        values = scan(part, 0, layout, count, ()).values
        self.next += lines
        self.line += lines
        return values

    def _spaced(self, lines: int, record: _Record) -> bytes:
        """The next lines with a blank after every field, some at a time."""
        blocks: list[bytes] = []
        first, stop = self.next, self.next + lines
        if lines and stop == self.starts.size:
            self._check_last_field(record)
        while first < stop:
            begin = int(self.starts[first])
            after = min(max(int(np.searchsorted(self.ends, begin + _BLOCK)), first + 1), stop)
            block = self.text.data[begin : int(self.ends[after - 1]) + 1]
            spaced, bad_position = _separate_fields(block, self.starts[first:after] - begin, record)
            if bad_position is not None:
                self.text.fail(begin + bad_position, f"two numbers in one field of {record.width} characters")
            blocks.append(spaced)
            first = after
        return b"".join(blocks)

    def _check_last_field(self, record: _Record) -> None:
        """A line without an end must not stop inside a field: the number may have lost digits."""
        length = int(self.ends[-1] - self.starts[-1])
        if 0 < length < record.count * record.width and length % record.width:
            self.text.fail(self.text.size, f"the file ends inside a field of {record.width} characters")


def _separate_fields(block: Array, starts: Array, record: _Record) -> tuple[bytes, int | None]:
    """Lines that begin at `starts`, with a blank between fields; and where a second number stands in a field."""
    column = np.arange(block.size) - repeat(starts, np.diff(starts, append=block.size))
    field_bytes = np.where((column < record.count * record.width) & (block > 32) | (block == 10), block, np.uint8(32))
    field_column = column % record.width
    is_digit_byte = field_bytes > 32
    number_starts = np.flatnonzero(
        is_digit_byte & ((field_column == 0) | ~np.concatenate([[False], is_digit_byte[:-1]]))
    )
    second_numbers = np.flatnonzero(np.diff(number_starts - field_column[number_starts]) == 0)
    field_starts = (field_column == 0) & (column > 0)
    separated = np.full(block.size + int(np.count_nonzero(field_starts)), 32, np.uint8)
    separated[np.arange(block.size) + np.cumsum(field_starts)] = field_bytes
    return separated.tobytes(), int(number_starts[second_numbers[0] + 1]) if second_numbers.size else None


def _read_header(text: Text) -> _Header:
    lines: list[tuple[bytes, int]] = []
    position = 0
    for _ in range(4):
        if position >= text.size:
            text.fail(text.size, "the file ends inside the four header lines")
        line, following = text.next_line(position)
        lines.append((line, position))
        position = following
    kind, shape, entries = _type_line(text, *lines[2])
    field, symmetry = kind[0], kind[1]
    if kind[2] == "e":
        raise UnsupportedError(f"{text.name}: elemental matrices ({kind}) are not read, only assembled ones")
    counts = lines[1][0].split()
    if len(counts) < 4 or not all(c.isdigit() for c in counts[:4]):
        text.fail(
            lines[1][1], "expected four or five counts of lines: total, pointers, indices, values, right-hand sides"
        )
    formats = _formats(text, *lines[3], needed=2 + (field != "p"))
    if symmetry in "shz" and shape[0] != shape[1]:
        text.fail(lines[2][1], f"type {kind.upper()} must be square, got {shape[0]}x{shape[1]}")
    number = 5
    fifth, following = text.next_line(position)
    if (len(counts) > 4 and counts[4].isdigit() and int(counts[4]) > 0) or re.match(rb"\s*[FfMm]", fifth):
        position, number = following, 6
    title = lines[0][0].decode("latin-1").strip()
    return _Header(title, _FIELDS[field][0], _SYMMETRIES[symmetry], shape, entries, formats, number, position)


def _type_line(text: Text, line: bytes, at: int) -> tuple[str, tuple[int, int], int]:
    words = line.lower().split()
    kind = words[0].decode("latin-1") if words else ""
    if len(kind) != 3 or kind[0] not in _FIELDS or kind[1] not in _SYMMETRIES or kind[2] not in "ae":
        text.fail(at, f"expected a matrix type such as RUA or PSA, got {kind!r}")
    if len(words) < 4 or not all(w.isdigit() for w in words[1:4]):
        text.fail(at, "expected the type, then rows, columns and entries")
    rows, columns, entries = (int(w[:40]) for w in words[1:4])
    if max(rows, columns, entries) > LIMIT - 1:
        text.fail(at, "a size does not fit in 64 bits")
    return kind, (rows, columns), entries


def _formats(text: Text, line: bytes, at: int, needed: int) -> tuple[_Record, ...]:
    parts = _PARENTHESES.findall(line.decode("latin-1"))
    records: list[_Record] = []
    for word in parts[:needed]:
        match = _FORMAT.fullmatch(word)
        if match is None or not 0 < int(match[3][:6]) <= 1000 or not 0 < int(match[1][:6] or 1) <= 10000:
            text.fail(at + line.find(word.encode("latin-1")), f"expected a Fortran format such as (16I5), got {word}")
        records.append(_Record(int(match[1] or 1), int(match[3])))
    if len(records) < needed:
        text.fail(at, f"expected {needed} Fortran formats, got {len(records)}")
    return tuple(records)

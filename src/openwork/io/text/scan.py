"""Text -> a table of numbers: `columns` integers and `values` numbers per line.

The work is done by a compiled kernel (`io.text.scan_kernel`); `scan_python` is its reference, one line at a time.
Both leave a token they cannot decide by plain arithmetic (more than 19 digits, a tie, "inf", an integer beyond
64 bits) to Python's own `float` and `int`, so every number is rounded exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from ...classes import frozen
from ..shared.records import Array, Step, index_dtype
from . import scan_kernel
from .scan_layout import Fault, Layout, Rest, Scanner
from .source import Text

__all__ = [
    "LIMIT",
    "Table",
    "number",
    "record_start",
    "scan",
    "whole_numbers",
]


@frozen
class Table:
    """`indices[k]` has column k less the base; `values` has shape (rows * layout.values,); `end` is the byte after."""

    rows: int
    indices: tuple[Array, ...]
    values: Array
    end: int


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?|[+-]?(inf(inity)?|nan(\(\w*\))?)", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d+")
_BARE_EXPONENT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([+-]\d+)")
LIMIT = 2**63 - 1
MOST_SIZES = 4096


def number(token: str) -> float | None:
    """A real number as Fortran or C writes it, exactly rounded; None for anything else."""
    if _NUMBER.fullmatch(token):
        return float("nan" if "nan" in token.lower() else token.lower().replace("d", "e"))
    bare = _BARE_EXPONENT.fullmatch(token)
    return float(f"{bare[1]}e{bare[2]}") if bare else None


def whole_numbers(text: Text, line: bytes, at: int, what: str = "size") -> list[int]:
    """The integers on a header line that starts at byte `at`: none negative, each within 64 bits."""
    numbers: list[int] = []
    end = 0
    if len(line) > MOST_SIZES:
        text.fail(at, f"a line of {len(line)} bytes; expected {what}s, {MOST_SIZES} bytes at most")
    for word in line.split():
        end = line.index(word, end) + len(word)
        position = at + end - len(word)
        shown = word[:40].decode("latin-1")
        if not word.removeprefix(b"-").isdigit():
            text.fail(position, f"expected an integer {what}, got {shown!r}")
        if word.startswith(b"-"):
            text.fail(position, f"a {what} cannot be negative, got {shown}")
        if len(word) > 4000 or int(word) > LIMIT:
            text.fail(position, f"a {what} of {shown} does not fit in 64 bits")
        numbers.append(int(word))
    return numbers


def scan(
    text: Text,
    start: int,
    layout: Layout,
    rows: int | None = None,
    extents: Sequence[int] | None = None,
    progress: Step | None = None,
) -> Table:
    """Read `rows` records from byte `start`, or all up to the end of the file.

    `extents` bound the indices: the largest allowed in column k is `extents[k] - 1 + base`. Raises FileFormatError
    that names the line for a malformed number, an index out of range, and too few or too many records.
    Cost: the file once; memory in proportion to the file, whatever it declares.
    """

    capacity = max_records(text, start, layout) + 1  # one more, so that a line that breaks off is reached and named
    if rows is not None:
        capacity = min(rows, capacity)
    elif layout.rest is not Rest.NEXT:
        capacity = min(capacity, _line_count_bound(text.data[start:]))
    dtype = index_dtype(extents) if extents is not None else np.dtype(np.int64)
    largest = np.full(layout.columns, LIMIT, np.int64)
    if extents is not None:
        largest[:] = [min(e - 1 + layout.base, LIMIT) for e in extents]
    run = scan_kernel.scanner(layout, dtype)
    state = Scan(text, start, layout, capacity, largest, dtype)
    while state.position < text.data.size:
        state.advance(run)
        if progress is not None:
            progress(min(state.position, text.size), text.size)
    return state.table(rows)


def record_start(text: Text, start: int, layout: Layout, record: int) -> int:
    """The byte at which a record begins, counted from 0 at byte `start`, of a text that has been read."""

    largest = np.full(layout.columns, LIMIT, np.int64)
    state = Scan(text, start, layout, record, largest, np.dtype(np.int64))
    run = scan_kernel.scanner(layout, np.dtype(np.int64))
    while state.position < text.data.size and not state.state[_FAULT]:
        state.step(run)
    return int(state.state[_AT]) if state.state[_FAULT] else text.size


def max_records(text: Text, start: int, layout: Layout) -> int:
    """The most records that the bytes from `start` on can hold: each field takes a digit and a separator."""
    return max((text.size - start + 1) // (2 * (layout.columns + layout.values)), 0)


def _line_count_bound(data: Array) -> int:
    """At least the number of lines, in blocks that stay in cache."""
    blocks = (data[k : k + (1 << 18)] for k in range(0, data.size, 1 << 18))
    return sum(int(np.count_nonzero(b == 10)) + int(np.count_nonzero(b == 13)) for b in blocks)


_CHUNK = 1 << 23
_MAX_PENDING = 4096
_MAX_TOKEN = 4096
_POSITION, _ROWS, _FAULT, _AT, _COLUMN, _PENDING = range(6)
"""The slots of `state`, which a scanner reads and writes: where it is, records done, why it stopped, where, in which
field, and how many numbers wait for Python."""


class Scan:
    """The state of one scan: the position, the buffers filled so far, and the tokens left to Python."""

    def __init__(
        self, text: Text, start: int, layout: Layout, capacity: int, most: Array, dtype: np.dtype[np.signedinteger]
    ) -> None:
        self.text, self.layout, self.capacity, self.most = text, layout, capacity, most
        self.index: Array = np.empty(max(layout.columns * capacity, 1), dtype)
        self.words: Array = np.empty(max(layout.values * capacity, 1), np.uint64)
        self.slow: Array = np.empty(2 * (_MAX_PENDING + layout.values), np.int64)
        self.state: Array = np.zeros(8, np.int64)
        self.state[_POSITION] = start
        self.unsigned: list[tuple[int, int]] = []

    @property
    def position(self) -> int:
        return int(self.state[_POSITION])

    def step(self, run: Scanner) -> None:
        """Scan a part of the text."""
        end = min(self.position + _CHUNK, self.text.data.size)
        run(self.text.data, end, self.capacity, self.most, self.index, self.words, self.slow, self.state)
        self._convert_pending()

    def advance(self, run: Scanner) -> None:
        """Scan a part of the text; raises FileFormatError for what stopped it."""
        self.step(run)
        if self.state[_FAULT]:
            self._report(Fault(int(self.state[_FAULT])), int(self.state[_AT]), int(self.state[_COLUMN]))

    def _convert_pending(self) -> None:
        """Convert the tokens that the scanner left to Python's own `float` and `int`."""
        count = int(self.state[_PENDING])
        self.state[_PENDING] = 0
        floats = self.words.view(np.float64)
        for position, slot in self.slow[: 2 * count].reshape(-1, 2).tolist():
            token = self.text.token(position, _MAX_TOKEN)
            if len(token) == _MAX_TOKEN:
                self.text.fail(position, f"a number of {_MAX_TOKEN} characters or more: {token[:20]!r}...")
            if self.layout.scalar == "f64":
                value = number(token)
                if value is None:
                    self._report(Fault.NUMBER, position, self.layout.columns)
                floats[slot] = value
                continue
            integer = int(token) if _INTEGER.fullmatch(token) else None
            if integer is None or not -(2**63) <= integer < 2**64:
                self._report(Fault.NUMBER, position, self.layout.columns)
            if integer > LIMIT:
                self.unsigned.append((position, slot))
            self.words[slot] = integer % 2**64

    def _report(self, fault: Fault, at: int, column: int) -> NoReturn:
        layout, token = self.layout, self.text.token(at)
        fields = layout.columns + layout.values
        if fault is Fault.INTEGER:
            self.text.fail(at, f"expected an integer index of at most 18 digits, got {token!r}")
        if fault is Fault.NUMBER:
            kind = "a number" if layout.scalar == "f64" else "an integer of at most 64 bits"
            self.text.fail(at, f"expected {kind}, got {token!r}")
        if fault is Fault.RANGE:
            largest = int(self.most[column])
            bound = f"{layout.base}..{largest}" if largest < LIMIT else f"{layout.base} and up"
            hint = "for a zero-based file pass base=0" if layout.base == 1 and token == "0" else ""
            self.text.fail(at, f"index {token} in column {column + 1} is outside {bound}", hint)
        if fault is Fault.MISSING:
            self.text.fail(at, f"expected {fields} fields per line ({layout.describe()}), got {column}")
        if fault is Fault.EXTRA:
            self.text.fail(at, f"expected {fields} fields per line ({layout.describe()}), got more: {token!r}")
        self.text.fail(at, f"more entries than the {self.capacity} that are declared")

    def table(self, rows: int | None) -> Table:
        """The Table of the records read; raises FileFormatError for fewer than `rows`."""
        done, layout = int(self.state[_ROWS]), self.layout
        if rows is not None and done < rows:
            self.text.fail(self.text.size, f"the file ends after {done} of {rows} entries")
        columns = tuple(self.index[k * self.capacity : k * self.capacity + done] for k in range(layout.columns))
        words = self.words[: done * layout.values]
        if layout.scalar == "f64":
            return Table(done, columns, words.view(np.float64), self.position)
        if not self.unsigned:
            return Table(done, columns, words.view(np.int64), self.position)
        negative = words.view(np.int64) < 0
        negative[[slot for _, slot in self.unsigned]] = False
        if negative.any():
            self.text.fail(self.unsigned[0][0], "no integer type holds both this value and the negative ones")
        return Table(done, columns, words, self.position)

"""CHOLMOD's triplet text, `.tri`: `rows columns entries [stype]`, then `i j [value [imaginary]]` per line.

The rules are those of `cholmod_read_triplet`: "%" comments and blank lines anywhere; indices start at 1 unless a 0
occurs; stype 0 is general, < 0 symmetric (Hermitian when complex) with the lower triangle stored, > 0 with the upper
one, entries of the other triangle ignored; a rectangular matrix is general. Without stype, a square matrix that has
entries in one triangle only is symmetric. A header with two numbers is a dense matrix, one element per line.
"""

from __future__ import annotations

import numpy as np

from ..shared.records import Array, Coordinates, Header, Options, index_dtype
from ..shared.symmetry import KEEP, contradiction
from .matrix_market import read_dense
from .scan import scan, whole_numbers
from .scan_layout import Layout
from .source import Text

__all__ = ["header", "looks_like", "read"]


def looks_like(head: bytes) -> bool:
    """Whether the first line of content is two to five integers."""
    lines = (s for line in head.splitlines() if (s := line.strip()) and not s.startswith(b"%"))
    words = next(lines, b"").split()
    return 2 <= len(words) <= 5 and all(w.removeprefix(b"-").isdigit() for w in words)


def header(text: Text) -> Header:
    shape, entries, stype, _ = _sizes(text)
    symmetry = "symmetric" if stype else "general"
    return Header("CHOLMOD triplets", shape, "real", symmetry, entries)


def read(text: Text, options: Options) -> Coordinates:
    """The stored triangle (or all), as CHOLMOD reads it."""
    shape, entries, stype, body = _sizes(text)
    line, at, _ = text.content_line(body, b"%")
    fields = len(line.split())
    if entries is None:
        return _dense(text, shape, body, fields, options)
    if entries and not 2 <= fields <= 4:
        text.fail(at, f"expected a row, a column and up to two values, got {fields} fields")
    count = max(fields - 2, 0) if entries else 1
    extents_plus_one = tuple(min(n + 1, 2**63 - 1) for n in shape) if options.base is None else shape
    layout = Layout(2, count, "f64", options.base or 0)
    table = scan(text, body, layout, entries, extents_plus_one, options.progress)
    values = table.values if count else np.ones(table.rows)
    indices = _zero_based(text, body, table.indices, shape) if options.base is None else table.indices
    record = _triangle(shape, indices, values.view(np.complex128) if count == 2 else values, stype)
    row, column = record.indices
    fault = contradiction(row, column, record.values, record.symmetry) if options.symmetry == "expand" else None
    if fault:
        text.fail(body, fault[1], KEEP)
    return record


def _sizes(text: Text) -> tuple[tuple[int, ...], int | None, int | None, int]:
    line, at, body = text.content_line(0, b"%")
    words = line.split()
    if not 2 <= len(words) <= 5:
        text.fail(at, f"expected a line with rows, columns, entries and stype, got {len(words)} fields")
    numbers = whole_numbers(text, line[: _end_of_third_field(line)], at)
    stype = 0 if len(words) == 2 else None
    if len(words) > 3:
        sign = words[3].removeprefix(b"-")
        if not sign.isdigit():
            text.fail(at, f"expected an integer stype, got {words[3].decode('latin-1')!r}")
        stype = 0 if int(sign[:9]) == 0 else (-1 if words[3].startswith(b"-") else 1)
    shape = (numbers[0], numbers[1])
    return shape, numbers[2] if len(numbers) > 2 else None, 0 if shape[0] != shape[1] else stype, body


def _end_of_third_field(line: bytes) -> int:
    """Where the third field of `line` ends."""
    end = 0
    for word in line.split()[:3]:
        end = line.index(word, end) + len(word)
    return end


def _zero_based(text: Text, body: int, indices: tuple[Array, ...], shape: tuple[int, ...]) -> tuple[Array, ...]:
    if not indices[0].size:
        return tuple(c.astype(index_dtype(shape), copy=False) for c in indices)
    has_zero = any(int(c.min()) == 0 for c in indices)
    for name, column, extent in zip(("row", "column"), indices, shape, strict=True):
        largest = int(column.max())
        if has_zero and largest >= extent:
            text.fail(
                body, f"{name} index {largest} is outside 0..{extent - 1} (an index 0 occurs, so they start at 0)"
            )
    shifted = indices if has_zero else tuple(c - c.dtype.type(1) for c in indices)
    return tuple(c.astype(index_dtype(shape), copy=False) for c in shifted)


def _triangle(shape: tuple[int, ...], indices: tuple[Array, ...], values: Array, stype: int | None) -> Coordinates:
    row, column = indices
    if stype is None:
        lower, upper = bool((row >= column).all()), bool((row <= column).all())
        stype = 1 if upper else -1 if lower else 0
    if stype == 0:
        return Coordinates(shape, indices, values)
    stored_half = row >= column if stype < 0 else row <= column
    if not stored_half.all():
        row, column, values = row[stored_half], column[stored_half], values[stored_half]
    return Coordinates(shape, (row, column), values, "hermitian" if values.dtype.kind == "c" else "symmetric")


def _dense(text: Text, shape: tuple[int, ...], body: int, fields: int, options: Options) -> Coordinates:
    if shape[0] * shape[1] and not 1 <= fields <= 2:
        text.fail(body, f"expected one element of a dense matrix per line, got {fields} fields")
    table = scan(text, body, Layout(0, max(fields, 1)), shape[0] * shape[1], (), options.progress)
    values = table.values.view(np.complex128) if fields == 2 else table.values
    dense = read_dense(values, shape, "general")
    return Coordinates(shape, (), dense.ravel(order="K"), "general", dense)

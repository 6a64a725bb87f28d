"""Coordinate text of any order: FROSTT's `.tns` (http://frostt.io/tensors/file-formats.html), the `sptensor` text of
Tensor Toolbox and GenTen, MLIR's extended FROSTT, and two relatives: edge lists and UCI's bag of words.

A `.tns` line is one-based coordinates and a value, "#" starts a comment, the shape is the largest coordinate in each
column unless a comment at the head ends with the word "shape" and the sizes. Where "entries" and their number follow,
as in the files that we write, all of it is binding, and a file that was cut is refused. `values=False` reads a file
without the value column.
"""

from __future__ import annotations

import re

import numpy as np

from ...classes import frozen
from ..shared.records import Array, Coordinates, Header, Options, index_dtype
from .declared import as_declared, check_end
from .scan import LIMIT, scan, whole_numbers
from .scan_layout import Layout, Rest
from .source import Text

__all__ = ["entry_layout", "header_tns", "read_docword", "read_edges", "read_sptensor", "read_tns"]

_SHAPE = re.compile(r"\bshape:?((?:[\s,x]+\d{1,18})+)\s*$")
_OURS = re.compile(r"# shape((?: \d{1,19})+) entries (\d{1,19})")


@frozen
class _DeclaredSize:
    """Shape and number of entries that a file written by openwork declares in its comments."""

    shape: tuple[int, ...]
    entries: int


def read_tns(text: Text, options: Options) -> Coordinates:
    """`.tns`, with or without the two header lines of extended FROSTT."""
    line, at, following = text.content_line(0, b"#")
    if line.split()[:1] == [b"sptensor"]:
        return read_sptensor(text, options)
    base = 1 if options.base is None else options.base
    count = int(options.values)
    if _is_extended(text):
        shape, entries, at = _extended(text, line, at, following)
        layout = Layout(len(shape), count, "f64", base, "#")
        table = scan(text, at, layout, entries, shape, options.progress)
        return Coordinates(shape, table.indices, table.values if count else np.ones(table.rows))
    comments = text.comments(b"#")
    declared = _declared_size(comments)
    fields = len(line.split()) or (len(declared.shape) + count if declared else 0)
    if not fields:
        text.fail(text.size, "the file holds no entries, so its order is unknown")
    if fields - count < 1:
        text.fail(at, "expected coordinates and a value on each line, got one field")
    scalar = _declared_dtype(comments) if count else ""
    kind = "i64" if scalar.startswith(("i", "u", "bool")) else "f64"
    layout = Layout(fields - count, count, kind, base, "#")
    if declared:
        return _read_declared(text, at, layout, declared, scalar, options)
    table = scan(text, at, layout, progress=options.progress)
    values = as_declared(text, table.values, scalar) if scalar else table.values
    values = values if count else np.ones(table.rows)
    return _with_inferred_shape(table.indices, values, _declared_shape(comments, table.indices))


def entry_layout(text: Text, options: Options) -> tuple[Layout, tuple[tuple[int, ...], int | None] | None, str] | None:
    """What the beginning of a `.tns` says: the fields of an entry, shape and number of entries where openwork declared
    them, and its dtype. None of other layouts, and where there is no entry."""
    line, _, _ = text.content_line(0, b"#")
    comments = text.comments(b"#")
    declared = _declared_size(comments)
    count = int(options.values)
    fields = len(line.split()) or (len(declared.shape) + count if declared else 0)
    shaped = any(_SHAPE.search(c) for c in comments)
    if line.split()[:1] == [b"sptensor"] or _is_extended(text) or fields - count < 1 or (shaped and not declared):
        return None
    if declared and fields - count != len(declared.shape):
        return None
    scalar = _declared_dtype(comments) if count else ""
    kind = "i64" if scalar.startswith(("i", "u", "bool")) else "f64"
    base = 1 if options.base is None else options.base
    found = Layout(fields - count, count, kind, base, "#")
    return found, (declared.shape, declared.entries) if declared else None, scalar


def _read_declared(
    text: Text, at: int, layout: Layout, declared: _DeclaredSize, scalar: str, options: Options
) -> Coordinates:
    """A file written by openwork: it has the entries and dimensions that it declares, and ends with a line end."""
    check_end(text)
    if layout.columns != len(declared.shape):
        text.fail(at, f"expected {len(declared.shape)} indices, as the shape in the comment has, got {layout.columns}")
    table = scan(text, at, layout, declared.entries, declared.shape, options.progress)
    values = table.values if layout.values else np.ones(table.rows)
    return Coordinates(declared.shape, table.indices, as_declared(text, values, scalar) if scalar else values)


def _declared_size(comments: list[str]) -> _DeclaredSize | None:
    """Comments -> the declared shape and number of entries, None where openwork did not write the file."""
    header = next((m for c in comments if (m := _OURS.fullmatch(c))), None)
    shape = tuple(int(n) for n in header[1].split()) if header else ()
    if header is None or max(*shape, int(header[2])) > LIMIT:
        return None
    return _DeclaredSize(shape, int(header[2]))


def _declared_shape(comments: list[str], indices: tuple[Array, ...]) -> tuple[int, ...] | None:
    """The shape in a comment at the head, where it has one size per dimension and every index fits."""
    for comment in comments:
        shape_match = _SHAPE.search(comment)
        sizes = tuple(int(n) for n in re.findall(r"\d+", shape_match[1])) if shape_match else ()
        if len(sizes) == len(indices) and all(not c.size or c.max() < n for c, n in zip(indices, sizes, strict=True)):
            return sizes
    return None


def _declared_dtype(comments: list[str]) -> str:
    """The declared dtype of a file written by openwork, or ""."""
    marked = (c for c in comments if c.startswith("# openwork dtype "))
    return next((c.split()[-1] for c in marked), "")


def header_tns(text: Text) -> Header:
    """The Header of a `.tns` file: the order, and the shape where the file declares it."""
    line, at, following = text.content_line(0, b"#")
    if line.split()[:1] == [b"sptensor"]:
        shape, entries, _ = _sptensor_sizes(text)
        return Header("sptensor", shape, "real", entries=entries)
    if _is_extended(text):
        shape, entries, _ = _extended(text, line, at, following)
        return Header("extended FROSTT", shape, "real", entries=entries)
    comments = text.comments(b"#")
    declared = _declared_size(comments)
    if declared:
        return Header(
            "FROSTT", declared.shape, _declared_dtype(comments) or "real", "general", declared.entries, tuple(comments)
        )
    order = max(len(line.split()) - 1, 0)
    no_indices = (np.empty(0, np.int64),) * order
    return Header("FROSTT", _declared_shape(comments, no_indices) or (-1,) * order, "real", comments=tuple(comments))


def _is_extended(text: Text) -> bool:
    line, _ = text.next_line(0)
    return line.lstrip().startswith(b"#") and b"extended frostt" in line.lower()


def _extended(text: Text, line: bytes, at: int, following: int) -> tuple[tuple[int, ...], int, int]:
    numbers = whole_numbers(text, line, at)
    sizes, at, body = text.content_line(following, b"#")
    shape = whole_numbers(text, sizes, at)
    if len(numbers) != 2 or numbers[0] != len(shape):
        text.fail(
            at, f"expected a line with the order and the number of entries, then the sizes, got {numbers}, {shape}"
        )
    return tuple(shape), numbers[1], body


def _with_inferred_shape(indices: tuple[Array, ...], values: Array, shape: tuple[int, ...] | None) -> Coordinates:
    extents = shape or tuple(int(c.max()) + 1 if c.size else 0 for c in indices)
    dtype = index_dtype(extents)
    return Coordinates(extents, tuple(c.astype(dtype, copy=False) for c in indices), values)


def read_sptensor(text: Text, options: Options) -> Coordinates:
    """`sptensor`: order, sizes, number of entries, entries. Tensor Toolbox counts from 1 and GenTen from 0, and neither
    says so; the entries tell, or the reader must (`base=`)."""
    shape, entries, body = _sptensor_sizes(text)
    if options.base is not None:
        layout = Layout(len(shape), 1, "f64", options.base, "#")
        table = scan(text, body, layout, entries, shape, options.progress)
        return Coordinates(shape, table.indices, table.values)
    layout = Layout(len(shape), 1, "f64", 0, "#")
    extents_plus_one = tuple(min(n + 1, 2**63 - 1) for n in shape)
    table = scan(text, body, layout, entries, extents_plus_one, options.progress)
    has_zero = any(c.size and int(c.min()) == 0 for c in table.indices)
    has_extent = any(c.size and int(c.max()) == n for c, n in zip(table.indices, shape, strict=True))
    if table.rows and has_zero == has_extent:
        why = "both 0 and a dimension's size occur" if has_zero else "neither 0 nor a dimension's size occurs"
        text.fail(body, f"cannot tell whether indices start at 0 or 1: {why}", "pass base=0 or base=1")
    indices = tuple(c - c.dtype.type(1) for c in table.indices) if has_extent else table.indices
    return _with_inferred_shape(indices, table.values, shape)


def _sptensor_sizes(text: Text) -> tuple[tuple[int, ...], int, int]:
    _, _, after = text.content_line(0, b"#")
    numbers: list[list[int]] = []
    for _ in range(3):
        line, at, after = text.content_line(after, b"#")
        numbers.append(whole_numbers(text, line, at))
    order, shape, entries = numbers
    if len(order) != 1 or len(entries) != 1 or order[0] != len(shape):
        text.fail(at, "expected lines with the order, the sizes and the number of entries")
    return tuple(shape), entries[0], after


def read_edges(text: Text, options: Options) -> Coordinates:
    """An edge list: two vertex ids per line, an optional third field ignored; the ids are the coordinates."""
    base = 0 if options.base is None else options.base
    layout = Layout(2, 0, "f64", base, "#", Rest.IGNORE)
    table = scan(text, 0, layout, progress=options.progress)
    n = max((int(c.max()) + 1 for c in table.indices if c.size), default=0)
    return _with_inferred_shape(table.indices, np.ones(table.rows), (n, n))


def read_docword(text: Text, options: Options) -> Coordinates:
    """UCI's bag of words: three lines with documents, words and entries, then (document, word, count)."""
    sizes: list[int] = []
    after = 0
    for _ in range(3):
        line, at, after = text.content_line(after, b"")
        counts = whole_numbers(text, line, at)
        if len(counts) != 1:
            text.fail(at, f"expected one number (documents, words, entries), got {len(counts)}")
        sizes += counts
    layout = Layout(2, 1, "i64", 1, "")
    table = scan(text, after, layout, sizes[2], sizes[:2], options.progress)
    return Coordinates((sizes[0], sizes[1]), table.indices, table.values)

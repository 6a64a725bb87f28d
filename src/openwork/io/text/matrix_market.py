"""Matrix Market (https://math.nist.gov/MatrixMarket/formats.html), and TACO's `.ttx`, which has `tensor` for `matrix`.

Read more widely than the format asks for: any case, blank and comment lines anywhere, indented lines, a banner with one
"%", unsigned-integer and double fields, vectors. What the banner promises is checked: the number of fields on each
line, every index, the number of entries. Only a pattern's lines may have more fields: real files do, and the banner
says that the values play no part.
"""

from __future__ import annotations

import math

import numpy as np

from ...classes import frozen
from ..shared.records import SYMMETRIES, Array, Coordinates, Header, Options
from ..shared.symmetry import KEEP, contradiction, dense_contradiction
from .declared import as_declared, check_end
from .scan import record_start, scan, whole_numbers
from .scan_layout import Layout, Rest
from .source import Text

__all__ = ["Banner", "entry_layout", "header", "is_banner", "read", "read_dense"]

_OBJECTS = ("matrix", "vector", "tensor")
_LAYOUTS = ("coordinate", "array")
_FIELDS = {
    "real": "real",
    "double": "real",
    "complex": "complex",
    "integer": "integer",
    "unsigned-integer": "integer",
    "pattern": "pattern",
}
_BANNER_WORDS = (
    (1, "object", _OBJECTS),
    (2, "layout", _LAYOUTS),
    (3, "field", tuple(_FIELDS)),
    (4, "symmetry", SYMMETRIES),
)
_VALUES = {"real": ("f64", 1), "integer": ("i64", 1), "complex": ("f64", 2), "pattern": ("f64", 0)}
_DTYPE_MARK = "%%openwork dtype "


@frozen
class Banner:
    """What the first lines of a file say."""

    object: str
    layout: str
    field: str
    symmetry: str
    shape: tuple[int, ...]
    entries: int
    dtype: str
    comments: tuple[str, ...]
    body: int
    """Where the entries begin."""
    at: int
    """Where the size line begins."""

    @property
    def elements_of_array(self) -> int:
        """The number of lines that the body of an array must have."""
        if self.symmetry == "general":
            return math.prod(self.shape)
        n = self.shape[0]
        return n * (n - 1) // 2 if self.symmetry == "skew-symmetric" else n * (n + 1) // 2


def is_banner(head: bytes) -> bool:
    """Whether the text starts as a Matrix Market file does."""
    return head.lstrip()[:16].lower().lstrip(b"%").startswith(b"matrixmarket")


def header(text: Text) -> Header:
    """The Header from the banner and the size line."""
    b = _banner(text)
    return Header("Matrix Market", b.shape, b.dtype or b.field, b.symmetry, b.entries, b.comments)


def read(text: Text, options: Options) -> Coordinates:
    """The stored entries; raises FileFormatError that names the line."""
    banner = _banner(text)
    count = _VALUES[banner.field][1]
    if banner.dtype:
        check_end(text)
    if banner.layout == "array":
        return _read_array(text, banner, options)
    layout = _layout(banner, options)
    table = scan(text, banner.body, layout, banner.entries, banner.shape, options.progress)
    values = _in_declared_dtype(text, banner, table.values if count else np.ones(table.rows))
    if banner.symmetry != "general" and options.symmetry == "expand":
        row, column = table.indices
        fault = contradiction(row, column, values, banner.symmetry)
        if fault:
            text.fail(record_start(text, banner.body, layout, fault[0]), fault[1], KEEP)
    return Coordinates(banner.shape, table.indices, values, banner.symmetry)


def _layout(banner: Banner, options: Options) -> Layout:
    """The fields of an entry."""
    scalar, count = _VALUES[banner.field]
    base = 1 if options.base is None else options.base
    return Layout(len(banner.shape), count, scalar, base, rest=Rest.REFUSE if count else Rest.IGNORE)


def entry_layout(text: Text, options: Options) -> tuple[Banner, Layout] | None:
    """What the beginning of a text says of its entries; None of an array, and of an unsigned skew-symmetric matrix."""
    banner = _banner(text)
    if banner.layout == "array" or (banner.symmetry == "skew-symmetric" and banner.dtype.startswith(("u", "bool"))):
        return None
    return banner, _layout(banner, options)


def _in_declared_dtype(text: Text, banner: Banner, values: Array) -> Array:
    if banner.field == "complex":
        values = values.view(np.complex128)
    typed = as_declared(text, values, banner.dtype) if banner.dtype else values
    if banner.symmetry == "skew-symmetric" and typed.dtype.kind in "bu":
        text.fail(banner.at, f"a skew-symmetric matrix needs signed values, got {typed.dtype}")
    return typed


def _banner(text: Text) -> Banner:
    position = 0
    line, following = text.next_line(0)
    while not line.strip() and following < text.size:
        position = following
        line, following = text.next_line(position)
    words = line.decode("latin-1").lower().split()
    if not words or words[0].lstrip("%") != "matrixmarket" or not words[0].startswith("%"):
        text.fail(position, 'expected the banner "%%MatrixMarket matrix coordinate real general"')
    for place, what, allowed in _BANNER_WORDS:
        if len(words) <= place:
            text.fail(position, f"the banner ends before its {what}: one of {', '.join(allowed)}")
        if words[place] not in allowed:
            at = position + line.lower().find(words[place].encode("latin-1"), 14)
            text.fail(at, f"unknown {what} {words[place]!r} in the banner: expected one of {', '.join(allowed)}")
    kind, layout, field, symmetry = words[1], words[2], _FIELDS[words[3]], words[4]
    if layout == "array" and field == "pattern":
        text.fail(position, "an array cannot have the field pattern: its values would be missing")
    comments = tuple(text.comments(b"%", following))
    size, at, body = text.content_line(following, b"%")
    if not size:
        text.fail(text.size, "the file ends before the line with the sizes")
    shape, entries = _sizes(text, size, at, kind, layout)
    if symmetry != "general" and (len(shape) != 2 or shape[0] != shape[1]):
        text.fail(at, f"a {symmetry} {kind} must be square, got {'x'.join(map(str, shape))}")
    dtype = next((c[len(_DTYPE_MARK) :].strip() for c in comments if c.startswith(_DTYPE_MARK)), "")
    return Banner(kind, layout, field, symmetry, shape, entries, dtype, comments, body, at)


def _sizes(text: Text, line: bytes, at: int, kind: str, layout: str) -> tuple[tuple[int, ...], int]:
    numbers = whole_numbers(text, line, at)
    has_entries = layout == "coordinate"
    expected_count = {"matrix": 2 + has_entries, "vector": 1 + has_entries}.get(kind)
    if len(numbers) < 1 + has_entries or (expected_count is not None and len(numbers) != expected_count):
        parts = {"matrix": "rows columns", "vector": "length"}.get(kind, "one size per dimension")
        text.fail(at, f"expected the sizes ({parts}{' entries' if has_entries else ''}), got {len(numbers)} numbers")
    return (tuple(numbers[:-1]), numbers[-1]) if has_entries else (tuple(numbers), math.prod(numbers))


def _read_array(text: Text, banner: Banner, options: Options) -> Coordinates:
    scalar, count = _VALUES[banner.field]
    table = scan(text, banner.body, Layout(0, count, scalar), banner.elements_of_array, (), options.progress)
    values = _in_declared_dtype(text, banner, table.values)
    dense = read_dense(values, banner.shape, banner.symmetry, options.symmetry == "expand")
    fault = dense_contradiction(dense, banner.symmetry) if options.symmetry == "expand" else ""
    if fault:
        text.fail(banner.body, fault, KEEP)
    return Coordinates(banner.shape, (), dense.ravel(order="K"), banner.symmetry, dense)


def read_dense(values: Array, shape: tuple[int, ...], symmetry: str, mirror: bool = True) -> Array:
    """The array whose elements, or whose lower triangle's, stand in `values` column by column."""
    if symmetry == "general":
        return values.reshape(shape, order="F")
    n = shape[0]
    dense = np.zeros((n, n), values.dtype, order="F")
    skew = symmetry == "skew-symmetric"
    start = 0
    for j in range(n):
        first_row = j + skew
        column = values[start : start + n - first_row]
        dense[first_row:, j] = column
        if mirror:
            mirrored = column if skew else column[1:]
            dense[j, j + 1 :] = -mirrored if skew else mirrored.conj() if symmetry == "hermitian" else mirrored
        start += n - first_row
    return dense

"""MATLAB's MAT files of version 5 (v6, v7) and 4: bytes in, the numeric and sparse variables by dotted names out.

Every tag, length, class and index is checked against the bytes that are there before anything is made of it, and what
is compressed is unpacked to no more than `limits` allow, so that no file can crash the process or take its memory.
Source: MathWorks, "MAT-File Format" (versions 5 and 4).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from ...classes import define, frozen
from ...errors import FileFormatError
from ..shared import limits
from ..shared.compressed import check_pointers, compressed
from ..shared.records import Array, Buffers, Coordinates

__all__ = ["Variable", "variables"]

_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED, _UTF8 = 1, 5, 6, 14, 15, 16
_STRUCT, _SPARSE = 2, 5
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_NO_TENSORS = (1, 3, 4, 16, 17, 18)
"""Cells, objects, text, functions, opaque: no tensors, passed over."""
_LOGICAL, _COMPLEX = 0x200, 0x800
_HEADER = 128
_HEAD = 1 << 14
"""Unpacked bytes that hold the head of a variable: flags, dimensions, name."""
_DEPTH = 32
_BLOCK = 1 << 20
_PRECISIONS = ("f8", "f4", "i4", "i2", "u2", "u1")


@frozen
class _Element:
    """A tagged element: its data type, where its data begin and end, and where the next element begins."""

    kind: int
    start: int
    stop: int
    next: int


@frozen
class _Bytes:
    """Bytes of a file, or of a variable that was unpacked, with their byte order."""

    name: str
    data: memoryview
    order: str

    def fail(self, at: int, message: str) -> NoReturn:
        raise FileFormatError(f"{self.name}, byte {at}: {message}")

    def word(self, at: int) -> int:
        return int.from_bytes(self.data[at : at + 4], "little" if self.order == "<" else "big")

    def element(self, at: int, stop: int) -> _Element:
        """The element that begins at `at`; its data end at `stop` or before."""
        if at + 8 > stop:
            self.fail(at, f"expected a tag of 8 bytes, got {max(stop - at, 0)}")
        first = self.word(at)
        if first >> 16:
            size = first >> 16
            if size > 4:
                self.fail(at, f"a small element of {size} bytes; expected 4 at most")
            return _Element(first & 0xFFFF, at + 4, at + 4 + size, at + 8)
        start, size = at + 8, self.word(at + 4)
        if start + size > stop:
            self.fail(at, f"an element of {size} bytes, of which {stop - start} are there")
        end = start + size
        return _Element(first, start, end, end if first == _COMPRESSED else min(end + -size % 8, stop))

    def span(self, at: int) -> tuple[int, int]:
        """The first byte and the end of the data of the element at `at`."""
        element = self.element(at, len(self.data))
        return element.start, element.stop

    def numbers(self, element: _Element, kinds: str, what: str) -> Array:
        """The numbers of an element, in this machine's byte order, in memory of their own."""
        type_code = _STORED.get(element.kind, "")
        if not type_code or type_code[0] not in kinds:
            self.fail(element.start, f"{what} of data type {element.kind}; expected numbers")
        dtype = np.dtype(self.order + type_code)
        if (element.stop - element.start) % dtype.itemsize:
            self.fail(element.start, f"{what} of {element.stop - element.start} bytes, no multiple of {dtype.itemsize}")
        array = np.frombuffer(self.data[element.start : element.stop], dtype)
        return array.astype(dtype.newbyteorder("="))


@frozen
class Variable:
    """A numeric or sparse array of a file, not yet made."""

    sparse: bool
    source: _Bytes
    flags: int
    shape: tuple[int, ...]
    body: int
    stop: int
    unpack: _File | None = None
    """of a compressed variable: where `source` is its packed bytes"""

    def load(self) -> Buffers | Coordinates:
        """The array, converted to the type that MATLAB gives it."""
        if self.unpack is not None:
            unpacked = self.unpack.unpacked(self.source, self.body, self.stop)
            head = _head(unpacked, *unpacked.span(0))
            assert head is not None  # it was read from the same bytes
            return head[1].load()
        return _sparse(self) if self.sparse else _dense(self)


@define
class _File:
    """The budget of bytes that a file may still unpack to."""

    packed: int
    ratio: int | None
    done: int = 0

    def unpacked(self, source: _Bytes, start: int, stop: int, limit_bytes: int | None = None) -> _Bytes:
        """The bytes that are packed between `start` and `stop`, or the first `limit_bytes` of them."""
        out, machine = bytearray(), zlib.decompressobj()
        limit = limits.allowed(self.packed, self.ratio)
        name = f"{source.name}, unpacked from byte {start}"
        data = b""
        try:
            while not machine.eof and (limit_bytes is None or len(out) < limit_bytes):
                data = machine.unconsumed_tail or bytes(source.data[start : min(start + _BLOCK, stop)])
                if not machine.unconsumed_tail:
                    start += len(data)
                block = machine.decompress(data, _BLOCK if limit_bytes is None else limit_bytes - len(out))
                if not (block or data):
                    source.fail(start, "the compressed variable has no end")
                out += block
                if limit_bytes is None and self.done + len(out) > limit:
                    limits.refuse_size(source.name, self.packed, limit)
        except zlib.error as error:
            source.fail(start, f"the compressed variable is corrupt ({error})")
        if limit_bytes is None:
            self.done += len(out)
        return _Bytes(name, memoryview(out), source.order)


def variables(name: str, data: Array, ratio: int | None) -> dict[str, Variable]:
    """The numeric arrays and sparse matrices of a file; fields of 1x1 structures have dotted names."""
    raw = memoryview(data.data)
    if len(raw) < _HEADER and 0 not in raw[:4]:
        _Bytes(name, raw, "<").fail(len(raw), "not a readable MATLAB file: it ends inside the header")
    if 0 in raw[:4] or len(raw) < 4:
        return dict(_version_4(name, raw))
    marks = {b"IM": "<", b"MI": ">"}
    order = marks.get(bytes(raw[126:128]))
    source = _Bytes(name, raw, order or "<")
    if order is None:
        source.fail(126, f"not a readable MATLAB file: expected the mark IM or MI, got {bytes(raw[126:128])!r}")
    version = source.word(124) & 0xFFFF if order == "<" else source.word(124) >> 16
    if version != 0x100:
        source.fail(124, f"not a readable MATLAB file: version 0x{version:04x}; expected 0x0100")
    return dict(_version_5(source, _File(len(raw), ratio)))


def _version_5(source: _Bytes, file: _File) -> Iterator[tuple[str, Variable]]:
    at, end = _HEADER, len(source.data)
    while at < end:
        element = source.element(at, end)
        if element.kind == _COMPRESSED:
            part = file.unpacked(source, element.start, element.stop, _HEAD)
            tag = part.word(0) if len(part.data) >= 8 else 0
            if tag == _MATRIX:
                yield from _compressed_variable(source, file, element, part)
        elif element.kind == _MATRIX:
            yield from _walk(source, element.start, element.stop, "", 0)
        else:
            source.fail(at, f"an element of data type {element.kind}; expected a variable")
        at = element.next


def _compressed_variable(
    source: _Bytes, file: _File, element: _Element, part: _Bytes
) -> Iterator[tuple[str, Variable]]:
    """A compressed variable: unpacked now where it is a structure, when it is loaded where it is an array."""
    head = _head(part, 8, len(part.data))
    if head is None:
        return
    name, variable = head
    if variable.flags & 0xFF == _STRUCT:
        unpacked = file.unpacked(source, element.start, element.stop)
        yield from _walk(unpacked, *unpacked.span(0), "", 0)
        return
    lazy = Variable(variable.sparse, source, variable.flags, variable.shape, element.start, element.stop, file)
    yield name, lazy


def _head(source: _Bytes, at: int, stop: int) -> tuple[str, Variable] | None:
    """Name and head of the array at `at`; None for a class that holds no tensor."""
    flags = source.element(at, stop)
    if flags.kind != _UINT32 or flags.stop - flags.start != 8:
        source.fail(at, "expected the flags of an array")
    bits = source.word(flags.start)
    kind = bits & 0xFF
    if kind in _NO_TENSORS:
        return None
    if kind not in (_STRUCT, _SPARSE, *_CLASSES):
        source.fail(flags.start, f"an array of class {kind}, which there is not")
    dims = source.element(flags.next, stop)
    shape = tuple(int(n) for n in source.numbers(dims, "i", "dimensions"))
    if not 2 <= len(shape) <= 64 or min(shape) < 0:
        source.fail(flags.next, f"dimensions {shape[:65]}; expected 2 to 64, none negative")
    label = source.element(dims.next, stop)
    if label.kind not in (_INT8, _UTF8):
        source.fail(dims.next, f"a name of data type {label.kind}")
    name = bytes(source.data[label.start : label.stop]).decode("latin-1").rstrip("\0")
    return name, Variable(kind == _SPARSE, source, bits, shape, label.next, stop)


def _walk(source: _Bytes, at: int, stop: int, label: str, depth: int) -> Iterator[tuple[str, Variable]]:
    """The array at `at`, or the arrays in the fields of the structure; `label` is a field's dotted name."""
    head = _head(source, at, stop) if at < stop else None
    if head is None:
        return
    label, variable = label or head[0], head[1]
    if variable.flags & 0xFF == _STRUCT:
        if math.prod(variable.shape) == 1:
            yield from _fields(variable, label, depth)
    elif label:
        yield label, variable


def _fields(structure: Variable, label: str, depth: int) -> Iterator[tuple[str, Variable]]:
    source, stop = structure.source, structure.stop
    if depth == _DEPTH:
        source.fail(structure.body, f"structures more than {_DEPTH} deep")
    width = source.element(structure.body, stop)
    sizes = source.numbers(width, "i", "the length of field names")
    names = source.element(width.next, stop)
    size = int(sizes[0]) if sizes.size == 1 else 0
    if not 0 < size <= 4096 or (names.stop - names.start) % size:
        source.fail(structure.body, "the names of the fields have no length that fits")
    at = names.next
    for start in range(names.start, names.stop, size):
        field = bytes(source.data[start : start + size]).split(b"\0")[0].decode("latin-1")
        element = source.element(at, stop)
        if element.kind != _MATRIX:
            source.fail(at, f"the field {field} of data type {element.kind}; expected an array")
        yield from _walk(source, element.start, element.stop, f"{label}.{field}", depth + 1)
        at = element.next


def _values(variable: Variable, at: int, count: int | None) -> tuple[Array, int]:
    """The values of an array from its real and imaginary part, in MATLAB's type; and where what follows them begins."""
    source, kind = variable.source, variable.flags & 0xFF
    dtype = np.dtype(_CLASSES.get(kind, "f8"))
    parts: list[Array] = []
    for what in ("the real part", "the imaginary part")[: 2 if variable.flags & _COMPLEX else 1]:
        element = source.element(at, variable.stop)
        numbers = source.numbers(element, "iuf", what)
        if count is not None and numbers.size != count:
            source.fail(
                element.start, f"{what} has {numbers.size} numbers; expected {count} for shape {variable.shape}"
            )
        with np.errstate(all="ignore"):
            typed = numbers.astype(dtype)
        if dtype.kind in "iu" and not np.array_equal(typed, numbers):
            source.fail(element.start, f"{what} has numbers that are not of {dtype}")
        parts.append(typed)
        at = element.next
    if len(parts) == 2:
        if dtype.kind != "f":
            source.fail(variable.body, f"complex integers of {dtype}, for which there is no dtype")
        if parts[0].size != parts[1].size:
            source.fail(variable.body, f"{parts[0].size} real and {parts[1].size} imaginary parts")
        values: Array = np.empty(parts[0].size, np.complex64 if dtype.itemsize == 4 else np.complex128)
        values.real, values.imag = parts
        return values, at
    return (parts[0] != 0 if variable.flags & _LOGICAL else parts[0]), at


def _dense(variable: Variable) -> Coordinates:
    values, _ = _values(variable, variable.body, math.prod(variable.shape))
    dense = values.reshape(variable.shape, order="F")
    return Coordinates(variable.shape, (), dense.ravel(order="K"), "general", dense)


def _sparse(variable: Variable) -> Buffers:
    """Compressed columns: row indices, column pointers, values. There may be room for more than are used."""
    source, shape = variable.source, variable.shape
    if len(shape) != 2:
        source.fail(variable.body, f"a sparse matrix of shape {shape}; expected two dimensions")
    rows = source.element(variable.body, variable.stop)
    crd = source.numbers(rows, "iu", "row indices")
    columns = source.element(rows.next, variable.stop)
    pos = source.numbers(columns, "iu", "column pointers")
    if pos.size != shape[1] + 1:
        source.fail(columns.start, f"{pos.size} column pointers; expected {shape[1] + 1}")
    used = int(pos[-1])
    values, _ = _values(variable, columns.next, None)
    if not 0 <= used <= min(crd.size, values.size):
        source.fail(columns.start, f"the pointers end with {used}, for {crd.size} indices and {values.size} values")
    crd, values = crd[:used], values[:used]
    if fault := check_pointers(pos, crd, used, shape[1], shape[0], ("column pointers", "row indices")):
        source.fail(columns.start, fault)
    return compressed("j", (shape[0], shape[1]), pos, crd, values)


def _version_4(name: str, raw: memoryview) -> Iterator[tuple[str, Variable]]:
    at = 0
    while at < len(raw):
        source = _Bytes(name, raw, "<")
        if at + 20 > len(raw):
            source.fail(at, f"not a readable MATLAB file: expected a head of 20 bytes, got {len(raw) - at}")
        if source.word(at) >= 5000:
            source = _Bytes(name, raw, ">")
        kind, rows, columns, imaginary, length = (source.word(at + 4 * k) for k in range(5))
        machine, zero, precision, sort = kind // 1000, kind // 100 % 10, kind // 10 % 10, kind % 10
        if machine != "<>".index(source.order) or zero or precision > 5 or sort > 2 or imaginary > 1:
            source.fail(at, f"not a readable MATLAB file: a variable of type {kind}")
        if not 0 < length <= 4096 or max(rows, columns) >= 2**31:
            source.fail(at, f"a variable of shape ({rows}, {columns}) with a name of {length} bytes")
        size = np.dtype(_PRECISIONS[precision]).itemsize * rows * columns * (1 + imaginary)
        body = at + 20 + length
        if body + size > len(raw):
            source.fail(at, f"a variable of {size} bytes, of which {max(len(raw) - body, 0)} are there")
        label = bytes(raw[at + 20 : body]).split(b"\0")[0].decode("latin-1")
        if sort != 1:
            yield label, _Variable4(sort == 2, source, precision, (rows, columns), body, body + size)
        at = body + size


class _Variable4(Variable):
    """A variable of version 4: `flags` is its precision; a sparse one is a table of row, column and value."""

    def load(self) -> Coordinates:
        dtype = np.dtype(self.source.order + _PRECISIONS[self.flags])
        numbers = np.frombuffer(self.source.data[self.body : self.stop], dtype).astype(dtype.newbyteorder("="))
        count = math.prod(self.shape)
        values = numbers[:count] + 1j * numbers[count:] if numbers.size > count else numbers
        table = values.reshape(self.shape, order="F")
        if not self.sparse:
            return Coordinates(self.shape, (), table.ravel(order="K"), "general", table)
        return self._triplets(table)

    def _triplets(self, table: Array) -> Coordinates:
        if table.shape[0] < 1 or table.shape[1] not in (3, 4) or table.dtype.kind == "c":
            self.source.fail(self.body, f"a sparse matrix in a table of shape {table.shape}")
        coordinates, extents = table[:-1, :2].astype(np.float64), table[-1, :2].astype(np.float64)
        if not (np.isfinite(extents) & (extents >= 0) & (extents < 2**31) & (extents == np.floor(extents))).all():
            self.source.fail(self.body, f"a sparse matrix of shape {tuple(extents)}")
        if not ((coordinates >= 1) & (coordinates <= extents) & (coordinates == np.floor(coordinates))).all():
            self.source.fail(self.body, f"an index that is no whole number from 1 to the extents {tuple(extents)}")
        row, column = (np.ascontiguousarray(c).astype(np.int32) - 1 for c in coordinates.T)
        values: Array = table[:-1, 2].astype(np.float64)
        if table.shape[1] == 4:
            values = values + 1j * table[:-1, 3]
        return Coordinates((int(extents[0]), int(extents[1])), (row, column), values)

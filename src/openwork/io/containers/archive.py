"""A zip archive (`.npz`) -> its arrays by name, each checked before it is loaded, and loaded only when asked for."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NoReturn

import numpy as np

from ...errors import FileFormatError
from ..shared import limits
from ..shared.records import Array, Step
from ..shared.unpack import open_regular

__all__ = ["Archive", "archive_of"]

_BLOCK = 1 << 20
_HEADER = 1 << 14
_KINDS = "biufc"
_HEADER_ITEM = re.compile(
    r"\s*'(descr|fortran_order|shape)'\s*:\s*(?:'([<>=|]?[a-zA-Z]\d{0,9})'|(True|False)|\(([\d\sL,]*)\))\s*"
)
_WIDEST = {"f": 8, "c": 16}
_METHODS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
_READ_ERRORS = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    zlib.error,
    struct.error,
)


class Archive:
    """The members of an archive. Raises FileFormatError, with the name, for a member that its header does not fit."""

    progress: Step | None = None
    """Called with (packed bytes of the arrays read, of all)."""

    def __init__(self, name: str, archive: zipfile.ZipFile, ratio: int | None) -> None:
        self.name, self._archive, self._ratio = name, archive, ratio
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._packed = self._unpacked = 0
        self.packed = sum(info.compress_size for info in archive.infolist())
        for info in archive.infolist():
            key = info.filename.removesuffix(".npy")
            if key in self._members:
                self.fail(f"{info.filename} is there twice")
            self._members[key] = info

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def names(self) -> list[str]:
        return sorted(self._members)

    def fail(self, message: str) -> NoReturn:
        raise FileFormatError(f"{self.name}: {message}")

    def header(self, key: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of an array of numbers."""
        with self._opened(key) as (info, file):
            shape, _, dtype = self._header(info.filename, file)
        return shape, dtype

    def text(self, key: str) -> str:
        """One text of at most 16 KiB."""
        array = self._array(key, "SU", _HEADER)
        if array.size != 1:
            self.fail(f"{self._members[key].filename} is not one text, its shape is {array.shape}")
        value = array.reshape(-1)[0]
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)

    def number(self, key: str) -> Any:
        """One number."""
        array = self._array(key, _KINDS, _HEADER)
        if array.size != 1:
            self.fail(f"{self._members[key].filename} is not one number, its shape is {array.shape}")
        return array.reshape(-1)[0].item()

    def array(self, key: str) -> Array:
        """An array of numbers, in this machine's byte order."""
        return self._array(key, _KINDS, None)

    def integers(self, key: str, ndim: int = 1) -> Array:
        """An array of integers, int32 or int64, in `ndim` dimensions."""
        array, member = self.array(key), self._members[key].filename
        if array.dtype.kind not in "iu":
            self.fail(f"{member} has values of {array.dtype}; expected integers")
        if array.ndim != ndim:
            self.fail(f"{member} has shape {array.shape}; expected {ndim} dimension{'s' if ndim > 1 else ''}")
        if array.dtype in (np.int32, np.int64):
            return array
        if array.dtype == np.uint64 and array.size and int(array.max()) > 2**63 - 1:
            self.fail(f"{member} holds {int(array.max())}, which does not fit in 64 bits with a sign")
        return array.astype(np.int64)

    def shape(self, key: str) -> tuple[int, ...]:
        """Extents."""
        extents = tuple(int(n) for n in self.integers(key))
        if not extents or len(extents) > 64 or min(extents) < 0:
            self.fail(f"{self._members[key].filename} is {extents[:65]}; expected 1 to 64 extents, none negative")
        return extents

    def _array(self, key: str, kinds: str, limit: int | None) -> Array:
        with self._opened(key) as (info, file):
            shape, fortran, dtype = self._header(info.filename, file)
            if dtype.kind not in kinds:
                self.fail(f"{info.filename} has values of {dtype}; expected {'text' if 'S' in kinds else 'numbers'}")
            if not dtype.itemsize or (dtype.kind in "fc" and dtype.itemsize > _WIDEST[dtype.kind]):
                self.fail(f"{info.filename} has values of {dtype}; expected bool, integers, floats or complex")
            expected_bytes, bytes_left = math.prod(shape) * dtype.itemsize, info.file_size - file.tell()
            if expected_bytes != bytes_left:
                self.fail(f"{info.filename} declares {expected_bytes} bytes and has {max(bytes_left, 0)}")
            if limit is not None and expected_bytes > limit:
                self.fail(f"{info.filename} has {expected_bytes} bytes; expected {limit} at most")
            buffer: Array = np.empty(expected_bytes // dtype.itemsize, dtype)
            view, filled = memoryview(buffer.view(np.uint8).data), 0
            while filled < expected_bytes:
                block = file.read(min(_BLOCK, expected_bytes - filled))
                if not block:
                    self.fail(f"{info.filename} ends after {filled} of {expected_bytes} bytes")
                view[filled : filled + len(block)] = block
                filled += len(block)
                if self.progress is not None:
                    left = info.compress_size * (expected_bytes - filled) // expected_bytes
                    self.progress(min(self._packed - left, self.packed), self.packed)
        if dtype.kind == "b" and (buffer.view(np.uint8) > 1).any():
            self.fail(f"{info.filename} holds truth values that are neither 0 nor 1")
        array = buffer.reshape(shape, order="F" if fortran else "C")
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))

    @contextmanager
    def _opened(self, key: str) -> Iterator[tuple[zipfile.ZipInfo, IO[bytes]]]:
        info = self._members.get(key)
        if info is None:
            self.fail(f"the array '{key}' is missing; there are {', '.join(self.names()[:40])}")
        if info.compress_type not in _METHODS or info.flag_bits & 0x1:
            what = "encrypted" if info.flag_bits & 0x1 else f"compressed by method {info.compress_type}"
            self.fail(f"{info.filename} is {what}; expected one that is stored or deflated")
        self._packed += info.compress_size
        self._unpacked += info.file_size
        limit = limits.allowed(self._packed, self._ratio)
        if self._unpacked > limit:
            limits.refuse_size(f"{self.name}: {info.filename}", self._packed, limit)
        try:
            with self._archive.open(info) as file:
                yield info, file
        except FileFormatError:
            raise
        except _READ_ERRORS as error:
            self.fail(f"{info.filename} is truncated or corrupt ({error})")

    def _header(self, member: str, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        """Shape, whether the order is Fortran's, and dtype, from the head of an array of format 1.0, 2.0 or 3.0."""
        magic = file.read(8)
        length_bytes = {b"\1\0": 2, b"\2\0": 4, b"\3\0": 4}.get(magic[6:])
        if magic[:6] != b"\x93NUMPY" or length_bytes is None:
            self.fail(f"{member} is not an array of format 1.0, 2.0 or 3.0, it begins with {magic!r}")
        size = int.from_bytes(file.read(length_bytes), "little")
        text = file.read(min(size, _HEADER)).decode("latin-1")
        if size > _HEADER or len(text) < size:
            self.fail(f"{member}: its header of {size} bytes is longer than {min(_HEADER, len(text))}")
        items = self._items(text)
        if items is None:
            self.fail(f"{member}: not the header of an array of numbers: {text.strip()[:200]!r}")
        descr, order, extents = items
        try:
            dtype = np.dtype(descr)
        except TypeError:
            self.fail(f"{member}: NumPy has no dtype {descr!r}")
        if dtype.hasobject:
            self.fail(f"{member} holds Python objects, which are never loaded")
        shape = tuple(int(n.strip(" L\n\t")[:30]) for n in extents.split(",") if n.strip())
        if len(shape) > 64 or math.prod(n or 1 for n in shape) > 2**62:
            self.fail(f"{member} has an impossible shape, {shape[:65]}")
        return shape, order == "True", dtype

    def _items(self, text: str) -> tuple[str, str, str] | None:
        """The texts of descr, fortran_order and shape of a header, each there once."""
        body = text.strip()
        if not (body.startswith("{") and body.endswith("}")):
            return None
        position, items = 1, {}
        while match := _HEADER_ITEM.match(body, position):
            key, *values = match.groups()
            if key in items or sum(v is not None for v in values) != 1:
                return None
            items[key] = values[("descr", "fortran_order", "shape").index(key)]
            position = match.end()
            if body[position] != ",":
                break
            position += 1
        if body[position:].strip() != "}" or len(items) != 3 or None in items.values():
            return None
        return items["descr"], items["fortran_order"], items["shape"]


@contextmanager
def archive_of(
    path: str | os.PathLike[str], ratio: int | None, kind: type[Archive] = Archive, progress: Step | None = None
) -> Iterator[Archive]:
    """The archive at `path`; only its directory is read. `progress` is told of the arrays' packed bytes."""
    name = os.fspath(path)
    with open_regular(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except _READ_ERRORS as error:
            raise FileFormatError(f"{name}: not a readable .npz ({error})") from None
        with archive:
            found = kind(name, archive, ratio)
            found.progress = progress
            yield found
            if progress is not None:
                progress(found.packed, found.packed)

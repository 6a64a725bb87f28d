"""Files as bytes: opening, decompressing, and saying where in a text an error is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from pathlib import Path
from typing import IO, NoReturn

import numpy as np

from ..errors import FileFormatError
from .records import Array

__all__ = ["Text", "compression", "head", "load", "open_writer", "suffix"]

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)
_BLOCK = 1 << 22


def suffix(path: str | os.PathLike[str]) -> str:
    """The extension that tells the file format, lower case, without that of a compression."""
    parts = Path(path).name.lower().rsplit(".", 2)
    if len(parts) > 1 and "." + parts[-1] in _OPENERS:
        parts = parts[:-1]
    return "." + parts[-1] if len(parts) > 1 else ""


def compression(path: str | os.PathLike[str]) -> str:
    """".gz", ".bz2", ".xz" or "", by the file's first bytes."""
    with open(path, "rb") as file:
        start = file.read(6)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    packed = compression(path)
    return _OPENERS[packed](path, "rb") if packed else open(path, "rb")  # type: ignore[return-value]  # noqa: SIM115


def head(path: str | os.PathLike[str], size: int = 1 << 16) -> bytes:
    """The first `size` bytes of the decompressed file, fewer where it ends or breaks before."""
    taken = bytearray()
    with _open(path) as file:
        try:
            while len(taken) < size and (block := file.read(size - len(taken))):
                taken += block
        except _BROKEN as error:
            if not taken:
                _refuse(path, error)
    return bytes(taken)


def load(path: str | os.PathLike[str]) -> bytes:
    """The whole decompressed file; a truncated or corrupt stream is a FileFormatError."""
    with _open(path) as file:
        try:
            return file.read()
        except _BROKEN as error:
            _refuse(path, error)


def _refuse(path: str | os.PathLike[str], error: Exception) -> NoReturn:
    raise FileFormatError(f"{os.fspath(path)}: the compressed stream is truncated or corrupt ({error})") from None


def open_writer(path: str | os.PathLike[str], level: int = 6) -> IO[bytes]:
    """A binary file to write to, compressed as its extension says."""
    name = Path(path).name.lower()
    if name.endswith(".gz"):
        raw = open(path, "wb")  # noqa: SIM115
        return _Owning(raw, compresslevel=level)
    if name.endswith(".bz2"):
        return bz2.open(path, "wb")
    if name.endswith(".xz"):
        return lzma.open(path, "wb")
    return open(path, "wb")


class _Owning(gzip.GzipFile):
    """A gzip stream with no name and no time in it (equal tensors give equal files) that closes its file."""

    def __init__(self, raw: io.BufferedWriter, compresslevel: int) -> None:
        super().__init__("", "wb", compresslevel, raw, mtime=0)
        self._raw = raw

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._raw.close()


class Text:
    """A text file in memory: `data` is its bytes as uint8 with a newline added at the end.

    A line ends at "\\n", "\\r\\n" or a lone "\\r". A part of a file says with `first` which line it begins at.
    """

    __slots__ = ("data", "first", "name", "raw", "size")

    def __init__(self, name: str, raw: bytes, first: int = 1) -> None:
        self.name = name
        self.first = first
        self.raw = raw + b"\n"
        self.size = len(raw)
        self.data: Array = np.frombuffer(self.raw, np.uint8)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Text:
        return cls(os.fspath(path), load(path))

    def line_bounds(self, position: int) -> tuple[int, int]:
        """First byte of the line that holds `position`, and the end of its text."""
        start = max(self.raw.rfind(b"\n", 0, position), self.raw.rfind(b"\r", 0, position)) + 1
        stop = self.raw.find(b"\n", position)
        carriage = self.raw.find(b"\r", position, stop)
        return start, carriage if carriage >= 0 else stop

    def line_number(self, position: int) -> int:
        before = self.raw[:position]
        return self.first + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")

    def next_line(self, position: int) -> tuple[bytes, int]:
        """The text of the line that starts at `position`, and where the next one starts."""
        _, stop = self.line_bounds(position)
        following = stop + (2 if self.raw[stop : stop + 2] == b"\r\n" else 1)
        return self.raw[position:stop], following

    def content_line(self, position: int, comment: bytes) -> tuple[bytes, int, int]:
        """The next line that is neither blank nor a comment: its text, its start, and the start of the one after.

        The text is empty at the end of the file.
        """
        while position < self.size:
            line, following = self.next_line(position)
            stripped = line.strip()
            if stripped and not (comment and stripped.startswith(comment)):
                return line, position, following
            position = following
        return b"", self.size, self.size

    def fail(self, position: int, message: str, help: str = "") -> NoReturn:
        """Raise FileFormatError for the byte at `position`, with the line and a caret under it."""
        position = min(position, max(self.size - 1, 0)) if position < len(self.raw) else self.size
        start, stop = self.line_bounds(position)
        shown = self.raw[start : min(stop, start + 100)].decode("latin-1").replace("\t", " ")
        text = f"{self.name}, line {self.line_number(position)}: {message}"
        if shown.strip() and position - start < 100:
            text += f"\n  {shown}\n  {' ' * (position - start)}^"
        raise FileFormatError(text + (f"\n  help: {help}" if help else ""))

    def token(self, position: int) -> str:
        """The characters from `position` up to the next blank, shortened."""
        part = self.raw[position : position + 64].split(None, 1)
        return part[0].decode("latin-1") if part and self.raw[position : position + 1].strip() else ""

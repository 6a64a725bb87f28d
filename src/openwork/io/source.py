"""Files as bytes: opening, decompressing, and saying where in a text an error is."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from ..errors import FileFormatError
from .records import Array

__all__ = ["Text", "compression", "head", "load", "suffix"]

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_UNPACK: dict[str, Callable[[memoryview], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_BROKEN = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)


def suffix(path: str | os.PathLike[str]) -> str:
    """The extension that tells the file format, lower case, without that of a compression."""
    parts = Path(path).name.lower().rsplit(".", 2)
    if len(parts) > 1 and "." + parts[-1] in _OPENERS:
        parts = parts[:-1]
    return "." + parts[-1] if len(parts) > 1 else ""


def compression(path: str | os.PathLike[str]) -> str:
    """The compression by the file's first bytes: ".gz", ".bz2", ".xz" or ""."""
    with open(path, "rb") as file:
        start = file.read(6)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    packed = compression(path)
    file: IO[bytes] = _OPENERS.get(packed, open)(path, "rb")
    return file


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


def load(path: str | os.PathLike[str]) -> Array:
    """The whole decompressed file and a newline, as uint8; a truncated or corrupt stream is a FileFormatError."""
    packed = compression(path)
    with open(path, "rb", buffering=0) as file:
        taken: Array = np.empty(os.fstat(file.fileno()).st_size + 1, np.uint8)
        size = 0
        while count := file.readinto(memoryview(taken.data)[size:-1]):
            size += count
    taken[size] = 10
    if not packed:
        return taken[: size + 1]
    try:
        unpacked = _UNPACK[packed](memoryview(taken.data)[:size])
    except _BROKEN as error:
        _refuse(path, error)
    return np.frombuffer(unpacked + b"\n", np.uint8)


def _refuse(path: str | os.PathLike[str], error: Exception) -> NoReturn:
    raise FileFormatError(f"{os.fspath(path)}: the compressed stream is truncated or corrupt ({error})") from None


class Text:
    """A text file in memory: `data` is its bytes as uint8 with a newline added at the end.

    A line ends at "\\n", "\\r\\n" or a lone "\\r". A part of a file says with `first` which line it begins at.
    """

    __slots__ = ("data", "first", "name", "size")

    def __init__(self, name: str, data: Array, first: int = 1) -> None:
        """`data` ends with a newline that is not part of the text."""
        self.name = name
        self.first = first
        self.data = data
        self.size = data.size - 1

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Text:
        return cls(os.fspath(path), load(path))

    @classmethod
    def of(cls, text: bytes, name: str = "text", first: int = 1) -> Text:
        return cls(name, np.frombuffer(text + b"\n", np.uint8), first)

    def part(self, start: int, stop: int) -> bytes:
        """A copy of the bytes from `start` to `stop`."""
        return self.data[max(start, 0) : stop].tobytes()

    def line_start(self, position: int) -> int:
        """The first byte of the line that holds `position`."""
        window = 1 << 10
        while True:
            low = max(position - window, 0)
            before = self.part(low, position)
            found = max(before.rfind(b"\n"), before.rfind(b"\r"))
            if found >= 0 or low == 0:
                return low + found + 1
            window *= 8

    def next_line(self, position: int) -> tuple[bytes, int]:
        """The text from `position` to the end of its line, and where the next line starts."""
        window = 1 << 10
        while True:
            after = self.part(position, position + window)
            ends = [e for e in (after.find(b"\n"), after.find(b"\r")) if e >= 0]
            if ends and (min(ends) + 1 < len(after) or position + len(after) >= self.data.size):
                stop = min(ends)
                return after[:stop], position + stop + (2 if after[stop : stop + 2] == b"\r\n" else 1)
            if position + len(after) >= self.data.size:
                return after, self.data.size
            window *= 8

    def line_number(self, position: int) -> int:
        lines = self.first
        for low in range(0, position, 1 << 24):
            block = self.part(low, min(low + (1 << 24), position))
            lines += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            lines -= bool(block.startswith(b"\n") and low and self.data[low - 1] == 13)
        return lines

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

    def comments(self, mark: bytes, position: int = 0) -> list[str]:
        """The comment lines before the first line of content."""
        found: list[str] = []
        while position < self.size:
            line, position = self.next_line(position)
            stripped = line.strip()
            if stripped and not stripped.startswith(mark):
                break
            if stripped:
                found.append(stripped.decode("utf-8", "replace"))
        return found

    def fail(self, position: int, message: str, help: str = "") -> NoReturn:
        """Raise FileFormatError for the byte at `position`, with the line and a caret under it."""
        position = min(position, self.size)
        start = self.line_start(position)
        shown = self.next_line(start)[0][:100].decode("latin-1").replace("\t", " ")
        text = f"{self.name}, line {self.line_number(position)}: {message}"
        if shown.strip() and position - start < 100:
            text += f"\n  {shown}\n  {' ' * (position - start)}^"
        raise FileFormatError(text + (f"\n  help: {help}" if help else ""))

    def token(self, position: int, most: int = 64) -> str:
        """The characters from `position` up to the next blank, cut to `most`."""
        part = self.part(position, position + most)
        return part.split(None, 1)[0].decode("latin-1") if part[:1].strip() else ""

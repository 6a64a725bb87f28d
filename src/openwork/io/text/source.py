"""A path -> a Text: its bytes in memory, its lines, and errors with line number and caret."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import numpy as np

from ...errors import FileFormatError
from ..shared.records import Array
from ..shared.unpack import blocks, load

__all__ = ["Text", "head", "suffix"]

_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MAX_LINE = 1 << 16
"""The most bytes of a line that holds sizes or the first fields."""
_MOST_COMMENTS = 10_000
_BLOCK = 1 << 18


def suffix(path: str | os.PathLike[str]) -> str:
    """The extension that tells the file format, lower case, without that of a compression."""
    parts = Path(path).name.lower().rsplit(".", 2)
    if len(parts) > 1 and "." + parts[-1] in _COMPRESSED_SUFFIXES:
        parts = parts[:-1]
    return "." + parts[-1] if len(parts) > 1 else ""


def head(path: str | os.PathLike[str], size: int = 1 << 16) -> bytes:
    """The first `size` bytes of the decompressed file, fewer where it ends or breaks before; no byte order mark."""
    data = bytearray()
    try:
        for block in blocks(path):
            data += block
            if len(data) >= size:
                break
    except FileFormatError:
        if not data:
            raise
    return bytes(data[:size]).removeprefix(_UTF8_MARK)


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
    def open(cls, path: str | os.PathLike[str], ratio: int | None = None) -> Text:
        """The file's text without a byte order mark. Raises FileFormatError for UTF-16 and for control characters."""
        data = load(path, ratio)
        if data[:3].tobytes() == _UTF8_MARK:
            data = data[3:]
        if data[:2].tobytes() in _UTF16_MARKS:
            raise FileFormatError(
                f"{os.fspath(path)}, line 1: the text is UTF-16, by its first two bytes\n  help: save it as UTF-8"
            )
        text = cls(os.fspath(path), data)
        text.check_characters()
        return text

    def check_characters(self) -> None:
        """Refuse control characters outside of comments: they are no blanks. DOS's end of file may stand last."""
        allowed = 0
        for low in range(0, self.size, _BLOCK):
            block = self.data[low : min(low + _BLOCK, self.size)]
            if not ((block < 9) | (block - np.uint8(14) < 18)).any():
                continue
            for position in np.flatnonzero((block < 9) | (block - np.uint8(14) < 18)) + low:
                at = int(position)
                if at < allowed or (at == self.size - 1 and self.data[at] == 26):
                    continue
                line, allowed = self.next_line(self.line_start(at))
                if not line.lstrip().startswith((b"%", b"#")):
                    self.fail(at, f"a control character, 0x{int(self.data[at]):02x}: this is no plain text")

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
            line_end = max(before.rfind(b"\n"), before.rfind(b"\r"))
            if line_end >= 0 or low == 0:
                return low + line_end + 1
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
                if len(line) > _MAX_LINE:
                    self.fail(position, f"a line of {len(line)} bytes; expected {_MAX_LINE} at most here")
                return line, position, following
            position = following
        return b"", self.size, self.size

    def comments(self, mark: bytes, position: int = 0) -> list[str]:
        """The comment lines before the first line of content, 10,000 at most."""
        result: list[str] = []
        while position < self.size and len(result) < _MOST_COMMENTS:
            line, position = self.next_line(position)
            stripped = line.strip()
            if stripped and not stripped.startswith(mark):
                break
            if stripped:
                result.append(stripped[:_MAX_LINE].decode("utf-8", "replace"))
        return result

    def fail(self, position: int, message: str, help: str = "") -> NoReturn:
        """Raise FileFormatError for the byte at `position`, with the line and a caret under it."""
        position = min(position, self.size)
        start = self.line_start(position)
        shown = self.next_line(start)[0][:100].decode("latin-1").replace("\t", " ")
        text = f"{self.name}, line {self.line_number(position)}: {message}"
        if shown.strip() and position - start < 100:
            text += f"\n  {shown}\n  {' ' * (position - start)}^"
        raise FileFormatError(text + (f"\n  help: {help}" if help else ""))

    def token(self, position: int, limit: int = 64) -> str:
        """The characters from `position` up to the next blank, cut to `limit`."""
        part = self.part(position, position + limit)
        return part.split(None, 1)[0].decode("latin-1") if part[:1].strip() else ""

"""A text of coordinates, `.mtx` or `.tns`, packed or not -> its entries in parts, read and scanned in bounded memory.

The text is cut at line ends into pieces of 4 MiB, which threads scan while the next ones are read; parts come in the
order of the file. What is checked is what `read` checks; of symmetric matrices, that one triangle is stored.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from ...classes import frozen
from ...codegen.pool import get_num_threads
from ...errors import FileFormatError, UnsupportedError
from ...interruptible import here
from ...storage.buffers import numpy_dtype
from ..shared.records import Array, Coordinates, Options, Step, expand
from ..shared.symmetry import KEEP, contradiction
from ..shared.unpack import blocks
from ..text import frostt, matrix_market
from ..text.declared import as_declared
from ..text.scan import LIMIT, scan
from ..text.scan_layout import Layout
from ..text.source import Text, suffix

__all__ = ["TextParts", "open_text"]

_PIECE = 1 << 22
_MARK = b"\xef\xbb\xbf"
_LONGEST = 1 << 26
"""Bytes of a piece without any line end, which is no text of coordinates."""
Path_ = str | os.PathLike[str]


@frozen
class TextParts:
    """A file of coordinates: what its head says, and how its entries are read."""

    path: Path_
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout
    body: int
    """the byte where the entries begin, without a byte order mark"""
    entries: int | None
    symmetry: str = "general"
    declared: str = ""
    """the dtype that a file of ours names"""

    def parts(self, options: Options, progress: Step | None = None) -> Iterator[Coordinates]:
        """The entries, mirrored where a triangle is stored, in the order of the file.

        Raises FileFormatError that names the line, at the part that holds it; at the end for another number of entries.
        """
        rows, triangles = 0, np.zeros(2, np.bool_)
        for part in self._scanned(options, progress):
            rows += part.entries
            if self.symmetry != "general" and options.symmetry == "expand":
                self._check_triangle(part, triangles)
                part = expand(part)
            yield part
        if self.entries is not None and rows != self.entries:
            raise FileFormatError(f"{os.fspath(self.path)}: the file has {rows} of {self.entries} entries")

    def _check_triangle(self, part: Coordinates, seen: Array) -> None:
        row, column = part.indices
        seen |= (bool((row < column).any()), bool((row > column).any()))
        if seen.all():
            raise UnsupportedError(
                f"{os.fspath(self.path)}: a {self.symmetry} matrix with entries in both triangles, in parts"
                "\n  help: ow.read(path) compares them"
            )
        fault = contradiction(row, column, part.values, self.symmetry)
        if fault is not None:
            raise FileFormatError(f"{os.fspath(self.path)}: {fault[1]}\n  help: {KEEP}")

    def _scanned(self, options: Options, progress: Step | None) -> Iterator[Coordinates]:
        """Parts of the text, scanned by threads."""
        waiting: deque[Future[Coordinates]] = deque()
        threads = max(get_num_threads(), 1)
        with ThreadPoolExecutor(threads) as pool:
            try:
                for at, piece in self._pieces(options, progress):
                    here().check()
                    waiting.append(pool.submit(self._scan, at, piece, options))
                    if len(waiting) > threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _pieces(self, options: Options, progress: Step | None) -> Iterator[tuple[int, bytes]]:
        """The text from the body on, cut at line ends, with the byte that each piece begins at."""
        total = os.stat(self.path).st_size
        kept, at, done = bytearray(), self.body, -self.body
        for block in _unmarked(blocks(self.path, options.ratio)):
            part = block[max(-done, 0) :] if done < 0 else block
            done += len(block)
            kept += part
            if progress is not None:
                progress(min(done + self.body, total), total)
            if len(kept) < _PIECE:
                continue
            cut = max(kept.rfind(b"\n"), kept.rfind(b"\r", 0, len(kept) - 1)) + 1
            if not cut and len(kept) > _LONGEST:
                raise FileFormatError(f"{os.fspath(self.path)}, byte {at}: {len(kept)} bytes without a line end")
            if cut:
                yield at, bytes(kept[:cut])
                at += cut
                del kept[:cut]
        if self.declared and kept and kept[-1] not in b"\n\r":
            self._text(at, bytes(kept), options).fail(
                len(kept), "the file ends inside a line", "if it is whole, end it with a newline"
            )
        if kept:
            yield at, bytes(kept)

    def _scan(self, at: int, piece: bytes, options: Options) -> Coordinates:
        try:
            return self._coordinates(Text.of(piece, os.fspath(self.path)))
        except FileFormatError:
            return self._coordinates(self._text(at, piece, options))

    def _text(self, at: int, piece: bytes, options: Options) -> Text:
        """A piece that knows the number of its first line, so that errors name the line of the file."""
        lines, left, before = 1, at, b""
        for block in _unmarked(blocks(self.path, options.ratio)):
            block, left = block[:left], left - len(block)
            lines += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            lines -= before.endswith(b"\r") and block.startswith(b"\n")
            before = block
            if left <= 0:
                break
        return Text.of(piece, os.fspath(self.path), lines)

    def _coordinates(self, text: Text) -> Coordinates:
        """The entries of a piece of the text."""
        text.check_characters()
        table = scan(text, 0, self.layout, None, self.shape)
        values = table.values if self.layout.values else np.ones(table.rows)
        if self.layout.values == 2:
            values = values.view(np.complex128)
        if values.dtype == np.uint64 and self.dtype != np.uint64:
            raise UnsupportedError(f"{text.name}: integers beyond 2**63 - 1, in parts\n  help: ow.read(path)")
        if self.declared:
            values = as_declared(text, values, self.declared)
        return Coordinates(self.shape, table.indices, values, self.symmetry)


def _unmarked(found: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks without the byte order mark that the first may begin with."""
    first = next(found, b"")
    return chain((first.removeprefix(_MARK),), found)


def open_text(path: Path_, options: Options, beginning: Callable[[Path_], Text]) -> TextParts | None:
    """The parts of a `.mtx` or `.tns`; None of what has to be read as a whole: arrays, other layouts."""
    if suffix(path) in (".mtx", ".mm", ".ttx", ".matrixmarket"):
        return _matrix_market(path, options, beginning(path))
    return _tns(path, options, beginning(path)) if suffix(path) == ".tns" else None


def _matrix_market(path: Path_, options: Options, text: Text) -> TextParts | None:
    found = matrix_market.entry_layout(text, options)
    if found is None:
        return None
    banner, layout = found
    kind = np.dtype({"i64": np.int64}.get(layout.scalar, np.complex128 if layout.values == 2 else np.float64))
    dtype = np.dtype(numpy_dtype(banner.dtype)) if banner.dtype else kind
    return TextParts(path, banner.shape, dtype, layout, banner.body, banner.entries, banner.symmetry, banner.dtype)


def _tns(path: Path_, options: Options, text: Text) -> TextParts | None:
    found = frostt.entry_layout(text, options)
    if found is None:
        return None
    layout, declared, scalar = found
    kind = np.dtype(np.int64 if layout.scalar == "i64" and not scalar else np.float64)
    dtype = np.dtype(numpy_dtype(scalar)) if scalar else kind
    unknown = TextParts(path, (LIMIT,) * layout.columns, dtype, layout, 0, None, "general", scalar)
    if declared is not None:
        return replace(unknown, shape=declared[0], entries=declared[1])
    most = [-1] * layout.columns
    for part in unknown.parts(options):
        most = [max(m, int(c.max(initial=-1))) for m, c in zip(most, part.indices, strict=True)]
    return replace(unknown, shape=tuple(m + 1 for m in most))

"""A path -> its decompressed bytes, in blocks, at most as many as `limits` allows.

A block is small, so that Ctrl-C is answered between two, and nothing is taken on trust: each stream must end, with the
right checksum, and what follows must be another stream or zeros.
"""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

import numpy as np

from ...errors import FileFormatError
from . import limits
from .records import Array

__all__ = ["blocks", "load", "open_regular"]

Path_ = str | os.PathLike[str]
_BLOCK = 1 << 20
_READ = 1 << 24
_XZ_MEMORY = 128 << 20
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}


class _Decompressor(Protocol):
    """The interface of bz2's and lzma's decompressors."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipDecompressor:
    """A decompressor of one gzip stream, which checks checksum and length."""

    def __init__(self) -> None:
        self._machine = zlib.decompressobj(31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._machine.eof

    @property
    def unused_data(self) -> bytes:
        return self._machine.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._machine.decompress(self._machine.unconsumed_tail + data, max_length)
        self.needs_input = len(out) < max_length
        return out


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": _GzipDecompressor,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY),
}


def open_regular(path: Path_) -> io.FileIO:
    """An unbuffered file. Raises FileFormatError for what is no regular file, which could go on for ever."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) and not _has_hidden_content(descriptor):
        return io.FileIO(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise FileFormatError(f"{os.fspath(path)}: not a regular file\n  help: copy what it gives to one, and read that")


def _has_hidden_content(descriptor: int) -> bool:
    """Whether a file that says it is empty has content, as those of /proc have, some of them without end."""
    if os.fstat(descriptor).st_size:
        return False
    try:
        content = os.read(descriptor, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError:
        return True
    return bool(content)


def blocks(path: Path_, ratio: int | None = None) -> Iterator[bytes]:
    """The file, decompressed where it begins as a compressed one, block by block."""
    name = os.fspath(path)
    with open_regular(path) as file:
        start = file.read(6)
        kind = next((ending for magic, ending in _MAGIC.items() if start.startswith(magic)), "")
        file.seek(0)
        if not kind:
            yield from iter(lambda: file.read(_BLOCK), b"")
            return
        size = os.fstat(file.fileno()).st_size
        limit, done = limits.allowed(size, ratio), 0
        try:
            for block in _decompressed(file, _DECOMPRESSORS[kind]):
                done += len(block)
                if done > limit:
                    limits.refuse_size(name, size, limit)
                yield block
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            _refuse_stream(name, error)


def _decompressed(file: io.FileIO, make: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Concatenated streams -> decompressed blocks; zeros may stand between and after streams."""
    machine, waiting = make(), b""
    while True:
        if not machine.eof:
            data = b""
            if machine.needs_input:
                data, waiting = waiting or file.read(_BLOCK), b""
                if not data:
                    raise EOFError("the stream has no end")
            if block := machine.decompress(data, _BLOCK):
                yield block
            continue
        waiting = waiting or machine.unused_data
        while not (waiting := waiting.lstrip(b"\0")):
            waiting = file.read(_BLOCK)
            if not waiting:
                return
        machine = make()


def load(path: Path_, ratio: int | None = None) -> Array:
    """The whole file as uint8, decompressed, with a newline added; a cut or corrupt stream is a FileFormatError."""
    with open_regular(path) as file:
        start = file.read(6)
        if not any(start.startswith(magic) for magic in _MAGIC):
            file.seek(0)
            return _load_uncompressed(os.fspath(path), file)
    data = bytearray()
    for block in blocks(path, ratio):
        data += block
    data += b"\n"
    return np.frombuffer(data, np.uint8)


def _load_uncompressed(name: str, file: io.FileIO) -> Array:
    limits.refuse_holes(name, file.fileno())
    data: Array = np.empty(os.fstat(file.fileno()).st_size + 1, np.uint8)
    view, size = memoryview(data.data), 0
    while count := file.readinto(view[size : min(size + _READ, data.size - 1)]):
        size += count
    data[size] = 10
    return data[: size + 1]


def _refuse_stream(name: str, error: BaseException) -> NoReturn:
    raise FileFormatError(f"{name}: the compressed stream is truncated or corrupt ({error})") from None

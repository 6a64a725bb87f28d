"""A tensor -> a folder `.ow` with one file per buffer and a header, and back: read whole, or mapped into memory.

`header.json` has the format's text, shape, scalar type and fill value, and of each buffer its dtype, its length and the
CRC-32 of every block of 4 MiB; it ends with the CRC-32 of itself. `pos_1.bin`, `crd_1.bin`, `values.bin` are the
buffers as they are in memory, little-endian. They are appended to in pieces, so that a tensor need not be in memory.
"""

from __future__ import annotations

import io
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...codegen.pool import get_num_threads
from ...errors import FileFormatError, UnsupportedError
from ...faults import reach
from ...format.format import Format
from ...interruptible import here
from ...storage.buffers import numpy_dtype, to_numpy
from ...storage.file_pages import mapped_file
from ..shared import limits
from ..shared.folder import Folder, read_whole
from ..shared.records import Array, Buffers, Header, Options, Step
from ..shared.replace import replacing_folder
from .store_header import BLOCK, HEADER, Stored, StoreHeader, read_header, spelled, text_of

__all__ = ["MappedStore", "StoreWriter", "header", "is_store", "mapped", "read", "write", "writing"]

_PIECE = 1 << 20
_BEGINNING = b'{"openwork":'
_OWN = re.compile(r"header\.json|values\.bin|(pos|crd)_\d+\.bin")
Path_ = str | os.PathLike[str]


class _Growing:
    """A file that a buffer is appended to, with the checksums of its blocks."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype, self.length = dtype, 0
        self._checksums: list[int] = []
        self._current = self._filled = 0
        self._file = path.open("xb", buffering=0)

    def append(self, array: Array) -> None:
        if array.dtype != self.dtype:
            raise AssertionError(f"appending {array.dtype} to a buffer of {self.dtype}")
        data, at = memoryview(np.ascontiguousarray(array).view(np.uint8).data), 0
        self.length += array.size
        while at < len(data):
            piece = data[at : at + min(_PIECE, BLOCK - self._filled)]
            here().check()
            reach("write")
            written = self._file.write(piece)
            self._current = zlib.crc32(piece[:written], self._current)
            self._filled, at = self._filled + written, at + written
            if self._filled == BLOCK:
                self._end_block()

    def _end_block(self) -> None:
        self._checksums.append(self._current)
        self._current = self._filled = 0

    def finish(self) -> dict[str, Any]:
        """Sync the file; its entry in the header."""
        if self._filled:
            self._end_block()
        reach("fsync")
        os.fsync(self._file.fileno())
        self.close()
        return {"dtype": text_of(self.dtype), "length": self.length, "crc32": self._checksums}

    def close(self) -> None:
        self._file.close()


class StoreWriter:
    """A store that is being written into an empty folder: `append` to its buffers, then `finish` it."""

    def __init__(self, folder: Path_) -> None:
        _refuse_byte_order(folder)
        self._folder = Path(folder)
        self._buffers: dict[str, _Growing] = {}

    def append(self, name: str, array: Array) -> None:
        """Append to the buffer "pos_1", "crd_1", "values"; the first piece says the dtype."""
        if array.dtype.kind == "V":  # bfloat16
            array = array.view(np.uint16)
        if name not in self._buffers:
            self._buffers[name] = _Growing(self._folder / f"{name}.bin", array.dtype)
        self._buffers[name].append(array)

    def finish(self, format: Format, shape: tuple[int, ...], scalar: str, fill_value: Any) -> None:
        """Sync the buffers, and write the header."""
        entries = {name: buffer.finish() for name, buffer in self._buffers.items()}
        text = spelled(format, shape, scalar, fill_value, entries)
        with (self._folder / HEADER).open("xb") as file:
            reach("write")
            file.write(text)
            file.flush()
            reach("fsync")
            os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files of a store that was not finished."""
        for buffer in self._buffers.values():
            buffer.close()


def write(path: Path_, t: Any, progress: Step | None = None) -> None:
    """A store with the tensor's own buffers, in place of the one that is there."""
    storage = t._storage
    parts = {f"pos_{k}": b for k, b in enumerate(storage.pos) if b is not None}
    parts |= {f"crd_{k}": b for k, b in enumerate(storage.crd) if b is not None}
    arrays = {name: to_numpy(b) for name, b in {**parts, "values": storage.values}.items()}
    total, done = sum(a.size for a in arrays.values()), 0
    with writing(path) as writer:
        for name, array in arrays.items():
            writer.append(name, array[:0])
            for first in range(0, array.size, _PIECE):
                writer.append(name, array[first : first + _PIECE])
                done += min(_PIECE, array.size - first)
                if progress is not None:
                    progress(done, total)
        writer.finish(storage.format, storage.shape, storage.scalar, storage.fill_value)


@contextmanager
def writing(path: Path_) -> Iterator[StoreWriter]:
    """A StoreWriter whose store is at `path` once the block has ended without an exception."""
    with replacing_folder(path, _is_own, "openwork store") as folder:
        writer = StoreWriter(folder)
        try:
            yield writer
        finally:
            writer.close()


def is_store(path: Path_) -> bool:
    """Whether a folder has a header, as ours have."""
    return os.path.isfile(os.path.join(path, HEADER))


def _is_own(folder: str) -> bool:
    """Whether a folder is a store and nothing else: a header as ours begin, and files of buffers."""
    if not is_store(folder):
        return False
    with open(os.path.join(folder, HEADER), "rb") as file:
        begins = file.read(len(_BEGINNING)) == _BEGINNING
    with os.scandir(folder) as entries:
        return begins and all(_OWN.fullmatch(e.name) and not e.is_dir(follow_symlinks=False) for e in entries)


@contextmanager
def _opened(path: Path_) -> Iterator[tuple[StoreHeader, dict[str, io.FileIO]]]:
    """The header of a store and the open files of its buffers, all of one write."""
    _refuse_byte_order(path)
    with ExitStack() as files:

        def all_of(folder: Folder) -> tuple[StoreHeader, dict[str, io.FileIO]]:
            files.close()  # those of a store that was replaced meanwhile
            found = read_header(folder)
            return found, {name: files.enter_context(_file(folder, name, b)) for name, b in found.buffers.items()}

        try:
            opened = read_whole(path, all_of)
        except NotADirectoryError:
            raise FileFormatError(f"{os.fspath(path)}: a store .ow is a folder, this is a file") from None
        yield opened


def read(path: Path_, options: Options = Options()) -> Buffers:  # noqa: B008
    """The buffers of a store in memory, compared with their checksums."""
    arrays: dict[str, Array] = {}
    with _opened(path) as (found, files):
        total, done = sum(b.nbytes for b in found.buffers.values()), 0
        for name, stored in found.buffers.items():
            limits.refuse_holes(os.path.join(path, f"{name}.bin"), files[name].fileno())
            array: Array = np.empty(stored.length, stored.dtype)
            view = memoryview(array.view(np.uint8).data)
            for block, checksum in enumerate(stored.checksums):
                part = view[block * BLOCK : (block + 1) * BLOCK]
                if files[name].readinto(part) != len(part) or zlib.crc32(part) != checksum:
                    _refuse_block(path, name, block, len(part), checksum, zlib.crc32(part))
                done += len(part)
                if options.progress is not None:
                    options.progress(done, total)
            arrays[name] = array
    return _record(path, found, arrays)


def mapped(path: Path_, verified: bool) -> Buffers:
    """The buffers of a store as arrays over its files, which are read when elements are asked for."""
    found = MappedStore(path)
    if verified:
        found.verify()
    return found.record()


class MappedStore:
    """A store whose files are mapped, and whose blocks are compared with their checksums when that is asked for."""

    def __init__(self, path: Path_) -> None:
        self._path = path
        self._arrays: dict[str, Array] = {}
        self._verified: set[tuple[str, int]] = set()
        with _opened(path) as (self._header, files):
            for name, stored in self._header.buffers.items():
                self._arrays[name] = np.empty(0, stored.dtype)
                if stored.length:
                    self._arrays[name] = np.frombuffer(mapped_file(files[name]), stored.dtype, stored.length)

    def record(self) -> Buffers:
        """The description of the tensor, and its buffers."""
        return _record(self._path, self._header, self._arrays)

    def verify(self) -> None:
        """Raise FileFormatError for the first block that has not the checksum of the header; one block at a time."""
        blocks = [(name, k) for name, stored in self._header.buffers.items() for k in range(len(stored.checksums))]
        if len(blocks) < 8:
            for name, block in blocks:
                self._verify_block(name, block)
            return
        with ThreadPoolExecutor(get_num_threads()) as threads:
            for _ in threads.map(lambda place: self._verify_block(*place), blocks):
                here().check()

    def verify_range(self, name: str, first: int, last: int) -> None:
        """The same of the blocks that hold a range of a buffer's elements, each compared once."""
        stored = self._header.buffers[name]
        last, item = min(last, stored.length), stored.dtype.itemsize
        for block in range(max(first, 0) * item // BLOCK, -(-last * item // BLOCK)):
            if (name, block) not in self._verified:
                self._verify_block(name, block)
                self._verified.add((name, block))

    def _verify_block(self, name: str, block: int) -> None:
        part = memoryview(self._arrays[name].view(np.uint8).data)[block * BLOCK : (block + 1) * BLOCK]
        checksum, expected = zlib.crc32(part), self._header.buffers[name].checksums[block]
        if checksum != expected:
            _refuse_block(self._path, name, block, len(part), expected, checksum)


def header(path: Path_) -> Header:
    """Shape, dtype and number of values, of which none is read."""
    found = read_whole(path, read_header)
    name = str(numpy_dtype(found.scalar)) if found.scalar != "bf16" else "bfloat16"
    return Header(f"ow, {found.format}", found.shape, name, entries=found.buffers["values"].length)


def _file(folder: Folder, name: str, stored: Stored) -> io.FileIO:
    """A buffer's file, of the length that the header says."""
    place = folder.place(f"{name}.bin")
    try:
        file = folder.open(f"{name}.bin")
    except FileNotFoundError:
        raise FileFormatError(f"{place}: the file is missing, which {HEADER} names") from None
    except IsADirectoryError:
        raise FileFormatError(f"{place}: not a regular file") from None
    size = os.fstat(file.fileno()).st_size
    if size != stored.nbytes:
        file.close()
        raise FileFormatError(f"{place}: {size} bytes; {HEADER} says {stored.nbytes}: it was cut or changed")
    return file


def _refuse_block(path: Path_, name: str, block: int, size: int, expected: int, got: int) -> NoReturn:
    raise FileFormatError(
        f"{os.path.join(path, name)}.bin, block {block} (bytes {block * BLOCK} to {block * BLOCK + size}): the data is"
        f" corrupt\n  expected: checksum {expected:#010x}; got: {got:#010x}\n  help: restore the file from a copy"
    )


def _record(path: Path_, found: StoreHeader, arrays: Mapping[str, Array]) -> Buffers:
    pos, crd = (
        {k: arrays[f"{kind}_{k}"] for k in range(found.format.nlevels) if f"{kind}_{k}" in arrays}
        for kind in ("pos", "crd")
    )
    values = arrays["values"]
    for name, array in arrays.items():
        if array.dtype == np.bool_:
            _refuse_no_truth(os.path.join(path, f"{name}.bin"), array)
    if found.scalar == "bf16":
        values = values.view(numpy_dtype("bf16"))
    return Buffers(str(found.format), found.shape, pos, crd, values, "general", found.fill_value)


def _refuse_no_truth(place: str, array: Array) -> None:
    """Raise FileFormatError for bytes of truth values that are neither 0 nor 1."""
    for first in range(0, array.size, _PIECE):
        if (array[first : first + _PIECE].view(np.uint8) > 1).any():
            raise FileFormatError(f"{place} holds truth values that are neither 0 nor 1")


def _refuse_byte_order(path: Path_) -> None:
    if sys.byteorder != "little":
        raise UnsupportedError(f"{os.fspath(path)}: stores are little-endian, this machine is not\n  help: write .npz")

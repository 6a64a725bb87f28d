"""A folder as a store of zarr's that is read, and arrays of it whose codecs make no more bytes than their chunks have.

A codec says itself how much it makes, and few have a limit: here what inflates a stream ends where the chunk is full,
and what begins with its size is asked for that first.
"""

from __future__ import annotations

import asyncio
import bz2
import dataclasses
import lzma
import math
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import FileFormatError, UnsupportedError
from ..shared import limits
from ..shared.folder import Folder

__all__ = ["limited", "members_of", "store_over"]

_SLACK = 1 << 12
"""Bytes that a codec may add to those of a chunk: checksums, the heads of other codecs."""
_XZ_MEMORY = 128 << 20
_ZSTD, _SKIPPED, _ZSTD_BLOCK = 0xFD2FB528, 0x184D2A5, 128 << 10
_HARMLESS = frozenset((
    "delta", "shuffle", "fixedscaleoffset", "quantize", "astype", "bitround", "packbits", "crc32", "crc32c", "adler32",
    "fletcher32", "jenkins_lookup3", "transpose", "bytes",
))  # fmt: skip
"""Codecs that make about as many bytes as they take."""


def store_over(zarr: Any, folder: Folder) -> Any:
    """A read-only store of zarr's over an open folder."""
    return _store_class(zarr)(folder)


@lru_cache(maxsize=1)
def _store_class(zarr: Any) -> Any:
    from zarr.abc.store import Store
    from zarr.core.buffer import default_buffer_prototype

    class FolderStore(Store):  # type: ignore[misc, unused-ignore]
        """The regular files below a folder."""

        supports_writes = supports_deletes = supports_partial_writes = False
        supports_listing = True

        def __init__(self, folder: Folder) -> None:
            super().__init__(read_only=True)
            self._folder = folder

        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            return id(self)

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            data = await asyncio.to_thread(_content, self._folder, key, byte_range)
            return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)

        async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> list[Any]:
            return [await self.get(key, prototype, part) for key, part in key_ranges]

        async def exists(self, key: str) -> bool:
            return self._folder.has(key)

        async def getsize(self, key: str) -> int:
            return self._folder.size(key)

        async def getsize_prefix(self, prefix: str) -> int:
            return sum(self._folder.size(name) for name in self._folder.files(prefix.strip("/")))

        async def set(self, key: str, value: Any) -> None:
            self._check_writable()

        async def delete(self, key: str) -> None:
            self._check_writable()

        async def list(self) -> AsyncIterator[str]:
            for name in self._folder.files():
                yield name

        async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
            for name in self._folder.files():
                if name.startswith(prefix):
                    yield name

        async def list_dir(self, prefix: str) -> AsyncIterator[str]:
            for name in self._folder.names(prefix.strip("/")):
                yield name

    return FolderStore


def _content(folder: Folder, key: str, part: Any) -> bytes | None:
    """The bytes of a file, or those that one of zarr's byte requests names; None where there is no such file."""
    try:
        file = folder.open(key)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    with file:
        limits.refuse_holes(folder.place(key), file.fileno())
        size = file.seek(0, 2)
        first = getattr(part, "start", getattr(part, "offset", 0))
        first = max(0, size - part.suffix) if hasattr(part, "suffix") else first
        file.seek(first)
        return file.read(max(0, min(size, getattr(part, "end", size)) - first))


def members_of(folder: Folder, group: str) -> list[str]:
    """The names of the groups and arrays in a group; zarr's own list warns of whatever else is there."""
    names = folder.names(group)
    below = f"{group}/" if group else ""
    return [n for n in names if any(folder.has(f"{below}{n}/{mark}") for mark in ("zarr.json", ".zarray", ".zgroup"))]


def limited(zarr: Any, item: Any, place: str) -> Any:
    """An array of zarr's over the same chunks, whose codecs are limited. Raises UnsupportedError for unknown ones."""
    metadata = item.metadata
    if metadata.zarr_format == 3:
        changed = dataclasses.replace(metadata, codecs=tuple(_limited_codec(zarr, c, place) for c in metadata.codecs))
    else:
        size = np.dtype(item.dtype).itemsize
        size = max(16, size) if metadata.filters else size  # a filter may store other numbers than the array's
        most = math.prod(int(n) for n in metadata.chunks) * size + _SLACK
        filters = [_limited_filter(c, most, place) for c in metadata.filters or ()]
        compressor = metadata.compressor and _limited_filter(metadata.compressor, most, place)
        changed = dataclasses.replace(metadata, compressor=compressor, filters=filters or None)
    return zarr.Array(zarr.AsyncArray(metadata=changed, store_path=item.store_path))


def _limited_filter(codec: Any, most: int, place: str) -> Any:
    """A codec of numcodecs, of version 2 of the format: itself where it makes as much as it takes."""
    from numcodecs.abc import Codec
    from numcodecs.compat import ensure_contiguous_ndarray, ndarray_copy

    name = _name_of(codec)
    if name in _HARMLESS:
        return codec
    unpack = _unpacker(name, place)

    class Limited(Codec):  # type: ignore[misc, unused-ignore]
        codec_id = codec.codec_id

        def encode(self, buf: Any) -> Any:
            return codec.encode(buf)

        def decode(self, buf: Any, out: Any = None) -> Any:
            data = ensure_contiguous_ndarray(buf).view(np.uint8).tobytes()
            unpacked = unpack(data, most, place)
            return codec.decode(buf, out) if unpacked is None else ndarray_copy(unpacked, out)

        def get_config(self) -> Any:
            return codec.get_config()

    return Limited()


def _limited_codec(zarr: Any, codec: Any, place: str) -> Any:
    """A codec of version 3 of the format, or the codecs inside a shard: itself where it makes as much as it takes."""
    from zarr.abc.codec import BytesBytesCodec
    from zarr.codecs import ShardingCodec

    if isinstance(codec, ShardingCodec):
        inside = {
            name: tuple(_limited_codec(zarr, c, place) for c in getattr(codec, name))
            for name in ("codecs", "index_codecs")
        }
        return ShardingCodec(chunk_shape=codec.chunk_shape, index_location=codec.index_location, **inside)
    name = _name_of(codec)
    if name in _HARMLESS:
        return codec
    unpack = _unpacker(name, place)

    class Limited(BytesBytesCodec):  # type: ignore[misc, unused-ignore]
        is_fixed_size = codec.is_fixed_size

        async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            kind = chunk_spec.dtype
            kind = kind.to_native_dtype() if hasattr(kind, "to_native_dtype") else np.dtype(kind)
            most = math.prod(int(n) for n in chunk_spec.shape) * kind.itemsize + _SLACK
            unpacked = await asyncio.to_thread(unpack, chunk_bytes.to_bytes(), most, place)
            if unpacked is None:
                return await codec._decode_single(chunk_bytes, chunk_spec)
            return chunk_spec.prototype.buffer.from_bytes(unpacked)

        async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            return await codec._encode_single(chunk_bytes, chunk_spec)

        def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
            return int(codec.compute_encoded_size(input_byte_length, chunk_spec))

        def to_dict(self) -> Any:
            return codec.to_dict()

    return Limited()


def _name_of(codec: Any) -> str:
    """The name of a codec of numcodecs, or of zarr, without the prefix of the first among the second."""
    name = getattr(codec, "codec_id", None) or getattr(codec, "codec_name", None)
    if not isinstance(name, str):
        name = str(codec.to_dict()["name"])
    return name.removeprefix("numcodecs.")


def _unpacker(name: str, place: str) -> Callable[[bytes, int, str], bytes | None]:
    """What unpacks a chunk within a limit, or returns None where the codec itself will make no more than that."""
    if name not in _UNPACKERS:
        known = ", ".join([*_UNPACKERS, *sorted(_HARMLESS)])
        raise UnsupportedError(
            f"{place} has the codec {name!r}, of which nobody knows how much it makes\n  known: {known}\n  help: write"
            " it with one of these"
        )
    return _UNPACKERS[name]


def _inflate(make: Callable[[], Any]) -> Callable[[bytes, int, str], bytes]:
    """Streams, one or several, that are unpacked until the limit."""

    def unpack(data: bytes, most: int, place: str) -> bytes:
        parts, left = [], most + 1
        while data:
            machine = make()
            parts.append(machine.decompress(data, left))
            left -= len(parts[-1])
            if left <= 0:
                _refuse(place, len(data), most)
            if not machine.eof:
                raise FileFormatError(f"{place}: the packed chunk ends early")
            data = machine.unused_data.lstrip(b"\0")
        return b"".join(parts)

    return unpack


def _declared(at: int, least: int) -> Callable[[bytes, int, str], None]:
    """A head that has the size at an offset, as 32 bits: blosc, lz4."""

    def check(data: bytes, most: int, place: str) -> None:
        if len(data) < least:
            raise FileFormatError(f"{place}: the packed chunk ends early")
        if int.from_bytes(data[at : at + 4], "little") > most:
            _refuse(place, len(data), most)

    return check


def _check_zstd(data: bytes, most: int, place: str) -> None:
    """The sizes that zstd's frames declare; of those that declare none the most that their blocks can hold."""
    at = made = 0
    try:
        while at < len(data):
            (magic,) = struct.unpack_from("<I", data, at)
            if magic >> 4 == _SKIPPED:
                at += 8 + int(struct.unpack_from("<I", data, at + 4)[0])
                continue
            if magic != _ZSTD:
                raise FileFormatError(f"{place}: the packed chunk is not a stream of zstd")
            at, size, blocks = _zstd_frame(data, at + 4)
            made += blocks * _ZSTD_BLOCK if size is None else size
            if made > (2 * most + (1 << 20) if size is None else most):
                _refuse(place, len(data), most)
    except (struct.error, IndexError):
        raise FileFormatError(f"{place}: the packed chunk ends early") from None


def _zstd_frame(data: bytes, at: int) -> tuple[int, int | None, int]:
    """Where a frame ends, the size that it declares, and its number of blocks. Source: RFC 8878, 3.1.1."""
    flags = data[at]
    single, checksum, wide = flags >> 5 & 1, flags >> 2 & 1, flags >> 6
    at += 1 + (not single) + (0, 1, 2, 4)[flags & 3]
    width = (single, 2, 4, 8)[wide]
    size = int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0) if width else None
    at, blocks, last = at + width, 0, 0
    while not last:
        head = int.from_bytes(data[at : at + 3], "little")
        last, kind, length = head & 1, head >> 1 & 3, head >> 3
        at += 3 + (1 if kind == 1 else length)
        blocks += 1
        if at > len(data):
            raise IndexError
    return at + 4 * checksum, size, blocks


def _refuse(place: str, packed: int, most: int) -> None:
    raise FileFormatError(
        f"{place}: a chunk of {packed} bytes unpacks to more than its {most}\n  help: it was made by no honest writer"
    )


_UNPACKERS: dict[str, Callable[[bytes, int, str], bytes | None]] = {
    "gzip": _inflate(lambda: zlib.decompressobj(47)),
    "zlib": _inflate(lambda: zlib.decompressobj(47)),
    "bz2": _inflate(bz2.BZ2Decompressor),
    "lzma": _inflate(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)),
    "zstd": _check_zstd,
    "blosc": _declared(4, 16),
    "lz4": _declared(0, 4),
}

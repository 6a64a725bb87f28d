"""A dataset of HDF5 -> a refusal where its filters are unusual, or a packed chunk holds more than a chunk has.

libhdf5 unpacks a chunk whole, however much that is, before it looks at its length. Deflate makes 1,032 bytes of one at
most, so that of a dataset with many chunks none can take more memory than the file may (`limits`); chunks that could
are inflated here first, piece by piece, and dropped.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

from ...errors import FileFormatError
from ..shared import limits

__all__ = ["refuse_bombs", "refuse_filters"]

_DEFLATE, _SHUFFLE, _CHECKSUM, _SZIP, _LZF = 1, 2, 3, 4, 32000
_FILTERS = (_DEFLATE, _SHUFFLE, _CHECKSUM, _SZIP, _LZF)
_PACKERS = (_DEFLATE, _SZIP, _LZF)
_MOST_OF_DEFLATE = 1032
_PIECE = 1 << 20


def filters_of(item: Any) -> list[int]:
    """The numbers of a dataset's filters, in the order in which they were applied."""
    layout = item.id.get_create_plist()
    return [layout.get_filter(k)[0] for k in range(layout.get_nfilters())]


def refuse_filters(item: Any, place: str) -> None:
    """Raise FileFormatError for filters that are not known, or not each once, or change what was packed already."""
    filters = filters_of(item)
    packers = [at for at, number in enumerate(filters) if number in _PACKERS]
    usual = len(set(filters)) == len(filters) and set(filters) <= set(_FILTERS) and len(packers) < 2
    if not usual or (packers and not set(filters[packers[0] + 1 :]) <= {_CHECKSUM}):
        raise FileFormatError(
            f"{place} has the filters {filters}; known, each once, one that packs: {_FILTERS}, and behind that the"
            " checksum alone"
        )


def refuse_bombs(item: Any, place: str, ratio: int | None) -> None:
    """Raise FileFormatError where a chunk unpacks to more than the chunk's bytes, and than the file's may become."""
    filters = filters_of(item)
    at = next((k for k, number in enumerate(filters) if number in (_DEFLATE, _SZIP)), None)
    if at is None:
        return
    allowed = limits.allowed(int(item.id.get_storage_size()), ratio)
    most = math.prod(int(n) for n in item.chunks) * item.dtype.itemsize + 64
    suspects: list[tuple[tuple[int, ...], int]] = []

    def look(chunk: Any) -> None:
        could = chunk.size * 2 * _MOST_OF_DEFLATE > allowed or filters[at] == _SZIP
        if could and not chunk.filter_mask >> at & 1:
            suspects.append((tuple(chunk.chunk_offset), int(chunk.size)))

    if hasattr(item.id, "chunk_iter"):
        item.id.chunk_iter(look)
    else:
        for k in range(item.id.get_num_chunks()):
            look(item.id.get_chunk_info(k))
    for offset, size in suspects:
        data = item.id.read_direct_chunk(offset)[1]
        if (_declared(data) if filters[at] == _SZIP else _inflated(data, most)) > most:
            name = ", ".join(str(o // int(n)) for o, n in zip(offset, item.chunks, strict=True))
            raise FileFormatError(
                f"{place}, chunk {name}: {size} bytes unpack to more than the {most} of a chunk\n  help: it was made by"
                " no honest writer"
            )


def _declared(data: bytes) -> int:
    """The bytes that szip's head says it will make."""
    return int.from_bytes(data[:4], "little")


def _inflated(data: bytes, most: int) -> int:
    """The length of what a deflated chunk holds, or a number above `most`; what is corrupt is left to libhdf5."""
    machine, made = zlib.decompressobj(), 0
    try:
        while not machine.eof and made <= most:
            piece = machine.decompress(data, _PIECE)
            if not piece:
                break
            made, data = made + len(piece), machine.unconsumed_tail
    except zlib.error:
        return made
    return made

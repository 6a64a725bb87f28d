"""A dataset of HDF5 or an array of zarr -> slices as NumPy's arrays; of damaged data an error that names the chunk.

What is written here has a checksum for each chunk, in the library's own way: HDF5's Fletcher-32, zarr's CRC-32C. The
libraries compare it with every chunk that they read, and say that one is damaged, not which.
"""

from __future__ import annotations

import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NoReturn

import numpy as np

from ...errors import FileFormatError

__all__ = ["Chunked", "chunk_shape"]

_DECODING_ERRORS = (
    OSError, EOFError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, OverflowError, MemoryError,
    zlib.error, lzma.LZMAError,
)  # fmt: skip


def chunk_shape(shape: tuple[int, ...], elements: int) -> tuple[int, ...]:
    """Extents of chunks of at most so many elements, as long as can be along the last dimensions; 1 at least."""
    left, extents = elements, []
    for n in reversed(shape):
        extents.append(max(1, min(n, left)))
        left //= extents[-1]
    return tuple(reversed(extents))


class Chunked:
    """An array that lies in chunks in a file.

    item : the library's array, which has shape, dtype and chunks
    place : the file and the array's name in it, for messages
    is_missing : whether the chunk of an index is not there, of arrays all of whose chunks have to be
    """

    def __init__(self, item: Any, place: str, is_missing: Callable[[tuple[int, ...]], bool] | None = None) -> None:
        self.item, self.place, self._is_missing = item, place, is_missing
        self.shape: tuple[int, ...] = tuple(item.shape)
        self.dtype = np.dtype(item.dtype)
        if item.chunks and min(item.chunks) < 1:
            raise FileFormatError(f"{place}: chunks of shape {tuple(item.chunks)}; expected 1 at least")

    def __getitem__(self, key: Any) -> Any:
        """`item[key]`. key : a number or a slice of the first dimension, or all of it, `()`."""
        if self._is_missing is not None:
            for index, _ in self._chunks(key):
                if self._is_missing(index):
                    self._fail(index, "the chunk is missing")
        try:
            return self.item[key]
        except FileFormatError:
            raise
        except _DECODING_ERRORS as error:
            for index, part in self._chunks(key):
                try:
                    self.item[part]
                except _DECODING_ERRORS as found:
                    self._fail(index, f"the data is corrupt ({found})")
            raise FileFormatError(f"{self.place}: not readable ({error})") from None

    def count(self) -> int:
        """The number of its chunks."""
        if not self.shape or not self.item.chunks or not all(self.item.chunks):
            return 1
        return math.prod(-(-n // int(size)) for n, size in zip(self.shape, self.item.chunks, strict=True))

    def _chunks(self, key: Any) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Indices and ranges of the chunks that hold what a key asks for."""
        if not self.shape or not self.item.chunks:
            yield (0,) * len(self.shape), (slice(None),) * len(self.shape)
            return
        first, last = 0, self.shape[0]
        if isinstance(key, slice):
            first, last, _ = key.indices(self.shape[0])
        elif isinstance(key, int | np.integer):
            first, last = int(key), int(key) + 1
        sizes = tuple(int(c) for c in self.item.chunks)
        counts = [range(first // sizes[0], -(-last // sizes[0]))]
        counts += [range(-(-n // size)) for n, size in zip(self.shape[1:], sizes[1:], strict=True)]
        for index in product(*counts):
            yield index, tuple(slice(k * size, (k + 1) * size) for k, size in zip(index, sizes, strict=True))

    def _fail(self, index: tuple[int, ...], why: str) -> NoReturn:
        name = ", ".join(map(str, index))
        first, size = (index[0], int(self.item.chunks[0])) if self.shape and self.item.chunks else (0, 1)
        rows = f" (from {first * size} on)" if first else ""
        raise FileFormatError(f"{self.place}, chunk {name}{rows}: {why}\n  help: restore the file from a copy")

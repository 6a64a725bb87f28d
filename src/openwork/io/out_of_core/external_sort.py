"""Elements in any order, more than memory holds -> parts in lexicographic order, of which no coordinates repeat.

Runs of as many elements as memory holds are sorted by a conversion to coordinates, which adds up duplicates, and
written one behind the other to files of a temporary folder, one for each column: however many runs there are, the
process has as many files open as there are columns, and twice as many while they are merged. They are merged by ranges:
samples of all runs give coordinates that cut every run into ranges of about the same number of elements in all, and a
range, of all runs, is sorted like a run.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from types import TracebackType
from typing import IO, Any

import numpy as np

from ...faults import reach
from ...format.named import coo
from ...interruptible import here
from ...storage.buffers import scalar_of
from ...storage.memory import free_idle
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..shared.leftovers import temporary_folder
from ..shared.records import Array

__all__ = ["ExternalSort", "sorted_part"]

Part = tuple[list[Array], Array]
_SAMPLES = 1 << 12
"""Of each run; a range of k runs is out by k / 4096 of the elements of a run at most."""
_PIECE = 1 << 24
_WORK = 56
"""Bytes that a sort takes for each element beside its input and output, measured."""


def sorted_part(extents: Sequence[int], columns: Sequence[Array], values: Array, fill: Any) -> Part:
    """The elements in lexicographic order, duplicates added up."""
    ndim = len(extents)
    pos: Array = np.array([0, values.size], columns[0].dtype)
    loose = coo(ndim, unique=False, ordered=False)
    none = (None,) * (ndim - 1)
    storage = Storage(tuple(extents), loose, scalar_of(values), fill, (pos, *none), tuple(columns), values)
    out = Tensor._from_storage(storage).asformat(coo(ndim))._storage
    return [c for c in out.crd if c is not None], out.values


class ExternalSort:
    """`add` elements, then `merged` gives them sorted; used as a context, which removes the temporary folder.

    extents : of each coordinate, which are from 0 up
    dtypes : of the coordinates, and of the values
    memory : the bytes that it takes at most
    folder : where the temporary folder is made
    """

    def __init__(
        self,
        extents: Sequence[int],
        dtypes: tuple[np.dtype[Any], np.dtype[Any]],
        fill: Any,
        memory: int,
        folder: str,
    ) -> None:
        self._extents, self._dtypes, self._fill, self._folder = tuple(extents), dtypes, fill, folder
        self._item = len(extents) * dtypes[0].itemsize + dtypes[1].itemsize
        self.room = max(memory // (3 * self._item + _WORK), 1)
        """the most elements of a run"""
        self._waiting: list[Part] = []
        self._waiting_size = 0
        self._sizes: list[int] = []
        """Elements of each run that is written."""
        self._files: list[IO[bytes]] = []
        self._temporary: str | None = None
        self.added = 0

    def __enter__(self) -> ExternalSort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()
        self._waiting.clear()
        free_idle()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def add(self, columns: Sequence[Array], values: Array) -> None:
        """Add elements; a run is written where memory is full."""
        index, scalar = self._dtypes
        for first in range(0, values.size, self.room):
            part = slice(first, first + self.room)
            size = values[part].size
            if self._waiting_size + size > self.room:
                self._write_run()
            self._waiting.append(
                ([c[part].astype(index, copy=False) for c in columns], values[part].astype(scalar, copy=False))
            )
            self._waiting_size += size
        self.added += int(values.size)

    def _sort_waiting(self) -> Part:
        """All elements that wait, sorted."""
        columns = [np.concatenate([w[0][k] for w in self._waiting]) for k in range(len(self._extents))]
        values = np.concatenate([w[1] for w in self._waiting])
        self._waiting.clear()
        self._waiting_size = 0
        return sorted_part(self._extents, columns, values, self._fill)

    def _write_run(self) -> None:
        """Sort the elements that wait, and write each column behind those of the runs before."""
        columns, values = self._sort_waiting()
        if self._temporary is None:
            self._temporary = temporary_folder(self._folder)
            names = (os.path.join(self._temporary, str(k)) for k in range(len(columns) + 1))
            self._files += [open(name, "x+b", buffering=0) for name in names]  # noqa: SIM115
        for file, array in zip(self._files, (*columns, values), strict=True):
            data = memoryview(array.view(np.uint8).data)
            for first in range(0, len(data), _PIECE):
                here().check()
                reach("write")
                piece = data[first : first + _PIECE]
                while piece:
                    piece = piece[file.write(piece) :]
        self._sizes.append(int(values.size))

    def _runs(self) -> list[Part]:
        """The runs, mapped: every file once."""
        index, scalar = self._dtypes
        types = [index] * len(self._extents) + [scalar]
        maps = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in self._files]
        whole = [np.frombuffer(pages, dtype) for pages, dtype in zip(maps, types, strict=True)]
        ends = np.cumsum(self._sizes).tolist()
        parts = [[c[end - size : end] for c in whole] for size, end in zip(self._sizes, ends, strict=True)]
        return [(columns[:-1], columns[-1]) for columns in parts]

    def merged(self, progress: Callable[[int, int], object] | None = None) -> Iterator[Part]:
        """The elements in order, in parts that memory holds; duplicates are added up."""
        if not self._sizes:
            if self._waiting:
                yield self._sort_waiting()
            return
        if self._waiting:
            self._write_run()
        total, done, runs = sum(self._sizes), 0, self._runs()
        starts = [0] * len(runs)
        for cut in (*self._cuts(runs, total), None):
            ends = [r[1].size if cut is None else _lower_bound(r[0], cut) for r in runs]
            pieces = [(r, slice(a, b)) for r, a, b in zip(runs, starts, ends, strict=True) if a < b]
            if pieces:
                columns = [np.concatenate([r[0][k][part] for r, part in pieces]) for k in range(len(self._extents))]
                values = np.concatenate([r[1][part] for r, part in pieces])
                done += values.size
                part = columns, values
                del columns, values
                yield part if len(pieces) == 1 else sorted_part(self._extents, *part, self._fill)
                del part
                if progress is not None:
                    progress(done, total)
            starts = ends

    def _cuts(self, runs: Sequence[Part], total: int) -> list[tuple[int, ...]]:
        """Coordinates that cut the runs into ranges of less elements than a run has, in increasing order."""
        samples: list[Array] = []
        weights: list[Array] = []
        for columns, values in runs:
            step = max(values.size // _SAMPLES, 1)
            samples.append(np.stack([np.asarray(c[::step], np.int64) for c in columns]))
            weights.append(np.full(samples[-1].shape[1], step))
        points, weight = np.concatenate(samples, axis=1), np.concatenate(weights)
        order = np.lexsort(points[::-1])
        points, before = points[:, order], np.cumsum(weight[order])
        count = -(-total // max(self.room * 3 // 4, 1))
        places = np.searchsorted(before, np.arange(1, count) * (total / count))
        cuts = [tuple(points[:, p].tolist()) for p in places.tolist() if p < before.size]
        return [a for a, b in zip_longest(cuts, cuts[1:]) if a != b]


def _lower_bound(columns: Sequence[Array], key: Sequence[int]) -> int:
    """The first element of a sorted run that is not before the key."""
    low, high = 0, columns[0].size
    for column, x in zip(columns, key, strict=True):
        part, typed = column[low:high], column.dtype.type(x)  # of another type, all of the part would be converted
        high = low + int(np.searchsorted(part, typed, "right"))
        low += int(np.searchsorted(part, typed))
        if low == high:
            break
    return low

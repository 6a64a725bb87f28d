"""Binsparse groups of HDF5 files and zarr stores, part by part: datasets that are appended to, and that are read from.

Appended are chunks of 2**20 elements; what is shorter waits, so that no chunk is written twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...faults import reach
from ...format.format import Format
from ...interruptible import here
from ..containers import binsparse
from ..containers.hdf5 import growing_dataset, open_hdf5, set_text
from ..containers.zarr import create_zarr, open_zarr
from ..shared.records import Array, Options
from ..shared.stored_range import Stored

__all__ = ["DatasetSink", "is_dataset_file", "opened_group", "to_hdf5", "to_zarr"]

_CHUNK = 1 << 20
Path_ = str | os.PathLike[str]


class DatasetSink:
    """A sink of level buffers that are datasets of a binsparse group."""

    def __init__(self, path: Path_, root: Any) -> None:
        self._name, self._root = os.fspath(path), root
        self._items: dict[str, Any] = {}
        self._waiting: dict[str, list[Array]] = {}

    def check(self, format: Format, dtype: np.dtype[Any]) -> None:
        """Raise UnsupportedError for what the specification does not have."""
        if binsparse.levels_of_format(format) is None:
            raise UnsupportedError(
                f"convert: {self._name}: binsparse has no format {format}\n  help: format='coo' or 'csr', or .ow"
            )
        if binsparse.as_stored(np.empty(0, dtype), self._name)[0].dtype != dtype:
            raise UnsupportedError(f"convert: {self._name}: values of {dtype} in parts\n  help: .ow, or write it whole")

    def append(self, name: str, array: Array) -> None:
        """Append to a buffer; what the specification leaves out, pos of an outermost level, is left out."""
        key = name.replace("pos_", "pointers_to_").replace("crd_", "indices_")
        if key == "pointers_to_0":
            return
        if key not in self._items:
            self._items[key] = _growing(self._root, key, array.dtype)
        waiting = self._waiting.setdefault(key, [])
        waiting.append(array)
        if sum(a.size for a in waiting) >= _CHUNK:
            data = np.concatenate(waiting)
            whole = data.size - data.size % _CHUNK
            self._write(key, data[:whole])
            self._waiting[key] = [data[whole:].copy()]

    def _write(self, key: str, data: Array) -> None:
        item = self._items[key]
        here().check()
        reach("write")
        size = int(item.shape[0])
        item.resize((size + data.size,))
        item[size:] = data

    def finish(self, format: Format, shape: tuple[int, ...], scalar: str, fill_value: Any) -> None:
        """Write what waits, and the description of the group."""
        for key, waiting in self._waiting.items():
            self._write(key, np.concatenate(waiting))
        types = {key: str(np.dtype(item.dtype)) for key, item in self._items.items()}
        stored = int(self._items["values"].shape[0])
        description = binsparse.description_of(format, shape, types, stored)
        if fill_value != 0:
            description["fill"] = True
            data = np.array([fill_value], self._items["values"].dtype)
            self._root.create_dataset("fill_value", data=data)
            types["fill_value"] = str(data.dtype)
        set_text(self._root, binsparse.ATTRIBUTE, json.dumps({binsparse.ATTRIBUTE: description}))


def _growing(root: Any, key: str, dtype: np.dtype[Any]) -> Any:
    return root.create_growing(key, dtype) if hasattr(root, "create_growing") else growing_dataset(root, key, dtype)


@contextmanager
def to_hdf5(path: Path_) -> Iterator[DatasetSink]:
    """A sink of a `.bsp.h5`, which is at `path` once the block has ended without an exception."""
    with binsparse.create_binsparse(path) as root:
        yield DatasetSink(path, root)


@contextmanager
def to_zarr(path: Path_) -> Iterator[DatasetSink]:
    """A sink of a `.bsp.zarr`, which is at `path` once the block has ended without an exception."""
    with create_zarr(path, False, binsparse.refuse_others) as root:
        yield DatasetSink(path, root)


_OPENING: dict[str, Callable[..., Any]] = {".bsp.h5": open_hdf5, ".bsp.zarr": open_zarr}


def is_dataset_file(path: Path_) -> bool:
    """Whether a file's name is that of a binsparse file."""
    return str(os.fspath(path)).lower().endswith(tuple(_OPENING))


@contextmanager
def opened_group(path: Path_, options: Options) -> Iterator[Stored | None]:
    """The tensor of a binsparse file over its datasets, as long as the block lasts; None of one that is read whole."""
    kind = next(end for end in _OPENING if str(os.fspath(path)).lower().endswith(end))
    with _OPENING[kind](path, options.ratio) as file:
        group = file.group(options.variable)
        if binsparse.ATTRIBUTE not in group.attrs:
            file.fail(f"{group.name} has no attribute {binsparse.ATTRIBUTE!r}\n  help: pass variable=, a group's name")
        yield binsparse.stored_group(file, group)

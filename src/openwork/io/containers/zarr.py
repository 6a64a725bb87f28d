"""zarr stores (folders `.zarr`) through zarr, where it is installed: AnnData's layout and binsparse's groups.

The groups and arrays are those of the HDF5 files, so that `anndata` and `binsparse` read and write both. Only numbers
are read, no objects, and no more bytes than `limits` allow for those that the chunks take on disk. Chunks that hold
rows asked for are read, and no others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FileFormatError, UnsupportedError
from ...faults import reach
from ..shared import limits
from ..shared.records import Array, Buffers, Coordinates, Options, Progress
from ..shared.replace import replacing_folder
from . import anndata, binsparse
from .hdf5 import Hdf5

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["create_zarr", "open_zarr", "read", "write"]

_MARKS = (".zgroup", "zarr.json")
_OWN = re.compile(r"\.z(group|attrs|array|metadata)|zarr\.json|c|[0-9.]+")
_CHUNK = 1 << 20
"""Elements of a chunk: 8 MiB of doubles."""
_READ_ERRORS = (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError, OverflowError, MemoryError)


def _zarr(path: str | os.PathLike[str]) -> Any:
    try:
        import zarr
    except ImportError:
        raise UnsupportedError(f"{os.fspath(path)}: zarr stores need zarr\n  help: pip install zarr") from None
    return zarr


class _Store(Hdf5):
    """The groups and arrays of a store, each checked before it is loaded."""

    def __init__(self, zarr: Any, name: str, root: Any, ratio: int | None) -> None:
        super().__init__(zarr, name, root, ratio)
        self._zarr = zarr

    def members(self, group: Any) -> dict[str, Any]:
        """The members of a group by name."""
        return dict(group.members())

    def is_group(self, item: Any) -> bool:
        return isinstance(item, self._zarr.Group)

    def dataset(self, group: Any, key: str) -> Any:
        """An array of numbers, of which nothing is loaded."""
        return self._of_numbers(group, key, self._zarr.Array, "array")[0]

    def array(self, group: Any, key: str, part: slice | None = None) -> Array:
        """An array of numbers, or a part of its first dimension."""
        item, where = self.dataset(group, key), f"{group.name.rstrip('/')}/{key}"
        chunk = int(np.prod(item.chunks, dtype=np.float64)) * item.dtype.itemsize
        self._stored_bytes += int(item.nbytes_stored())
        share = 1.0 if part is None or not item.shape[0] else (part.stop - part.start) / item.shape[0]
        self._loaded_bytes += max(int(item.nbytes * share), chunk)
        limit = limits.allowed(self._stored_bytes, self._ratio)
        if self._loaded_bytes > limit:
            limits.refuse_size(f"{self.name}: {where}", self._stored_bytes, limit)
        array = np.asarray(item[...] if part is None else item[part])
        return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))


@contextmanager
def open_zarr(path: str | os.PathLike[str], ratio: int | None) -> Iterator[_Store]:
    name, zarr = os.fspath(path), _zarr(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"[Errno 2] No such file or directory: {name!r}")
    try:
        yield _Store(zarr, name, zarr.open_group(name, mode="r"), ratio)
    except (FileFormatError, UnsupportedError):
        raise
    except _READ_ERRORS as error:
        raise FileFormatError(f"{name}: not a readable zarr store ({error})") from None


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The tensor of a binsparse group, or AnnData's element `variable=`, "X" by default, or a range of its rows."""
    with open_zarr(path, options.ratio) as store:
        group = store.root
        for part in (options.variable or "").split("/"):
            group = store.members(group).get(part) if part and store.is_group(group) else group
        if store.is_group(group) and binsparse.ATTRIBUTE in group.attrs:
            if options.rows is not None:
                raise UnsupportedError(f"{store.name}: rows= of a binsparse group\n  help: read it whole")
            return binsparse.read_group(store, group)
        return anndata.read_element(store, options.variable or "X", options.rows)


class _Group:
    """A zarr group under h5py's interface for writing."""

    def __init__(self, group: Any, compress: bool) -> None:
        self._group, self._compress = group, compress
        self.attrs = _Attributes(group.attrs)

    def create_group(self, key: str) -> _Group:
        return _Group(self._group.create_group(key), self._compress)

    def __getitem__(self, key: str) -> _Group:
        return _Group(self._group[key], self._compress)

    def create_dataset(self, key: str, *, data: Array, **options: Any) -> _Group:
        """An array of chunks along the first dimension, deflated where the store is to be."""
        array = np.asarray(data)
        reach("write")
        compression: dict[str, Any] = {"compressors": None}
        if self._compress and array.size:
            import numcodecs  # comes with zarr

            compression = {"compressors": numcodecs.GZip(4)}
        rows = max(1, _CHUNK // max(1, int(np.prod(array.shape[1:], dtype=np.int64)))) if array.ndim else 1
        chunks = tuple(max(1, min(n, rows if k == 0 else n)) for k, n in enumerate(array.shape))
        item = self._group.create_array(key, shape=array.shape, dtype=array.dtype, chunks=chunks or (), **compression)
        item[...] = array
        return _Group(item, self._compress)

    def create_growing(self, key: str, dtype: np.dtype[Any]) -> Any:
        """An array of one dimension, to which is appended."""
        return self._group.create_array(key, shape=(0,), dtype=dtype, chunks=(_CHUNK,), compressors=None)

    def create_texts(self, key: str, lines: Sequence[str]) -> _Group:
        """An array of texts of any length."""
        item = self._group.create_array(
            key, shape=(len(lines),), dtype=str, chunks=(max(1, min(len(lines), _CHUNK)),), compressors=None
        )
        item[...] = np.array(lines, object)
        return _Group(item, self._compress)


class _Attributes:
    """Attributes of a group or array: NumPy's arrays and numbers as JSON's."""

    def __init__(self, attrs: Any) -> None:
        self._attrs = attrs

    def __setitem__(self, key: str, value: Any) -> None:
        self._attrs[key] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@contextmanager
def create_zarr(path: str | os.PathLike[str], compress: bool) -> Iterator[_Group]:
    """The root group of a new store, which is at `path` once the block has ended without an exception."""
    zarr = _zarr(path)
    with replacing_folder(path, _is_store, "zarr store") as folder:
        yield _Group(zarr.open_group(folder, mode="w", zarr_format=2), compress)


def _is_store(folder: str) -> bool:
    """Whether a folder is a zarr store and nothing else: metadata, and chunks, whose names are numbers."""
    if not any(os.path.isfile(os.path.join(folder, mark)) for mark in _MARKS):
        return False
    return all(_OWN.fullmatch(name) for _, _, files in os.walk(folder) for name in files)


def write(
    path: str | os.PathLike[str], t: Tensor | Mapping[str, Tensor], compress: bool, progress: Progress | None = None
) -> None:
    """A store of AnnData's layout, or of a binsparse group where the name ends in `.bsp.zarr`."""

    def opening(path: str | os.PathLike[str]) -> Any:
        return create_zarr(path, compress)

    if isinstance(t, Mapping):
        anndata.write(path, t, False, progress, opening)
    else:
        binsparse.write(path, t, False, progress, opening)

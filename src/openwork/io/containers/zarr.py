"""zarr stores (folders `.zarr`) through zarr, where it is installed: AnnData's layout and binsparse's groups.

The groups and arrays are those of the HDF5 files, so that `anndata` and `binsparse` read and write both. Only numbers
are read, no objects, and no more bytes than `limits` allow for those that the chunks take on disk. Chunks that hold
rows asked for are read, and no others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FileFormatError, ShapeError, UnsupportedError
from ...faults import reach
from ..shared.folder import Folder, read_whole
from ..shared.records import Buffers, Coordinates, Options, Step
from ..shared.replace import replacing_folder
from . import anndata, binsparse
from .chunked import Chunked, chunk_shape
from .hdf5 import Hdf5
from .zarr_store import limited, members_of, store_over

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["create_zarr", "open_zarr", "read", "write"]

_METADATA = "zarr.json"
_MARKS = (".zgroup", _METADATA)
_SEAL = "openwork"
"""The attribute of groups and arrays that we write: the CRC-32 of their metadata. All chunks of such an array are
there, where zarr leaves out those of fill values."""
_OWN = re.compile(r"\.z(group|attrs|array|metadata)|zarr\.json|c|[0-9.]+")
_MAX_METADATA = 1 << 24
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

    def __init__(self, zarr: Any, folder: Folder, ratio: int | None) -> None:
        root = zarr.open_group(store_over(zarr, folder), mode="r", use_consolidated=False)
        super().__init__(zarr, folder.name, root, ratio)
        self._zarr, self._folder = zarr, folder
        self._sealed: dict[str, bool] = {}
        """whether the metadata of a group or an array has a checksum, by path; those that were compared with theirs"""
        self._check(root)

    def members(self, group: Any) -> dict[str, Any]:
        """The members of a group by name."""
        members = {name: group[name] for name in members_of(self._folder, group.path)}
        for item in members.values():
            self._check(item)
        return members

    def _check(self, item: Any) -> None:
        """Raise FileFormatError where the metadata of a group or an array is not that of its checksum."""
        if item.path in self._sealed:
            return
        key = f"{item.path}/{_METADATA}" if item.path else _METADATA
        body = json.loads(self._folder.read(key, _MAX_METADATA)) if self._folder.has(key) else None
        attributes = body.get("attributes") if isinstance(body, dict) else None
        own = attributes.get(_SEAL) if isinstance(attributes, dict) else None
        if isinstance(body, dict) and own is not None and own != {"crc32": _checksum(body)}:
            self.fail(
                f"{os.path.join(item.path, _METADATA)}: the checksum {own} is not that of the metadata: it is corrupt,"
                f" or another program changed it\n  help: restore the file from a copy, or remove the attribute"
                f" {_SEAL!r}"
            )
        self._sealed[item.path] = own is not None

    def is_group(self, item: Any) -> bool:
        return isinstance(item, self._zarr.Group)

    def dataset(self, group: Any, key: str) -> Chunked:
        """An array of numbers, of which nothing is loaded."""
        item, where = self._of_numbers(group, key, self._zarr.Array, "array")

        def is_missing(index: tuple[int, ...]) -> bool:
            return not self._folder.has(f"{item.path}/{item.metadata.encode_chunk_key(index)}")

        item = limited(self._zarr, item, f"{self.name}: {where}")
        return Chunked(item, f"{self.name}: {where}", is_missing if self._sealed.get(item.path) else None)

    def stored_bytes(self, item: Any) -> int:
        """The bytes that an array's chunks take."""
        return int(item.nbytes_stored())


@contextmanager
def open_zarr(path: str | os.PathLike[str], ratio: int | None) -> Iterator[_Store]:
    """The store at `path`. Raises FileFormatError for what is none, or where it was replaced before the block ended."""
    with Folder(path) as folder, _opened(folder, ratio) as store:
        yield store
        if not folder.is_current:
            store.fail("the store was replaced while it was read\n  help: read it again")


@contextmanager
def _opened(folder: Folder, ratio: int | None) -> Iterator[_Store]:
    zarr = _zarr(folder.name)
    try:
        yield _Store(zarr, folder, ratio)
    except (FileFormatError, UnsupportedError, ShapeError):
        raise
    except _READ_ERRORS as error:
        raise FileFormatError(f"{folder.name}: not a readable zarr store ({error})") from None


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The tensor of a binsparse group, or AnnData's element `variable=`, "X" by default, or a range of its rows."""
    _zarr(path)

    def of_folder(folder: Folder) -> Buffers | Coordinates:
        with _opened(folder, options.ratio) as store:
            return _element(store, options)

    try:
        return read_whole(path, of_folder)
    except NotADirectoryError:
        raise FileFormatError(f"{os.fspath(path)}: a zarr store is a folder, this is a file") from None


def _element(store: _Store, options: Options) -> Buffers | Coordinates:
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

    def __init__(self, group: Any, zarr: Any, compress: bool, changed: set[str] | None = None) -> None:
        self._group, self._zarr, self._compress = group, zarr, compress
        self.changed = set[str]() if changed is None else changed
        """the paths of what was made"""
        self.attrs = _Attributes(group.attrs)

    def _made(self, item: Any) -> _Group:
        self.changed.add(item.path)
        return _Group(item, self._zarr, self._compress, self.changed)

    def create_group(self, key: str) -> _Group:
        return self._made(self._group.create_group(key))

    def __getitem__(self, key: str) -> _Group:
        return _Group(self._group[key], self._zarr, self._compress, self.changed)

    def __contains__(self, key: str) -> bool:
        return key in self._group

    def __delitem__(self, key: str) -> None:
        del self._group[key]

    def create_dataset(self, key: str, *, data: np.ndarray[Any, Any], **options: Any) -> _Group:
        """An array of chunks along the first dimension, deflated where the store is to be."""
        array = np.asarray(data)
        item = self._array(key, array.shape, array.dtype, chunk_shape(array.shape, _CHUNK))
        item[...] = array
        return self._made(item)

    def _array(self, key: str, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...]) -> Any:
        """A new array, each of whose chunks is written, with a checksum of its bytes."""
        reach("write")
        if self._group.metadata.zarr_format == 2:  # a store that is added to
            packing = "auto" if self._compress and 0 not in shape else None
            return self._group.create_array(
                key, shape=shape, dtype=dtype, chunks=chunks, compressors=packing, config={"write_empty_chunks": True}
            )
        codecs = self._zarr.codecs
        packed = [codecs.GzipCodec(level=4)] if self._compress and 0 not in shape else []
        return self._group.create_array(
            key, shape=shape, dtype=dtype, chunks=chunks, compressors=[*packed, codecs.Crc32cCodec()],
            config={"write_empty_chunks": True},
        )  # fmt: skip

    def create_growing(self, key: str, dtype: np.dtype[Any]) -> Any:
        """An array of one dimension, to which is appended."""
        return self._array(key, (0,), dtype, (_CHUNK,))

    def create_texts(self, key: str, lines: Sequence[str]) -> _Group:
        """An array of texts of any length."""
        item = self._array(key, (len(lines),), str, chunk_shape((len(lines),), _CHUNK))
        item[...] = np.array(lines, object)
        return self._made(item)


class _Attributes:
    """Attributes of a group or array: NumPy's arrays and numbers as JSON's."""

    def __init__(self, attrs: Any) -> None:
        self._attrs = attrs

    def __setitem__(self, key: str, value: Any) -> None:
        self._attrs[key] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@contextmanager
def create_zarr(
    path: str | os.PathLike[str], compress: bool, keeps: Callable[[Hdf5], bool] | None = None
) -> Iterator[_Group]:
    """The root group of a new store, which is at `path` once the block has ended without an exception.

    keeps : of a store that is there, whether its content stays beside what is written; it raises where it cannot
    """
    zarr = _zarr(path)
    with replacing_folder(path, _is_store, "zarr store") as folder:
        adding, others = False, set[str]()
        if keeps is not None and os.path.isdir(path):
            with open_zarr(path, None) as old:
                adding = keeps(old)
            if adding:
                others = _copy(path, folder)
        mode, version = ("r+", None) if adding else ("w", 3)
        group = _Group(zarr.open_group(folder, mode=mode, zarr_format=version, use_consolidated=False), zarr, compress)
        yield group
        _seal(folder, others - group.changed)
        if adding:
            _consolidate(zarr, folder)
        _sync(folder)


def _copy(path: str | os.PathLike[str], folder: str) -> set[str]:
    """Copy the files of a store; the paths of metadata that has no checksum of ours."""
    unsealed = set()
    with Folder(path) as old:
        for name in old.files():
            target = os.path.join(folder, *name.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            reach("write")
            with old.open(name) as source, open(target, "xb") as copy:
                shutil.copyfileobj(source, copy)
            if name.rpartition("/")[2] == _METADATA and _SEAL not in json.loads(old.read(name, _MAX_METADATA)).get(
                "attributes", {}
            ):
                unsealed.add(name.rpartition("/")[0])
    return unsealed


def _consolidate(zarr: Any, folder: str) -> None:
    """Collect the metadata again where the store had it collected, which other programs read instead."""
    place = os.path.join(folder, _METADATA)
    with_all = os.path.exists(os.path.join(folder, ".zmetadata"))
    if os.path.exists(place):
        with open(place, "rb") as file:
            with_all = bool(json.loads(file.read()).get("consolidated_metadata"))
    if with_all:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that other programs might not read it: it was there
            zarr.consolidate_metadata(folder)


def _seal(folder: str, others: Collection[str]) -> None:
    """Give the metadata of each group and array its checksum, but for those that other programs wrote."""
    for place, _, files in os.walk(folder):
        path = os.path.relpath(place, folder).replace(os.sep, "/")
        if _METADATA in files and ("" if path == "." else path) not in others:
            name = os.path.join(place, _METADATA)
            with open(name, "rb") as file:
                body = json.loads(file.read())
            body["attributes"] = {**body.get("attributes", {}), _SEAL: {"crc32": _checksum(body)}}
            reach("write")
            with open(name, "w") as file:
                json.dump(body, file, indent=2)


def _sync(folder: str) -> None:
    """Sync all files."""
    for place, _, files in os.walk(folder):
        for file_name in files:
            reach("fsync")
            descriptor = os.open(os.path.join(place, file_name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _checksum(metadata: dict[str, Any]) -> int:
    """The CRC-32 of metadata but for itself, whatever the order and the blanks of its text."""
    body = {key: value for key, value in metadata.items() if key != "consolidated_metadata"}
    body["attributes"] = {key: value for key, value in body.get("attributes", {}).items() if key != _SEAL}
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _is_store(folder: str) -> bool:
    """Whether a folder is a zarr store and nothing else: metadata, and chunks, whose names are numbers."""
    if not any(os.path.isfile(os.path.join(folder, mark)) for mark in _MARKS):
        return False
    return all(_OWN.fullmatch(name) for _, _, files in os.walk(folder) for name in files)


def write(
    path: str | os.PathLike[str], t: Tensor | Mapping[str, Tensor], compress: bool, progress: Step | None = None
) -> None:
    """A store of AnnData's layout, or of a binsparse group where the name ends in `.bsp.zarr`."""

    def opening(path: str | os.PathLike[str], keeps: Callable[[Hdf5], bool] = binsparse.refuse_others) -> Any:
        return create_zarr(path, compress, keeps)

    if isinstance(t, Mapping):
        anndata.write(path, t, False, progress, opening)
    else:
        binsparse.write(path, t, False, progress, opening)

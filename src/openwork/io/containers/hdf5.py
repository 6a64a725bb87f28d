"""HDF5 through h5py, where it is installed: what is read is checked, what is written is whole; MATLAB 7.3, 10x.

Only what lies in the file itself is read: no links to other files, no virtual or external data, no filters but the
usual ones, each once; and no more bytes than `limits` allow for those that the data have in the file.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import FileFormatError, ShapeError, UnsupportedError
from ...faults import reach
from ...storage.buffers import to_numpy
from ..shared import limits
from ..shared.compressed import check_pointers, compressed
from ..shared.records import Array, Buffers, Coordinates, Options, Step
from ..shared.replace import replacing_name
from ..shared.tensors import check_matrix
from ..shared.unpack import open_regular
from .besides import has_numbers_as_names, refuse_loss
from .chunked import Chunked, chunk_shape
from .hdf5_chunks import refuse_bombs, refuse_filters

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "Hdf5", "create_hdf5", "dataset", "growing_dataset", "open_hdf5", "read_tenx", "set_text", "text_dataset",
    "write_tenx",
]  # fmt: skip

_DEPTH = 32
_AT_ONCE = 8
_CHUNK = 1 << 17
"""Elements of a chunk: 1 MiB of doubles, as much as HDF5 keeps of a dataset for the next read."""
_SMALL = 1 << 17
"""Bytes of what libhdf5 writes to read it again, at most."""
_LIBRARY = ("v110", "v110")
"""The file format of HDF5 1.10, which has checksums of all that says what lies where."""
_READ_ERRORS = (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError, OverflowError, MemoryError)


@contextmanager
def open_hdf5(path: str | os.PathLike[str], ratio: int | None) -> Iterator[Hdf5]:
    """The file at `path`. Raises UnsupportedError where h5py is missing, FileFormatError for what is not HDF5."""
    name, h5py = os.fspath(path), _h5py(path)
    open_regular(path).close()
    try:
        with h5py.File(name, "r") as file:
            yield Hdf5(h5py, name, file, ratio)
    except (FileFormatError, UnsupportedError, ShapeError):
        raise
    except _READ_ERRORS as error:
        raise FileFormatError(f"{name}: not a readable HDF5 file ({error})") from None


def _h5py(path: str | os.PathLike[str]) -> Any:
    try:
        import h5py
    except ImportError:
        raise UnsupportedError(
            f"{os.fspath(path)}: HDF5 files (MATLAB 7.3, 10x, AnnData, binsparse) need h5py\n  help: pip install h5py"
        ) from None
    return h5py


@contextmanager
def create_hdf5(path: str | os.PathLike[str], keeps: Callable[[Hdf5], bool] | None = None) -> Iterator[Any]:
    """The root group of a new file, which is at `path` once the block has ended without an exception.

    keeps : of an HDF5 file that is there, whether its content stays beside what is written; it raises where it cannot
    """
    h5py = _h5py(path)
    adding = False
    if keeps is not None and os.path.isfile(path) and h5py.is_hdf5(os.fspath(path)):
        with open_hdf5(path, None) as old:
            adding = keeps(old)
    with replacing_name(path) as temporary:
        if adding:
            shutil.copyfile(path, temporary)
        with _HeldErrors(temporary, "r+b" if adding else "w+b") as raw:
            try:
                with h5py.File(raw, "r+" if adding else "w", libver=_LIBRARY) as file:
                    yield file
            finally:
                if raw.error is not None:
                    raise raw.error


class _HeldErrors(io.FileIO):
    """A file for HDF5, of which no write fails: an error is kept, and what is written after it is dropped.

    libhdf5 writes as it closes what it has, too, and a process ends where that fails, as on a full disk. It ends as
    well where libhdf5 reads other structures than it wrote: small writes after an error are kept in memory.
    """

    def __init__(self, path: str, mode: str = "w+b") -> None:
        super().__init__(path, mode)
        self.error: OSError | None = None
        self._size = os.fstat(self.fileno()).st_size
        self._kept: list[tuple[int, bytes]] = []

    def write(self, data: Any, /) -> int:
        """All of the data is written, or an error kept."""
        view, first = memoryview(data).cast("B"), self.tell()
        try:
            at = 0
            while self.error is None and at < len(view):
                reach("write")
                at += super().write(view[at:]) or 0
        except OSError as error:
            self.error = error
        if self.error is not None and len(view) <= _SMALL:
            self._kept.append((first, bytes(view)))
        self._size = max(self._size, first + len(view))
        super().seek(first + len(view))
        return len(view)

    def readinto(self, buffer: Any, /) -> int:
        """What was written, and zeros where that was dropped."""
        view, first = memoryview(buffer).cast("B"), self.tell()
        read = super().readinto(view) or 0
        if self.error is not None:
            view[read:] = bytes(len(view) - read)
            for at, data in self._kept:
                begin, end = max(at, first), min(at + len(data), first + len(view))
                if begin < end:
                    view[begin - first : end - first] = data[begin - at : end - at]
            read = len(view)
        return read

    def truncate(self, size: int | None = None, /) -> int:
        """The length of the file is set, or an error kept."""
        self._size = self.tell() if size is None else size
        try:
            if self.error is None:
                super().truncate(self._size)
        except OSError as error:
            self.error = error
        return self._size

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """The end is that of what was to be written."""
        return super().seek(self._size + offset) if whence == io.SEEK_END else super().seek(offset, whence)


def dataset(group: Any, key: str, array: Array, compress: bool = False) -> Any:
    """A dataset of the array in chunks with checksums, deflated if asked; no time is stored, so that equal tensors give
    equal files."""
    options: dict[str, Any] = {}
    if array.size and array.ndim:
        options = {"chunks": chunk_shape(array.shape, _CHUNK), "fletcher32": True}
        options |= {"compression": "gzip", "shuffle": True} if compress else {}
    return group.create_dataset(key, data=array, **options)


def growing_dataset(group: Any, key: str, dtype: np.dtype[Any]) -> Any:
    """A dataset of one dimension, to which is appended."""
    return group.create_dataset(key, shape=(0,), maxshape=(None,), chunks=(_CHUNK,), dtype=dtype, fletcher32=True)


def text_dataset(group: Any, key: str, lines: Sequence[str]) -> Any:
    """A dataset of texts of any length."""
    if hasattr(group, "create_texts"):
        return group.create_texts(key, lines)
    kind = _h5py(group.file.filename).string_dtype()
    return group.create_dataset(key, data=list(lines), dtype=kind, shape=(len(lines),))


def set_text(item: Any, key: str, text: str) -> None:
    """Set an attribute to a text of fixed length, which lies where HDF5 has checksums; others it keeps in a heap that
    has none."""
    if not hasattr(item.attrs, "create"):
        item.attrs[key] = text
        return
    data = text.encode()
    item.attrs.create(key, data, dtype=_h5py(item.file.filename).string_dtype("utf-8", len(data)))


class Hdf5:
    """The groups and datasets of a file, each checked before it is loaded."""

    def __init__(self, h5py: Any, name: str, root: Any, ratio: int | None) -> None:
        self.root, self.name = root, name
        self._h5py, self._ratio = h5py, ratio
        self._stored_bytes = self._loaded_bytes = 0

    def fail(self, message: str) -> NoReturn:
        raise FileFormatError(f"{self.name}: {message}")

    def members(self, group: Any) -> dict[str, Any]:
        """The members of a group by hard links: soft and external links could name anything."""
        names = [n for n in group if isinstance(group.get(n, getlink=True), self._h5py.HardLink)]
        return {n: group[n] for n in names}

    def group(self, name: str | None) -> Any:
        """The group of this name, by way of hard links; the root without one."""
        item = self.root
        for part in (name or "").split("/"):
            if part:
                item = self.members(item).get(part) if self.is_group(item) else None
        if not self.is_group(item):
            self.fail(f"there is no group {name!r}; there are {', '.join(list(self.members(self.root))[:40])}")
        return item

    def is_group(self, item: Any) -> bool:
        return isinstance(item, self._h5py.Group)

    def dataset(self, group: Any, key: str) -> Chunked:
        """A dataset of numbers in this file, of which nothing is loaded."""
        item, where = self._of_numbers(group, key, self._h5py.Dataset, "dataset")
        if item.shape is None:
            self.fail(f"{where} has no shape")
        if item.is_virtual or item.external:
            self.fail(f"{where} has its values in other files, which are not read")
        place = f"{self.name}: {where}"
        refuse_filters(item, place)
        refuse_bombs(item, place, self._ratio)
        return Chunked(item, place)

    def _of_numbers(self, group: Any, key: str, kind: Any, what: str) -> tuple[Any, str]:
        """A group's member of this kind, whose values are numbers, and its place for messages."""
        item = self.members(group).get(key)
        where = f"{group.name.rstrip('/')}/{key}"
        if not isinstance(item, kind):
            self.fail(f"{where} is missing, or no {what}")
        if not self._is_number(item.dtype):
            self.fail(f"{where} has values of {item.dtype}; expected numbers")
        return item, where

    def array(self, group: Any, key: str, part: slice | None = None) -> Array:
        """A dataset of numbers, or a part of its first dimension."""
        chunked = self.dataset(group, key)
        item, kind = chunked.item, chunked.dtype
        chunk = int(np.prod(item.chunks, dtype=np.float64)) * kind.itemsize if item.chunks else 0
        chunk *= min(_AT_ONCE, chunked.count())  # those that a library has in memory together
        self._stored_bytes += self.stored_bytes(item)
        share = 1.0 if part is None or not item.shape[0] else (part.stop - part.start) / item.shape[0]
        self._loaded_bytes += max(int(item.nbytes * share), chunk)
        limit = limits.allowed(self._stored_bytes, self._ratio)
        if self._loaded_bytes > limit:
            limits.refuse_size(chunked.place, self._stored_bytes, limit)
        array: Array = np.asarray(chunked[() if part is None else part])
        if array.dtype.names:
            first, second = (array[n] for n in array.dtype.names)
            return np.asarray(first + 1j * second)
        return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))

    def stored_bytes(self, item: Any) -> int:
        """The bytes that an array takes in the file."""
        return int(item.id.get_storage_size())

    def integers(self, group: Any, key: str, part: slice | None = None) -> Array:
        """A dataset of integers in one dimension, or a part of it."""
        result = self.array(group, key, part)
        if result.dtype.kind not in "iu" or result.ndim != 1:
            self.fail(
                f"{group.name.rstrip('/')}/{key} has shape {result.shape} and dtype {result.dtype}; expected integers"
            )
        return result

    def _is_number(self, kind: np.dtype[Any]) -> bool:
        if kind.names:
            return len(kind.names) == 2 and all(kind[n].kind == "f" and kind[n].itemsize <= 8 for n in kind.names)
        return kind.kind in "biu" or (kind.kind in "fc" and kind.itemsize <= {"f": 8, "c": 16}[kind.kind])

    def columns(self, group: Any, keys: tuple[str, str, str], shape: tuple[int, int], logical: bool = False) -> Buffers:
        """Compressed columns from the datasets of pointers, indices and values."""
        pos, crd = self.integers(group, keys[0]), self.integers(group, keys[1])
        data = self.array(group, keys[2])
        if data.ndim != 1:
            self.fail(f"{group.name}/{keys[2]} has shape {data.shape}; expected one dimension")
        if fault := check_pointers(pos, crd, data.size, shape[1], shape[0], keys[:2]):
            self.fail(f"{group.name}: {fault}")
        return compressed("j", shape, pos, crd, data != 0 if logical else data)


def read_tenx(path: str | os.PathLike[str], options: Options) -> Buffers:
    """The matrix of a 10x Genomics file: compressed columns (features x barcodes), in group `matrix` or a genome's."""
    with open_hdf5(path, options.ratio) as file:
        members = file.members(file.root)
        groups = [n for n, item in members.items() if file.is_group(item) and "indptr" in item]
        name = options.variable or ("matrix" if "matrix" in groups else groups[0] if len(groups) == 1 else None)
        if name not in groups:
            file.fail(f"expected a group with data, indices, indptr, shape; got {groups}")
        shape = file.integers(members[name], "shape")
        if shape.size != 2 or int(shape.min()) < 0 or int(shape.max()) > 2**62:
            file.fail(f"/{name}/shape is {shape.tolist()[:9]}; expected two extents")
        return file.columns(members[name], ("indptr", "indices", "data"), (int(shape[0]), int(shape[1])))


def write_tenx(path: str | os.PathLike[str], t: Tensor, compress: bool, progress: Step | None) -> None:
    """A file of 10x Genomics' layout (version 3): features x barcodes, both named by their numbers.

    Raises ShapeError, UnsupportedError for what is no matrix of fill value 0.
    """
    check_matrix(path, t, "10x files")
    storage = t.asformat("csc")._storage
    features, barcodes = t.shape
    arrays = {
        "data": to_numpy(storage.values), "indices": to_numpy(storage.crd[1]), "indptr": to_numpy(storage.pos[1]),
        "shape": np.array(t.shape, np.int32 if max(t.shape) < 2**31 else np.int64),
    }  # fmt: skip
    name = os.fspath(path)
    with create_hdf5(path, lambda old: _keeps_tenx(old, name, t.shape)) as root:
        group = root.require_group("matrix")
        for key, array in arrays.items():
            if key in group:
                del group[key]
            dataset(group, key, array, compress)
        if "barcodes" not in group:
            text_dataset(group, "barcodes", [str(k) for k in range(barcodes)])
        if "features" not in group:
            table = group.create_group("features")
            for key in ("id", "name", "feature_type", "genome"):
                numbered = key in ("id", "name")
                text_dataset(table, key, [str(k) if numbered else "" for k in range(features)])
        if progress is not None:
            progress(int(t.nse), int(t.nse))


def _keeps_tenx(file: Hdf5, name: str, shape: tuple[int, ...]) -> bool:
    """Whether a 10x file has other groups, or names of features and barcodes. Raises for a file of another kind."""
    members = file.members(file.root)
    if "binsparse" in file.root.attrs or "encoding-type" in file.root.attrs or "X" in members:
        refuse_loss(name, list(file.root) or ["an attribute"])
    matrix = members.get("matrix")
    if matrix is None:
        return bool(list(file.root))
    inside = file.members(matrix) if file.is_group(matrix) else {}
    if not {"barcodes", "features"} <= set(inside) or not file.is_group(inside["features"]):
        refuse_loss(name, ["matrix"])
    names = {"features": file.members(inside["features"]).get("id"), "barcodes": inside["barcodes"]}
    others = set(file.root) != {"matrix"} or set(inside["features"]) != {"id", "name", "feature_type", "genome"}
    others = others or not all(item is not None and has_numbers_as_names(item) for item in names.values())
    for (what, item), extent in zip(names.items(), shape, strict=True):
        if others and item is not None and item.shape != (extent,):
            raise ShapeError(
                f"write: {name}: the file names {item.shape[0]} {what}; got a matrix of shape {shape}\n  help: another"
                " path, or remove the file first"
            )
    return others


def matlab(file: Hdf5) -> dict[str, tuple[Any, str, bool]]:
    """The numeric arrays and sparse matrices of a MATLAB 7.3 file: (group, key, sparse) by dotted name."""
    result: dict[str, tuple[Any, str, bool]] = {}
    visited: set[Any] = set()

    def walk(group: Any, prefix: str, depth: int) -> None:
        for name, item in file.members(group).items():
            kind = item.attrs.get("MATLAB_class", b"")
            kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
            if name.startswith("#") or item.id in visited:
                continue
            visited.add(item.id)
            if not file.is_group(item):
                if kind in _CLASSES:
                    result[prefix + name] = (group, name, False)
            elif "MATLAB_sparse" in item.attrs:
                result[prefix + name] = (group, name, True)
            elif kind == "struct":
                if depth == _DEPTH:
                    file.fail(f"structures more than {_DEPTH} deep")
                walk(item, f"{prefix}{name}.", depth + 1)

    walk(file.root, "", 0)
    return result


_CLASSES = ("double", "single", "logical", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)))


def load_matlab(file: Hdf5, place: tuple[Any, str, bool]) -> Buffers | Coordinates:
    """One variable; HDF5 has MATLAB's dimensions in reverse."""
    group, key, sparse = place
    item = file.members(group)[key]
    logical = item.attrs.get("MATLAB_class") in (b"logical", "logical")
    if sparse:
        rows = np.asarray(item.attrs["MATLAB_sparse"])
        if rows.size != 1 or rows.dtype.kind not in "iu" or not 0 <= int(rows.reshape(-1)[0]) <= 2**62:
            file.fail(f"{item.name}: MATLAB_sparse, the number of rows, is {rows.tolist()}")
        return _read_columns(file, item, int(rows.reshape(-1)[0]), logical)
    array = file.array(group, key)
    if np.asarray(item.attrs.get("MATLAB_empty", 0)).any():
        shape = tuple(int(n) for n in array.reshape(-1)[:64])
        if array.dtype.kind not in "iu" or not shape or min(shape) < 0 or 0 not in shape:
            file.fail(f"{item.name} is marked as empty, with the shape {shape}")
        dense: Array = np.zeros(shape, np.bool_ if logical else np.float64)
    else:
        dense = (array != 0 if logical else array).T
    dense = np.asfortranarray(dense)
    return Coordinates(dense.shape, (), dense.ravel(order="K"), "general", dense)


def _read_columns(file: Hdf5, item: Any, rows: int, logical: bool) -> Buffers:
    if "ir" in item or "data" in item:
        pos = file.integers(item, "jc")
        return file.columns(item, ("jc", "ir", "data"), (rows, max(pos.size - 1, 0)), logical)
    pos = file.integers(item, "jc")
    if not pos.size or pos.any():
        file.fail(f"{item.name}: {pos.size} column pointers, and neither indices nor values")
    values: Array = np.zeros(0, np.bool_ if logical else np.float64)
    return compressed("j", (rows, pos.size - 1), pos, np.zeros(0, np.int64), values)

"""Sparse matrices in HDF5: MATLAB 7.3 and 10x Genomics, through h5py where it is installed.

Only what lies in the file itself is read: no links to other files, no virtual or external data, no filters but the
usual ones, each once; and no more bytes than `limits` allow for those that the data have in the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ..errors import FileFormatError, UnsupportedError
from . import limits
from .compressed import check_pointers, compressed
from .records import Array, Buffers, Coordinates, Options
from .unpack import opened

__all__ = ["Hdf5", "opened_hdf5", "read_tenx"]

_FILTERS = (1, 2, 3, 4, 32000)
"""deflate, shuffle, checksum, szip, lzf."""
_DEPTH = 32
_BROKEN = (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError, OverflowError, MemoryError)


@contextmanager
def opened_hdf5(path: str | os.PathLike[str], ratio: int | None) -> Iterator[Hdf5]:
    """The file at `path`. Raises UnsupportedError where h5py is missing, FileFormatError for what is not HDF5."""
    name = os.fspath(path)
    try:
        import h5py
    except ImportError:
        raise UnsupportedError(f"{name}: HDF5 files (MATLAB 7.3, 10x) need h5py\n  help: pip install h5py") from None
    opened(path).close()
    try:
        with h5py.File(name, "r") as file:
            yield Hdf5(h5py, name, file, ratio)
    except FileFormatError:
        raise
    except _BROKEN as error:
        raise FileFormatError(f"{name}: not a readable HDF5 file ({error})") from None


class Hdf5:
    """The groups and datasets of a file, each checked before it is loaded."""

    def __init__(self, h5py: Any, name: str, root: Any, ratio: int | None) -> None:
        self.root, self.name = root, name
        self._h5py, self._ratio = h5py, ratio
        self._held = self._loaded = 0

    def fail(self, message: str) -> NoReturn:
        raise FileFormatError(f"{self.name}: {message}")

    def members(self, group: Any) -> dict[str, Any]:
        """What hard links of a group lead to: soft and external ones could name anything."""
        names = [n for n in group if isinstance(group.get(n, getlink=True), self._h5py.HardLink)]
        return {n: group[n] for n in names}

    def is_group(self, item: Any) -> bool:
        return isinstance(item, self._h5py.Group)

    def array(self, group: Any, key: str) -> Array:
        """A dataset of numbers."""
        item = self.members(group).get(key)
        where = f"{group.name.rstrip('/')}/{key}"
        if not isinstance(item, self._h5py.Dataset):
            self.fail(f"{where} is missing, or no dataset")
        kind, layout = item.dtype, item.id.get_create_plist()
        if not self._is_number(kind):
            self.fail(f"{where} has values of {kind}; expected numbers")
        if item.shape is None:
            self.fail(f"{where} has no shape")
        if item.is_virtual or item.external:
            self.fail(f"{where} has its values in other files, which are not read")
        filters = [layout.get_filter(k)[0] for k in range(layout.get_nfilters())]
        if len(set(filters)) < len(filters) or not set(filters) <= set(_FILTERS):
            self.fail(f"{where} has the filters {filters}; known, each once: {_FILTERS}")
        chunk = int(np.prod(item.chunks, dtype=np.float64)) * kind.itemsize if item.chunks else 0
        self._held += int(item.id.get_storage_size())
        self._loaded += max(int(item.nbytes), chunk)
        limit = limits.allowed(self._held, self._ratio)
        if self._loaded > limit:
            limits.refuse(f"{self.name}: {where}", self._held, limit)
        array: Array = np.asarray(item[()])
        if array.dtype.names:
            first, second = (array[n] for n in array.dtype.names)
            return np.asarray(first + 1j * second)
        return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))

    def whole(self, group: Any, key: str) -> Array:
        """A dataset of integers in one dimension."""
        result = self.array(group, key)
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
        pos, crd = self.whole(group, keys[0]), self.whole(group, keys[1])
        data = self.array(group, keys[2])
        if data.ndim != 1:
            self.fail(f"{group.name}/{keys[2]} has shape {data.shape}; expected one dimension")
        if wrong := check_pointers(pos, crd, data.size, shape[1], shape[0], keys[:2]):
            self.fail(f"{group.name}: {wrong}")
        return compressed("j", shape, pos, crd, data != 0 if logical else data)


def read_tenx(path: str | os.PathLike[str], options: Options) -> Buffers:
    """The matrix of a 10x Genomics file: compressed columns (features x barcodes), in group `matrix` or a genome's."""
    with opened_hdf5(path, options.ratio) as file:
        members = file.members(file.root)
        groups = [n for n, item in members.items() if file.is_group(item) and "indptr" in item]
        name = options.variable or ("matrix" if "matrix" in groups else groups[0] if len(groups) == 1 else None)
        if name not in groups:
            file.fail(f"expected a group with data, indices, indptr, shape; got {groups}")
        shape = file.whole(members[name], "shape")
        if shape.size != 2 or int(shape.min()) < 0 or int(shape.max()) > 2**62:
            file.fail(f"/{name}/shape is {shape.tolist()[:9]}; expected two extents")
        return file.columns(members[name], ("indptr", "indices", "data"), (int(shape[0]), int(shape[1])))


def matlab(file: Hdf5) -> dict[str, tuple[Any, str, bool]]:
    """The numeric arrays and sparse matrices of a MATLAB 7.3 file: (group, key, sparse) by dotted name."""
    result: dict[str, tuple[Any, str, bool]] = {}
    seen: set[Any] = set()

    def walk(group: Any, prefix: str, depth: int) -> None:
        for name, item in file.members(group).items():
            kind = item.attrs.get("MATLAB_class", b"")
            kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
            if name.startswith("#") or item.id in seen:
                continue
            seen.add(item.id)
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
        return _columns(file, item, int(rows.reshape(-1)[0]), logical)
    found = file.array(group, key)
    if np.asarray(item.attrs.get("MATLAB_empty", 0)).any():
        shape = tuple(int(n) for n in found.reshape(-1)[:64])
        if found.dtype.kind not in "iu" or not shape or min(shape) < 0 or 0 not in shape:
            file.fail(f"{item.name} is marked as empty, with the shape {shape}")
        dense: Array = np.zeros(shape, np.bool_ if logical else np.float64)
    else:
        dense = (found != 0 if logical else found).T
    dense = np.asfortranarray(dense)
    return Coordinates(dense.shape, (), dense.ravel(order="K"), "general", dense)


def _columns(file: Hdf5, item: Any, rows: int, logical: bool) -> Buffers:
    if "ir" in item or "data" in item:
        pos = file.whole(item, "jc")
        return file.columns(item, ("jc", "ir", "data"), (rows, max(pos.size - 1, 0)), logical)
    pos = file.whole(item, "jc")
    if not pos.size or pos.any():
        file.fail(f"{item.name}: {pos.size} column pointers, and neither indices nor values")
    values: Array = np.zeros(0, np.bool_ if logical else np.float64)
    return compressed("j", (rows, pos.size - 1), pos, np.zeros(0, np.int64), values)

"""A path -> a Tensor over a file that is mapped into memory: a folder `.ow`, or an `.npz` whose arrays are not packed.

Nothing is loaded: the system reads the pages that an operation asks for, and drops them again when memory is short, so
that a tensor may be larger than memory. Its buffers are read-only.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable
from typing import IO, Any, NoReturn, cast

import numpy as np

from ...errors import FileFormatError, InvariantError, UnsupportedError
from ...runtime.check import check as check_invariants
from ...runtime.leading_slice import outer_block, slice_outer, slice_reads
from ...storage.file_pages import mapped_file
from ...tensor.tensor import Tensor
from ..shared.paths import path_of
from ..shared.records import Array, Buffers
from ..shared.tensors import to_tensor
from ..text.source import suffix
from . import npz, store
from .archive import Archive, archive_of
from .masked import read_masked

__all__ = ["open", "open_rows"]

_LOCAL = struct.Struct("<4s22xHH")
"""The local header of a member of a zip archive: its signature, and the lengths of the name and of the extra field."""
_PIECE = 1 << 20
_LEVELS = {
    "csr": ("i : dense", "j : compressed"),
    "csc": ("j : dense", "i : compressed"),
    "bsr": ("i // {0} : dense", "j // {1} : compressed", "i % {0} : dense", "j % {1} : dense"),
}
Path_ = str | os.PathLike[str]


def open(path: Path_, *, verify: bool = False, check: bool = True) -> Any:
    """Open a tensor that stays in its file.

    Parameters
    ----------
    path : a folder `.ow`, or an `.npz` file (ours or SciPy's) that was written without compression
    verify : compare every block with its checksum first; reads the whole file once
    check : False skips the checks of the index buffers that cost O(nse), for files that are to be trusted

    Returns
    -------
    Tensor over read-only arrays that are mapped into memory; a MaskedTensor where one was written. Operations walk
    them in ranges, and take memory for their results alone. In-place forms raise ReadOnlyError. The file must not be
    changed as long as the tensor is in use; to be replaced, as `ow.write` does, is no change.

    Guarantees: the same elements as `ow.read(path)`. Memory that opening takes does not depend on nse.
    Cost: O(nse) of the index buffers with `check`, which are read once; else O(1).
    Raises UnsupportedError for arrays that cannot be mapped, FileFormatError, with the name of the file and the block,
    for what is corrupt.

    See also: read, write, convert.

    Examples
    --------
    >>> ow.write("large.npz", ow.eye(3, format="csr"))
    >>> ow.open("large.npz") @ np.ones(3)
    array([1., 1., 1.])
    """
    for name, flag in (("verify", verify), ("check", check)):
        if flag is not True and flag is not False:
            raise TypeError(f"open: {name} must be True or False, got {flag!r}")
    path = path_of(path, "open")
    kind = suffix(path)
    if os.path.isdir(path) and (kind == ".ow" or store.is_store(path)):
        record = store.mapped(path, verify)
    elif kind == ".npz":
        with archive_of(path, None, _MappedArchive) as archive:
            record = _record(cast(_MappedArchive, archive), verify, check)
    else:
        os.stat(path)
        if kind == ".ow":
            name = os.fspath(path)
            raise FileFormatError(f"{name}: a store .ow is a folder, this is a file\n  help: ow.write makes one")
        raise UnsupportedError(
            f"open: {os.fspath(path)}: only .ow and .npz files can be mapped, got {kind!r}"
            "\n  help: ow.convert(path, 'name.ow')"
        )
    if record.masked:
        return read_masked(path, record, None)
    return _tensor(path, record, check)


def open_rows(path: Path_, first: int, last: int, verify: bool) -> Tensor:
    """Rows first to last - 1 of a mapped tensor that is stored row after row; their index buffers are checked.

    verify : compare the blocks of an `.ow` that hold the rows with their checksums before

    Raises FileFormatError with the name of the block, or the rows. Cost: O(blocks of the rows), in formats whose rows
    are no range of every buffer of the whole file.
    """
    store_of_path = store.MappedStore(path) if os.path.isdir(path) else None
    t = open(path, check=False) if store_of_path is None else _tensor(path, store_of_path.record(), False)
    block = outer_block(t.format)
    if block is None:  # a kernel reads all of it
        whole: Tensor = open(path, verify=verify)
        return whole[first:last]
    begin, end = first // block[1] * block[1], min(-(-last // block[1]) * block[1], t.shape[0])
    if verify and store_of_path is not None:
        for place in slice_reads(t._storage, begin, end):
            store_of_path.verify_range(*place)
    try:
        rows = Tensor._from_storage(slice_outer(t._storage, begin, end))
        check_invariants(rows._storage)
    except InvariantError as error:
        raise FileFormatError(
            f"{os.fspath(path)}: rows {first} to {last - 1}: {error}\n  help: restore the file from a copy"
        ) from None
    return rows if (begin, end) == (first, last) else rows[first - begin : last - begin]


def _tensor(path: Path_, record: Buffers, check: bool) -> Tensor:
    try:
        return to_tensor(path, record, None, False, check)
    except MemoryError:
        raise FileFormatError(
            f"{os.fspath(path)}: an index buffer breaks an invariant, and memory does not suffice to say where"
            "\n  help: restore the file from a copy; verify=True names the block where the file has checksums"
        ) from None


class _MappedArchive(Archive):
    """An archive whose arrays are views of the mapped file."""

    def __init__(self, name: str, archive: zipfile.ZipFile, ratio: int | None) -> None:
        super().__init__(name, archive, ratio)
        file = cast(IO[bytes], archive.fp)
        self._pages = mapped_file(file)

    def verify(self) -> None:
        """Read all members, so that each is compared with its checksum."""
        for key in self.names():
            with self._opened(key) as (_, file):
                while file.read(_PIECE):
                    pass

    def integers(self, key: str, ndim: int = 1) -> Array:
        dtype = self.header(key)[1]
        if key != "shape" and dtype.kind in "iu" and dtype not in (np.int32, np.int64):
            self._refuse(key, f"holds {dtype}; index buffers are int32 or int64")
        return super().integers(key, ndim)

    def _array(self, key: str, kinds: str, limit: int | None) -> Array:
        if limit is not None or key == "shape":
            return super()._array(key, kinds, limit or _PIECE)
        with self._opened(key) as (info, file):
            shape, fortran, dtype = self._header(info.filename, file)
            head = file.tell()
        if info.compress_type != zipfile.ZIP_STORED:
            self._refuse(key, "is compressed")
        if not dtype.isnative or not dtype.itemsize:
            self._refuse(key, f"holds {dtype.str}, of another byte order than this machine's")
        signature, name, extra = _LOCAL.unpack_from(self._pages, info.header_offset)
        at = info.header_offset + _LOCAL.size + name + extra + head
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if signature != b"PK\3\4" or info.file_size - head != count * dtype.itemsize:
            self.fail(f"{info.filename} declares {count * dtype.itemsize} bytes and has {info.file_size - head}")
        if at + count * dtype.itemsize > len(self._pages):
            self.fail(f"{info.filename} is truncated")
        if at % dtype.itemsize:
            self._refuse(key, f"begins at byte {at}, which is no multiple of {dtype.itemsize}")
        array = np.frombuffer(self._pages, dtype, count, at) if count else np.empty(0, dtype)
        for first in range(0, count if dtype.kind == "b" else 0, _PIECE):
            if (array[first : first + _PIECE].view(np.uint8) > 1).any():
                self.fail(f"{info.filename} holds truth values that are neither 0 nor 1")
        return array.reshape(shape, order="F" if fortran else "C")

    def _refuse(self, key: str, why: str) -> NoReturn:
        raise UnsupportedError(
            f"open: {self.name}: {key}.npy cannot be mapped, it {why}"
            "\n  help: ow.read(path) loads it; ow.convert(path, 'name.ow') or ow.write makes a file that can be"
        )


def _record(archive: _MappedArchive, verified: bool, checked: bool) -> Buffers:
    """The arrays of an archive as a record, without any work on each of their elements."""
    if verified:
        archive.verify()
    if "openwork" in archive:
        return npz.read_ours(archive)
    kind, shape = npz.format_text(archive), archive.shape("shape")
    if kind not in _LEVELS and kind != "coo":
        raise UnsupportedError(
            f"open: {archive.name}: SciPy's layout of {kind!r} cannot be mapped\n  help: ow.read(path), or"
            " ow.convert(path, 'name.ow')"
        )
    values = archive.array("data")
    blocks = tuple(int(n) for n in values.shape[1:])
    if len(shape) != 2 or len(blocks) != (2 if kind == "bsr" else 0):
        archive.fail(f"a {kind} matrix of shape {shape} does not fit data of shape {values.shape}")
    if kind == "coo":
        row, column = archive.integers("row"), archive.integers("col")
        pos, crd = {0: np.array([0, row.size], row.dtype)}, {0: row, 1: column}
    else:
        pos, crd = {1: archive.integers("indptr")}, {1: archive.integers("indices")}
    known = archive.text("openwork_format") if "openwork_format" in archive else None
    flat = values.reshape(-1)
    fill = flat.dtype.type(0)

    def record(text: str) -> Buffers:
        return Buffers(text, shape, pos, crd, flat, "general", fill)

    if known is not None:
        return record(npz.checked_format(archive, known, len(shape)))
    return _first_that_holds(archive.name, record, _texts(kind, blocks), checked)


def _texts(kind: str, blocks: tuple[int, ...]) -> list[str]:
    """The formats that SciPy's arrays may have: in order and distinct, or neither."""
    if kind == "coo":
        loose = "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"
        return ["(i, j) -> (i : compressed(nonunique), j : singleton)", loose]
    levels = ", ".join(_LEVELS[kind]).format(*blocks)
    loose = levels.replace("compressed", "compressed(nonunique, unordered)")
    return [f"(i, j) -> ({text})" for text in (levels, loose)]


def _first_that_holds(name: str, record: Callable[[str], Buffers], texts: list[str], checked: bool) -> Buffers:
    """The record in the first of the formats whose properties the arrays have; unchecked, the one without any."""
    if not checked:
        return record(texts[-1])
    for text in texts[:-1]:
        try:
            to_tensor(name, record(text), None, False)
        except (FileFormatError, MemoryError):
            continue
        return record(text)
    return record(texts[-1])

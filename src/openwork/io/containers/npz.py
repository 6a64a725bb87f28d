"""`.npz` files -> records and back: SciPy's layout of csr, csc, bsr, dia and coo, and openwork's of every format.

Ours: `openwork` (version), `format` (text), `shape`, `scalar`, `fill_value`, `values`, and `pos_l`, `crd_l` per level
that has them. Where SciPy has a layout for the format that is written, so that both read it; a key `openwork_format`
then keeps the properties of the levels. A masked tensor is its one Tensor in our layout, marked `openwork_masked`: no
other reader takes what is missing for 0. Nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any, cast

import numpy as np

from ...errors import FileFormatError, FormatError, UnsupportedError
from ...format import format as parse
from ...format.format import Format
from ...storage.buffers import SCALARS, numpy_dtype, to_numpy
from ..shared.compressed import check_pointers, compressed
from ..shared.records import Array, Buffers, Coordinates, Header, Options, Step
from ..shared.replace import replacing
from .archive import Archive, archive_of
from .besides import refuse_loss

__all__ = ["checked_format", "format_text", "header", "parts_of", "read", "read_ours", "write"]

VERSION = 1
_ROWS = "(i, j) -> (j - i : compressed, i : range)"
_COLUMNS = "(i, j) -> (j - i : compressed, j : range)"
_ARRAYS = re.compile(
    "openwork(_format|_masked)?|format|shape|scalar|fill_value|values|(pos|crd)_[0-9]+|row|col|coords|data|indices|indptr"
    "|offsets|_is_array"
)
"""The names of arrays of a tensor, in our layout and SciPy's."""
_ALIGNMENT = 64
_LOCAL_HEADER, _ZIP64_FIELD, _FIELD_HEADER = 30, 20, 4
"""Bytes of a member's local header without its name, of the field of its size in 64 bits, of any field's own header."""
_PADDING_FIELD = 0xD935
"""The number of the extra field that Android's tools pad with."""
_MAX_FORMAT_TEXT = 4096
"""Characters of the text of a format."""


def read(path: str | os.PathLike[str], options: Options = Options()) -> Buffers | Coordinates:  # noqa: B008
    """The arrays as a record, and no array but those that belong to it.

    Raises FileFormatError, with the member's name, for what is missing, is not what it says, or does not fit.
    """
    with archive_of(path, options.ratio, progress=options.progress) as archive:
        if "openwork" in archive:
            return read_ours(archive)
        return _read_scipy(archive, format_text(archive))


def header(path: str | os.PathLike[str]) -> Header:
    """Shape, dtype and number of elements, from the headers of the arrays."""
    with archive_of(path, None) as archive:
        values = "values" if "openwork" in archive else "data"
        for key in ("format", "shape", values):
            if key not in archive:
                archive.fail(
                    f"no sparse tensor, there is no array '{key}'; there are {', '.join(archive.names()[:40])}"
                )
        kind, shape = format_text(archive), archive.shape("shape")
        stored, dtype = archive.header(values)
        field = archive.text("scalar") if "scalar" in archive else str(dtype)
    return Header(f"npz, {kind}", shape, field, entries=int(np.prod(stored, dtype=np.float64)))


def format_text(archive: Archive) -> str:
    text = archive.text("format")
    if len(text) > _MAX_FORMAT_TEXT:
        archive.fail(f"format.npy has {len(text)} characters; expected {_MAX_FORMAT_TEXT} at most")
    return text


def write(
    path: str | os.PathLike[str], parts: Mapping[str, Array], compress: bool, progress: Step | None = None
) -> None:
    """Save arrays as `numpy.savez` does, with the given path and no other; equal arrays give equal files.

    progress : called with (done, total) elements of the arrays, after each block of 16 MiB
    """
    _refuse_others(os.fspath(path))
    total, done = sum(a.size for a in parts.values()), 0
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with replacing(path) as file, zipfile.ZipFile(file, "w", method) as archive:
        for key, array in parts.items():
            info = zipfile.ZipInfo(f"{key}.npy")
            info.compress_type = method
            if not compress:
                info.extra = _padding(archive, info.filename)
            with archive.open(info, "w", force_zip64=True) as member:
                out = (
                    member
                    if progress is None
                    else _Counted(member, progress, array.itemsize, done, done + array.size, total)
                )
                np.lib.format.write_array(out, array, allow_pickle=False)
            done += array.size


def _refuse_others(path: str) -> None:
    """Raise UnsupportedError where an archive that is there has arrays besides those of a tensor."""
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):
        return
    with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        lost = [name for name in names if "format" not in names or not _ARRAYS.fullmatch(name)]
        if lost:
            refuse_loss(path, lost)


class _Counted:
    """A member to write an array to, which tells how many elements of all arrays are written."""

    def __init__(self, member: IO[bytes], progress: Step, itemsize: int, done: int, end: int, total: int) -> None:
        self._member, self._progress, self._itemsize = member, progress, itemsize
        self._done, self._end, self._total = done, end, total

    def write(self, data: bytes) -> int:
        size = self._member.write(data)
        self._done = min(self._done + len(data) // self._itemsize, self._end)  # the header's bytes count as some
        self._progress(self._done, self._total)
        return size


def _padding(archive: zipfile.ZipFile, name: str) -> bytes:
    """An extra field after which the member's data begin at a multiple of 64 bytes, so that they can be mapped."""
    begin = cast(IO[bytes], archive.fp).tell() + _LOCAL_HEADER + len(name) + _ZIP64_FIELD + _FIELD_HEADER
    size = -begin % _ALIGNMENT
    return struct.pack("<HH", _PADDING_FIELD, size) + bytes(size)


def parts_of(storage: Any, always_ours: bool = False) -> dict[str, Array]:
    """A storage -> its arrays by name: in SciPy's layout where that has the format and not `always_ours`, else ours."""

    format, shape = storage.format, np.array(storage.shape, np.int64)
    values = to_numpy(storage.values)
    pos = {f"pos_{k}": to_numpy(b) for k, b in enumerate(storage.pos) if b is not None}
    crd = {f"crd_{k}": to_numpy(b) for k, b in enumerate(storage.crd) if b is not None}
    kind = None if always_ours else _scipy_kind(storage)
    if kind is None:
        raw = values.view(np.uint16) if storage.scalar == "bf16" else values
        fill = np.asarray(storage.fill_value)
        common_ours = {
            "openwork": np.array(VERSION),
            "format": np.array(str(format)),
            "scalar": np.array(storage.scalar),
        }
        return {**common_ours, "shape": shape, "fill_value": fill, "values": raw, **pos, **crd}
    common = {"format": np.array(kind.encode()), "shape": shape, "_is_array": np.array(True)}
    common["openwork_format"] = np.array(str(format))
    if kind == "coo":
        return {**common, "row": crd["crd_0"], "col": crd["crd_1"], "data": values}
    if kind == "dia":
        return {**common, "offsets": crd["crd_0"], "data": _diagonals(storage, crd["crd_0"], values)}
    data = values.reshape(-1, *format.blocksize) if kind == "bsr" else values
    return {**common, "indptr": pos["pos_1"], "indices": crd["crd_1"], "data": data}


def _scipy_kind(storage: Any) -> str | None:
    format = storage.format
    if format.ndim != 2 or storage.scalar in ("f16", "bf16") or storage.fill_value != 0 or format.batch_ndim:
        return None
    levels_text = str(format).replace("nonunique, unordered", "").replace("nonunique", "").replace("unordered", "")
    levels_text = levels_text.replace("()", "")
    if levels_text in (_ROWS, _COLUMNS):
        return "dia" if all(storage.shape) else None
    if levels_text == "(i, j) -> (i : compressed, j : singleton)":
        return "coo"
    if levels_text == "(i, j) -> (i : dense, j : compressed)":
        return "csr"
    if levels_text == "(i, j) -> (j : dense, i : compressed)":
        return "csc"
    blocks = format.blocksize
    if blocks is None or len(blocks) != 2 or any(n % b for n, b in zip(storage.shape, blocks, strict=True)):
        return None
    a, b = blocks
    return (
        "bsr"
        if levels_text == f"(i, j) -> (i // {a} : dense, j // {b} : compressed, i % {a} : dense, j % {b} : dense)"
        else None
    )


def _diagonals(storage: Any, offsets: Array, values: Array) -> Array:
    """SciPy's array of diagonals: row k has diagonal k, by columns. Elements outside of the matrix are 0."""
    rows, columns = storage.shape
    if storage.format.level_intervals(storage.shape)[1][1] == columns and "j : range" in str(storage.format):
        return values.reshape(-1, columns)
    return _shift_rows(values.reshape(-1, rows), offsets, columns)


def _shift_rows(data: Array, offsets: Array, width: int) -> Array:
    """Each row k of `data` moved by `offsets[k]` places to the right, into rows of `width`."""
    out = np.zeros((data.shape[0], width), data.dtype)
    for row, source, k in zip(out, data, offsets.tolist(), strict=True):
        first, last = max(k, 0), min(width, source.size + k)
        if first < last:
            row[first:last] = source[first - k : last - k]
    return out


def read_ours(archive: Archive) -> Buffers:
    """Openwork's layout: the arrays that the levels of the format have."""
    version = archive.number("openwork")
    if type(version) is not int or version < 1:
        archive.fail(f"openwork.npy, the version of the layout, is {version!r}")
    if version > VERSION:
        raise UnsupportedError(f"{archive.name}: layout {version}, this version reads up to {VERSION}")
    masked = archive.text("openwork_masked") if "openwork_masked" in archive else ""
    if masked not in ("", "tensor", "number"):
        archive.fail(f"openwork_masked is {masked!r}; expected 'tensor' or 'number'")
    text = format_text(archive)
    shape = archive.shape("shape") if "shape" in archive and archive.header("shape")[0] != (0,) else ()
    format = _parse_format(archive, text, len(shape))
    expected_keys = {f"{kind}_{k}" for k, level in enumerate(format.levels) for kind in level.format.buffers}
    unexpected = [k for k in archive.names() if k.startswith(("pos_", "crd_")) and k not in expected_keys]
    if unexpected:
        archive.fail(f"{unexpected[0]}.npy is an array that no level of {format} has")
    pos = {k: archive.integers(f"pos_{k}") for k in range(format.nlevels) if f"pos_{k}" in expected_keys}
    crd = {k: _coordinates(archive, format, k) for k in range(format.nlevels) if f"crd_{k}" in expected_keys}
    values = _values(archive)
    return Buffers(text, shape, pos, crd, values, "general", _fill(archive, values), masked)


def checked_format(archive: Archive, text: str, ndim: int) -> str:
    """A format's text. Raises FileFormatError where it is none of `ndim` dimensions."""
    _parse_format(archive, text[:_MAX_FORMAT_TEXT], ndim)
    return text[:_MAX_FORMAT_TEXT]


def _parse_format(archive: Archive, text: str, ndim: int) -> Format:
    try:
        return parse(text, ndim)
    except (FormatError, RecursionError) as error:
        raise FileFormatError(f"{archive.name}: {error or 'the format is nested too deeply'}") from None


def _coordinates(archive: Archive, format: Format, level: int) -> Array:
    if not format.levels[level].format.is_bitmap:
        return archive.integers(f"crd_{level}")
    bits = archive.array(f"crd_{level}")
    if bits.dtype != np.bool_ or bits.ndim != 1:
        archive.fail(f"crd_{level}.npy has shape {bits.shape} and dtype {bits.dtype}; expected the bits of a level")
    return bits


def _values(archive: Archive) -> Array:

    scalar, values = archive.text("scalar"), archive.array("values")
    if scalar not in SCALARS:
        archive.fail(f"scalar.npy names {scalar!r}; known: {', '.join(SCALARS)}")
    stored = np.dtype(np.uint16) if scalar == "bf16" else numpy_dtype(scalar)
    if values.dtype != stored or values.ndim != 1:
        archive.fail(
            f"values.npy has shape {values.shape} and dtype {values.dtype}; expected one dimension of {stored}"
        )
    return values.view(numpy_dtype("bf16")) if scalar == "bf16" else values


def _fill(archive: Archive, values: Array) -> Any:
    fill = archive.number("fill_value")
    try:
        with np.errstate(all="ignore"):
            typed = values.dtype.type(fill)
    except (TypeError, ValueError, OverflowError):
        archive.fail(f"fill_value.npy holds {fill!r}, which is not of {values.dtype}")
    if not (typed == fill or (fill != fill and typed != typed)):
        archive.fail(f"fill_value.npy holds {fill!r}, which is not of {values.dtype}")
    return fill


def _read_scipy(archive: Archive, kind: str) -> Buffers | Coordinates:
    """SciPy's layout of a kind; `openwork_format` has the properties of the levels, where we wrote it."""
    shape = archive.shape("shape")
    if kind == "coo":
        record: Buffers | Coordinates = _coo(archive, shape)
    elif len(shape) != 2 and kind in ("csr", "csc", "bsr", "dia"):
        archive.fail(f"a {kind} matrix has two dimensions, got shape {shape}")
    elif kind == "dia":
        record = _dia(archive, (shape[0], shape[1]))
    elif kind in ("csr", "csc", "bsr"):
        record = _compressed(archive, kind, (shape[0], shape[1]))
    else:
        archive.fail(f"unknown format {kind!r}; read are csr, csc, bsr, dia, coo and openwork's own")
    if isinstance(record, Coordinates) and "openwork_format" in archive:
        pos = np.array([0, record.values.size], record.indices[0].dtype)
        record = Buffers("coo", shape, {0: pos}, dict(enumerate(record.indices)), record.values)
    if isinstance(record, Buffers) and "openwork_format" in archive:
        text = checked_format(archive, archive.text("openwork_format"), len(shape))
        return replace(record, format=text, symmetry="general")
    return record


def _coo(archive: Archive, shape: tuple[int, ...]) -> Coordinates:
    data = archive.array("data")
    stacked = "coords" in archive
    columns = tuple(archive.integers("coords", 2)) if stacked else (archive.integers("row"), archive.integers("col"))
    if len(columns) != len(shape):
        archive.fail(f"coordinates in {len(columns)} dimensions do not fit shape {shape}")
    if data.ndim != 1 or any(c.shape != data.shape for c in columns):
        archive.fail(f"{columns[0].size} coordinates do not fit data of shape {data.shape}")
    for c, n in zip(columns, shape, strict=True):
        if c.size and not 0 <= int(c.min()) <= int(c.max()) < n:
            archive.fail(f"the coordinates do not fit shape {shape}")
    if len({c.dtype for c in columns}) > 1:
        columns = tuple(c.astype(np.int64) for c in columns)
    return Coordinates(shape, columns, data)


def _compressed(archive: Archive, kind: str, shape: tuple[int, int]) -> Buffers:
    pos, crd, data = archive.integers("indptr"), archive.integers("indices"), archive.array("data")
    if data.ndim != (3 if kind == "bsr" else 1):
        archive.fail(
            f"data.npy has shape {data.shape}; a {kind} matrix has {3 if kind == 'bsr' else 1} dimensions there"
        )
    blocks = (int(data.shape[1]), int(data.shape[2])) if kind == "bsr" else (1, 1)
    if min(blocks) < 1 or any(n % b for n, b in zip(shape, blocks, strict=True)):
        archive.fail(f"blocks of shape {blocks} do not divide a matrix of shape {shape}")
    rows = shape[1] if kind == "csc" else shape[0] // blocks[0]
    extent = shape[0] if kind == "csc" else shape[1] // blocks[1]
    if fault := check_pointers(pos, crd, len(data), rows, extent, ("indptr", "indices")):
        archive.fail(fault)
    return compressed("j" if kind == "csc" else "i", shape, pos, crd, data, blocks=blocks)


def _dia(archive: Archive, shape: tuple[int, int]) -> Buffers | Coordinates:
    """SciPy's diagonals as "dia", by rows; by columns where we wrote that; coordinates where most is outside."""
    offsets, data = archive.integers("offsets"), archive.array("data")
    if data.ndim != 2 or data.shape[0] != offsets.size or np.unique(offsets).size != offsets.size:
        archive.fail(f"offsets.npy has {offsets.size} offsets, which do not fit data of shape {data.shape}")
    in_matrix = np.flatnonzero((offsets > -shape[0]) & (offsets < shape[1]))
    order = in_matrix[np.argsort(offsets[in_matrix], kind="stable")]
    offsets, data = offsets[order], data[order]
    columns = "openwork_format" in archive and "j : range" in archive.text("openwork_format")
    if order.size * max(shape) > 4 * data.size + 4096:
        return _diagonal_elements(shape, offsets, data)
    width = min(shape[1], data.shape[1])
    if columns:
        data = _shift_rows(data[:, :width], np.zeros_like(offsets), shape[1])
    else:
        data = _shift_rows(data[:, :width], -offsets, shape[0])
    values = np.ascontiguousarray(data).reshape(-1)
    pos = np.array([0, offsets.size], offsets.dtype)
    return Buffers(_COLUMNS if columns else _ROWS, shape, {0: pos}, {0: offsets}, values)


def _diagonal_elements(shape: tuple[int, int], offsets: Array, data: Array) -> Coordinates:
    """The elements of diagonals that are much shorter than the matrix is long, which need no room for the rest."""
    column = np.broadcast_to(np.arange(data.shape[1], dtype=np.int64), data.shape)
    row = column - offsets[:, None].astype(np.int64)
    in_matrix = (row >= 0) & (row < shape[0]) & (column < shape[1])
    return Coordinates(shape, (row[in_matrix], column[in_matrix]), data[in_matrix])

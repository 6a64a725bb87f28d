"""`.npz`: SciPy's layout of csr, csc, bsr, dia and coo, and our own of every format.

Ours: `openwork` (version), `format` (text), `shape`, `scalar`, `fill_value`, `values`, and `pos_l`, `crd_l` per level
that has them. Where SciPy has a layout for the format that is written, so that both read it; a key `openwork_format`
then keeps the properties of the levels. A masked tensor is its one Tensor in our layout, marked `openwork_masked`: no
other reader takes what is missing for 0. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any

import numpy as np

from ..errors import FileFormatError, UnsupportedError
from .compressed import compressed
from .records import Array, Buffers, Coordinates, Header, Progress
from .replace import replacing

__all__ = ["header", "read", "write"]

VERSION = 1
_RATIO = 1100
"""Deflate cannot pack tighter than 1032 to 1."""
_DIA = "(i, j) -> (j - i : compressed, j : range)"


def read(path: str | os.PathLike[str]) -> Buffers | Coordinates:
    """The arrays as a record; raises FileFormatError for what is not there, too short, or an object array."""
    name = os.fspath(path)
    with _archive(name) as archive:
        members = {n.removesuffix(".npy"): n for n in archive.namelist()}
        parts = {key: _array(name, archive, member) for key, member in members.items()}
    masked = str(parts["openwork_masked"].item()) if "openwork_masked" in parts else ""
    if masked not in ("", "tensor", "number"):
        raise FileFormatError(f"{name}: openwork_masked is {masked!r}; expected 'tensor' or 'number'")
    try:
        if "openwork" in parts:
            return replace(_own(name, parts), masked=masked)
        kind = parts["format"].item()
        kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
        record = _scipy(name, kind, parts)
    except KeyError as error:
        raise FileFormatError(f"{name}: the array {error} is missing; there are {', '.join(sorted(members))}") from None
    if isinstance(record, Buffers) and "openwork_format" in parts:
        text = str(parts["openwork_format"].item())
        return replace(record, format=text, symmetry="general")
    return record


def header(path: str | os.PathLike[str]) -> Header:
    """Shape, dtype and number of elements, from the headers of the arrays."""
    name = os.fspath(path)
    with _archive(name) as archive:
        members = {n.removesuffix(".npy"): n for n in archive.namelist()}
        small = {k: _array(name, archive, members[k]) for k in ("format", "shape", "scalar") if k in members}
        values = members.get("values", members.get("data"))
        if values is None or "shape" not in small or "format" not in small:
            raise FileFormatError(f"{name}: no sparse tensor: it holds {', '.join(sorted(members))}")
        with archive.open(values) as file:
            shape, _, dtype = _npy_header(name, values, file)
    kind = small["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    field = str(small["scalar"].item()) if "scalar" in small else str(dtype)
    count = int(np.prod(shape, dtype=np.float64))
    return Header(f"npz, {kind}", tuple(int(n) for n in small["shape"]), field, entries=count)


def write(
    path: str | os.PathLike[str], parts: Mapping[str, Array], compress: bool, progress: Progress | None = None
) -> None:
    """Save arrays as `numpy.savez` does, with the given path and no other; equal arrays give equal files."""
    total, done = sum(a.size for a in parts.values()), 0
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with replacing(path) as file, zipfile.ZipFile(file, "w", method) as archive:
        for key, array in parts.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
            done += array.size
            if progress is not None:
                progress(done, total)


def parts_of(storage: Any, ours: bool = False) -> dict[str, Array]:
    """The arrays that stand for a storage: SciPy's where its layout has the format, ours otherwise and with `ours`."""
    from ..storage.buffers import to_numpy

    format, shape = storage.format, np.array(storage.shape, np.int64)
    values = to_numpy(storage.values)
    pos = {f"pos_{k}": to_numpy(b) for k, b in enumerate(storage.pos) if b is not None}
    crd = {f"crd_{k}": to_numpy(b) for k, b in enumerate(storage.crd) if b is not None}
    kind = None if ours else _scipy_kind(storage)
    if kind is None:
        raw = values.view(np.uint16) if storage.scalar == "bf16" else values
        fill = np.asarray(storage.fill_value)
        own = {"openwork": np.array(VERSION), "format": np.array(str(format)), "scalar": np.array(storage.scalar)}
        return {**own, "shape": shape, "fill_value": fill, "values": raw, **pos, **crd}
    common = {"format": np.array(kind.encode()), "shape": shape, "_is_array": np.array(True)}
    common["openwork_format"] = np.array(str(format))
    if kind == "coo":
        return {**common, "row": crd["crd_0"], "col": crd["crd_1"], "data": values}
    if kind == "dia":
        return {**common, "offsets": crd["crd_0"], "data": values.reshape(-1, storage.shape[1])}
    data = values.reshape(-1, *format.blocksize) if kind == "bsr" else values
    return {**common, "indptr": pos["pos_1"], "indices": crd["crd_1"], "data": data}


def _scipy_kind(storage: Any) -> str | None:
    format = storage.format
    if format.ndim != 2 or storage.scalar in ("f16", "bf16") or storage.fill_value != 0 or format.batch_ndim:
        return None
    plain = str(format).replace("nonunique, unordered", "").replace("nonunique", "").replace("unordered", "")
    plain = plain.replace("()", "")
    if plain == _DIA:
        return "dia" if storage.shape[1] else None
    if plain == "(i, j) -> (i : compressed, j : singleton)":
        return "coo"
    if plain == "(i, j) -> (i : dense, j : compressed)":
        return "csr"
    if plain == "(i, j) -> (j : dense, i : compressed)":
        return "csc"
    blocks = format.blocksize
    if blocks is None or len(blocks) != 2 or any(n % b for n, b in zip(storage.shape, blocks, strict=True)):
        return None
    a, b = blocks
    return (
        "bsr"
        if plain == f"(i, j) -> (i // {a} : dense, j // {b} : compressed, i % {a} : dense, j % {b} : dense)"
        else None
    )


def _archive(name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(name)
    except (zipfile.BadZipFile, EOFError) as error:
        raise FileFormatError(f"{name}: not a readable .npz ({error})") from None


def _npy_header(name: str, member: str, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        return read[np.lib.format.read_magic(file)](file)  # type: ignore[no-any-return,unused-ignore]
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{name}: {member} is not an array of format 1.0 or 2.0 ({error})") from None


def _array(name: str, archive: zipfile.ZipFile, member: str) -> Array:
    """One array; its declared size is checked against the archive's before anything is allocated."""
    info = archive.getinfo(member)
    if info.file_size > _RATIO * info.compress_size + 4096:
        raise FileFormatError(f"{name}: {member} claims {info.file_size} bytes in {info.compress_size} compressed ones")
    try:
        with archive.open(member) as file:
            shape, fortran, dtype = _npy_header(name, member, file)
            if dtype.hasobject:
                raise FileFormatError(f"{name}: {member} holds Python objects, which are never loaded")
            count = 1
            for n in shape:
                count *= n
            wanted = count * dtype.itemsize
            if wanted > info.file_size:
                raise FileFormatError(f"{name}: {member} declares {wanted} bytes and has at most {info.file_size}")
            raw = file.read(wanted)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
        raise FileFormatError(f"{name}: {member} is truncated or corrupt ({error})") from None
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise FileFormatError(f"{name}: {member} is corrupt ({error})") from None
        raise
    if len(raw) < wanted:
        raise FileFormatError(f"{name}: {member} ends after {len(raw)} of {wanted} bytes")
    flat = np.frombuffer(bytearray(raw), dtype) if dtype.itemsize else np.zeros(count, dtype)
    array = flat.reshape(shape, order="F" if fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _own(name: str, parts: Mapping[str, Array]) -> Buffers:
    from ..storage.buffers import numpy_dtype

    if int(parts["openwork"]) > VERSION:
        raise UnsupportedError(f"{name}: layout {int(parts['openwork'])}, this version reads up to {VERSION}")
    levels = {side: {int(k[4:]): v for k, v in parts.items() if k.startswith(side + "_")} for side in ("pos", "crd")}
    scalar, values = str(parts["scalar"].item()), parts["values"]
    if scalar == "bf16":
        values = values.view(numpy_dtype("bf16"))
    shape = tuple(int(n) for n in parts["shape"])
    text = str(parts["format"].item())
    return Buffers(text, shape, levels["pos"], levels["crd"], values.reshape(-1), "general", parts["fill_value"].item())


def _scipy(name: str, kind: str, parts: Mapping[str, Array]) -> Buffers | Coordinates:
    shape = tuple(int(n) for n in parts["shape"])
    data = parts["data"]
    if kind == "coo":
        coords = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
        columns = tuple(c if c.dtype in (np.int32, np.int64) else c.astype(np.int64) for c in coords)
        bad = [
            d for d, (c, n) in enumerate(zip(columns, shape, strict=True)) if c.size and not 0 <= c.min() <= c.max() < n
        ]
        if bad or any(c.shape != data.shape for c in columns):
            raise FileFormatError(f"{name}: the coordinates do not fit shape {shape}")
        return Coordinates(shape, columns, data)
    if len(shape) != 2:
        raise FileFormatError(f"{name}: a {kind} matrix has two dimensions, got shape {shape}")
    if kind == "dia":
        return _dia(name, (shape[0], shape[1]), parts["offsets"], data)
    if kind not in ("csr", "csc", "bsr"):
        raise FileFormatError(f"{name}: unknown format {kind!r}; read are csr, csc, bsr, dia, coo and openwork's own")
    blocks = (int(data.shape[1]), int(data.shape[2])) if kind == "bsr" and data.ndim == 3 else (1, 1)
    pos, crd = parts["indptr"], parts["indices"]
    rows = shape[1] if kind == "csc" else -(-shape[0] // max(blocks[0], 1))
    extent = shape[0] if kind == "csc" else -(-shape[1] // max(blocks[1], 1))
    _check(name, pos, crd, len(data), rows, extent)
    return compressed("j" if kind == "csc" else "i", (shape[0], shape[1]), pos, crd, data, blocks=blocks)


def _check(name: str, pos: Array, crd: Array, stored: int, rows: int, extent: int) -> None:
    if pos.shape != (rows + 1,) or pos[0] != 0 or pos[-1] != crd.size or crd.size != stored or (np.diff(pos) < 0).any():
        raise FileFormatError(f"{name}: indptr of length {pos.size} does not fit {rows} rows and {stored} elements")
    if crd.size and not 0 <= int(crd.min()) <= int(crd.max()) < extent:
        raise FileFormatError(f"{name}: an index is outside 0..{extent - 1}")


def _dia(name: str, shape: tuple[int, int], offsets: Array, data: Array) -> Buffers:
    if offsets.ndim != 1 or data.ndim != 2 or data.shape[0] != offsets.size or np.unique(offsets).size != offsets.size:
        raise FileFormatError(f"{name}: {offsets.size} offsets do not fit data of shape {data.shape}")
    inside = (offsets > -shape[0]) & (offsets < shape[1])
    order = np.argsort(offsets, kind="stable")
    order = order[inside[order]]
    n = shape[1]
    if order.size != offsets.size or data.shape[1] != n or (order[1:] < order[:-1]).any():
        taken = np.zeros((order.size, n), data.dtype)
        width = min(n, data.shape[1])
        taken[:, :width] = data[order, :width]
        data = taken
    crd = np.ascontiguousarray(offsets[order])
    crd = crd if crd.dtype in (np.int32, np.int64) else crd.astype(np.int64)
    pos = np.array([0, crd.size], crd.dtype)
    values = np.ascontiguousarray(data).reshape(-1)
    return Buffers(_DIA, shape, {0: pos}, {0: crd}, values, "general", values.dtype.type(0))

"""PETSc's binary matrices (`.petsc`): big-endian rows of one matrix in, compressed rows out, and back.

Read are matrices of 32 and 64 bit indices, real and complex, which the length of the file tells apart; written are
32 bit indices where they suffice. Source: PETSc manual, MatLoad and MatView to a binary viewer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from ...errors import FileFormatError, UnsupportedError
from ...storage.buffers import to_numpy
from ..shared.compressed import check_pointers, compressed
from ..shared.records import Array, Buffers, Options, Step
from ..shared.replace import replacing
from ..shared.tensors import check_matrix
from ..shared.unpack import load

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["looks_like", "read", "write"]

_MATRIX = 1211216
_ROWS = 1 << 18


def looks_like(start: bytes) -> bool:
    """Whether a file begins as a matrix of PETSc."""
    return start.startswith((_MATRIX.to_bytes(4, "big"), _MATRIX.to_bytes(8, "big")))


def read(path: str | os.PathLike[str], options: Options) -> Buffers:
    """The first matrix of the file. Raises FileFormatError where the length does not fit what the head says."""
    name = os.fspath(path)
    data = load(path, options.ratio)[:-1]
    start = data[:8].tobytes()
    if not looks_like(start):
        raise FileFormatError(f"{name}: begins with {start.hex()}; a matrix of PETSc begins with 00127b50")
    width = 4 if start[:4] != bytes(4) else 8
    head = data[width : 4 * width].view(f">i{width}") if data.size >= 4 * width else ()
    if len(head) != 3:
        raise FileFormatError(f"{name}: ends inside its head, after {data.size} bytes")
    rows, columns, stored = (int(x) for x in head)
    if min(rows, columns) < 0 or stored < 0:
        what = "a dense matrix, which is not read" if stored == -1 else f"{rows} x {columns} with {stored} elements"
        raise FileFormatError(f"{name}: {what}\n  expected: compressed rows")
    at = 4 * width
    values_size = data.size - at - width * (rows + stored)
    if values_size not in (8 * stored, 16 * stored):
        raise FileFormatError(
            f"{name}: {data.size} bytes; {rows} rows and {stored} elements need {at + width * (rows + stored)} and"
            f" {8 * stored} or {16 * stored} for the values"
        )
    kind = np.dtype(">f8" if values_size == 8 * stored else ">c16")
    counts = _native(data[at : at + width * rows].view(f">i{width}"))
    at += width * rows
    crd = _native(data[at : at + width * stored].view(f">i{width}"))
    values = _native(data[at + width * stored :].view(kind))
    if counts.size and int(counts.min()) < 0:
        raise FileFormatError(f"{name}: row {int(counts.argmin())} has {int(counts.min())} elements")
    pos = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=pos[1:])
    if fault := check_pointers(pos, crd, stored, rows, columns, ("the elements by row", "columns")):
        raise FileFormatError(f"{name}: {fault}")
    return compressed("i", (rows, columns), pos.astype(crd.dtype), crd, values)


def write(path: str | os.PathLike[str], t: Tensor, progress: Step | None) -> None:
    """The matrix in compressed rows; values as float64, or complex128 where they are complex.

    Raises ShapeError, UnsupportedError for what is no matrix of fill value 0.
    """
    name = os.fspath(path)
    check_matrix(path, t, "PETSc's files")
    storage = t.asformat("csr")._storage
    values, crd, pos = to_numpy(storage.values), to_numpy(storage.crd[1]), to_numpy(storage.pos[1])
    kind = np.dtype(">c16" if values.dtype.kind == "c" else ">f8")
    converted = values.astype(kind.newbyteorder("="))
    if values.dtype.kind in "iu" and not np.array_equal(converted.astype(values.dtype), values):
        raise UnsupportedError(f"write: {name}: integers beyond 2**53, which float64 has not\n  help: write .npz")
    width = 4 if max(*t.shape, crd.size) < 2**31 else 8
    head = np.array([_MATRIX, *t.shape, crd.size], f">i{width}")
    with replacing(path) as file:
        file.write(head.tobytes())
        for array, dtype in ((np.diff(pos), f">i{width}"), (crd, f">i{width}"), (converted, kind)):
            for first in range(0, array.size, _ROWS):
                file.write(array[first : first + _ROWS].astype(dtype).tobytes())
    if progress is not None:
        progress(crd.size, crd.size)


def _native(x: Array) -> Array:
    return np.ascontiguousarray(x.astype(x.dtype.newbyteorder("="), copy=False))

"""Parquet tables of triplets (`.parquet`): a column per dimension and one of values, through pyarrow.

Columns `i0`, `i1`, ... and `value` with the shape in the table's metadata are written. Read is any table of integer
columns and one last column of numbers, whose shape is what the coordinates need where no metadata says it.
Pages have checksums, and so has the shape; what has none, of other writers, is read without.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FileFormatError, UnsupportedError
from ..shared import limits
from ..shared.records import Array, Coordinates, Options, Step
from ..shared.replace import replacing
from ..shared.tensors import coordinates_of
from ..shared.unpack import open_regular

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["read", "write"]

_SHAPE, _CHECKSUM = b"openwork_shape", b"openwork_shape_crc32"
_READ_ERRORS = (OSError, ValueError, KeyError, TypeError, NotImplementedError, RecursionError)
_KINDS = "biuf"


def _pyarrow(path: str | os.PathLike[str]) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise UnsupportedError(f"{os.fspath(path)}: Parquet needs pyarrow\n  help: pip install pyarrow") from None
    return pyarrow


def read(path: str | os.PathLike[str], options: Options) -> Coordinates:
    """The triplets in the order of the table, duplicates kept.

    Raises FileFormatError for what is no Parquet, has no columns of integers or missing entries.
    """
    name, pyarrow = os.fspath(path), _pyarrow(path)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
            groups = [table.metadata.row_group(k) for k in range(table.metadata.num_row_groups)]
            unpacked_size = (
                sum(g.total_byte_size for g in groups) + 8 * table.metadata.num_rows * table.metadata.num_columns
            )
            if unpacked_size > (limit := limits.allowed(size, options.ratio)):
                limits.refuse_size(name, size, limit)
            metadata = table.schema_arrow.metadata or {}
            declared = metadata.get(_SHAPE)
            if declared is not None and metadata.get(_CHECKSUM, checksum := _checksum(declared)) != checksum:
                raise FileFormatError(f"{name}: the shape {declared[:80]!r} is not that of its checksum: it is corrupt")
            names = table.schema_arrow.names
            if len(set(names)) < len(names):
                raise FileFormatError(f"{name}: columns {', '.join(names)}; expected names that are there once")
            columns = {n: _column(name, n, c) for n, c in zip(names, table.read().columns, strict=True)}
        except (FileFormatError, MemoryError):
            raise
        except (*_READ_ERRORS, pyarrow.ArrowException) as error:
            raise FileFormatError(f"{name}: not a readable Parquet file ({error})") from None
    if len(columns) < 2:
        raise FileFormatError(f"{name}: columns {', '.join(columns)}; expected indices, then values")
    key = "value" if "value" in columns else list(columns)[-1]
    indices = [columns[k] for k in columns if k != key]
    for k, c in zip((k for k in columns if k != key), indices, strict=True):
        if c.dtype.kind not in "iu" or (c.size and not 0 <= int(c.min()) <= int(c.max()) < 2**62):
            raise FileFormatError(f"{name}: column {k} is of {c.dtype}; expected indices from 0 to 2**62")
    shape = _shape(name, declared, indices)
    return Coordinates(shape, tuple(c.astype(np.int64, copy=False) for c in indices), columns[key])


def _checksum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)


def _column(name: str, key: str, column: Any) -> Array:
    if column.null_count:
        raise FileFormatError(f"{name}: column {key} has {column.null_count} missing entries")
    array: Array = np.ascontiguousarray(column.to_numpy())
    if array.dtype.kind not in _KINDS:
        raise FileFormatError(f"{name}: column {key} is of {array.dtype}; expected numbers")
    return array


def _shape(name: str, declared: bytes | None, indices: list[Array]) -> tuple[int, ...]:
    """The shape from the metadata, or one more than the largest coordinates."""
    smallest = tuple(int(c.max()) + 1 if c.size else 0 for c in indices)
    if declared is None:
        return smallest
    try:
        shape = json.loads(declared[:4096])
    except (ValueError, RecursionError):
        shape = None
    is_valid = (
        isinstance(shape, list) and len(shape) == len(indices) and all(type(n) is int and n <= 2**62 for n in shape)
    )
    if not is_valid or any(n < m for n, m in zip(shape, smallest, strict=True)):
        raise FileFormatError(f"{name}: the shape {declared[:80]!r} does not fit coordinates up to {smallest}")
    return tuple(shape)


def write(path: str | os.PathLike[str], t: Tensor, progress: Step | None) -> None:
    """Columns i0, i1, ... and value, packed by Parquet's own means. Raises UnsupportedError for complex values."""
    name, pyarrow = os.fspath(path), _pyarrow(path)
    record = coordinates_of(t, "Parquet")
    if record.dense is not None:
        indices = tuple(c.ravel(order="F") for c in np.indices(record.shape, np.int64))
        record = Coordinates(record.shape, indices, record.dense.ravel(order="F"))
    if record.values.dtype.kind not in _KINDS:
        raise UnsupportedError(f"write: {name}: Parquet has no values of {record.values.dtype}\n  help: write .npz")
    columns = {f"i{d}": c for d, c in enumerate(record.indices)} | {"value": record.values}
    table = pyarrow.table(columns)
    shape = json.dumps(list(record.shape)).encode()
    table = table.replace_schema_metadata({_SHAPE: shape, _CHECKSUM: _checksum(shape)})
    with replacing(path) as file:
        pyarrow.parquet.write_table(table, file, write_page_checksum=True)
    if progress is not None:
        progress(record.values.size, record.values.size)

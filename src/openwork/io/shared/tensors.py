"""Records of a file's contents -> Tensors, and Tensors -> records of coordinates."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import FileFormatError, FormatError, InvariantError, ShapeError, UnsupportedError
from ...format import format as parse
from ...format.named import coo
from ...format.rules import MAX_DIMENSIONS
from ...runtime.check import check, holds
from ...storage.buffers import scalar_of, to_numpy
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .compressed import coordinates
from .records import Array, Buffers, Coordinates, expand

__all__ = ["check_matrix", "coordinates_of", "to_tensor", "with_shape"]


def to_tensor(
    path: str | os.PathLike[str], record: Coordinates | Buffers, format: Any, full: bool, checked: bool = True
) -> Tensor:
    """A Tensor of the record, mirrored where it is a stored triangle and `full`, in `format` (None: the file's own).

    Without `checked`, the checks of a record of buffers that cost O(nse) are left out.

    Coordinates become "coo" where they are sorted and distinct, which is checked, else the uncoalesced COO.
    """
    if len(record.shape) > MAX_DIMENSIONS:
        raise FileFormatError(
            f"{os.fspath(path)}: {len(record.shape)} dimensions; a tensor has {MAX_DIMENSIONS} at most"
        )
    if isinstance(record, Buffers) and full and record.symmetry != "general":
        file_format = record.format
        tensor = _from_coordinates(expand(coordinates(record)))
        return tensor.asformat(file_format if format is None else format)
    if isinstance(record, Buffers):
        tensor = _from_buffers(path, record, checked)
    else:
        tensor = _from_coordinates(expand(record) if full else record)
    return tensor if format is None else tensor.asformat(format)


def with_shape(path: str | os.PathLike[str], record: Coordinates, shape: tuple[int, ...]) -> Coordinates:
    """The record with larger extents. Raises ShapeError where its own, or those of its coordinates, are no smaller."""
    fits = len(shape) == len(record.shape) and all(n >= own for n, own in zip(shape, record.shape, strict=True))
    if record.dense is not None or not fits:
        raise ShapeError(
            f"read: {os.fspath(path)}: shape={shape} of a file of shape {record.shape}, which it must hold"
        )
    return replace(record, shape=shape)


def _from_coordinates(record: Coordinates) -> Tensor:

    ndim = len(record.shape)
    if record.dense is not None:
        values = record.dense.ravel(order="F")
        return _tensor(record.shape, parse("dense_f", ndim), values, (None,) * ndim, (None,) * ndim, 0)
    root_pos = np.array([0, record.values.size], record.indices[0].dtype)
    pos = (root_pos, *([None] * (ndim - 1)))
    values = np.ascontiguousarray(record.values)
    crd = tuple(np.ascontiguousarray(c) for c in record.indices)
    result = _tensor(record.shape, coo(ndim), values, pos, crd, 0)
    if _begins_sorted(crd) and holds(result._storage):
        return result
    return _tensor(record.shape, coo(ndim, unique=False, ordered=False), values, pos, crd, 0)


def _begins_sorted(columns: tuple[Array, ...]) -> bool:
    """Whether the first elements stand in lexicographic order without repetition: most files fail this early."""
    heads = [c[:4096] for c in columns]
    ascending = np.zeros(max(heads[0].size - 1, 0), np.bool_)
    for column in reversed(heads):
        step = np.diff(column)
        ascending = (step > 0) | ((step == 0) & ascending)
    return bool(ascending.all())


def _from_buffers(path: str | os.PathLike[str], record: Buffers, checked: bool) -> Tensor:

    try:
        format = parse(record.format, len(record.shape))
        levels = range(format.nlevels)
        pos, crd = (tuple(side.get(k) for k in levels) for side in (record.pos, record.crd))
        result = _tensor(record.shape, format, record.values, pos, crd, record.fill_value)
        check(result._storage, checked)
    except (FormatError, InvariantError, ShapeError, RecursionError) as error:
        raise FileFormatError(f"{os.fspath(path)}: {error}") from error
    return result


def _tensor(
    shape: tuple[int, ...],
    format: Any,
    values: Array,
    pos: tuple[Array | None, ...],
    crd: tuple[Array | None, ...],
    fill: Any,
) -> Tensor:

    zero = values.dtype.type(fill).item()
    return Tensor._from_storage(Storage(shape, format, scalar_of(values), zero, pos, crd, values))


def coordinates_of(t: Tensor, what: str) -> Coordinates:
    """The stored elements of a tensor as coordinates, in its own order where it is COO already, else sorted.

    Raises UnsupportedError where the fill value is not zero, which no text format can say.
    """

    storage = t._storage
    if storage.fill_value != 0:
        raise UnsupportedError(f"write: {what} cannot hold the fill value {storage.fill_value!r}\n  help: write .npz")
    if t.ndim == 0:
        raise UnsupportedError(f"write: {what} cannot hold a tensor of no dimensions\n  help: write .npz")
    if storage.format.is_dense:
        dense = np.asarray(to_numpy(t.asformat("dense_f")._storage.values)).reshape(t.shape, order="F")
        return Coordinates(t.shape, (), dense.ravel(order="K"), "general", dense)
    if storage.format not in [coo(t.ndim, unique=u, ordered=o) for u in (True, False) for o in (True, False)]:
        storage = t.asformat(coo(t.ndim))._storage
    crd = [to_numpy(b) for b in storage.crd if b is not None]
    return Coordinates(t.shape, tuple(crd), to_numpy(storage.values))


def check_matrix(path: str | os.PathLike[str], t: Tensor, files: str) -> None:
    """Raise ShapeError, UnsupportedError for what is no matrix of fill value 0, which is all that such files hold."""
    if t.ndim != 2:
        raise ShapeError(f"write: {os.fspath(path)}: {files} hold a matrix; got shape {t.shape}")
    if t.fill_value != 0:
        text = f"write: {os.fspath(path)}: {files} have no fill value {t.fill_value!r}\n  help: write .npz"
        raise UnsupportedError(text)

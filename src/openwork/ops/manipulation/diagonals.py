"""Diagonals, as vectors with offsets, to the matrix that has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...format import coo
from ...format.format import Format
from ...integers import extents, integers
from ...runtime.operation import operation
from ...storage.buffers import as_array
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..axes import as_tensor
from ..creation import zeros
from .joining import concat
from .repetition import broadcast_to

__all__ = ["diags_array"]


@operation()
def diags_array(
    diagonals: Any, /, *, offsets: int | Sequence[int] = 0, shape: Sequence[int] | None = None,
    format: str | Format | None = None, dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The matrix with vectors on its diagonals and zeros elsewhere.

    Parameters
    ----------
    diagonals : vectors, from the top left on, one for each offset, or one vector for one offset; a scalar or a
        vector of one element fills its diagonal, where `shape` says how long that is; longer ones are cut
    offsets : elements (i, i + offset) are those of the diagonal; no two alike
    shape : of the matrix; square and as large as the first diagonal needs without
    format : of the result, "dia" without
    dtype : of the result; the promotion of the diagonals' without

    Returns
    -------
    Tensor of rank 2, in the format `format`

    Raises ShapeError for a diagonal that is too short or lies outside, or for offsets that do not fit the diagonals.

    Cost: O(elements of the diagonals).
    See also: diag, eye_array, kronsum.

    Examples
    --------
    >>> ow.diags_array([[1, 2], [3]], offsets=[0, 1]).to_numpy().tolist()
    [[1, 3], [0, 2]]
    """
    offset_list, vectors = _offsets_and_vectors(diagonals, offsets)
    if shape is None:
        if not vectors:
            raise ShapeError("diags_array: no diagonals, so the shape does not follow\n  help: give shape=")
        n = vectors[0].shape[0] + abs(offset_list[0])
        shape = (n, n)
    rows, columns = _matrix_shape(shape)
    parts, first_rows = [], []
    for k, (vector, offset) in enumerate(zip(vectors, offset_list, strict=True)):
        length = min(rows + offset, columns - offset, rows, columns)
        if length < 0:
            raise ShapeError(
                f"diags_array: offset {offset} (index {k}) out of bounds of shape ({rows}, {columns})"
                f"\n  help: offsets are {-rows} to {columns}"
            )
        if vector.shape[0] < length and vector.shape[0] != 1:
            raise ShapeError(
                f"diags_array: diagonal length (index {k}: {vector.shape[0]} at offset {offset}) does not agree with"
                f" array size ({rows}, {columns})\n  help: give {length} elements, or one"
            )
        if vector.shape[0] != length:
            vector = broadcast_to(vector, (length,)) if vector.shape[0] == 1 else vector[:length]
        parts.append(vector)
        first_rows.append(np.arange(length) + max(-offset, 0))
    target = "dia" if format is None else format
    if not parts:
        return zeros((rows, columns), dtype=dtype, format=target)
    values = _joined(parts).asformat("dense")
    values = values if dtype is None else values.astype(dtype, copy=False)
    row_crd = np.concatenate(first_rows)
    col_crd = row_crd + np.repeat(np.array(offset_list, np.int64), [len(t) for t in first_rows])
    return _from_coordinates(values, (row_crd, col_crd), (rows, columns)).asformat(target)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Vectors, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    arrays = [t._storage.values for t in parts]
    if all(t.format.is_dense for t in parts) and all(type(a) is np.ndarray for a in arrays):
        return Tensor._from_dense(np.concatenate(arrays))
    return concat(parts, axis=0)


def _offsets_and_vectors(diagonals: Any, offsets: Any) -> tuple[tuple[int, ...], list[Tensor]]:
    single = not isinstance(offsets, Sequence) and getattr(offsets, "ndim", 0) == 0
    offset_list = integers(offsets, "diags_array", "offsets", boolean=False)
    if single and (not isinstance(diagonals, Sequence) or not diagonals or np.ndim(diagonals[0]) == 0):
        operand = as_tensor(diagonals)
        diagonals = [operand] if operand.ndim < 2 else list(operand)
    vectors = [as_tensor(d) for d in diagonals]
    vectors = [t.reshape((1,)) if not t.ndim else t for t in vectors]
    if len(vectors) != len(offset_list):
        raise ShapeError(
            f"diags_array: {len(vectors)} diagonals and {len(offset_list)} offsets\n  expected: as many of both"
            "\n  help: give one offset for each"
        )
    if len(set(offset_list)) != len(offset_list):
        raise ShapeError(f"diags_array: offsets {offset_list} contain duplicates\n  help: add the diagonals first")
    if any(t.ndim != 1 for t in vectors):
        raise ShapeError("diags_array: a diagonal of several dimensions\n  expected: vectors\n  help: ravel() it")
    return offset_list, vectors


def _matrix_shape(shape: Any) -> tuple[int, int]:
    sizes = extents(shape, "diags_array")
    if len(sizes) != 2:
        raise ShapeError(f"diags_array: shape {sizes}\n  expected: two extents\n  help: shape=(rows, columns)")
    return sizes[0], sizes[1]


def _from_coordinates(values: Tensor, crd: Sequence[Any], shape: tuple[int, int]) -> Tensor:
    """A dense vector of values and their distinct coordinates, in any order -> a COO tensor."""
    data = values.to_dense()
    index_dtype = np.int32 if max(*shape, len(crd[0])) < 2**31 else np.int64
    index = tuple(as_array(c.astype(index_dtype), like=data) for c in crd)
    pos = as_array(np.array([0, len(crd[0])], index_dtype), like=data)
    unordered_coo = coo(2, unique=False, ordered=False)
    s = values._storage
    return Tensor._from_storage(Storage(shape, unordered_coo, s.scalar, 0, (pos, None), index, data))

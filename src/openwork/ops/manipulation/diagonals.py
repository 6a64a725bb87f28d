"""Diagonals, as vectors with offsets, to the matrix that has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...format import coo
from ...integers import extents, integers
from ...runtime.operation import operation
from ...storage.buffers import as_array
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..axes import as_tensor
from ..creation import zeros
from .joining import concat
from .shaping import broadcast_to

__all__ = ["diags_array"]


@operation()
def diags_array(
    diagonals: Any, /, *, offsets: int | Sequence[int] = 0, shape: Sequence[int] | None = None, format: object = None,
    dtype: Any = None,
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

    Raises ShapeError for a diagonal that is too short or lies outside, or for offsets that do not fit the diagonals.

    Examples
    --------
    >>> diags_array([[1, 2], [3]], offsets=[0, 1]).to_numpy().tolist()
    [[1, 3], [0, 2]]
    """
    places, vectors = _paired(diagonals, offsets)
    if shape is None:
        if not vectors:
            raise ShapeError("diags_array: no diagonals, so the shape does not follow\n  help: give shape=")
        n = vectors[0].shape[0] + abs(places[0])
        shape = (n, n)
    rows, columns = _two(shape)
    parts, tops = [], []
    for k, (vector, offset) in enumerate(zip(vectors, places, strict=True)):
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
        parts.append(broadcast_to(vector, (length,)) if vector.shape[0] == 1 else vector[:length])
        tops.append(np.arange(length) + max(-offset, 0))
    target = "dia" if format is None else format
    if not parts:
        return zeros((rows, columns), dtype=dtype, format=target)
    values = concat(parts, axis=0).asformat("dense")
    values = values if dtype is None else values.astype(dtype, copy=False)
    down = np.concatenate(tops)
    right = down + np.repeat(np.array(places, np.int64), [len(t) for t in tops])
    return _coordinates(values, (down, right), (rows, columns)).asformat(target)


def _paired(diagonals: Any, offsets: Any) -> tuple[tuple[int, ...], list[Tensor]]:
    single = not isinstance(offsets, Sequence) and getattr(offsets, "ndim", 0) == 0
    places = integers(offsets, "diags_array", "offsets", boolean=False)
    if single and (not isinstance(diagonals, Sequence) or not diagonals or np.ndim(diagonals[0]) == 0):
        given = as_tensor(diagonals)
        diagonals = [given] if given.ndim < 2 else list(given)
    vectors = [as_tensor(d) for d in diagonals]
    vectors = [t.reshape((1,)) if not t.ndim else t for t in vectors]
    if len(vectors) != len(places):
        raise ShapeError(
            f"diags_array: {len(vectors)} diagonals and {len(places)} offsets\n  expected: as many of both"
            "\n  help: give one offset for each"
        )
    if len(set(places)) != len(places):
        raise ShapeError(f"diags_array: offsets {places} contain duplicates\n  help: add the diagonals first")
    if any(t.ndim != 1 for t in vectors):
        raise ShapeError("diags_array: a diagonal of several dimensions\n  expected: vectors\n  help: ravel() it")
    return places, vectors


def _two(shape: Any) -> tuple[int, int]:
    found = extents(shape, "diags_array")
    if len(found) != 2:
        raise ShapeError(f"diags_array: shape {found}\n  expected: two extents\n  help: shape=(rows, columns)")
    return found[0], found[1]


def _coordinates(values: Tensor, crd: Sequence[Any], shape: tuple[int, int]) -> Tensor:
    """The elements of a dense vector at distinct coordinates in any order."""
    leaf = values.to_dense()
    wide = np.int32 if max(*shape, len(crd[0])) < 2**31 else np.int64
    index = tuple(as_array(c.astype(wide), like=leaf) for c in crd)
    pos = as_array(np.array([0, len(crd[0])], wide), like=leaf)
    made = coo(2, unique=False, ordered=False)
    s = values._storage
    return Tensor._from_storage(Storage(shape, made, s.scalar, 0, (pos, None), index, leaf))

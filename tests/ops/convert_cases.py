"""Tensors to convert, and what conversion is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from openwork.format import format as fmt
from openwork.storage.buffers import numpy_dtype, to_numpy
from openwork.storage.exact import check_indices
from openwork.storage.invariants import check_layout
from openwork.storage.specified import coordinates
from openwork.storage.storage import Storage

UNCOALESCED = {
    1: "(i) -> (i : compressed(nonunique, unordered))",
    2: "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique))",
    3: "(i, j, k) -> (i : compressed(nonunique, unordered), j : singleton(nonunique), k : singleton(nonunique))",
    4: "(i, j, k, l) -> (i : compressed(nonunique, unordered), j : singleton(nonunique), k : singleton(nonunique), "
    "l : singleton(nonunique))",
}
NAMED = (
    "dense", "dense_f", "coo", "csr", "csc", "dcsr", "dcsc", "bsr(2,3)", "bsc(4,4)", "dia", "ell(9)", "csf", "bitmap",
    "nm(4,4)",
)  # fmt: skip


def uncoalesced(
    shape: tuple[int, ...], n: int, seed: int = 0, fill: Any = 0.0, scalar: str = "f64", index: type = np.int32
) -> Storage:
    """Random elements in no order, with duplicates and explicit zeros."""
    rng = np.random.default_rng(seed)
    n = 0 if 0 in shape else n
    values = rng.integers(0, 4, n).astype(numpy_dtype(scalar))
    if not shape:
        return Storage((), fmt("() -> ()"), scalar, fill, (), (), np.array([3], numpy_dtype(scalar)))
    crd = tuple(rng.integers(0, extent, n).astype(index) for extent in shape)
    pos = (np.array([0, n], index), *[None] * (len(shape) - 1))
    return Storage(shape, fmt(UNCOALESCED[len(shape)]), scalar, fill, pos, crd, values)


def dense(s: Storage) -> np.ndarray[Any, Any]:
    """The dense array, by NumPy alone."""
    at, leaf = coordinates(s)
    out = np.full(s.shape, s.fill_value, numpy_dtype(s.scalar)).reshape(-1)
    flat = np.zeros(len(leaf), np.int64)
    for coordinate, extent in zip(at, s.shape, strict=True):
        flat = flat * extent + coordinate
    out[flat] = 0
    for index, value in zip(flat, to_numpy(s.values)[leaf], strict=True):
        out[index] += value
    return out.reshape(s.shape)


def same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def checked(s: Storage) -> Storage:
    check_layout(s)
    if 0 not in s.shape:
        check_indices(s)
    return s


def buffers_equal(x: Storage, y: Storage) -> bool:
    return x.format == y.format and all(
        np.array_equal(to_numpy(a), to_numpy(b)) for a, b in zip(x.buffers, y.buffers, strict=True)
    )

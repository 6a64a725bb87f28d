"""Sets of elements of x, one for each element of a tensor, as rows of a sparse matrix of booleans; None: all empty."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

import openwork as ow

from ..errors import SizeError
from ..tensor.tensor import Tensor

__all__ = ["Sets", "grouped", "identity", "product_sets", "replaced", "taken", "united"]

Sets: TypeAlias = Tensor | None
Array = np.ndarray[Any, Any]

LARGEST = 400_000_000
"""Elements of sets that are made: more are refused."""


def identity(n: int) -> Tensor:
    """Each element in its own set."""
    return _rows(np.arange(n + 1), np.arange(n), n)


def united(a: Sets, b: Sets) -> Sets:
    """The unions of sets."""
    if a is None or a is b:
        return b
    return a if b is None else ow.logical_or(a, b)


def taken(sets: Sets, numbers: Array) -> Sets:
    """The sets of these numbers; that of -1 is empty."""
    if sets is None:
        return None
    pos, crd = np.asarray(sets.pos(1)), np.asarray(sets.crd(1))
    if len(numbers) == len(pos) - 1 and np.array_equal(numbers, np.arange(len(numbers))):
        return sets
    known = numbers >= 0
    length = np.where(known, np.diff(pos)[numbers], 0) if len(pos) > 1 else np.zeros(len(numbers), np.int64)
    ends = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
    if ends[-1] > LARGEST:
        raise SizeError(
            f"jacobian: {len(numbers)} elements depend on {ends[-1]} together\n  help: of a function that is not sparse"
            " torch.func.jacrev"
        )
    start = np.where(known, pos[numbers] if len(pos) > 1 else 0, 0)
    return _rows(ends, crd[np.arange(ends[-1]) - np.repeat(ends[:-1] - start, length)], sets.shape[1])


def grouped(sets: Sets, groups: Array, count: int) -> Sets:
    """The union of the sets of each group; -1 is in none."""
    if sets is None:
        return None
    order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
    ends = np.concatenate([[0], np.cumsum(np.bincount(groups[groups >= 0], minlength=count))])
    return _times(_rows(ends, order, len(groups)), sets)


def product_sets(A: Tensor, sets: Sets, columns: int) -> Sets:
    """The sets of A @ X, where X has some columns."""
    if sets is None:
        return None
    pattern = ow.asarray(ow.pattern(A), like="numpy").asformat("csr")
    if columns > 1:
        pattern = ow.kron(pattern, ow.eye(columns, dtype=bool, format="csr")).asformat("csr")
    return _times(pattern, sets)


def replaced(sets: Sets, new: Sets, places: Array, size: int) -> Sets:
    """The sets of a memory of so many elements with others at these places."""
    like = sets if sets is not None else new
    if like is None:
        return None
    n = like.shape[1]
    none = _rows(np.zeros(1, np.int64), np.zeros(0, np.int64), n)
    both = [none if s is None else s for s in (sets, new)]
    pos = np.concatenate([np.asarray(both[0].pos(1)), np.asarray(both[1].pos(1))[1:] + both[0].nse])
    crd = np.concatenate([np.asarray(b.crd(1)) for b in both])
    which = np.arange(size) if sets is not None else np.full(size, -1)
    which[places] = both[0].shape[0] + np.arange(len(places)) if new is not None else -1
    return taken(_rows(pos, crd, n), which)


def _rows(pos: Array, crd: Array, columns: int) -> Tensor:
    kind = np.int32 if max(len(crd), columns, len(pos)) < 2**31 - 1 else np.int64
    buffers: Any = {"pos": {1: pos.astype(kind)}, "crd": {1: crd.astype(kind)}}
    return ow.assemble("csr", (len(pos) - 1, columns), **buffers, values=np.ones(len(crd), bool), check=False)


def _times(a: Tensor, b: Tensor) -> Tensor:
    """The product over (or, and), which is sparse however many elements it has."""
    return ow.asarray(ow.matmul(a, b)).asformat("csr")

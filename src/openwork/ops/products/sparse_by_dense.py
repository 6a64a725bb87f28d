"""A sparse tensor times a dense array, summed over some dimensions -> a sparse Tensor where two others or more stay.

    T[i,j,k] * M[k,r] -> (i : compressed, j : compressed, r : dense)
                    fibres T[i,j,:] are rows of a CSR matrix, whose products with M are the dense fibres of the result

The rule of `ttv`, `ttm` and `tensordot`: the result is stored along the free dimensions of the sparse tensor, by
its levels of these, and dense along those of the array. Where at most one is left, or all that are left are
dense, the result is a dense array, as that of `A @ x`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import add
from typing import Any

import numpy as np

from ...compiler.schedule.kept_format import kept_format
from ...format import format as parse
from ...format.format import Format
from ...runtime.outer_ranges import ranges_of, slice_range
from ...storage.buffers import as_array, is_array, length, to_numpy
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..reductions.by_ranges import folded
from ..stored_fibres import from_fibre_values, in_format, stored_fibres
from .matmul import matmul

__all__ = ["fibre_product"]


def fibre_product(t: Any, array: Any, left: str, right: str, output: str) -> Tensor | None:
    """The product by letters of a sparse Tensor and a dense array, in its `kept_format`; None where it is dense,
    or `einsum` is to say what is wrong.

    left, right : letters of the tensor and of the array, each once; those of both are summed, the others stay
    """
    if not isinstance(t, Tensor) or t.format.is_dense or t.fill_value or not is_array(array):
        return None
    extent_of = dict(zip(left, t.shape, strict=True))
    if len(array.shape) != len(right) or any(extent_of.get(c, n) != n for c, n in zip(right, array.shape, strict=True)):
        return None
    kept_dims = [d for d, c in enumerate(left) if c not in right]
    free = [c for c in right if c not in left]
    target = kept_format(t.format, tuple(kept_dims), len(free))
    if target is None:
        return None
    natural = [left[d] for d in kept_dims] + free
    out = _by_ranges(t, array, left, right, natural, target)
    out = _product(t, array, left, right, natural, target) if out is None else out
    return Tensor._from_storage(out._storage.permute([natural.index(c) for c in output]))


def _by_ranges(
    t: Tensor, array: Any, left: str, right: str, natural: list[str], target: Format
) -> Tensor | None:  # fmt: skip
    """`_product` range by range of a large tensor: joined where its outermost dimension stays, else added up; None of a
    small one."""
    found = ranges_of(t._storage) if isinstance(array, np.ndarray) else None
    if found is None:
        return None
    letter = left[found[0]]

    def parts() -> Iterator[Tensor]:
        for first, last in found[1]:
            key = tuple(slice(first, last) if c == letter else slice(None) for c in right)
            part = Tensor._from_storage(slice_range(t._storage, first, last))
            yield _product(part, array[key], left, right, natural, target)

    if letter in natural:
        joined: Any = np.concatenate(list(parts()), axis=natural.index(letter))
    else:
        joined = folded(parts(), add, lambda x: int(x.nse))
    return Tensor._from_storage(in_format(joined._storage, target))


def _product(t: Tensor, array: Any, left: str, right: str, natural: list[str], target: Format) -> Tensor:
    """The product, its dimensions those of the tensor that stay and then those of the array."""
    kept_dims, free = [d for d, c in enumerate(left) if c not in right], [c for c in right if c not in left]
    extent_of = dict(zip(left, t.shape, strict=True))
    fibres = stored_fibres(t, kept_dims, in_order=True)
    product = matmul(_as_csr(fibres.rows), _matricize(array, [left[d] for d in fibres.reduced], free, right))
    extents = {**extent_of, **dict(zip(right, array.shape, strict=True))}
    letters = [left[d] for d in fibres.kept] + free
    order = [natural.index(c) for c in letters]
    return from_fibre_values(product, fibres.crd, [extents[c] for c in letters], order, 0, target)


def _as_csr(rows: Storage) -> Tensor:
    """Rows of a tensor as a CSR matrix over their values: the summed dimensions are its columns."""
    count, width = length(rows.values), math.prod(rows.shape[1:])
    column = np.zeros(count, np.int64)
    for c, extent in zip(rows.crd[1:], rows.shape[1:], strict=True):
        column = column * extent + to_numpy(c)
    index_dtype = np.int32 if max(count, width) < 2**31 else np.int64
    ends = np.arange(count + 1) if rows.pos[1:] == () else to_numpy(rows.pos[1])
    pos, crd = (as_array(x.astype(index_dtype), like=rows.values) for x in (ends, column))
    shape, format = (rows.shape[0], width), parse("csr", 2)
    return Tensor._from_storage(Storage(shape, format, rows.scalar, 0, (None, pos), (None, crd), rows.values))


def _matricize(array: Any, summed: Sequence[str], free: Sequence[str], letters: str) -> Any:
    """The array as a matrix of summed by free dimensions; a vector where none is free."""
    axes = tuple(letters.index(c) for c in (*summed, *free))
    permuted = array.transpose(axes) if isinstance(array, np.ndarray) else array.permute(axes)
    shape = [permuted.shape[d] for d in range(len(axes))]
    rows = math.prod(shape[: len(summed)])
    return permuted.reshape((rows, math.prod(shape[len(summed) :])) if free else (rows,))

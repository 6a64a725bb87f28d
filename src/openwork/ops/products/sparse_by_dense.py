"""A sparse tensor times a dense array, summed over some dimensions -> a sparse Tensor where two others or more stay.

    T[i,j,k] * M[k,r] -> (i : compressed, j : compressed, r : dense)
                    fibres T[i,j,:] are rows of a CSR matrix, whose products with M are the dense fibres of the result

The rule of `ttv`, `ttm` and `tensordot`: the result is stored along the free dimensions of the sparse tensor, by
its levels of these, and dense along those of the array. Where at most one is left, or none of theirs is stored by
coordinates, the result is a dense array, as that of `A @ x`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

import numpy as np

from ...format import coo
from ...format import format as parse
from ...format.expression import Dim
from ...format.format import Format, Level
from ...storage.buffers import as_array, flat, is_array, length, scalar_of, to_numpy
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .matmul import matmul

__all__ = ["fibre_product", "kept_format"]


def kept_format(format: Format, kept: Sequence[int], free: int) -> Format | None:
    """The format of a result that has the dimensions `kept` of a tensor, in this order, then `free` dense ones.

    Plain levels, dense and compressed, stay as they are, in their order, without duplicates; of all others the
    result is COO. None where a dense array is the result.
    """
    if len(kept) < 2:
        return None
    stored = [level.format for level in format.levels if "crd" in level.format.buffers and not level.format.is_bitmap]
    if not stored:
        return None
    order = _level_order(format, kept)
    level_of_dim = {
        level.expression.index: level.format for level in format.levels if isinstance(level.expression, Dim)
    }
    formats = [level_of_dim.get(kept[k]) for k in order]
    dense = parse("dense", 1).levels[0].format
    levels = [Level(Dim(k), x.format) for k, x in zip(order, coo(len(kept)).levels, strict=True)]
    if None not in formats and all(x.is_dense or x.is_compressed for x in formats if x is not None):
        if not any(x.is_compressed for x in formats if x is not None):
            return None
        level_formats = [
            replace(x, unique=True, ordered=True) if x.is_compressed else x for x in formats if x is not None
        ]
        levels = [Level(Dim(k), x) for k, x in zip(order, level_formats, strict=True)]
    levels += [Level(Dim(len(kept) + k), dense) for k in range(free)]
    return Format(tuple(ascii_letters[: len(kept) + free]), tuple(levels))


def _level_order(format: Format, dims: Sequence[int]) -> list[int]:
    """The order of `dims` by the format's levels, as positions in `dims`, where each level holds one dimension."""
    expressions = [level.expression for level in format.levels]
    if not all(isinstance(e, Dim) for e in expressions):
        return list(range(len(dims)))
    return [dims.index(e.index) for e in expressions if isinstance(e, Dim) and e.index in dims]


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
    contracted = [d for d, c in enumerate(left) if c in right]
    free = [c for c in right if c not in left]
    target = kept_format(t.format, kept_dims, len(free))
    if target is None:
        return None
    order = [kept_dims[k] for k in _level_order(t.format, kept_dims)] + [
        contracted[k] for k in _level_order(t.format, contracted)
    ]
    matrix, crd = _fibres_as_rows(t, order, len(kept_dims))
    product = matmul(matrix, _matricize(array, [left[d] for d in order[len(kept_dims) :]], free, right))
    extents = {**extent_of, **dict(zip(right, array.shape, strict=True))}
    letters = [left[d] for d in order[: len(kept_dims)]] + free
    out = _from_fibre_rows(product, crd, [extents[c] for c in letters], len(free))
    natural = [left[d] for d in kept_dims] + free
    out = _permute(out, [letters.index(c) for c in natural]).asformat(target)
    return _permute(out, [natural.index(c) for c in output])


def _permute(t: Tensor, axes: Sequence[int]) -> Tensor:
    return Tensor._from_storage(t._storage.permute(axes))


def _fibres_as_rows(t: Tensor, order: Sequence[int], rows: int) -> tuple[Tensor, list[np.ndarray[Any, Any]]]:
    """The fibres of a tensor that store something as the rows of a CSR matrix over its values, and their coordinates.

    order : the dimensions, of which the first `rows` number the fibres
    """
    s = _permute(t, order).asformat(coo(t.ndim))._storage
    crd = [to_numpy(c) for c in s.crd]
    count, width = length(s.values), math.prod(s.shape[rows:])
    new = np.ones(count, np.bool_)
    if count:
        new[1:] = False
        for c in crd[:rows]:
            new[1:] |= c[1:] != c[:-1]
    starts = np.flatnonzero(new)
    column = np.zeros(count, np.int64)
    for c, n in zip(crd[rows:], s.shape[rows:], strict=True):
        column = column * n + c
    index_dtype = np.int32 if max(count, width) < 2**31 else np.int64
    buffers = [as_array(x.astype(index_dtype), like=s.values) for x in (np.append(starts, count), column)]
    csr = parse("csr", 2)
    matrix = Storage((len(starts), width), csr, s.scalar, 0, (None, buffers[0]), (None, buffers[1]), s.values)
    return Tensor._from_storage(matrix), [c[starts] for c in crd[:rows]]


def _matricize(array: Any, summed: Sequence[str], free: Sequence[str], letters: str) -> Any:
    """The array as a matrix of summed by free dimensions; a vector where none is free."""
    axes = tuple(letters.index(c) for c in (*summed, *free))
    permuted = array.transpose(axes) if isinstance(array, np.ndarray) else array.permute(axes)
    shape = [permuted.shape[d] for d in range(len(axes))]
    rows = math.prod(shape[: len(summed)])
    return permuted.reshape((rows, math.prod(shape[len(summed) :])) if free else (rows,))


def _from_fibre_rows(product: Any, fibre_crd: list[np.ndarray[Any, Any]], shape: Sequence[int], free: int) -> Tensor:
    """Rows of a dense result at the coordinates of their fibres: COO with `free` dense dimensions."""
    values = flat(product)
    bounds = np.array([0, len(fibre_crd[0])], fibre_crd[0].dtype)
    pos = (as_array(bounds, like=values), *(None,) * (len(shape) - 1))
    crd = (*[as_array(np.ascontiguousarray(c), like=values) for c in fibre_crd], *(None,) * free)
    format = coo(len(shape), dense=free)
    return Tensor._from_storage(Storage(tuple(shape), format, scalar_of(values), 0, pos, crd, values))

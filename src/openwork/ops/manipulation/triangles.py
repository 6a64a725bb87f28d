"""A matrix, or a stack of them -> its triangles, diagonals and trace; a vector -> a diagonal matrix."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...classes import frozen
from ...errors import ShapeError, UnsupportedError
from ...format import format as parse
from ...format.expression import dimensions
from ...format.format import Format
from ...integers import integer
from ...runtime.conversion.remap import IndexMap, on_host
from ...runtime.leading_slice import pick
from ...runtime.moves import Moved, moved
from ...runtime.operation import operation
from ...runtime.outer_ranges import ranges_of, slice_range
from ...storage.buffers import Array, as_array, itemsize, length
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axis_of
from ..reductions.statistics import sum
from ..result_format import ROOM, little_format, remap_one
from .joining import concat

__all__ = ["diag", "diagonal", "trace", "tril", "triu"]

LIMIT = 16
"""How many parts of a diagonal are there at a time: a tensor of few elements takes more memory than these."""


@operation(method=True, masked="moves", torch="tril(diagonal: k = 0)")
def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """The lower triangles of the last two dimensions: elements (i, j) with j - i <= k, all others zero.

    Raises UnsupportedError where the fill value is not zero and the format sparse, as the result has no fill value.

    Cost: O(nse).
    See also: triu, linalg.solve_triangular.

    Examples
    --------
    >>> ow.tril(ow.asarray([[1, 2], [3, 4]], format="csr")).to_numpy()
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(as_tensor(x), k, "tril")


@operation(method=True, masked="moves", torch="triu(diagonal: k = 0)")
def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """The upper triangles of the last two dimensions: elements (i, j) with j - i >= k, all others zero.

    Cost: O(nse).
    See also: tril, linalg.solve_triangular.

    Examples
    --------
    >>> ow.triu(ow.asarray([[1, 2], [3, 4]], format="csr"), k=1).to_numpy()
    array([[0, 2],
           [0, 0]])
    """
    return _triangle(as_tensor(x), k, "triu")


def _triangle(t: Tensor, k: int, name: str) -> Tensor:
    k = integer(k, name, "k")
    if t.ndim < 2:
        raise ShapeError(f"{name}: expected two dimensions or more; got shape {t.shape}\n  help: use diag for a matrix")
    if t.fill_value and not t.format.is_dense:
        raise UnsupportedError(
            f"{name}: elements outside the triangle are 0, unspecified ones inside are {t.fill_value}: the result"
            f" would need {math.prod(t.shape) * itemsize(t._storage.scalar)} bytes of values"
            '\n  help: asformat("dense") first'
        )
    i, j = t.ndim - 2, t.ndim - 1

    def write(index_map: IndexMap) -> None:
        index_map.test(f"x{j} - x{i} {'<=' if name == 'tril' else '>='} {index_map.number(k)}")
        for d in range(t.ndim):
            index_map.keep(d)

    host = np.tril if name == "tril" else np.triu
    return remap_one(t, t.shape, name, write, lambda a: host(a, k))


def _trace_of_masked(m: Any, /, *, dtype: Any = None, axis1: int = 0, axis2: int = 1, **offset: int) -> Any:
    return m.__array_namespace__().diagonal(m, axis1=axis1, axis2=axis2, **offset).sum(-1, dtype=dtype)


@operation(method=True, torch="trace()", masked=_trace_of_masked, shape="moved", dtype="accumulated", fill="reduced")
def trace(x: Any, /, *, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """The sum of the diagonal of two dimensions, the first ones as NumPy's: those with `j - i == offset`.

    Returns a Tensor of the other dimensions, summed as `sum` does. Raises ShapeError for less than two dimensions.

    Cost: O(nse).
    See also: diagonal, linalg.trace.

    Examples
    --------
    >>> int(ow.trace(ow.asarray([[1, 2], [3, 4]], format="csr")))
    5
    """
    return sum(diagonal(x, offset=offset, axis1=axis1, axis2=axis2), axis=-1, dtype=dtype)


@operation(
    method=True,
    places="offset = 0, axis1 = 0, axis2 = 1",
    masked="moves",
    numpy="diagonal(offset = 0, axis1 = 0, axis2 = 1)",
    torch="diagonal(offset = 0, dim1: axis1 = 0, dim2: axis2 = 1)",
)
def diagonal(x: Any, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The elements (i, i + offset) of dimensions `axis1` and `axis2`, as a last dimension.

    Cost: O(nse), O(rows) of a compressed matrix.
    See also: diag, trace, Tensor.setdiag.

    Examples
    --------
    >>> ow.diagonal(ow.asarray([[1, 2], [3, 4]], format="csr"), offset=1).to_numpy()
    array([2])
    """
    if type(x) is Tensor and type(offset) is int and type(axis1) is int and type(axis2) is int:
        s = x._storage
        little = moved((s,), ("diagonal", offset, axis1, axis2), lambda: _place(x, offset, axis1, axis2).moved(s))
        if little is not None:
            return Tensor._from_storage(little)
    t, offset = as_tensor(x), integer(offset, "diagonal", "offset")
    s, place = t._storage, _place(t, offset, axis1, axis2)
    i, j, extent = place.i, place.j, place.shape[-1]
    on_host(s, "diagonal")
    if not (t.format.is_dense or place.others) and extent <= ROOM + length(s.values):
        steps = np.arange(extent, dtype=np.int64)
        picked = pick(s, {i: steps + max(-offset, 0), j: steps + max(offset, 0)})
        if picked is not None:
            return Tensor._from_storage(picked)
    found = ranges_of(s) if type(t) is Tensor else None
    if found is not None:
        return _diagonal_of_ranges(t, offset, i, j, *found)
    return remap_one(t, place.shape, "diagonal", place.write, lambda a: np.diagonal(a, offset, i, j))


@frozen
class _Diagonal:
    """The elements (i, i + offset) of dimensions i and j of a format, behind the other dimensions, of a shape."""

    format: Format
    i: int
    j: int
    offset: int
    others: tuple[int, ...]
    shape: tuple[int, ...]

    def write(self, index_map: IndexMap) -> None:
        """Add the steps and the coordinates."""
        i, j = self.i, self.j
        index_map.test(f"x{j} - x{i} == {index_map.number(self.offset)}")
        for d in self.others:
            index_map.keep(d)
        index_map.rises[i] = index_map.rises[j] = len(self.others)
        if _walked_after(self.format, j, i):
            index_map.fixed.add(j)
        index_map.coordinates.append(f"x{i} - {index_map.number(max(-self.offset, 0))}")

    def moved(self, s: Storage) -> Moved | None:
        """The move of a tensor of little data."""
        index_map, format = IndexMap(), little_format(s.format, self.shape)
        self.write(index_map)
        return None if format is None else Moved((index_map,), self.shape, format)


def _place(t: Tensor, offset: int, axis1: Any, axis2: Any) -> _Diagonal:
    """The diagonal of a tensor.

    Raises ShapeError for fewer than two dimensions, or one that is named twice.
    """
    if t.ndim < 2:
        raise ShapeError(f"diagonal: expected two dimensions or more; got shape {t.shape}\n  help: diag makes a matrix")
    i, j = axis_of(axis1, t.ndim, "diagonal", "axis1"), axis_of(axis2, t.ndim, "diagonal", "axis2")
    if i == j:
        raise ShapeError(f"diagonal: axis1 and axis2 are both {i}\n  help: name two axes")
    extent = max(min(t.shape[i] - max(-offset, 0), t.shape[j] - max(offset, 0)), 0)
    others = tuple(d for d in range(t.ndim) if d not in (i, j))
    return _Diagonal(t.format, i, j, offset, others, (*(t.shape[d] for d in others), extent))


def _diagonal_of_ranges(t: Tensor, offset: int, i: int, j: int, outer: int, ranges: list[tuple[int, int]]) -> Tensor:
    """The diagonal of a large tensor, range by range of its outermost dimension: parts of it, one behind the other."""
    place = t.ndim - 2 if outer in (i, j) else outer - (i < outer) - (j < outer)
    parts: list[Tensor] = []
    for first, last in ranges:
        if len(parts) == LIMIT:
            parts = [concat(parts, axis=place, format=parts[0].format)]
        moved = offset + first if outer == i else offset - first if outer == j else offset
        part = Tensor._from_storage(slice_range(t._storage, first, last))
        parts.append(diagonal(part, offset=moved, axis1=i, axis2=j))
    return concat(parts, axis=place, format=parts[0].format)  # with a format nothing is kept for parts that are new


@lru_cache(maxsize=256)
def _walked_after(format: Format, d: int, outer_dim: int) -> bool:
    """Whether all levels of dimension `outer_dim` lie outside of those of `d`."""
    walked = {
        k: [n for n, level in enumerate(format.levels) if k in dimensions(level.expression)] for k in (d, outer_dim)
    }
    return max(walked[outer_dim]) < min(walked[d])


@operation(masked="moves", torch="diag(diagonal: k = 0)")
def diag(x: Any, /, *, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal and zeros elsewhere.

    Cost: O(nse).
    See also: diagonal, diags_array, trace.

    Examples
    --------
    >>> ow.diag(ow.asarray([[1, 2], [3, 4]], format="csr")).to_numpy()
    array([1, 4])
    """
    t, k = as_tensor(x), integer(k, "diag", "k")
    if t.ndim == 2:
        return diagonal(t, offset=k)
    if t.ndim != 1:
        raise ShapeError(f"diag: expected one or two dimensions; got shape {t.shape}\n  help: diagonal takes any rank")
    if t.format.is_dense or t.fill_value:
        full = t.asformat("dense")._storage
        vector_format, n = parse("coo", 1), t.shape[0]
        pos, crd = _index([0, n], full.values), _index(np.arange(n), full.values)
        t = Tensor._from_storage(
            Storage(t.shape, vector_format, full.scalar, python_scalar(0, full.scalar), (pos,), (crd,), full.values)
        )
    extent = t.shape[0] + abs(k)

    def write(index_map: IndexMap) -> None:
        index_map.coordinates += [f"x0 + {index_map.number(max(-k, 0))}", f"x0 + {index_map.number(max(k, 0))}"]
        index_map.rises[0] = 0
        index_map.natural = True

    return remap_one(t, (extent, extent), "diag", write, lambda a: np.diag(a, k), format="csr")


def _index(values: Any, like: Array) -> Array:
    return as_array(np.asarray(values, np.int64), like=like)

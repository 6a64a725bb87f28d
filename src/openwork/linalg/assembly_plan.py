"""Coordinates of values -> the structure of their sums, and the matrix S of ones that sums them: rows, or blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import openwork as ow

from .. import DTypeError, ShapeError, Tensor
from ..storage.buffers import is_torch, to_numpy
from .compiled import compiled, parallel
from .direct_solver.graph import grouped, transposed

__all__ = ["AssemblyPlan", "Blocks", "assembly_plan", "expanded_coordinates", "row_numbers", "scalar_places"]

Array = np.ndarray[Any, Any]

LONGEST = 256
"""Elements that are summed in one row: longer sums go by pieces, whatever the threads."""
TASK = 2**15
"""Values from which another thread pays."""
AHEAD = 64
"""Sums that are prefetched: where places have no order, each is in another line of memory."""

_SUMS = """
def sums(lo: i64, hi: i64, values: T[const], source: I[const], place: I[const], begin: i64[const], out: T[mut],
         width: i64):
    for b in range(lo, hi):
        if width == 1:
            for p in range(begin[b], begin[b + 1]):
                later = i64(place[p + AHEAD])
                prefetch(out, select(later < 0, -1 - later, later))
                k = i64(place[p])
                i = select(k < 0, -1 - k, k)
                out[i] = select(k < 0, T(0), out[i]) + values[i64(source[p])]
        else:
            for p in range(begin[b], begin[b + 1]):
                k = i64(place[p])
                for w in range(0, width): # novector
                    i = select(k < 0, -1 - k, k) * width + w
                    out[i] = select(k < 0, T(0), out[i]) + values[i64(source[p]) * width + w]
""".replace("AHEAD", str(AHEAD))
_SUMS_IN_ORDER = _SUMS.replace("i64(source[p])", "p")


class AssemblyPlan(NamedTuple):
    """The structure of the sums; S as compressed rows of ones; constants: their places and numbers."""

    pattern: Tensor
    pos: Array
    taken: Array
    constants: tuple[Array, Array]

    def stages(self, size: int) -> list[Tensor]:
        """S, of so many columns, as a product of matrices, the first applied first, with few ones in a row."""
        return _factors(self.pos, self.taken, size)

    def blocks(self, size: int, threads: int) -> Blocks:
        """S by ranges of its rows, for so many threads."""
        count, kind = len(self.pos) - 1, np.int32 if max(len(self.taken), size) < 2**31 else np.int64
        columns, place, at = transposed(self.pos.astype(kind), self.taken.astype(kind), size)
        source = np.repeat(np.arange(size, dtype=kind), np.diff(columns))
        many = max(min(threads, -(-len(place) // TASK)), 1)
        begin = np.array([0, len(place)])
        if many > 1:
            begin, order = grouped(place // kind(max(-(-count // many), 1)), many)
            source, place, at = source[order], place[order], at[order]
        in_order = np.array_equal(source, np.arange(size, dtype=kind))
        place = np.where(at == self.pos[place], -1 - place, place)
        (without,) = np.nonzero(np.diff(self.pos) == 0)
        return Blocks(
            source[:0] if in_order else source, np.append(place, np.zeros(AHEAD, kind)), begin, without, count
        )


class Blocks(NamedTuple):
    """Sums by blocks of places: the value and the place of each summand, by blocks, then as values come.

    source : numbers of the values; none where they are all values as they come
    place : of each summand, -1 - place of the first of a sum
    without : places that nothing is added to
    """

    source: Array
    place: Array
    begin: Array
    without: Array
    total: int

    def sums(self, values: Array, out: Array, width: int) -> None:
        """Write the sums of values, of `width` numbers each, over `out`: the same bits for any blocks."""
        text = _SUMS if len(self.source) else _SUMS_IN_ORDER
        executable = compiled(text, I=self.place, T=values)
        words = [values, self.source, self.place, self.begin, out, width]
        parallel(executable, executable.pack(words), range(len(self.begin)), (len(self.place) - AHEAD) * width)
        if len(self.without):
            out.reshape(-1, width)[self.without] = 0


def assembly_plan(
    shape: tuple[int, ...], format: Any, places: list[Array], source: Array, constants: Array
) -> AssemblyPlan:
    """The structure of the sums and S, from one stable sort of the coordinates."""
    count = len(source)
    unsorted = ow.sparse_coo_tensor(np.stack(places), np.arange(count), shape)
    ordered = unsorted.asformat(f"coo{len(shape)}(nonunique)" if len(shape) > 1 else "coo(nonunique)")
    order = np.asarray(ordered.values)
    crd = np.stack([p[order] for p in places])
    first = np.ones(count, bool)
    if count:
        first[1:] = (crd[:, 1:] != crd[:, :-1]).any(0)
    begin = np.flatnonzero(first)
    numbered = ow.sparse_coo_tensor(crd[:, begin], np.arange(1, len(begin) + 1), shape).asformat(format)
    segment = np.asarray(numbered.values) - 1  # of each value of the buffer, -1 for padding
    ends = np.append(begin, count)
    length = np.where(segment < 0, 0, np.diff(ends)[segment] if len(begin) else 0)
    pos = np.concatenate([[0], np.cumsum(length)])
    if np.array_equal(segment, np.arange(len(begin))):
        taken = source[order]
    else:
        start = np.where(segment < 0, 0, begin[segment] if len(begin) else 0)
        taken = source[order[np.arange(count) - np.repeat(pos[:-1] - start, length)]]
    fixed = np.flatnonzero(taken < 0)
    where = np.searchsorted(pos, fixed, side="right") - 1
    numbers = constants[-1 - taken[fixed]]
    if len(fixed):
        pos = pos - np.searchsorted(fixed, pos)
        taken = np.delete(taken, fixed)
    pattern = ow.with_values(numbered, np.asarray(numbered.values) > 0, fill_value=False)
    return AssemblyPlan(pattern, pos, taken, (where, numbers))


def _factors(pos: Array, taken: Array, size: int) -> list[Tensor]:
    """S of compressed rows, as a product of matrices of at most LONGEST ones in a row."""
    length = np.diff(pos)
    if not len(length) or length.max() <= LONGEST:
        return [_ones(pos, taken, size)]
    pieces = -(-length // LONGEST)
    above = np.concatenate([[0], np.cumsum(pieces)])
    nth = np.arange(above[-1]) - np.repeat(above[:-1], pieces)
    cut = np.append(np.repeat(pos[:-1], pieces) + nth * LONGEST, pos[-1])
    return [_ones(cut, taken, size), *_factors(above, np.arange(above[-1]), int(above[-1]))]


def _ones(pos: Array, crd: Array, columns: int) -> Tensor:
    """The compressed rows of booleans, all True and iso."""
    kind = np.int32 if max(len(crd), columns) < 2**31 else np.int64
    shape = (len(pos) - 1, columns)
    indices = {"pos": {1: pos.astype(kind)}, "crd": {1: crd.astype(kind)}}
    return ow.iso(ow.assemble("csr", shape, **indices, values=np.ones(len(crd), bool), check=False), True)


def expanded_coordinates(
    limits: tuple[int, ...], coordinates: tuple[Any, ...], negative: bool
) -> tuple[list[Array], tuple[int, ...]]:
    """Coordinates of each value, flat, and the shape of the values. Raises for what does not fit together."""
    if len(coordinates) != len(limits) or not limits:
        raise ShapeError(
            f"assembler: {len(coordinates)} arrays of coordinates for {len(limits)} dimensions\n  expected: one for"
            " each, as in ow.assembler((n, n), rows, cols)"
        )
    arrays = [_array(c, d) for d, c in enumerate(coordinates)]
    for d, (a, n) in enumerate(zip(arrays, limits, strict=True)):
        if a.dtype.kind not in "iu" and a.size:
            raise DTypeError(f"assembler: coordinates of dimension {d} are {a.dtype}\n  expected: integers")
        if a.ndim not in (1, 2) or len(a) != len(arrays[0]):
            raise ShapeError(
                f"assembler: coordinates have shapes {[x.shape for x in arrays]}\n  expected: (elements,) or"
                " (elements, k) for each"
            )
        if a.size and ((a.min() < 0 and not negative) or a.max() >= n):
            wrong, help_text = (a.max(), "") if a.max() >= n else (a.min(), "\n  help: ignore_negative=True")
            raise ShapeError(f"assembler: coordinate {wrong} outside of extent {n}{help_text}")
    axes = [a.shape[1:] for a in arrays]
    lead = (len(arrays[0]), *(k for axis in axes for k in axis))
    places, before = [], 0
    for a, axis in zip(arrays, axes, strict=True):
        shape = [len(a)] + [1] * (len(lead) - 1)
        shape[1 + before : 1 + before + len(axis)] = axis
        before += len(axis)
        places.append(np.broadcast_to(a.astype(np.int64).reshape(shape), lead).reshape(-1))
    return places, lead


def _array(coordinates: Any, dim: int) -> Array:
    try:
        return to_numpy(coordinates) if is_torch(coordinates) else np.asarray(coordinates)
    except ValueError as error:
        raise ShapeError(f"assembler: coordinates of dimension {dim} are not an array\n  {error}") from None


def scalar_places(places: list[Array], inner: tuple[int, ...]) -> list[Array]:
    """Coordinates of blocks -> those of their elements, row by row."""
    i, j = (p[:, None] * b for p, b in zip(places, inner, strict=True))
    k = np.arange(inner[0] * inner[1])
    return [(i + k // inner[1]).reshape(-1), (j + k % inner[1]).reshape(-1)]


def row_numbers(dofs: Any, extent: int, name: str) -> Array:
    """Numbers of rows, from these or a mask; those below 0 count from the end."""
    array = to_numpy(dofs) if is_torch(dofs) else np.asarray(dofs)
    if array.dtype == bool:
        if array.shape != (extent,):
            raise ShapeError(f"{name}: a mask of shape {array.shape} for {extent} rows")
        return np.flatnonzero(array)
    array = array.reshape(-1)
    if array.size and array.dtype.kind not in "iu":
        raise DTypeError(f"{name}: numbers of rows are {array.dtype}\n  expected: integers, or a mask of booleans")
    array = array.astype(np.int64)
    if array.size and (array.min() < -extent or array.max() >= extent):
        raise ShapeError(f"{name}: row {array.max() if array.max() >= extent else array.min()} of {extent} rows")
    return np.where(array < 0, array + extent, array)

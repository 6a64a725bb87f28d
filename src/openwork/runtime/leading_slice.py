"""A storage and coordinates of its outermost dimension -> the slice, rows or elements, by ranges of positions.

A[i:j] of CSR shares crd and values and rebases pos; A[rows] copies the rows' ranges; A[i] drops the level as well.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from .. import tuning
from ..codegen import pool
from ..compiler.remap import edges_kernel, points_kernel, ranges_kernel
from ..format import format as parse
from ..format.cached import cached
from ..format.expression import Add, Dim, Div, Mod, Sub, dimensions, rename
from ..format.format import Format, Level
from ..format.level import LevelFormat
from ..ir.loop import Kernel
from ..storage.buffers import Array, address, as_array, empty, length, numpy_dtype, scalar_of, to_numpy, zeros
from ..storage.recorded import of_recording
from ..storage.specified import Ints
from ..storage.storage import Storage
from . import trace
from .conversion.conversion_kernels import Words, call, of_arrays, prepared
from .conversion.ranges import Ranges
from .launch import OneLaunch
from .program import memory_of

__all__ = [
    "FEW", "FEW_ROWS", "RowGather", "diagonal_block", "drop_outer", "is_rows", "join_outer", "outer_block", "outer_dim",
    "pick", "slice_diagonals", "slice_outer", "slice_reads", "take_outer",
]  # fmt: skip

PARALLEL_NSE = tuning.SLICE_PARALLEL
FEW, FEW_ROWS = tuning.SLICE_SMALL, tuning.SLICE_SMALL_ROWS


@lru_cache(maxsize=4096)
def outer_dim(format: Format) -> int | None:
    """The dimension that the outermost level alone holds, where a range of it is a range of every buffer."""
    if not format.levels or format.batch_ndim or not (format.is_ordered and format.is_unique):
        return None
    first = format.levels[0]
    if not isinstance(first.expression, Dim) or not (first.format.is_dense or first.format.is_compressed):
        return None
    if not all(_keeps_ranges(level.format) for level in format.levels):
        return None
    d = first.expression.index
    if any(d in dimensions(level.expression) for level in format.levels[1:]):
        return None
    return d


@lru_cache(maxsize=4096)
def outer_block(format: Format) -> tuple[int, int] | None:
    """The dimension of the outermost level, and how many of its coordinates the level holds together: `outer_dim` and
    1, of BSR the rows and those of a block. A range that begins at a multiple of these is one of every buffer."""
    d = outer_dim(format)
    if d is not None:
        return d, 1
    if not format.levels or format.batch_ndim or not (format.is_ordered and format.is_unique):
        return None
    first, rest = format.levels[0], format.levels[1:]
    e, kind = first.expression, first.format
    if not isinstance(e, Div) or not isinstance(e.base, Dim) or not (kind.is_dense or kind.is_compressed):
        return None
    inner = [x for x in rest if e.base.index in dimensions(x.expression)]
    if any(x.expression != Mod(e.base, e.divisor) or not x.format.is_dense for x in inner):
        return None
    return (e.base.index, e.divisor) if all(_keeps_ranges(x.format) for x in format.levels) else None


@lru_cache(maxsize=1024)
def diagonal_block(format: Format) -> tuple[int, int] | None:
    """Of DIA the dimension along the diagonals, and 1: its coordinates are places in each of the diagonals."""
    if format.nlevels != 2 or format.batch_ndim or not (format.is_ordered and format.is_unique):
        return None
    (offset, kind), (along, below) = ((x.expression, x.format) for x in format.levels)
    if not isinstance(offset, Add | Sub) or not kind.is_compressed or not below.is_range or not isinstance(along, Dim):
        return None
    return along.index, 1


def slice_diagonals(s: Storage, first: int, last: int) -> Storage:
    """The coordinates first <= c < last of `diagonal_block(s.format)`: that part of each diagonal, copied."""
    block = diagonal_block(s.format)
    assert block is not None
    d, offset = block[0], s.format.levels[0].expression
    shape = (*s.shape[:d], last - first, *s.shape[d + 1 :])
    crd = to_numpy(s.crd[0])
    is_subtracted = isinstance(offset, Sub) and offset.right.index == d
    moved = crd + crd.dtype.type(first if is_subtracted else -first)
    low, high = s.format.level_intervals(shape)[0]
    kept = np.flatnonzero((moved >= low) & (moved < high))
    values = to_numpy(s.values).reshape(len(crd), s.shape[d])[kept, first:last].reshape(-1)
    arrays = (np.ascontiguousarray(moved[kept]), None)
    return Storage(shape, s.format, s.scalar, s.fill_value, (_pair(len(kept), s.pos[0]), None), arrays, values)


def _keeps_ranges(level: LevelFormat) -> bool:
    """Whether the children of consecutive parents are contiguous, or pos bounds those of each parent."""
    return level.is_located or level.is_compressed or level.is_loose or level.is_singleton or level.slots is not None


def slice_outer(s: Storage, first: int, last: int) -> Storage:
    """The coordinates first <= c < last of `outer_block(s.format)`, crd and values shared below it.

    Of a format in blocks `first` is a multiple of their extent, and `last` is one, or the extent of the dimension.

    Cost: O(parents in the range), as positions are counted from the range's begin; O(log) on a compressed level.
    """
    block = outer_block(s.format)
    assert block is not None
    d, unit = block
    shape = (*s.shape[:d], last - first, *s.shape[d + 1 :])
    pos, crd = list(s.pos), list(s.crd)
    first, last = first // unit, -(-last // unit)
    begin, end = first, last
    if s.format.levels[0].format.is_compressed:
        all_crd = s.crd[0]
        host = to_numpy(all_crd)
        begin, end = (int(x) for x in np.searchsorted(host, np.array([first, last], host.dtype)))
        crd[0] = all_crd[begin:end] if first == 0 else all_crd[begin:end] - first  # type: ignore[index]
        pos[0] = _pair(end - begin, s.pos[0])
    intervals = s.format.level_intervals(s.shape)
    for at in range(1, s.format.nlevels):
        level = s.format.levels[at].format
        if level.is_loose:
            pos[at] = s.pos[at][2 * begin : 2 * end]  # type: ignore[index]
            return Storage(shape, s.format, s.scalar, s.fill_value, tuple(pos), tuple(crd), s.values)
        if level.is_compressed:
            edges = s.pos[at][begin : end + 1]  # type: ignore[index]
            begin, end = int(edges[0]), int(edges[-1])
            pos[at] = edges if begin == 0 else edges - begin
        elif level.slots is not None:
            begin, end = begin * level.slots, end * level.slots
        elif level.is_located:
            n = intervals[at][1] - intervals[at][0]
            begin, end = begin * n, end * n
        if crd[at] is not None:
            crd[at] = s.crd[at][begin:end]  # type: ignore[index]
    values = s.values[begin:end] if isinstance(s.values, np.ndarray) else of_recording(s.values[begin:end])
    return Storage(shape, s.format, s.scalar, s.fill_value, tuple(pos), tuple(crd), values)


def slice_reads(s: Storage, first: int, last: int) -> Iterator[tuple[str, int, int]]:
    """What `slice_outer` reads and shares: names of buffers, "pos_1" or "values", and ranges of their elements.

    A range comes before it is read here, so that whoever takes it can compare it with a checksum first.
    """
    block = outer_block(s.format)
    assert block is not None
    begin, end = first // block[1], -(-last // block[1])
    if s.format.levels[0].format.is_compressed:
        yield "pos_0", 0, 2
        count, found = length(s.crd[0]), []
        for bound in (begin, end):
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                yield "crd_0", middle, middle + 1
                low, high = (middle + 1, high) if int(s.crd[0][middle]) < bound else (low, middle)  # type: ignore[index]
            found.append(low)
        begin, end = found
        yield "crd_0", begin, end
    intervals = s.format.level_intervals(s.shape)
    for at in range(1, s.format.nlevels):
        level = s.format.levels[at].format
        if level.is_loose:
            yield f"pos_{at}", 2 * begin, 2 * end
            for below in range(at, s.format.nlevels):
                rest = (("pos", s.pos[below]), ("crd", s.crd[below]))
                yield from ((f"{k}_{below}", 0, length(b)) for k, b in rest if b is not None)
            yield "values", 0, length(s.values)
            return
        if level.is_compressed:
            yield f"pos_{at}", begin, end + 1
            begin, end = int(s.pos[at][begin]), int(s.pos[at][end])  # type: ignore[index]
        elif level.slots is not None:
            begin, end = begin * level.slots, end * level.slots
        elif level.is_located:
            n = intervals[at][1] - intervals[at][0]
            begin, end = begin * n, end * n
        if s.crd[at] is not None:
            yield f"crd_{at}", begin, end
    yield "values", begin, end


def _pair(end: int, like: Array) -> Array:
    """pos of an outermost compressed level."""
    return as_array(np.array([0, end], to_numpy(like).dtype), like=like)


def join_outer(parts: Sequence[Storage]) -> Storage | None:
    """Tensors of one format, concatenated along `outer_dim` of it; None where index buffers would overflow."""
    first = parts[0]
    d = outer_dim(first.format)
    assert d is not None
    pos, crd = list(first.pos), list(first.crd)
    extent = sum(s.shape[d] for s in parts)
    total = sum(length(s.values) for s in parts)
    for at, level in enumerate(first.format.levels):
        crds = [s.crd[at] for s in parts]
        sizes = [0 if b is None else length(b) for b in crds]
        bases = list(accumulate(sizes, initial=0))
        if "pos" in level.format.buffers:
            scalars = {scalar_of(b) for s in parts for b in (s.pos[at], s.crd[at]) if b is not None}
            if "i32" in scalars and max(bases[-1], extent, total) >= 2**31:
                return None
        edges = [to_numpy(s.pos[at]) for s in parts if s.pos[at] is not None]
        if at == 0 and edges:
            starts = accumulate((s.shape[d] for s in parts), initial=0)
            crds = [to_numpy(b) + to_numpy(b).dtype.type(n) for b, n in zip(crds, starts, strict=False)]
            pos[at] = _pair(bases[-1], first.pos[0])
        elif edges:
            loose = level.format.is_loose
            shifted = [e[0 if loose or not k else 1 :] + e.dtype.type(bases[k]) for k, e in enumerate(edges)]
            pos[at] = as_array(np.concatenate(shifted), like=first.pos[at])
        if crds[0] is not None:
            crd[at] = as_array(np.concatenate([to_numpy(b) for b in crds]), like=first.crd[at])
    values = as_array(np.concatenate([to_numpy(s.values) for s in parts]), like=first.values)
    shape = (*first.shape[:d], extent, *first.shape[d + 1 :])
    return Storage(shape, first.format, first.scalar, first.fill_value, tuple(pos), tuple(crd), values)


@cached(1024)
def _without(format: Format, d: int) -> Format | None:
    """The format without its outermost level, which holds dimension d."""
    first, rest = format.levels[0].format, list(format.levels[1:])
    if not rest:
        return None
    if rest[0].format.is_singleton:
        if not first.is_compressed:
            return None
        rest[0] = Level(rest[0].expression, replace(first, unique=rest[0].format.unique))
    elif not first.is_dense and not rest[0].format.is_compressed:
        return None
    position = [k - (k > d) for k in range(format.ndim)]
    levels = tuple(Level(rename(level.expression, position), level.format) for level in rest)
    reduced = Format((*format.dims[:d], *format.dims[d + 1 :]), levels)
    return None if reduced.is_dense else reduced


def drop_outer(s: Storage) -> Storage | None:
    """The tensor of rank one less, where the outermost dimension's extent is 1; None where its level holds more."""
    d = outer_dim(s.format)
    format = None if d is None else _without(s.format, d)
    if d is None or format is None:
        return None
    shape = (*s.shape[:d], *s.shape[d + 1 :])
    pos, crd = list(s.pos[1:]), list(s.crd[1:])
    if s.format.levels[0].format.is_compressed:
        if pos[0] is None:
            pos[0] = _pair(length(s.crd[0]), s.pos[0])
        elif not length(s.crd[0]):
            pos[0] = zeros(2, scalar_of(pos[0]), pos[0])
    return Storage(shape, format, s.scalar, s.fill_value, tuple(pos), tuple(crd), s.values)


def is_rows(format: Format) -> bool:
    """Whether the levels are dense, compressed, and dense ones below: CSR and its kind."""
    kinds = [level.format for level in format.levels]
    return len(kinds) > 1 and kinds[1].is_compressed and all(kind.is_dense for kind in (kinds[0], *kinds[2:]))


def _copy_kernel(pos: str, crd: str, scalar: str) -> tuple[str, Callable[[], Kernel]]:
    """The key of the kernel that copies children of parents, and what builds it."""
    return f"take ranges {pos} {crd} {scalar}", lambda: ranges_kernel(pos, crd, scalar)


class RowGather:
    """`A[rows]` of types and a shape, not too large, where rows are coordinates of the outermost dimension, the first.

    Two launches: one counts what is taken, one copies it.
    """

    __slots__ = ("block", "copy", "crd", "edges", "is_torch", "pos", "values")

    def __init__(self, s: Storage) -> None:
        pos, crd = scalar_of(s.pos[1]), scalar_of(s.crd[1])
        edges = prepared(f"take edges {pos}", lambda: edges_kernel(pos))[0]
        self.edges = OneLaunch(edges, {"extent": s.shape[0]}, ("rows", "count", "pos", "ends", "b_pos"))
        self.block = math.prod(hi - lo for lo, hi in s.format.level_intervals(s.shape)[2:])
        given = ("rows", "ends", "pos", "crd", "vals", "b_crd", "b_vals")
        self.copy = OneLaunch(prepared(*_copy_kernel(pos, crd, s.scalar))[0], {"block": self.block}, given)
        self.pos, self.crd = numpy_dtype(pos), numpy_dtype(crd)
        self.is_torch = s.library == "torch"
        self.values = numpy_dtype(s.scalar) if self.is_torch else s.values.dtype

    @staticmethod
    def of(s: Storage) -> RowGather | None:
        """The gather of storages as this one; None for other formats, devices, and a scalar type that NumPy has not."""
        applies = s.device == "cpu" and outer_dim(s.format) == 0 and is_rows(s.format)
        return RowGather(s) if applies and not (s.library == "torch" and s.scalar == "bf16") else None

    def __call__(self, s: Storage, rows: Ints) -> Storage | None:
        """The tensor of `rows`, a writable array; None where a row is out of bounds, or there is much to take."""
        count = rows.shape[0]
        if count > FEW_ROWS or s.values.shape[0] > FEW:
            return None
        ends, pos = np.empty(count + 1, np.int64), np.empty(count + 1, self.pos)
        given = (s.pos[1], s.crd[1], s.values)
        old_pos, old_crd, old_values = memory_of(given) if self.is_torch else given
        self.edges((rows, count, old_pos, ends, pos))
        total = int(ends[count])
        if total < 0:
            return None
        crd, values = np.empty(total, self.crd), np.empty(total * self.block, self.values)
        self.copy((rows, ends, old_pos, old_crd, old_values, crd, values), 0, count)
        if self.is_torch:
            pos, crd, values = map(sys.modules["torch"].from_numpy, (pos, crd, values))
        shape = (count, *s.shape[1:])
        return Storage(
            shape, s.format, s.scalar, s.fill_value, (None, pos, *s.pos[2:]), (None, crd, *s.crd[2:]), values
        )


def take_outer(s: Storage, rows: Ints) -> Storage | None:
    """The slices at coordinates `rows` of `outer_dim(s.format)`, in order; None for formats not row by row."""
    d = outer_dim(s.format)
    if d is None or not is_rows(s.format):
        return None
    scalar, rows = scalar_of(s.pos[1]), np.require(rows, np.int64, ["C", "W"])
    ends, pos = np.empty(len(rows) + 1, np.int64), as_array(np.empty(len(rows) + 1, numpy_dtype(scalar)), like=s.pos[1])
    words: Words = {"rows": address(rows), "count": len(rows), "extent": s.shape[d], "pos": address(s.pos[1])}
    call(f"take edges {scalar}", lambda: edges_kernel(scalar), words | {"ends": address(ends), "b_pos": address(pos)})
    total = int(ends[-1])
    if total >= 2**31 and "i32" in (scalar, scalar_of(s.crd[1])):
        return None
    block = 1
    for lo, hi in s.format.level_intervals(s.shape)[2:]:
        block *= hi - lo
    index = scalar_of(s.crd[1])
    crd, values = empty(total, index, s.like), empty(total * block, s.scalar, s.like)
    arguments: dict[str, Any] = {"rows": address(rows), "block": block, "pos": address(s.pos[1]), "ends": address(ends)}
    arguments |= {"crd": address(s.crd[1]), "vals": s.values, "b_crd": address(crd), "b_vals": address(values)}
    (executable, pick, _), arguments = of_arrays(*_copy_kernel(scalar, index, s.scalar), arguments)
    threads = pool.get_num_threads() if total * block >= PARALLEL_NSE else 1
    if threads > 1:
        pool.parallel(executable, pick(arguments), _even_cuts(ends, threads), total * block)
    else:
        executable.run_sized(total * block, pick(arguments), 0, len(rows))
    shape = (*s.shape[:d], len(rows), *s.shape[d + 1 :])
    result = Storage(shape, s.format, s.scalar, s.fill_value, (None, pos, *s.pos[2:]), (None, crd, *s.crd[2:]), values)
    if trace.active():
        trace.moved("ranges of the outermost dimension", (s,), result)
    return result


def pick(s: Storage, at: Mapping[int, Ints]) -> Storage | None:
    """The elements at single coordinates of a matrix; None where rows cannot be searched by bisection."""
    d = outer_dim(s.format)
    if d is None or len(s.shape) != 2 or not is_rows(s.format) or s.format.nlevels != 2:
        return None
    rows, cols = np.ascontiguousarray(at[d]), np.ascontiguousarray(at[1 - d])
    places = np.empty(len(rows), np.int64)
    scalar, index = scalar_of(s.pos[1]), scalar_of(s.crd[1])
    if len(rows) >= 2**31:
        index = "i64"
    arguments: Words = {
        "rows": address(rows),
        "cols": address(cols),
        "pos": address(s.pos[1]),
        "crd": address(s.crd[1]),
    }
    crd_scalar = scalar_of(s.crd[1])
    call(
        f"points {scalar} {crd_scalar}",
        lambda: points_kernel(scalar, crd_scalar),
        arguments | {"places": address(places)},
        Ranges((0, len(rows))),
    )
    keep = np.flatnonzero(places >= 0)
    crd = as_array(keep.astype(np.int32 if index == "i32" else np.int64), like=s.crd[1])
    pos = as_array(np.array([0, len(keep)], to_numpy(crd).dtype), like=crd)
    places = places[keep]
    values = (
        s.values[places] if type(s.values) is np.ndarray else s.values.index_select(0, as_array(places, like=s.values))
    )
    return Storage((len(rows),), parse("coo", 1), s.scalar, s.fill_value, (pos,), (crd,), values)


def _even_cuts(ends: np.ndarray[Any, Any], parts: int) -> Sequence[int]:
    """Ranges of rows with about as many elements each."""
    work = np.linspace(0, int(ends[-1]), parts + 1)[1:-1]
    inner = np.searchsorted(ends, work).tolist()
    return [0, *sorted(min(len(ends) - 1, int(c)) for c in inner), len(ends) - 1]

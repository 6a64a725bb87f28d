"""A sparse tensor and the dimensions that stay -> its fibres that store something, as rows, and their coordinates.

    T[i,j,k], k reduced  ->  rows[f,k] = T[i_f, j_f, k], and (i_f, j_f) of each fibre f

Sums, all other reductions and products with dense arrays whose result is sparse are computed on the rows: the result
stores the fibres of which the tensor stores something, and `kept_format` says in which levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from functools import lru_cache
from string import ascii_letters
from typing import Any

import numpy as np

from .. import tuning
from ..classes import define, frozen
from ..compiler.schedule.kept_format import DENSE, kept_format, level_order
from ..format import coo
from ..format.expression import Dim
from ..format.format import Format, Level
from ..runtime import trace
from ..runtime.conversion.convert import convert
from ..runtime.conversion.remap import has_gaps
from ..runtime.outer_ranges import outer_ranges, ranges_of
from ..storage.buffers import as_array, flat, length, numpy_dtype, scalar_of, to_numpy
from ..storage.recorded import is_plain
from ..storage.scalars import python_scalar
from ..storage.storage import LARGEST, Storage
from ..storage.structure import Structure, keep
from ..storage.watch import kept as kept_buffer
from ..tensor.tensor import Tensor
from .result_format import ROOM, fits

__all__ = [
    "SparseReduction", "StoredFibres", "from_fibre_values", "in_format", "in_kept_format", "reduced_fibres",
    "sparse_reduction", "stored_fibres",
]  # fmt: skip

Ints = np.ndarray[Any, np.dtype[Any]]
KEPT = tuning.MOVES_KEPT


@frozen
class StoredFibres:
    """The fibres of a tensor which store something, numbered in the order of their coordinates.

    rows : the elements by fibre number and the reduced dimensions
    kept, reduced : the dimensions that number the fibres, and the others, as `crd` and `rows` have them
    crd : the coordinates of the fibres, an array for each dimension of `kept`
    moved : whether the values of the rows may be others than the tensor's, or in another order
    """

    rows: Storage
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    crd: tuple[Ints, ...]
    moved: bool


def stored_fibres(t: Tensor, kept: Sequence[int], in_order: bool = False) -> StoredFibres:
    """The fibres of a tensor that store something, numbered by the dimensions `kept`.

    in_order : whether the rows are to be in order too, one behind the other
    """
    order, n = level_order(t.format, range(t.ndim)), len(kept)
    moved = any(not isinstance(x.expression, Dim) or x.format.batched for x in t.format.levels)
    moved = moved or not (t.format.is_unique and t.format.is_ordered) or has_gaps(t._storage)
    leads = set(order[:n]) == set(kept)
    if not leads and (in_order or math.prod(t.shape[d] for d in kept) > LARGEST):
        others = [d for d in range(t.ndim) if d not in kept]
        order, leads = [dims[k] for dims in (kept, others) for k in level_order(t.format, dims)], True
        moved = True
    s = convert(t._storage.permute(order), coo(t.ndim))
    numbering = [k for k, d in enumerate(order) if d in kept]
    number = _leading if leads else _scattered
    rows, crd = number(s, numbering, [k for k in range(t.ndim) if k not in numbering])
    dims = tuple(order[k] for k in numbering)
    return StoredFibres(rows, dims, tuple(d for d in order if d not in kept), crd, moved)


def _leading(s: Storage, kept: list[int], reduced: list[int]) -> tuple[Storage, tuple[Ints, ...]]:
    """The rows of COO whose first dimensions number the fibres: (f : dense), with the other levels below."""
    crd = [to_numpy(c) for c in s.crd[: len(kept)] if c is not None]
    new = np.ones(length(s.values), np.bool_)
    if len(new):
        new[1:] = False
        for c in crd:
            new[1:] |= c[1:] != c[:-1]
    starts = np.flatnonzero(new)
    ends = np.append(starts, len(new)).astype(crd[0].dtype)
    pos = as_array(ends, like=s.values)
    format, shape = _rows_format(len(reduced)), (len(starts), *s.shape[len(kept) :])
    all_pos = (None, pos, *(None,) * (len(reduced) - 1))[: 1 + len(reduced)]
    rows = Storage(shape, format, s.scalar, s.fill_value, all_pos, (None, *s.crd[len(kept) :]), s.values)
    return rows, tuple(np.ascontiguousarray(c[starts]) for c in crd)


@lru_cache
def _rows_format(reduced: int) -> Format:
    """Rows, with COO of so many dimensions below."""
    below = [Level(Dim(1 + k), x.format) for k, x in enumerate(coo(reduced).levels)]
    return Format(tuple(ascii_letters[: 1 + reduced]), (Level(Dim(0), DENSE), *below))


def _scattered(s: Storage, kept: list[int], reduced: list[int]) -> tuple[Storage, tuple[Ints, ...]]:
    """The rows of COO in any order: COO by fibre number, over the same values."""
    crd, extents = [to_numpy(s.crd[k]) for k in kept], [s.shape[k] for k in kept]
    keys = np.zeros(len(crd[0]), np.int64)
    for c, extent in zip(crd, extents, strict=True):
        keys *= extent
        keys += c
    distinct, numbers = _numbered(keys, math.prod(extents))
    dtype = crd[0].dtype
    arrays = (as_array(numbers.astype(dtype), like=s.values), *(s.crd[k] for k in reduced))
    format = coo(1 + len(reduced), ordered=False)
    pos = (s.pos[0], *(None,) * len(reduced))
    shape = (len(distinct), *(s.shape[k] for k in reduced))
    fibre_crd = []
    for extent in reversed(extents):
        distinct, c = np.divmod(distinct, max(extent, 1))
        fibre_crd.append(c.astype(dtype))
    return Storage(shape, format, s.scalar, s.fill_value, pos, arrays, s.values), tuple(reversed(fibre_crd))


def _numbered(keys: Ints, size: int) -> tuple[Ints, Ints]:
    """Keys below `size` -> the distinct ones in order, and the number among these of each."""
    if size > ROOM + 8 * len(keys):
        distinct, numbers = np.unique(keys, return_inverse=True)
        return distinct, numbers
    seen = np.zeros(size, np.bool_)
    seen[keys] = True
    number_of = np.cumsum(seen)
    return np.flatnonzero(seen), number_of[keys] - 1


def from_fibre_values(
    values: Any, crd: Sequence[Ints], shape: Sequence[int], order: Sequence[int], fill: Any, target: Format
) -> Tensor:
    """Values of fibres, or rows of them, at coordinates in order -> a Tensor in the format `target`, or in COO where
    that has far more positions than there are values.

    shape : the extents of the dimensions of `crd`, then of those of the rows
    order : the dimension of the result that each of them is
    """
    values = flat(values)
    s = Storage.over(_structure(crd, shape, order, values), scalar_of(values), fill, values)
    return Tensor._from_storage(in_format(s, target))


def _structure(crd: Sequence[Ints], shape: Sequence[int], order: Sequence[int], like: Any) -> Structure:
    """Coordinates in order -> the structure of a COO tensor with its dimensions where `order` says."""
    dense = len(shape) - len(crd)
    ends = np.array([0, len(crd[0])], crd[0].dtype)
    pos = (as_array(ends, like=like), *(None,) * (len(shape) - 1))
    arrays = (*[as_array(c, like=like) for c in crd], *(None,) * dense)
    format = coo(len(shape), dense=dense).permute([list(order).index(d) for d in range(len(shape))])
    extent_of = dict(zip(order, shape, strict=True))
    return Structure(tuple(extent_of[d] for d in range(len(shape))), format, pos, arrays)


def in_format(s: Storage, target: Format) -> Storage:
    return convert(s, target if fits(target, s.shape, length(s.values)) else coo(len(s.shape)))


@define
class _Places:
    """What a sparse reduction takes from the structure alone.

    rows : the structure of the rows; None of a tensor whose elements had to be moved
    crd, extents, places : the coordinates of the fibres, the extents of their dimensions and of others, and which
        dimension of the result each is
    target, structure : the result's format, and the structure of its values as COO
    over : the axes of the rows that are reduced, one or several
    fills : the fill values of results, by the key of the reduction
    """

    rows: Structure | None
    crd: list[Ints]
    extents: tuple[int, ...]
    places: tuple[int, ...]
    target: Format
    structure: Structure
    over: int | tuple[int, ...]
    fills: dict[Any, Any] = field(default_factory=dict)


@frozen
class SparseReduction:
    """A reduction whose result is sparse: the fibres as rows, and where their values stand in the result."""

    rows: Storage
    places: _Places

    def no_rows(self) -> Storage:
        """One row that stores nothing, of the same format, extents, type and fill value."""
        s = self.rows
        like = next((x for x in s.pos if x is not None), None)
        if like is None:  # no dimension is reduced: a row is an element
            values = as_array(np.full(1, s.fill_value, numpy_dtype(s.scalar)), like=s.values)
            return Storage((1,), s.format, s.scalar, s.fill_value, s.pos, s.crd, values)
        ends, nothing = (as_array(np.zeros(n, to_numpy(like).dtype), like=s.values) for n in (2, 0))
        pos = tuple(None if x is None else ends for x in s.pos)
        crd = tuple(None if x is None else nothing for x in s.crd)
        values = as_array(np.zeros(0, numpy_dtype(s.scalar)), like=s.values)
        return Storage((1, *s.shape[1:]), s.format, s.scalar, s.fill_value, pos, crd, values)

    def result(self, values: Any, fill: Any, stored: Ints | None = None) -> Tensor:
        """A value for each fibre, or several -> the result; of the fibres `stored` alone, where these are given."""
        p, fill = self.places, python_scalar(fill, scalar_of(values))
        if stored is not None:
            values = values[as_array(stored, like=values)]
            return from_fibre_values(values, [c[stored] for c in p.crd], p.extents, p.places, fill, p.target)
        s = Storage.over(p.structure, scalar_of(values), fill, flat(values))
        return Tensor._from_storage(in_format(s, p.target))


def sparse_reduction(
    t: Tensor, axes: tuple[int, ...], keepdims: bool, several: int | None = None, target: Format | None = None
) -> SparseReduction | None:
    """How a tensor is reduced over `axes` where the result is sparse; None where it is dense.

    several : the results of each fibre, along a last dimension
    target : a sparse format that the result is to have in any case
    """
    if (target is None and len(axes) > t.ndim - 2) or t.format.is_dense or t.device != "cpu":
        return None
    s, key = t._storage, ("fibres", axes, keepdims, several, target)
    known: _Places | None = s.facts.get(key)
    if known is not None and known.rows is not None and known.structure.watch.holds() and not trace.steps:
        return SparseReduction(Storage.over(known.rows, s.scalar, s.fill_value, s.values), known)
    kept = [d for d in range(t.ndim) if d not in axes]
    dims = tuple(range(t.ndim)) if keepdims else tuple(kept)
    free = () if several is None else (several,)
    target = target or kept_format(t.format, dims, len(free), axes if keepdims else ())
    if target is None:
        return None
    fibres, unit = stored_fibres(t, kept), axes if keepdims else ()
    crd = [*fibres.crd, *[np.zeros_like(fibres.crd[0])] * len(unit)]
    extents = (*(t.shape[d] for d in fibres.kept), *(1 for _ in unit), *free)
    places = (*(dims.index(d) for d in (*fibres.kept, *unit)), *(len(dims) + k for k in range(len(free))))
    structure = _structure(crd, extents, places, s.values)
    over = 1 if len(axes) == 1 else tuple(range(1, 1 + len(axes)))
    keeps = length(s.values) <= KEPT and not fibres.moved and is_plain(s.values) and not trace.steps
    rows = fibres.rows.structure if keeps else None
    if keeps:
        crd_kept = tuple(None if c is None else kept_buffer(c) for c in structure.crd)
        structure = Structure(structure.shape, structure.format, structure.pos, crd_kept)
    known = _Places(rows, crd, extents, places, target, structure, over)
    if keeps:
        keep(s.facts, key, known)
    return SparseReduction(fibres.rows, known)


def reduced_fibres(
    t: Tensor,
    axes: tuple[int, ...],
    keepdims: bool,
    reduce: Callable[[Tensor, Any], Tensor],
    several: int | None = None,
    key: Hashable = None,
    target: Format | None = None,
) -> Tensor | None:
    """A reduction of a sparse tensor over `axes` whose result is sparse; None where it is dense.

    reduce : the reduction of a tensor over one axis or several, whose result is a vector
    several : the results of each fibre, along a last dimension of those of `reduce` and of what is returned
    key : says what `reduce` is, where its fill value may be kept
    target : a sparse format that the result is to have in any case
    """
    if several is None and target is None and (found := ranges_of(t._storage)) is not None and found[0] not in axes:
        return _joined_ranges(t, axes, keepdims, reduce, found[0], key)
    plan = sparse_reduction(t, axes, keepdims, several, target)
    if plan is None:
        return None
    places, fill = plan.places, None
    values = reduce(Tensor._from_storage(plan.rows), places.over).to_dense()
    if 0 not in places.extents:
        fill = places.fills.get(key) if key is not None else None
        if fill is None:
            fill = flat(reduce(Tensor._from_storage(plan.no_rows()), places.over).to_dense())[0].item()
            keep(places.fills, key, fill)
    return plan.result(values, 0 if fill is None else fill)


def _joined_ranges(
    t: Tensor, axes: tuple[int, ...], keepdims: bool, reduce: Callable[[Tensor, Any], Tensor], outer: int, key: Hashable
) -> Tensor | None:
    """`reduced_fibres` of a large tensor range by range of its outermost dimension, which stays."""
    parts = []
    for _, _, s in outer_ranges(t._storage):
        part = reduced_fibres(Tensor._from_storage(s), axes, keepdims, reduce, key=key)
        if part is None:
            return None
        parts.append(part)
    joined: Any = np.concatenate(parts, axis=outer if keepdims else outer - sum(a < outer for a in axes))
    return in_kept_format(joined, t, axes, keepdims)


def in_kept_format(result: Tensor, t: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """The reduction of a tensor over axes in the format that it has by the rule; dense ones as they are."""
    dims = tuple(d for d in range(t.ndim) if keepdims or d not in axes)
    target = kept_format(t.format, dims, 0, axes if keepdims else ())
    return result if target is None else Tensor._from_storage(in_format(result._storage, target))

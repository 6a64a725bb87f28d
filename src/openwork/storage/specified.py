"""A storage -> the coordinates and the number of its specified elements, by plain NumPy.

The level functions' text is evaluated over whole arrays, level by level. It is the reference that tests compare
compiled kernels with, and counts specified elements where padding has to be excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..classes import frozen
from ..format.format import Format
from ..format.functions import evaluate
from ..interruptible import repeat
from .buffers import length, to_numpy

__all__ = ["Ints", "State", "children", "coordinates", "count", "level_coordinates", "may_pad", "root"]

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class Indexed(Protocol):
    """What says which elements are specified: a `Storage` has it."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def format(self) -> Format: ...
    @property
    def pos(self) -> Sequence[Any]: ...
    @property
    def crd(self) -> Sequence[Any]: ...
    @property
    def batches(self) -> int: ...
    @property
    def positions(self) -> tuple[int, ...]: ...


def coordinates(storage: Indexed) -> tuple[Ints, Ints]:
    """Coordinates, shape (ndim, nse), and positions in `values`, shape (nse,), of all specified elements.

    In storage order; duplicates appear as often as they are stored.
    """
    levels, leaf = level_coordinates(storage, len(storage.format.levels))
    dims = [_dimension(form, levels, len(leaf)) for form in storage.format.inverse]
    valid = np.ones(len(leaf), np.bool_)
    for x, n in zip(dims, storage.shape, strict=True):
        valid &= _inside(x, n)
    if not valid.all():
        keep = np.flatnonzero(valid)
        dims, leaf = [x[keep] for x in dims], leaf[keep]
    return np.array(dims, np.int64).reshape(len(dims), len(leaf)), leaf


@frozen
class State:
    """Present positions of a level: their coordinates on all levels so far, batch slice and position in the slice."""

    coordinates: list[Ints]
    slice: Ints
    position: Ints


def level_coordinates(storage: Indexed, depth: int) -> tuple[list[Ints], Ints]:
    """Level coordinates of the first `depth` levels, and positions at the last of them, over all batch slices."""
    state, slices = root(storage), storage.batches
    for at in range(storage.format.batch_ndim, depth):
        state = children(state, storage, at)[0]
    if depth <= storage.format.batch_ndim or not slices:
        return state.coordinates, state.slice
    return state.coordinates, state.slice * (storage.positions[depth - 1] // slices) + state.position


def root(storage: Indexed) -> State:
    """One row per batch slice."""
    intervals = storage.format.level_intervals(storage.shape)[: storage.format.batch_ndim]
    grid = np.indices([hi - lo for lo, hi in intervals], np.int64).reshape(len(intervals), storage.batches)
    return State(list(grid), np.arange(storage.batches), np.zeros(storage.batches, np.int64))


@frozen
class _Sliced:
    """A buffer indexed inside batch slices."""

    data: np.ndarray[Any, Any]
    base: Ints

    def __getitem__(self, index: Ints) -> np.ndarray[Any, Any]:
        elements: np.ndarray[Any, Any] = self.data[self.base + index]
        return elements if elements.dtype == np.bool_ else elements.astype(np.int64)


def children(state: State, storage: Indexed, at: int) -> tuple[State, Ints, Ints]:
    """The state one level down; for each child the row of its parent, and its place in the level's crd buffer."""
    level = storage.format.levels[at].format
    functions, slices = level.functions, max(storage.batches, 1)
    lo, hi = storage.format.level_intervals(storage.shape)[at]

    def scope(p: Ints, slice: Ints) -> dict[str, Any]:
        names: dict[str, Any] = {"lo": lo, "hi": hi, "N": hi - lo, "valid_lo": lo, "valid_hi": hi, "p": p}
        names.update(zip(level.parameters, level.arguments, strict=True))
        for name, buffer in (("pos", storage.pos[at]), ("crd", storage.crd[at])):
            if buffer is not None:
                names[name] = _Sliced(to_numpy(buffer, detach=True), slice * (length(buffer) // slices))
        return names

    names = scope(state.position, state.slice)
    rows = len(state.position)
    begin, end = (np.broadcast_to(np.asarray(evaluate(b, names), np.int64), (rows,)) for b in functions.bounds)
    counts = np.maximum(end - begin, 0)
    row = repeat(np.arange(rows), counts)
    walk = np.arange(len(row)) - repeat(np.cumsum(counts) - counts, counts) + begin[row]
    names = scope(state.position[row], state.slice[row])
    if functions.iterate.name == "COORDINATE":
        names["c"] = walk
        q = names["q"] = np.asarray(evaluate(functions.position, names), np.int64)
    else:
        q = names["q"] = walk
    c = np.asarray(evaluate(functions.coordinate, names), np.int64)
    if functions.present is not None:
        keep = np.flatnonzero(evaluate(functions.present, names))
        row, q, c = row[keep], q[keep], c[keep]
    slice, crd = state.slice[row], storage.crd[at]
    raw = q if crd is None else slice * (length(crd) // slices) + q
    return State([*(x[row] for x in state.coordinates), c], slice, q), row, raw


def _dimension(form: Sequence[tuple[int, int]], levels: Sequence[Ints], n: int) -> Ints:
    total = np.zeros(n, np.int64)
    for level, coefficient in form:
        total += coefficient * levels[level]
    return total


def _inside(x: Ints, extent: int) -> Bools:
    inside: Bools = (x >= 0) & (x < extent)
    return inside


def _all_inside(dims: Sequence[Ints], extents: Sequence[int]) -> Ints:
    inside = np.ones(len(dims[0]), np.bool_)
    for x, n in zip(dims, extents, strict=True):
        inside &= _inside(x, n)
    return inside.astype(np.int64)


def may_pad(format: Format, shape: Sequence[int]) -> bool:
    """Whether a tensor may store places that are no elements: empty slots, or outside its shape."""
    return format.is_padded or format.ragged(shape)


def count(storage: Indexed) -> int:
    """The number of specified elements: stored ones without padding.

    Cost: O(1) where nothing is padded; O(positions) where a bitmap is the only padding; else O(positions above the
    trailing dense levels).
    """
    format = storage.format
    if not may_pad(format, storage.shape):
        return storage.positions[-1] if format.levels else 1
    bitmap = storage.crd[-1] if format.levels[-1].format.is_bitmap and not format.ragged(storage.shape) else None
    if bitmap is not None and not any(level.format.functions.padded for level in format.levels[:-1]):
        return int(np.count_nonzero(to_numpy(bitmap)))
    stored = [at for at, level in enumerate(format.levels) if level.format.buffers]
    depth = max(stored[-1] + 1 if stored else 0, format.batch_ndim)
    levels, leaf = level_coordinates(storage, depth)
    base = [_dimension([f for f in form if f[0] < depth], levels, len(leaf)) for form in format.inverse]
    total = np.ones(len(leaf), np.int64)
    for below, dims in _groups(format.inverse, depth, len(format.levels)):
        total *= _choices(storage, below, dims, [base[d] for d in dims])
    return int(total.sum())


def _groups(inverse: Any, depth: int, nlevels: int) -> list[tuple[list[int], list[int]]]:
    """Trailing levels and dimensions, in groups such that no dimension depends on levels of two groups."""
    groups: list[tuple[set[int], set[int]]] = [({level}, set()) for level in range(depth, nlevels)]
    for dim, form in enumerate(inverse):
        own_levels = {level for level, _ in form if level >= depth}
        overlapping = [g for g in groups if g[0] & own_levels]
        groups = [g for g in groups if not g[0] & own_levels]
        groups.append(
            (set().union(own_levels, *(g[0] for g in overlapping)), {dim}.union(*(g[1] for g in overlapping)))
        )
    return [(sorted(levels), sorted(dims)) for levels, dims in groups]


def _choices(storage: Indexed, levels: list[int], dims: list[int], base: list[Ints]) -> Ints:
    """For each parent the number of coordinates of `levels` that keep the dimensions `dims` inside the shape."""
    intervals = storage.format.level_intervals(storage.shape)
    forms = [dict(storage.format.inverse[d]) for d in dims]
    extents = [storage.shape[d] for d in dims]
    if not levels:
        return _all_inside(base, extents)
    widths = [intervals[x][1] - intervals[x][0] for x in levels]
    widest = levels[widths.index(max(widths))]
    others = [x for x in levels if x != widest]
    if len(dims) == 1 and others:
        return _choices_of_one(intervals, levels, forms[0], extents[0], base[0])
    out = np.zeros(len(base[0]) if base else 1, np.int64)
    for place in product(*(range(*intervals[x]) for x in others)):
        fixed = [sum(form.get(x, 0) * c for x, c in zip(others, place, strict=True)) for form in forms]
        starts = [b + c for b, c in zip(base, fixed, strict=True)]
        out += _width(intervals[widest], [form.get(widest, 0) for form in forms], starts, extents, out)
    return out


def _choices_of_one(intervals: Any, levels: list[int], form: dict[int, int], extent: int, base: Ints) -> Ints:
    """`_choices` of several levels and one dimension: what the levels add to it is sorted once for all parents."""
    steps = np.zeros(1, np.int64)
    for x in levels:
        steps = (steps[:, None] + form.get(x, 0) * np.arange(*intervals[x], dtype=np.int64)).reshape(-1)
    steps.sort()
    fitting: Ints = np.searchsorted(steps, extent - base) - np.searchsorted(steps, -base)
    return fitting


def _width(interval: tuple[int, int], factors: list[int], starts: list[Ints], extents: list[int], like: Ints) -> Ints:
    """How many c of an interval keep each `start + factor * c` inside its extent."""
    lo, hi = np.full_like(like, interval[0]), np.full_like(like, interval[1])
    for b, a, n in zip(starts, factors, extents, strict=True):
        if a == 0:
            hi = np.where(_inside(b, n), hi, lo)
            continue
        first, last = (-b, n - 1 - b) if a > 0 else (b - (n - 1), b)
        lo = np.maximum(lo, -((-first) // abs(a)))
        hi = np.minimum(hi, last // abs(a) + 1)
    widths: Ints = np.maximum(hi - lo, 0)
    return widths

"""A merge of matrices of one row -> the merge of vectors, whose loop can be cut into ranges, and back."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ...codegen import pool
from ...compiler.coiterate.merge_formats import Dims
from ...compiler.conversion.level_runs import runs
from ...compiler.schedule.coiterate import MergeSchedule
from ...format.cached import cached
from ...format.expression import Dim, dimensions, rename
from ...format.format import Format, Level
from ...storage.buffers import length
from ...storage.storage import Storage
from . import partition as merge_chunks
from .gallop_choice import drivers_of

__all__ = ["as_matrix", "as_vectors"]


def as_vectors(
    plan: MergeSchedule, storages: tuple[Storage, ...], shape: tuple[int, ...]
) -> tuple[MergeSchedule, tuple[Storage, ...]] | None:
    """The plan and its operands without an outermost dimension of extent 1 that all have; None where there is none, the
    work is too little for several threads, or one operand is far shorter than another."""
    if pool.get_num_threads() < 2 or sum(length(s.values) for s in storages) < merge_chunks.MINIMUM:
        return None
    target = plan.target
    d = _single_row_dimension(target, shape)
    if d is None or any(
        _single_row_dimension(s.format, s.shape) != d or plan.dims[n] != _all_dimensions(shape)
        for n, s in _named(plan, storages)
    ):
        return None
    if drivers_of(plan.gallop_chooser, storages, shape, target):
        return None
    return _of_row(plan, d), tuple(_vector(s, d) for s in storages)


@lru_cache(256)
def _of_row(plan: MergeSchedule, d: int) -> MergeSchedule:
    """The plan of the vectors that the only row's elements are."""
    target = _without(plan.target, d)
    dims: dict[str, Dims] = dict.fromkeys(plan.dims, tuple(range(target.ndim)))
    return replace(
        plan, text=f"{plan.text}, the row alone", dims=dims, steps=(None,) * len(dims), target=target, format=target,
        runs=runs(target), gallop_chooser=None, converts=False,
    )  # fmt: skip


def as_matrix(s: Storage, target: Format, shape: tuple[int, ...]) -> Storage:
    """A merged row as the matrix of one row, over the same buffers."""
    return Storage(shape, target, s.scalar, s.fill_value, (None, *s.pos), (None, *s.crd), s.values)


def _named(plan: MergeSchedule, storages: tuple[Storage, ...]) -> list[tuple[str, Storage]]:
    return list(zip(plan.dims, storages, strict=True))


def _all_dimensions(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(shape)))


def _single_row_dimension(format: Format, shape: tuple[int, ...]) -> int | None:
    """The dimension of the outermost level, if that is dense, the only one of the dimension, and of extent 1."""
    if len(format.levels) < 2 or not format.levels[0].format.is_dense:
        return None
    first = format.levels[0].expression
    if not isinstance(first, Dim) or shape[first.index] != 1:
        return None
    return None if any(first.index in dimensions(e.expression) for e in format.levels[1:]) else first.index


@cached(1024)
def _without(format: Format, d: int) -> Format:
    """The format without its outermost level."""
    position = [k - (k > d) for k in range(format.ndim)]
    levels = tuple(Level(rename(e.expression, position), e.format) for e in format.levels[1:])
    return Format(tuple(n for k, n in enumerate(format.dims) if k != d), levels)


def _vector(s: Storage, d: int) -> Storage:
    shape = tuple(n for k, n in enumerate(s.shape) if k != d)
    return Storage(shape, _without(s.format, d), s.scalar, s.fill_value, s.pos[1:], s.crd[1:], s.values)

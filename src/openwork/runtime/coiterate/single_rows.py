"""Merges of single rows: a matrix of one row is merged as the vector that the row is, so that it can be cut."""

from __future__ import annotations

from dataclasses import replace

from ...codegen import pool
from ...compiler.coiterate.target import Dims
from ...compiler.conversion.target import runs
from ...format.cached import cached
from ...format.expression import Dim, dimensions, rename
from ...format.format import Format, Level
from ...storage.buffers import length
from ...storage.storage import Storage
from . import partition as merge_chunks
from .plan import MergePlan

__all__ = ["as_matrix", "as_vectors"]


def as_vectors(
    plan: MergePlan, storages: tuple[Storage, ...], shape: tuple[int, ...]
) -> tuple[MergePlan, tuple[Storage, ...]] | None:
    """The plan and its operands without an outermost dimension of extent 1 that all count; None where there is none,
    the work is too little for several threads, or one operand is far shorter than another."""
    if pool.get_num_threads() < 2 or sum(length(s.values) for s in storages) < merge_chunks.MINIMUM:
        return None
    target = plan.target
    d = _single(target, shape)
    if d is None or any(
        _single(s.format, s.shape) != d or plan.dims[n] != _all(shape) for n, s in _named(plan, storages)
    ):
        return None
    if plan.scout is not None and plan.scout.leads(storages, shape, target):
        return None
    if plan.row is None:
        fewer = _without(target, d)
        dims: dict[str, Dims] = dict.fromkeys(plan.dims, _all(shape)[:-1])
        text = f"{plan.text}, the row alone"
        plan.row = replace(
            plan, text=text, dims=dims, steps=(None,) * len(storages), target=fewer, format=fewer, runs=runs(fewer),
            compiled={}, scout=None, launches={}, quick=None, exact=None, row=None,
        )  # fmt: skip
    return plan.row, tuple(_vector(s, d) for s in storages)


def as_matrix(s: Storage, target: Format, shape: tuple[int, ...]) -> Storage:
    """A merged row as the matrix of one row, over the same buffers."""
    return Storage(shape, target, s.scalar, s.fill_value, (None, *s.pos), (None, *s.crd), s.values)


def _named(plan: MergePlan, storages: tuple[Storage, ...]) -> list[tuple[str, Storage]]:
    return list(zip(plan.dims, storages, strict=True))


def _all(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(shape)))


def _single(format: Format, shape: tuple[int, ...]) -> int | None:
    """The dimension that the outermost level counts, densely and alone, if its extent is 1."""
    if len(format.levels) < 2 or not format.levels[0].format.is_dense:
        return None
    first = format.levels[0].expression
    if not isinstance(first, Dim) or shape[first.index] != 1:
        return None
    return None if any(first.index in dimensions(e.expression) for e in format.levels[1:]) else first.index


@cached(1024)
def _without(format: Format, d: int) -> Format:
    """The format of what lies at one coordinate of the outermost level."""
    position = [k - (k > d) for k in range(format.ndim)]
    levels = tuple(Level(rename(e.expression, position), e.format) for e in format.levels[1:])
    return Format(tuple(n for k, n in enumerate(format.dims) if k != d), levels)


def _vector(s: Storage, d: int) -> Storage:
    shape = tuple(n for k, n in enumerate(s.shape) if k != d)
    return Storage(shape, _without(s.format, d), s.scalar, s.fill_value, s.pos[1:], s.crd[1:], s.values)

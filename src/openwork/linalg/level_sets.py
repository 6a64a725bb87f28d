"""A triangular structure -> its level sets, rows that depend on none of each other, and substitution by these.

    level 0: rows that depend on none; level k: rows whose deepest dependence is in level k - 1

A structure that is solved with again and again is tried both ways, and goes the faster one from then on; the schedule
is kept with it. Levels that are too narrow for a start of the threads are run in order with their neighbours; where
hardly any is wide enough, as where rows are ordered along a band, there is no schedule.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import openwork as ow

from .. import Tensor, tuning
from ..classes import define
from ..storage.buffers import to_numpy
from .compiled import compiled, parallel, run
from .kernels import LEVELS_OF_ROWS, SUBSTITUTE, of_triangle
from .operands import kept

__all__ = ["Schedule", "Trial", "level_of_rows", "substitute", "trial_of"]

Array = np.ndarray[Any, Any]

WIDE = tuning.LEVEL_SET_WORK


class Schedule(NamedTuple):
    """Rows of a triangle ordered by levels, and the ranges of that order that threads run.

    pos, crd : compressed rows; place : where their elements are in the tensor's, None: there
    order : rows by level; cuts : ranges of that order to run one after another, each cut for the threads
    """

    pos: Array
    crd: Array
    place: Array | None
    order: Array
    cuts: tuple[tuple[int, ...], ...]


def level_of_rows(pos: Array, crd: Array, lower: bool) -> Array:
    """The level of each row of the lower or upper triangle of compressed rows."""
    n = len(pos) - 1
    level = np.zeros(n, np.int64)
    run(of_triangle(LEVELS_OF_ROWS, lower), len(crd), [pos, crd, level, n], I=crd)
    return level


@define
class Trial:
    """Measures which is faster for a structure, the plain loop or level sets: each is run twice and timed once.

    Both give the same numbers, so that only time depends on the choice.
    """

    schedule: Schedule | None = None
    calls: int = 0
    seconds: tuple[float, float] = (0.0, 0.0)

    def levels(self, t: Tensor, kind: str, lower: bool, m: int) -> Schedule | None:
        """The schedule where this call is to run by level sets, else None."""
        if self.calls == 2:
            self.schedule = _schedule(t, kind, lower, m, ow.get_num_threads())
            self.calls = 2 if self.schedule is not None else 5
        elif self.calls == 4 and self.seconds[1] > self.seconds[0]:
            self.schedule = None
            self.calls = 5
        return self.schedule

    def record_time(self, seconds: float) -> None:
        """Note the time of this call."""
        if self.calls in (1, 3):
            self.seconds = (seconds, 0.0) if self.calls == 1 else (self.seconds[0], seconds)
        self.calls = min(self.calls + 1, 5)


def trial_of(t: Tensor, lower: bool, m: int) -> Trial | None:
    """The Trial of a structure and `m` right sides; None where there is too little work for threads."""
    threads = ow.get_num_threads()
    crd = t.crd(1)
    if threads < 2 or crd is None or len(crd) * m < 2 * WIDE:
        return None
    trial: Trial = kept(t, ("level sets", lower, m, threads), Trial)
    return trial


def _schedule(t: Tensor, kind: str, lower: bool, m: int, threads: int) -> Schedule | None:
    pos, crd, place = _rows(to_numpy(t.pos(1)), to_numpy(t.crd(1)), kind, lower)
    level = level_of_rows(pos, crd, lower)
    order = np.argsort(level, kind="stable")
    work = np.concatenate([[0], np.cumsum(np.diff(pos)[order].astype(np.int64))]) * m
    ends = np.concatenate([[0], np.cumsum(np.bincount(level))])
    cuts: list[tuple[int, ...]] = []
    wide_work = 0
    for lo, hi in pairwise(ends.tolist()):
        if work[hi] - work[lo] >= WIDE:
            inner = np.searchsorted(work, np.linspace(work[lo], work[hi], threads + 1)[1:-1])
            cuts.append((lo, *np.clip(inner, lo, hi).tolist(), hi))
            wide_work += int(work[hi] - work[lo])
        elif cuts and len(cuts[-1]) == 2:
            cuts[-1] = (cuts[-1][0], hi)
        else:
            cuts.append((lo, hi))
    return Schedule(pos, crd, place, order, tuple(cuts)) if 2 * wide_work >= work[-1] else None


def _rows(pos: Array, crd: Array, kind: str, lower: bool) -> tuple[Array, Array, Array | None]:
    """The structure by rows, indices of one type, and where its elements are in the tensor's.

    Of columns, rows have their elements in the order in which substitution by columns comes to them.
    """
    if kind == "csr":
        return (pos.astype(crd.dtype, copy=False), crd, None)
    from scipy.sparse import csc_array

    n = len(pos) - 1
    csr = csc_array((np.arange(len(crd)), crd, pos), (n, n)).tocsr()
    if lower:
        return csr.indptr, csr.indices, csr.data
    last = np.repeat(csr.indptr[:-1] + csr.indptr[1:] - 1, np.diff(csr.indptr))
    from_end = last - np.arange(len(crd))
    return csr.indptr, csr.indices[from_end], csr.data[from_end]


def substitute(levels: Schedule, values: Array, x: Array, scalar: str, lower: bool, unit: bool) -> bool:
    """Solve in place, level by level; whether no element of the diagonal is 0."""
    if levels.place is not None:
        values = values[levels.place]
    m = x.shape[1]
    zero_pivot = np.full(1, 0, np.int64)
    executable = compiled(of_triangle(SUBSTITUTE, lower, unit), one=m == 1, I=levels.crd, S=values, T=scalar)
    packed = executable.pack([levels.order, levels.pos, levels.crd, values, x, zero_pivot, m])
    with np.errstate(all="ignore"):
        for cut in levels.cuts:
            parallel(executable, packed, cut, 0)
    return not zero_pivot[0]

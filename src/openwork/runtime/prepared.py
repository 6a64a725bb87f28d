"""Launches made ready: everything bound but the addresses of the values, of the dense operands and of the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import tuning
from ..codegen import pool
from ..ir.index import Assignment
from ..storage.buffers import is_torch, itemsize, length
from ..storage.storage import Storage
from ..storage.structure import keep
from .launch import launch
from .private_accumulators import PrivateAccumulators
from .single_operand import Prepared, Problem, bounds_of, describe, threads_for, words_of
from .split_rows import LongRows, with_short_rows
from .strided import LINE, Strided

__all__ = ["Ready", "key_of", "recall", "remember"]

REUSED = tuning.ALIGNED_REUSE


class Ready:
    """A compiled statement bound to one structure, for values and dense operands of known shapes, strides and types.

    `inputs` are (operand, dimension to pack along or None, whether it pays to begin at a cache line) in the order in
    which `start` takes their addresses.
    """

    __slots__ = (
        "bounds",
        "call",
        "held",
        "inputs",
        "one",
        "out",
        "overlap",
        "pack",
        "prepared",
        "problem",
        "range",
        "rows",
        "slots",
        "threads",
        "values",
        "words",
    )

    def __init__(self, problem: Problem, prepared: Prepared, out: Any) -> None:
        driver: Storage = problem.values[prepared.schedule.driver]
        self.problem, self.prepared = _without_arrays(problem), prepared
        size, threads = _size(out), threads_for(problem, prepared)
        given = with_short_rows(problem, prepared, threads)
        short: Storage = given.values[prepared.schedule.driver]
        self.held = (short.pos, short.crd)
        self.words = words_of(given, prepared, out)
        self.bounds, parts = bounds_of(given, prepared, size)
        self.rows = LongRows.of(problem, prepared, out, self.bounds, threads)
        self.threads = pool.get_num_threads()
        places = {(r.kind, r.tensor): at for at, r in enumerate(prepared.refs)}
        self.values = places.get(("vals", prepared.schedule.driver), -1)
        target = problem.stmt.lhs.tensor
        self.out = places.get(("data", target), places.get(("vals", target), -1))
        self.overlap: PrivateAccumulators | None = None
        if parts > 1:
            assert size is not None
            scalar = problem.operands[target].scalar
            self.overlap = PrivateAccumulators(self.bounds, parts, problem.stmt.reduction, scalar, size, self.out)
        names = [n for n, v in problem.values.items() if isinstance(v, Strided)]
        self.inputs = tuple(
            (n, problem.operands[n].unit if n in problem.copies else None, _on_lines(problem, n, driver)) for n in names
        )
        self.slots = tuple(places.get(("data", n), -1) for n in names)
        whole = self.overlap is None and self.rows is None and len(self.bounds) == 2
        self.range = (self.bounds[0], self.bounds[1]) if whole else None
        slots = (self.values, *self.slots, self.out)
        self.one = slots if whole and len(slots) == 3 and min(slots) >= 0 else None
        """where the addresses of the values, of one dense operand and of the result go, where one launch does it all"""
        self.call, self.pack = prepared.executable.call, prepared.executable.words

    @property
    def valid(self) -> bool:
        """Whether the number of threads is still the one that the ranges were cut for."""
        return self.threads == pool.get_num_threads()

    def start(self, values: int, addresses: Sequence[int], out: int) -> None:
        """Run on stored values and dense operands at these addresses, writing to `out`."""
        words = self.words.copy()
        if self.values >= 0:
            words[self.values] = values
        for slot, address in zip(self.slots, addresses, strict=True):
            if slot >= 0:
                words[slot] = address
        if self.range is not None:
            words[self.out] = out
            self.prepared.executable.run(words, *self.range)
            return
        if self.overlap is not None:
            self.overlap.run(self.prepared.executable, words, out)
            return
        words[self.out] = out
        if self.rows is not None:
            self.rows.run(self.prepared.executable, words, out)
            return
        launch(self.prepared.executable, words, self.bounds, self.prepared.schedule.parallel)

    def start_one(self, values: int, dense: int, out: int) -> None:
        """`start` with one dense operand."""
        if self.one is None or self.range is None:
            self.start(values, (dense,), out)
            return
        words = self.words.copy()
        at_values, at_dense, at_out = self.one
        words[at_values], words[at_dense], words[at_out] = values, dense, out
        code = self.call(self.pack(*words), *self.range)
        if code:
            self.prepared.executable.fail(code)

    def describe(self, allocated: int, again: bool) -> None:
        """Tell `explain`; `allocated` are the bytes of the result and of what was packed; `again`: it was kept."""
        parts, scratch = (1, 0) if self.overlap is None else (self.overlap.parts, self.overlap.nbytes)
        ranges = len(self.bounds) - 1 if self.rows is None else self.rows.count
        describe(self.problem, self.prepared, ranges, parts, allocated + scratch, again)


def _size(out: Any) -> int | None:
    """The number of elements of an array that lie side by side."""
    if not isinstance(out, Strided):
        return None
    size = math.prod(out.shape)
    span = 1 + sum((n - 1) * s for n, s in zip(out.shape, out.strides, strict=True))
    return size if span == size else None


def _on_lines(problem: Problem, name: str, driver: Storage) -> bool:
    """Whether rows of this operand are whole cache lines that are read often enough."""
    view, unit = problem.values[name], problem.operands[name].unit
    if unit is None or not view.shape or is_torch(view.owner):
        return False
    rows = math.prod(n for d, n in enumerate(view.shape) if d != unit)
    whole = all(s * itemsize(view.scalar) % LINE == 0 for d, s in enumerate(view.strides) if d != unit)
    wide = rows > 1 and view.shape[unit] * itemsize(view.scalar) >= LINE
    return wide and whole and length(driver.values) >= REUSED * rows


def _without_arrays(problem: Problem) -> Problem:
    """The problem without arrays and storages, which a launch that is kept must not hold alive."""
    values = {n: v for n, v in problem.values.items() if not isinstance(v, Strided | Storage)}
    return Problem(
        problem.stmt, values, problem.operands, problem.extents, problem.facts, problem.compute, problem.last,
        problem.copies,
    )  # fmt: skip


def key_of(stmt: Assignment, scalar: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What a ready launch depends on beside the sparse operand, which operand that is included; None where an operand
    is a plain number."""
    parts: list[Any] = [stmt, scalar]
    for name, v in values.items():
        if isinstance(v, Strided):
            parts.append((v.shape, v.strides, v.scalar))
        elif isinstance(v, Storage):
            parts.append(name)
        else:
            return None
    return tuple(parts)


def recall(storage: Storage, key: tuple[Any, ...] | None) -> Ready | None:
    """The launch that was kept under `key`, if it still holds."""
    found: Ready | None = storage.plans.products.get(key)
    return found if found is not None and found.valid else None


def remember(storage: Storage, key: Any, ready: Any) -> None:
    """Keep a launch for all storages of a structure."""
    keep(storage.plans.products, key, ready)


def sparse_operand(values: Mapping[str, Any]) -> Storage:
    """The one storage among the operands."""
    return next(v for v in values.values() if isinstance(v, Storage))

"""A statement and a structure -> its prepared call: all is bound but the addresses of values, arrays and result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import tuning
from ..codegen import pool
from ..codegen.short_call import SHORT, bound
from ..errors import UnsupportedError
from ..ir.index import Assignment
from ..storage.buffers import is_torch, itemsize, length
from ..storage.storage import Storage
from ..storage.structure import keep
from .launch import launch
from .private_accumulators import PrivateAccumulators
from .single_operand import Prepared, Problem, bounds_of, describe, threads_for, words_of
from .split_rows import LongRows, with_short_rows
from .strided import LINE, Strided

__all__ = ["PreparedCall", "key_of", "recall", "remember"]

REUSED = tuning.ALIGNED_REUSE


class PreparedCall:
    """A compiled statement bound to one structure, for values and dense operands of known shapes, strides and types.

    `inputs` are (operand, dimension to pack along or None, whether it pays to begin at a cache line) in the order in
    which `start` takes their addresses.
    """

    __slots__ = (
        "accumulators",
        "bounds",
        "call",
        "index_buffers",
        "inputs",
        "is_short",
        "long_rows",
        "out",
        "pack",
        "prepared",
        "problem",
        "range",
        "short",
        "single_slots",
        "slots",
        "threads",
        "values",
        "words",
    )

    def __init__(self, problem: Problem, prepared: Prepared, out: Any) -> None:
        driver: Storage = problem.values[prepared.schedule.driver]
        self.problem, self.prepared = _without_arrays(problem), prepared
        size, threads = _size(out), threads_for(problem, prepared)
        collapsed = with_short_rows(problem, prepared, threads)
        walked: Storage = collapsed.values[prepared.schedule.driver]
        self.index_buffers = (walked.pos, walked.crd, *walked.structure.packed.values())
        self.words = words_of(collapsed, prepared, out)
        self.bounds, parts = bounds_of(collapsed, prepared, size)
        self.long_rows = LongRows.of(problem, prepared, out, self.bounds, threads)
        self.threads = pool.get_num_threads()
        places = {(r.kind, r.tensor): at for at, r in enumerate(prepared.refs)}
        self.values = places.get(("vals", prepared.schedule.driver), -1)
        target = problem.stmt.lhs.tensor
        self.out = places.get(("data", target), places.get(("vals", target), -1))
        self.accumulators: PrivateAccumulators | None = None
        if parts > 1:
            assert size is not None
            scalar = problem.operands[target].scalar
            self.accumulators = PrivateAccumulators(self.bounds, parts, problem.stmt.reduction, scalar, size, self.out)
        names = [n for n, v in problem.values.items() if isinstance(v, Strided)]
        self.inputs = tuple(
            (n, problem.operands[n].unit if n in problem.copies else None, _on_lines(problem, n, driver)) for n in names
        )
        self.slots = tuple(places.get(("data", n), -1) for n in names)
        is_one_launch = self.accumulators is None and self.long_rows is None and len(self.bounds) == 2
        self.range = (self.bounds[0], self.bounds[1]) if is_one_launch else None
        slots = (self.values, *self.slots, self.out)
        self.single_slots = slots if is_one_launch and len(slots) == 3 and min(slots) >= 0 else None
        """where the addresses of the values, of one dense operand and of the result go, where one launch does it all"""
        self.call, self.pack = prepared.executable.call, prepared.executable.words
        self.short: Callable[..., int] | None = None
        """the whole call as a function of values, dense operands and result, arrays of NumPy or addresses, where it is
        short; see `codegen.short_call`"""
        self.is_short = _work(problem, prepared.schedule.driver) + (size or 0) <= SHORT
        if self.range is not None and self.is_short:
            self.short = bound(prepared.executable, self.words, slots, *self.range)

    @property
    def valid(self) -> bool:
        """Whether the number of threads is still the one that the ranges were cut for."""
        return self.threads == pool.get_num_threads()

    def start(self, values: int, addresses: Sequence[int], out: int) -> None:
        """Run on stored values and dense operands at these addresses, writing to `out`."""
        if self.short is not None:
            self.end(self.short(values, *addresses, out))
            return
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
        if self.accumulators is not None:
            self.accumulators.run(self.prepared.executable, words, out)
            return
        words[self.out] = out
        if self.long_rows is not None:
            self.long_rows.run(self.prepared.executable, words, out)
            return
        launch(self.prepared.executable, words, self.bounds, self.prepared.schedule.parallel)

    def start_one(self, values: int, dense: int, out: int) -> None:
        """`start` with one dense operand, of a call that is not short."""
        if self.single_slots is None or self.range is None:
            self.start(values, (dense,), out)
            return
        words = self.words.copy()
        at_values, at_dense, at_out = self.single_slots
        words[at_values], words[at_dense], words[at_out] = values, dense, out
        self.end(self.call(self.pack(*words), *self.range))

    def end(self, code: int) -> None:
        """Raise the error of a kernel's status other than 0."""
        if code:
            self.prepared.executable.fail(code)

    def describe(self, allocated: int, recalled: bool) -> None:
        """Tell `explain`; `allocated` are the bytes of the result and of what was packed; `recalled`: was it kept."""
        parts, scratch = (1, 0) if self.accumulators is None else (self.accumulators.parts, self.accumulators.nbytes)
        ranges = len(self.bounds) - 1 if self.long_rows is None else self.long_rows.count
        describe(self.problem, self.prepared, ranges, parts, allocated + scratch, recalled)


def _work(problem: Problem, name: str) -> int:
    """The number of turns of a statement's loops, at most: positions of its sparse operand, times what it lacks."""
    driver = problem.values[name]
    indices = next(a.indices for a in problem.stmt.accesses if a.tensor == name)
    others = math.prod(n for i, n in problem.extents.items() if i not in indices)
    return int((sum(driver.positions) + length(driver.values)) * others)


def _size(out: Any) -> int | None:
    """The number of elements of an array that lie side by side."""
    if not isinstance(out, Strided):
        return None
    size = math.prod(out.shape)
    span = 1 + sum((n - 1) * s for n, s in zip(out.shape, out.strides, strict=True))
    return size if span == size else None


def _on_lines(problem: Problem, name: str, driver: Storage) -> bool:
    """Whether this operand is packed, in rows of whole cache lines that are read often enough."""
    view, unit = problem.values[name], problem.operands[name].unit
    if unit is None or not view.shape or is_torch(view.owner) or not view.packed:
        return False
    row = view.shape[unit] * itemsize(view.scalar)
    return bool(row % LINE == 0 and view.nbytes > row and length(driver.values) * row >= REUSED * view.nbytes)


def _without_arrays(problem: Problem) -> Problem:
    """The problem without arrays and storages, which a launch that is kept must not hold alive."""
    return Problem(
        problem.stmt, {}, problem.operands, problem.extents, problem.facts, problem.compute, problem.innermost,
        problem.copies,
    )  # fmt: skip


def key_of(stmt: Assignment, scalar: str, values: Mapping[str, Storage | Strided]) -> tuple[Any, ...]:
    """What a prepared call depends on beside the sparse operand, which operand that is included."""
    parts: list[Any] = [stmt, scalar]
    for name, v in values.items():
        if isinstance(v, Strided):
            parts.append((v.shape, v.strides, v.scalar))
        else:
            parts.append(name)
    return tuple(parts)


def recall(storage: Storage, key: tuple[Any, ...] | None) -> PreparedCall | None:
    """The call that was prepared under `key`, if it still holds. Raises UnsupportedError for symbolic extents."""
    try:
        prepared_call: PreparedCall | None = storage.plans.products.get(key)
    except TypeError as error:  # torch's SymInt has no hash
        raise UnsupportedError(
            "a torch tensor whose extents are symbols\n  help: torch.compile, and torch.export.export(...,"
            " strict=True), take calls of Tensors"
        ) from error
    return prepared_call if prepared_call is not None and prepared_call.valid else None


def remember(storage: Storage, key: Any, call: Any) -> None:
    """Keep a prepared call for all storages of a structure."""
    keep(storage.plans.products, key, call)


def sparse_operand(values: Mapping[str, Any]) -> Storage:
    """The one storage among the operands."""
    return next(v for v in values.values() if isinstance(v, Storage))

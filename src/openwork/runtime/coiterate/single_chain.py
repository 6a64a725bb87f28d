"""A merge's plan and a shape -> its launch: no conversion, no record, a result with one chain at its last level.

CSR, CSC, DCSR's last level alone, COO and CSF of one level are of this kind. What follows from the shape is computed
once for all tensors of the types; of their structures no more is asked than how many elements there are. Over torch
buffers it serves small results that torch does not record: their memory is NumPy's, which allocates in less time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import tuning
from ...checked import CHECKED
from ...codegen import pool
from ...codegen.float_flags import raised
from ...codegen.launcher import launcher, record
from ...compiler.coiterate.code_size import SLACK
from ...compiler.conversion.level_runs import Kind
from ...compiler.schedule.coiterate import Bound, MergeSchedule
from ...interruptible import LONG
from ...storage.buffers import address, is_unrecorded, numpy_dtype
from ...storage.memory import reserve, shrink
from ...storage.storage import Storage
from ..float_errors import WarningSource
from .partition import MINIMUM
from .plan import Compiled

__all__ = ["SingleChain", "single_chain"]

SMALL = 0 if CHECKED else tuning.RESULT_ALLOCATION


class SingleChain:
    """The launch of one compiled merge for one shape."""

    __slots__ = (
        "_before", "_behind", "_capacity", "_fields", "_kernel", "_last", "_limit", "_meta", "_plan", "_points",
        "_pos", "_record", "_shape", "_shares", "_sizes", "_start", "_sums", "_tail", "_torch",
    )  # fmt: skip

    def __init__(
        self, plan: MergeSchedule, kernel: Compiled, bound: Bound, spans: tuple[tuple[int, int], ...],
        shape: tuple[int, ...], torch: Any, points: bool,
    ) -> None:  # fmt: skip
        self._plan, self._kernel = plan, kernel
        run = plan.runs[-1]
        sizes = [hi - lo for lo, hi in spans]
        self._capacity = math.prod(sizes)
        self._sums = [[(k, math.prod(sizes[at] for at in lacks)) for k, _, lacks in terms] for terms in bound.sums]
        parents = math.prod(sizes[: run.first])
        index, value = numpy_dtype(kernel.index), numpy_dtype(plan.scalar)
        self._fields = [index] * len(run.levels) + [value]
        self._sizes = sum(dtype.itemsize for dtype in self._fields)
        """bytes of an element of the result"""
        self._pos = parents + 1, index
        self._meta = np.array([*spans[0], 0, 0], np.int64)
        extents = {f"n{at}": n for at, n in enumerate(sizes)} | {f"lo{at}": lo for at, (lo, _) in enumerate(spans)}
        names = kernel.names[kernel.names.index("chunks") + 1 :]
        self._tail = (1, *(extents[name] for name in names))
        numbers = {name: k for k, name in enumerate(plan.dims)}
        refs = [ref for name in kernel.names if (ref := kernel.refs.get(name)) is not None]
        self._last = [(numbers[ref.tensor], ref.level) for ref in refs]
        self._shares = plan.shares
        self._limit = 2**31 - 1 if kernel.index == "i32" else 2**62
        self._before = (None,) * run.first
        self._behind = (None,) * (plan.target.nlevels - run.first - 1)
        self._shape = shape
        self._start = launcher()
        objects = kernel.prefix + len(plan.parameters) + len(refs) + len(self._fields) + 2
        words = (*(0,) * objects, *self._tail)
        self._record = record(kernel.executable.address, words, range(objects), False)
        """the launch, without addresses and last positions"""
        self._torch = torch
        """where buffers are its tensors, else None"""
        self._points = points
        """whether some buffers are given by address: torch's, of an index beside NumPy's values say"""

    def run(
        self, storages: tuple[Storage, ...], passed: Sequence[Any], how: WarningSource
    ) -> tuple[Storage, bool] | None:
        """The result for operands of the types and the shape, and arrays of one number each; whether NumPy would
        certainly warn of nothing. None where several threads pay, the index type may be too narrow, or torch records
        an operand."""
        if self._torch is not None:
            for s in storages:
                if not is_unrecorded(s.values):
                    return None
        elements = self._capacity
        for terms in self._sums:
            total = 0
            for k, factor in terms:
                total += storages[k].values.shape[0] * factor
            if total < elements:
                elements = total
        if elements >= MINIMUM and (elements + SLACK >= self._limit or pool.threads > 1):
            return None
        elements += SLACK
        if self._torch is not None and (elements * self._sizes > SMALL or self._torch.is_inference_mode_enabled()):
            return None
        meta, (count, index) = self._meta.copy(), self._pos
        make = np.empty if elements * self._sizes <= SMALL else reserve
        pos, parts = make(count, index), [make(elements, dtype) for dtype in self._fields]
        last = [max(0, storages[k].positions[level] - 1) for k, level in self._last]
        used = self._launch(storages, (*passed, *last, pos, *parts, meta), elements)
        silent = how is WarningSource.NEVER or (elements < LONG and how is WarningSource.FLAGS and not raised())
        parts = [part[:used] for part in parts] if make is np.empty else [shrink(part, used) for part in parts]
        return self._result(storages, pos, parts, used), silent

    def _launch(self, storages: tuple[Storage, ...], others: tuple[Any, ...], elements: int) -> int:
        """Run the kernel, on the operands' buffers and others, the counters last; the elements that it found."""
        executable = self._kernel.executable
        if self._start is None or elements >= LONG:
            words = [w for s in storages for w in s.addresses]
            words += [x if type(x) is int else address(x) for x in others]
            executable.run_sized(elements, (*words, *self._tail), 0, 1)
        else:
            memory: list[Any] = [b for s in storages for b in s.buffers]
            if self._points:
                memory = _pointers(memory)
            if code := self._start(self._record, (*memory, *others), 0, 1):
                executable.fail(code)
        return int(others[-1][3])

    def _result(self, storages: tuple[Storage, ...], pos: Any, parts: list[Any], used: int) -> Storage:
        plan = self._plan
        for k in self._shares:
            if storages[k].values.shape[0] == used:
                s = storages[k]
                if self._torch is not None:
                    return s.with_values(self._torch.from_numpy(parts[-1]), plan.fill)
                return Storage(s.shape, plan.target, plan.scalar, plan.fill, s.pos, s.crd, parts[-1])
        if self._torch is not None:  # others may reach these buffers, and resize them: they are watched
            pos, *parts = map(self._torch.from_numpy, (pos, *parts))
        all_pos = (*self._before, pos, *self._behind)
        crd = (*self._before, *parts[:-1])
        return Storage(self._shape, plan.target, plan.scalar, plan.fill, all_pos, crd, parts[-1])


def _pointers(buffers: list[Any]) -> list[Any]:
    """Torch's buffers by address; those inside a transform are of the memory of the tensors that they wrap."""
    try:
        return [b if isinstance(b, np.ndarray) else b.data_ptr() for b in buffers]
    except RuntimeError:
        return [address(b) for b in buffers]


def single_chain(
    plan: MergeSchedule, kernel: Compiled, spans: tuple[tuple[int, int], ...], storages: tuple[Storage, ...],
    shape: tuple[int, ...],
) -> SingleChain | None:  # fmt: skip
    """The launch of a plan for a shape; None where the plan converts, or its result has another kind of format."""
    chains = [run for run in plan.runs if run.kind is Kind.CHAIN]
    levels = plan.target.levels
    if len(chains) != 1 or chains[0] is not plan.runs[-1] or any(level.format.is_bitmap for level in levels):
        return None
    if plan.converts or plan.format is not plan.target or len({s.library for s in storages}) > 1:
        return None
    if any(s.device != "cpu" for s in storages) or (storages[0].library == "torch" and plan.scalar == "bf16"):
        return None
    (bound,) = kernel.bounds
    leaf_terms = all(level == len(s.pos) - 1 for terms in bound.sums for k, level, _ in terms for s in (storages[k],))
    if (
        any(ref.kind != "last" for ref in kernel.refs.values())
        or "fill" in kernel.names
        or not leaf_terms
        or not bound.sums
    ):
        return None
    order = [name for name in kernel.names if name.startswith("out_")]
    expected = [f"out_pos{chains[0].first}", *(f"out_crd{at}" for at in chains[0].levels), "out_vals"]
    first = len(kernel.refs) + len(plan.parameters)
    if order != expected or kernel.names[first + len(order) : first + len(order) + 2] != ("meta", "chunks"):
        return None
    torch = sys.modules["torch"] if storages[0].library == "torch" else None
    points = any(type(b) is not np.ndarray for s in storages for b in s.buffers)
    return SingleChain(plan, kernel, bound, spans, shape, torch, points)

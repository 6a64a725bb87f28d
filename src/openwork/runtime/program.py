"""A plan, a structure and the shapes of dense operands -> a program: the kernel's words and ranges, to be launched.

This is the symbolic phase: the ranges that run side by side, long rows that are cut, private accumulators. A program
holds no address: each launch asks the arrays that it is given. A structure keeps its programs in one slot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .. import tuning
from ..checked import CHECKED
from ..codegen import pool
from ..codegen.launcher import launcher, record
from ..format.level import Iterate
from ..storage.buffers import PLAIN_TENSORS, Array, address, is_contiguous, is_torch, itemsize, length, strided_address
from ..storage.iso import element
from ..storage.memory import LARGE
from ..storage.storage import Storage
from . import trace
from .launch import even_bounds, kernel_argument, launch, outer_range, work_bounds
from .packed_coordinates import packed_coordinates
from .plan import Bound, Plan
from .private_accumulators import PrivateAccumulators, has_long_run, parts_for
from .split_rows import LongRows, with_short_rows
from .strided import LINE, Strided, contiguous_along, new_output, on_lines, strided

__all__ = ["Program", "ShapedPlan", "laid_out", "memory_of"]

PARALLEL_WORK = tuning.PRODUCT_PARALLEL
LONG_WORK = tuning.PRODUCT_WAVE
REUSED = tuning.ALIGNED_REUSE
SHORT = tuning.SHORT_CALL


def _bounds_of(bound: Bound, threads: int, work: int, size: int | None) -> tuple[tuple[int, ...], int]:
    """The ranges to run, and the number of private accumulators: one, unless outputs overlap and more pay.

    There are as many ranges as threads where there is enough work, and more where there is very much. size: elements of
    the output, where private accumulators are allowed.
    """
    schedule, driver = bound.plan.schedule, bound.storage
    if not driver.format.levels:
        return (0, 0), 1
    parts = 1
    whole_runs = schedule.parallel and schedule.run_reduce
    if (
        size is not None
        and work >= PARALLEL_WORK
        and (not schedule.parallel or (whole_runs and has_long_run(driver, threads)))
    ):
        parts = parts_for(work, size, threads)
    if parts > 1 or not schedule.parallel:
        threads, whole_runs = parts, False
    count = threads * (1 + work // (threads * LONG_WORK))
    if schedule.sliced is not None:
        return even_bounds(0, bound.extents[schedule.sliced], count), 1
    return (outer_range(driver) if count == 1 else work_bounds(driver, count, whole_runs)), parts


_OWNER = itemgetter(0)


def new_result(plan: Plan, extents: Mapping[str, int], like: Array, *, zero: bool) -> Array:
    """A fresh array for the result of a plan; it holds the identity of the reduction where not all is written to."""
    shape = tuple(map(extents.__getitem__, plan.form.out))
    innermost = plan.output.unit if plan.vector in plan.form.out else None
    out = new_output(shape, plan.output.scalar, like, innermost, zero=zero)
    if zero and plan.start:
        out[...] = plan.start
    return out


class ShapedPlan:
    """A plan for operands of known shapes and strides: what all structures of one type and shape have in common.

    A launch of little work needs no more than this and the buffers of the structure, so that a call on a tensor that
    was never met before finds it by types and shapes.

    extents : of all indices
    packed : along which dimension each dense operand has to be made contiguous, None where it is as it comes
    made : shape and dtype of a result that is row-major and small, and holds zeros where not all is written
    work : multiplications for each stored element
    is_empty : whether an extent is 0, so that nothing is to be run
    suits_all : whether no word of a launch follows from a structure
    """

    __slots__ = (
        "extents", "is_empty", "made", "packed", "plan", "range", "records", "start",
        "suits_all", "work",
    )  # fmt: skip

    def __init__(self, plan: Plan, extents: Mapping[str, int], packed: list[int | None]) -> None:
        self.plan, self.extents = plan, extents
        self.packed = tuple(packed) if packed.count(None) < len(packed) else None
        self.work = _work_for_each(plan, extents)
        self.is_empty = 0 in extents.values()
        self.made: tuple[tuple[int, ...], np.dtype[Any]] | None = None
        self.records: list[bytes] | None = None
        """the launch without addresses, and the same where other threads of Python may run meanwhile"""
        self.range: tuple[int, int] | None = None
        self.start = launcher()
        self.suits_all = self.start is not None and plan.suits_all

    def _lay_out(self, storage: Storage, views: Sequence[Strided], out: Any) -> None:
        """Make the records of a launch."""
        plan = self.plan
        result: Any = storage if plan.output.shared else out
        words, slots = _layout(plan, storage, views, self.extents, result)
        is_plain = plan.schedule.writes_all or not plan.start
        if result is out and is_plain and not self.is_empty and is_contiguous(out) and out.nbytes < LARGE:
            self.made = tuple(out.shape), out.dtype
        packed = len(slots) - 1 - len(views)
        self.records = [record(plan.executable.address, words, slots, releases, packed) for releases in (False, True)]
        if plan.schedule.sliced is not None:
            self.range = 0, self.extents[plan.schedule.sliced]
        elif not storage.format.levels:
            self.range = 0, 0
        elif storage.format.levels[0].format.functions.iterate is Iterate.COORDINATE:
            self.range = outer_range(storage)

    def is_enough(self, storage: Storage) -> bool:
        """Whether a launch on a storage needs no program of its structure: the work is little."""
        return self.suits_all and length(storage.values) * self.work < PARALLEL_WORK

    def output(self, like: Array) -> Array:
        """A fresh array for the result."""
        if self.made is None:
            return new_result(self.plan, self.extents, like, zero=self.is_empty or not self.plan.schedule.writes_all)
        shape, dtype = self.made
        if self.plan.schedule.writes_all:
            return np.empty(shape, dtype) if type(like) is np.ndarray else like.new_empty(shape, dtype=dtype)
        return np.zeros(shape, dtype) if type(like) is np.ndarray else like.new_zeros(shape, dtype=dtype)

    def run(self, storage: Storage, views: Sequence[Strided], out: Any) -> None:
        """Launch on one thread, on a storage of the type and shape, dense operands of the shapes and strides."""
        if self.packed is not None:
            views = laid_out(views, self.packed)
        if self.records is None:
            self._lay_out(storage, views, out)
        memory: list[Any] = []
        for kind, level in self.plan.recipe.buffers:
            memory.append((storage.pos if kind == "pos" else storage.crd)[level])
        memory.append(element(storage.values) if self.plan.is_iso else storage.values)
        packed = len(memory)
        for view in views:
            memory.append(view.owner)
        memory.append(out)
        if type(out) is not np.ndarray:
            memory = memory_of(memory[:packed], memory[packed:])
        work = storage.values.shape[0] * self.work
        launch = self.records[work > SHORT]  # type: ignore[index]
        if code := self.start(launch, tuple(memory), *(self.range or outer_range(storage))):  # type: ignore[misc]
            self.plan.executable.fail(code)

    def describe(self, storage: Storage, program: Program | None, allocated: int, kept: bool) -> None:
        """Record a launch for `explain`, cut as the program says, if there is one.

        allocated : bytes of the result and of what was packed; kept : whether an earlier call prepared this one
        """
        parts, scratch, ranges = 1, 0, 1
        if program is not None:
            ranges = len(program.bounds) - 1 if program.long_rows is None else program.long_rows.count
            if program.accumulators is not None:
                parts, scratch = program.accumulators.parts, program.accumulators.nbytes
        plan, schedule = self.plan, self.plan.schedule
        formats = ", ".join(
            f"{n}: {trace.shown(o.format)}" if o.format else f"{n}: dense {o.scalar}" for n, o in plan.operands.items()
        )
        order = [*schedule.outer, *(str(level.format) for level in storage.format.levels)]
        facts = [("formats", formats), ("walks", f"{plan.form.driver}, level by level: {', '.join(order)}")]
        if schedule.vector:
            extent = f", extent {self.extents[schedule.vector]}"
            lanes = " + ".join(str(t.lanes) for t in (schedule.main or schedule.rest))
            facts.append(("vectorised", f"{schedule.vector}{extent}, register tile of {lanes} lanes"))
        if schedule.short:
            facts.append(("fibres", "short and of many lengths: all in one loop"))
        if schedule.panel:
            facts.append(("blocks", f"{schedule.panel} rows by {schedule.reads} reads of packed coordinates"))
        if self.packed is not None:
            names = [n for n, d in zip(plan.form.dense, self.packed, strict=True) if d is not None]
            facts.append(("packs", f"{', '.join(names)} to be contiguous along {plan.vector}"))
        where = f"coordinates of {schedule.sliced}" if schedule.sliced else "the outermost loop"
        added = "" if schedule.parallel else f", added up in {parts} result(s)"
        facts.append(("parallel", f"{ranges} range(s) of {where}{added}"))
        place = "with the structure" if program is not None else "for operands of these types and shapes"
        facts.append(trace.prepared(place if kept else ""))
        trace.note(trace.Step(f"kernel {plan.stmt}", tuple(facts), allocated + scratch, plan.executable))


def _work_for_each(plan: Plan, extents: Mapping[str, int]) -> int:
    """The multiplications for each stored element: the product of the extents of the dense indices."""
    return math.prod(extents[i] for i in {*plan.schedule.outer, plan.schedule.vector} if i is not None)


class Program:
    """A plan for operands of known shapes, and one structure whose work is cut into ranges.

    Calling it runs it: on stored values, the views of the dense operands in the order of the plan's form, and the
    buffer of the result.
    """

    __slots__ = (
        "accumulators",
        "aligned",
        "bounds",
        "fixed",
        "long_rows",
        "range",
        "record",
        "shaped",
        "slots",
        "start",
        "threads",
        "words",
    )  # fmt: skip

    def __init__(self, shaped: ShapedPlan, storage: Storage, views: Sequence[Strided], out: Any) -> None:
        """Inspect a structure.

        views : the dense operands as they are laid out
        out : the array of the result, or a storage of the same structure
        """
        self.shaped, self.threads = shaped, pool.threads
        plan, extents = shaped.plan, shaped.extents
        self.aligned = None if plan.vector is None else _aligned(plan, storage, views)
        self.accumulators: PrivateAccumulators | None = None
        self.long_rows: LongRows | None = None
        self.record: bytes | None = None
        self.bounds: tuple[int, ...] = (0, 0)
        work = length(storage.values) * shaped.work
        if work >= PARALLEL_WORK:
            self._cut(Bound(plan, storage, views, extents), work, out)
        else:
            self.words, self.slots = _layout(plan, storage, views, extents, out)
            self.fixed = _structure_buffers(plan, storage)
            if plan.schedule.sliced is not None:
                self.bounds = (0, extents[plan.schedule.sliced])
            elif storage.format.levels:
                self.bounds = outer_range(storage)
        alone = len(self.bounds) == 2 and self.accumulators is None and self.long_rows is None
        self.range = (self.bounds[0], self.bounds[1]) if alone else None
        start = launcher() if alone else None
        if start is not None:
            self.start = start
            packed = len(self.fixed) + 1
            self.record = record(plan.executable.address, self.words, self.slots, work > SHORT, packed)

    def _cut(self, bound: Bound, work: int, out: Any) -> None:
        """Cut work that is worth several threads into ranges, long rows into pieces."""
        plan, threads = bound.plan, self.threads
        size = None if plan.output.shared else _contiguous_size(strided(out))
        walked = with_short_rows(bound, threads)
        self.bounds, parts = _bounds_of(walked, threads, work, size)
        self.words, self.slots = _layout(plan, walked.storage, walked.views, walked.extents, out)
        self.fixed = _structure_buffers(plan, walked.storage)
        self.long_rows = LongRows.of(bound, out if plan.output.shared else strided(out), self.bounds, threads)
        if parts > 1:
            assert size is not None
            self.accumulators = PrivateAccumulators(
                self.bounds, parts, plan.stmt.reduction, plan.output.scalar, size, self.slots[-1]
            )

    def __call__(self, values: Any, views: Sequence[Strided], out: Any) -> None:
        shaped = self.shaped
        if shaped.packed is not None:
            views = laid_out(views, shaped.packed)
        if self.aligned is not None:
            views = [on_lines(v) if on_line else v for v, on_line in zip(views, self.aligned, strict=True)]
        values = element(values) if shaped.plan.is_iso else values
        executable = shaped.plan.executable
        if self.record is not None and self.range is not None:
            packed, strided = (*self.fixed, values), (*map(_OWNER, views), out)
            is_numpy = type(out) is np.ndarray
            memory: tuple[Any, ...] = packed + strided if is_numpy else tuple(memory_of(packed, strided))
            if code := self.start(self.record, memory, *self.range):
                executable.fail(code)
            return
        objects = [*map(address, self.fixed), address(values), *[view.address for view in views]]
        words = self.words.copy()
        for slot, begin in zip(self.slots[:-1], objects, strict=True):
            if slot >= 0:
                words[slot] = begin
        begin, at = strided_address(out), self.slots[-1]
        if self.accumulators is not None:
            self.accumulators.run(executable, words, begin)
            return
        words[at] = begin
        if self.range is not None:
            executable.run(words, *self.range)
        elif self.long_rows is not None:
            self.long_rows.run(executable, words, begin)
        else:
            launch(executable, words, self.bounds, shaped.plan.schedule.parallel)


def memory_of(packed: Iterable[Array], strided: Iterable[Array] = ()) -> list[Any]:
    """Buffers for a launch, of which was asked already whether torch records them: arrays, and addresses of tensors.

    packed : those that have to have memory without gaps; strided : of which the kernel has the strides
    """
    if CHECKED:  # addresses that know their memory's ends
        return [*map(_packed_pointer, packed), *map(_pointer, strided)]
    packed, strided = list(packed), list(strided)
    try:
        found = [
            x.data_ptr() if type(x) in PLAIN_TENSORS and x.is_cpu and x.is_contiguous() else _packed_pointer(x)
            for x in packed
        ]
        return found + [x.data_ptr() if type(x) in PLAIN_TENSORS and x.is_cpu else _pointer(x) for x in strided]
    except RuntimeError:  # of a transform of torch.func, around the tensor that has the memory
        return [*map(_packed_pointer, packed), *map(_pointer, strided)]


def _packed_pointer(x: Array) -> Any:
    """An array, which the launcher asks for gaps, or the address of a tensor without any."""
    return x if type(x) is np.ndarray else address(x)


def _pointer(x: Array) -> Any:
    """An array, or the address of a tensor."""
    return x if type(x) is np.ndarray else strided_address(x)


def laid_out(views: Sequence[Strided], packed: Sequence[int | None]) -> list[Strided]:
    """The views, each contiguous along the dimension that is given for it."""
    return [v if d is None else contiguous_along(v, d) for v, d in zip(views, packed, strict=True)]


def _layout(
    plan: Plan, storage: Storage, views: Sequence[Strided], extents: Mapping[str, int], out: Any
) -> tuple[list[int], tuple[int, ...]]:
    """The words of a launch with 0 for addresses, and the words that these go to, in the order of a launch's objects:
    the buffers of the structure, the stored values, the dense operands, the result."""
    recipe, structure = plan.recipe, storage._structure or storage.structure
    words = [0] * len(plan.refs)
    for at, level in recipe.sizes:
        low, high = (structure.interval_ends or structure.intervals)[level]
        words[at] = high - low
    for at, i in recipe.extents:
        words[at] = extents[i]
    for at, number, d in recipe.strides:
        words[at] = (views[number] if number >= 0 else strided(out)).strides[d]
    for at, ref in recipe.others:
        words[at] = kernel_argument(ref, {plan.form.driver: storage, plan.form.target: storage}, extents)
    return words, recipe.slots


def _structure_buffers(plan: Plan, storage: Storage) -> tuple[Any, ...]:
    """The buffers of a structure that a launch reads, in the order of its objects."""
    return tuple(
        packed_coordinates(storage) if kind == "packed" else (storage.pos if kind == "pos" else storage.crd)[level]
        for kind, level in plan.recipe.buffers
    )


def _contiguous_size(out: Strided) -> int | None:
    """The number of elements of an array that lie side by side; None of another array."""
    size = math.prod(out.shape)
    if not size:
        return size
    span = 1 + sum([(n - 1) * s for n, s in zip(out.shape, out.strides, strict=True)])
    return size if span == size else None


def _aligned(plan: Plan, storage: Storage, views: Sequence[Strided]) -> tuple[bool, ...] | None:
    """Which dense operands are to begin at a cache line: in rows of whole lines, packed, that are read often enough."""
    if plan.vector is None:
        return None
    found = []
    for name, view in zip(plan.form.dense, views, strict=True):
        unit = plan.operands[name].unit
        row = view.shape[unit] * itemsize(view.scalar) if unit is not None and view.shape else 1
        pays = row % LINE == 0 and view.nbytes > row and length(storage.values) * row >= REUSED * view.nbytes
        found.append(pays and not is_torch(view.owner) and view.packed)
    return tuple(found) if any(found) else None

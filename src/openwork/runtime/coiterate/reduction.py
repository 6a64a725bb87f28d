"""An elementwise expression over sparse and dense operands, and a reduction -> its plan and its result, in one pass.

Loops are those of a merge (`compiler.coiterate`); instead of a sparse result every element is combined into a strided
array. The elements at which all sparse operands are absent, which the loops do not visit, have one constant value: it
is combined as often as there are such elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ...classes import define, frozen
from ...codegen import cache, pool, target
from ...compiler.coiterate import lower_merge
from ...compiler.coiterate.merge import Array as Located
from ...compiler.coiterate.merge import Input, Merge, Reduction
from ...compiler.coiterate.merge_formats import (
    Dims,
    levels_in_order,
)
from ...compiler.operand import Operand, parse_ref, reading_one
from ...compiler.schedule.gallop import Drivers
from ...compiler.schedule.reduce import SumSchedule, schedule_sum
from ...compiler.simplify import simplify
from ...compiler.single.factors import identity
from ...format.expression import Dim, dimensions
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Kernel
from ...ir.printer import show
from ...storage.buffers import Array, address, is_torch, length
from ...storage.storage import Storage
from ...storage.structure import keep
from .. import trace
from ..conversion.assembly import full
from ..launch import kernel_argument
from ..operand_type import operand_of
from ..strided import Strided
from .gallop_choice import drivers_of
from .partition import cut, work_of
from .plan import KERNELS, Compiled, kept_plan
from .program import BY_STRUCTURE
from .run import converted, gallop_text, loops_text
from .types import typed

__all__ = ["SumProgram", "Summed", "plan_sum", "sum_program", "run_sum"]


def plan_sum(
    e: Expression, operands: Mapping[str, Storage | Strided], dims: Mapping[str, Dims], ndim: int,
    kept: tuple[int, ...], op: str, scalar: str, library: str, along: str | None,
) -> SumSchedule:  # fmt: skip
    """The schedule of a reduction of sparse storages and strided arrays, see `schedule_sum`."""
    expr = typed(e, {name: x.scalar for name, x in operands.items()}, library)
    sparse = {n: x for n, x in operands.items() if isinstance(x, Storage)}
    dense = [n for n in operands if n not in sparse]
    return schedule_sum(e, expr, sparse, dense, dims, ndim, kept, op, scalar, along)


# -- the kernel --------------------------------------------------------------------------------------------------------


@frozen
class Summed:
    """A reduction in the type that it was computed in, over the kept dimensions or on a structure; the number of
    combined elements where the plan counts them, and what the others are."""

    array: Array
    counts: Array | None
    structure: Storage | None
    fill: Any


@define
class SumProgram:
    """The program of a reduction of operands of given structures; of dense ones of given types and strides.

    kernel : once it was run
    arguments : those that follow from the extents
    """

    plan: SumSchedule
    extents: tuple[int, ...]
    arguments: dict[str, int]
    kernel: Compiled | None = None


def sum_program(
    key: tuple[Hashable, ...], operands: Mapping[str, Storage | Strided], extents: tuple[int, ...],
    make: Callable[[], SumSchedule],
) -> SumProgram:  # fmt: skip
    """The program of a reduction, in the slot of the first sparse operand's structure; `make` gives its plan, and `key`
    stands for all that this follows from beside the operands."""
    sparse = [x for x in operands.values() if isinstance(x, Storage)]
    dense = [x for x in operands.values() if isinstance(x, Strided)]
    key = ("sum", *key, *[x.scalar for x in dense], *[s.kind for s in sparse])
    programs = sparse[0].structure.programs
    slot_key = (*key, extents, *[x.unit for x in dense], *[s.structure.number for s in sparse[1:]])
    program: SumProgram | None = programs.get(slot_key)
    if program is None:
        plan = kept_plan(key, make)
        program = SumProgram(plan, extents, _extents(plan, extents))
        keep(programs, slot_key, program)
    return program


def run_sum(program: SumProgram, values: Mapping[str, Any], like: Array) -> Summed:
    """The reduction of operands of the structures that it was prepared for."""
    plan, extents = program.plan, program.extents
    operands = dict(values)
    for name, step in zip(plan.sparse, plan.steps, strict=True):
        if step is not None:
            operands[name] = converted(name, operands[name], step)
    structure = None if plan.along is None else operands[plan.along]
    shape = tuple(extents[d] for d in plan.kept) if structure is None else (length(structure.values),)
    spans = plan.loops.level_intervals(extents)
    recalled = program.kernel is not None
    kernel = program.kernel = program.kernel or _compiled(plan, operands, extents)
    storages = tuple(operands[n] for n in plan.sparse)
    cuts = cut(kernel, storages, spans, fine=False)
    chunks, share = _shares(plan, cuts, math.prod(shape), storages)
    cuts = cuts if chunks > 1 else [cuts[0], cuts[-1]]
    parts = chunks if share else 1
    out = full(parts * math.prod(shape), plan.scalar, identity(plan.op, plan.scalar).value, like)
    counts = np.zeros(parts * math.prod(shape), np.int64) if plan.counts else None
    arguments: list[int] = []
    if 0 not in extents:
        state = np.array(cuts, np.int64)
        known_arguments = {"out_vals": address(out), "meta": address(state), "chunks": chunks, "share": share}
        if counts is not None:
            known_arguments["out_counts"] = address(counts)
        arguments = _arguments(kernel, operands, known_arguments | program.arguments)
        pool.parallel(kernel.executable, arguments, list(range(chunks + 1)), work_of(storages, spans))
    if trace.active():
        _describe(plan, kernel, operands, chunks, out, counts, arguments, recalled)
    total_counts = None if counts is None else _total(counts, parts, shape)
    return Summed(_combine_chunks(plan, out, parts, shape), total_counts, structure, plan.fill)


def _shares(plan: SumSchedule, cuts: list[int], size: int, storages: tuple[Storage, ...]) -> tuple[int, int]:
    """The number of chunks, and the elements of their private accumulators; 0 where they write to distinct parts."""
    chunks = len(cuts) - 1
    first = plan.loops.levels[0].expression if plan.loops.levels else None
    if plan.along is not None:
        return chunks, 0
    if first is not None and any(k == 0 for d in plan.kept for k, _ in plan.loops.inverse[d]):
        return chunks, 0
    if size * chunks > sum(s.nse for s in storages):
        chunks = 1
    return chunks, size


def _compiled(plan: SumSchedule, operands: Mapping[str, Any], extents: tuple[int, ...]) -> Compiled:
    """The kernel for operands that follow the order of the plan's loops."""
    units = tuple(operands[n].unit for n in plan.dense)
    guards = _guards(plan.loops, extents)
    storages = tuple([operands[n] for n in plan.sparse])
    drivers = drivers_of(plan.gallop_chooser, storages, extents, plan.loops)
    key = (plan, units, guards, drivers, *[s.signature for s in storages])
    return KERNELS.get(key) or KERNELS.keep(key, _compile(plan, operands, units, guards, drivers))


def _extents(plan: SumSchedule, extents: tuple[int, ...]) -> dict[str, int]:
    """The arguments that follow from the extents."""
    arguments: dict[str, int] = {}
    for at, (lo, hi) in enumerate(plan.loops.level_intervals(extents)):
        arguments |= {f"n{at}": hi - lo, f"lo{at}": lo}
    arguments |= {f"e{d}": n for d, n in enumerate(extents)}
    stride = 1
    for k in range(len(plan.kept) - 1, -1, -1):
        arguments[f"out_stride{k}"] = stride
        stride *= extents[plan.kept[k]]
    return arguments


def _guards(loops: Format, extents: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions whose extents the loops may exceed."""
    guards = []
    for d, form in enumerate(loops.inverse):
        if len(form) == 1 and form[0][1] == 1 and isinstance(loops.levels[form[0][0]].expression, Dim):
            continue
        if not _divides(loops, form, extents[d]):
            guards.append(d)
    return tuple(guards)


def _divides(loops: Format, form: tuple[tuple[int, int], ...], extent: int) -> bool:
    """Whether blocks along the dimension end where it ends; diagonals never do."""
    if any(len(tuple(dimensions(loops.levels[k].expression))) > 1 for k, _ in form):
        return False
    return extent % max(factor for _, factor in form) == 0


def _moves(loops: Format, dims: tuple[int, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each loop, (dimension, factor) of an array's dimensions that its coordinate advances."""
    steps: list[list[tuple[int, int]]] = [[] for _ in loops.levels]
    for dim, d in enumerate(dims):
        for k, factor in loops.inverse[d]:
            steps[k].append((dim, factor))
    return tuple(map(tuple, steps))


def _compile(
    plan: SumSchedule, storages: Mapping[str, Any], units: tuple[int | None, ...], guards: tuple[int, ...],
    drivers: Drivers,
) -> Compiled:  # fmt: skip
    order = [level.expression for level in plan.loops.levels]
    inputs: list[Input] = []
    arrays: list[Located] = []
    for name in plan.sparse:
        levels = levels_in_order(storages[name].format, plan.dims[name], order)
        assert levels is not None
        inputs.append(Input(name, operand_of(storages[name]), levels))
    for name, unit in zip(plan.dense, units, strict=True):
        dims = tuple(d for d in plan.dims[name] if d is not None)
        operand = Operand(storages[name].scalar, len(dims), unit=unit)
        arrays.append(Located(name, operand, _moves(plan.loops, dims)))
    none = (None,) * plan.loops.nlevels
    target = Operand(plan.scalar, plan.loops.ndim, plan.loops, none, none)
    unit = len(plan.kept) - 1 if plan.kept else None
    moves = _moves(plan.loops, plan.kept if plan.along is None else ())
    reduction = Reduction(plan.op, moves, unit, plan.counts, plan.along, guards)
    merge = Merge(tuple(inputs), plan.regions, target, tuple(arrays), reduction, drivers)
    fills = {n: show(f) for n, f in plan.regions.fills.items()}
    expression_text = f"{show(plan.regions.expr)} {fills} {show(plan.regions.fill)}"
    listed = [(g.name, g.operand, g.levels) for g in inputs]
    text = f"sum {expression_text} {listed} {arrays} {plan.loops.identity} {plan.scalar} {reduction} {drivers}"
    executable = cache.get(text, lambda: build(merge))
    operands = {g.name: g.operand for g in inputs} | {g.name: g.operand for g in arrays}
    params = [p.name for p in executable.params]
    refs = {
        n: parse_ref(n, operands, plan.dense) for n in params if any(n == o or n.startswith(f"{o}_") for o in operands)
    }
    return Compiled(merge, "i32", executable, refs, tuple(params), 0)


def build(merge: Merge) -> Kernel:
    """The simplified kernel of a reduced merge."""
    inputs = {entry.name: entry.operand for entry in merge.inputs}
    return simplify(reading_one(lower_merge("merge_sum", merge, target.expands()), inputs))


def _arguments(kernel: Compiled, operands: Mapping[str, Any], fixed: Mapping[str, int]) -> list[int]:
    arguments = []
    for name in kernel.names:
        ref = kernel.refs.get(name)
        arguments.append(fixed[name] if ref is None else kernel_argument(ref, operands, {}))
    return arguments


# -- the result --------------------------------------------------------------------------------------------------------


def _combine_chunks(plan: SumSchedule, out: Array, parts: int, shape: tuple[int, ...]) -> Array:
    """The chunks' results combined."""
    if parts == 1:
        return out.reshape(shape)
    rows = out.reshape((parts, *shape))
    if is_torch(rows):
        first = rows[0]
        for row in rows[1:]:
            first = _COMBINE[plan.op](first, row)
        return first
    reduce = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[plan.op]
    return np.asarray(reduce.reduce(rows, axis=0))


def _torch_function(name: str) -> Any:
    def combine(a: Any, b: Any) -> Any:
        import torch

        return getattr(torch, name)(a, b)

    return combine


_COMBINE = {
    "add": _torch_function("add"),
    "mul": _torch_function("mul"),
    "min": _torch_function("minimum"),
    "max": _torch_function("maximum"),
}


def _total(counts: Any, parts: int, shape: tuple[int, ...]) -> Any:
    return counts.reshape((parts, *shape)).sum(axis=0)


def _result(plan: SumSchedule) -> str:
    if plan.along is not None:
        return f"{plan.scalar}, in the structure of {plan.along}"
    return f"{plan.scalar} over ({', '.join(plan.loops.dims[d] for d in plan.kept)}), no temporary"


def _describe(
    plan: SumSchedule,
    kernel: Compiled,
    operands: Mapping[str, Any],
    chunks: int,
    out: Array,
    counts: Any,
    arguments: list[int],
    recalled: bool,
) -> None:
    """Record a launch for `explain`."""
    formats = [f"{n}: {trace.shown(operands[n].format)}" for n in plan.sparse]
    formats += [f"{n}: dense {operands[n].scalar}" for n in plan.dense]
    facts = [
        ("formats", ", ".join(formats)),
        ("loops", loops_text(plan.loops)),
        ("computes", f"where these are present: {plan.regions}"),
        *gallop_text(kernel.merge.drivers, plan.loops),
        *(trace.rows(kernel.executable, arguments) if arguments else ()),
        ("result", _result(plan)),
        ("parallel", f"{chunks} range(s) of the outermost loop"),
        trace.prepared(BY_STRUCTURE if recalled else ""),
    ]
    if counts is not None:
        facts.insert(3, ("counts", f"the elements visited; the others are {plan.fill!r}"))
    nbytes = out.nbytes + (0 if counts is None else counts.nbytes)
    trace.note(trace.Step(f"merge {plan.text}", tuple(facts), nbytes, kernel.executable))

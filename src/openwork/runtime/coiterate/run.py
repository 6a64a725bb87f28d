"""A merge's plan and its operands -> the result: convert operands out of order, bound the result, launch, trim."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from ...codegen import pool
from ...compiler.conversion.level_runs import Kind, Run
from ...compiler.schedule.coiterate import MergeSchedule
from ...compiler.schedule.gallop import Drivers
from ...errors import ShapeError, UnsupportedError
from ...format.expression import render
from ...format.format import Format
from ...storage.buffers import Array, address, empty, is_torch, itemsize, length, scalar_of, zeros
from ...storage.memory import shrink
from ...storage.recorded import in_transform, outside
from ...storage.sizes import positions
from ...storage.storage import Storage
from .. import trace
from ..conversion.assembly import full
from ..conversion.batch import batched
from ..conversion.convert import convert, describe, replace_format
from ..float_errors import WarningSource
from ..gradient_hook import by_rule, tracked
from ..launch import storage_argument
from .ordered_concat import orderable, run_ordered
from .partition import capacities, cut, work_of
from .plan import Compiled, compiled
from .program import BY_STRUCTURE, BY_TYPES, Program
from .shaped import Launch, OneChain, launch_of
from .single_rows import as_matrix, as_vectors

__all__ = ["converted", "execute", "gallop_text", "loops_text", "run_merge"]

_VALUES, _NUMPY = attrgetter("values"), {np.ndarray}


def run_merge(
    program: Program, storages: tuple[Storage, ...], numbers: Sequence[float] = ()
) -> tuple[Storage, bool]:  # fmt: skip
    """The result of a merge on storages of its program's structures, in the plan's format, and whether it is certain
    that NumPy would warn of nothing; `numbers` are those of the plan. The head of the road: asks whether torch records.
    """
    buffers = list(map(_VALUES, storages))
    if {*map(type, buffers)} != _NUMPY:
        if tracked(buffers):
            return by_rule(_merged, "run_merge", buffers, (program, storages, numbers), {}, True), True
        if in_transform():
            with outside():  # nothing is recorded: buffers that are made here belong to no transform
                return execute(program, storages, numbers)
    return execute(program, storages, numbers)


def _merged(program: Program, storages: tuple[Storage, ...], numbers: Sequence[float] = ()) -> Storage:
    """The result of a merge."""
    return run_merge(program, storages, numbers)[0]


def execute(
    program: Program, storages: tuple[Storage, ...], numbers: Sequence[float] = ()
) -> tuple[Storage, bool]:  # fmt: skip
    """`run_merge` of operands that torch does not record."""
    plan, boxed = program.plan, [np.array([x]) for x in numbers] if numbers else []
    if not trace.steps:
        if program.one_chain is None and not program.has_run:
            program.one_chain = _one_chain(program, storages)
        if program.one_chain is not None:
            found = program.one_chain.run(storages, (*boxed, *plan.constants), plan.warnings)
            if found is not None:
                return found
    return _execute(program, storages, (*boxed, *plan.constants)), plan.warnings is WarningSource.NEVER


def _one_chain(program: Program, storages: tuple[Storage, ...]) -> OneChain | None:
    """The launch of a merge that converts nothing, where its result has one chain and it is not one of single rows."""
    plan, shape = program.plan.schedule, program.shape
    if plan.converts or 0 in shape or any(s.device != "cpu" for s in storages):
        return None
    if as_vectors(plan, storages, shape) is not None:
        return None
    return launch_of(plan, storages, shape).one_chain


def _execute(program: Program, storages: tuple[Storage, ...], passed: Sequence[Array]) -> Storage:
    """`execute` of any merge: operands out of order are converted, and so is the result of another format."""
    plan, shape = program.plan.schedule, program.shape
    recalled = BY_STRUCTURE if program.has_run else BY_TYPES if program.one_chain is not None else ""
    program.has_run = True
    if any(s.device != "cpu" for s in storages):
        raise UnsupportedError("elementwise operations of sparse tensors run on the CPU\n  help: .to('cpu') first")
    like = storages[0].values
    operands = storages
    for k, step in enumerate(plan.steps):
        if step is not None:
            operands = (*operands[:k], converted(list(plan.dims)[k], operands[k], step), *operands[k + 1 :])
    row = as_vectors(plan, operands, shape)
    if 0 in shape:
        result = _empty_result(plan, shape, like)
    elif row is not None:
        single, vectors = row
        launch = launch_of(single, vectors, vectors[0].shape)
        result = as_matrix(_run(single, launch, vectors, vectors[0].shape, passed, recalled), plan.target, shape)
    else:
        launch = launch_of(plan, operands, shape)
        if operands is storages:
            program.one_chain = launch.one_chain
        result = _run(plan, launch, operands, shape, passed, recalled)
    if plan.format is plan.target:
        return result
    n = plan.format.batch_ndim
    if n and plan.format.levels[n:] == plan.target.levels[n:]:
        return _in_batches(plan, result)
    return replace_format(converted("the result", result, plan.format), plan.format)


def _in_batches(plan: MergeSchedule, result: Storage) -> Storage:
    """The result with batch levels, or dense ones where slices differ in length and no format was given."""
    try:
        return batched(result, plan.format)
    except ShapeError:
        if plan.format_given:
            raise
        return result


def converted(name: str, s: Storage, format: Format) -> Storage:
    """An operand that is not in the loops' order, or the result, converted to another format."""
    if not trace.active() or s.format == format:
        return convert(s, format)
    with trace.record():
        result = convert(s, format)
    describe(name, s, result)
    return result


def _empty_result(plan: MergeSchedule, shape: tuple[int, ...], like: Array) -> Storage:
    """A result without elements."""

    index = "i64" if is_torch(like) else "i32"
    pos: list[Array | None] = []
    crd: list[Array | None] = []
    parents = 1
    spans = plan.target.level_intervals(shape)
    for level, (lo, hi) in zip(plan.target.levels, spans, strict=True):
        kind = level.format
        pos.append(zeros(parents + 1, index, like) if kind.is_compressed else None)
        parents = parents * (hi - lo) if kind.is_located else 0
        stored = "crd" in kind.buffers
        crd.append(zeros(parents, "bool" if kind.is_bitmap else index, like) if stored else None)
    count = positions(plan.target, shape, crd)[-1] if crd else 1
    values = full(count, plan.scalar, plan.fill, like)
    return Storage(shape, plan.target, plan.scalar, plan.fill, tuple(pos), tuple(crd), values)


def _run(
    plan: MergeSchedule, launch: Launch, storages: tuple[Storage, ...], shape: tuple[int, ...], passed: Sequence[Array],
    recalled: str,
) -> Storage:  # fmt: skip
    """The result: buffers allocated by its bounds, filled at once or range by range, then trimmed."""
    like = storages[0].values
    kernel, spans = launch.kernel, launch.spans
    chains = [run for run in plan.runs if run.kind is Kind.CHAIN]
    in_order = orderable(plan)
    cuts = cut(kernel, storages, spans, fine=in_order)
    if chains and not in_order:
        cuts = [cuts[0], cuts[-1]]
    caps = {r: capacities(b, kernel, storages, spans, cuts) for r, b in zip(chains, kernel.bounds, strict=True)}
    slots = {run: int(cap.sum()) for run, cap in caps.items()}
    if kernel.index == "i32" and any(n >= 2**31 - 1 for n in slots.values()):
        kernel = compiled(plan, storages, "i64", kernel.merge.drivers)
    pos, crd, values, arguments = _allocate(plan, kernel, slots, spans, like)
    meta = np.array([cuts[0], cuts[-1], *[0] * (2 * len(chains))], np.int64)
    reserved = sum(length(b) * itemsize(scalar_of(b)) for b in (*pos, *crd, values) if b is not None)
    arguments |= {"meta": address(meta), "chunks": 1, **launch.extents}
    arguments |= {name: address(x) for name, x in zip(plan.parameters, passed, strict=True)}
    if "fill" in kernel.names:
        fill = full(1, plan.scalar, plan.fill, like)
        arguments["fill"] = address(fill)
    packed = [w for s in storages for w in s.addresses]
    by_name = dict(zip(plan.dims, storages, strict=True))
    for name in kernel.names:
        ref = kernel.refs.get(name)
        packed.append(arguments[name] if ref is None else storage_argument(ref, by_name[ref.tensor]))
    used: dict[Run, int] | None = None
    if len(cuts) > 2 and not chains:
        _run_located(kernel, packed, cuts, work_of(storages, spans))
        used = {}
    elif len(cuts) > 2:
        used = run_ordered(plan, kernel, packed, spans, cuts, caps, like)
    if used is None:
        cuts = [cuts[0], cuts[-1]]
        pool.parallel(kernel.executable, packed, (0, 1), work_of(storages, spans))
        used = dict(zip(chains, meta[2 + len(chains) :].tolist(), strict=True))
    for run in chains:
        edges = pos[run.first]
        edges[0] = 0  # type: ignore[index]
        if run.first == 0:
            edges[1] = used[run]  # type: ignore[index]
    result = _trim(plan, used, spans, pos, crd, values, shape)
    if trace.active():
        facts = (
            ("formats", ", ".join(f"{n}: {trace.shown(s.format)}" for n, s in by_name.items())),
            ("loops", loops_text(plan.target)),
            ("result", f"{trace.shown(plan.target)}, {result.nbytes:,} bytes once it is cut to what was found"),
            ("computes", f"where these are present: {plan.regions}"),
            *gallop_text(kernel.merge.drivers, plan.target),
            *trace.rows(kernel.executable, packed),
            ("parallel", f"{len(cuts) - 1} range(s) of the outermost loop"),
            trace.prepared(recalled),
        )
        trace.note(trace.Step(f"merge {plan.text}", facts, reserved, kernel.executable))
    for k in plan.shares:
        if length(storages[k].values) == length(result.values):
            return storages[k].with_values(result.values, plan.fill)
    return result


def loops_text(format: Format) -> str:
    """The loops over a format's levels as text: those over every coordinate, and those over stored ones."""
    kinds = ["every" if level.format.is_located else "stored" for level in format.levels]
    named = [render(level.expression, format.dims) for level in format.levels]
    return ", ".join(f"{kind} {e}" for kind, e in zip(kinds, named, strict=True)) or "none"


def gallop_text(drivers: Drivers, format: Format) -> list[tuple[str, str]]:
    """The fact of `explain` on operands that are walked alone, being far shorter than others."""
    levels = format.levels[: len(drivers)]
    named = [f"{n} walks {render(e.expression, format.dims)}" for n, e in zip(drivers, levels, strict=True) if n]
    return [("gallop", f"{', '.join(named)}; the others are searched")] if named else []


def _run_located(kernel: Compiled, arguments: list[int], cuts: list[int], work: int) -> None:
    """Run ranges of a result whose positions are computed."""
    state = np.array(cuts, np.int64)
    names = [p.name for p in kernel.executable.params]
    arguments = arguments.copy()
    arguments[names.index("meta")], arguments[names.index("chunks")] = address(state), len(cuts) - 1
    pool.parallel(kernel.executable, arguments, list(range(len(cuts))), work)


def _allocate(
    plan: MergeSchedule, kernel: Compiled, slots: dict[Run, int], spans: tuple[tuple[int, int], ...], like: Array
) -> tuple[list[Array | None], list[Array | None], Array, dict[str, int]]:
    """Buffers with the given number of positions for each chain."""
    n = len(spans)
    pos: list[Array | None] = [None] * n
    crd: list[Array | None] = [None] * n
    arguments: dict[str, int] = {}
    parents = 1
    for run in plan.runs:
        if run.kind is Kind.CHAIN:
            pos[run.first] = buffer = empty(parents + 1, kernel.index, like)
            arguments[f"out_pos{run.first}"] = address(buffer)
            parents = slots[run]
            for at in run.levels:
                crd[at] = buffer = empty(parents, kernel.index, like)
                arguments[f"out_crd{at}"] = address(buffer)
            continue
        for at in run.levels:
            parents *= spans[at][1] - spans[at][0]
            if plan.target.levels[at].format.is_bitmap:
                crd[at] = buffer = zeros(parents, "bool", like)
                arguments[f"out_crd{at}"] = address(buffer)
    values = empty(parents, plan.scalar, like) if slots or plan.masked else full(parents, plan.scalar, plan.fill, like)
    arguments["out_vals"] = address(values)
    return pos, crd, values, arguments


def _trim(
    plan: MergeSchedule,
    used: dict[Run, int],
    spans: tuple[tuple[int, int], ...],
    pos: list[Array | None],
    crd: list[Array | None],
    values: Array,
    shape: tuple[int, ...],
) -> Storage:
    """The result with its buffers cut to what was used."""
    parents = 1
    for run in plan.runs:
        if run.kind is Kind.CHAIN:
            pos[run.first] = _cut(pos[run.first], parents + 1)
            parents = used[run]
            for at in run.levels:
                crd[at] = _cut(crd[at], parents)
        else:
            for at in run.levels:
                parents *= spans[at][1] - spans[at][0]
                crd[at] = None if crd[at] is None else _cut(crd[at], parents)
    values = _cut(values, parents)
    return Storage(shape, plan.target, plan.scalar, plan.fill, tuple(pos), tuple(crd), values)


def _cut(buffer: Array, n: int) -> Array:
    """The first n elements; unused memory is released where that is worth it."""
    size = length(buffer)
    if size == n:
        return buffer
    if size < 4096:
        return buffer[:n]
    if isinstance(buffer, np.ndarray):
        return shrink(buffer, n)
    return buffer[:n].clone() if 4 * n < 3 * size else buffer[:n]

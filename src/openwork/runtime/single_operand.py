"""A statement with one sparse operand, and its operands -> a compiled kernel, its arguments and ranges, a launch.

The path of `A @ x`: `ops.products.matmul` writes the statement `y[i] += A[i,j] * x[j]`; `prepare` gives the kernel,
through `compiler.schedule` (which loops), `compiler.single.lower` (loop IR) and `codegen.cache` (machine code);
`contract` allocates the result, binds the addresses and runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import tuning
from ..codegen import cache, pool, target
from ..codegen.executable import Executable
from ..codegen.plan_cache import PlanCache
from ..codegen.target import permutes
from ..compiler.operand import Operand, ParamRef, parse_ref
from ..compiler.schedule import MAX_CONSTANT, Facts, Schedule, schedule, without_gathers
from ..compiler.simplify import simplify
from ..compiler.single.lower import lower_single_operand
from ..errors import ShapeError
from ..ir.index import Access, Assignment
from ..ir.loop import Kernel
from ..storage.buffers import scalar_of, to_numpy
from ..storage.storage import Storage
from . import trace
from .launch import even_bounds, kernel_argument, launch, outer_range, work_bounds
from .packed_coordinates import packs
from .private_accumulators import has_long_run, parts_for
from .promote import compute_scalar
from .strided import Strided, contiguous_along

__all__ = ["PARALLEL_WORK", "Prepared", "Problem", "bind_operands", "describe", "operand_of", "prepare"]

LARGE_ROWS, LARGE_VECTOR = tuning.GATHERED_ROWS, tuning.GATHERED_VECTOR
PARALLEL_WORK = tuning.PRODUCT_PARALLEL
LONG_WORK = tuning.PRODUCT_WAVE

LONG_FIBRE, MEDIUM_FIBRE = tuning.LONG_FIBRE, tuning.MEDIUM_FIBRE
STRIDE, COSTLY = tuning.FIBRES_SAMPLED, tuning.LANES_COST

SHORT_FIBRE, SHORT_WORK = tuning.SHORT_FIBRE, tuning.SHORT_WORK
WINDOW, WINDOWS, ALIKE = tuning.FIBRE_WINDOW, tuning.FIBRE_WINDOWS, tuning.FIBRES_ALIKE

_operands: PlanCache[int, Operand] = PlanCache("operands", 1 << 14)
_prepared: PlanCache[Any, Prepared] = PlanCache("statements")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A compiled statement, and for each kernel parameter the part of an operand that it stands for."""

    schedule: Schedule
    executable: Executable
    refs: tuple[ParamRef, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A statement with its operands laid out: everything that decides the kernel, and the values to run it on.

    `innermost` is the output dimension that lies so in memory; `copies` names operands that were packed.
    """

    stmt: Assignment
    values: Mapping[str, Any]
    operands: Mapping[str, Operand]
    extents: Mapping[str, int]
    facts: Facts
    compute: str
    innermost: int | None
    copies: tuple[str, ...]


def operand_of(s: Storage) -> Operand:
    """The type of a storage, as the compiler sees it."""
    operand = _operands.get(s.signature)
    if operand is None:
        pos, crd = (tuple(None if b is None else scalar_of(b) for b in buffers) for buffers in (s.pos, s.crd))
        operand = Operand(s.scalar, len(s.shape), s.format, pos, crd, s.format.ragged(s.shape))
        _operands.keep(s.signature, operand)
    return operand


def _strided_operand(view: Strided, unit: int | None) -> Operand:
    return Operand(view.scalar, len(view.shape), unit=unit if view.shape else 0)


def extents_of(stmt: Assignment, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The extent of every index variable; ShapeError where operands disagree."""
    extents: dict[str, int] = {}
    origin: dict[str, str] = {}
    listed = "; ".join(f"{name} has shape {shape}" for name, shape in shapes.items())
    for access in stmt.accesses:
        shape = shapes[access.tensor]
        if len(shape) != len(access.indices):
            raise ShapeError(f"{stmt}: {access.tensor} is used with {len(access.indices)} indices; {listed}")
        for i, n in zip(access.indices, shape, strict=True):
            if extents.setdefault(i, n) != n:
                raise ShapeError(
                    f"{stmt}: index {i} has extent {extents[i]} in {origin[i]} and {n} in {access.tensor}"
                    f"\n  got: {listed}\n  help: make these dimensions equal, by slicing or transposing an operand"
                )
            origin.setdefault(i, access.tensor)
    missing = [i for i in stmt.lhs.indices if i not in extents]
    if missing:
        raise ShapeError(f"{stmt}: nothing on the right tells the extent of {', '.join(missing)}; {listed}")
    return extents


def canonical(extent: int) -> int:
    """The extent in a schedule's facts: exact when small, else one with the same remainder after every tile."""
    return extent if extent <= MAX_CONSTANT else 2 * MAX_CONSTANT + extent % MAX_CONSTANT


def _vector_index(stmt: Assignment, driver: Access, extents: Mapping[str, int]) -> str | None:
    """The dense index to run innermost: the longest free one, else the longest reduced one."""
    free = [i for i in stmt.lhs.indices if i not in driver.indices]
    reduced = [i for i in extents if i not in driver.indices and i not in stmt.lhs.indices]
    candidates = free or reduced
    return max(candidates, key=lambda i: extents[i], default=None)


def bind_operands(
    stmt: Assignment,
    values: Mapping[str, Any],
    out_scalar: str,
    *,
    shared: bool = False,
    compute: str | None = None,
    out: Strided | None = None,
) -> Problem:
    """Lay out the operands of a statement: pick the vector index and pack what is not contiguous along it.

    shared: the output has the sparse operand's structure. compute: the scalar type to compute in, the output's
    without. out: the array to write to, where there is one already.
    """
    shapes = {n: v.shape if isinstance(v, Storage | Strided) else () for n, v in values.items()}
    extents = extents_of(stmt, shapes)
    name = next(a.tensor for a in stmt.accesses if isinstance(values[a.tensor], Storage))
    driver = next(a for a in stmt.accesses if a.tensor == name)
    vector = _vector_index(stmt, driver, extents)
    laid: dict[str, Any] = {}
    operands: dict[str, Operand] = {}
    copies = []
    gathered = 0
    for access in stmt.accesses:
        value = values[access.tensor]
        if isinstance(value, Storage):
            operands[access.tensor] = operand_of(value)
        else:
            unit = value.unit
            if vector in access.indices and (unit is None or access.indices[unit] != vector):
                unit = access.indices.index(vector)
                packed = contiguous_along(value, unit)
                if packed is not value:
                    copies.append(access.tensor)
                    value = packed
            operands[access.tensor] = _strided_operand(value, unit)
            gathered = max(gathered, value.nbytes)
        laid[access.tensor] = value
    target = stmt.lhs.tensor
    last = stmt.lhs.indices.index(vector) if vector in stmt.lhs.indices else None
    if shared:
        operands[target] = replace(operands[name], scalar=out_scalar)
    elif out is not None:
        operands[target] = _strided_operand(out, out.unit)
    else:
        ndim = len(stmt.lhs.indices)
        operands[target] = Operand(out_scalar, ndim, unit=last if last is not None else max(0, ndim - 1))
    known_extents = ((vector, canonical(extents[vector])),) if vector is not None else ()
    long = _is_long(values[name], LONG_FIBRE)
    facts = Facts(
        known_extents,
        gathered > (LARGE_VECTOR if vector is None else LARGE_ROWS),
        long,
        _is_short(values[name]),
        *_packing(values[name]),
        not long and vector is None and _is_long(values[name], MEDIUM_FIBRE),
    )
    return Problem(stmt, laid, operands, extents, facts, compute or compute_scalar(out_scalar), last, tuple(copies))


def _packing(s: Storage) -> tuple[bool, int]:
    """Whether the last level's coordinates are packed, and if so the bytes of vectors whose lanes the CPU permutes."""
    return (True, permutes()) if packs(s) else (False, 0)


def _is_long(s: Storage, least: int) -> bool:
    """Whether the innermost fibers have so many elements: on average, or most are in such ones and others few."""
    if not s.positions:
        return False
    last = s.format.levels[-1].format
    above = s.positions[-2] if len(s.positions) > 1 and not last.is_singleton else s.shape[0] if s.shape else 1
    if s.positions[-1] >= least * max(1, above):
        return True
    pos = s.pos[-1]
    if pos is None or s.batches != 1 or not last.is_compressed or above < STRIDE:
        return False
    counts = np.diff(to_numpy(pos)[::STRIDE])
    long = counts >= least * STRIDE
    return bool(counts[long].sum() > COSTLY * STRIDE * (len(counts) - long.sum()))


def _is_short(s: Storage) -> bool:
    """Whether the innermost fibers are short and of many lengths, so that branches at their ends are mispredicted."""
    if len(s.positions) < 2 or s.positions[-1] < SHORT_WORK or s.batches != 1:
        return False
    pos, (above, n) = s.pos[-1], s.positions[-2:]
    if pos is None or s.format.levels[-1].format.functions.passed is None or not above // 2 <= n <= SHORT_FIBRE * above:
        return False
    if len(s.positions) > 2 and above < 2 * WINDOW * s.positions[-3]:
        return False
    starts = np.linspace(0, above - WINDOW, WINDOWS).astype(np.int64)
    lengths = np.diff(to_numpy(pos)[starts[:, None] + np.arange(WINDOW + 1)], axis=1)
    return bool((np.diff(lengths, axis=1) == 0).mean() < ALIKE)


def prepare(problem: Problem) -> Prepared:
    """The compiled kernel of a problem: from memory, from disk, or new."""
    key = (problem.stmt, tuple(sorted(problem.operands.items())), problem.facts, problem.compute)
    prepared = _prepared.get(key)
    if prepared is None:
        operands = dict(problem.operands)
        plan = schedule(problem.stmt, operands, problem.facts)
        text = f"drive {problem.stmt} {sorted(operands.items())} {problem.facts} {problem.compute}"
        without_values = replace(problem, values={})  # an executable keeps the function that builds its kernel
        executable = cache.get(text, lambda: lower(without_values, plan))
        arrays = [n for n, o in operands.items() if o.format is None and (o.unit is not None or o.ndim)]
        refs = tuple(parse_ref(p.name, operands, arrays) for p in executable.params)
        prepared = _prepared.keep(key, Prepared(plan, executable, refs))
    return prepared


def lower(problem: Problem, plan: Schedule) -> Kernel:
    """The simplified loop IR of a problem."""
    plan = plan if target.gathers() else without_gathers(plan, problem.facts)
    return simplify(lower_single_operand(problem.stmt, dict(problem.operands), plan, problem.compute))


def threads_for(problem: Problem, prepared: Prepared) -> int:
    """The number of threads that the work is worth: all or one."""
    return pool.get_num_threads() if work_of(problem, prepared) >= PARALLEL_WORK else 1


def bounds_of(problem: Problem, prepared: Prepared, size: int | None = None) -> tuple[tuple[int, ...], int]:
    """The ranges to run, and the number of private accumulators: one, unless outputs overlap and more pay.

    There are as many ranges as threads where there is enough work, and more where there is very much. size: elements of
    the output, where private accumulators are allowed.
    """
    plan = prepared.schedule
    driver: Storage = problem.values[plan.driver]
    if not driver.format.levels:
        return (0, 0), 1
    work, threads, parts = work_of(problem, prepared), threads_for(problem, prepared), 1
    whole_runs = plan.parallel and plan.run_reduce
    if (
        size is not None
        and work >= PARALLEL_WORK
        and (not plan.parallel or (whole_runs and has_long_run(driver, threads)))
    ):
        parts = parts_for(work, size, threads)
    if parts > 1 or not plan.parallel:
        threads, whole_runs = parts, False
    count = threads * (1 + work // (threads * LONG_WORK))
    if plan.sliced is not None:
        return even_bounds(0, problem.extents[plan.sliced], count), 1
    return (outer_range(driver) if count == 1 else work_bounds(driver, count, whole_runs)), parts


def describe(
    problem: Problem, prepared: Prepared, ranges: int, parts: int, allocated: int, recalled: bool = False
) -> None:
    """Record a launch for `explain`: on `ranges` ranges, with `parts` accumulators."""
    plan = prepared.schedule
    formats = ", ".join(
        f"{n}: {trace.shown(o.format)}" if o.format else f"{n}: dense {o.scalar}" for n, o in problem.operands.items()
    )
    order = [*plan.outer, *(str(level.format) for level in problem.operands[plan.driver].format.levels)]  # type: ignore[union-attr]
    facts = [("formats", formats), ("walks", f"{plan.driver}, level by level: {', '.join(order)}")]
    if plan.vector:
        extent = f", extent {problem.extents[plan.vector]}"
        pieces = [t.lanes for t in (plan.main or plan.rest)]
        facts.append(("vectorised", f"{plan.vector}{extent}, register tile of {' + '.join(map(str, pieces))} lanes"))
    if plan.short:
        facts.append(("fibres", "short and of many lengths: all in one loop"))
    if plan.panel:
        facts.append(("blocks", f"{plan.panel} rows by {plan.reads} reads of packed coordinates"))
    if problem.copies:
        facts.append(("packs", f"{', '.join(problem.copies)} to be contiguous along {plan.vector}"))
    where = f"coordinates of {plan.sliced}" if plan.sliced else "the outermost loop"
    added = "" if plan.parallel else f", added up in {parts} result(s)"
    facts.append(("parallel", f"{ranges} range(s) of {where}{added}"))
    facts.append(trace.prepared("with the structure" if recalled else ""))
    trace.note(trace.Step(f"kernel {problem.stmt}", tuple(facts), allocated, prepared.executable))


def words_of(problem: Problem, prepared: Prepared, out: Any) -> list[int]:
    """The arguments of a launch, in the order of the kernel's parameters."""
    values = {**problem.values, problem.stmt.lhs.tensor: out}
    return [kernel_argument(ref, values, problem.extents) for ref in prepared.refs]


def run(problem: Problem, prepared: Prepared, out: Any) -> None:
    """Bind the arguments of a kernel and launch it."""
    bounds, _ = bounds_of(problem, prepared)
    launch(prepared.executable, words_of(problem, prepared, out), bounds, prepared.schedule.parallel)


def work_of(problem: Problem, prepared: Prepared) -> int:
    """An estimate of the multiplications: stored elements times the extents of the dense indices."""
    driver: Storage = problem.values[prepared.schedule.driver]
    work = driver.positions[-1] if driver.positions else 1
    for i, n in problem.extents.items():
        if i == prepared.schedule.vector or i in prepared.schedule.outer:
            work *= n
    return work

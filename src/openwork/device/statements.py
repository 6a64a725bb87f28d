"""A statement with one sparse operand, and operands on a device -> its values, by a kernel of the device form.

The kernel follows from the statement, the operands' types and the mean length of a row, and is kept by these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from .. import tuning
from ..compiler.grid import FIRST, LAST, lower_grid
from ..compiler.operand import Operand, ParamRef, parse_ref
from ..compiler.schedule.grid import GridSchedule, grid_schedule
from ..compiler.single.factors import identity
from ..errors import CompilerBug
from ..format.expression import Dim
from ..format.level import Iterate
from ..ir.index import Assignment
from ..ir.loop import Grid
from ..runtime.plan import extents_of, form_of
from ..runtime.promote import compute_scalar
from ..runtime.strided import unit_of
from .adapter import Argument, Memory, Program
from .tensor import DeviceTensor
from .vector import cast, fill

__all__ = ["View", "argument_of", "contract", "numbers_of", "operand_of", "outer_of", "plan_of", "sample", "view_of"]

SHARED, LONG = tuning.GRID_SHARED_ROW, tuning.GRID_LONG_ROW


class View(NamedTuple):
    """A dense operand: memory, and strides in elements."""

    memory: Memory
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def view_of(t: DeviceTensor) -> View:
    """The view of a dense tensor; blocks and diagonals are laid out by rows first."""
    levels = t.format.levels
    if not all(isinstance(level.expression, Dim) for level in levels):
        return view_of(t.asformat("dense"))
    strides, step = [0] * t.ndim, 1
    for level in reversed(levels):
        assert isinstance(level.expression, Dim)
        strides[level.expression.index] = step
        step *= t.shape[level.expression.index]
    return View(t.memory, t.shape, tuple(strides))


def numbers_of(view: View, scalar: str) -> View:
    """A factor of a product of this type: bools as numbers, as a choice by them would leave out NaN times 0."""
    to_cast = view.memory.scalar == "bool" and scalar != "bool"
    return view._replace(memory=cast(view.memory, scalar)) if to_cast else view


def operand_of(t: DeviceTensor) -> Operand:
    """The operand that a tensor is to the compiler."""
    pos, crd = (tuple(None if b is None else b.scalar for b in g) for g in (t.pos_buffers, t.crd_buffers))
    return Operand(t.scalar, t.ndim, t.format, pos, crd, t.format.ragged(t.shape))


Values = Mapping[str, DeviceTensor | View]


@dataclass(frozen=True, slots=True)
class DevicePlan:
    program: Program
    schedule: GridSchedule
    width: int
    refs: tuple[ParamRef, ...]


@lru_cache(maxsize=4096)
def plan_of(
    stmt: Assignment, types: tuple[tuple[str, Operand], ...], row: int, compute: str, grid: Grid
) -> DevicePlan:  # fmt: skip
    operands = dict(types)
    schedule = replace(grid_schedule(stmt, operands, row), grid=grid)
    kernel, width = lower_grid(stmt, operands, schedule, compute)
    arrays = [n for n, o in types if o.format is None]
    own = (FIRST, LAST)
    refs = tuple(parse_ref(p.name, operands, arrays) for p in kernel.params if p.name not in own)
    return DevicePlan(Program(kernel), schedule, width, refs)


def contract(stmt: Assignment, values: Values, scalar: str) -> Memory:
    """Evaluate a statement whose result is a dense array: row-major memory. Duplicates count as they are stored."""
    compute = compute_scalar(scalar)
    extents, form = _extents(stmt, values), form_of(stmt, _driver(values))
    shape = tuple(extents[i] for i in form.out)
    device = _sparse(values).adapter
    out = fill(device, math.prod(shape), identity(stmt.reduction, compute).value, compute)
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    if 0 not in extents.values():
        _run(stmt, {**values, form.target: View(out, shape, tuple(strides))}, extents, compute, False)
    return cast(out, scalar)


def sample(stmt: Assignment, values: Values, scalar: str) -> Memory:
    """Evaluate a statement at the stored elements of its sparse operand: values on its structure."""
    compute = compute_scalar(scalar)
    extents, t = _extents(stmt, values), _sparse(values)
    out = fill(t.adapter, t.memory.length, 0, compute)
    if 0 not in extents.values() and out.length:
        target = t.with_values(out, 0)
        _run(stmt, {**values, stmt.lhs.tensor: target}, extents, compute, True)
    return cast(out, scalar)


def _driver(values: Values) -> str:
    names = [n for n, v in values.items() if isinstance(v, DeviceTensor)]
    if len(names) != 1:
        raise CompilerBug(f"a statement with one sparse operand: {len(names)} are")
    return names[0]


def _sparse(values: Values) -> DeviceTensor:
    return next(v for v in values.values() if isinstance(v, DeviceTensor))


def _extents(stmt: Assignment, values: Values) -> dict[str, int]:
    form = form_of(stmt, _driver(values))
    return extents_of(stmt, form, [values[n].shape for n in (form.driver, *form.dense)])


def _run(stmt: Assignment, values: Values, extents: Mapping[str, int], compute: str, shared: bool) -> None:
    """Launch the kernel. values : those of the statement and its target"""
    form = form_of(stmt, next(n for n, v in values.items() if isinstance(v, DeviceTensor) and n != stmt.lhs.tensor))
    t = values[form.driver]
    assert isinstance(t, DeviceTensor)
    types = {}
    for name, v in values.items():
        if isinstance(v, DeviceTensor):
            types[name] = operand_of(v)
        else:
            ndim = len(v.shape)
            types[name] = Operand(v.memory.scalar, ndim, unit=unit_of(v.shape, v.strides) if ndim else 0)
    kept = math.prod(extents[i] for i in form.at if i in form.out)
    mean = t.memory.length / max(1, kept)
    row = LONG if mean >= LONG else SHARED if mean >= SHARED else 0
    grid = t.adapter.grid
    plan = plan_of(stmt, tuple(sorted(types.items())), row, compute, grid)
    arguments: dict[str, Argument] = {}
    for ref in plan.refs:
        arguments[ref.name] = argument_of(ref, values, extents)
    total = 1
    if t.format.levels:
        first, last = outer_of(t)
        if plan.schedule.nest.sliced is not None:
            first, last = 0, extents[plan.schedule.nest.sliced]
        arguments[FIRST], arguments[LAST] = first, last
        total = -(-(last - first) // plan.schedule.chunk)
    for i in plan.schedule.nest.outer:
        total *= extents[i]
    plan.program(t.adapter, arguments, -(-total * plan.width // grid.items))


def outer_of(t: DeviceTensor) -> tuple[int, int]:
    """First and last + 1 of what the outermost loop counts."""
    if t.format.levels[0].format.functions.iterate is Iterate.COORDINATE:
        return t.format.level_intervals(t.shape)[0]
    return (0, t.positions[0]) if t.outer is None else t.outer


def argument_of(ref: ParamRef, values: Values, extents: Mapping[str, int]) -> Argument:
    if ref.kind == "extent":
        return extents[ref.tensor]
    value = values[ref.tensor]
    if isinstance(value, View):
        return value.strides[ref.level] if ref.kind == "stride" else value.memory
    match ref.kind:
        case "vals":
            return value.memory
        case "pos" | "crd":
            buffer = (value.pos_buffers if ref.kind == "pos" else value.crd_buffers)[ref.level]
            assert buffer is not None
            return buffer
        case "size" | "lower":
            low, high = value.format.level_intervals(value.shape)[ref.level]
            return low if ref.kind == "lower" else high - low
        case "last":
            return max(0, value.positions[ref.level] - 1)
        case "slice":
            intervals = value.format.level_intervals(value.shape)
            batches = math.prod(hi - lo for lo, hi in intervals[: value.format.batch_ndim])
            buffers = {"vals": value.memory, "pos": value.pos_buffers[ref.level], "crd": value.crd_buffers[ref.level]}
            part = buffers[ref.part]
            assert part is not None
            return part.length // max(1, batches)
    raise CompilerBug(f"{ref} of a tensor on a device")

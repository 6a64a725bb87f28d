"""An elementwise expression over storages -> the schedule of its merge and its kernels, by types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...classes import frozen
from ...codegen import cache, target
from ...codegen.executable import Executable
from ...codegen.plan_cache import PlanCache
from ...compiler.coiterate import lower_merge
from ...compiler.coiterate.merge import Array, Input, Merge
from ...compiler.coiterate.merge_formats import Dims, levels_in_order
from ...compiler.fill import is_missing
from ...compiler.operand import Operand, ParamRef, parse_ref, reading_one
from ...compiler.schedule.coiterate import Bound, MergeSchedule, bounds_of, schedule_merge
from ...compiler.schedule.gallop import Drivers
from ...compiler.simplify import simplify
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Const, Kernel
from ...ir.printer import show
from ...storage.storage import Storage
from ..conversion.remap import has_gaps
from ..float_errors import WarningSource, is_small, warning_source
from ..operand_type import operand_of
from .types import typed

__all__ = ["Compiled", "MergePlan", "kept_plan", "plan_merge"]

P = TypeVar("P")

PLANS: PlanCache[Any, Any] = PlanCache("merges")
"""Plans by what they follow from: the expression, the kinds of its operands and where their dimensions are."""
KERNELS: PlanCache[Any, Compiled] = PlanCache("kernels of merges")
"""By plan, signatures of its operands after conversion, index type and the operands that are walked alone."""


@frozen(eq=False)
class Compiled:
    """A merge for operands of given types and one width of the result's indices."""

    merge: Merge
    index: str
    executable: Executable
    refs: dict[str, ParamRef]
    names: tuple[str, ...]
    """parameters after the operands' buffers"""
    prefix: int
    """the number of parameters that are operands' buffers"""
    bounds: tuple[Bound, ...] = ()
    """of the result's chains"""


class MergePlan(NamedTuple):
    """A merge's schedule, by types, and what follows from it.

    warnings, operands_warn : how it is known whether NumPy would warn of the result; whether, of operands of one
        structure, of their stored values only
    constants : the fill values that the kernel is passed, as arrays
    keeps_kind : whether the result has the first operand's library, NumPy, and its scalar type and fill value
    """

    schedule: MergeSchedule
    warnings: WarningSource
    operands_warn: bool
    constants: tuple[Any, ...]
    keeps_kind: bool


def kept_plan(key: tuple[Hashable, ...], make: Callable[[], P]) -> P:
    """The plan that `make` gives for an expression and sparse operands of these kinds, which `key` stands for."""
    plan: P | None = PLANS.get(key)
    return PLANS.keep(key, make()) if plan is None else plan


def plan_merge(
    e: Expression, storages: Mapping[str, Storage], dims: Mapping[str, Dims], ndim: int, format: Format | None,
    annihilate: bool = True, lacking: Collection[str] = (),
) -> MergePlan:  # fmt: skip
    """The plan of an expression over storages, see `schedule_merge`."""
    library = "torch" if any(s.library == "torch" for s in storages.values()) else "numpy"
    expr = typed(e, {name: s.scalar for name, s in storages.items()}, library)
    schedule = schedule_merge(e, expr, storages, dims, ndim, format, annihilate, lacking)
    warnings = WarningSource.NEVER if lacking else warning_source(e, schedule.scalar, schedule.fill, library)
    gaps = any(not s.format.is_unique or has_gaps(s) for s in storages.values())
    operands_warn = not gaps and warnings is not WarningSource.NEVER and is_small(schedule.scalar, schedule.fill)
    constants = tuple([np.array([x]) for x in schedule.constants.values()])
    first = next(iter(storages.values()))
    keeps_kind = type(first.values) is np.ndarray and schedule.scalar == first.scalar
    keeps_kind = keeps_kind and repr(schedule.fill) == repr(first.fill_value)
    return MergePlan(schedule, warnings, operands_warn, constants, keeps_kind)


def compiled(plan: MergeSchedule, storages: tuple[Storage, ...], index: str, drivers: Drivers = ()) -> Compiled:
    """The kernel for storages that follow the target's order, with result indices of type `index`."""
    key = (plan, index, drivers, *[s.signature for s in storages])
    return KERNELS.get(key) or KERNELS.keep(key, _compile(plan, storages, index, drivers))


def _compile(plan: MergeSchedule, storages: tuple[Storage, ...], index: str, drivers: Drivers) -> Compiled:
    order = [level.expression for level in plan.target.levels]
    inputs = []
    for name, s in zip(plan.dims, storages, strict=True):
        levels = levels_in_order(s.format, plan.dims[name], order)
        assert levels is not None
        inputs.append(Input(name, operand_of(s), levels))
    formats = [level.format for level in plan.target.levels]
    pos = tuple(index if "pos" in f.buffers else None for f in formats)
    crd = tuple(("bool" if f.is_bitmap else index) if "crd" in f.buffers else None for f in formats)
    target = Operand(plan.scalar, plan.target.ndim, plan.target, pos, crd)
    arrays = tuple(Array(n, Operand("f64", 0), ((),) * len(order)) for n in plan.parameters)
    merge = Merge(tuple(inputs), plan.fill_regions or plan.regions, target, arrays, drivers=drivers)
    executable = cache.get(_key(merge), lambda: build(merge))
    names = {entry.name: entry.operand for entry in inputs}
    params = tuple(p.name for p in executable.params)
    prefix = sum(len(s.buffers) for s in storages)
    refs = {n: parse_ref(n, names, ()) for n in params[prefix:] if _belongs(n, names)}
    return Compiled(merge, index, executable, refs, params[prefix:], prefix, bounds_of(plan, merge))


def build(merge: Merge) -> Kernel:
    """The simplified kernel of a merge."""
    inputs = {entry.name: entry.operand for entry in merge.inputs}
    return simplify(reading_one(lower_merge("merge", merge, target.expands()), inputs))


def _belongs(name: str, operands: Mapping[str, Operand]) -> bool:
    return any(name.startswith(f"{operand}_") for operand in operands)


def _key(merge: Merge) -> str:
    regions = merge.regions
    inputs = [(g.name, g.operand, g.levels) for g in merge.inputs]
    fills = {
        n: f"{f.value!r} {f.type}" if isinstance(f, Const) else "--" if is_missing(f) else show(f)
        for n, f in regions.fills.items()
    }
    gallops = f" led by {merge.drivers}" if merge.drivers else ""
    return f"merge {show(regions.expr)} {fills} {inputs} {merge.target} {regions.annihilate}{gallops}"

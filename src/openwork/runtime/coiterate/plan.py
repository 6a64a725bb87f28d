"""An elementwise expression over storages -> the plan of its merge: result format, conversions, regions, kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from ... import tuning
from ...codegen import cache, target
from ...codegen.executable import Executable
from ...codegen.plan_cache import PlanCache
from ...compiler.coiterate import MAX_CASE_OPERANDS, lower_merge
from ...compiler.coiterate.expression_tree import storable_sets
from ...compiler.coiterate.merge import Array, Input, Merge
from ...compiler.coiterate.merge_formats import (
    Dims,
    default_format,
    is_projectable,
    levels_in_order,
    merge_format,
    project,
    with_bitmap,
)
from ...compiler.conversion.level_runs import Kind, Run, runs
from ...compiler.fill import Fill, Regions, is_missing, missing
from ...compiler.nonfinite_guard import nonfinite_guard
from ...compiler.operand import Operand, ParamRef, parse_ref
from ...compiler.scalar_arguments import number_name, numbers_of, passes
from ...compiler.simplify import simplify
from ...format import format as parse
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Const, Kernel, Var
from ...ir.ops import cast, const
from ...ir.printer import show
from ...ir.types import Type
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ..conversion.remap import has_gaps
from ..float_errors import WarningSource, is_small, warning_source
from ..single_operand import operand_of
from .gallop_choice import Drivers, GallopChooser, gallop_chooser_of
from .types import typed

__all__ = ["Bound", "Compiled", "MergePlan", "kept_plan", "plan_merge"]

P = TypeVar("P")


_PASSED = frozenset(("f32", "f64", "i32", "i64", "u32", "u64"))
"""Scalar types whose fill values are passed to the kernel."""
_FILLS = 100
"""The number of the first operand's fill value, after the numbers of an expression."""
_FEW = tuning.FILLS_PASSED

PLANS: PlanCache[Any, Any] = PlanCache("merges")
"""Plans by what they follow from: the expression, the kinds of its operands and where their dimensions are."""
KERNELS: PlanCache[Any, Compiled] = PlanCache("kernels of merges")
"""By plan, signatures of its operands after conversion, index type and the operands that are walked alone."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound of a chain's positions: the least of the sums in `sums` and of the product of its loops' extents.

    Each term is an operand's number, the level whose positions are counted (-1: one), and the loops that it lacks.
    """

    at: int
    sums: tuple[tuple[tuple[int, int, tuple[int, ...]], ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class MergePlan:
    """The plan of a merge: conversions of operands, the loop nest, the conversion of the result."""

    text: str
    regions: Regions
    dims: dict[str, Dims]
    steps: tuple[Format | None, ...]
    """the format that each operand is converted to first"""
    target: Format
    format: Format
    scalar: str
    fill: Any
    runs: tuple[Run, ...]
    same_structure: bool
    """whether operands of one structure give a result of that structure, and nothing is converted"""
    numbers: tuple[str, ...]
    """numbers of the expression, which the kernel is passed"""
    shares: tuple[int, ...]
    """operands whose structure is the result's where both have as many elements: one contains the other"""
    gallop_chooser: GallopChooser | None = None
    """chooses an operand that is far shorter than others; None where none can be walked alone"""
    nonfinite_guard: float | None = None
    """None where the result is NumPy's; else the size of values up to which it is: `compiler.nonfinite_guard`"""
    format_given: bool = False
    """whether the caller gave the format"""
    masked: bool = False
    """whether unspecified elements are missing; `fill` is a placeholder then"""
    fill_regions: Regions | None = None
    """the regions over fill values that the kernel is passed, where it depends on their signs only"""
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """these fill values, by name"""
    warnings: WarningSource = WarningSource.VALUES
    """how it is known whether NumPy would warn of the result"""
    converts: bool = False
    """whether operands are converted first"""
    operands_warn: bool = False
    """whether NumPy would warn of stored values only, for operands of one structure"""

    def __str__(self) -> str:
        return self.text

    @property
    def parameters(self) -> tuple[str, ...]:
        """The numbers that the kernel is passed: those of the expression, then fill values."""
        return (*self.numbers, *self.constants)


def kept_plan(key: tuple[Hashable, ...], storages: Iterable[Storage], make: Callable[[], P]) -> P:
    """The plan that `make` gives for sparse operands of these kinds, and what else `key` stands for."""
    key = (*key, *[s.kind for s in storages])
    plan: P | None = PLANS.get(key)
    return PLANS.keep(key, make()) if plan is None else plan


def plan_merge(
    e: Expression,
    storages: Mapping[str, Storage],
    dims: Mapping[str, Dims],
    ndim: int,
    format: Format | None,
    annihilate: bool = True,
    lacking: Collection[str] = (),
) -> MergePlan:
    """The plan of an expression over storages; `dims` maps their dimensions to the result's.

    annihilate: an absent zero makes a product zero, whatever the other factor.
    lacking: operands whose unspecified elements are missing; so are those of the result then, and no zero annihilates.
        The result gets a bitmap where its last level would store all children.
    """
    library = "torch" if any(s.library == "torch" for s in storages.values()) else "numpy"
    scalars = {name: s.scalar for name, s in storages.items()}
    expr = typed(e, scalars, library)
    fills: dict[str, Fill] = {
        name: missing(s.scalar) if name in lacking else const(s.fill_value, s.scalar) for name, s in storages.items()
    }
    regions = Regions(expr, fills, missing(expr.type) if lacking else None, annihilate and not lacking)
    scalar = expr.type.scalar
    fill = python_scalar(regions.fill.value if isinstance(regions.fill, Const) else 0, scalar)
    result_format = format or _default(regions, storages, dims, ndim)
    if lacking:
        result_format = with_bitmap(result_format) or result_format
    target = merge_format(result_format)
    if not all(is_projectable(target, d) for d in dims.values()):
        target = default_format(ndim)
    order = [level.expression for level in target.levels]
    steps: list[Format | None] = []
    for name, s in storages.items():
        in_order = levels_in_order(s.format, dims[name], order) is not None
        steps.append(None if in_order else project(target, dims[name], name in lacking))
    final = result_format if format is not None else target
    if format is None and result_format.batch_ndim:
        final = _batches(result_format, target) or target
    same_structure = all(s.format == final == target and None not in dims[name] for name, s in storages.items())
    text = f"{e} -> {target}"
    shares = _shares(regions, storages, dims, target)
    formats = {n: step or s.format for step, (n, s) in zip(steps, storages.items(), strict=True)}
    kinds = [run.kind for run in runs(target)]
    visited = sum(len(run.levels) for run in runs(target)[: kinds.index(Kind.CHAIN)]) if Kind.CHAIN in kinds else 0
    fill_regions, constants = _by_kind(regions, storages) if not lacking else (None, {})
    warnings = WarningSource.NEVER if lacking else warning_source(e, scalar, fill, library)
    gaps = any(not s.format.is_unique or has_gaps(s) for s in storages.values())
    operands_warn = not gaps and warnings is not WarningSource.NEVER and is_small(scalar, fill)
    return MergePlan(
        text, regions, dict(dims), tuple(steps), target, final, scalar, fill, runs(target), same_structure,
        tuple(dict.fromkeys(numbers_of(expr))), shares,
        gallop_chooser=gallop_chooser_of(regions, formats, dims, order, visited),
        nonfinite_guard=_nonfinite_guard(regions, steps, storages) if annihilate else None,
        format_given=format is not None,
        masked=bool(lacking), fill_regions=fill_regions, constants=constants,
        warnings=warnings, operands_warn=operands_warn, converts=any(steps),
    )  # fmt: skip


def _by_kind(
    regions: Regions, storages: Mapping[str, Storage]
) -> tuple[Regions | None, dict[str, np.ndarray[Any, Any]]]:
    """The regions with fill values as kernel arguments, and these: for a kernel that serves all values of their sign.

    Only where the regions are the same: a fill value that decides them is a part of the kernel.
    """
    constants: dict[str, np.ndarray[Any, Any]] = {}
    fills = dict(regions.fills)
    for k, (name, s) in enumerate(storages.items()):
        value = s.fill_value
        if s.scalar in _PASSED and passes(float(value)) and abs(value) < 2**53:
            number = number_name(_FILLS + k, float(value))
            constants[number] = np.array([float(value)])
            fills[name] = cast(Var(number, Type("f64")), s.scalar)  # type: ignore[assignment]
    if not constants or len(fills) > _FEW:
        return None, {}
    fill_regions = Regions(regions.expr, fills, None, regions.annihilate)
    names = frozenset(fills)
    subsets = [frozenset(s) for n in range(len(names) + 1) for s in combinations(sorted(names), n)]
    same_regions = all((fill_regions.body(s) is None) == (regions.body(s) is None) for s in subsets)
    return (fill_regions, constants) if same_regions else (None, {})


def _nonfinite_guard(regions: Regions, steps: Sequence[Format | None], storages: Mapping[str, Storage]) -> float | None:
    """`nonfinite_guard`; -1, for no values at all, where a conversion may store a fill value that is too large."""
    bound = nonfinite_guard(regions)
    converted_fills = (s.fill_value for step, s in zip(steps, storages.values(), strict=True) if step is not None)
    return bound if bound is None or all(abs(fill) <= bound for fill in converted_fills) else -1.0


def _shares(
    regions: Regions, storages: Mapping[str, Storage], dims: Mapping[str, Dims], target: Format
) -> tuple[int, ...]:
    """The operands of the target's format whose elements contain those of the result, or are contained in them."""
    if len(storages) > MAX_CASE_OPERANDS or not target.levels or runs(target)[-1].kind is not Kind.CHAIN:
        return ()
    shares = []
    sets = storable_sets(regions)
    for k, (name, s) in enumerate(storages.items()):
        if s.format != target or dims[name] != tuple(range(target.ndim)):
            continue
        contains = all(name in present for present in sets)
        if contains or regions.keeps(name):
            shares.append(k)
    return tuple(shares)


def _batches(format: Format, target: Format) -> Format | None:
    """The target with the batch levels of an operand; None where its leading levels are others."""
    n = format.batch_ndim
    if any(
        not t.format.is_dense or t.expression != w.expression
        for t, w in zip(target.levels[:n], format.levels, strict=False)
    ):
        return None
    return Format(target.dims, (*format.levels[:n], *target.levels[n:]))


def _default(regions: Regions, storages: Mapping[str, Storage], dims: Mapping[str, Dims], ndim: int) -> Format:
    """The format of the result: that of the operands where they agree, else of the first that has all dimensions and
    is sparse; dense where something is computed with all sparse operands absent."""
    dense = frozenset(name for name, s in storages.items() if s.format.is_dense and s.format.ndim)
    if dense and regions.body(dense) is not None:
        for name in sorted(dense):
            if None not in dims[name] and len(dims[name]) == ndim:
                return _aligned(storages[name].format, dims[name], ndim)

        return parse("dense", ndim)
    for name, s in storages.items():
        if None not in dims[name] and len(dims[name]) == ndim and name not in dense:
            return _aligned(s.format, dims[name], ndim)
    return default_format(ndim)


def _aligned(format: Format, dims: Dims, ndim: int) -> Format:
    """An operand's format in the result's dimensions."""
    axes = sorted(range(ndim), key=lambda k: dims[k] or 0)
    return format if axes == list(range(ndim)) else format.permute(axes)


def compiled(plan: MergePlan, storages: tuple[Storage, ...], index: str, drivers: Drivers = ()) -> Compiled:
    """The kernel for storages that follow the target's order, with result indices of type `index`."""
    key = (plan, index, drivers, *[s.signature for s in storages])
    return KERNELS.get(key) or KERNELS.keep(key, _compile(plan, storages, index, drivers))


def _compile(plan: MergePlan, storages: tuple[Storage, ...], index: str, drivers: Drivers) -> Compiled:
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
    return simplify(lower_merge("merge", merge, target.expands()))


def _belongs(name: str, operands: Mapping[str, Operand]) -> bool:
    return any(name.startswith(f"{operand}_") for operand in operands)


def _key(merge: Merge) -> str:
    regions = merge.regions
    inputs = [(g.name, g.operand, g.levels) for g in merge.inputs]
    fills = {
        n: f"{f.value!r} {f.type}" if isinstance(f, Const) else "--" if is_missing(f) else show(f)
        for n, f in regions.fills.items()
    }
    target = f"{merge.target.format and merge.target.format.canonical} {merge.target}"
    gallops = f" led by {merge.drivers}" if merge.drivers else ""
    return f"merge {show(regions.expr)} {fills} {inputs} {target} {regions.annihilate}{gallops}"


def bounds_of(plan: MergePlan, merge: Merge) -> tuple[Bound, ...]:
    """The bounds of the result's chains."""
    numbers = {entry.name: k for k, entry in enumerate(merge.inputs)}
    names_of_operands = merge.regions.names
    sets = (
        merge.regions.hitting(storable_sets(merge.regions))
        if len(names_of_operands) <= MAX_CASE_OPERANDS
        else (frozenset(names_of_operands),)
    )
    bounds = []
    for run in plan.runs:
        if run.kind is not Kind.CHAIN:
            continue
        loops = merge.order[: run.last + 1]
        sums = []
        for names in sets:
            terms = []
            for name in sorted(names):
                entry = merge.inputs[numbers[name]]
                counted_levels = [k for k, e in enumerate(entry.levels) if e in loops or e is None]
                prefix = max((k for k in range(len(counted_levels)) if counted_levels[k] == k), default=-1)
                lacks = tuple(at for at, e in enumerate(loops) if e not in entry.levels[: prefix + 1])
                terms.append((numbers[name], prefix, lacks))
            sums.append(tuple(terms))
        bounds.append(Bound(run.last, tuple(sums)))
    return tuple(bounds)

"""Plans of merges: formats, conversions of operands, regions, and the compiled kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from ... import tuning
from ...codegen import cache, target
from ...codegen.executable import Executable
from ...compiler.coiterate import MAX_CASE_OPERANDS, lower_merge
from ...compiler.coiterate.node import storable_sets
from ...compiler.coiterate.problem import Array, Input, Merge
from ...compiler.coiterate.target import (
    Dims,
    default_format,
    is_projectable,
    levels_in_order,
    merge_format,
    project,
    with_bitmap,
)
from ...compiler.conversion.target import Kind, Run, runs
from ...compiler.fill import Fill, Regions, is_missing, missing
from ...compiler.nonfinite_guard import nonfinite_guard
from ...compiler.number import number_name, numbers_of, passes
from ...compiler.operand import Operand, ParamRef, parse_ref
from ...compiler.simplify import simplify
from ...format import format as parse
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Const, Kernel, Var
from ...ir.ops import cast, const
from ...ir.printer import show
from ...ir.types import Type
from ...storage.buffers import address
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ..conversion.remap import has_gaps
from ..float_errors import Told, is_small, told_by
from ..single_operand import operand_of
from .gallop_choice import GallopChooser, Leads, scout
from .types import typed

__all__ = ["Bound", "Compiled", "MergePlan", "plan_merge"]


_PASSED = frozenset(("f32", "f64", "i32", "i64", "u32", "u64"))
"""Types of which fill values are passed."""
_FILLS = 100
"""The number of the first operand's fill value: behind those of an expression."""
_FEW = tuning.FILLS_PASSED


@dataclass(frozen=True, slots=True)
class Bound:
    """How many positions a chain can have: the least of the sums over `sums`, and the product of its loops' extents.

    Each term is an operand's number, the level whose positions count (-1: one), and the loops that it lacks.
    """

    at: int
    sums: tuple[tuple[tuple[int, int, tuple[int, ...]], ...], ...]


@dataclass(slots=True)
class Compiled:
    """A merge for one width of the result's indices."""

    merge: Merge
    index: str
    executable: Executable
    refs: dict[str, ParamRef]
    names: tuple[str, ...]
    """parameters behind the operands' buffers"""
    prefix: int
    """how many parameters are operands' buffers"""


@dataclass(slots=True)
class MergePlan:
    """What a merge does: convert operands, run the nest, convert the result."""

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
    keeps: bool
    """whether operands of one structure give a result of that structure, and nothing is converted"""
    numbers: tuple[str, ...]
    """numbers of the expression, which the kernel is passed"""
    shares: tuple[int, ...]
    """operands whose structure is the result's where both have as many elements: one contains the other"""
    compiled: dict[tuple[Any, ...], Compiled] = field(default_factory=dict)
    scout: GallopChooser | None = None
    """what tells whether an operand is far shorter than others; None where it makes no difference"""
    nonfinite_guard: float | None = None
    """None where NumPy's answer is certain; else the size up to which values make it so: `compiler.nonfinite_guard`"""
    asked: bool = False
    """whether the format was asked for"""
    masked: bool = False
    """whether elements that are not specified are missing; `fill` stands in their place"""
    exact: MergePlan | None = None
    """the plan for larger values, once there were some"""
    launches: dict[Any, Any] = field(default_factory=dict)
    """what was found for launches, by shape, leaders and signatures"""
    quick: Any = None
    """the lean launch of the last shape"""
    passed: Regions | None = None
    """the regions over fill values that the kernel is passed, where their kind is all that it depends on"""
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """these fill values, by name"""
    told: Told = Told.VALUES
    """what tells whether NumPy would warn of the result"""
    loud: bool = False
    """whether stored values of operands of one structure are all that NumPy would warn of"""
    constant_words: tuple[int, ...] = field(init=False)
    """the addresses of the fill values that are passed"""
    row: MergePlan | None = None
    """the plan for one row alone, once there was a matrix of one long row"""

    def __post_init__(self) -> None:
        self.constant_words = tuple(map(address, self.constants.values()))

    def __str__(self) -> str:
        return self.text

    @property
    def parameters(self) -> tuple[str, ...]:
        """The numbers that the kernel is passed: those of the expression, then fill values."""
        return (*self.numbers, *self.constants)


def plan_merge(
    e: Expression,
    storages: Mapping[str, Storage],
    dims: Mapping[str, Dims],
    ndim: int,
    format: Format | None,
    annihilate: bool = True,
    lacking: Collection[str] = (),
) -> MergePlan:
    """The plan of an expression over storages; `dims` says where their dimensions are in the result.

    annihilate: an absent zero makes a product zero, whatever it meets.
    lacking: operands whose unspecified elements are missing; those of the result are then, and no zero annihilates.
        The result gets a bitmap where its last level would hold all children.
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
    wanted = format or _default(regions, storages, dims, ndim)
    if lacking:
        wanted = with_bitmap(wanted) or wanted
    target = merge_format(wanted)
    if not all(is_projectable(target, d) for d in dims.values()):
        target = default_format(ndim)
    order = [level.expression for level in target.levels]
    steps: list[Format | None] = []
    for name, s in storages.items():
        fits = levels_in_order(s.format, dims[name], order) is not None
        steps.append(None if fits else project(target, dims[name], name in lacking))
    final = wanted if format is not None else target
    if format is None and wanted.batch_ndim:
        final = _batches(wanted, target) or target
    same = all(s.format == final == target and None not in dims[name] for name, s in storages.items())
    text = f"{e} -> {target}"
    shares = _shares(regions, storages, dims, target)
    formats = {n: step or s.format for step, (n, s) in zip(steps, storages.items(), strict=True)}
    kinds = [run.kind for run in runs(target)]
    covered = sum(len(run.levels) for run in runs(target)[: kinds.index(Kind.CHAIN)]) if Kind.CHAIN in kinds else 0
    passed, constants = _by_kind(regions, storages) if not lacking else (None, {})
    told = Told.NEVER if lacking else told_by(e, scalar, fill, library)
    gaps = any(not s.format.is_unique or has_gaps(s) for s in storages.values())
    loud = not gaps and told is not Told.NEVER and is_small(scalar, fill)
    return MergePlan(
        text, regions, dict(dims), tuple(steps), target, final, scalar, fill, runs(target), same,
        tuple(dict.fromkeys(numbers_of(expr))), shares,
        scout=scout(regions, formats, dims, order, covered),
        nonfinite_guard=_nonfinite_guard(regions, steps, storages) if annihilate else None, asked=format is not None,
        masked=bool(lacking), passed=passed, constants=constants,
        told=told, loud=loud,
    )  # fmt: skip


def _by_kind(
    regions: Regions, storages: Mapping[str, Storage]
) -> tuple[Regions | None, dict[str, np.ndarray[Any, Any]]]:
    """The regions with numbers in the place of fill values, and these: for a kernel that serves all of their kind.

    Only where the regions are the same: what a fill value decides is a part of the kernel.
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
    made = Regions(regions.expr, fills, None, regions.annihilate)
    names = frozenset(fills)
    every = [frozenset(s) for n in range(len(names) + 1) for s in combinations(sorted(names), n)]
    same = all((made.body(s) is None) == (regions.body(s) is None) for s in every)
    return (made, constants) if same else (None, {})


def _nonfinite_guard(regions: Regions, steps: Sequence[Format | None], storages: Mapping[str, Storage]) -> float | None:
    """`nonfinite_guard`; no values will do where a conversion may make elements of a fill value that is too large."""
    most = nonfinite_guard(regions)
    exposed = (s.fill_value for step, s in zip(steps, storages.values(), strict=True) if step is not None)
    return most if most is None or all(abs(fill) <= most for fill in exposed) else -1.0


def _shares(
    regions: Regions, storages: Mapping[str, Storage], dims: Mapping[str, Dims], target: Format
) -> tuple[int, ...]:
    """The operands of the target's format that contain every element of the result, or the other way round."""
    if len(storages) > MAX_CASE_OPERANDS or not target.levels or runs(target)[-1].kind is not Kind.CHAIN:
        return ()
    found = []
    sets = storable_sets(regions)
    for k, (name, s) in enumerate(storages.items()):
        if s.format != target or dims[name] != tuple(range(target.ndim)):
            continue
        contains = all(name in present for present in sets)
        if contains or regions.keeps(name):
            found.append(k)
    return tuple(found)


def _batches(wanted: Format, target: Format) -> Format | None:
    """The target with the batch levels of an operand; None where it has other levels in their place."""
    n = wanted.batch_ndim
    if any(
        not t.format.is_dense or t.expression != w.expression
        for t, w in zip(target.levels[:n], wanted.levels, strict=False)
    ):
        return None
    return Format(target.dims, (*wanted.levels[:n], *target.levels[n:]))


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


def compiled(plan: MergePlan, storages: tuple[Storage, ...], index: str, leads: Leads = ()) -> Compiled:
    """The kernel for storages that follow the target's order, with result indices of type `index`."""
    key = (index, leads, tuple(s.signature for s in storages))
    found = plan.compiled.get(key)
    if found is None:
        found = plan.compiled[key] = _compile(plan, storages, index, leads)
    return found


def _compile(plan: MergePlan, storages: tuple[Storage, ...], index: str, leads: Leads) -> Compiled:
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
    merge = Merge(tuple(inputs), plan.passed or plan.regions, target, arrays, drivers=leads)
    executable = cache.get(_key(merge), lambda: build(merge))
    names = {given.name: given.operand for given in inputs}
    own = tuple(p.name for p in executable.params)
    prefix = sum(len(s.buffers) for s in storages)
    refs = {n: parse_ref(n, names, ()) for n in own[prefix:] if _belongs(n, names)}
    return Compiled(merge, index, executable, refs, own[prefix:], prefix)


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
    leads = f" led by {merge.drivers}" if merge.drivers else ""
    return f"merge {show(regions.expr)} {fills} {inputs} {target} {regions.annihilate}{leads}"


def bounds_of(plan: MergePlan, merge: Merge) -> tuple[Bound, ...]:
    """The bounds of the result's chains."""
    numbers = {given.name: k for k, given in enumerate(merge.inputs)}
    every = merge.regions.names
    sets = (
        merge.regions.hitting(storable_sets(merge.regions)) if len(every) <= MAX_CASE_OPERANDS else (frozenset(every),)
    )
    found = []
    for run in plan.runs:
        if run.kind is not Kind.CHAIN:
            continue
        loops = merge.order[: run.last + 1]
        sums = []
        for names in sets:
            terms = []
            for name in sorted(names):
                given = merge.inputs[numbers[name]]
                own = [k for k, e in enumerate(given.levels) if e in loops or e is None]
                prefix = max((k for k in range(len(own)) if own[k] == k), default=-1)
                lacks = tuple(at for at, e in enumerate(loops) if e not in given.levels[: prefix + 1])
                terms.append((numbers[name], prefix, lacks))
            sums.append(tuple(terms))
        found.append(Bound(run.last, tuple(sums)))
    return tuple(found)

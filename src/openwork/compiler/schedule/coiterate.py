"""An elementwise expression, formats, scalar types and fill values of its operands -> the schedule of its merge.

A pure function: result format, the order of the loops, operands to be converted first, the regions in which something
is computed, numbers that the kernel is passed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any

from ... import tuning
from ...classes import frozen
from ...format import format as parse
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Const, Expr, Var
from ...ir.ops import cast, const
from ...ir.types import Type
from ...storage.scalars import python_scalar
from ..coiterate import MAX_CASE_OPERANDS
from ..coiterate.expression_tree import storable_sets
from ..coiterate.merge import Merge
from ..coiterate.merge_formats import (
    Dims,
    default_format,
    is_projectable,
    levels_in_order,
    merge_format,
    project,
    with_bitmap,
)
from ..conversion.level_runs import Kind, Run, runs
from ..fill import Fill, Regions, missing
from ..nonfinite_guard import nonfinite_guard
from ..scalar_arguments import number_name, numbers_of, passes
from .gallop import GallopChooser, gallop_chooser_of
from .plan import CoiterationSchedule, SparseOperand

__all__ = ["Bound", "MergeSchedule", "bounds_of", "schedule_merge"]

_PASSED = frozenset(("f32", "f64", "i32", "i64", "u32", "u64"))
"""Scalar types whose fill values are passed to the kernel."""
_FILLS = 100
"""The number of the first operand's fill value, after the numbers of an expression."""
_FEW = tuning.FILLS_PASSED


@frozen(eq=False)
class MergeSchedule(CoiterationSchedule):
    """The loop nest of a merge, decided, and the conversions before and after it."""

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
    constants: dict[str, float] = field(default_factory=dict)
    """these fill values, by name"""
    converts: bool = False
    """whether operands are converted first"""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The numbers that the kernel is passed: those of the expression, then fill values."""
        return (*self.numbers, *self.constants)


def schedule_merge(
    e: Expression, expr: Expr, operands: Mapping[str, SparseOperand], dims: Mapping[str, Dims], ndim: int,
    format: Format | None, annihilate: bool = True, lacking: Collection[str] = (),
) -> MergeSchedule:  # fmt: skip
    """The schedule of a merge of operands; `dims` maps their dimensions to the result's.

    expr: the expression `e`, typed
    annihilate: an absent zero makes a product zero, whatever the other factor.
    lacking: operands whose unspecified elements are missing; so are those of the result then, and no zero annihilates.
        The result gets a bitmap where its last level would store all children.
    """
    fills: dict[str, Fill] = {
        name: missing(s.scalar) if name in lacking else const(s.fill_value, s.scalar) for name, s in operands.items()
    }
    regions = Regions(expr, fills, missing(expr.type) if lacking else None, annihilate and not lacking)
    scalar = expr.type.scalar
    fill = python_scalar(regions.fill.value if isinstance(regions.fill, Const) else 0, scalar)
    result_format = format or _default(regions, operands, dims, ndim)
    if lacking:
        result_format = with_bitmap(result_format) or result_format
    target = merge_format(result_format)
    if not all(is_projectable(target, d) for d in dims.values()):
        target = default_format(ndim)
    order = [level.expression for level in target.levels]
    steps: list[Format | None] = []
    for name, s in operands.items():
        in_order = levels_in_order(s.format, dims[name], order) is not None
        steps.append(None if in_order else project(target, dims[name], name in lacking))
    final = result_format if format is not None else target
    if format is None and result_format.batch_ndim:
        final = _batches(result_format, target) or target
    same_structure = all(s.format == final == target and None not in dims[name] for name, s in operands.items())
    text = f"{e} -> {target}"
    shares = _shares(regions, operands, dims, target)
    formats = {n: step or s.format for step, (n, s) in zip(steps, operands.items(), strict=True)}
    kinds = [run.kind for run in runs(target)]
    visited = sum(len(run.levels) for run in runs(target)[: kinds.index(Kind.CHAIN)]) if Kind.CHAIN in kinds else 0
    fill_regions, constants = _by_kind(regions, operands) if not lacking else (None, {})
    return MergeSchedule(
        text, regions, dict(dims), tuple(steps), target, final, scalar, fill, runs(target), same_structure,
        tuple(dict.fromkeys(numbers_of(expr))), shares,
        gallop_chooser=gallop_chooser_of(regions, formats, dims, order, visited),
        nonfinite_guard=_nonfinite_guard(regions, steps, operands) if annihilate else None,
        format_given=format is not None,
        masked=bool(lacking), fill_regions=fill_regions, constants=constants,
        converts=any(steps),
    )  # fmt: skip


def _by_kind(regions: Regions, operands: Mapping[str, SparseOperand]) -> tuple[Regions | None, dict[str, float]]:
    """The regions with fill values as kernel arguments, and these: for a kernel that serves all values of their sign.

    Only where the regions are the same: a fill value that decides them is a part of the kernel.
    """
    constants: dict[str, float] = {}
    fills = dict(regions.fills)
    for k, (name, s) in enumerate(operands.items()):
        value = s.fill_value
        if s.scalar in _PASSED and passes(float(value)) and abs(value) < 2**53:
            number = number_name(_FILLS + k, float(value))
            constants[number] = float(value)
            fills[name] = cast(Var(number, Type("f64")), s.scalar)  # type: ignore[assignment]
    if not constants or len(fills) > _FEW:
        return None, {}
    fill_regions = Regions(regions.expr, fills, None, regions.annihilate)
    names = frozenset(fills)
    subsets = [frozenset(s) for n in range(len(names) + 1) for s in combinations(sorted(names), n)]
    same_regions = all((fill_regions.body(s) is None) == (regions.body(s) is None) for s in subsets)
    return (
        (fill_regions, constants) if same_regions and _annihilates_alike(fill_regions, regions, subsets) else (None, {})
    )


def _annihilates_alike(passed: Regions, known: Regions, subsets: Sequence[frozenset[str]]) -> bool:
    """Whether an absent zero annihilates with fill values as arguments only where it does with those that are known.

    `(A / 0) * 0`, of fill values only, is NaN where A's is known to be 1, and 0 where it is an argument.
    """
    if not known.annihilate:
        return True
    passed_exactly = Regions(passed.expr, passed.fills, None, annihilate=False)
    known_exactly = Regions(known.expr, known.fills, known.fill, annihilate=False)
    return all(passed.body(s) == passed_exactly.body(s) or known.body(s) != known_exactly.body(s) for s in subsets)


def _nonfinite_guard(
    regions: Regions, steps: Sequence[Format | None], operands: Mapping[str, SparseOperand]
) -> float | None:
    """`nonfinite_guard`; -1, for no values at all, where a conversion may store a fill value that is too large."""
    bound = nonfinite_guard(regions)
    converted_fills = (s.fill_value for step, s in zip(steps, operands.values(), strict=True) if step is not None)
    return bound if bound is None or all(abs(fill) <= bound for fill in converted_fills) else -1.0


def _shares(
    regions: Regions, operands: Mapping[str, SparseOperand], dims: Mapping[str, Dims], target: Format
) -> tuple[int, ...]:
    """The operands of the target's format whose elements contain those of the result, or are contained in them."""
    if len(operands) > MAX_CASE_OPERANDS or not target.levels or runs(target)[-1].kind is not Kind.CHAIN:
        return ()
    shares = []
    sets = storable_sets(regions)
    for k, (name, s) in enumerate(operands.items()):
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


def _default(regions: Regions, operands: Mapping[str, SparseOperand], dims: Mapping[str, Dims], ndim: int) -> Format:
    """The format of the result: that of the operands where they agree, else of the first that has all dimensions and
    is sparse; dense where something is computed with all sparse operands absent."""
    dense = frozenset(name for name, s in operands.items() if s.format.is_dense and s.format.ndim)
    if dense and regions.body(dense) is not None:
        for name in sorted(dense):
            if None not in dims[name] and len(dims[name]) == ndim:
                return _aligned(operands[name].format, dims[name], ndim)

        return parse("dense", ndim)
    for name, s in operands.items():
        if None not in dims[name] and len(dims[name]) == ndim and name not in dense:
            return _aligned(s.format, dims[name], ndim)
    return default_format(ndim)


def _aligned(format: Format, dims: Dims, ndim: int) -> Format:
    """An operand's format in the result's dimensions."""
    return format.permute(sorted(range(ndim), key=lambda k: dims[k] or 0))


@frozen
class Bound:
    """An upper bound of a chain's positions: the least of the sums in `sums` and of the product of its loops' extents.

    Each term is an operand's number, the level whose positions are counted (-1: one), and the loops that it lacks.
    """

    at: int
    sums: tuple[tuple[tuple[int, int, tuple[int, ...]], ...], ...]


def bounds_of(plan: MergeSchedule, merge: Merge) -> tuple[Bound, ...]:
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

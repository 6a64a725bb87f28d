"""Reductions of elementwise expressions over several sparse and dense operands, in one pass.

Loops are those of a merge (`compiler.coiterate`); instead of a sparse result every element is combined into a strided
array. What one pass cannot see, the elements at which all sparse operands are absent, is one constant: they are
counted, and it is taken in as often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import tuning
from ...codegen import cache, pool, target
from ...compiler.coiterate import lower_merge
from ...compiler.coiterate.problem import Array as Located
from ...compiler.coiterate.problem import Input, Merge, Reduction
from ...compiler.coiterate.target import Dims, default_format, is_projectable, levels_in_order, loops_over, project
from ...compiler.fill import Regions, partial, same
from ...compiler.operand import Operand, parse_ref
from ...compiler.simplify import simplify
from ...compiler.single.factors import identity
from ...format.expression import Dim, dimensions
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Const, Kernel
from ...ir.ops import cast, const
from ...ir.printer import show
from ...storage.buffers import Array, address, is_torch, length
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from .. import trace
from ..conversion.assembly import full
from ..launch import word
from ..single_operand import operand_of
from ..strided import Strided
from .gallop_choice import GallopChooser, Leads, scout
from .partition import cut, work_of
from .plan import Compiled
from .run import converted, led_text, loops_text
from .types import typed

__all__ = ["SumPlan", "Summed", "plan_sum", "run_sum"]

CONVERSION = tuning.FUSED_CONVERSION_COST


@dataclass(slots=True)
class SumPlan:
    """A reduced merge: which operands are converted, the loops, what is kept of them."""

    text: str
    regions: Regions
    dims: dict[str, Dims]
    sparse: tuple[str, ...]
    dense: tuple[str, ...]
    steps: tuple[Format | None, ...]
    """the format that each sparse operand is converted to first"""
    loops: Format
    kept: tuple[int, ...]
    op: str
    scalar: str
    counts: bool
    fill: Any
    """the value of every element that is not visited"""
    along: str | None = None
    scout: GallopChooser | None = None
    compiled: dict[Any, Compiled] = field(default_factory=dict)
    last: Any = None


def plan_sum(
    e: Expression,
    operands: Mapping[str, Storage | Strided],
    dims: Mapping[str, Dims],
    ndim: int,
    kept: tuple[int, ...],
    op: str,
    scalar: str,
    library: str,
    along: str | None = None,
) -> SumPlan:
    """The plan of `e` over `ndim` dimensions, combined by `op` over those that are not `kept`.

    Parameters
    ----------
    operands : sparse storages, and strided arrays
    dims : which dimension of the loops each of theirs is; None for one of a sparse operand that is stretched
    op : "add", "mul", "min" or "max"
    scalar : the type that is combined in
    along : the operand in whose structure the result is, where that is not an array; the kept are its dimensions
    """
    expr = typed(e, {name: x.scalar for name, x in operands.items()}, library)
    sparse = {n: x for n, x in operands.items() if isinstance(x, Storage)}
    fills = {n: const(x.fill_value, x.scalar) for n, x in sparse.items()}
    alone = partial(expr, fills)
    neutral = identity(op, scalar)
    absent = alone if isinstance(alone, Const) else const(neutral.value, expr.type)
    regions = Regions(expr, fills, absent)
    loops = _loops(sparse, dims, ndim, kept)
    order = [level.expression for level in loops.levels]
    steps = tuple(
        None if levels_in_order(s.format, dims[n], order) is not None else project(loops, dims[n])
        for n, s in sparse.items()
    )
    visits = not isinstance(alone, Const)
    counts = not visits and not same(cast(absent, scalar), neutral)
    fill = None if visits else python_scalar(absent.value, absent.type.scalar)
    dense = tuple(n for n in operands if n not in sparse)
    formats = {n: step or s.format for step, (n, s) in zip(steps, sparse.items(), strict=True)}
    return SumPlan(
        f"{e}, {op} over {_named(loops, kept)}", regions, dict(dims), tuple(sparse), dense, steps, loops, kept, op,
        scalar, counts, fill, along, scout(regions, formats, dims, order),
    )  # fmt: skip


def _named(loops: Format, kept: tuple[int, ...]) -> str:
    return ", ".join(n for d, n in enumerate(loops.dims) if d not in kept) or "nothing"


def _loops(sparse: Mapping[str, Storage], dims: Mapping[str, Dims], ndim: int, kept: tuple[int, ...]) -> Format:
    """The cheapest loops: in the order of one of the operands, others converted; the outermost of the result's."""
    best: tuple[float, Format] | None = None
    for name, s in sparse.items():
        if None in dims[name]:
            continue
        loops = loops_over(s.format, dims[name], ndim)
        if not all(is_projectable(loops, dims[n]) for n in sparse):
            continue
        cost = _cost(loops, sparse, dims, kept)
        if best is None or cost < best[0]:
            best = cost, loops
    return best[1] if best is not None else default_format(ndim)


def _cost(loops: Format, sparse: Mapping[str, Storage], dims: Mapping[str, Dims], kept: tuple[int, ...]) -> float:
    order = [level.expression for level in loops.levels]
    work = sum(s.nse for s in sparse.values())
    cost = sum(CONVERSION * s.nse for n, s in sparse.items() if levels_in_order(s.format, dims[n], order) is None)
    first = order[0] if order else None
    side_by_side = not isinstance(first, Dim) or first.index in kept
    return cost + (0 if side_by_side else 0.5 * work)


# -- the kernel --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summed:
    """A reduction in the type that it was computed in, over the kept dimensions or on a structure; how many elements
    were combined where the plan counts them."""

    array: Array
    counts: Array | None
    structure: Storage | None


def run_sum(plan: SumPlan, values: Mapping[str, Any], extents: tuple[int, ...], like: Array) -> Summed:
    """The reduction of a plan on operands of its types."""
    ready = dict(values)
    for name, step in zip(plan.sparse, plan.steps, strict=True):
        if step is not None:
            ready[name] = converted(name, ready[name], step)
    structure = None if plan.along is None else ready[plan.along]
    shape = tuple(extents[d] for d in plan.kept) if structure is None else (length(structure.values),)
    spans = plan.loops.level_intervals(extents)
    made, bounds = _compiled(plan, ready, extents)
    storages = tuple(ready[n] for n in plan.sparse)
    cuts = cut(made, storages, spans, fine=False)
    chunks, share = _shares(plan, cuts, math.prod(shape), storages)
    cuts = cuts if chunks > 1 else [cuts[0], cuts[-1]]
    parts = chunks if share else 1
    out = full(parts * math.prod(shape), plan.scalar, identity(plan.op, plan.scalar).value, like)
    counts = np.zeros(parts * math.prod(shape), np.int64) if plan.counts else None
    words: list[int] = []
    if 0 not in extents:
        state = np.array(cuts, np.int64)
        fixed = {"out_vals": address(out), "meta": address(state), "chunks": chunks, "share": share}
        if counts is not None:
            fixed["out_counts"] = address(counts)
        words = _words(made, ready, fixed | bounds)
        pool.parallel(made.executable, words, list(range(chunks + 1)), work_of(storages, spans))
    if trace.active():
        _describe(plan, made, ready, chunks, out, counts, words)
    return Summed(_joined(plan, out, parts, shape), None if counts is None else _total(counts, parts, shape), structure)


def _shares(plan: SumPlan, cuts: list[int], size: int, storages: tuple[Storage, ...]) -> tuple[int, int]:
    """How many chunks, and the elements of each one's own result; 0 where they write to different parts of one."""
    chunks = len(cuts) - 1
    first = plan.loops.levels[0].expression if plan.loops.levels else None
    if plan.along is not None:
        return chunks, 0
    if first is not None and any(k == 0 for d in plan.kept for k, _ in plan.loops.inverse[d]):
        return chunks, 0
    if chunks > 1 and size * chunks > sum(s.nse for s in storages):
        chunks = 1
    return chunks, size


def _compiled(plan: SumPlan, ready: Mapping[str, Any], extents: tuple[int, ...]) -> tuple[Compiled, dict[str, int]]:
    """The kernel, and the words that extents decide."""
    units = tuple(ready[n].unit for n in plan.dense)
    guards = _guards(plan.loops, extents)
    storages = tuple([ready[n] for n in plan.sparse])
    leads = () if plan.scout is None else plan.scout.leads(storages, extents, plan.loops)
    key = (tuple([s.signature for s in storages]), units, tuple(ready[n].scalar for n in plan.dense), guards, leads)
    made = plan.compiled.get(key)
    if made is None:
        made = plan.compiled[key] = _compile(plan, ready, units, guards, leads)
    if plan.last is None or plan.last[0] != extents:
        plan.last = extents, _extents(plan, extents)
    return made, plan.last[1]


def _extents(plan: SumPlan, extents: tuple[int, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for at, (lo, hi) in enumerate(plan.loops.level_intervals(extents)):
        found |= {f"n{at}": hi - lo, f"lo{at}": lo}
    found |= {f"e{d}": n for d, n in enumerate(extents)}
    stride = 1
    for k in range(len(plan.kept) - 1, -1, -1):
        found[f"out_stride{k}"] = stride
        stride *= extents[plan.kept[k]]
    return found


def _guards(loops: Format, extents: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions that the loops may leave."""
    found = []
    for d, form in enumerate(loops.inverse):
        if len(form) == 1 and form[0][1] == 1 and isinstance(loops.levels[form[0][0]].expression, Dim):
            continue
        if not _divides(loops, form, extents[d]):
            found.append(d)
    return tuple(found)


def _divides(loops: Format, form: tuple[tuple[int, int], ...], extent: int) -> bool:
    """Whether blocks along the dimension end where it ends; diagonals never do."""
    if any(len(tuple(dimensions(loops.levels[k].expression))) > 1 for k, _ in form):
        return False
    return extent % max(factor for _, factor in form) == 0


def _moves(loops: Format, dims: tuple[int, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """How each loop moves in an array of these dimensions."""
    steps: list[list[tuple[int, int]]] = [[] for _ in loops.levels]
    for own, d in enumerate(dims):
        for k, factor in loops.inverse[d]:
            steps[k].append((own, factor))
    return tuple(map(tuple, steps))


def _compile(
    plan: SumPlan, ready: Mapping[str, Any], units: tuple[int | None, ...], guards: tuple[int, ...], leads: Leads
) -> Compiled:
    order = [level.expression for level in plan.loops.levels]
    inputs: list[Input] = []
    arrays: list[Located] = []
    for name in plan.sparse:
        levels = levels_in_order(ready[name].format, plan.dims[name], order)
        assert levels is not None
        inputs.append(Input(name, operand_of(ready[name]), levels))
    for name, unit in zip(plan.dense, units, strict=True):
        dims = tuple(d for d in plan.dims[name] if d is not None)
        operand = Operand(ready[name].scalar, len(dims), unit=unit)
        arrays.append(Located(name, operand, _moves(plan.loops, dims)))
    none = (None,) * plan.loops.nlevels
    target = Operand(plan.scalar, plan.loops.ndim, plan.loops, none, none)
    unit = len(plan.kept) - 1 if plan.kept else None
    moves = _moves(plan.loops, plan.kept if plan.along is None else ())
    reduction = Reduction(plan.op, moves, unit, plan.counts, plan.along, guards)
    merge = Merge(tuple(inputs), plan.regions, target, tuple(arrays), reduction, leads)
    fills = {n: show(f) for n, f in plan.regions.fills.items()}
    whole = f"{show(plan.regions.expr)} {fills} {show(plan.regions.fill)}"
    listed = [(g.name, g.operand, g.levels) for g in inputs]
    text = f"sum {whole} {listed} {arrays} {plan.loops.canonical} {plan.scalar} {reduction} {leads}"
    executable = cache.get(text, lambda: build(merge))
    operands = {g.name: g.operand for g in inputs} | {g.name: g.operand for g in arrays}
    own = [p.name for p in executable.params]
    refs = {
        n: parse_ref(n, operands, plan.dense) for n in own if any(n == o or n.startswith(f"{o}_") for o in operands)
    }
    return Compiled(merge, "i32", executable, refs, tuple(own), 0)


def build(merge: Merge) -> Kernel:
    """The simplified kernel of a reduced merge."""
    return simplify(lower_merge("merge_sum", merge, target.expands()))


def _words(made: Compiled, ready: Mapping[str, Any], fixed: Mapping[str, int]) -> list[int]:
    none: dict[str, str] = {}
    words = []
    for name in made.names:
        ref = made.refs.get(name)
        words.append(fixed[name] if ref is None else word(ref, ready, {}, none))
    return words


# -- the result --------------------------------------------------------------------------------------------------------


def _joined(plan: SumPlan, out: Array, parts: int, shape: tuple[int, ...]) -> Array:
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


def _two(name: str) -> Any:
    def combine(a: Any, b: Any) -> Any:
        import torch

        return getattr(torch, name)(a, b)

    return combine


_COMBINE = {"add": _two("add"), "mul": _two("mul"), "min": _two("minimum"), "max": _two("maximum")}


def _total(counts: Any, parts: int, shape: tuple[int, ...]) -> Any:
    return counts.reshape((parts, *shape)).sum(axis=0)


def _result(plan: SumPlan) -> str:
    if plan.along is not None:
        return f"{plan.scalar}, in the structure of {plan.along}"
    return f"{plan.scalar} over ({', '.join(plan.loops.dims[d] for d in plan.kept)}), no temporary"


def _describe(
    plan: SumPlan, made: Compiled, ready: Mapping[str, Any], chunks: int, out: Array, counts: Any, words: list[int]
) -> None:
    """Tell `explain` about a launch."""
    formats = [f"{n}: {trace.shown(ready[n].format)}" for n in plan.sparse]
    formats += [f"{n}: dense {ready[n].scalar}" for n in plan.dense]
    facts = [
        ("formats", ", ".join(formats)),
        ("loops", loops_text(plan.loops)),
        ("computes", f"where these are present: {plan.regions}"),
        *led_text(made.merge.drivers, plan.loops),
        *(trace.rows(made.executable, words) if words else ()),
        ("result", _result(plan)),
        ("parallel", f"{chunks} range(s) of the outermost loop"),
    ]
    if counts is not None:
        facts.insert(3, ("counts", f"the elements visited; the others are {plan.fill!r}"))
    nbytes = out.nbytes + (0 if counts is None else counts.nbytes)
    trace.note(trace.Step(f"merge {plan.text}", tuple(facts), nbytes, made.executable))

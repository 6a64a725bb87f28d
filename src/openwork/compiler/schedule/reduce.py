"""An elementwise expression, a reduction, and the facts of its operands -> the schedule of the merge that combines it.

A pure function: the loops, operands to be converted first, the regions in which something is computed, what is combined
for elements at which nothing is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ... import tuning
from ...classes import frozen
from ...format.expression import Dim
from ...format.format import Format
from ...ir.index import Expression
from ...ir.loop import Const, Expr
from ...ir.ops import cast, const
from ...storage.scalars import python_scalar
from ..coiterate.merge_formats import Dims, default_format, is_projectable, levels_in_order, loops_over, project
from ..fill import Regions, partial, same
from ..single.factors import identity
from .gallop import GallopChooser, gallop_chooser_of
from .plan import CoiterationSchedule, SparseOperand

__all__ = ["SumSchedule", "schedule_sum"]

CONVERSION = tuning.FUSED_CONVERSION_COST


@frozen(eq=False)
class SumSchedule(CoiterationSchedule):
    """The loop nest of a reduced merge, decided: conversions of operands, the loops, the dimensions that are kept."""

    sparse: tuple[str, ...]
    dense: tuple[str, ...]
    loops: Format
    kept: tuple[int, ...]
    op: str
    scalar: str
    counts: bool
    fill: Any
    """the value of every element that is not visited"""
    along: str | None = None
    gallop_chooser: GallopChooser | None = None


def schedule_sum(
    e: Expression, expr: Expr, sparse: Mapping[str, SparseOperand], dense: Collection[str], dims: Mapping[str, Dims],
    ndim: int, kept: tuple[int, ...], op: str, scalar: str, along: str | None = None,
) -> SumSchedule:  # fmt: skip
    """The schedule of `e` over `ndim` dimensions, combined by `op` over those that are not `kept`.

    Parameters
    ----------
    expr : `e`, typed
    sparse, dense : the operands
    dims : which dimension of the loops each of theirs is; None for one of a sparse operand that is broadcast
    op : "add", "mul", "min" or "max"
    scalar : the type that is combined in
    along : the operand in whose structure the result is, where that is not an array; the kept are its dimensions
    """
    fills = {n: const(x.fill_value, x.scalar) for n, x in sparse.items()}
    absent_value = partial(expr, fills)
    neutral = identity(op, scalar)
    absent = absent_value if isinstance(absent_value, Const) else const(neutral.value, expr.type)
    regions = Regions(expr, fills, absent)
    loops = _loops(sparse, dims, ndim, kept)
    order = [level.expression for level in loops.levels]
    steps = tuple(
        None if levels_in_order(s.format, dims[n], order) is not None else project(loops, dims[n])
        for n, s in sparse.items()
    )
    visits = not isinstance(absent_value, Const)
    counts = not visits and not same(cast(absent, scalar), neutral)
    fill = None if visits else python_scalar(absent.value, absent.type.scalar)
    formats = {n: step or s.format for step, (n, s) in zip(steps, sparse.items(), strict=True)}
    return SumSchedule(
        f"{e}, {op} over {_named(loops, kept)}", regions, dict(dims), steps, tuple(sparse), tuple(dense), loops, kept,
        op, scalar, counts, fill, along, gallop_chooser_of(regions, formats, dims, order),
    )  # fmt: skip


def _named(loops: Format, kept: tuple[int, ...]) -> str:
    return ", ".join(n for d, n in enumerate(loops.dims) if d not in kept) or "nothing"


def _loops(sparse: Mapping[str, SparseOperand], dims: Mapping[str, Dims], ndim: int, kept: tuple[int, ...]) -> Format:
    """The cheapest loops: in the order of one operand, others converted, a kept dimension outermost if possible."""
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


def _cost(loops: Format, sparse: Mapping[str, SparseOperand], dims: Mapping[str, Dims], kept: tuple[int, ...]) -> float:
    order = [level.expression for level in loops.levels]
    work = sum(s.nse for s in sparse.values())
    cost = sum(CONVERSION * s.nse for n, s in sparse.items() if levels_in_order(s.format, dims[n], order) is None)
    first = order[0] if order else None
    side_by_side = not isinstance(first, Dim) or first.index in kept
    return cost + (0 if side_by_side else 0.5 * work)

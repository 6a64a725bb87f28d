"""An expression of a walk's innermost loop -> its value some elements later, for prefetching."""

from __future__ import annotations

from ... import tuning
from ...ir.loop import Cast, Expr, Let, Load, Op, Var, map_expr
from ...ir.ops import const, op
from ..build import Block

__all__ = ["DISTANCE", "later"]

DISTANCE = tuning.SCATTER_PREFETCH_DISTANCE


def later(block: Block, expr: Expr, buffer: str, elements: Expr) -> Expr | None:
    """`expr` at the element that comes DISTANCE later, the last of `elements` at most.

    None where it is not a function of what the loop reads at its position: loads of `buffer` and a number.
    """
    bound = {s.name: s.value for s in block.stmts if isinstance(s, Let)}

    def inline(e: Expr) -> Expr:
        return inline(bound[e.name]) if isinstance(e, Var) and e.name in bound else map_expr(e, inline)

    inlined = inline(expr)
    loads = list(_loads(inlined))
    places = {load.index for load in loads if isinstance(load.index, Var)}
    if len(places) != 1 or any(load.index not in places or not load.buffer.startswith(buffer) for load in loads):
        return None
    (place,) = places
    ahead = op("min", op("add", place, const(DISTANCE)), op("sub", elements, const(1)))

    def shift(e: Expr) -> Expr:
        return ahead if e == place else map_expr(e, shift)

    return shift(inlined)


def _loads(e: Expr) -> list[Load]:
    match e:
        case Load():
            return [e]
        case Op(_, args, _):
            return [load for a in args for load in _loads(a)]
        case Cast(arg, _):
            return _loads(arg)
    return []

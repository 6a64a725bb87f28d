"""Nested loops over the children of consecutive parents -> one loop, where nothing inside uses the parent.

    for i in range(a, b):
        for q in range(pos[i], pos[i + 1]):   ->   for q in range(pos[a], pos[b]):
            A                                          A

Holds of positions, which are monotone and end where the next parent's begin, and of a <= b, as for every range of a
level. Rows of a few elements, whose ends no branch predictor knows, cost several times their elements otherwise.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.loop import Buffer, Cast, Expr, For, Kernel, Load, Stmt, Var, map_expr
from ...ir.ops import const
from ...ir.rewrite import Body, free_variables, rewrite_kernel, walk_body
from ..fold import fold

__all__ = ["flatten", "flattened", "positions"]


def flatten(kernel: Kernel) -> Kernel:
    """The kernel with all such loops collapsed."""
    pos = positions(kernel)

    def rule(stmt: Stmt) -> Body | None:
        flat = flattened(stmt, pos) if isinstance(stmt, For) else None
        return None if flat is None else (flat,)

    return rewrite_kernel(kernel, lambda body: walk_body(body, None, rule))


def flattened(loop: For, positions: Collection[str]) -> For | None:
    """`loop` and the loop inside it, collapsed; None where they are not of the form above."""
    match loop:
        case For(name, lo, hi, (For(inner, first, last, body, 1),), 1):
            following = _substitute(first, name, fold("add", Var(name, lo.type), const(1)))
            if last == following and _monotone(first, name, positions) and name not in _names(body):
                return For(inner, _substitute(first, name, lo), _substitute(first, name, hi), body)
    return None


def positions(kernel: Kernel) -> frozenset[str]:
    """The operands' buffers of positions: `A_pos1` and the like."""
    buffers = (p.name for p in kernel.params if isinstance(p, Buffer) and not p.mutable)
    return frozenset(name for name in buffers if name.rstrip("0123456789").endswith("_pos"))


def _names(body: Body) -> frozenset[str]:
    return frozenset(v.name for v in free_variables(body))


def _monotone(e: Expr, name: str, positions: Collection[str]) -> bool:
    """Whether `e` is positions of positions of ... the variable `name`."""
    match e:
        case Var(variable, _):
            return variable == name
        case Cast(arg, _):
            return _monotone(arg, name, positions)
        case Load(buffer, index, _):
            return buffer in positions and _monotone(index, name, positions)
    return False


def _substitute(e: Expr, name: str, value: Expr) -> Expr:
    return value if isinstance(e, Var) and e.name == name else map_expr(e, lambda x: _substitute(x, name, value))

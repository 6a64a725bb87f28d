"""An elementwise expression and an operand -> whether it is 0 where that is, whether it is linear in it."""

from __future__ import annotations

from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..ir.operations import with_trait

__all__ = ["linear", "vanishes"]


_ODD = with_trait("zero-at-zero") | {"pattern"}
"""Functions of one element that are 0 at 0."""
_SUMS = with_trait("zero-at-zeros")
"""Operations that are 0 where both operands are."""


def vanishes(e: Expression, name: str) -> bool:
    """Whether the expression is 0 where the operand `name` is."""
    match e:
        case Access(tensor):
            return tensor == name
        case Literal(value):
            return not value
        case Apply("mul" | "and" | "band", args):
            return any(vanishes(a, name) for a in args)
        case Apply("div" | "floordiv" | "mod" | "shl" | "shr", (left, _)):
            return vanishes(left, name)
        case Apply("select", (_, *arms)):
            return all(vanishes(a, name) for a in arms)
        case Apply(op, args) if op in _ODD or op in _SUMS:
            return all(vanishes(a, name) for a in args)
    return False


def linear(e: Expression, name: str) -> bool:
    """Whether the expression of a sum of two values of `name` is the sum of those of each."""
    having = [_has(a, name) for a in e.args] if isinstance(e, Apply) else []
    match e:
        case Access(tensor):
            return tensor == name
        case Apply("neg" | "real" | "imag" | "conj", (arg,)):
            return linear(arg, name)
        case Apply("add" | "sub", (left, right)):
            return linear(left, name) and linear(right, name)
        case Apply("mul", (left, right)) if sum(having) == 1:
            return linear(left if having[0] else right, name)
        case Apply("div", (left, _)) if having == [True, False]:
            return linear(left, name)
    return False


def _has(e: Expression, name: str) -> bool:
    return any(a.tensor == name for a in accesses(e))

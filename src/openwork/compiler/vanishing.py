"""An elementwise expression and one of its operands -> whether it is 0 where the operand is, and linear in it."""

from __future__ import annotations

from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..ir.operations import with_trait

__all__ = ["linear", "vanishes"]


_ZERO_AT_ZERO = with_trait("zero-at-zero")
"""Functions of one element that are 0 at 0."""
_ZERO_AT_ZEROS = with_trait("zero-at-zeros")
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
        case Apply(op, args) if op in _ZERO_AT_ZERO or op in _ZERO_AT_ZEROS:
            return all(vanishes(a, name) for a in args)
    return False


def linear(e: Expression, name: str) -> bool:
    """Whether the expression of a sum of two values of `name` is the sum of those of each."""
    depends = [_depends_on(a, name) for a in e.args] if isinstance(e, Apply) else []
    match e:
        case Access(tensor):
            return tensor == name
        case Apply("neg" | "real" | "imag" | "conj", (arg,)):
            return linear(arg, name)
        case Apply("add" | "sub", (left, right)):
            return linear(left, name) and linear(right, name)
        case Apply("mul", (left, right)) if sum(depends) == 1:
            return linear(left if depends[0] else right, name)
        case Apply("div", (left, _)) if depends == [True, False]:
            return linear(left, name)
    return False


def _depends_on(e: Expression, name: str) -> bool:
    return any(a.tensor == name for a in accesses(e))

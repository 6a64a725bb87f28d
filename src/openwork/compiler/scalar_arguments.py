"""Numbers of an expression -> kernel arguments, named by their sign, so that one kernel serves all numbers of a sign.

The fill algebra reads what it needs off the names: `num0_pos`, `num1_neg` are finite, not zero, and of that sign, in
single precision too. An operation of an absent zero and such a number, where its result depends on nothing but the
sign, has the result that it has with 1 or -1::

    0 * num0_pos -> 0    0 / num1_neg -> -0    0 < num0_pos -> True    max(0, num1_neg) -> 0    0 + num0_pos: not known

Any other number (0, infinity, NaN) is a part of the kernel's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..ir.interpret import evaluate
from ..ir.loop import Cast, Const, Expr, Op, Var
from ..ir.ops import const
from ..ir.ops import op as make

__all__ = ["is_number", "number_name", "numbers_of", "passes", "representative", "value_by_sign"]

_NAME = re.compile(r"num\d+_(pos|neg)")
_SMALLEST, _LARGEST = 1e-30, 1e30
_ANY_ORDER = frozenset(("mul", "eq", "ne", "lt", "le", "gt", "ge"))
"""Operations of a zero and a number, in any order, that depend on the number's sign alone."""
_ZERO_LEFT = frozenset(("div", "floordiv", "mod"))
"""Those of a zero on the left."""


def passes(value: object) -> bool:
    """Whether a kernel may be passed this number."""
    return type(value) is float and _SMALLEST <= abs(value) <= _LARGEST


def number_name(k: int, value: float) -> str:
    """The name of the k-th number."""
    return f"num{k}_{'pos' if value > 0 else 'neg'}"


def is_number(name: str) -> bool:
    """Whether an operand of this name is such a number."""
    return _NAME.fullmatch(name) is not None


def representative(name: str) -> float:
    """A number of the sign that the name says: 1 or -1."""
    return 1.0 if name.endswith("pos") else -1.0


def numbers_of(e: Expr) -> Iterator[str]:
    """The numbers in an expression, repeated ones too."""
    match e:
        case Var(name):
            if is_number(name):
                yield name
        case Op(_, args):
            for arg in args:
                yield from numbers_of(arg)
        case Cast(arg):
            yield from numbers_of(arg)


def value_by_sign(op: str, operands: Sequence[Expr]) -> Const | None:
    """The result of an operation of a zero and a number, where the number's sign decides it; None where it does not."""
    if len(operands) != 2:
        return None
    zero, number = operands if isinstance(operands[0], Const) else operands[::-1]
    one = _sample(number)
    if one is None or not isinstance(zero, Const) or zero.value != 0:
        return None
    pair = (zero, one) if zero is operands[0] else (one, zero)
    positive = one.value.real > 0
    if op in _ANY_ORDER or (zero is operands[0] and (op in _ZERO_LEFT or (op == "pow" and positive))):
        return _evaluated(op, pair)
    if op == ("min" if positive else "max"):
        return zero
    return None


def _evaluated(op: str, pair: Sequence[Const]) -> Const:

    operation = make(op, *pair)
    return const(evaluate(operation).item(), operation.type)


def _sample(e: Expr) -> Const | None:
    inner = e.arg if isinstance(e, Cast) else e
    if not isinstance(inner, Var) or not is_number(inner.name) or not (e.type.is_float or e.type.is_complex):
        return None
    return const(representative(inner.name), e.type)

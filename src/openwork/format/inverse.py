"""Level expressions -> the inverse of a format's map: every dimension as an integer linear form of level coordinates.

Each level expression is a digit `base // place % size` of a base (size 0: not bounded). Two facts give the inverse:
neighbouring digits of one base join to a longer digit, and a sum or difference gives one of its dimensions from the
other. Each step consumes its digits, so those that remain at the end are redundant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from openwork.format.expression import Add, Dim, Div, Expression, Mod, Sub

__all__ = ["Digit", "Form", "Solution", "digit", "solve"]

Form: TypeAlias = dict[int, int]
"""level -> coefficient"""


class Digit(NamedTuple):
    base: Base
    place: int
    size: int


Base: TypeAlias = Dim | Add | Sub | Digit
"""A digit is a base of its own where divisors do not nest, as in `i % 6 // 4`."""


class Solution(NamedTuple):
    """`forms[d]` is dimension d where it can be recovered; `unused` are the digits that no dimension needed."""

    forms: dict[int, Form]
    unused: list[tuple[Digit, Form]]


def digit(e: Expression) -> Digit:
    """The digit that e is: `i % 16 // 4` is `i // 4 % 4`; a size below 0 says that it is always 0."""
    if isinstance(e, Div):
        base, place, size = inner = digit(e.base)
        if size == 0:
            return Digit(base, place * e.divisor, 0)
        if size < e.divisor or size == e.divisor > 1:
            return Digit(base, place, -1)
        if size % e.divisor == 0:
            return Digit(base, place * e.divisor, size // e.divisor)
        return Digit(inner, e.divisor, 0)
    if isinstance(e, Mod):
        base, place, size = inner = digit(e.base)
        if size == 0 or (size > 0 and size % e.divisor == 0):
            return Digit(base, place, e.divisor)
        return inner if size <= e.divisor else Digit(inner, 1, e.divisor)
    return Digit(e, 1, 0)


def solve(expressions: Sequence[Expression]) -> Solution:
    """Recover the dimensions that follow from the level coordinates."""
    pool: list[tuple[Digit, Form]] = [(digit(e), {level: 1}) for level, e in enumerate(expressions)]
    forms: dict[int, Form] = {}
    while _join(pool) or _recover(pool, forms):
        pass
    return Solution(forms, pool)


def _join(pool: list[tuple[Digit, Form]]) -> bool:
    """Join two digits: x // b % m and x // (b * m) % n give x // b % (m * n)."""
    for low, (x, low_form) in enumerate(pool):
        if x.size <= 0:
            continue
        for high, (y, high_form) in enumerate(pool):
            if high != low and y.base == x.base and y.place == x.place * x.size and y.size >= 0:
                form = _add(low_form, high_form, x.size)
                pool[low] = Digit(x.base, x.place, x.size * y.size), form
                del pool[high]
                return True
    return False


def _recover(pool: list[tuple[Digit, Form]], forms: dict[int, Form]) -> bool:
    """Move a complete base from the pool to `forms`: a dimension, or the other one of a sum or difference."""
    for index, ((base, place, size), form) in enumerate(pool):
        if place != 1 or size != 0:
            continue
        if isinstance(base, Digit):
            pool[index] = base, form
            return True
        if isinstance(base, Dim):
            if base.index in forms:
                continue
            forms[base.index] = form
        else:
            left, right = base.left.index, base.right.index
            if (left in forms) == (right in forms):
                continue
            if left in forms:
                sign = -1 if isinstance(base, Add) else 1
                forms[right] = _add(_scale(form, -sign), forms[left], sign)
            else:
                forms[left] = _add(form, forms[right], -1 if isinstance(base, Add) else 1)
        del pool[index]
        return True
    return False


def _add(x: Form, y: Form, scale: int) -> Form:
    """x + scale * y"""
    result = dict(x)
    for level, coefficient in y.items():
        result[level] = result.get(level, 0) + scale * coefficient
    return {level: coefficient for level, coefficient in result.items() if coefficient}


def _scale(x: Form, scale: int) -> Form:
    return {level: scale * coefficient for level, coefficient in x.items()}

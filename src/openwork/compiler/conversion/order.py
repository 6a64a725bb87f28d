"""Two traversal orders -> whether one implies the other, which decides how a conversion is done.

Every level expression is a digit of a base, `base // place % size`. Two orders are compared digit by digit from the
most significant: equal digits match, a wide digit is split where the other one ends, and digits determined by those
matched so far are dropped. `i, j` implies `i // 4, i % 4, j`; given i, `j - i` orders as j does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...format.expression import Add, Expression, Sub
from ...format.format import Format
from ...format.inverse import Digit, digit
from ..walk import hoisted

__all__ = ["follows", "traversal"]


def traversal(format: Format, hoist: bool = False) -> tuple[Expression, ...]:
    """The expressions in whose lexicographic order the format's elements are walked, as far as that is known;
    with `hoist` that of the walk by rows of blocks."""
    expressions: list[Expression] = []
    levels = list(format.levels)
    if hoist and (first := hoisted(format)):
        at = next(x for x, level in enumerate(levels) if level.format.is_compressed)
        rest = [x for x in range(at, len(levels)) if x not in first]
        levels = [levels[x] for x in (*range(at), *first, *rest)]
    for at, level in enumerate(levels):
        if not level.format.ordered:
            break
        expressions.append(level.expression)
        last = at == len(levels) - 1
        if not level.format.unique and not last and not levels[at + 1].format.is_singleton:
            break
    return tuple(expressions)


def follows(source: Sequence[Expression], target: Sequence[Expression], fixed: Iterable[Expression] = ()) -> bool:
    """Whether elements in the lexicographic order of `source` are in that of `target`, among those equal in `fixed`."""
    known = _KnownDigits()
    for e in fixed:
        known.add(digit(e))
    left = [digit(e) for e in source]
    right = [digit(e) for e in target]
    while True:
        left, right = known.strip(left), known.strip(right)
        if not right:
            return True
        if not left or not _match(left, right):
            return False
        known.add(left.pop(0))
        known.add(right.pop(0))


def _match(left: list[Digit], right: list[Digit]) -> bool:
    """Make the leading digits equal, splitting one of them if need be."""
    a, b = left[0], right[0]
    if a.base != b.base or _end(a) != _end(b):
        return False
    if a.place < b.place:
        return _split(left, b.place)
    return a.place == b.place or _split(right, a.place)


def _end(d: Digit) -> int:
    """The place above the digit; 0 without bound."""
    return d.place * d.size


def _split(digits: list[Digit], place: int) -> bool:
    """`x // 2` before `x // 8`, split at 8: `x // 8, x // 2 % 4`."""
    first = digits[0]
    if place % first.place or (first.size and first.size % (place // first.place)):
        return False
    low = place // first.place
    high = Digit(first.base, place, first.size // low)
    digits[:1] = [high, Digit(first.base, first.place, low)]
    return True


class _KnownDigits:
    """The digits that are known, joined where they meet."""

    def __init__(self) -> None:
        self.digits: list[Digit] = []

    def add(self, new: Digit) -> None:
        merged = True
        while merged:
            merged = False
            for old in self.digits:
                joined = _join(old, new) or _join(new, old)
                if joined is not None:
                    self.digits.remove(old)
                    new, merged = joined, True
                    break
        self.digits.append(new)

    def strip(self, digits: list[Digit]) -> list[Digit]:
        """Drop leading digits that are determined, and reduce the first that is not by what is known."""
        for at, d in enumerate(digits):
            if not self._determines(d):
                return [self._reduce(d), *digits[at + 1 :]]
        return []

    def _determines(self, d: Digit) -> bool:
        if d.size < 0:
            return True
        if any(
            k.base == d.base and k.place <= d.place and d.place % k.place == 0 and _covers(k, d) for k in self.digits
        ):
            return True
        return self._determines_base(d.base, frozenset())

    def _determines_base(self, base: object, seen: frozenset[object]) -> bool:
        """Whether all of `base` is known."""
        if base in seen:
            return False
        seen = seen | {base}
        if isinstance(base, Digit):
            return self._determines(base)
        if any(k.base == base and k.place == 1 and k.size == 0 for k in self.digits):
            return True
        if isinstance(base, Add | Sub):
            return self._determines_base(base.left, seen) and self._determines_base(base.right, seen)
        for k in self.digits:
            if k.place == 1 and k.size == 0 and isinstance(k.base, Add | Sub) and base in (k.base.left, k.base.right):
                other = k.base.right if base == k.base.left else k.base.left
                if self._determines_base(other, seen):
                    return True
        return False

    def _reduce(self, d: Digit) -> Digit:
        """The digit that orders as `d` does, once what is known of it is fixed."""
        if isinstance(d.base, Add | Sub) and d.place == 1 and d.size == 0:
            if self._determines_base(d.base.right, frozenset()):
                return self._reduce(Digit(d.base.left, 1, 0))
            if isinstance(d.base, Add) and self._determines_base(d.base.left, frozenset()):
                return self._reduce(Digit(d.base.right, 1, 0))
        for k in self.digits:
            above = k.base == d.base and k.place > d.place and k.place % d.place == 0
            if above and (not k.size or (d.size and _end(k) % _end(d) == 0)) and (not d.size or k.place < _end(d)):
                return self._reduce(Digit(d.base, d.place, k.place // d.place))
        return d


def _covers(k: Digit, d: Digit) -> bool:
    return not k.size or (bool(d.size) and _end(k) % _end(d) == 0)


def _join(low: Digit, high: Digit) -> Digit | None:
    if low.base == high.base and low.size > 0 and high.place == low.place * low.size:
        return Digit(low.base, low.place, low.size * high.size)
    return None

"""Fill algebra: what an expression becomes where some operands are at their fill values.

An operand is *absent* at a coordinate where it stores no element: its value there is its fill value, a constant. The
expression is evaluated as far as these constants reach. Where it folds to the result's own fill value, nothing has to
be stored: the region of that set of operands is empty. This alone tells an intersection from a union, a mask or a
comparison; there is no table of operators.

    A * B        {A}: A * 0 -> 0       empty: the product is an intersection
    A + B        {A}: A + 0            not constant: the sum is a union
    A < B        {A}: A < 0            a union; with unsigned A it folds to False, and {A} is empty
    A ** B       {A}: A ** 0 -> 1      empty, as 0 ** 0 = 1 is the fill

ZERO_ANNIHILATES says what 0 * x is where the zero is the fill of an absent operand and x is not known. NumPy on the
dense arrays has NaN for an infinite or NaN x. Regions take 0, which is NumPy's answer for finite x: only so a product
of sparse operands is as sparse as they are. Where x is known, as both are absent, NumPy's answer is taken. `doubt`
says for which values of the operands the two answers are one; operations ask for these, and have regions without
annihilation where it matters (`annihilate=False`), unless the user asks for `zero_annihilates=True`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from ..ir.interpret import evaluate
from ..ir.loop import Cast, Const, Expr, Op, Var
from ..ir.ops import cast, const
from .number import settled
from .simplify import simplify_expr

__all__ = ["ZERO_ANNIHILATES", "Regions", "partial", "same"]

ZERO_ANNIHILATES = True


def same(a: Expr, b: Expr) -> bool:
    """Whether both are constants of one value: NaN is NaN, -0.0 is 0.0."""
    if not isinstance(a, Const) or not isinstance(b, Const):
        return False
    return a == b or bool(a.value == b.value)


def partial(expr: Expr, fills: Mapping[str, Const], annihilate: bool = ZERO_ANNIHILATES) -> Expr:
    """`expr` with the variables of `fills` at these values, evaluated as far as they reach.

    Operations on constants are NumPy's, operation by operation; `annihilate`: a zero of `fills` makes a product zero.
    """
    value, _ = _partial(expr, fills, annihilate)
    return value if isinstance(value, Const) else simplify_expr(value)


def _partial(expr: Expr, fills: Mapping[str, Const], annihilate: bool) -> tuple[Expr, bool]:
    """The value, and whether it is a constant that absent operands took part in."""
    match expr:
        case Var(name, type):
            return (cast(fills[name], type), True) if name in fills else (expr, False)
        case Cast(arg, type):
            value, absent = _partial(arg, fills, annihilate)
            return (const(value.value, type), absent) if isinstance(value, Const) else (Cast(value, type), False)
        case Op(op, args, type):
            found = [_partial(a, fills, annihilate) for a in args]
            operands = tuple(value for value, _ in found)
            if all(isinstance(v, Const) for v in operands):
                folded = const(evaluate(Op(op, operands, type)).item(), type)
                return folded, any(absent for _, absent in found)
            if op == "select" and isinstance(operands[0], Const):
                return found[1] if operands[0].value else found[2]
            if any(absent for _, absent in found) and (known := settled(op, operands)) is not None:
                return known, True
            if annihilate and op == "mul" and any(absent and _is_zero(v) for v, absent in found):
                return const(0, type), True
            rebuilt = simplify_expr(Op(op, operands, type))
            return rebuilt, isinstance(rebuilt, Const) and any(absent for _, absent in found)
    return expr, False


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 0


class Regions:
    """An expression over operands, by the set of those that are present.

    Parameters
    ----------
    expr : over variables that are called as the operands
    fills : the fill value of each operand, as a constant of the variable's type
    fill : the result's fill value; without, the expression's value where all are absent
    """

    def __init__(
        self, expr: Expr, fills: Mapping[str, Const], fill: Const | None = None, annihilate: bool = ZERO_ANNIHILATES
    ) -> None:
        self.expr, self.fills, self.annihilate = expr, dict(fills), annihilate
        self._given = fill
        self._bodies: dict[frozenset[str], Expr | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.fills)

    @cached_property
    def fill(self) -> Const:
        """The result's fill value."""
        if self._given is not None:
            return self._given
        value = partial(self.expr, self.fills, self.annihilate)
        assert isinstance(value, Const)
        return value

    def body(self, present: Iterable[str]) -> Expr | None:
        """What is computed where just these are present; None where it is the fill value."""
        key = frozenset(present)
        if key not in self._bodies:
            value = partial(self.expr, self._absent(key), self.annihilate)
            self._bodies[key] = None if same(value, self.fill) else value
        return self._bodies[key]

    def plain(self, present: Iterable[str]) -> Expr:
        """The expression with the fill values put in, and nothing more."""
        return partial(self.expr, self._absent(frozenset(present)), False)

    def _absent(self, present: frozenset[str]) -> dict[str, Const]:
        return {name: value for name, value in self.fills.items() if name not in present}

    def wanted(self, present: frozenset[str], droppable: frozenset[str]) -> bool:
        """Whether something is computed for `present`, less any of `droppable`."""
        return any(self.body(present - gone) is not None for gone in _subsets(droppable & present))

    def matters(self, name: str, present: frozenset[str], droppable: frozenset[str]) -> bool:
        """Whether the presence of `name` makes a difference for `present`, less any of `droppable`."""
        rest = present - {name}
        return any(self.body((rest - gone) | {name}) != self.body(rest - gone) for gone in _subsets(droppable & rest))

    def needs(self, name: str) -> bool:
        """Whether nothing is computed where `name` is absent."""
        return all(name in present for present in self.sets)

    def keeps(self, name: str) -> bool:
        """Whether something is computed wherever `name` is present."""
        return all(self.body(s | {name}) is not None for s in _subsets(frozenset(self.names) - {name}))

    def __str__(self) -> str:
        """The sets of operands for which something is computed, from the largest to the smallest."""
        if len(self.fills) > 4:
            return f"as {len(self.fills)} operands tell, operation by operation"
        found = sorted((sorted(s) for s in _subsets(frozenset(self.names)) if self.body(s) is not None), key=_by_size)
        return " ".join("{" + ", ".join(s) + "}" for s in found) or "nothing"

    @property
    def sets(self) -> tuple[frozenset[str], ...]:
        """The sets of operands for which something is computed."""
        return tuple(s for s in _subsets(frozenset(self.names)) if self.body(s) is not None)

    def hitting(self, sets: Collection[frozenset[str]] | None = None) -> tuple[frozenset[str], ...]:
        """The smallest sets of operands of which one is wherever something is computed, or in each of `sets`."""
        regions = self.sets if sets is None else sets
        found: list[frozenset[str]] = []
        for candidate in sorted(_subsets(frozenset(self.names)), key=lambda s: (len(s), sorted(s))):
            if all(candidate & region for region in regions) and not any(f <= candidate for f in found):
                found.append(candidate)
        return tuple(found)


def _by_size(names: list[str]) -> tuple[int, list[str]]:
    return -len(names), names


def _subsets(names: frozenset[str]) -> list[frozenset[str]]:
    """All subsets, in a fixed order."""
    found = [frozenset[str]()]
    for name in sorted(names):
        found += [s | {name} for s in found]
    return found

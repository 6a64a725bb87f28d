"""Fill algebra: an expression and the fill values of absent operands -> the expression that is left to compute.

An operand is *absent* at a coordinate where it stores no element: its value there is its fill value, a constant. The
expression is evaluated as far as these constants reach. Where it folds to the result's own fill value, nothing has to
be stored: the region of that set of operands is empty. This alone tells an intersection from a union, a mask or a
comparison; there is no table of operators.

    A * B        {A}: A * 0 -> 0       empty: the product is an intersection
    A + B        {A}: A + 0            not constant: the sum is a union
    A < B        {A}: A < 0            a union; with unsigned A it folds to False, and {A} is empty
    A ** B       {A}: A ** 0 -> 1      empty, as 0 ** 0 = 1 is the fill

The unspecified elements of a masked tensor are *missing*: they have no value. Its fill is `missing(type)`, and

    A * B        {A}: A * --  -> --    empty: masks intersect, whatever the operation is

The rules of an operation, in this order (`RULES`); the first that applies decides:

    skip         either(a, b) is b where a is missing, and a where b is; given(a, b) is a where both are there
    choose       select(c, a, b) with a known c is that branch, missing or not
    missing      any other operation on something missing is missing: it beats NaN and the annihilator
    constant     operands that are all known: NumPy's value, operation by operation, NaN and infinity included
    settle       the same for a scalar argument of a kernel, where its sign tells the result (`scalar_arguments`)
    annihilate   0 * x is 0, where the 0 is the fill of an absent operand (ZERO_ANNIHILATES)
    simplify     neutral elements and the like: x + 0, x * 1, x and True

Where the condition of a select is not known and a branch of it is missing, the operands' values decide at run time: the
body keeps the choice and `guarded` gives the condition of having a value. Outer operations move into the branches:

    f(select(c, --, x)) -> select(c, --, f(x))

ZERO_ANNIHILATES says what 0 * x is where the zero is the fill of an absent operand and x is not known. NumPy on the
dense arrays has NaN for an infinite or NaN x. Regions take 0, which is NumPy's answer for finite x: only so a product
of sparse operands is as sparse as they are. Where x is known, as both are absent, NumPy's answer is taken.
`nonfinite_guard` says for which values of the operands the two answers are one; operations ask for these, and have
regions without annihilation where it matters (`annihilate=False`), unless the user asks for `zero_annihilates=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

from ..ir.interpret import evaluate
from ..ir.loop import Cast, Const, Expr, Op, Var
from ..ir.ops import cast, const, op
from ..ir.types import Type
from .scalar_arguments import value_by_sign
from .simplify import simplify_expr

__all__ = ["RULES", "ZERO_ANNIHILATES", "Fill", "Regions", "guarded", "is_missing", "missing", "partial", "same"]

ZERO_ANNIHILATES = True

RULES = ("skip", "choose", "missing", "constant", "settle", "annihilate", "simplify")
"""The rules of an operation by name, in their order: the functions `_skip`, `_choose`, ... below."""

Fill = Const | Op | Var | Cast
"""A fill value: a constant, an expression of numbers that the kernel is passed, or `missing`."""


def missing(type: Type | str) -> Op:
    """The missing value of a type: what an unspecified element of a masked tensor is."""
    return Op("missing", (), Type(type) if isinstance(type, str) else type)


def is_missing(e: Expr) -> bool:
    """Whether an expression is known to have no value."""
    return isinstance(e, Op) and e.op == "missing"


def _may_lack(e: Expr) -> bool:
    """Whether some choice of the expression is missing."""
    return is_missing(e) or (isinstance(e, Op) and e.op == "select" and any(map(_may_lack, e.args[1:])))


def guarded(body: Expr) -> tuple[Expr, Expr | None]:
    """A body with choices -> its expression where it has a value, and the condition of having one (None: always)."""
    if not _may_lack(body):
        return body, None
    assert isinstance(body, Op)
    test, *arms = body.args
    (a, when_a), (b, when_b) = ((arm, None) if is_missing(arm) else guarded(arm) for arm in arms)
    if is_missing(arms[0]):
        otherwise = op("not", test)
        return b, otherwise if when_b is None else op("and", otherwise, when_b)
    if is_missing(arms[1]):
        return a, test if when_a is None else op("and", test, when_a)
    conditions = [const(True, "bool") if when is None else when for when in (when_a, when_b)]
    return simplify_expr(Op("select", (test, a, b), body.type)), op("select", test, *conditions)


def same(a: Expr, b: Expr) -> bool:
    """Whether two fill values are equal, missing or not, where NaN equals NaN, and -0.0 equals 0.0."""
    if is_missing(a) or is_missing(b):
        return is_missing(a) and is_missing(b)
    if not isinstance(a, Const) and not isinstance(b, Const):
        return a == b
    if not isinstance(a, Const) or not isinstance(b, Const):
        return False
    return a == b or bool(a.value == b.value)


def partial(expr: Expr, fills: Mapping[str, Fill], annihilate: bool = ZERO_ANNIHILATES) -> Expr:
    """`expr` with the variables of `fills` at these values, evaluated as far as they reach.

    Operations on constants are NumPy's, operation by operation; `annihilate`: a zero of `fills` makes a product zero.
    """
    value, _ = _partial(expr, fills, annihilate)
    return value if isinstance(value, Const) or _may_lack(value) else simplify_expr(value)


PartialValue = tuple[Expr, bool]
"""A value, or the lack of one, and whether it is known from the fill values of absent operands."""


def _partial(expr: Expr, fills: Mapping[str, Fill], annihilate: bool) -> PartialValue:
    match expr:
        case Var(name, type):
            return (_cast(fills[name], type), True) if name in fills else (expr, False)
        case Cast(arg, type):
            value, absent = _partial(arg, fills, annihilate)
            return _cast(value, type), absent and (isinstance(value, Const) or _may_lack(value))
        case Op(name, args, type):
            return _applied(name, tuple(_partial(a, fills, annihilate) for a in args), type, annihilate)
    return expr, False


def _cast(value: Expr, type: Type) -> Expr:
    if is_missing(value):
        return missing(type)
    if _may_lack(value):
        assert isinstance(value, Op)
        test, *arms = value.args
        return Op("select", (test, *(_cast(arm, type) for arm in arms)), type)
    return cast(value, type)


def _applied(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue:
    """The value of an operation on partially evaluated arguments, by the first rule that applies."""
    for rule in RULES:
        result = _RULES[rule](name, args, type, annihilate)
        if result is not None:
            return result
    raise AssertionError(name)


def _skip(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    if name not in ("either", "given"):
        return None
    (a, _), (b, _) = args
    chosen = 0 if name == "either" else 1
    if name == "given" and (is_missing(a) or is_missing(b)):
        return missing(type), True
    if name == "either" and is_missing(a):
        return _cast(b, type), args[1][1]
    if _may_lack(args[chosen][0]):
        return _into_choice(name, args, chosen, type, annihilate)
    return _cast(a, type), args[0][1]


def _choose(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    if name != "select":
        return None
    test, *arms = args
    if isinstance(test[0], Const):
        return arms[0] if test[0].value else arms[1]
    if _may_lack(test[0]) or not any(_may_lack(v) for v, _ in arms):
        return None  # a condition that is missing, or nothing that is
    if all(is_missing(v) for v, _ in arms):
        return missing(type), True
    return Op("select", (test[0], *(v for v, _ in arms)), type), False


def _missing(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    operands = [v for v, _ in (args[:1] if name == "select" else args)]
    if any(map(is_missing, operands)):
        return missing(type), True
    choice = next((k for k, v in enumerate(operands) if _may_lack(v)), None)
    return None if choice is None else _into_choice(name, args, choice, type, annihilate)


def _into_choice(name: str, args: tuple[PartialValue, ...], at: int, type: Type, annihilate: bool) -> PartialValue:
    """f(select(c, --, x)) -> select(c, --, f(x))"""
    choice, absent = args[at]
    assert isinstance(choice, Op)
    test, *arms = choice.args
    branches = [_applied(name, (*args[:at], (arm, absent), *args[at + 1 :]), type, annihilate)[0] for arm in arms]
    if all(map(is_missing, branches)):
        return missing(type), True
    return Op("select", (test, *branches), type), False


def _constant(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    operands = tuple(v for v, _ in args)
    if not all(isinstance(v, Const) for v in operands):
        return None
    return const(evaluate(Op(name, operands, type)).item(), type), any(absent for _, absent in args)


def _by_sign(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    value = value_by_sign(name, tuple(v for v, _ in args)) if any(absent for _, absent in args) else None
    return None if value is None else (value, True)


def _annihilated(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    zero = annihilate and name == "mul" and any(absent and _is_zero(v) for v, absent in args)
    return (const(0, type), True) if zero else None


def _simplified(name: str, args: tuple[PartialValue, ...], type: Type, annihilate: bool) -> PartialValue | None:
    rebuilt = simplify_expr(Op(name, tuple(v for v, _ in args), type))
    return rebuilt, isinstance(rebuilt, Const) and any(absent for _, absent in args)


_RULES: dict[str, Callable[[str, tuple[PartialValue, ...], Type, bool], PartialValue | None]] = {
    "skip": _skip, "choose": _choose, "missing": _missing, "constant": _constant, "settle": _by_sign,
    "annihilate": _annihilated, "simplify": _simplified,
}  # fmt: skip


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 0


class Regions:
    """An expression over operands -> what is left to compute for each set of operands that are present.

    Parameters
    ----------
    expr : over variables that are called as the operands
    fills : the fill value of each operand, as a constant of the variable's type, or `missing`
    fill : the result's fill value; without, the expression's value where all are absent
    """

    def __init__(
        self, expr: Expr, fills: Mapping[str, Fill], fill: Fill | None = None, annihilate: bool = ZERO_ANNIHILATES
    ) -> None:
        self.expr, self.fills, self.annihilate = expr, dict(fills), annihilate
        self._fill = fill
        self._bodies: dict[frozenset[str], Expr | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.fills)

    @cached_property
    def fill(self) -> Fill:
        """The result's fill value."""
        if self._fill is not None:
            return self._fill
        value = partial(self.expr, self.fills, self.annihilate)
        assert isinstance(value, Const) or is_missing(value) or self.passed
        return value  # type: ignore[return-value]

    @cached_property
    def masked(self) -> bool:
        """Whether an operand has missing elements."""
        return any(map(is_missing, self.fills.values()))

    @cached_property
    def passed(self) -> bool:
        """Whether a fill value is a number that the kernel is passed."""
        return any(not isinstance(f, Const) and not is_missing(f) for f in self.fills.values())

    @cached_property
    def guarded(self) -> bool:
        """Whether a body has a value only under a condition on the operands' values."""
        subsets = _subsets(frozenset(self.names)) if self.masked else []
        return any(body is not None and _may_lack(body) for body in map(self.body, subsets))

    def body(self, present: Iterable[str]) -> Expr | None:
        """The expression to compute where exactly these operands are present; None where it is the fill value."""
        key = frozenset(present)
        if key not in self._bodies:
            value = partial(self.expr, self._absent(key), self.annihilate)
            self._bodies[key] = None if same(value, self.fill) else value
        return self._bodies[key]

    def plain(self, present: Iterable[str]) -> Expr:
        """The expression with the fill values substituted, without annihilation."""
        return partial(self.expr, self._absent(frozenset(present)), False)

    def _absent(self, present: frozenset[str]) -> dict[str, Fill]:
        return {name: value for name, value in self.fills.items() if name not in present}

    def computes(self, present: frozenset[str], droppable: frozenset[str]) -> bool:
        """Whether something is computed for `present`, or for `present` without some of `droppable`."""
        return any(self.body(present - dropped) is not None for dropped in _subsets(droppable & present))

    def matters(self, name: str, present: frozenset[str], droppable: frozenset[str]) -> bool:
        """Whether the body depends on `name` for `present`, or for `present` without some of `droppable`."""
        rest = present - {name}
        return any(
            self.body((rest - dropped) | {name}) != self.body(rest - dropped) for dropped in _subsets(droppable & rest)
        )

    def needs(self, name: str) -> bool:
        """Whether nothing is computed where `name` is absent."""
        return all(name in present for present in self.sets)

    def keeps(self, name: str) -> bool:
        """Whether something is computed wherever `name` is present."""
        return not self.guarded and all(
            self.body(s | {name}) is not None for s in _subsets(frozenset(self.names) - {name})
        )

    def __str__(self) -> str:
        """The sets of operands for which something is computed, from the largest to the smallest."""
        if len(self.fills) > 4:
            return f"as {len(self.fills)} operands tell, operation by operation"
        sets = sorted(
            (sorted(s) for s in _subsets(frozenset(self.names)) if self.body(s) is not None), key=_largest_first
        )
        return " ".join("{" + ", ".join(s) + "}" for s in sets) or "nothing"

    @property
    def sets(self) -> tuple[frozenset[str], ...]:
        """The sets of operands for which something is computed."""
        return tuple(s for s in _subsets(frozenset(self.names)) if self.body(s) is not None)

    def hitting(self, sets: Collection[frozenset[str]] | None = None) -> tuple[frozenset[str], ...]:
        """The minimal hitting sets: sets of operands that meet every set for which something is computed, or `sets`."""
        regions = self.sets if sets is None else sets
        smallest: list[frozenset[str]] = []
        for candidate in sorted(_subsets(frozenset(self.names)), key=lambda s: (len(s), sorted(s))):
            if all(candidate & region for region in regions) and not any(f <= candidate for f in smallest):
                smallest.append(candidate)
        return tuple(smallest)


def _largest_first(names: list[str]) -> tuple[int, list[str]]:
    return -len(names), names


def _subsets(names: frozenset[str]) -> list[frozenset[str]]:
    """All subsets, in a fixed order."""
    subsets = [frozenset[str]()]
    for name in sorted(names):
        subsets += [s | {name} for s in subsets]
    return subsets

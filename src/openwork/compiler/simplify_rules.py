"""Rewrite rules of expressions, as a table: pattern, result, and the operand types for which it holds.

Grammar of a row::

    row     := ( pattern , result , kind )
    pattern := an expression in index notation; a literal matches the constant of that value and sign,
               `c` and `d` match any constant, another letter matches anything, a repeated one the same again
    kind    := any | real | signed | int | unsigned | float | bool      of the pattern's last operand

Before matching, a constant operand of a commutative operation or a comparison is put on the right. Every row holds for
every value, wraparound, NaN, infinities and signed zeros included (`tests/compiler/test_simplify.py` evaluates both
sides): which is why `x + 0.0` and `x * 0.0` stay. A result made of constants is folded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from ..classes import frozen
from ..errors import CompilerBug
from ..ir import ops
from ..ir.index import Access, Apply, Expression, Literal
from ..ir.index_text import parse_expression
from ..ir.interpret import evaluate
from ..ir.loop import Cast, Const, Expr, Op
from ..ir.operations import COMMUTATIVE
from ..ir.types import FLOATS, INTEGERS, SIGNED, UNSIGNED, Type
from ..ir.values import fit

__all__ = ["KINDS", "ROWS", "Rule", "build", "constant", "expression_rule", "rules"]

ROWS: tuple[tuple[str, str, str], ...] = (
    ("x + 0", "x", "int"),
    ("x + -0.0", "x", "float"),
    ("x - 0", "x", "real"),
    ("0 - x", "-x", "int"),
    ("x - x", "0", "int"),
    ("-0.0 - x", "-x", "float"),
    ("x * 1", "x", "real"),
    ("x * 0", "0", "int"),
    ("x * -1", "-x", "int"),
    ("x / 1", "x", "real"),
    ("x // 1", "x", "int"),
    ("x % 1", "0", "int"),
    ("x // 0", "0", "int"),
    ("x % 0", "0", "int"),
    ("(x % c) % c", "x % c", "int"),
    ("x ** 1", "x", "real"),
    ("x ** 2", "square(x)", "real"),
    ("x ** 0", "1", "real"),
    ("-(-x)", "x", "any"),
    ("-(x - y)", "y - x", "int"),
    ("x + -y", "x - y", "int"),
    ("x - -y", "x + y", "int"),
    ("x + c + d", "x + (c + d)", "int"),
    ("x + c - d", "x + (c - d)", "int"),
    ("x - c + d", "x + (d - c)", "int"),
    ("x - c - d", "x - (c + d)", "int"),
    ("x * c * d", "x * (c * d)", "int"),
    ("x + y - x", "y", "int"),
    ("x + y - y", "x", "int"),
    ("x - y + y", "x", "int"),
    ("x + (y - x)", "y", "int"),
    ("x + c - (x + d)", "c - d", "int"),
    ("x + c - (y + c)", "x - y", "int"),
    ("abs(abs(x))", "abs(x)", "any"),
    ("abs(-x)", "abs(x)", "signed"),
    ("abs(x)", "x", "unsigned"),
    ("conj(conj(x))", "x", "any"),
    ("conj(x)", "x", "real"),
    ("real(x)", "x", "real"),
    ("floor(x)", "x", "int"),
    ("ceil(x)", "x", "int"),
    ("trunc(x)", "x", "int"),
    ("round(x)", "x", "int"),
    ("min(x, x)", "x", "any"),
    ("max(x, x)", "x", "any"),
    ("min(min(x, c), d)", "min(x, min(c, d))", "int"),
    ("max(max(x, c), d)", "max(x, max(c, d))", "int"),
    ("x & x", "x", "any"),
    ("x | x", "x", "any"),
    ("x ^ x", "0", "any"),
    ("x & 0", "0", "any"),
    ("x | 0", "x", "any"),
    ("x ^ 0", "x", "any"),
    ("x << 0", "x", "int"),
    ("x >> 0", "x", "int"),
    ("x == x", "True", "int"),
    ("x <= x", "True", "int"),
    ("x >= x", "True", "int"),
    ("x != x", "False", "int"),
    ("x < x", "False", "int"),
    ("x > x", "False", "int"),
    ("x >= 0", "True", "unsigned"),
    ("x < 0", "False", "unsigned"),
    ("x == True", "x", "bool"),
    ("x == False", "not x", "bool"),
    ("x != True", "not x", "bool"),
    ("x != False", "x", "bool"),
    ("not not x", "x", "bool"),
    ("not x == y", "x != y", "bool"),
    ("not x != y", "x == y", "bool"),
    ("x and True", "x", "bool"),
    ("x and False", "False", "bool"),
    ("x and x", "x", "bool"),
    ("x or False", "x", "bool"),
    ("x or True", "True", "bool"),
    ("x or x", "x", "bool"),
    ("select(x, y, y)", "y", "any"),
    ("select(True, x, y)", "x", "any"),
    ("select(False, x, y)", "y", "any"),
    ("select(not x, y, z)", "select(x, z, y)", "any"),
    ("select(x, True, False)", "x", "bool"),
    ("select(x, False, True)", "not x", "bool"),
)
"""A row below another one is tried after it. `not x < y` is not here but in `_negated`: it holds for integers only,
and the kind speaks of the operand of `not`."""

_REAL = (*INTEGERS, *FLOATS)
KINDS: dict[str, frozenset[str]] = {
    "any": frozenset(("bool", *_REAL, "c64", "c128")),
    "real": frozenset(_REAL),
    "signed": frozenset((*SIGNED, *FLOATS, "c64", "c128")),
    "int": frozenset(INTEGERS),
    "unsigned": frozenset(UNSIGNED),
    "float": frozenset(FLOATS),
    "bool": frozenset(("bool",)),
}
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_INEXACT = ops.FLOATING - {"div", "sqrt", "reciprocal"} | {"pow"}


@frozen
class Rule:
    pattern: Apply
    result: Expression
    scalars: frozenset[str]
    kind: str

    def __str__(self) -> str:
        return f"{self.pattern} -> {self.result}  ({self.kind})"


@lru_cache(maxsize=1)
def rules() -> Mapping[str, tuple[Rule, ...]]:
    """The table by the operation at the pattern's root."""
    table: dict[str, list[Rule]] = {}
    for pattern, result, kind in ROWS:
        tree = parse_expression(pattern)
        assert isinstance(tree, Apply)
        table.setdefault(tree.op, []).append(Rule(tree, parse_expression(result), KINDS[kind], kind))
    return {op: tuple(group) for op, group in table.items()}


def expression_rule(expr: Expr) -> Expr | None:
    """One simplification at the root of `expr`; None when there is none."""
    if isinstance(expr, Op):
        op, args = expr.op, expr.args
        return _computed(expr) or _constant_right(op, args) or _table(expr) or _negated(op, args)
    return _cast(expr.arg, expr.type) if isinstance(expr, Cast) else None


def constant(expr: Expr) -> bool | int | float | complex | None:
    """The value of a constant, or of one spread over lanes; None for anything else."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Cast) and isinstance(expr.arg, Const):
        inner = expr.arg.type
        if inner.scalar == expr.type.scalar and inner.lanes == 1:
            return expr.arg.value
    return None


def _computed(expr: Op) -> Expr | None:
    """The constant that an operation on constants is, lane by lane alike; None where machine and NumPy may differ."""
    values = []
    for a in expr.args:
        value = constant(a)
        if value is None:
            return None
        values.append(value)
    if expr.op in ops.OF_LANES:
        return None
    if expr.op in _INEXACT and not all(a.type.is_integer for a in expr.args):
        return None
    if expr.type.scalar in ("f16", "bf16"):  # computed in f32: a constant would be rounded too early
        return None
    args = tuple(Const(v, a.type.with_lanes(1)) for v, a in zip(values, expr.args, strict=True))
    scalar_type = expr.type.with_lanes(1)
    return ops.cast(ops.const(evaluate(Op(expr.op, args, scalar_type)).item(), scalar_type), expr.type)


def _constant_right(op: str, args: tuple[Expr, ...]) -> Expr | None:
    if len(args) == 2 and constant(args[0]) is not None and constant(args[1]) is None:
        if op in COMMUTATIVE:
            return ops.op(op, args[1], args[0])
        if op in _FLIPPED:
            return ops.op(_FLIPPED[op], args[1], args[0])
    return None


def _negated(op: str, args: tuple[Expr, ...]) -> Expr | None:
    match op, args:
        case "not", (Op(inner, (a, b), _),) if inner in _OPPOSITE and a.type.is_integer:
            return ops.op(_OPPOSITE[inner], a, b)
    return None


def _table(expr: Op) -> Expr | None:
    shapes = tuple([_shape(a) for a in expr.args])
    for rule, matches in _candidates(expr.op, expr.args[-1].type.scalar, shapes):
        bindings: dict[str, Expr] = {}
        if matches(expr, bindings):
            return build(rule.result, bindings, expr.type)
    return None


Matcher = Callable[[Expr, dict[str, Expr]], bool]


def _shape(expr: Expr) -> str:
    """What an operand is at its root: the name of an operation, "constant", or nothing of which a pattern speaks."""
    return expr.op if isinstance(expr, Op) else "" if constant(expr) is None else "constant"


def _may_match(pattern: Expression, shape: str) -> bool:
    """Whether an operand of this shape may match an operand of a pattern."""
    match pattern:
        case Apply(op, _):
            return shape == op
        case Access(name, _) if name not in ("c", "d"):
            return True
    return shape == "constant"


@cache
def _candidates(op: str, scalar: str, shapes: tuple[str, ...]) -> tuple[tuple[Rule, Matcher], ...]:
    """The rules for an operation on operands of these shapes, the last of this type, each with its matcher."""
    return tuple(
        (rule, _matcher(rule.pattern))
        for rule in rules().get(op, ())
        if scalar in rule.scalars and all(map(_may_match, rule.pattern.args, shapes))
    )


def _matcher(pattern: Expression) -> Matcher:
    """A pattern -> the function that matches an expression against it, binding the pattern's names."""
    match pattern:
        case Literal(value):
            reprs: dict[str, str] = {}

            def literal(expr: Expr, bindings: dict[str, Expr]) -> bool:
                actual = constant(expr)
                if actual is None:
                    return False
                scalar = expr.type.scalar
                if scalar not in reprs:
                    reprs[scalar] = repr(fit(value, scalar))
                return reprs[scalar] == repr(actual)

            return literal
        case Access(name, _):
            is_constant = name in ("c", "d")

            def variable(expr: Expr, bindings: dict[str, Expr]) -> bool:
                if is_constant and constant(expr) is None:
                    return False
                return bindings.setdefault(name, expr) == expr

            return variable
        case Apply(op, args):
            matchers = tuple(_matcher(a) for a in args)

            def operation(expr: Expr, bindings: dict[str, Expr]) -> bool:
                if not isinstance(expr, Op) or expr.op != op:
                    return False
                for matches, arg in zip(matchers, expr.args, strict=True):  # noqa: SIM110 (all() takes twice the time)
                    if not matches(arg, bindings):
                        return False
                return True

            return operation
    raise CompilerBug(f"no pattern: {pattern}")


def build(e: Expression, names: Mapping[str, Expr], type: Type, fold: bool = True) -> Expr:
    """The right side of a rule -> loop IR of type `type`, with the values of its names."""
    return ops.cast(_build(e, names, fold), type)


def _build(e: Expression, names: Mapping[str, Expr], fold: bool) -> Expr:
    match e:
        case Access(name, _):
            return names[name]
        case Literal(value):
            kind = "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f64"
            return ops.const(value, kind)
        case Apply(op, args):
            result = ops.op(op, *(_build(a, names, fold) for a in args))
            return (fold and isinstance(result, Op) and _computed(result)) or result


def _cast(arg: Expr, type: Type) -> Expr | None:
    """`T(U(x))` is `T(x)` where U holds every value of x's type; a constant is converted now."""
    if arg.type == type and type.scalar not in ("f16", "bf16"):
        return arg
    match arg:
        case Const(_, inner) if inner.lanes == type.lanes:
            return ops.cast(arg, type)
        case Cast(x, middle) if _holds(middle.scalar, x.type.scalar):
            saturates = (middle.is_float or middle.is_complex) and type.is_integer and not x.type.is_float
            if x.type.lanes in (middle.lanes, type.lanes) and not (
                saturates and not _holds(type.scalar, x.type.scalar)
            ):
                return ops.cast(x, type)
    return None


_MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "c64": 24, "c128": 53}


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of the scalar type `narrow` is one of `wide`, as it travels in registers."""
    if wide == narrow or narrow == "bool":
        return narrow not in ("f16", "bf16")
    if narrow in FLOATS:
        return narrow == "f32" and wide in ("f64", "c64", "c128")
    if narrow in ("c64", "c128"):
        return wide == "c128"
    bits = int(narrow[1:]) - (narrow in SIGNED)
    if wide in INTEGERS:
        return int(wide[1:]) - (wide in SIGNED) >= bits and (wide in SIGNED or narrow in UNSIGNED)
    return wide != "bool" and wide not in ("f16", "bf16") and _MANTISSA[wide] >= bits

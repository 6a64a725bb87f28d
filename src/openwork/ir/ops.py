"""The name of an operation and its operands -> a typed node of the loop IR: operands promoted, nothing folded.

`op` is the specification of every signature: an Op node is well typed when `op(name, *args)` returns it.

Meaning (the interpreter is the reference): integers wrap; floordiv and mod are Python's, and x // 0 == x % 0 == 0;
a shift by the width or more gives 0, or -1 for a negative value shifted right; min and max of a NaN give NaN; round
is to nearest even; ctz counts the zero bits below the lowest set one (the width for 0); ramp adds to each lane its
number, from 0 on; bit(x, k) is whether x has a bit k and it is set; bits(m) is the i64 whose bits are
the lanes of m; expand(x, m) puts the first lanes of x, in their
order, where m is true, and 0 elsewhere; permute(x, i), of a vector x of 2^k lanes, puts lane i[l] mod 2^k of x in each
lane l of the integers i; on bool add, max, bor are
"or" and mul, min, band are "and"; an integer to a negative power is the exact value truncated to an integer, 0 to a
negative power being 0. f16 and bf16 are computed in f32, and rounded when stored or cast. Complex numbers order as
NumPy's do, by the real part first. On one lane `and` and `or` evaluate their right side, and `select` an arm, only
where it decides; on several lanes everything is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CompilerBug
from .loop import Cast, Const, Expr, Load, Op
from .operations import OPERATIONS, of_kind, with_trait
from .types import BOOL, FLOATS, I64, INTEGERS, Type, real_of, type_of
from .values import fit, int_range

__all__ = [
    "ARITHMETIC",
    "BITWISE",
    "COMPARISONS",
    "FLOATING",
    "LOGICAL",
    "OF_LANES",
    "REDUCTIONS",
    "UNARY",
    "arity",
    "cast",
    "const",
    "holds",
    "load",
    "op",
    "refusal",
]

ARITHMETIC, BITWISE, COMPARISONS, LOGICAL, UNARY = (
    of_kind("arithmetic"), of_kind("bitwise"), of_kind("comparison"), of_kind("logical"), of_kind("unary"),
)  # fmt: skip
OF_LANES = of_kind("lanes")
"""Operations across the lanes of a vector."""
REDUCTIONS = tuple(name for name in OF_LANES if name in with_trait("fold"))
"""Vector to scalar."""
FLOATING = with_trait("floating")
"""Operations of floating-point operands only: integers are cast to f64 first."""

_RANK = {
    s: i for i, s in enumerate(("bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", *FLOATS, "c64", "c128"))
}

_KIND = {"bool": 0, **dict.fromkeys(INTEGERS, 1), **dict.fromkeys(FLOATS, 2)}


def const(value: bool | int | float | complex, type: Type | str = I64) -> Const:
    """A constant of `type`: integers wrap and floats are rounded to it."""
    t = type_of(type) if isinstance(type, str) else type
    return Const(fit(value, t.scalar), t)


def cast(expr: Expr, type: Type | str) -> Expr:
    """`expr` as `type`; itself when it is so already, a new constant when it is one of as many lanes."""
    t = type_of(type, expr.type.lanes) if isinstance(type, str) else type
    if expr.type == t:
        return expr
    if isinstance(expr, Const) and t.lanes == expr.type.lanes:
        return const(expr.value, t)
    if isinstance(expr, Const) and expr.type.scalar != t.scalar:  # convert first, then broadcast
        expr = const(expr.value, t.with_lanes(expr.type.lanes))
    return Cast(expr, t)


def arity(name: str) -> int | None:
    """The number of operands that the operation takes; None when there is no such operation."""
    operation = OPERATIONS.get(name)
    return None if operation is None else operation.arity


def refusal(name: str, scalar: str) -> str | None:
    """Why the operation is not defined on operands of this type, None when it is."""
    kind = _kind(scalar)
    if name in BITWISE or name == "bnot":
        is_refused = kind > 1
    elif "integers-only" in (traits := OPERATIONS[name].traits):
        is_refused = kind != 1
    else:
        is_refused = (kind == 3 and "no-complex" in traits) or (kind == 0 and "no-bool" in traits)
    return f"{name} is not defined on {scalar}" if is_refused else None


def load(buffer: str, scalar: str, index: Expr, lanes: int = 1) -> Load:
    """`lanes` consecutive elements of `buffer` from `index`, or a gather when the index is a vector."""
    return Load(buffer, cast(index, I64.with_lanes(index.type.lanes)), type_of(scalar, max(lanes, index.type.lanes)))


def op(name: str, *args: Expr) -> Expr:
    """The operation `name`, operands promoted to their common type (a constant takes the other's type),
    scalars broadcast to the lanes of the widest. Raises CompilerBug where the operation is not defined."""
    if len(args) != arity(name):
        raise CompilerBug(f"operation {name!r} does not take {len(args)} operands ({arity(name) or 'there is none'})")
    if name == "select":
        a, b = _promote(args[1:])
        lanes = max(args[0].type.lanes, a.type.lanes)
        cond, a, b = (_spread(x, lanes) for x in (cast(args[0], "bool"), a, b))
        return Op(name, (cond, a, b), a.type)
    if name == "expand":
        lanes = max(a.type.lanes for a in args)
        x, mask = _spread(args[0], lanes), _spread(cast(args[1], "bool"), lanes)
        return Op(name, (x, mask), x.type)
    if name == "permute":
        x, index = args
        if index.type.scalar not in INTEGERS or x.type.lanes & (x.type.lanes - 1):
            raise CompilerBug(f"permute of {x.type} by {index.type}: expected 2^k lanes, by integers")
        return Op(name, (x, index), x.type.with_lanes(index.type.lanes))
    if name == "bits":
        return Op(name, (cast(args[0], "bool"),), I64)
    if name in LOGICAL:
        args = tuple(cast(a, "bool") for a in args)
    elif name in FLOATING:
        args = tuple(cast(a, "f64") if _kind(a.type.scalar) < 2 and not isinstance(a, Const) else a for a in args)
    operands = tuple(_promote(args))
    if name in FLOATING and _kind(operands[0].type.scalar) < 2:
        operands = tuple(cast(a, "f64") for a in operands)
    if problem := refusal(name, operands[0].type.scalar):
        raise CompilerBug(problem)
    return Op(name, operands, _result(name, operands[0].type))


def _result(name: str, operand: Type) -> Type:
    if name in REDUCTIONS:
        return operand.with_lanes(1)
    result = OPERATIONS[name].result
    if result == "bool" and name not in LOGICAL:
        return BOOL.with_lanes(operand.lanes)
    return operand.with_scalar(real_of(operand.scalar)) if result == "real" else operand


def _spread(expr: Expr, lanes: int) -> Expr:
    return expr if expr.type.lanes == lanes else cast(expr, expr.type.with_lanes(lanes))


def _promote(args: Sequence[Expr]) -> Sequence[Expr]:
    kind = args[0].type
    for a in args:
        if a.type != kind:
            break
    else:
        return args
    lanes = max(a.type.lanes for a in args)
    free = [a for a in args if not isinstance(a, Const)] or args
    scalar = max((a.type.scalar for a in free), key=_RANK.__getitem__)
    for a in args:  # a constant of a wider kind (2.5 with an integer variable), or one that does not fit, decides
        if isinstance(a, Const) and (_kind(a.type.scalar) > _kind(scalar) or not _fits(a.value, scalar)):
            scalar = max(a.type.scalar, scalar, key=_RANK.__getitem__)
    return [_spread(cast(a, a.type.with_scalar(scalar)), lanes) for a in args]


def holds(type: Type, value: Expr) -> bool:
    """Whether a variable of a type holds a value as operands are promoted: a constant that fits, or no wider type."""
    if isinstance(value, Const):
        return _kind(value.type.scalar) <= _kind(type.scalar) and _fits(value.value, type.scalar)
    return _RANK[value.type.scalar] <= _RANK[type.scalar]


def _fits(value: bool | int | float | complex, scalar: str) -> bool:
    if not isinstance(value, int) or scalar not in INTEGERS:
        return True
    lo, hi = int_range(scalar)
    return lo <= value <= hi


def _kind(scalar: str) -> int:
    return _KIND.get(scalar, 3)

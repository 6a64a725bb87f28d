"""A lattice point of the innermost level -> a loop body without branches: each element is stored, kept if in a case.

    c = min(cA, cB)
    out_crd[q] = c
    out_vals[q] = (A[qA] if inA else fill) + (B[qB] if inB else fill)
    q += 1                                            or: q += whether this is one of the cases
    qA += inA; qB += inB

The branches of a merge go each way about as often, in no order that a branch predictor could learn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.loop import Cast, Expr, Op, Var
from ...ir.operations import with_trait
from ...ir.ops import cast, const, op
from ...ir.rewrite import subexpressions, walk
from ..build import Block
from ..fill import Regions, is_missing
from ..lattice import Case, Point
from .cursor import both

__all__ = ["least_coordinate", "is_cheap", "only_present", "is_case", "substitute", "value_of"]

_COSTLY = with_trait("costly")
"""Operations that cost more than a mispredicted branch."""


def is_cheap(expr: Expr) -> bool:
    """Whether the expression may be computed where it is not needed."""
    return not any(isinstance(e, Op) and e.op in _COSTLY for e in subexpressions(expr))


def least_coordinate(block: Block, hint: str, coordinates: Mapping[str, Expr]) -> tuple[Expr, dict[str, Expr]]:
    """The least of the operands' coordinates, and for each operand whether it is there; empty for a single operand."""
    if len(coordinates) == 1:
        return block.let(hint, next(iter(coordinates.values()))), {}
    if len(coordinates) == 2:
        (x, a), (y, b) = coordinates.items()
        c = block.let(hint, op("min", a, b))
        return c, {x: block.let(f"in{x}", op("le", a, b)), y: block.let(f"in{y}", op("le", b, a))}
    c = next(iter(coordinates.values()))
    for other in list(coordinates.values())[1:]:
        c = op("min", c, other)
    c = block.let(hint, c)
    return c, {n: block.let(f"in{n}", op("eq", x, c)) for n, x in coordinates.items()}


def substitute(body: Expr, values: Mapping[str, Expr]) -> Expr:
    """The body with values for its variables, of as many lanes as these have."""
    if all(v.type.lanes == 1 for v in values.values()):
        return walk(body, lambda e: values.get(e.name) if isinstance(e, Var) else None)
    match body:
        case Var(name, _):
            return values.get(name, body)
        case Op(name, args, _):
            return op(name, *(substitute(a, values) for a in args))
        case Cast(arg, type):
            inner = substitute(arg, values)
            return cast(inner, type.with_lanes(inner.type.lanes))
    return body


def value_of(
    block: Block,
    regions: Regions,
    point: Point,
    base: frozenset[str],
    values: Mapping[str, Expr],
    presence: Mapping[str, Expr],
) -> Expr:
    """The value at the coordinate: one expression for all cases, where fill values substituted for absent operands
    give the same, else a select among the cases' expressions."""
    bodies = [(case, regions.body(base | frozenset(case))) for case in point.cases]
    filled = not any(is_missing(regions.fills[n]) for n in presence)
    if filled and all(body == regions.plain(base | frozenset(case)) for case, body in bodies):
        operands = {
            n: op("select", presence[n], v, substitute(cast(regions.fills[n], v.type), values)) if n in presence else v
            for n, v in values.items()
        }
        named = {n: block.let(f"x{n}", v) for n, v in operands.items()}
        return substitute(regions.plain(base | frozenset(point.walked)), named)
    result: Expr | None = None
    for case, body in reversed(bodies):
        assert body is not None
        computed = block.let("x", substitute(body, values))
        test = _all_present(case, presence)
        result = computed if result is None or test is None else op("select", test, computed, result)
    assert result is not None
    return result


def is_case(point: Point, presence: Mapping[str, Expr], all_coordinates: bool = False) -> Expr | None:
    """The condition that the operands present are a case; None: always. With `all_coordinates` none may be present."""
    names = point.walked
    if len(point.cases) == 2 ** len(names) - (not all_coordinates):
        return None
    cases = {frozenset(case) for case in point.cases}
    upward = all(case | {name} in cases for case in cases for name in names)
    condition: Expr | None = None
    for case in point.cases:
        if upward and any(other < frozenset(case) for other in cases):
            continue
        test = _all_present(case, presence)
        for name in names:
            if name not in case and not upward:
                test = both(test, op("not", presence[name]))
        test = const(True, "bool") if test is None else test
        condition = test if condition is None else op("or", condition, test)
    return condition


def only_present(case: Case, names: Sequence[str], presence: Mapping[str, Expr]) -> Expr | None:
    """The condition that the operands of `case` are present, and no others; None where all are known to be."""
    result: Expr | None = None
    for name in names:
        if name in presence:
            result = both(result, presence[name] if name in case else op("not", presence[name]))
    return result


def _all_present(case: Case, presence: Mapping[str, Expr]) -> Expr | None:
    """The condition that all operands of a case are present; None for the empty case."""
    test: Expr | None = None
    for name in case:
        test = both(test, presence[name])
    return test

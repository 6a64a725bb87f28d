"""Emits a lattice point of the innermost level without branches: all is stored, and kept where it is that of a case.

    c = min(cA, cB)
    out_crd[q] = c
    out_vals[q] = (A[qA] if inA else fill) + (B[qB] if inB else fill)
    q += 1                                            or: the truth value of the cases
    qA += inA; qB += inB

Half of the steps of a merge go one way and half the other, in no order that a processor could learn.
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

__all__ = ["front", "is_cheap", "just", "kept", "replaced", "value_of"]

_COSTLY = with_trait("costly")
"""Operations that cost more than a mispredicted branch."""


def is_cheap(expr: Expr) -> bool:
    """Whether the expression may be computed where it is not needed."""
    return not any(isinstance(e, Op) and e.op in _COSTLY for e in subexpressions(expr))


def front(block: Block, hint: str, at: Mapping[str, Expr]) -> tuple[Expr, dict[str, Expr]]:
    """The least of the coordinates, and who is there; of one operand nobody has to ask."""
    if len(at) == 1:
        return block.let(hint, next(iter(at.values()))), {}
    if len(at) == 2:
        (x, a), (y, b) = at.items()
        c = block.let(hint, op("min", a, b))
        return c, {x: block.let(f"in{x}", op("le", a, b)), y: block.let(f"in{y}", op("le", b, a))}
    c = next(iter(at.values()))
    for other in list(at.values())[1:]:
        c = op("min", c, other)
    c = block.let(hint, c)
    return c, {n: block.let(f"in{n}", op("eq", x, c)) for n, x in at.items()}


def replaced(body: Expr, values: Mapping[str, Expr]) -> Expr:
    """The body with values for its variables, of as many lanes as these have."""
    if all(v.type.lanes == 1 for v in values.values()):
        return walk(body, lambda e: values.get(e.name) if isinstance(e, Var) else None)
    match body:
        case Var(name, _):
            return values.get(name, body)
        case Op(name, args, _):
            return op(name, *(replaced(a, values) for a in args))
        case Cast(arg, type):
            inner = replaced(arg, values)
            return cast(inner, type.with_lanes(inner.type.lanes))
    return body


def value_of(
    block: Block,
    regions: Regions,
    point: Point,
    base: frozenset[str],
    values: Mapping[str, Expr],
    here: Mapping[str, Expr],
) -> Expr:
    """What is computed at the coordinate: one expression for all cases, where the fill values put in for absent
    operands give that, else a choice among the cases' expressions."""
    bodies = [(case, regions.body(base | frozenset(case))) for case in point.cases]
    filled = not any(is_missing(regions.fills[n]) for n in here)
    if filled and all(body == regions.plain(base | frozenset(case)) for case, body in bodies):
        chosen = {
            n: op("select", here[n], v, replaced(cast(regions.fills[n], v.type), values)) if n in here else v
            for n, v in values.items()
        }
        named = {n: block.let(f"x{n}", v) for n, v in chosen.items()}
        return replaced(regions.plain(base | frozenset(point.walked)), named)
    result: Expr | None = None
    for case, body in reversed(bodies):
        assert body is not None
        computed = block.let("x", replaced(body, values))
        test = _all(case, here)
        result = computed if result is None or test is None else op("select", test, computed, result)
    assert result is not None
    return result


def kept(point: Point, here: Mapping[str, Expr], counted: bool = False) -> Expr | None:
    """Whether the coordinate is that of a case; None: always. Where coordinates are `counted` nobody may be there."""
    names = point.walked
    if len(point.cases) == 2 ** len(names) - (not counted):
        return None
    cases = {frozenset(case) for case in point.cases}
    upward = all(case | {name} in cases for case in cases for name in names)
    keep: Expr | None = None
    for case in point.cases:
        if upward and any(other < frozenset(case) for other in cases):
            continue
        test = _all(case, here)
        for name in names:
            if name not in case and not upward:
                test = both(test, op("not", here[name]))
        test = const(True, "bool") if test is None else test
        keep = test if keep is None else op("or", keep, test)
    return keep


def just(chosen: Case, names: Sequence[str], here: Mapping[str, Expr]) -> Expr | None:
    """The condition that those of `chosen` are here, and no other; None where nobody has to be asked."""
    result: Expr | None = None
    for name in names:
        if name in here:
            result = both(result, here[name] if name in chosen else op("not", here[name]))
    return result


def _all(case: Case, here: Mapping[str, Expr]) -> Expr | None:
    """Whether those of a case are here; None: nobody has to be."""
    test: Expr | None = None
    for name in case:
        test = both(test, here[name])
    return test

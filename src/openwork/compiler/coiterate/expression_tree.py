"""An expression and fill values -> a tree of operations, each with the sets of present parts that compute something."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations

from ...classes import frozen
from ...ir.loop import Cast, Const, Expr, Op, Var
from ...ir.ops import cast
from ..fill import Fill, Regions, partial

__all__ = ["Node", "names_of", "required_operands", "node_of", "storable_sets"]


@frozen
class Node:
    """An operation: `local` over c0, c1, ..., the parts of `expr`; its fill value, where they are absent (None: never);
    and the sets of parts, by number, for which there is something to compute."""

    expr: Expr
    local: Expr
    parts: tuple[Node, ...] = ()
    fill: Const | None = None
    cases: tuple[frozenset[int], ...] = ()
    name: str | None = None


def node_of(e: Expr, fills: Mapping[str, Fill], annihilate: bool) -> Node:
    """The tree of an expression over operands with these fill values, of which none is missing."""
    if isinstance(e, Var):
        fill = fills.get(e.name)
        return Node(e, e, (), None if fill is None else _as_const(fill, e), (), e.name)
    if not isinstance(e, Op | Cast):
        return Node(e, e)
    args = e.args if isinstance(e, Op) else (e.arg,)
    parts = tuple(node_of(a, fills, annihilate) for a in args)
    named = tuple(a if isinstance(a, Const) else Var(f"c{k}", a.type) for k, a in enumerate(args))
    local: Expr = Op(e.op, named, e.type) if isinstance(e, Op) else Cast(named[0], e.type)
    part_fills = {f"c{k}": p.fill for k, p in enumerate(parts) if p.fill is not None}
    absent_value = partial(local, part_fills, annihilate)
    if not part_fills or not isinstance(absent_value, Const):
        return Node(e, local, parts)
    regions = Regions(local, part_fills, absent_value, annihilate)
    absent = [k for k, p in enumerate(parts) if p.fill is not None]
    sets = [frozenset(s) for n in range(len(absent) + 1) for s in combinations(absent, n)]
    cases = tuple(s for s in sets if regions.body(f"c{k}" for k in s) is not None)
    return Node(e, local, parts, absent_value, cases)


def _as_const(fill: Fill, e: Expr) -> Const:
    constant = cast(fill, e.type)
    assert isinstance(constant, Const)
    return constant


def required_operands(node: Node, walked: Collection[str], present: Collection[str]) -> frozenset[str] | None:
    """The walked operands each of which the node requires, being its fill value without; None where it always is that.

    present: the operands that may be there, those that are walked and those that are there already.
    """
    if node.name is not None:
        return (frozenset((node.name,)) if node.name in walked else frozenset()) if node.name in present else None
    if node.fill is None:
        return frozenset()
    part_needs = [None if p.fill is None else required_operands(p, walked, present) for p in node.parts]
    result: frozenset[str] | None = None
    for case in node.cases:
        needed = [part_needs[k] for k in case]
        if None not in needed:
            union = frozenset[str]().union(*(n for n in needed if n is not None))
            result = union if result is None else result & union
    return result


def storable_sets(regions: Regions) -> tuple[frozenset[str], ...]:
    """The sets of operands for which a kernel may store an element, or the children of a position.

    A superset of `regions.sets`: predicated code decides operation by operation, without relations between operands,
    and so stores `A != A` wherever A is present; above the last level an operand may still turn out to be absent.
    Where elements may be missing, or fill values are passed, no code is predicated.
    """
    if regions.masked or regions.passed:
        return regions.sets
    root = node_of(regions.expr, regions.fills, regions.annihilate)
    names = regions.names
    subsets = (frozenset(s) for n in range(len(names) + 1) for s in combinations(names, n))
    return tuple(s for s in subsets if regions.body(s) is not None or _may_differ(root, s))


def _may_differ(node: Node, present: Collection[str]) -> bool:
    """Whether the operations, decided one by one, can give something other than the node's fill value."""
    if node.fill is None:
        return True
    if node.name is not None:
        return node.name in present
    may = [k for k, p in enumerate(node.parts) if p.fill is not None and _may_differ(p, present)]
    return any(case.issubset(may) for case in node.cases)


def names_of(node: Node) -> frozenset[str]:
    """The operands of a node."""
    if node.name is not None:
        return frozenset((node.name,))
    return frozenset[str]().union(*map(names_of, node.parts))

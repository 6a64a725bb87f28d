"""A level with one much shorter operand -> a loop over that operand's elements that gallops in the others.

    A * B, B of few elements           j : walked, walked                while B, gallop A: {A, B}
        while qB < eB:
            c = B_crd1[qB]
            qA = gallop to c
            if qA < eA and A_crd1[qA] == c: ...

Of a full level of the short operand only the coordinates with elements below are visited: the pos of its stored level
gives the next one, by a galloping search too. Where the result has a pos for every coordinate, those between are
filled at once::

    while q < B_pos1[upper]:                                i : dense, dense
        c = first with B_pos1[c + 1] > q
        out_pos1[done + 1 .. c] = what was written before
        ...
        q, done = B_pos1[c + 1], c + 1
    out_pos1[done + 1 .. upper] = what was written before
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.loop import Expr, Var
from ...ir.ops import const, op
from ..build import Block
from ..level_functions import position_at
from .cursor import Cursor, Walker
from .merge_nest import Cursors, MergeLevel, MergeNest
from .output import Place
from .search import gallop
from .workspace import Row

__all__ = ["gallop_level", "gallop_operand"]

Visit = Callable[[Block, Expr, dict[str, Walker], dict[str, Var | None]], None]
"""Takes a coordinate of the short operand, and its walker and segment, if it is walked."""


def gallop_operand(nest: MergeNest, level: MergeLevel, cursors: Cursors) -> str | None:
    """The operand to walk alone on a level: nothing is computed without it, and all others can be searched."""
    name = nest.merge.drivers[level.at] if nest.merge.drivers else None
    if name is None or name not in nest.regions.fills or not nest.regions.needs(name):
        return None
    if any(not nest.sources[n].seeks(cursors[n]) for n in level.walked) or isinstance(nest.sources.get(name), Row):
        return None
    if name in level.located:
        return name if nest.sources[name].stored_level(cursors[name]) is not None else None
    single = len(level.walked) == 1 and not nest.out.visits_all(level.at) and not level.lattice.every
    return name if name in level.walked and not single else None


def gallop_level(nest: MergeNest, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> None:
    """Emits the loop over the coordinates of the level's short operand."""
    driver, out, at = level.driver, nest.out, level.at
    assert driver is not None
    walkers = nest.walkers(block, level, cursors)
    first, last = nest.bounds(at)
    done = block.mut("done", first) if out.visits_all(at) else None

    def visit(inner: Block, c: Expr, standing: dict[str, Walker], ends: dict[str, Var | None]) -> None:
        presence: dict[str, Expr] = {}
        for name in walkers:
            if name != driver:
                standing[name] = walkers[name]
                presence[name], ends[name] = _search(nest, inner, name, cursors[name], walkers[name], c)
        if done is None:
            nest.cases(inner, level, cursors, standing, ends, presence, c, place, level.lattice.cases)
            return
        out.close_between(inner, at, done, c, place)
        parent = inner.let("r", out.located(at, c, place))
        close_edges = lambda b: out.close_all(b, at, parent)  # noqa: E731
        nest.cases(inner, level, cursors, standing, ends, presence, c, place, level.lattice.cases, close_edges)
        inner.assign(done, op("add", c, const(1)))

    if driver in walkers:
        _for_each_element(nest, block, driver, cursors[driver], walkers[driver], visit, nest.hint(at))
    else:
        _for_each_nonempty_parent(nest, block, at, driver, cursors[driver], visit)
    if done is not None:
        out.close_between(block, at, done, last, place)


def _search(
    nest: MergeNest, block: Block, name: str, cursor: Cursor, walker: Walker, c: Expr
) -> tuple[Expr, Var | None]:
    """Whether an operand has the coordinate, and the end of its segment there where the level is not unique."""
    source = nest.sources[name]
    gallop(block, walker.at, walker.end, lambda q: source.before(cursor, q, c))
    matches = op("eq", source.coordinate(cursor, walker.at), c)
    present = block.let(f"in{name}", op("and", op("lt", walker.at, walker.end), matches))
    if source.unique(cursor):
        return present, None
    end = block.mut(f"s{name}", walker.at)
    next_coordinate = op("add", c, const(1))
    gallop(block, end, walker.end, lambda q: source.before(cursor, q, next_coordinate))
    return present, end


def _for_each_element(
    nest: MergeNest, block: Block, driver: str, cursor: Cursor, walker: Walker, visit: Visit, hint: str
) -> None:
    """The loop over the elements of a walked level."""
    source = nest.sources[driver]

    def body(inner: Block) -> None:
        c = inner.let(hint, source.coordinate(cursor, walker.at))
        end = source.segment(inner, cursor, walker, c)
        visit(inner, c, {driver: walker}, {driver: end})
        inner.assign(walker.at, op("add", walker.at, const(1)) if end is None else end)

    block.run("while TEST:\n    BODY", TEST=op("lt", walker.at, walker.end), BODY=body)


def _for_each_nonempty_parent(
    nest: MergeNest, block: Block, at: int, driver: str, cursor: Cursor, visit: Visit
) -> None:
    """The loop over those coordinates of a full level that have elements below."""
    source, out = nest.sources[driver], nest.out
    first, last = nest.bounds(at)

    def position(c: Expr) -> Expr:
        return position_at(cursor.position, c, out.low(at), out.size(at))

    q = block.mut(f"q{driver}", source.edge(cursor, position(first)))
    end = block.let(f"e{driver}", source.edge(cursor, position(last)))
    c = block.mut(nest.hint(at), first)

    def body(inner: Block) -> None:
        gallop(inner, c, last, lambda x: source.passed(cursor, position(x), q))
        visit(inner, c, {}, {})
        inner.assign(c, op("add", c, const(1)))
        inner.assign(q, source.edge(cursor, position(c)))

    block.run("while TEST:\n    BODY", TEST=op("lt", q, end), BODY=body)

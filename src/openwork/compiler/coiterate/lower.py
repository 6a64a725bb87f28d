"""A merge -> one loop nest: for every level its lattice, for every lattice point a loop.

    for i in range(lower, upper):                    i : dense, dense        every coordinate
        while qA < eA and qB < eB:                   j : walked, walked      while A, B: {A, B} {A} {B}
            c = min(A_crd1[qA], B_crd1[qB]) ...
        for q in range(qA, eA): ...                                          while A: {A}
        for q in range(qB, eB): ...                                          while B: {B}

The innermost level of a union has no branches but the loop's own: absent operands have their fill value, and the
result's position advances where an element is stored; where blocks can be read, positions are counted in vectors
(`union_simd`). Intersections compare blocks of coordinates (`intersect_simd`); operands without which nothing is
computed are intersected first (`subexpression_order`). A far shorter operand is walked alone, and the others are
searched (`gallop`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce

from ...ir.loop import Expr, Kernel, Var
from ...ir.ops import const, op
from ..build import Block
from ..fill import guarded
from ..lattice import Case, Point, gallop_lattice, lattice
from .bitmap import is_bitmap_level, store_bitmap_element
from .branch_free import is_case, least_coordinate, value_of
from .cursor import Cursor, Walker, truth_as_integer
from .gallop import gallop_level, gallop_operand
from .intersect_simd import Walk, intersect_in_vectors
from .merge_nest import Cursors, MergeLevel, MergeNest
from .output import Place
from .subexpression_order import walk_subexpressions
from .union_simd import union_in_vectors
from .value_guard import guarded_by_values

__all__ = ["Lowering"]


class Lowering(MergeNest):
    """A merge -> its kernel."""

    def lower(self) -> Kernel:
        top = self.builder.top

        def chunk(block: Block, t: Var) -> None:
            self.range = self.out.begin(block, t)
            self.descend(block, 0, {name: Cursor() for name in self.sources}, Place(const(0)))
            if self.out.chains and self.out.chains[0].first == 0:
                self.out.close(block, self.out.chains[0], const(0))
            self.out.finish(block, t)

        top.loop("t", self.builder.top.expr("lo"), self.builder.top.expr("hi"), chunk)
        params = (*self.params, *self.builder.params)
        notes = (f"{self.merge.target.format}",)
        return Kernel(self.builder.name, params, tuple(self.builder.body), ranged=True, notes=notes)

    # -- one level -------------------------------------------------------------------------------------------------

    def descend(self, block: Block, at: int, cursors: Cursors, place: Place) -> None:
        """The nest from level `at` on, for the present operands, those of `cursors`."""
        self.enter_broadcast(block, at, cursors, lambda b, entered: self.emit_level(b, at, entered, place))

    def emit_level(self, block: Block, at: int, cursors: Cursors, place: Place) -> None:
        if at == len(self.order):
            body = self.regions.body(cursors)
            if body is not None:
                self.out.write(block, place, self.substituted(guarded(body)[0], cursors))
            return
        level = self.level(at, cursors)
        if level.driver is not None:
            gallop_level(self, block, level, cursors, place)
        elif self.out.visits_all(at) or level.lattice.every:
            self.emit_counted(block, level, cursors, place)
        elif not walk_subexpressions(self, block, level, cursors, place):
            self.emit_merge(block, level, cursors, place)

    def level(self, at: int, cursors: Cursors) -> MergeLevel:
        """The operands that take part in level `at`, and its lattice."""
        walked, probed, located = self.operands_at(at, cursors)
        walked_or_probed = {*walked, *probed}
        base = frozenset(cursors) - walked_or_probed
        droppable = frozenset(
            name for name, cursor in cursors.items() if self.sources[name].may_lack(cursor, name in walked_or_probed)
        )
        merge_lattice = lattice(
            walked,
            lambda case: self.regions.computes(base | frozenset(case), droppable),
            lambda name, case: self.regions.matters(name, base | frozenset(case), droppable | frozenset(case)),
            probed,
        )
        driver = gallop_operand(self, level := MergeLevel(at, walked, probed, located, merge_lattice), cursors)
        return replace(level, driver=driver, lattice=gallop_lattice(merge_lattice, driver, walked)) if driver else level

    # -- counted loops ---------------------------------------------------------------------------------------------

    def emit_counted(self, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> None:
        """The counted loop over every coordinate of the level."""
        out, at = self.out, level.at
        walkers = self.walkers(block, level, cursors)
        first, last = self.bounds(at)
        if is_bitmap_level(self, level, cursors):
            block.loop(self.hint(at), first, last, lambda b, c: store_bitmap_element(self, b, level, cursors, c, place))
            return

        def body(inner: Block, c: Var) -> None:
            presence: dict[str, Expr] = {}
            ends = {}
            for name, walker in walkers.items():
                cursor = cursors[name]
                in_range = op("lt", walker.at, walker.end)
                matches = op("eq", self.sources[name].coordinate(cursor, walker.at), c)
                presence[name] = inner.let(f"in{name}", op("and", in_range, matches))
                ends[name] = self.sources[name].segment(inner, cursor, walker, c)
            visits_all = out.visits_all(at)
            parent = inner.let("r", out.located(at, c, place)) if visits_all else const(0)
            close_edges = (lambda b: out.close_all(b, at, parent)) if visits_all else None
            self.cases(inner, level, cursors, walkers, ends, presence, c, place, level.lattice.cases, close_edges)
            for name, walker in walkers.items():
                end = ends[name]
                inner.assign(walker.at, op("add", walker.at, truth_as_integer(presence[name])) if end is None else end)

        block.loop(self.hint(at), first, last, body)

    def cases(
        self,
        block: Block,
        level: MergeLevel,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        ends: Mapping[str, Var | None],
        presence: dict[str, Expr],
        c: Expr,
        place: Place,
        cases: tuple[Case, ...],
        otherwise: Callable[[Block], None] | None = None,
    ) -> None:
        """Branch to the case at coordinate c. `presence`: conditions of operands; those without one are present."""
        entered = dict(cursors)
        for name in (*level.located, *level.probed):
            size, low = self.out.size(level.at), self.out.low(level.at)
            entered[name], present = self.sources[name].locate(block, cursors[name], c, size, low)
            if present is not None:
                presence[name] = block.let(f"in{name}", present)
        for name, walker in walkers.items():
            entered[name] = self.sources[name].walked(cursors[name], walker, ends.get(name))
        walked_or_probed = {*level.walked, *level.probed}

        def case(inner: Block, chosen: Case) -> None:
            below = {n: entered[n] for n in entered if n in chosen or n not in walked_or_probed}
            guarded_by_values(self, inner, level.at, below, lambda b: self.entered(b, level.at, below, c, place))

        self.branch(block, cases, [*walkers, *level.probed], presence, case, otherwise)

    def entered(self, block: Block, at: int, cursors: Cursors, c: Expr, place: Place) -> None:
        """The nest below coordinate c of level `at`, which the cursors have entered."""

        def deeper(b: Block, p: Place) -> None:
            self.descend(b, at + 1, cursors, p)
            chain = self.out.chain_below(at)
            if chain is not None and self.out.visits_all(at) and chain.first == at + 1:
                self.out.close(b, chain, p.parent)

        self.out.enter(block, at, c, self.at_driver_element(place, cursors), deeper)

    def at_driver_element(self, place: Place, cursors: Cursors) -> Place:
        """The place, with the position in the operand whose structure the result has, once that is at its leaf."""
        along = self.merge.reduction.along if self.merge.reduction is not None else None
        if along is None or along not in cursors or not self.sources[along].at_leaf(cursors[along]):
            return place
        return replace(place, leaf=cursors[along].position)

    # -- merges ----------------------------------------------------------------------------------------------------

    def emit_merge(self, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> None:
        """The loops of the lattice's points, one after the other."""
        if not level.lattice.points or union_in_vectors(self, block, level, cursors, place):
            return
        used = tuple(n for n in level.walked if any(n in point.walked for point in level.lattice.points))
        walkers = self.walkers(block, replace(level, walked=used), cursors)
        for point in level.lattice.points:
            self.point(block, level, point, cursors, walkers, place)

    def point(
        self,
        block: Block,
        level: MergeLevel,
        point: Point,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        place: Place,
    ) -> None:
        point_walkers = {n: walkers[n] for n in point.walked}
        segments = any(not self.sources[n].unique(cursors[n]) for n in point_walkers)
        has_followers = any(self.sources[n].has_followers for n in point_walkers)
        if len(point_walkers) == 1 and not segments and not has_followers:
            self.remainder(block, level, point, cursors, point_walkers, place)
            return

        if len(point_walkers) == 2 and point.cases == (point.walked,) and not segments and not has_followers:
            self.intersection(block, level, point, cursors, point_walkers, place)
            return

        def body(inner: Block) -> None:
            coordinates = {
                n: inner.let(f"c{n}", self.sources[n].coordinate(cursors[n], w.at)) for n, w in point_walkers.items()
            }
            c, presence = least_coordinate(inner, self.hint(level.at), coordinates)
            ends = {n: self.sources[n].segment(inner, cursors[n], w, c) for n, w in point_walkers.items()}
            steps = dict(presence)
            if self.is_branch_free(level, point, cursors):
                self.branch_free(inner, level, point, cursors, point_walkers, presence, c, place)
            else:
                self.cases(inner, level, cursors, point_walkers, ends, presence, c, place, point.cases)
            for n, walker in point_walkers.items():
                end = ends[n]
                next_position = op("add", walker.at, truth_as_integer(steps[n]) if n in steps else const(1))
                inner.assign(walker.at, next_position if end is None else end)

        test = reduce(lambda a, b: op("and", a, b), [op("lt", w.at, w.end) for w in point_walkers.values()])
        block.run("while TEST:\n    BODY", TEST=test, BODY=body)

    def intersection(
        self,
        block: Block,
        level: MergeLevel,
        point: Point,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        place: Place,
    ) -> None:
        """A point whose only case is that both of two operands are present."""
        x, y = (Walk(self.sources[n], cursors[n], walkers[n]) for n in point.walked)

        def emit_cases(inner: Block, c: Expr, p: Var, q: Var) -> None:
            at = {n: Walker(v, walkers[n].end) for n, v in zip(point.walked, (p, q), strict=True)}
            self.cases(inner, level, cursors, at, {}, {}, c, place, point.cases)

        intersect_in_vectors(block, x, y, emit_cases)

    def remainder(
        self,
        block: Block,
        level: MergeLevel,
        point: Point,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        place: Place,
    ) -> None:
        """A point of one operand: the loop over the elements that remain of it."""
        ((name, walker),) = walkers.items()

        def body(inner: Block, q: Var) -> None:
            c = inner.let(self.hint(level.at), self.sources[name].coordinate(cursors[name], q))
            self.cases(inner, level, cursors, {name: Walker(q, walker.end)}, {}, {}, c, place, point.cases)

        block.loop(f"p{name}", walker.at, walker.end, body, hints=("novector",))

    # -- without branches ------------------------------------------------------------------------------------------

    def branch_free(
        self,
        block: Block,
        level: MergeLevel,
        point: Point,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        presence: Mapping[str, Expr],
        c: Expr,
        place: Place,
    ) -> None:
        """Store every coordinate's value, and move on where it is that of a case."""
        values: dict[str, Expr] = {}
        for name, cursor in cursors.items():
            source = self.sources[name]
            if name in level.walked and name not in walkers:
                continue
            position = walkers[name].at if name in walkers else cursor.position
            if name in level.located:
                size, low = self.out.size(level.at), self.out.low(level.at)
                position = source.locate(block, cursor, c, size, low)[0].position
            values[name] = block.let(f"v{name}", source.value(position, cursor.batch))
        base = frozenset(cursors) - frozenset(level.walked)
        value = value_of(block, self.regions, point, base, values, presence)
        self.out.store_if(block, level.at, c, place, value, is_case(point, presence))

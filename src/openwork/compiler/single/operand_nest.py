"""A statement with one sparse operand and its schedule -> the parts of its loop nest, which `lower` puts together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from itertools import product
from math import prod

from ...format.level import Iterate
from ...ir.index import Assignment
from ...ir.loop import Const, Expr, Prefetch
from ...ir.ops import const, op
from ...ir.types import itemsize
from ..build import Block, Builder
from ..fold import fold
from ..level_iterator import when_all
from ..operand import Operand, ParamRef
from ..schedule import Schedule, Tile
from .accumulators import Accumulators, Key, Terms
from .factors import factors_of
from .jam_rows import jam_rows
from .nest import Body, Bounds, Element, Nest, Walk

__all__ = ["OperandNest"]


class OperandNest:
    """The state of the lowering, and its loops: tiles, rows, levels, blocks, segments, accumulators, leaves."""

    def __init__(self, stmt: Assignment, operands: dict[str, Operand], plan: Schedule, compute: str) -> None:
        self.stmt, self.plan = stmt, plan
        access = next(a for a in stmt.accesses if a.tensor == plan.driver)
        driver = operands[plan.driver]
        assert driver.format is not None
        self.builder = Builder("drive", ranged=driver.format.nlevels > 0)
        self.params = self.builder.params
        sliced = None if plan.sliced is None else access.indices.index(plan.sliced)
        self.nest = Nest(self.builder, plan.driver, driver, access.indices, sliced)
        self.fmt = self.nest.format
        self.shared = operands[stmt.lhs.tensor].format is not None
        self.bottom = min(plan.unrolled, self.fmt.nlevels)
        self.terms = Terms(stmt, operands, plan, compute, self.nest, access)
        self.factors = factors_of(stmt, access, self.fmt, plan.unrolled, plan.vector, compute)
        self.free_vector = plan.vector if plan.vector in stmt.lhs.indices else None
        self.stack: list[Accumulators] = []
        self.pieces: tuple[Tile, ...] = ()
        self.base: Expr = const(0)

    def outer(self, block: Block, walk: Walk, rest: tuple[str, ...]) -> None:
        """Loops over the dense indices that stay outside the walk."""
        if not rest:
            (self.panels if self.plan.panel else self.rows)(block, walk)
            return

        def body(inner: Block, var: Expr) -> None:
            self.outer(inner, replace(walk, dense=(*walk.dense, (rest[0], var))), rest[1:])

        block.loop(rest[0], const(0), self.params.scalar(ParamRef("extent", rest[0])), body)

    def rows(self, block: Block, walk: Walk) -> None:
        """The driver's levels, several of the outermost rows at a time."""
        below = block.nested()
        self.descend(below, walk)
        rows = self.plan.rows
        block.stmts += jam_rows(self.builder, below.stmts, rows) if rows > 1 else below.stmts

    @abstractmethod
    def panels(self, block: Block, walk: Walk) -> None:
        """The nest over panels of the outermost rows."""

    @abstractmethod
    def descend(self, block: Block, walk: Walk) -> None:
        """The nest below `walk`."""

    # -- levels ----------------------------------------------------------------------------------------------------

    def positions(
        self, block: Block, walk: Walk, bounds: Bounds, element: Element, lanes: int, hints: tuple[str, ...] = ()
    ) -> None:
        """The loop over positions of the level below `walk`, in lanes or with prefetches of what comes later."""
        if lanes > 1:
            self.nest.in_lanes(block, walk, bounds, lanes, element, self.plan.masked)
            return

        def body(inner: Block, q: Expr) -> None:
            below = inner.nested()
            element(below, walk, q)
            self.prefetch(inner, walk, q)
            inner.stmts += below.stmts

        block.loop(self.nest.stem("q", walk.depth), *bounds, body, hints)

    def split_depths(self) -> set[int]:
        """Depths below the output's where a factor is bound, so that a partial sum is worth keeping."""
        return {f.depth for f in self.factors if self.plan.output_depth < f.depth < self.bottom}

    def blocks(self, block: Block, walk: Walk) -> None:
        """The trailing levels of constant extent, written out; a ragged edge gets a second, guarded copy."""
        extents = [int(self.nest.levels[k].constant_extent or 0) for k in range(walk.depth, self.fmt.nlevels)]
        lanes = extents.pop() if self.plan.block_vector else 1
        base = block.let("q", fold("mul", walk.position, const(prod(extents) * lanes)))

        def copies(inner: Block, guarded: bool) -> None:
            for number, point in enumerate(product(*map(range, extents))):
                coordinates = [const(c) for c in point] + ([const(0)] if lanes > 1 else [])
                element = replace(
                    walk,
                    depth=self.fmt.nlevels,
                    position=fold("add", base, const(number * lanes)),
                    coordinates=(*walk.coordinates, *coordinates),
                    lanes=lanes,
                )
                guards = self.block_guards(element) if guarded else []
                when_all(inner, guards, lambda b, element=element: self.leaf(b, element))  # type: ignore[misc]

        whole = self.whole_block(walk, extents) if self.nest.ragged else []
        when_all(block, whole, lambda b: copies(b, guarded=False), lambda b: copies(b, guarded=True))

    def whole_block(self, walk: Walk, extents: list[int]) -> list[Expr]:
        """Conditions under which every element of a block lies in the shape: its extreme corners do."""
        conditions: list[Expr] = []
        for d, form in enumerate(self.nest.sums):
            slopes = dict(form)
            if not any(k >= self.plan.unrolled for k in slopes):
                continue
            for upper in (True, False):
                at = [
                    const(n - 1 if (slopes.get(self.plan.unrolled + k, 1) > 0) == upper else 0)
                    for k, n in enumerate(extents)
                ]
                corner = replace(walk, coordinates=(*walk.coordinates, *at))
                conditions += [c for c in self.nest.within_extent(d, corner) if c.op == ("lt" if upper else "ge")]
        return conditions

    def block_guards(self, walk: Walk) -> list[Expr]:
        return [
            c
            for d, form in enumerate(self.nest.sums)
            if any(k >= self.plan.unrolled for k, _ in form)
            for c in self.nest.within_extent(d, walk)
        ]

    def segments(self, block: Block, walk: Walk) -> None:
        """A nonunique level: one pass per run of equal coordinates, so that an output is stored once per run."""
        lo, hi = self.nest.bounds(walk)
        end = block.let("end", hi)
        at = block.mut("at", lo)

        def crd(q: Expr) -> Expr:
            return self.nest.coordinate(walk, q)

        def segment(inner: Block) -> None:
            c = inner.let(self.nest.stem("c", walk.depth), crd(at))
            run = inner.mut("run", op("add", at, const(1)))
            more = inner.mut("more", op("lt", run, end))

            def step(b: Block) -> None:
                b.assign(run, op("add", run, const(1)))
                b.assign(more, op("lt", run, end))

            def stop(b: Block) -> None:
                b.assign(more, const(False, "bool"))

            inner.loop_while(more, lambda b: b.when(op("eq", crd(run), c), step, stop))
            entered = replace(walk, depth=walk.depth + 1, coordinates=(*walk.coordinates, c))
            loop: Body = lambda b, w: self.segment(b, w, (at, run))  # noqa: E731
            self.tiled(inner, entered, lambda b, w: self.accumulated(b, w, loop))
            inner.assign(at, run)

        block.loop_while(op("lt", at, end), segment)

    def segment(self, block: Block, walk: Walk, bounds: Bounds) -> None:
        """The loop over a segment's positions, which are those of the level below too."""

        def element(inner: Block, point: Walk, q: Expr) -> None:
            self.descend(inner, replace(point, position=q))

        self.positions(block, walk, bounds, element, self.plan.gather)

    # -- tiles and accumulators ------------------------------------------------------------------------------------

    def tiled(self, block: Block, walk: Walk, body: Body) -> None:
        """The body once per register tile of the free vector index; once where there is none."""
        if self.free_vector is None:
            self.pieces, self.base = self.scalar_tile()
            body(block, walk)
            return
        plan = self.plan
        start: Expr = const(0)

        def tile(inner: Block, var: Expr) -> None:
            self.pieces, self.base = plan.main, var
            body(inner, walk)

        if plan.main:
            width = plan.main[-1].offset + plan.main[-1].lanes
            extent = self.params.scalar(ParamRef("extent", self.free_vector))
            rest = plan.rest[-1].offset + plan.rest[-1].lanes if plan.rest else 0
            start = block.let(f"rest_{self.free_vector}", fold("sub", extent, const(rest)))
            block.loop(self.free_vector, const(0), start, tile, step=width)
        if plan.rest:
            self.pieces, self.base = plan.rest, start
            body(block, walk)

    def accumulated(self, block: Block, walk: Walk, loops: Body | None = None) -> None:
        """Registers that take the sum over everything below, then one store each."""
        acc = self.summed(block, walk, loops or self.descend)
        self.stores(block, walk, acc.totals())

    def summed(self, block: Block, walk: Walk, loops: Body) -> Accumulators:
        """The loops below `walk`, and before them the registers that take their sums."""
        acc = Accumulators(walk.depth, self.terms)
        below = block.nested()
        self.stack.append(acc)
        loops(below, walk)
        self.stack.pop()
        acc.declare(block)
        block.stmts += below.stmts
        return acc

    def stores(self, block: Block, walk: Walk, totals: list[tuple[Key, Expr]]) -> None:
        """One store of each sum."""
        outer = [f for f in self.factors if f.depth <= self.plan.output_depth and f.depth < self.bottom]
        for key, total in totals:
            at = self.terms.at_key(walk, key)
            store = block.nested()
            value = self.terms.multiply(store, total, outer, at, key.piece, self.base)
            self.terms.store(store, at, key.piece, self.base, value, self.plan.no_alias and not self.plan.panel)
            when_all(block, self.row_guards(at, key), lambda b, store=store: b.stmts.extend(store.stmts))  # type: ignore[misc]

    def scalar_tile(self) -> tuple[tuple[Tile, ...], Expr]:
        """The tile of a nest without a vector index, one scalar, and where it begins."""
        return (Tile(0, 1),), const(0)

    def row_guards(self, walk: Walk, key: Key) -> list[Expr]:
        """A block's rows past the last row of the shape are never stored."""
        if not self.nest.ragged or not key.coordinates:
            return []
        touched = {k for k, _ in key.coordinates}
        stored = {d for d, index in enumerate(self.nest.indices) if index in self.stmt.lhs.indices}
        return [
            c
            for d, form in enumerate(self.nest.sums)
            if touched & {k for k, _ in form} and stored.intersection(self.nest.dims(d))
            for c in self.nest.within_extent(d, walk)
        ]

    def nested(self, block: Block, walk: Walk) -> None:
        """A partial sum below `walk`, multiplied once by the factors bound here."""
        acc = self.summed(block, walk, self.descend)
        factors = [f for f in self.factors if f.depth == walk.depth]
        for key in acc.keys:
            value = self.terms.multiply(block, acc.total(key), factors, walk, key.piece, self.base)
            self.stack[-1].add(block, key, value)

    def leaf(self, block: Block, walk: Walk) -> None:
        """One stored element: its product goes into a register, or straight to the output."""
        if not self.stack:
            self.tiled(block, walk, self.direct)
            return
        factors = [f for f in self.factors if f.depth >= self.bottom]
        for piece in self.pieces:
            value = self.terms.multiply(block, None, factors, walk, piece, self.base)
            self.stack[-1].add(block, self.terms.key(walk, piece), value, walk.within)

    def direct(self, block: Block, walk: Walk) -> None:
        for piece in self.pieces:
            value = self.terms.multiply(block, None, list(self.factors), walk, piece, self.base)
            self.terms.store(block, walk, piece, self.base, value, self.plan.no_alias)

    # -- prefetch --------------------------------------------------------------------------------------------------

    def prefetch(self, block: Block, walk: Walk, q: Expr) -> None:
        """Prefetches of the rows that the elements some positions ahead will gather."""
        deepest = walk.depth == self.bottom - 1 or (self.plan.run_reduce and walk.depth == self.plan.output_depth)
        level = self.nest.levels[min(walk.depth, self.fmt.nlevels - 1)]
        if not self.plan.prefetch or not deepest or "crd" not in level.format.buffers:
            return
        if level.format.functions.iterate is not Iterate.POSITION or walk.batch is not None:
            return
        last = self.params.scalar(ParamRef("last", self.nest.name, level.index))
        ahead = op("min", op("add", q, const(self.plan.prefetch)), last)
        c = block.let("ahead", self.nest.coordinate(walk, ahead))
        later = replace(walk, depth=walk.depth + 1, coordinates=(*walk.coordinates, c, *_zeros(self.fmt.nlevels)))
        base = self.base if self.stack else const(0)  # without registers the loop over tiles is further in
        for buffer, index, scalar in self.terms.gathered(later, walk.depth, base):
            line = 64 // itemsize(scalar)
            span = self.pieces[-1].offset + self.pieces[-1].lanes if self.free_vector and self.pieces else 1
            block.stmts += [Prefetch(buffer, fold("add", index, const(k))) for k in range(0, span, line)]


def _zeros(n: int) -> tuple[Const, ...]:
    return tuple(const(0) for _ in range(n))

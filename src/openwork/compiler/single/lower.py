"""A statement with one sparse operand, and its schedule -> the kernel: one loop nest that walks this operand's levels.

The nest, outside in: dense indices that are not the vector index; the driver's levels down to where the output
is bound (`output_depth`); the loop over register tiles of the vector index; the driver's remaining levels, which are
pure reduction and add into registers; the store. Blocks (trailing levels of constant extent) are written out, so
that their coordinates are constants: no division or modulo appears anywhere.

A product is factored by depth: a factor is multiplied in at the level where its indices are bound, not below
(distributivity), which gives MTTKRP its nested accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from ...format.level import Iterate
from ...ir.index import Assignment
from ...ir.loop import Assign, Const, Expr, For, If, Kernel, Mut, Prefetch, Stmt, Var, While
from ...ir.ops import const, op
from ...ir.types import I64, Type, itemsize
from ..fold import fold
from ..level_functions import Params, evaluate
from ..nest import Body, Names, Nest, Walk, all_of
from ..operand import Operand, ParamRef
from ..schedule import Schedule, Tile
from .accumulators import Accumulators, Key, Terms
from .factors import factors_of
from .short_rows import lower_short_rows

__all__ = ["Lowered", "lower_single_operand"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel, and for each of its parameters the part of an operand that it stands for."""

    kernel: Kernel
    refs: tuple[ParamRef, ...]


def lower_single_operand(stmt: Assignment, operands: dict[str, Operand], plan: Schedule, compute: str) -> Lowered:
    """Lower `stmt` by the schedule `plan`, computing in the scalar type `compute`."""
    return _SingleOperand(stmt, operands, plan, compute).lower()


class _SingleOperand:
    def __init__(self, stmt: Assignment, operands: dict[str, Operand], plan: Schedule, compute: str) -> None:
        self.stmt, self.plan = stmt, plan
        self.params, self.names = Params(), Names()
        access = next(a for a in stmt.accesses if a.tensor == plan.driver)
        driver = operands[plan.driver]
        assert driver.format is not None
        ranged = driver.format.nlevels > 0
        sliced = None if plan.sliced is None else access.indices.index(plan.sliced)
        self.nest = Nest(plan.driver, driver, access.indices, self.params, self.names, ranged, sliced)
        self.fmt = self.nest.fmt
        self.shared = operands[stmt.lhs.tensor].format is not None
        self.bottom = min(plan.unrolled, self.fmt.nlevels)
        self.terms = Terms(stmt, operands, plan, compute, self.nest, access)
        self.factors = factors_of(stmt, access, self.fmt, plan.unrolled, plan.vector, compute)
        self.free_vector = plan.vector if plan.vector in stmt.lhs.indices else None
        self.stack: list[Accumulators] = []
        self.pieces: tuple[Tile, ...] = ()
        self.base: Expr = const(0)

    def lower(self) -> Lowered:
        body = self.outer(Walk(), self.plan.outer)
        kernel = Kernel(
            name="drive",
            params=self.params.params,
            body=tuple(body),
            ranged=self.nest.is_ranged,
            reassociate=self.stmt.reduction in ("add", "mul"),
            notes=(str(self.stmt), f"{self.plan.driver} = {self.fmt}"),
        )
        return Lowered(kernel, self.params.refs)

    def outer(self, walk: Walk, rest: tuple[str, ...]) -> list[Stmt]:
        """Loops over the dense indices that stay outside the walk."""
        if not rest:
            return self.descend(walk)
        var = Var(self.names.fresh(rest[0]), I64)
        inner = self.outer(replace(walk, dense=(*walk.dense, (rest[0], var))), rest[1:])
        return [For(var.name, const(0), self.params.scalar(ParamRef("extent", rest[0])), tuple(inner))]

    # -- levels ----------------------------------------------------------------------------------------------------

    def descend(self, walk: Walk) -> list[Stmt]:
        """The nest below `walk`: accumulators where their place is, then loops, blocks and the leaf."""
        if (
            not self.stack
            and not self.shared
            and walk.depth == self.plan.output_depth
            and walk.depth < self.fmt.nlevels
        ):
            return self.tiled(walk, self.accumulated)
        if self.stack and walk.depth in self.split_depths() and self.stack[-1].depth < walk.depth:
            return self.nested(walk)
        if walk.depth == self.fmt.nlevels:
            return self.leaf(walk)
        if walk.depth == self.plan.unrolled:
            return self.blocks(walk)
        if self.plan.run_reduce and walk.depth == self.plan.output_depth - 1:
            return self.segments(walk)
        if self.plan.short and walk.depth == self.fmt.nlevels - 2:
            return lower_short_rows(self, walk)
        if self.plan.gather > 1 and walk.depth == self.fmt.nlevels - 1 and walk.lanes == 1:
            return self.nest.loop(walk, self.descend, lanes=self.plan.gather if not self.plan.run_reduce else 1)
        return self.nest.loop(walk, self.descend, lambda q: self.prefetch(walk, q))

    def split_depths(self) -> set[int]:
        """Depths below the output's where a factor is bound, so that a partial sum is worth keeping."""
        return {f.depth for f in self.factors if self.plan.output_depth < f.depth < self.bottom}

    def blocks(self, walk: Walk) -> list[Stmt]:
        """The trailing levels of constant extent, written out; a ragged edge gets a second, guarded copy."""
        extents = [int(self.nest.levels[k].constant_extent or 0) for k in range(walk.depth, self.fmt.nlevels)]
        lanes = extents.pop() if self.plan.block_vector else 1
        stride = lanes
        for n in extents:
            stride *= n
        body: list[Stmt] = []
        base = self.names.let(body, "q", fold("mul", walk.position, const(stride)))

        def copies(guarded: bool) -> list[Stmt]:
            out: list[Stmt] = []
            for number, point in enumerate(product(*map(range, extents))):
                coordinates = [const(c) for c in point] + ([const(0)] if lanes > 1 else [])
                inner = replace(
                    walk,
                    depth=self.fmt.nlevels,
                    position=fold("add", base, const(number * lanes)),
                    coordinates=(*walk.coordinates, *coordinates),
                    lanes=lanes,
                )
                stmts = self.leaf(inner)
                guards = self.block_guards(inner) if guarded else []
                out += [If(all_of(guards), tuple(stmts))] if guards else stmts
            return out

        if not self.nest.operand.ragged:
            return [*body, *copies(guarded=False)]
        full = self.whole_block(walk, extents)
        if not full:
            return [*body, *copies(guarded=False)]
        return [*body, If(all_of(full), tuple(copies(guarded=False)), tuple(copies(guarded=True)))]

    def whole_block(self, walk: Walk, extents: list[int]) -> list[Expr]:
        """Conditions under which every element of a block lies in the shape: its extreme corners do."""
        conditions: list[Expr] = []
        for d, form in enumerate(self.fmt.inverse):
            slopes = dict(form)
            if not any(k >= self.plan.unrolled for k in slopes):
                continue
            for upper in (True, False):
                at = [
                    const(n - 1 if (slopes.get(self.plan.unrolled + k, 1) > 0) == upper else 0)
                    for k, n in enumerate(extents)
                ]
                corner = replace(walk, coordinates=(*walk.coordinates, *at))
                conditions += [c for c in self.nest.within_extent(d, form, corner) if c.op == ("lt" if upper else "ge")]
        return conditions

    def block_guards(self, walk: Walk) -> list[Expr]:
        return [
            c
            for d, form in enumerate(self.fmt.inverse)
            if any(k >= self.plan.unrolled for k, _ in form)
            for c in self.nest.within_extent(d, form, walk)
        ]

    def segments(self, walk: Walk) -> list[Stmt]:
        """A nonunique level: one pass per run of equal coordinates, so that an output is stored once per run."""
        level = self.nest.levels[walk.depth]
        env = self.nest.environment(walk, level)
        lo, hi = self.nest.limits(walk, level, env)
        body: list[Stmt] = []
        end = self.names.let(body, "end", hi)
        at, run, more = (Var(self.names.fresh(n), t) for n, t in (("at", I64), ("run", I64), ("more", Type("bool"))))

        def crd(q: Expr) -> Expr:
            return evaluate(level.format.functions.coordinate, level, {**env, "q": q})

        step: list[Stmt] = []
        c = self.names.let(step, self.nest.hint(walk.depth), crd(at))
        after = op("add", run, const(1))
        step += [
            Mut(run.name, op("add", at, const(1))),
            Mut(more.name, op("lt", run, end)),
            While(
                more,
                (
                    If(
                        op("eq", crd(run), c),
                        (Assign(run.name, after), Assign(more.name, op("lt", run, end))),
                        (Assign(more.name, const(False, "bool")),),
                    ),
                ),
            ),
        ]
        entered = replace(walk, depth=walk.depth + 1, coordinates=(*walk.coordinates, c))

        def run_loop(inner: Walk) -> list[Stmt]:
            if self.plan.gather > 1:
                return self.nest.in_lanes(
                    inner, at, run, self.plan.gather, lambda w, q: self.descend(replace(w, position=q))
                )
            q = Var(self.names.fresh("p"), I64)
            stmts = self.descend(replace(inner, position=q))
            return [For(q.name, at, run, (*self.prefetch(inner, q), *stmts))]

        step += self.tiled(entered, lambda w: self.accumulated(w, run_loop))
        step.append(Assign(at.name, run))
        return [*body, Mut(at.name, lo), While(op("lt", at, end), tuple(step))]

    # -- tiles and accumulators ------------------------------------------------------------------------------------

    def tiled(self, walk: Walk, build_body: Body) -> list[Stmt]:
        """The body once per register tile of the free vector index; once where there is none."""
        if self.free_vector is None:
            self.pieces, self.base = self.scalar_tile()
            return build_body(walk)
        out: list[Stmt] = []
        plan = self.plan
        start: Expr = const(0)
        if plan.main:
            width = plan.main[-1].offset + plan.main[-1].lanes
            extent = self.params.scalar(ParamRef("extent", self.free_vector))
            rest = plan.rest[-1].offset + plan.rest[-1].lanes if plan.rest else 0
            start = self.names.let(out, f"rest_{self.free_vector}", fold("sub", extent, const(rest)))
            var = Var(self.names.fresh(self.free_vector), I64)
            self.pieces, self.base = plan.main, var
            out.append(For(var.name, const(0), start, tuple(build_body(walk)), step=width))
        if plan.rest:
            self.pieces, self.base = plan.rest, start
            out += build_body(walk)
        return out

    def accumulated(self, walk: Walk, loops: Body | None = None) -> list[Stmt]:
        """Registers that take the sum over everything below, then one store each."""
        acc = Accumulators(walk.depth, self.terms, self.names)
        self.stack.append(acc)
        inner = (loops or self.descend)(walk)
        self.stack.pop()
        return [*acc.declarations(), *inner, *self.stores(walk, acc.totals())]

    def stores(self, walk: Walk, totals: list[tuple[Key, Expr]]) -> list[Stmt]:
        """One store of each sum."""
        outer = [f for f in self.factors if f.depth <= self.plan.output_depth and f.depth < self.bottom]
        stores: list[Stmt] = []
        for key, total in totals:
            at = self.terms.at_key(walk, key)
            store: list[Stmt] = []
            value = self.terms.multiply(total, outer, at, key.piece, self.base, store, self.names)
            store += self.terms.store(at, key.piece, self.base, value, self.plan.no_alias)
            guards = self.row_guards(at, key)
            stores += [If(all_of(guards), tuple(store))] if guards else store
        return stores

    def scalar_tile(self) -> tuple[tuple[Tile, ...], Expr]:
        """The tile of a nest without a vector index, one scalar, and where it begins."""
        return (Tile(0, 1),), const(0)

    def row_guards(self, walk: Walk, key: Key) -> list[Expr]:
        """A block's rows past the last row of the shape are never stored."""
        if not self.nest.operand.ragged or not key.coordinates:
            return []
        touched = {k for k, _ in key.coordinates}
        return [
            c
            for d, form in enumerate(self.fmt.inverse)
            if touched & {k for k, _ in form} and self.nest.indices[d] in self.stmt.lhs.indices
            for c in self.nest.within_extent(d, form, walk)
        ]

    def nested(self, walk: Walk) -> list[Stmt]:
        """A partial sum below `walk`, multiplied once by the factors bound here."""
        acc = Accumulators(walk.depth, self.terms, self.names)
        self.stack.append(acc)
        inner = self.descend(walk)
        self.stack.pop()
        factors = [f for f in self.factors if f.depth == walk.depth]
        out: list[Stmt] = [*acc.declarations(), *inner]
        for key in acc.keys:
            value = self.terms.multiply(acc.total(key), factors, walk, key.piece, self.base, out, self.names)
            out += self.stack[-1].add(key, value)
        return out

    def leaf(self, walk: Walk) -> list[Stmt]:
        """One stored element: its product goes into a register, or straight to the output."""
        if self.stack:
            factors = [f for f in self.factors if f.depth >= self.bottom]
            out: list[Stmt] = []
            for piece in self.pieces:
                value = self.terms.multiply(None, factors, walk, piece, self.base, out, self.names)
                out += self.stack[-1].add(self.terms.key(walk, piece), value)
            return out
        return self.tiled(walk, self.direct)

    def direct(self, walk: Walk) -> list[Stmt]:
        out: list[Stmt] = []
        for piece in self.pieces:
            value = self.terms.multiply(None, list(self.factors), walk, piece, self.base, out, self.names)
            out += self.terms.store(walk, piece, self.base, value, self.plan.no_alias)
        return out

    # -- prefetch --------------------------------------------------------------------------------------------------

    def prefetch(self, walk: Walk, q: Expr) -> list[Stmt]:
        """Prefetches of the rows that the elements some positions ahead will gather."""
        deepest = walk.depth == self.bottom - 1 or (self.plan.run_reduce and walk.depth == self.plan.output_depth)
        level = self.nest.levels[min(walk.depth, self.fmt.nlevels - 1)]
        if not self.plan.prefetch or not deepest or "crd" not in level.format.buffers:
            return []
        if level.format.functions.iterate is not Iterate.POSITION or walk.batch is not None:
            return []
        last = self.params.scalar(ParamRef("last", self.nest.tensor, level.index))
        ahead = op("min", op("add", q, const(self.plan.prefetch)), last)
        out: list[Stmt] = []
        c = self.names.let(out, "ahead", evaluate(level.format.functions.coordinate, level, {"q": ahead}))
        later = replace(walk, depth=walk.depth + 1, coordinates=(*walk.coordinates, c, *_zeros(self.fmt.nlevels)))
        base = self.base if self.stack else const(0)  # without registers the loop over tiles is further in
        for buffer, index, scalar in self.terms.gathered(later, walk.depth, base):
            line = 64 // itemsize(scalar)
            span = self.pieces[-1].offset + self.pieces[-1].lanes if self.free_vector and self.pieces else 1
            out += [Prefetch(buffer, fold("add", index, const(k))) for k in range(0, span, line)]
        return out


def _zeros(n: int) -> tuple[Const, ...]:
    return tuple(const(0) for _ in range(n))

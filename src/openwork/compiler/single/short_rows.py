"""The last two levels of a nest -> one loop over all short fibers, without a branch at their ends.

    for q in range(pos[lo], pos[hi]):            y[i] += A[i,j] * x[j], rows of one to five elements
        acc += A_vals[q] * x[A_crd[q]]
        y[at] = acc                               each time: the last store of a row stays
        done = e0 == q + 1
        acc = 0 if done else acc
        at += done
        e0, e1, e2 = (e1, e2 if done), pos[at + 3]

The end of a loop over each fiber would be mispredicted, which costs several times its elements. `e0` to `e2` are the
ends of the current fiber and the next two: read ahead, so that no step waits for memory. Fibers without elements are
skipped, and their results are the reduction's identity.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ... import tuning
from ...ir.loop import Expr, For, Var
from ...ir.ops import cast, const, op
from ...ir.types import I64
from ..build import Block
from ..fold import fold
from .accumulators import Accumulators
from .factors import identity
from .nest import Walk
from .operand_nest import OperandNest

__all__ = ["lower_short_rows"]

AHEAD = tuning.SHORT_ROW_LOOKAHEAD


def lower_short_rows(lowering: OperandNest, block: Block, walk: Walk) -> None:
    """The statements of the last two levels below `walk`, where the output is bound by the first of them."""
    _ShortRows(lowering, walk).emit(block)


class _ShortRows:
    def __init__(self, lowering: OperandNest, walk: Walk) -> None:
        self.lowering, self.walk, self.nest = lowering, walk, lowering.nest
        self.level, self.leaf = (level.format.functions for level in self.nest.levels[walk.depth :])
        self.variable = "q" if self.nest.is_walked(walk) else "c"

    def edge(self, x: Expr) -> Expr:
        """The position where fiber x begins, and the one before ends."""
        p = self.nest.function(self.walk, self.level.position, **{self.variable: x})
        return self.nest.function(replace(self.walk, depth=self.walk.depth + 1, position=p), self.leaf.bounds[0])

    def entered(self, block: Block, x: Expr) -> Walk:
        """The walk inside fiber x."""
        return self.nest.child(block, self.walk, **{self.variable: x})

    def empty_result(self, block: Block, x: Expr, acc: Accumulators) -> None:
        """The store of the identity for a fiber without elements, where the output is not initialised."""
        if not self.lowering.plan.writes_all:
            return
        inside = self.entered(block, x)
        value = identity(self.lowering.terms.reduce, self.lowering.terms.compute)
        self.lowering.stores(block, inside, [(key, cast(value, acc.total(key).type)) for key in acc.keys])

    def emit(self, block: Block) -> None:
        bounds = self.nest.bounds(self.walk)
        lo, hi = (block.let(n, x) for n, x in zip(("first", "last"), bounds, strict=True))
        at = block.mut("at", lo)
        acc = Accumulators(self.walk.depth + 1, self.lowering.terms)
        below, inner = block.nested(), block.nested()
        ends = [below.mut("e", self.ahead(at, k, hi)) for k in range(1, AHEAD + 1)]
        q = Var(block.builder.fresh("q"), I64)
        self.element(inner, at, ends, q, hi, acc)
        acc.declare(block)
        block.stmts += below.stmts
        block.stmts.append(For(q.name, self.edge(lo), self.edge(hi), tuple(inner.stmts), hints=("novector",)))
        rest = block.nested()
        r = Var(block.builder.fresh("r"), I64)
        self.empty_result(rest, r, acc)
        if rest.stmts:
            block.stmts.append(For(r.name, at, hi, tuple(rest.stmts)))

    def element(self, block: Block, at: Var, ends: list[Var], q: Expr, hi: Expr, acc: Accumulators) -> None:
        """The body of the loop over all fibers' elements."""
        lowering = self.lowering
        lowering.pieces, lowering.base = lowering.scalar_tile()
        step = block.nested()
        lowering.stack.append(acc)
        inside = self.entered(step, at)
        lowering.prefetch(step, inside, q)
        self.nest.enter(step, inside, lowering.descend, q=q)
        lowering.stack.pop()
        lowering.stores(step, inside, acc.totals())
        self.skip(block, at, ends, q, hi, acc)
        block.stmts += step.stmts
        self.close(block, at, ends, q, hi, acc)

    def ahead(self, at: Expr, k: int, hi: Expr) -> Expr:
        """The position where fiber `at + k` begins, and the one before ends; at most the end of the last."""
        return self.edge(op("min", fold("add", at, const(k)), hi))

    def skip(self, block: Block, at: Var, ends: list[Var], q: Expr, hi: Expr, acc: Accumulators) -> None:
        """The loop that skips fibers that end at or before q."""

        def step(inner: Block) -> None:
            self.empty_result(inner, at, acc)
            inner.assign(at, op("add", at, const(1)))
            for e, f in pairwise(ends):
                inner.assign(e, f)
            inner.assign(ends[-1], self.ahead(at, AHEAD, hi))

        block.loop_while(op("le", ends[0], q), step)

    def close(self, block: Block, at: Var, ends: list[Var], q: Expr, hi: Expr, acc: Accumulators) -> None:
        """After an element: move on to the next fiber if this was its last."""
        done = block.let("done", op("eq", ends[0], op("add", q, const(1))))
        start = identity(self.lowering.terms.reduce, self.lowering.terms.compute)
        for key in acc.keys:
            total = acc.total(key)
            block.assign(total, op("select", done, cast(start, total.type), total))
        block.assign(at, op("add", at, cast(done, I64)))
        for e, f in pairwise(ends):
            block.assign(e, op("select", done, f, e))
        block.assign(ends[-1], self.ahead(at, AHEAD, hi))

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
from typing import TYPE_CHECKING

from ... import tuning
from ...format.level import Iterate
from ...ir.loop import Assign, Expr, For, Let, Mut, Stmt, Var, While
from ...ir.ops import cast, const, op
from ...ir.types import BOOL, I64
from ..fold import fold
from ..level_functions import evaluate
from ..nest import Walk
from .accumulators import Accumulators
from .factors import identity

if TYPE_CHECKING:
    from .lower import _SingleOperand

__all__ = ["lower_short_rows"]

AHEAD = tuning.SHORT_ROW_LOOKAHEAD


def lower_short_rows(lowering: _SingleOperand, walk: Walk) -> list[Stmt]:
    """The statements of the last two levels below `walk`, where the output is bound by the first of them."""
    return _ShortRows(lowering, walk).lower()


class _ShortRows:
    def __init__(self, lowering: _SingleOperand, walk: Walk) -> None:
        self.lowering, self.walk, self.names = lowering, walk, lowering.names
        self.level, self.leaf = lowering.nest.levels[walk.depth : walk.depth + 2]
        self.env = lowering.nest.environment(walk, self.level)

    def at(self, x: Expr) -> dict[str, Expr]:
        """The environment of level functions in fiber x."""
        counted = self.level.format.functions.iterate is Iterate.COORDINATE
        return {**self.env, "c" if counted else "q": x}

    def edge(self, x: Expr) -> Expr:
        """The position where fiber x begins, and the one before ends."""
        p = evaluate(self.level.format.functions.position, self.level, self.at(x))
        return evaluate(self.leaf.format.functions.bounds[0], self.leaf, {**self.env, "p": p})

    def entered(self, x: Expr, body: list[Stmt]) -> Walk:
        """The walk inside fiber x."""
        functions, env = self.level.format.functions, self.at(x)
        c = self.names.let(
            body, self.lowering.nest.hint(self.walk.depth), evaluate(functions.coordinate, self.level, env)
        )
        position = evaluate(functions.position, self.level, {**env, "c": c})
        return replace(self.walk, depth=self.walk.depth + 1, position=position, coordinates=(*self.walk.coordinates, c))

    def empty_result(self, x: Expr, acc: Accumulators) -> list[Stmt]:
        """The store of the identity for a fiber without elements, where the output is not initialised."""
        if not self.lowering.plan.writes_all:
            return []
        body: list[Stmt] = []
        inside = self.entered(x, body)
        value = identity(self.lowering.terms.reduce, self.lowering.terms.compute)
        return [*body, *self.lowering.stores(inside, [(key, cast(value, acc.total(key).type)) for key in acc.keys])]

    def lower(self) -> list[Stmt]:
        lowering, names = self.lowering, self.names
        body: list[Stmt] = []
        bounds = lowering.nest.limits(self.walk, self.level, self.env)
        lo, hi = (names.let(body, n, x) for n, x in zip(("first", "last"), bounds, strict=True))
        at, q = (Var(names.fresh(n), I64) for n in ("at", "q"))
        ends = [Var(names.fresh("e"), I64) for _ in range(AHEAD)]
        acc = Accumulators(self.walk.depth + 1, lowering.terms, names)
        lowering.pieces, lowering.base = lowering.scalar_tile()
        lowering.stack.append(acc)
        step: list[Stmt] = []
        inside = self.entered(at, step)
        step += lowering.prefetch(inside, q)
        step += lowering.nest.enter(inside, self.leaf, {**self.env, "p": inside.position, "q": q}, lowering.descend)
        lowering.stack.pop()
        step += lowering.stores(inside, acc.totals())
        body += [Mut(at.name, lo), *acc.declarations()]
        body += [Mut(e.name, self.ahead(at, k, hi)) for k, e in enumerate(ends, 1)]
        loop = (self.skip(at, ends, q, hi, acc), *step, *self.close(at, ends, q, hi, acc))
        body.append(For(q.name, self.edge(lo), self.edge(hi), loop, hints=("novector",)))
        rest = Var(names.fresh("r"), I64)
        stmts = self.empty_result(rest, acc)
        return [*body, For(rest.name, at, hi, tuple(stmts))] if stmts else body

    def ahead(self, at: Expr, k: int, hi: Expr) -> Expr:
        """The position where fiber `at + k` begins, and the one before ends; at most the end of the last."""
        return self.edge(op("min", fold("add", at, const(k)), hi))

    def skip(self, at: Var, ends: list[Var], q: Expr, hi: Expr, acc: Accumulators) -> Stmt:
        """The loop that skips fibers that end at or before q."""
        shifted = [Assign(e.name, f) for e, f in pairwise(ends)]
        stmts = [*self.empty_result(at, acc), Assign(at.name, op("add", at, const(1))), *shifted]
        return While(op("le", ends[0], q), (*stmts, Assign(ends[-1].name, self.ahead(at, AHEAD, hi))))

    def close(self, at: Var, ends: list[Var], q: Expr, hi: Expr, acc: Accumulators) -> list[Stmt]:
        """After an element: move on to the next fiber if this was its last."""
        body: list[Stmt] = []
        done = Var(self.names.fresh("done"), BOOL)
        body.append(Let(done.name, op("eq", ends[0], op("add", q, const(1)))))
        start = identity(self.lowering.terms.reduce, self.lowering.terms.compute)
        for key in acc.keys:
            total = acc.total(key)
            body.append(Assign(total.name, op("select", done, cast(start, total.type), total)))
        body.append(Assign(at.name, op("add", at, cast(done, I64))))
        body += [Assign(e.name, op("select", done, f, e)) for e, f in pairwise(ends)]
        return [*body, Assign(ends[-1].name, self.ahead(at, AHEAD, hi))]

"""One sparse operand -> the loops over its levels, from its level functions, around a body that the caller builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from ..format.level import Iterate
from ..ir.loop import Const, Expr, Op, Var
from ..ir.ops import const, op
from ..ir.types import BOOL, I64
from .build import Block, Builder, Hole, fold
from .level_functions import Level, evaluate
from .operand import Operand, ParamRef

__all__ = ["Body", "Nest", "Walk", "when_all"]

LO, HI = Var("lo", I64), Var("hi", I64)
"""The range that a kernel is called for."""


@dataclass(frozen=True)
class Walk:
    """A point of the nest: `depth` levels entered, their coordinates, the child position, the batch number.

    With `lanes` > 1 it is that many elements side by side: at consecutive coordinates of the last level (a block's), or
    at consecutive positions whose coordinates, read together, are vectors.
    """

    depth: int = 0
    position: Expr = field(default_factory=lambda: const(0))
    batch: Expr | None = None
    coordinates: tuple[Expr, ...] = ()
    dense: tuple[tuple[str, Expr], ...] = ()
    lanes: int = 1


Body = Callable[[Block, Walk], None]


def when_all(block: Block, conditions: Sequence[Expr], then: Hole, orelse: Hole | None = None) -> None:
    """`then` under the conjunction of conditions, `orelse` otherwise; `then` alone where there are none."""
    if conditions:
        block.when(reduce(lambda a, b: op("and", a, b), conditions), then, orelse)
    else:
        then(block)


def compare(name: str, a: Expr, b: Expr) -> Op:
    """A comparison of two i64 values."""
    return Op(name, (a, b), BOOL)


class Nest:
    """Emits the loops of one sparse operand, level by level, from its level functions.

    In a ranged kernel `lo` and `hi` bound the outermost loop, or the coordinates of the dimension `sliced`.
    """

    def __init__(
        self, builder: Builder, tensor: str, operand: Operand, indices: tuple[str, ...], sliced: int | None = None
    ) -> None:
        assert operand.format is not None
        self.tensor, self.operand, self.fmt, self.indices = tensor, operand, operand.format, indices
        self.builder, self.params, self.sliced = builder, builder.params, sliced
        self.levels = [Level(tensor, k, operand, builder.params) for k in range(self.fmt.nlevels)]

    # -- coordinates -----------------------------------------------------------------------------------------------

    def extent(self, dim: int) -> Var:
        return self.params.scalar(ParamRef("extent", self.indices[dim]))

    def linear(self, form: tuple[tuple[int, int], ...], walk: Walk) -> Expr:
        """A dimension's coordinate from level coordinates, with the constant part last."""
        total: Expr = const(0)
        fixed = 0
        for k, a in form:
            c = walk.coordinates[k]
            if isinstance(c, Const):
                fixed += a * int(c.value.real)
            elif a == -1:
                total = fold("sub", total, c)
            else:
                total = fold("add", total, fold("mul", c, const(a)))
        return fold("add", total, const(fixed))

    def coordinate(self, dim: int, walk: Walk) -> Expr:
        return self.linear(self.fmt.inverse[dim], walk)

    def hint(self, depth: int) -> str:
        """A readable stem for the level's variable: the index where the level is a plain dimension."""
        dims = [d for d, form in enumerate(self.fmt.inverse) if form == ((depth, 1),)]
        return self.indices[dims[0]] if dims else f"{self.tensor.lower()}{depth}"

    # -- loops -----------------------------------------------------------------------------------------------------

    def environment(self, walk: Walk, level: Level) -> dict[str, Expr]:
        env: dict[str, Expr] = {"p": walk.position}
        if walk.batch is not None and not level.format.batched:
            env["batch"] = walk.batch
        return env

    def loop(
        self, block: Block, walk: Walk, body: Body, before: Callable[[Block, Expr], None] | None = None, lanes: int = 1
    ) -> None:
        """The loop over the level at `walk.depth`; `before` adds statements that know the position variable.

        With several lanes, a loop over as many positions at a time comes first.
        """
        level = self.levels[walk.depth]
        functions = level.format.functions
        env = self.environment(walk, level)
        if "valid_lo" in functions.bounds:
            env["valid_lo"], env["valid_hi"] = self.valid_range(block, walk)
        lo, hi = self.limits(walk, level, env)
        stem = self.hint(walk.depth)
        if functions.iterate is Iterate.COORDINATE:
            block.loop(stem, lo, hi, lambda b, c: self.enter(b, walk, level, {**env, "c": c}, body))
        elif level.format.is_singleton:
            self.enter(block, walk, level, {**env, "q": walk.position}, body)
        elif lanes > 1:
            self.in_lanes(block, walk, lo, hi, lanes, lambda b, w, q: self.enter(b, w, level, {**env, "q": q}, body))
        else:

            def element(inner: Block, q: Expr) -> None:
                below = inner.nested()
                self.enter(below, walk, level, {**env, "q": q}, body)
                if before is not None:
                    before(inner, q)
                inner.stmts += below.stmts

            # gathering in vector lanes loses to scalar loads on the short rows that sparse matrices have
            block.loop("p" + stem, lo, hi, element, ("novector",))

    def in_lanes(
        self, block: Block, walk: Walk, lo: Expr, hi: Expr, lanes: int, body: Callable[[Block, Walk, Expr], None]
    ) -> None:
        """Positions lo to hi, `lanes` (a power of two) at a time and then one by one."""
        first, last = block.let("first", lo), block.let("last", hi)
        vector_end = fold("add", first, op("band", fold("sub", last, first), const(-lanes)))
        middle = block.let("whole", vector_end)
        stem = "p" + self.hint(self.fmt.nlevels - 1)
        block.loop(stem, first, middle, lambda b, q: body(b, replace(walk, lanes=lanes), q), step=lanes)
        block.loop(stem, middle, last, lambda b, q: body(b, walk, q), ("novector",))

    def limits(self, walk: Walk, level: Level, env: dict[str, Expr]) -> tuple[Expr, Expr]:
        """The bounds of the loop over a level."""
        if walk.depth == 0 and self.builder.ranged and self.sliced is None:
            return LO, HI
        first, last = (evaluate(text, level, env) for text in level.format.functions.bounds)
        return first, last

    def enter(self, block: Block, walk: Walk, level: Level, env: dict[str, Expr], body: Body) -> None:
        """The body of a level's loop: coordinate, child position, guards where an element may lie outside the shape."""
        functions = level.format.functions
        c = block.let(self.hint(walk.depth), evaluate(functions.coordinate, level, env, walk.lanes))
        if level.format.batched:
            parent = const(0) if walk.batch is None else walk.batch
            child = replace(walk, batch=fold("add", fold("mul", parent, level.name("N")), c), position=const(0))
        else:
            child = replace(walk, position=evaluate(functions.position, level, {**env, "c": c}))
        child = replace(child, depth=walk.depth + 1, coordinates=(*walk.coordinates, c))
        guards = self.shape_guards(child)

        def guarded(inner: Block) -> None:
            when_all(inner, guards, lambda b: body(b, child))

        if functions.present is None:
            guarded(block)
        else:
            block.when(evaluate(functions.present, level, {**env, "c": c}), guarded)

    def shape_guards(self, walk: Walk) -> list[Expr]:
        """Conditions under which the dimensions completed by the last level lie in the shape, where that may fail."""
        level = walk.depth - 1
        if not self.operand.ragged or self.fmt.levels[level].format.is_range:
            return []
        return [
            c
            for d, form in enumerate(self.fmt.inverse)
            if _last(form) == level
            for c in self.within_extent(d, form, walk)
        ]

    def within_extent(self, dim: int, form: tuple[tuple[int, int], ...], walk: Walk) -> list[Op]:
        """0 <= coordinate < extent for a dimension that several levels make up."""
        if len(form) == 1:
            return []
        value = self.linear(form, walk)
        conditions = [compare("lt", value, self.extent(dim))]
        if any(a < 0 for _, a in form) or any(self.levels[k].name("lo") != const(0) for k, _ in form):
            conditions.append(compare("ge", value, const(0)))
        return conditions

    def valid_range(self, block: Block, walk: Walk) -> tuple[Expr, Expr]:
        """Bounds of a range level's coordinate that keep every dimension inside its extent, or its slice."""
        k = walk.depth
        lo: Expr = const(0)
        hi: Expr = self.levels[k].name("N")
        if self.sliced is not None and self.fmt.inverse[self.sliced] == ((k, 1),):
            lo, hi = LO, HI
        for d, form in enumerate(self.fmt.inverse):
            slope = dict(form).get(k)
            if slope is None or len(form) == 1:
                continue
            base = self.linear(tuple((i, a) for i, a in form if i != k), walk)
            first, end = (LO, HI) if d == self.sliced else (const(0), self.extent(d))
            if slope == 1:
                lo = op("max", lo, fold("sub", first, base))
                hi = op("min", hi, fold("sub", end, base))
            else:
                lo = op("max", lo, fold("add", fold("sub", base, end), const(1)))
                hi = op("min", hi, fold("add", fold("sub", base, first), const(1)))
        return block.let("first", lo), block.let("last", hi)


def _last(form: tuple[tuple[int, int], ...]) -> int:
    return max((k for k, _ in form), default=-1)

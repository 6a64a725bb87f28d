"""One sparse operand -> the loops over its levels, from its level functions, around a body that the caller builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..format.level import Iterate
from ..ir.loop import Const, Expr, For, If, Let, Op, Stmt, Var
from ..ir.ops import const, op
from ..ir.types import BOOL, I64
from .fold import fold
from .level_functions import Level, Params, evaluate
from .operand import Operand, ParamRef

__all__ = ["Body", "Names", "Nest", "Walk", "all_of"]

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


Body = Callable[[Walk], list[Stmt]]


class Names:
    """Readable names, each given out once and in a fixed order."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {"lo": 1, "hi": 1}

    def fresh(self, stem: str) -> str:
        n = self._taken.get(stem, 0)
        self._taken[stem] = n + 1
        return stem if n == 0 else f"{stem}_{n}"

    def let(self, body: list[Stmt], stem: str, value: Expr) -> Expr:
        """Name a value in `body`, unless it is a name or a constant already."""
        if isinstance(value, Var | Const):
            return value
        name = self.fresh(stem)
        body.append(Let(name, value))
        return Var(name, value.type)


def all_of(conditions: list[Expr]) -> Expr:
    """The conjunction of conditions, of which there is one at least."""
    result = conditions[0]
    for c in conditions[1:]:
        result = op("and", result, c)
    return result


def compare(name: str, a: Expr, b: Expr) -> Op:
    """A comparison of two i64 values."""
    return Op(name, (a, b), BOOL)


class Nest:
    """Emits the loops of one sparse operand, level by level, from its level functions.

    ranged: the variables `lo` and `hi` bound the outermost loop, or the coordinates of the dimension `sliced`.
    """

    def __init__(
        self, tensor: str, operand: Operand, indices: tuple[str, ...], params: Params, names: Names, ranged: bool,
        sliced: int | None = None,
    ) -> None:  # fmt: skip
        assert operand.format is not None
        self.tensor, self.operand, self.fmt, self.indices = tensor, operand, operand.format, indices
        self.params, self.names, self.is_ranged, self.sliced = params, names, ranged, sliced
        self.levels = [Level(tensor, k, operand, params) for k in range(self.fmt.nlevels)]

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
        self, walk: Walk, build_body: Body, before: Callable[[Expr], list[Stmt]] | None = None, lanes: int = 1
    ) -> list[Stmt]:
        """The loop over the level at `walk.depth`; `before` adds statements that know the position variable.

        With several lanes, a loop over as many positions at a time comes first.
        """
        level = self.levels[walk.depth]
        functions = level.format.functions
        env = self.environment(walk, level)
        body: list[Stmt] = []
        if "valid_lo" in functions.bounds:
            env["valid_lo"], env["valid_hi"] = self.valid_range(walk, body)
        lo, hi = self.limits(walk, level, env)
        stem = self.hint(walk.depth)
        if functions.iterate is Iterate.COORDINATE:
            c = Var(self.names.fresh(stem), I64)
            return [*body, self.for_(walk, c, lo, hi, self.enter(walk, level, {**env, "c": c}, build_body))]
        if level.format.is_singleton:
            return [*body, *self.enter(walk, level, {**env, "q": walk.position}, build_body)]
        if lanes > 1:
            return [
                *body,
                *self.in_lanes(walk, lo, hi, lanes, lambda w, q: self.enter(w, level, {**env, "q": q}, build_body)),
            ]
        q = Var(self.names.fresh("p" + stem), I64)
        inner = self.enter(walk, level, {**env, "q": q}, build_body)
        return [*body, self.for_(walk, q, lo, hi, [*(before(q) if before else []), *inner])]

    def in_lanes(
        self, walk: Walk, lo: Expr, hi: Expr, lanes: int, build_body: Callable[[Walk, Expr], list[Stmt]]
    ) -> list[Stmt]:
        """Positions lo to hi, `lanes` (a power of two) at a time and then one by one."""
        body: list[Stmt] = []
        first, last = self.names.let(body, "first", lo), self.names.let(body, "last", hi)
        vector_end = fold("add", first, op("band", fold("sub", last, first), const(-lanes)))
        middle = self.names.let(body, "whole", vector_end)
        q, r = (Var(self.names.fresh("p" + self.hint(self.fmt.nlevels - 1)), I64) for _ in range(2))
        vector_body = build_body(replace(walk, lanes=lanes), q)
        return [
            *body,
            For(q.name, first, middle, tuple(vector_body), step=lanes),
            For(r.name, middle, last, tuple(build_body(walk, r)), hints=("novector",)),
        ]

    def limits(self, walk: Walk, level: Level, env: dict[str, Expr]) -> tuple[Expr, Expr]:
        """The bounds of the loop over a level."""
        if walk.depth == 0 and self.is_ranged and self.sliced is None:
            return LO, HI
        first, last = (evaluate(text, level, env) for text in level.format.functions.bounds)
        return first, last

    def for_(self, walk: Walk, var: Var, lo: Expr, hi: Expr, inner: list[Stmt]) -> Stmt:
        # gathering in vector lanes loses to scalar loads on the short rows that sparse matrices have
        sparse = self.fmt.levels[walk.depth].format.functions.iterate is Iterate.POSITION
        return For(var.name, lo, hi, tuple(inner), hints=("novector",) if sparse else ())

    def enter(self, walk: Walk, level: Level, env: dict[str, Expr], build_body: Body) -> list[Stmt]:
        """The body of a level's loop: coordinate, child position, guards where an element may lie outside the shape."""
        functions = level.format.functions
        body: list[Stmt] = []
        c = self.names.let(body, self.hint(walk.depth), evaluate(functions.coordinate, level, env, walk.lanes))
        if level.format.batched:
            parent = const(0) if walk.batch is None else walk.batch
            child = replace(walk, batch=fold("add", fold("mul", parent, level.name("N")), c), position=const(0))
        else:
            child = replace(walk, position=evaluate(functions.position, level, {**env, "c": c}))
        child = replace(child, depth=walk.depth + 1, coordinates=(*walk.coordinates, c))
        inner = build_body(child)
        guards = self.shape_guards(child)
        if guards:
            inner = [If(all_of(guards), tuple(inner))]
        if functions.present is not None:
            inner = [If(evaluate(functions.present, level, {**env, "c": c}), tuple(inner))]
        return [*body, *inner]

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

    def valid_range(self, walk: Walk, body: list[Stmt]) -> tuple[Expr, Expr]:
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
        return self.names.let(body, "first", lo), self.names.let(body, "last", hi)


def _last(form: tuple[tuple[int, int], ...]) -> int:
    return max((k for k, _ in form), default=-1)

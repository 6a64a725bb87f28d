"""Factors of a statement at a point of a single-operand nest -> products, sums in registers, stores of the output."""

from __future__ import annotations

from dataclasses import replace

from ...classes import frozen
from ...errors import CompilerBug
from ...ir.index import Access, Apply, Assignment, Expression, Literal
from ...ir.loop import Const, Expr, Mut, Store, Var
from ...ir.ops import cast, const, load, op
from ...ir.types import Type
from ..build import Block
from ..fold import fold
from ..operand import Operand, ParamRef
from ..schedule import Schedule, Tile
from .factors import Factor, combine_name, identity
from .nest import Nest, Walk

__all__ = ["Accumulators", "Key", "Terms"]

_LANE_REDUCTIONS = {"add": "hsum", "mul": "hprod", "min": "hmin", "max": "hmax", "bor": "hmax", "band": "hmin"}
_WITHOUT_BRANCHES = {"or": "bor", "and": "band"}
"""Of truth values the operations that read both operands: all of a product's elements may be read."""
"""Reductions over the lanes of a vector; of booleans the greatest is their disjunction."""


@frozen
class Key:
    """The key of a register: the unrolled coordinates that the output depends on, and the piece of the tile."""

    coordinates: tuple[tuple[int, Const], ...]
    piece: Tile
    lanes: int


class Terms:
    """Values of a statement's right side at a point of the nest, and addresses of its left side."""

    def __init__(
        self, stmt: Assignment, operands: dict[str, Operand], plan: Schedule, compute: str, nest: Nest, driver: Access
    ) -> None:
        self.stmt, self.operands, self.plan, self.nest, self.driver = stmt, operands, plan, nest, driver
        self.params = nest.params
        self.compute = compute
        self.reduce = stmt.reduction
        self.combine = combine_name(self.reduce)
        if compute == "bool":
            self.reduce = _WITHOUT_BRANCHES.get({"add": "or", "mul": "and"}.get(self.reduce, self.reduce), self.reduce)
            self.combine = "band"

    # -- coordinates -----------------------------------------------------------------------------------------------

    def index(self, name: str, walk: Walk, base: Expr, piece: Tile) -> Expr:
        if name == self.plan.vector:
            return fold("add", base, const(piece.offset))
        dense = dict(walk.dense)
        if name in dense:
            return dense[name]
        return self.nest.dimension(self.driver.indices.index(name), walk)

    def lane_dim(self, walk: Walk) -> str | None:
        """The index that runs along the lanes of a vectorised block level."""
        if walk.lanes == 1 or self.plan.gather > 1:
            return None
        last = self.nest.format.nlevels - 1
        return next(
            self.driver.indices[d] for d, form in enumerate(self.nest.format.inverse) if any(k == last for k, _ in form)
        )

    def address(self, access: Access, walk: Walk, base: Expr, piece: Tile) -> Expr:
        """Offset of an element of a strided operand."""
        operand = self.operands[access.tensor]
        total: Expr = const(0)
        for d, name in enumerate(access.indices):
            i = self.index(name, walk, base, piece)
            if d != operand.unit:
                i = fold("mul", i, self.params.scalar(ParamRef("stride", access.tensor, d)))
            total = fold("add", total, i)
        return total

    # -- values ----------------------------------------------------------------------------------------------------

    def value(self, e: Expression, walk: Walk, piece: Tile, base: Expr) -> Expr:
        """The expression's value, in lanes where it runs along the vector index or a block's lanes."""
        match e:
            case Literal(value):
                return const(value, self.compute)
            case Apply("pattern", (Access(_, indices),)) if e.args[0] != self.driver and self.plan.vector in indices:
                return const(1, Type(self.compute, piece.lanes))
            case Apply("pattern", _):
                return const(1, Type(self.compute, walk.lanes))
            case Apply(name, args):
                name = _WITHOUT_BRANCHES.get(name, name) if self.compute == "bool" else name
                return op(name, *(self.value(a, walk, piece, base) for a in args))
            case Access() if e == self.driver:
                scalar = self.operands[e.tensor].scalar
                buffer = self.params.buffer(ParamRef("vals", e.tensor), scalar)
                return self.computed(load(buffer, scalar, self.nest.leaf(walk.position, walk.batch), walk.lanes))
            case Access(tensor, indices):
                operand = self.operands[tensor]
                if (table := dict(walk.tables).get((tensor, piece.offset))) is not None and walk.places is not None:
                    return op("permute", table, walk.places)
                buffer = self.params.buffer(ParamRef("data", tensor), operand.scalar)
                lanes = piece.lanes if self.plan.vector in indices else 1
                if self.lane_dim(walk) in indices:
                    lanes = walk.lanes
                return self.computed(load(buffer, operand.scalar, self.address(e, walk, base, piece), lanes))

    def table(self, access: Access, walk: Walk, piece: Tile, base: Expr, count: int) -> Expr:
        """So many consecutive elements of a strided operand, from that at `walk` on."""
        operand = self.operands[access.tensor]
        buffer = self.params.buffer(ParamRef("data", access.tensor), operand.scalar)
        return self.computed(load(buffer, operand.scalar, self.address(access, walk, base, piece), count))

    def computed(self, value: Expr) -> Expr:
        return cast(value, Type(self.compute, value.type.lanes))

    def multiply(
        self, block: Block, start: Expr | None, factors: list[Factor], walk: Walk, piece: Tile, base: Expr
    ) -> Expr:
        """`start` times the factors; a vector index that is reduced is summed here, in lanes."""
        reduced = self.plan.vector is not None and self.plan.vector not in self.stmt.lhs.indices
        inner = [f for f in factors if f.vector] if reduced else []
        result = start
        for f in factors:
            if f not in inner:
                result = self.times(result, self.value(f.expr, walk, piece, base))
        if inner:
            result = self.times(result, self.dot(block, inner, walk))
        if result is None:
            result = const(1, self.compute)
        return result

    def times(self, a: Expr | None, b: Expr) -> Expr:
        return b if a is None else op(self.combine, a, b)

    def dot(self, block: Block, factors: list[Factor], walk: Walk) -> Expr:
        """Sum over the vector index of the product of `factors`, in lanes."""

        def term(base: Expr, piece: Tile) -> Expr:
            result: Expr | None = None
            for f in factors:
                result = self.times(result, self.value(f.expr, walk, piece, base))
            assert result is not None
            return result

        vector = self.plan.vector
        assert vector is not None
        total: Expr | None = None
        start: Expr = const(0)
        if self.plan.main:
            extent = self.params.scalar(ParamRef("extent", vector))
            width = self.plan.main[-1].offset + self.plan.main[-1].lanes
            rest = self.plan.rest[-1].offset + self.plan.rest[-1].lanes if self.plan.rest else 0
            start = block.let(f"rest_{vector}", fold("sub", extent, const(rest)))
            first = identity(self.reduce, self.compute)
            sums = [block.mut("sum", cast(first, Type(self.compute, p.lanes))) for p in self.plan.main]

            def step(inner: Block, k: Expr) -> None:
                for s, p in zip(sums, self.plan.main, strict=True):
                    inner.assign(s, op(self.reduce, s, term(k, p)))

            block.loop(vector, const(0), start, step, step=width)
            total = self.horizontal(_tree_sum(self.reduce, list(sums)))
        by_lanes: dict[int, Expr] = {}
        for piece in self.plan.rest:
            t = term(start, piece)
            by_lanes[piece.lanes] = op(self.reduce, by_lanes[piece.lanes], t) if piece.lanes in by_lanes else t
        for value in by_lanes.values():
            lane_total = self.horizontal(value)
            total = lane_total if total is None else op(self.reduce, total, lane_total)
        if total is None:
            return identity(self.reduce, self.compute)
        return block.let("dot", total)

    def horizontal(self, value: Expr) -> Expr:
        if value.type.lanes == 1:
            return value
        name = _LANE_REDUCTIONS.get(self.reduce)
        if name is None:
            raise CompilerBug(f"no reduction over lanes for {self.reduce}")
        return op(name, value)

    # -- the output ------------------------------------------------------------------------------------------------

    def key(self, walk: Walk, piece: Tile) -> Key:
        """The register that the element at `walk` adds to."""
        fmt = self.nest.format
        dims = [self.driver.indices.index(i) for i in self.stmt.lhs.indices if i in self.driver.indices]
        used = {k for d in dims for k, _ in fmt.inverse[d] if k >= self.plan.unrolled}
        fixed = tuple((k, c) for k in sorted(used) if isinstance(c := walk.coordinates[k], Const))
        return Key(fixed, piece, walk.lanes)

    def at_key(self, walk: Walk, key: Key) -> Walk:
        """`walk` with the written-out coordinates of a register put in place."""
        fixed = dict(key.coordinates)
        missing = range(walk.depth, self.nest.format.nlevels)
        coordinates = (*walk.coordinates[: walk.depth], *(fixed.get(k, const(0)) for k in missing))
        return replace(walk, coordinates=coordinates, lanes=key.lanes)

    def store(self, block: Block, walk: Walk, piece: Tile, base: Expr, value: Expr, no_alias: bool) -> None:
        """Write or add `value` to the output element at `walk`."""
        lhs = self.stmt.lhs
        out = self.operands[lhs.tensor]
        if out.format is not None:
            buffer = self.params.buffer(ParamRef("vals", lhs.tensor), out.scalar, mutable=True)
            value = cast(value, Type(out.scalar, max(value.type.lanes, walk.lanes)))
            if not no_alias:
                previous = self.computed(
                    load(buffer, out.scalar, self.nest.leaf(walk.position, walk.batch), value.type.lanes)
                )
                value = cast(op(self.reduce, previous, value), value.type)
            block.stmts.append(Store(buffer, self.nest.leaf(walk.position, walk.batch), value))
            return
        buffer = self.params.buffer(ParamRef("data", lhs.tensor), out.scalar, mutable=True)
        index = self.address(lhs, walk, base, piece)
        in_lanes = self.lane_dim(walk) in lhs.indices
        lanes = piece.lanes if self.plan.vector in lhs.indices else walk.lanes if in_lanes else 1
        if value.type.lanes > lanes:
            value = self.horizontal(value)
        if value.type.lanes < lanes:
            value = cast(value, value.type.with_lanes(lanes))
        if not no_alias:
            value = op(self.reduce, self.computed(load(buffer, out.scalar, index, lanes)), value)
        block.stmts.append(Store(buffer, index, cast(value, Type(out.scalar, lanes))))

    def gathered(self, walk: Walk, level: int, base: Expr) -> list[tuple[str, Expr, str]]:
        """(buffer, offset, scalar) of the strided operands whose address depends on `level`."""
        out = []
        for access in self.stmt.accesses:
            operand = self.operands[access.tensor]
            if operand.format is not None or not access.indices:
                continue
            dims = [self.driver.indices.index(i) for i in access.indices if i in self.driver.indices]
            if any(k == level for d in dims for k, _ in self.nest.format.inverse[d]):
                buffer = self.params.buffer(ParamRef("data", access.tensor), operand.scalar)
                out.append((buffer, self.address(access, walk, base, Tile(0, 1)), operand.scalar))
        return out


def _tree_sum(reduce: str, values: list[Expr]) -> Expr:
    while len(values) > 1:
        paired = [op(reduce, a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = paired + ([values[-1]] if len(values) % 2 else [])
    return values[0]


class Accumulators:
    """Registers made on demand, one per key."""

    def __init__(self, depth: int, terms: Terms) -> None:
        self.depth, self.terms = depth, terms
        self._vars: dict[Key, Var] = {}

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._vars)

    def total(self, key: Key) -> Var:
        return self._vars[key]

    def totals(self) -> list[tuple[Key, Expr]]:
        """One sum for each output: the lanes' sum and the sum of the remaining elements, combined."""
        sums: dict[tuple[object, Tile], tuple[Key, Expr]] = {}
        for key, var in self._vars.items():
            output = (key.coordinates, key.piece)
            if output in sums:
                lane_sum = self.terms.horizontal(sums[output][1])
                sums[output] = (key, op(self.terms.reduce, lane_sum, var))
            else:
                sums[output] = (key, var)
        return list(sums.values())

    def add(self, block: Block, key: Key, value: Expr, within: Expr | None = None) -> None:
        """Add a value to the key's register, in the lanes that are `within`."""
        if key not in self._vars:
            self._vars[key] = Var(block.builder.fresh("acc"), value.type)
        var = self._vars[key]
        if value.type.lanes < var.type.lanes:
            value = cast(value, var.type)
        total = op(self.terms.reduce, var, value)
        block.assign(var, total if within is None else op("select", within, total, var))

    def declare(self, block: Block) -> None:
        """The registers, which hold the reduction's identity."""
        start = identity(self.terms.reduce, self.terms.compute)
        block.stmts += [Mut(v.name, cast(start, v.type)) for v in self._vars.values()]

"""The result of a merge, level by level: coordinates and values in, the stores that assemble it out.

    located   dense, bitmap: position = parent * N + c - lo; values hold the fill value before
    chain     compressed and the singletons below: the next position, which stays only if it got children

A chunk t of the outermost loop writes its positions from `starts` on, into slots that no other chunk uses; how many
it used goes to `counts`. The parameter `meta` holds, for n chunks and r chains::

    cuts[0 .. n]   starts[chain 0][0 .. n-1] ...   counts[chain 0][0 .. n-1] ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...classes import frozen
from ...format.expression import Mod
from ...ir.loop import Expr, Var
from ...ir.ops import cast, const, op
from ..build import Array, Block, Builder
from ..conversion.level_runs import Kind, Run, runs
from ..fold import fold
from ..level_functions import is_signed, position_at
from ..operand import Operand

__all__ = ["Output", "Place"]


@frozen
class Place:
    """A point in the result: the position entered last, coordinates of a chain that is not complete.

    `leaf`: the position of the element of the operand whose structure the result has, once it is reached.
    """

    parent: Expr
    pending: tuple[Expr, ...] = ()
    leaf: Expr | None = None


Inner = Callable[[Block, Place], None]


class Output:
    """Emits the writes of a result."""

    def __init__(self, builder: Builder, target: Operand) -> None:
        assert target.format is not None
        self.builder, self.target, self.format = builder, target, target.format
        self.runs = runs(self.format)
        self.chains = [r for r in self.runs if r.kind is Kind.CHAIN]
        self.counters: dict[Run, Var] = {}
        for at in range(self.format.nlevels):
            for part, scalar in (("pos", target.pos[at]), ("crd", target.crd[at])):
                if scalar is not None:
                    builder.buffer(f"out_{part}{at}", scalar, mutable=True, wide=scalar != "bool")
        self.values = builder.buffer("out_vals", target.scalar, mutable=True)
        self.meta = builder.buffer("meta", "i64", mutable=True)
        self.chunks = builder.scalar("chunks")
        for at in range(self.format.nlevels):
            if not isinstance(self.format.levels[at].expression, Mod):
                builder.scalar(f"n{at}")
                if is_signed(self.format.levels[at].expression):
                    builder.scalar(f"lo{at}")

    # -- sizes and runs --------------------------------------------------------------------------------------------

    def size(self, at: int) -> Expr:
        """The extent of level `at`."""
        e = self.format.levels[at].expression
        return const(e.divisor) if isinstance(e, Mod) else self.builder.scalar(f"n{at}")

    def low(self, at: int) -> Expr:
        signed = is_signed(self.format.levels[at].expression)
        return self.builder.scalar(f"lo{at}") if signed else const(0)

    def high(self, at: int) -> Expr:
        return fold("add", self.low(at), self.size(at))

    def run(self, at: int) -> Run:
        return next(r for r in self.runs if at in r.levels)

    def chain_below(self, at: int) -> Run | None:
        """The first chain that begins below level `at`."""
        return next((r for r in self.chains if r.first > at), None)

    def visits_all(self, at: int) -> bool:
        """Whether every coordinate of level `at` must be visited, as each has an entry in the pos of a chain below."""
        return self.run(at).kind is Kind.LOCATED and self.chain_below(at) is not None

    def appends(self, at: int) -> bool:
        """Whether the level is the end of a chain."""
        run = self.run(at)
        return run.kind is Kind.CHAIN and run.last == at

    def appends_leaf(self, at: int) -> bool:
        """Whether level `at` is the last one and appended to, so that an element is one new position."""
        return self.appends(at) and at == self.format.nlevels - 1

    def is_bitmap(self, at: int) -> bool:
        """Whether level `at` is the last one, with a bit for each coordinate."""
        return at == self.format.nlevels - 1 and self.target.crd[at] == "bool"

    @property
    def random_access(self) -> bool:
        """Whether elements have positions of their own, which may be written to in any order."""
        return True

    # -- a chunk ---------------------------------------------------------------------------------------------------

    def begin(self, block: Block, t: Expr) -> tuple[Expr, Expr]:
        """Bind the chunk's range of coordinates and set the counters to its first positions; pos begins with 0."""

        def zero(inner: Block) -> None:
            for run in self.chains:
                inner.store(self._index_buffer("pos", run.first), const(0), const(0))

        if self.chains:
            block.when(op("eq", t, const(0)), zero)
        lower = block.let("lower", self.meta.read(t))
        upper = block.let("upper", self.meta.read(fold("add", t, const(1))))
        for number, run in enumerate(self.chains):
            self.counters[run] = block.mut(f"q{run.first}", self.meta.read(self._slot(number, t)))
        return lower, upper

    def finish(self, block: Block, t: Expr) -> None:
        """Store the numbers of positions used."""
        for number, run in enumerate(self.chains):
            start = self.meta.read(self._slot(number, t))
            used = op("sub", self.counters[run], start)
            block.store(self.meta, self._slot(len(self.chains) + number, t), used)

    def _slot(self, row: int, t: Expr) -> Expr:
        ahead = fold("add", fold("mul", self.chunks, const(row + 1)), const(1))
        return fold("add", ahead, t)

    # -- levels ----------------------------------------------------------------------------------------------------

    def enter(self, block: Block, at: int, c: Expr, place: Place, inner: Inner) -> None:
        """Level `at` at coordinate c: `inner` writes what is below."""
        run = self.run(at)
        if run.kind is Kind.LOCATED:
            p = block.let("r", self.located(at, c, place))
            scalar = self.target.crd[at]
            if scalar is not None:
                block.store(self.builder.buffer(f"out_crd{at}", scalar, mutable=True), p, const(True, "bool"))
            inner(block, Place(p))
        elif at < run.last:
            inner(block, replace(place, pending=(*place.pending, c)))
        else:
            self._append(block, run, (*place.pending, c), inner)

    def located(self, at: int, c: Expr, place: Place) -> Expr:
        return position_at(place.parent, c, self.low(at), self.size(at))

    def _append(self, block: Block, run: Run, coordinates: tuple[Expr, ...], inner: Inner) -> None:
        q = self.counters[run]
        below = self.chain_below(run.last)
        if below is None:
            if run.last + 1 < self.format.nlevels:
                self._fill_below(block, q, run.last + 1)
            inner(block, Place(q))
            self.append_coordinates(block, run, coordinates)
            return
        counter = self.counters[below]
        before = block.let("before", op("add", counter, const(0)))
        inner(block, Place(q))
        if below.first == run.last + 1:
            self.close(block, below, q)
        block.when(op("gt", counter, before), lambda b: self.append_coordinates(b, run, coordinates))

    def append_coordinates(
        self, block: Block, run: Run, coordinates: tuple[Expr, ...], step: Expr | None = None
    ) -> None:
        """The coordinates of a new position; the counter moves by `step`, one without."""
        q = self.counters[run]
        self._store_coordinates(block, run, q, coordinates)
        block.assign(q, op("add", q, const(1) if step is None else step))

    def _store_coordinates(self, block: Block, run: Run, q: Expr, coordinates: tuple[Expr, ...]) -> None:
        for at, c in zip(run.levels, coordinates, strict=True):
            block.store(self._index_buffer("crd", at), q, c)

    def counter(self, at: int) -> Var:
        """The next position of the chain that level `at` is in."""
        return self.counters[self.run(at)]

    def store_vector(self, block: Block, at: int, q: Expr, c: Expr, place: Place, value: Expr) -> None:
        """Elements at several coordinates c of the last level, from position q on; the counter moves later."""
        self.write(block, Place(q), value)
        lanes = value.type.lanes
        self._store_coordinates(
            block, self.run(at), q, tuple(cast(x, x.type.with_lanes(lanes)) for x in (*place.pending, c))
        )

    def store_if(self, block: Block, at: int, c: Expr, place: Place, value: Expr, condition: Expr | None) -> None:
        """Store the element at coordinate c of the last level; advance where `condition` holds (None: always)."""
        run = self.run(at)
        self.write(block, Place(self.counters[run]), value)
        self.append_coordinates(block, run, (*place.pending, c), None if condition is None else cast(condition, "i64"))

    def store_bit(self, block: Block, at: int, c: Expr, place: Place, value: Expr, condition: Expr | None) -> None:
        """Store the bit of coordinate c of the last level, `condition` (None: always set), and a value in any case."""
        p = block.let("r", self.located(at, c, place))
        bit = const(True, "bool") if condition is None else condition
        block.store(self.builder.buffer(f"out_crd{at}", "bool", mutable=True), p, bit)
        self.write(block, Place(p), value)

    def _fill_below(self, block: Block, q: Expr, first: int) -> None:
        """The fill value at all positions below the new position q."""
        size: Expr = const(1)
        for at in range(first, self.format.nlevels):
            size = fold("mul", size, self.size(at))
        base = block.let("base", fold("mul", q, size))
        fill = block.let("fill_value", self.builder.buffer("fill", self.target.scalar).read(const(0)))
        block.loop("x", const(0), size, lambda b, x: b.store(self.values, fold("add", base, x), fill))

    def close(self, block: Block, chain: Run, parent: Expr) -> None:
        """The children of `parent` in `chain` are complete."""
        block.store(self._index_buffer("pos", chain.first), fold("add", parent, const(1)), self.counters[chain])

    def close_all(self, block: Block, at: int, parent: Expr) -> None:
        """Nothing was entered below the position `parent` of located level `at`: its segments are empty."""
        chain = self.chain_below(at)
        assert chain is not None
        count: Expr = const(1)
        for level in range(at + 1, chain.first):
            count = fold("mul", count, self.size(level))
        first = fold("mul", parent, count)
        if count == const(1):
            self.close(block, chain, first)
        else:
            block.loop("x", first, fold("add", first, count), lambda b, x: self.close(b, chain, x))

    def close_between(self, block: Block, at: int, first: Expr, last: Expr, place: Place) -> None:
        """Nothing was entered at the coordinates `first` to `last` of located level `at`: their segments are empty."""
        chain = self.chain_below(at)
        assert chain is not None
        count: Expr = const(1)
        for level in range(at + 1, chain.first):
            count = fold("mul", count, self.size(level))
        lower, upper = (fold("mul", self.located(at, c, place), count) for c in (first, last))
        block.loop("x", lower, upper, lambda b, x: self.close(b, chain, x))

    def write(self, block: Block, place: Place, value: Expr) -> None:
        """The value of the element at a place."""
        block.store(self.values, place.parent, cast(value, self.target.scalar))

    def _index_buffer(self, part: str, at: int) -> Array:
        scalar = (self.target.pos if part == "pos" else self.target.crd)[at]
        assert scalar is not None
        return self.builder.buffer(f"out_{part}{at}", scalar, mutable=True, wide=True)

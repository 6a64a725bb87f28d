"""A tensor's format -> the loop nest over all its stored elements, from the level functions, around a given body.

    for c0 in range(0, n0):                       i : dense
        for q1 in range(pos1[c0], pos1[c0 + 1]):  j : compressed
            c1 = crd1[q1]
            LEAF

Padding is never visited: where a level completes a dimension, the loop's bounds are clipped to the shape (levels that
loop over coordinates) or the element is guarded (levels that loop over positions); empty slots are guarded by the
level's `present`. Extents and intervals are bound once, at the kernel's entry; no loop divides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from ..format.expression import Add, Dim, Div, Expression, Mod, Sub, dimensions
from ..format.format import Format
from ..format.level import Iterate
from ..ir.loop import Const, Expr
from ..ir.ops import const, op
from .build import Array, Block, Name, fold
from .operand import Operand

__all__ = ["Interval", "Point", "coordinate_of", "hoisted", "interval_of", "intervals", "completed_dimensions", "walk"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The coordinates lo <= c < lo + size of a level, as expressions over the extents."""

    lo: Expr
    size: Expr

    @property
    def hi(self) -> Expr:
        return fold("add", self.lo, self.size)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a walk: coordinates, positions and dimensions that are known after the levels entered so far."""

    coordinates: tuple[Expr, ...] = ()
    positions: tuple[Expr, ...] = ()
    dims: tuple[Expr | None, ...] = ()
    batch: Expr | None = None
    leaf: Expr = field(default_factory=lambda: const(0))
    """index into `values`, at the last level"""

    @property
    def at(self) -> tuple[Expr, ...]:
        """The dimension coordinates of a stored element."""
        assert None not in self.dims
        return self.dims  # type: ignore[return-value]


Leaf = Callable[[Block, Point], None]


def interval_of(e: Expression, extents: Sequence[Expr]) -> Interval:
    """`format.expression.interval` over expressions; a remainder's size is its constant divisor."""
    match e:
        case Dim(i):
            return Interval(const(0), extents[i])
        case Add(Dim(i), Dim(j)) | Sub(Dim(i), Dim(j)):
            m, n = extents[i], extents[j]
            nonempty = op("and", op("gt", m, const(0)), op("gt", n, const(0)))
            size = op("select", nonempty, fold("sub", fold("add", m, n), const(1)), const(0))
            if isinstance(e, Add):
                return Interval(const(0), size)
            return Interval(op("select", nonempty, fold("sub", const(1), n), const(0)), size)
        case Div(base, c):
            inner = interval_of(base, extents)
            lo = fold("floordiv", inner.lo, const(c))
            last = fold("floordiv", fold("sub", inner.hi, const(1)), const(c))
            return Interval(lo, fold("sub", fold("add", last, const(1)), lo))
        case Mod(_, c):
            return Interval(const(0), const(c))


def intervals(block: Block, prefix: str, format: Format, extents: Sequence[Expr]) -> tuple[Interval, ...]:
    """The intervals of all levels, bound to names `{prefix}_lo{l}` and `{prefix}_n{l}` here."""
    named = []
    for at, level in enumerate(format.levels):
        e = level.expression
        interval = interval_of(e, extents)
        above = {d for x in format.levels[:at] for d in dimensions(x.expression)}
        if _size(e) is not None and not above.issuperset(dimensions(e)):
            nonempty = reduce(lambda a, b: op("and", a, b), [op("gt", extents[d], const(0)) for d in dimensions(e)])
            interval = Interval(interval.lo, op("select", nonempty, interval.size, const(0)))
        named.append(Interval(block.let(f"{prefix}_lo{at}", interval.lo), block.let(f"{prefix}_n{at}", interval.size)))
    return tuple(named)


def coordinate_of(e: Expression, dims: Sequence[Expr]) -> Expr:
    """The value of a level expression at dimension coordinates."""
    match e:
        case Dim(i):
            return dims[i]
        case Add(Dim(i), Dim(j)):
            return fold("add", dims[i], dims[j])
        case Sub(Dim(i), Dim(j)):
            return fold("sub", dims[i], dims[j])
        case Div(base, c):
            return fold("floordiv", coordinate_of(base, dims), const(c))
        case Mod(base, c):
            return fold("mod", coordinate_of(base, dims), const(c))


def completed_dimensions(format: Format, level: int) -> list[int]:
    """The dimensions whose coordinate is known at `level` and not before."""
    return [d for d, form in enumerate(format.inverse) if form and max(at for at, _ in form) == level]


def walk(
    block: Block,
    name: str,
    operand: Operand,
    extents: Sequence[Expr],
    leaf: Leaf,
    *,
    tile: tuple[int, Expr, Expr] | None = None,
    span: tuple[Expr, Expr] | None = None,
    hoist: bool = False,
) -> None:
    """Append the nest that calls `leaf` with every stored element of the tensor `name`.

    Buffers are `{name}_pos{l}` and `{name}_crd{l}`; with batch levels the parameters `{name}_pos{l}_slice`,
    `{name}_crd{l}_slice` and `{name}_vals_slice` are the lengths of one slice. `tile` = (d, lo, hi) visits
    only the elements with lo <= dimension d < hi, where loops over coordinates complete d. `span` are the bounds
    of the outermost level's loop; without it, the whole level. With `hoist` the levels of `hoisted` are walked first.

    Guarantees: `leaf` sees each stored element once, in storage order unless hoisted, inside the shape, its
    dimensions as linear forms of the level coordinates.
    """
    assert operand.format is not None
    levels = hoisted(operand.format) if hoist else ()
    _Walk(name, operand, tuple(extents), leaf, tile, span, levels).run(block)


def hoisted(format: Format) -> tuple[int, ...]:
    """The dense levels below the one compressed level of a format whose loops may be hoisted out of its loop.

    Of blocks, the rows: `i // 4, i % 4, j // 4, j % 4`, the order of rows, instead of `i // 4, j // 4, i % 4, j % 4`.
    """
    stored = [at for at, level in enumerate(format.levels) if not level.format.is_dense]
    if len(stored) != 1 or not format.levels[stored[0]].format.is_compressed:
        return ()
    (at,) = stored
    compressed_dims = set(dimensions(format.levels[at].expression))
    free = [
        x for x in range(at + 1, format.nlevels) if compressed_dims.isdisjoint(dimensions(format.levels[x].expression))
    ]
    return tuple(free)


class _Walk:
    def __init__(
        self,
        name: str,
        operand: Operand,
        extents: tuple[Expr, ...],
        leaf: Leaf,
        tile: tuple[int, Expr, Expr] | None,
        span: tuple[Expr, Expr] | None,
        hoist: tuple[int, ...],
    ) -> None:
        assert operand.format is not None
        self.name, self.operand, self.format, self.extents = name, operand, operand.format, extents
        self.leaf, self.tile, self.span, self.hoist = leaf, tile, span, hoist
        self.known: dict[int, Expr] = {}

    def run(self, block: Block) -> None:
        self.intervals = intervals(block, self.name, self.format, self.extents)
        dims: tuple[Expr | None, ...] = tuple(const(0) if not form else None for form in self.format.inverse)
        self._level(block, 0, const(0), Point(dims=dims))

    def _level(self, block: Block, at: int, parent: Expr, point: Point) -> None:
        """Levels `at` and deeper, below the position `parent`."""
        if at == len(self.format.levels):
            self._stored(block, point, parent)
            return
        level = self.format.levels[at].format
        if len(self.known) < len(self.hoist) and level.is_compressed:
            self._hoisted_level(block, at, parent, point)
            return
        functions = level.functions
        interval = self.intervals[at]
        names: dict[str, Name] = {"p": parent, "lo": interval.lo, "hi": interval.hi, "N": interval.size}
        names |= dict(zip(level.parameters, level.arguments, strict=True))
        names |= self._buffers(block, at, point.batch)
        if at in self.known:
            self._child(block, at, point, names | {"c": self.known[at]})
            return
        by_coordinate = functions.iterate is Iterate.COORDINATE
        if by_coordinate:
            first, last = self._clipped_bounds(block, at, point)
        elif at == 0 and self.span is not None:
            first, last = self.span
        else:
            first, last = (block.expr(bound, **names) for bound in functions.bounds)

        def body(inner: Block, var: Expr) -> None:
            names["c" if by_coordinate else "q"] = var
            if functions.present is None:
                self._child(inner, at, point, names)
            else:
                inner.when(inner.expr(functions.present, **names), lambda b: self._child(b, at, point, names))

        if first == const(0) and last == const(1):
            body(block, const(0))
        elif functions.branchless:
            body(block, first)
        else:
            name = f"{self.name}_{'c' if by_coordinate else 'q'}{at}"
            self._loop(block, at, name, (first, last), body)

    def _loop(
        self, block: Block, at: int, name: str, bounds: tuple[Expr, Expr], body: Callable[[Block, Expr], None]
    ) -> None:
        """The loop of a level; of a block's innermost level two versions, one of constant length for full blocks."""
        interval = self.intervals[at]
        if (
            at < len(self.format.levels) - 1
            or not isinstance(interval.size, Const)
            or bounds == (interval.lo, interval.hi)
        ):
            block.loop(name, *bounds, body)
            return
        test = op("and", op("eq", bounds[0], interval.lo), op("eq", bounds[1], interval.hi))
        block.when(test, lambda b: b.loop(name, interval.lo, interval.hi, body), lambda b: b.loop(name, *bounds, body))

    def _hoisted_level(self, block: Block, at: int, parent: Expr, point: Point) -> None:
        """The loops of the hoisted levels, and then level `at`."""
        level = self.hoist[len(self.known)]
        first, last = self._clipped_bounds(block, level, point)

        def body(inner: Block, var: Expr) -> None:
            self.known[level] = var
            self._level(inner, at, parent, point)
            del self.known[level]

        block.loop(f"{self.name}_c{level}", first, last, body)

    def _child(self, block: Block, at: int, point: Point, names: dict[str, Name]) -> None:
        functions = self.format.levels[at].format.functions
        c = block.let(f"{self.name}_c{at}", block.expr(functions.coordinate, **names))
        position = block.let(f"{self.name}_p{at}", block.expr(functions.position, **names | {"c": c}))
        coordinates = (*point.coordinates, c)
        dims = list(point.dims)
        for d in completed_dimensions(self.format, at):
            dims[d] = block.let(f"{self.name}_d{d}", self._dimension(d, coordinates))
        batch = point.batch
        if at < self.format.batch_ndim:
            row = fold("mul", batch, self.intervals[at].size) if batch is not None else const(0)
            batch = block.let(f"{self.name}_batch", fold("add", row, c))
            position = const(0) if at == self.format.batch_ndim - 1 else position
        child = Point(coordinates, (*point.positions, position), tuple(dims), batch)
        guards = self._guards(at, child)
        if not guards:
            self._level(block, at + 1, position, child)
            return
        test = guards[0]
        for guard in guards[1:]:
            test = op("and", test, guard)
        block.when(test, lambda inner: self._level(inner, at + 1, position, child))

    def _stored(self, block: Block, point: Point, position: Expr) -> None:
        leaf = position
        if point.batch is not None:
            stride = block.builder.scalar(f"{self.name}_vals_slice")
            leaf = block.let(f"{self.name}_leaf", fold("add", fold("mul", point.batch, stride), position))
        self.leaf(block, Point(point.coordinates, point.positions, point.dims, point.batch, leaf))

    def _buffers(self, block: Block, at: int, batch: Expr | None) -> dict[str, Name]:
        arrays: dict[str, Name] = {}
        for part, scalar in (("pos", self.operand.pos[at]), ("crd", self.operand.crd[at])):
            if scalar is None:
                continue
            array = block.builder.buffer(f"{self.name}_{part}{at}", scalar, wide=scalar != "bool")
            if batch is not None:
                stride = block.builder.scalar(f"{self.name}_{part}{at}_slice")
                offset = block.let(f"{self.name}_{part}{at}_begin", fold("mul", batch, stride))
                array = Array(array.name, scalar, array.wide, offset)
            arrays[part] = array
        return arrays

    def _dimension(self, d: int, coordinates: Sequence[Expr], skip: int = -1) -> Expr:
        """Dimension d of level coordinates, hoisted ones included, without the term of level `skip`."""
        total: Expr = const(0)
        for level, coefficient in self.format.inverse[d]:
            if level == skip:
                continue
            c = coordinates[level] if level < len(coordinates) else self.known[level]
            if coefficient < 0:
                total = fold("sub", total, fold("mul", c, const(-coefficient)))
            else:
                total = fold("add", total, fold("mul", c, const(coefficient)))
        return total

    def _overhanging_dimensions(self, at: int) -> list[int]:
        """The dimensions that level `at` completes and that may fall outside the shape there."""
        return [d for d in completed_dimensions(self.format, at) if self._may_overhang(d)]

    def _may_overhang(self, d: int) -> bool:
        form = self.format.inverse[d]
        if len(form) == 1 and self.format.levels[form[0][0]].expression == Dim(d):
            return False
        return self.operand.ragged or any(_is_skew(self.format.levels[level].expression) for level, _ in form)

    def _clipped_bounds(self, block: Block, at: int, point: Point) -> tuple[Expr, Expr]:
        """The level's interval, cut to the coordinates that keep every dimension inside its extent."""
        lo, hi = self.span if at == 0 and self.span is not None else (self.intervals[at].lo, self.intervals[at].hi)
        one = const(1)
        for d in self._overhanging_dimensions(at):
            factor = dict(self.format.inverse[d])[at]
            offset = block.let("rest", self._dimension(d, point.coordinates, at))
            last = fold("sub", self.extents[d], one)
            if factor > 0:
                first, end = fold("sub", const(0), offset), fold("sub", last, offset)
            else:
                first, end = fold("sub", offset, last), offset
            step = const(abs(factor))
            first = fold("floordiv", fold("add", first, const(abs(factor) - 1)), step)
            lo = fold("max", lo, first)
            upper = (
                fold("sub", self.extents[d], offset) if factor == 1 else fold("add", fold("floordiv", end, step), one)
            )
            hi = fold("min", hi, upper)
        if self.tile is not None and self.format.inverse[self.tile[0]] == ((at, 1),):
            lo, hi = fold("max", lo, self.tile[1]), fold("min", hi, self.tile[2])
        return block.let(f"{self.name}_first{at}", lo), block.let(f"{self.name}_last{at}", hi)

    def _guards(self, at: int, point: Point) -> list[Expr]:
        """Conditions on an element that the loop's bounds do not ensure already."""
        tests: list[Expr] = []
        if self.format.levels[at].format.functions.iterate is Iterate.POSITION:
            for d in self._overhanging_dimensions(at):
                value = point.dims[d]
                assert value is not None
                tests += [op("ge", value, const(0)), op("lt", value, self.extents[d])]
        if at == len(self.format.levels) - 1:
            for level in self.format.levels:
                if _size(level.expression) == 0:
                    here = point.coordinates[self.format.levels.index(level)]
                    tests.append(op("eq", coordinate_of(level.expression, point.at), here))
        return tests


def _is_skew(e: Expression) -> bool:
    while isinstance(e, Div | Mod):
        e = e.base
    return isinstance(e, Add | Sub)


def _size(e: Expression) -> int | None:
    """How many coordinates a remainder's level has, None without bound, 0 where not all of them are taken.

    In `i % 6 // 4`, `i % 6 % 4` six values of i spread over two times four slots: two slots stand for no value.
    """
    match e:
        case Div(base, c):
            size = _size(base)
            return size if not size else (size // c if size % c == 0 else 0)
        case Mod(base, c):
            size = _size(base)
            return c if size is None or (size and size % c == 0) else 0
    return None

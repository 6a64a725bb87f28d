"""The union of two rows -> a loop over blocks in vector lanes: an element's position is the number of those before it.

    while qA < eA and qB < eB:
        a = A_crd[qA : qA + 16]; b = B_crd[qB : qB + 16]     up to the row's end, and to the last coordinate that
        for k in range(number of b):                         both blocks reach
            r = k + number of a < B_crd[qB + k], less those of b before k that are in a too
            inB |= 1 << r                                    the places of b in the result, as bits
            alone |= (B_crd[qB + k] is not in a) << r
        inA = ~alone                                         as far as there are places
        for g in range(0, number of places, 8):
            out_vals[q + g : q + g + 8] = expand(A_vals, inA) + expand(B_vals, inB)     fill values where a bit is 0

With two fingers every step depends on the comparison of the step before. Here comparisons are made in vectors, and
those of different elements are independent. Elements stored past the last position are overwritten. More than two rows
are merged two at a time, in the expression's order (`subexpression_order`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...classes import frozen
from ...ir.loop import Cast, Expr, Var
from ...ir.ops import cast, const, op
from ...ir.rewrite import subexpressions
from ...ir.types import I64, SCALARS, Type, itemsize
from ..build import Block
from ..lattice import Point
from .branch_free import value_of
from .code_size import GROUP, LANES, MAX_CASE_OPERANDS
from .cursor import Cursor, Walker, truth_as_integer
from .merge_nest import MergeLevel, MergeNest
from .output import Place
from .subexpression_order import pairwise_union
from .workspace import Row

__all__ = ["union_in_vectors"]

Cursors = Mapping[str, Cursor]
_VECTORS = {scalar for scalar in SCALARS if itemsize(scalar) in (4, 8)} - {"c64"}


def union_in_vectors(nest: MergeNest, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> bool:
    """Emit the innermost level in vectors, where it is a union of few rows; returns whether that was done."""
    if not _is_applicable(nest, level, cursors):
        return False
    if len(level.walked) > 2:
        pairs = pairwise_union(nest, level, cursors)
        if pairs is not None:
            pairs(block, place)
        return pairs is not None
    _VectorUnion(nest, level, cursors, place, nest.walkers(block, level, cursors)).write(block)
    return True


def _is_applicable(nest: MergeNest, level: MergeLevel, cursors: Cursors) -> bool:
    """Whether something is stored wherever one of the rows is, and can be computed in vectors."""
    names, points = level.walked, level.lattice.points
    if (
        not nest.vectors
        or not 2 <= len(names) <= MAX_CASE_OPERANDS
        or not points
        or not nest.out.random_access
        or level.located
    ):
        return False
    first = points[0]
    if (
        first.walked != names
        or len(first.cases) < 2 ** len(names) - 1
        or not nest.is_branch_free(level, first, cursors)
    ):
        return False
    if any(e.type.is_complex or e.type.scalar in ("f16", "bf16") for e in subexpressions(nest.regions.expr)):
        return False
    sources = [(nest.sources[n], cursors[n]) for n in names]
    elements = {s.element_type for s, _ in sources}
    return all(s.contiguous(c) and not s.has_followers for s, c in sources) and elements <= _VECTORS


@frozen
class _Block:
    """A block of a row's coordinates: the vector, the mask of its valid lanes, and their number."""

    lanes: Expr
    mask: Expr
    count: Expr


class _VectorUnion:
    """The loops of one level."""

    def __init__(
        self, nest: MergeNest, level: MergeLevel, cursors: Cursors, place: Place, walkers: Mapping[str, Walker]
    ) -> None:
        self.nest, self.level, self.cursors, self.place, self.walkers = nest, level, cursors, place, walkers
        self.point: Point = level.lattice.points[0]
        scalars = {nest.sources[n].scalar(cursors[n]) for n in level.walked}
        self.scalar = scalars.pop() if len(scalars) == 1 else "i64"
        first, second = sorted(walkers, key=lambda n: not isinstance(nest.sources[n], Row))
        lanes = LANES if self.scalar == "i32" else LANES // 2
        self.lanes = {first: 2 * lanes if isinstance(nest.sources[first], Row) else lanes, second: lanes}
        self.counter = nest.out.counter(level.at)

    def write(self, block: Block) -> None:
        """The loop while both rows have elements left and full blocks can be read; then two fingers."""
        test: Expr = const(True, "bool")
        read: dict[str, Expr] = {}
        for walker in self.walkers.values():
            test = op("and", test, op("lt", walker.at, walker.end))
        for name, walker in self.walkers.items():
            fits, read[name] = self.nest.sources[name].coordinate_block(
                self.cursors[name], walker.at, self.lanes[name], GROUP
            )
            test = test if fits is None else op("and", test, fits)

        def step(inner: Block) -> None:
            blocks = self.cut(inner, read)
            bits, total = self.places(inner, blocks)
            self.expand(inner, bits, total)
            inner.assign(self.counter, op("add", self.counter, total))
            for name, walker in self.walkers.items():
                inner.assign(walker.at, op("add", walker.at, blocks[name].count))

        block.run("while TEST:\n    STEP", TEST=test, STEP=step)
        for point in self.level.lattice.points:
            self.nest.point(block, self.level, point, self.cursors, self.walkers, self.place)

    def cut(self, block: Block, read: Mapping[str, Expr]) -> dict[str, _Block]:
        """The next blocks, cut at the last coordinate of the block that ends first, unless it ends its row."""
        largest = const(2**31 - 1 if self.scalar == "i32" else 2**62, self.scalar)
        ends, limits = {}, []
        for name, walker in self.walkers.items():
            end = ends[name] = block.let(
                f"s{name}", op("min", op("add", walker.at, const(self.lanes[name])), walker.end)
            )
            last = self.coordinate(name, op("sub", end, const(1)))
            limits.append(block.let("limit", op("select", op("lt", end, walker.end), last, largest)))
        limit = block.let("limit", op("min", *limits))
        blocks = {}
        for name, walker in self.walkers.items():
            lanes = block.let(f"l{name}", self.narrow(read[name]))
            size = cast(op("sub", ends[name], walker.at), self.scalar)
            in_row = op("lt", op("ramp", cast(const(0, self.scalar), lanes.type)), size)
            mask = block.let(f"m{name}", op("and", in_row, op("le", lanes, limit)))
            blocks[name] = _Block(lanes, mask, block.let(f"n{name}", self.count(mask)))
        return blocks

    def places(self, block: Block, blocks: Mapping[str, _Block]) -> tuple[dict[str, Expr], Expr]:
        """The positions of each row's elements in the union, as bits, and the size of the union."""
        first, second = self.lanes
        a, b = blocks[first], blocks[second]
        second_bits, second_only, duplicates = (block.mut(name, const(0)) for name in ("held", "alone", "met"))

        def body(inner: Block, k: Var) -> None:
            c = inner.let("c", self.coordinate(second, op("add", self.walkers[second].at, k)))
            before = self.count(op("and", a.mask, op("lt", a.lanes, c)))
            alike = op("bits", op("and", a.mask, op("eq", a.lanes, c)))
            is_equal = inner.let("same", op("ne", alike, const(0)))
            r = inner.let("r", op("sub", op("add", k, before), duplicates))
            inner.assign(second_bits, op("bor", second_bits, _shifted(const(1), r)))
            inner.assign(second_only, op("bor", second_only, _shifted(truth_as_integer(op("not", is_equal)), r)))
            inner.assign(duplicates, op("add", duplicates, truth_as_integer(is_equal)))

        block.loop("k", const(0), b.count, body, ("novector", "nounroll"))
        total = block.let("n", op("sub", op("add", a.count, b.count), duplicates))
        all_bits = op("sub", _shifted(const(1), total), const(1))
        return {first: op("band", all_bits, op("bnot", second_only)), second: second_bits}, total

    def expand(self, block: Block, bits: Mapping[str, Expr], total: Expr) -> None:
        """The stores of coordinates and values, a group of positions at a time; some past the last are stored too."""
        nest, at = self.nest, self.level.at
        remaining = {n: block.mut(f"b{n}", x) for n, x in bits.items()}
        positions = {n: block.mut(f"j{n}", w.at) for n, w in self.walkers.items()}
        others = [n for n in self.cursors if n not in self.level.walked]
        constants = {n: block.let(f"v{n}", nest.sources[n].value(self.cursors[n].position, None)) for n in others}

        def group(inner: Block) -> None:
            numbers = op("ramp", cast(const(0), Type("i64", GROUP)))
            presence, values, coordinates = {}, dict(constants), []
            for n in self.level.walked:
                presence[n] = inner.let(f"in{n}", op("bit", cast(remaining[n], Type("i64", GROUP)), numbers))
                source, cursor = nest.sources[n], self.cursors[n]
                read = self.narrow(source.coordinate_block(cursor, positions[n], GROUP)[1])
                coordinates.append(op("expand", read, presence[n]))
                values[n] = inner.let(
                    f"v{n}", op("expand", source.elements(positions[n], cursor.batch, GROUP), presence[n])
                )
            c = inner.let("c", op("select", presence[self.level.walked[0]], *coordinates))
            value = value_of(inner, nest.regions, self.point, frozenset(others), values, presence)
            nest.out.store_vector(
                inner, at, self.counter_at(done), c, self.place, cast(value, value.type.with_lanes(GROUP))
            )
            for n in self.level.walked:
                count = op("popcount", op("band", remaining[n], const(2**GROUP - 1)))
                inner.assign(positions[n], op("add", positions[n], count))
                inner.assign(remaining[n], op("shr", remaining[n], const(GROUP)))
            inner.assign(done, op("add", done, const(GROUP)))

        done = block.mut("g", const(0))
        block.run("while TEST:\n    GROUP", TEST=op("lt", done, total), GROUP=group)

    def counter_at(self, done: Expr) -> Expr:
        return op("add", self.counter, done)

    # -- values ----------------------------------------------------------------------------------------------------

    def coordinate(self, name: str, q: Expr) -> Expr:
        return self.narrow(self.nest.sources[name].coordinate(self.cursors[name], q))

    def narrow(self, read: Expr) -> Expr:
        """Coordinates in the type that all of them have."""
        stored = read.arg if isinstance(read, Cast) and read.arg.type.scalar == self.scalar else read
        return cast(stored, self.scalar)

    def count(self, mask: Expr) -> Expr:
        """How many lanes are true."""
        return op("popcount", op("bits", mask))


def _shifted(value: Expr, by: Expr) -> Expr:
    return cast(op("shl", value, op("band", by, const(63))), I64)

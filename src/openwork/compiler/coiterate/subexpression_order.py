"""The innermost level of a co-iteration -> loops in the order of its subexpressions: products first, into workspaces.

A walk of all operands at once steps through every coordinate of each, also where an absent factor leaves nothing to
compute. Where nothing is computed without some operands, the innermost level is walked in steps instead:

    A * B + C        row W = A * B, by a walk of A and B; then W + C
    A * B + C + D    row W = A * B; where it is empty C + D, elsewhere W + C + D
    A * B * C * D    row of what A and B have in common, less what C lacks, less what D lacks; then the product of these
    (A + B) * (C + D)    rows A + B and C + D; then what they have in common
    (A + B) * C      what A has of C, what B has of C; then the merge of these and C
    A + B + ... + F  row W = A + B + C; then W + D + E + F: of many operands a few at a time

Rows are short and stay in the cache; most products leave them empty, and the steps that follow have nothing to do. The
kernel's size is linear in the operations, where the lattice of all operands is exponential in their number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...classes import frozen
from ...ir.loop import Expr, Var, map_expr
from ...ir.ops import const, op
from ..build import Array, Block
from ..fill import Regions
from ..fold import fold
from ..operand import ParamRef
from .code_size import MAX_CASE_OPERANDS
from .cursor import Cursor, Source
from .expression_tree import Node, names_of, node_of, required_operands
from .intersect_simd import OnMatch, Walk, intersect_in_vectors
from .merge_nest import MergeLevel, MergeNest
from .output import Place
from .workspace import Row, RowOutput, workspace

__all__ = ["pairwise_union", "walk_subexpressions"]

Cursors = Mapping[str, Cursor]


def walk_subexpressions(nest: MergeNest, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> bool:
    """Emit the innermost level in steps, where its expression has products; returns whether that was done."""
    if not _is_applicable(nest, level, cursors):
        return False
    regions = nest.regions
    root = node_of(regions.expr, regions.fills, regions.annihilate)
    walk = _SubexpressionWalk(nest, block, level, cursors)
    common = walk.needed(root)
    if common is None:
        return False
    parts = [] if len(common) > 1 else list(dict.fromkeys(p for part in root.parts for p in walk.parts(part)))
    if not parts and not common and (len(level.walked) > MAX_CASE_OPERANDS or _intersects(root)):
        parts = walk.small_parts(root)
    if parts:
        walk.into_rows(parts, place)
    elif common and len(level.walked) > 2:
        walk.intersected([n for n in level.walked if n in common], place)
    else:
        return False
    return True


def pairwise_union(nest: MergeNest, level: MergeLevel, cursors: Cursors) -> Callable[[Block, Place], None] | None:
    """The emitter of the innermost level two operands at a time, in the expression's order; None where that fails."""
    if level.at == 0 or not _is_applicable(nest, level, cursors):
        return None
    root = node_of(nest.regions.expr, nest.regions.fills, nest.regions.annihilate)
    parts = [p for p in dict.fromkeys(root.parts) if sum(n in level.walked for n in names_of(p)) > 1]
    if not parts or any(required_operands(p, level.walked, cursors) is None for p in parts):
        return None
    if _merges(root, level.walked) >= 2 * len(level.walked):
        return None

    return lambda block, place: _SubexpressionWalk(nest, block, level, cursors).into_rows(parts, place)


def _merges(node: Node, walked: Collection[str]) -> int:
    """The number of operations of parts that each have a walked operand: an operand that is repeated counts again."""
    with_operands = sum(not names_of(p).isdisjoint(walked) for p in node.parts)
    return (with_operands > 1) + sum(_merges(p, walked) for p in node.parts)


def _intersects(node: Node) -> bool:
    """Whether nothing is computed where one of two parts is absent."""
    return len(frozenset.intersection(*node.cases)) > 1 if node.cases else False


def _is_applicable(nest: MergeNest, level: MergeLevel, cursors: Cursors) -> bool:
    """Whether the level is the last of all operands, and those walked are ordered and unique there."""
    reduction = nest.merge.reduction
    if not nest.orders_subexpressions or nest.regions.masked or nest.regions.passed:
        return False
    if level.at != len(nest.order) - 1 or level.probed or len(level.walked) < 3:
        return False
    if reduction is not None and reduction.along is not None:
        return False
    moving = (*level.walked, *level.located)
    if any(c.depth + (n in moving) != nest.sources[n].nlevels for n, c in cursors.items()):
        return False
    return all(nest.sources[n].unique(cursors[n]) for n in level.walked)


@frozen
class _Matches:
    """A workspace of `count` coordinates that operands have in common, and the position of each operand there."""

    crd: Array
    count: Var
    size: Expr
    positions: dict[str, Array]

    def append(self, block: Block, c: Expr, positions: Mapping[str, Expr]) -> None:
        """Append a coordinate, with the operands' positions."""
        block.store(self.crd, self.count, c)
        for name, position in positions.items():
            block.store(self.positions[name], self.count, position)
        block.assign(self.count, op("add", self.count, const(1)))

    def restart(self, before: Sequence[str], name: str) -> OnMatch:
        """The handler of a match of this workspace and `name`: appends it, with the position in `name`."""

        def note(block: Block, c: Expr, k: Expr, q: Expr) -> None:
            positions = {n: block.let("p", self.positions[n].read(k)) for n in before}
            self.append(block, c, {**positions, name: q})

        return note


class _SubexpressionWalk:
    """The steps of one level."""

    def __init__(self, nest: MergeNest, block: Block, level: MergeLevel, cursors: Cursors) -> None:
        self.nest, self.block, self.level, self.cursors = nest, block, level, cursors
        self.bounds = nest.range if level.at == 0 else (None, None)

    def needed(self, node: Node) -> frozenset[str] | None:
        return required_operands(node, self.level.walked, self.cursors)

    def parts(self, node: Node) -> list[Node]:
        """The largest parts of a node that are products of what is walked."""
        common = self.needed(node)
        walked = sum(n in self.level.walked for n in names_of(node))
        is_product = common is not None and (len(common) > 1 or (walked > 2 and (bool(common) or _intersects(node))))
        if walked > 1 and is_product:
            return [node]
        return [p for part in node.parts for p in self.parts(part)]

    def small_parts(self, node: Node) -> list[Node]:
        """The largest proper parts of a node with so few operands that code can branch on their cases."""
        parts: list[Node] = []
        for part in node.parts:
            walked = sum(n in self.level.walked for n in names_of(part))
            fits = 1 < walked <= MAX_CASE_OPERANDS - 1 and part.fill is not None and self.needed(part) is not None
            parts += [part] if fits else self.small_parts(part) if walked > 1 else []
        return list(dict.fromkeys(parts))

    # -- parts into rows -------------------------------------------------------------------------------------------

    def into_rows(self, parts: Sequence[Node], place: Place) -> None:
        """Every part into a row of the workspace; then the merge of the rows and the remaining operands."""
        regions = self.nest.regions
        e, fills = regions.expr, dict(regions.fills)
        sources, cursors = dict(self.nest.sources), dict(self.cursors)
        for part in parts:
            name = self.nest.builder.fresh("W")
            sources[name] = self.row(part, name)
            cursors[name] = Cursor()
            assert part.fill is not None
            fills[name] = part.fill
            e = _replace(e, part.expr, Var(name, part.expr.type))
        names = names_of(node_of(e, fills, regions.annihilate))
        nest = copy.copy(self.nest)
        nest.sources = {n: s for n, s in sources.items() if n in names}
        known = {n: f for n, f in fills.items() if n in names}
        nest.regions = Regions(e, known, regions.fill, regions.annihilate)
        nest.prepare()
        remaining, at = {n: c for n, c in cursors.items() if n in names}, self.level.at
        if len(parts) > 1 or not self.is_mostly_empty(parts[0], names):
            nest.emit_level(self.block, at, remaining, place)
            return
        row, rest = nest.sources[name], {n: c for n, c in remaining.items() if n != name}
        assert isinstance(row, Row)
        is_empty = op("eq", row.count, const(0))
        self.block.when(
            is_empty, lambda b: nest.emit_level(b, at, rest, place), lambda b: nest.emit_level(b, at, remaining, place)
        )

    def is_mostly_empty(self, part: Node, names: Collection[str]) -> bool:
        """Whether the row of a part, a product, is mostly empty, so that a merge without it is worth a branch."""
        others = sum(n in self.level.walked for n in names)
        return self.nest.nest_per_case and bool(self.needed(part)) and 1 < others < MAX_CASE_OPERANDS

    def row(self, part: Node, name: str) -> Row:
        """One part of the expression, in a row."""
        regions, operands = self.nest.regions, names_of(part)
        size, scalar = op("add", self.size(part), const(1)), part.expr.type.scalar
        walked = [n for n in self.level.walked if n in operands]
        crd = workspace(self.nest.builder, f"{name}_crd", self.index(walked), size, wide=True)
        values = workspace(self.nest.builder, f"{name}_vals", scalar, size)
        nest = copy.copy(self.nest)
        nest.out = row_output = RowOutput(self.block, nest.out, self.level.at, crd, values, scalar)
        nest.sources = {n: s for n, s in nest.sources.items() if n in operands}
        fills = {n: f for n, f in regions.fills.items() if n in operands}
        nest.regions = Regions(part.expr, fills, part.fill, regions.annihilate)
        nest.prepare()
        cursors = {n: c for n, c in self.cursors.items() if n in operands}
        nest.emit_level(self.block, self.level.at, cursors, Place(const(0)))
        return Row(name, nest.order[self.level.at], crd, row_output.count, size, values.read)

    # -- what operands have in common ------------------------------------------------------------------------------

    def intersected(self, names: Sequence[str], place: Place) -> None:
        """The level where nothing is computed without `names`: the intersection of these, and of others the elements
        at coordinates of the intersection."""
        driver, *followers = names
        sources, cursors = dict(self.nest.sources), dict(self.cursors)
        if followers:
            matches = self.intersection(names)
            at = self.block.mut(f"q{driver}", const(0))
            sources[driver], cursors[driver] = self.matched_row(driver, matches, at), Cursor()
            for name in followers:
                position = matches.positions[name].read(at)
                cursors[name] = Cursor(self.nest.sources[name].nlevels, position, batch=self.cursors[name].batch)
        for name in self.level.walked:
            if name not in names:
                sources[name] = self.matched_row(name, self.filtered(name, sources[driver], cursors[driver]))
                cursors[name] = Cursor()
        nest = copy.copy(self.nest)
        nest.sources, nest.orders_subexpressions = sources, False
        nest.emit_level(self.block, self.level.at, cursors, place)

    def matched_row(self, name: str, matches: _Matches, at: Var | None = None) -> Row:
        """An operand restricted to the matches, as a row."""
        source, batch, positions = self.nest.sources[name], self.cursors[name].batch, matches.positions[name]
        e = self.nest.order[self.level.at]
        return Row(
            name, e, matches.crd, matches.count, matches.size, lambda q: source.value(positions.read(q), batch), at
        )

    def intersection(self, names: Sequence[str]) -> _Matches:
        """The intersection of operands: of the first two, then, in place, with each of the others."""
        first, second, *others = names
        matches = self.match_buffers(names)
        intersect_in_vectors(
            self.block,
            self.walk(first),
            self.walk(second),
            lambda b, c, p, q: matches.append(b, c, {first: p, second: q}),
        )
        for k, name in enumerate(others, 2):
            count = self.block.let("n", op("add", matches.count, const(0)))
            self.block.assign(matches.count, const(0))
            row = Row("W", self.nest.order[self.level.at], matches.crd, count, matches.size, matches.crd.read)
            intersect_in_vectors(
                self.block,
                Walk(row, Cursor(), row.restart(self.block)),
                self.walk(name),
                matches.restart(names[:k], name),
            )
        return matches

    def filtered(self, name: str, driver: Source, cursor: Cursor) -> _Matches:
        """The elements of an operand at the coordinates of another."""
        matches = self.match_buffers([name])
        driver_walker = (
            driver.restart(self.block) if isinstance(driver, Row) else driver.walker(self.block, cursor, *self.bounds)
        )
        intersect_in_vectors(
            self.block,
            Walk(driver, cursor, driver_walker),
            self.walk(name),
            lambda b, c, p, q: matches.append(b, c, {name: q}),
        )
        return matches

    def walk(self, name: str) -> Walk:
        source, cursor = self.nest.sources[name], self.cursors[name]
        return Walk(source, cursor, source.walker(self.block, cursor, *self.bounds))

    # -- room ------------------------------------------------------------------------------------------------------

    def match_buffers(self, names: Sequence[str]) -> _Matches:
        """Buffers for the intersection of operands: of the size of the shorter of the first two."""
        size, builder = self.least(map(self.length, names[:2])), self.nest.builder
        crd = workspace(builder, "W_crd", self.index(names), size, wide=True)
        positions = {n: workspace(builder, f"W_pos{n}", "i64", size) for n in names}
        return _Matches(crd, self.block.mut("n", const(0)), size, positions)

    def size(self, node: Node) -> Expr:
        """The largest number of elements that a node can have below one parent."""
        common = self.needed(node)
        if common:
            return self.least(self.length(n) for n in self.level.walked if n in common)
        if node.name is not None or common is None:
            return const(0)
        total: Expr = const(0)
        for part in node.parts:
            total = fold("add", total, self.size(part))
        return self.least([total])

    def least(self, sizes: Iterable[Expr]) -> Expr:
        """The least of some sizes and the extent."""
        least = self.nest.out.size(self.level.at)
        for size in sizes:
            least = op("min", least, size)
        return least

    def length(self, name: str) -> Expr:
        """The number of an operand's elements."""
        source = self.nest.sources[name]
        if isinstance(source, Row):
            return source.size
        return op("add", source.params.scalar(ParamRef("last", name, self.cursors[name].depth)), const(1))

    def index(self, names: Iterable[str]) -> str:
        """The type of coordinates."""
        scalars = set()
        for name in names:
            source = self.nest.sources[name]
            scalar = source.crd.scalar if isinstance(source, Row) else source.operand.crd[self.cursors[name].depth]
            scalars.add(scalar or "i64")
        return "i32" if scalars == {"i32"} else "i64"


def _replace(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else map_expr(e, lambda x: _replace(x, old, new))

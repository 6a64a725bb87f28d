"""A merge of many operands -> predicated loops: one body for all sets of operands that may be present.

Every operand has a truth value, whether it is at the coordinate; the children of an absent one are an empty range.
What is computed follows the expression, operation by operation:

    while qA < eA or qB < eB or qC < eC:               A + B * C
        cA = crd of A, or the largest number           cB, cC alike
        c = min(cA, cB, cC)
        inA = cA == c ...
        if inA or (inB and inC):
            out = (A_vals[qA] if inA else 0) + (B_vals[qB] * C_vals[qC] if inB and inC else 0)
        qA += inA ...

On the innermost level, where four operands or fewer are left to walk, the body branches on their cases all the same:
rows of absent operands are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...ir.loop import Const, Expr, Var
from ...ir.ops import const, op
from ..build import Block
from ..lattice import Lattice
from .branch_free import substitute
from .code_size import MAX_CASE_OPERANDS
from .cursor import Walker, both, truth_as_integer
from .expression_tree import Node, node_of
from .lower import Lowering
from .merge_nest import Cursors, MergeLevel
from .output import Place

__all__ = ["PredicatedLowering"]

LARGEST = const(2**62)
Truth = Expr | bool


def _and(a: Truth, b: Truth) -> Truth:
    if isinstance(a, bool) or isinstance(b, bool):
        return (b if a else False) if isinstance(a, bool) else (a if b else False)
    return op("and", a, b)


def _or(a: Truth, b: Truth) -> Truth:
    if isinstance(a, bool) or isinstance(b, bool):
        return (True if a else b) if isinstance(a, bool) else (True if b else a)
    return op("or", a, b)


class _Conditions:
    """The presence of operands at a coordinate -> conditions and values of the nodes of an expression."""

    def __init__(self, block: Block | None, presence: Mapping[str, Truth]) -> None:
        self.block, self.presence = block, presence
        self.known: dict[int, Truth] = {}

    def of(self, node: Node) -> Truth:
        """The condition that the node is something other than its fill value."""
        if node.name is not None:
            return self.presence.get(node.name, True)
        if node.fill is None:
            return True
        if id(node) not in self.known:
            condition = self._condition(node)
            self.known[id(node)] = (
                condition if isinstance(condition, bool) or self.block is None else self.block.let("on", condition)
            )
        return self.known[id(node)]

    def _condition(self, node: Node) -> Truth:
        absent = [k for k, p in enumerate(node.parts) if p.fill is not None]
        result: Truth = False
        for s in node.cases:
            if any(other < s for other in node.cases):  # one operation on more operands is something too
                continue
            case: Truth = True
            for k in absent:
                if k in s:
                    case = _and(case, self.of(node.parts[k]))
            result = _or(result, case)
        return result

    def value(self, node: Node, values: Mapping[str, Expr]) -> Expr:
        """The node's value where it is something other than its fill value."""
        if node.name is not None:
            return values[node.name]
        values_of_parts: dict[str, Expr] = {}
        for k, part in enumerate(node.parts):
            if isinstance(part.local, Const):
                continue
            value, on = self.value(part, values), self.of(part)
            always = part.fill is None or on is True or (node.fill is not None and all(k in s for s in node.cases))
            if not always:
                assert part.fill is not None
                value = part.fill if on is False else op("select", on, value, part.fill)  # type: ignore[arg-type]
            values_of_parts[f"c{k}"] = value
        return substitute(node.local, values_of_parts)


class PredicatedLowering(Lowering):
    """The lowering of a merge in which presence is a value."""

    nest_per_case = False

    def prepare(self) -> None:
        self.root = node_of(self.regions.expr, self.regions.fills, self.regions.annihilate)

    def presence(self, cursors: Cursors) -> dict[str, Truth]:
        return {n: True if c.presence is None else c.presence for n, c in cursors.items()}

    def enter_broadcast(self, block: Block, at: int, cursors: Cursors, inner: Callable[[Block, Cursors], None]) -> None:
        entered = dict(cursors)
        for name, source in self.sources.items():
            while not source.at_leaf(entered[name]) and source.counts(entered[name]) is None:
                child, present = source.locate_broadcast(block, entered[name])
                presence = entered[name].presence if present is None else both(entered[name].presence, present)
                entered[name] = replace(child, presence=None if presence is None else block.let(f"in{name}", presence))
        inner(block, entered)

    def emit_level(self, block: Block, at: int, cursors: Cursors, place: Place) -> None:
        if at == len(self.order) - 1 and self.has_few_cases(at, cursors):
            nest = Lowering.__new__(Lowering)
            nest.__dict__.update(self.__dict__)
            nest.emit_level(block, at, cursors, place)
            return
        if at < len(self.order):
            super().emit_level(block, at, cursors, place)
            return
        conditions = _Conditions(block, self.presence(cursors))
        condition = conditions.of(self.root)
        if condition is False:
            return
        value = conditions.value(self.root, {n: self.sources[n].value(c.position, c.batch) for n, c in cursors.items()})
        if isinstance(condition, bool):
            self.out.write(block, place, value)
        else:
            block.when(condition, lambda b: self.out.write(b, place, value))

    def has_few_cases(self, at: int, cursors: Cursors) -> bool:
        """Whether the last level branches on its cases: few operands, and only those that walk it may be absent."""
        walked, probed, _ = self.operands_at(at, cursors)
        return len(walked) + len(probed) <= MAX_CASE_OPERANDS and all(
            c.presence is None or n in walked for n, c in cursors.items()
        )

    def level(self, at: int, cursors: Cursors) -> MergeLevel:
        walked, probed, located = self.operands_at(at, cursors)
        absent = {**self.presence(cursors), **dict.fromkeys(walked, False)}
        every = _Conditions(None, absent).of(self.root) is not False
        return MergeLevel(at, walked, probed, located, Lattice((), (), every=every))

    def emit_counted(self, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> None:
        walkers = self.walkers(block, level, cursors)
        first, last = self.bounds(level.at)

        def body(inner: Block, c: Var) -> None:
            presence = {}
            for name, walker in walkers.items():
                matches = op("eq", self.sources[name].coordinate(cursors[name], walker.at), c)
                presence[name] = inner.let(f"in{name}", op("and", op("lt", walker.at, walker.end), matches))
            self.step(inner, level, cursors, walkers, presence, c, place)

        block.loop(self.hint(level.at), first, last, body)

    def emit_merge(self, block: Block, level: MergeLevel, cursors: Cursors, place: Place) -> None:
        self.union_loop(block, level, cursors, self.walkers(block, level, cursors), place)

    def union_loop(
        self, block: Block, level: MergeLevel, cursors: Cursors, walkers: Mapping[str, Walker], place: Place
    ) -> None:
        """The loop that goes on while any operand that matters has elements left."""
        has_more = {n: op("lt", w.at, w.end) for n, w in walkers.items()}
        test = _Conditions(None, {**self.presence(cursors), **has_more}).of(self.root)
        if isinstance(test, bool):
            assert not test
            return

        def body(inner: Block) -> None:
            coordinates = {}
            for name, walker in walkers.items():
                coordinate = self.sources[name].coordinate(cursors[name], walker.at)
                coordinates[name] = inner.let(f"c{name}", op("select", has_more[name], coordinate, LARGEST))
            c, *others = coordinates.values()
            for other in others:
                c = op("min", c, other)
            c = inner.let(self.hint(level.at), c)
            presence = {n: inner.let(f"in{n}", op("eq", x, c)) for n, x in coordinates.items()}
            self.step(inner, level, cursors, walkers, presence, c, place)

        block.run("while TEST:\n    BODY", TEST=test, BODY=body)

    def step(
        self,
        block: Block,
        level: MergeLevel,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        presence: Mapping[str, Expr],
        c: Expr,
        place: Place,
    ) -> None:
        """One coordinate: enter it with all operands, compute where something may be, advance those present."""
        entered = dict(cursors)
        for name in (*level.located, *level.probed):
            size, low = self.out.size(level.at), self.out.low(level.at)
            child, present = self.sources[name].locate(block, cursors[name], c, size, low)
            if present is not None:
                child = replace(child, presence=block.let(f"in{name}", both(cursors[name].presence, present)))
            entered[name] = child
        ends = {n: self.sources[n].segment(block, cursors[n], w, c) for n, w in walkers.items()}
        for name, walker in walkers.items():
            entered[name] = replace(
                self.sources[name].walked(cursors[name], walker, ends[name]), presence=presence[name]
            )
        self.enter(block, level.at, entered, c, place)
        for name, walker in walkers.items():
            end = ends[name]
            block.assign(walker.at, op("add", walker.at, truth_as_integer(presence[name])) if end is None else end)

    def enter(self, block: Block, at: int, cursors: Cursors, c: Expr, place: Place) -> None:
        visits_all = self.out.visits_all(at)
        condition = _Conditions(block, self.presence(cursors)).of(self.root)

        def case(inner: Block) -> None:
            self.entered(inner, at, cursors, c, place)

        if condition is True:
            case(block)
        elif not isinstance(condition, bool):
            parent = block.let("r", self.out.located(at, c, place)) if visits_all else const(0)
            block.when(condition, case, (lambda b: self.out.close_all(b, at, parent)) if visits_all else None)

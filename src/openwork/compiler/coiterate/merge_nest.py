"""A merge -> what its lowering shares with the ways to lower a level: operands, output, and the levels' operands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from ...classes import frozen
from ...ir.loop import Expr, Var
from ...ir.ops import const
from ..build import Block, Builder, Parameters
from ..lattice import Case, Lattice, Point
from .branch_free import is_cheap, only_present, substitute
from .cursor import Cursor, Source, Walker
from .merge import Merge
from .output import Output, Place
from .reduction import ReductionOutput
from .strided_operands import StridedSource

__all__ = ["Cursors", "MergeLevel", "MergeNest"]

Cursors = Mapping[str, Cursor]


@frozen
class MergeLevel:
    """One level of the nest: the operands that are walked, probed (may lack the coordinate) or located (never)."""

    at: int
    walked: tuple[str, ...]
    probed: tuple[str, ...]
    located: tuple[str, ...]
    lattice: Lattice
    driver: str | None = None
    """the operand that is walked alone, others being searched"""


class MergeNest:
    """The state of a merge's lowering, and what the ways to lower a level ask of it and call below."""

    nest_per_case = True
    """Whether each set of present operands has a nest of its own, so that an operand without a cursor is absent."""

    def __init__(self, name: str, merge: Merge, vectors: bool = True) -> None:
        self.merge, self.order, self.regions, self.vectors = merge, merge.order, merge.regions, vectors
        self.builder = Builder(name, ranged=True)
        self.params = Parameters()
        self.sources = {operand.name: Source(operand, self.params) for operand in merge.inputs}
        self.sources |= {operand.name: StridedSource(operand, self.order, self.params) for operand in merge.arrays}
        self.out = (
            Output(self.builder, merge.target) if merge.reduction is None else ReductionOutput(self.builder, merge)
        )
        self.range: tuple[Expr, Expr] = (const(0), const(0))
        self.orders_subexpressions = True
        self.prepare()

    def prepare(self) -> None:
        """Computes what the whole merge shares, for subclasses."""

    # -- what lowers a level, in `lower` ---------------------------------------------------------------------------

    @abstractmethod
    def emit_level(self, block: Block, at: int, cursors: Cursors, place: Place) -> None:
        """The nest from level `at` on, where no broadcast dimension comes first."""

    @abstractmethod
    def cases(
        self,
        block: Block,
        level: MergeLevel,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        ends: Mapping[str, Var | None],
        presence: dict[str, Expr],
        c: Expr,
        place: Place,
        cases: tuple[Case, ...],
        otherwise: Callable[[Block], None] | None = None,
    ) -> None:
        """Branch to the case at coordinate c. `presence`: conditions of operands; those without one are present."""

    @abstractmethod
    def point(
        self,
        block: Block,
        level: MergeLevel,
        point: Point,
        cursors: Cursors,
        walkers: Mapping[str, Walker],
        place: Place,
    ) -> None:
        """The loop of a lattice point."""

    # -- operands of a level ---------------------------------------------------------------------------------------

    def enter_broadcast(self, block: Block, at: int, cursors: Cursors, inner: Callable[[Block, Cursors], None]) -> None:
        """Enter the levels of broadcast dimensions; where the only coordinate is not stored, the operand is absent."""
        broadcast = (
            n for n, c in cursors.items() if not self.sources[n].at_leaf(c) and self.sources[n].counts(c) is None
        )
        name = next(broadcast, None)
        if name is None:
            inner(block, cursors)
            return
        child, present = self.sources[name].locate_broadcast(block, cursors[name])
        entered = {**cursors, name: child}
        if present is None:
            self.enter_broadcast(block, at, entered, inner)
            return
        others = {k: v for k, v in cursors.items() if k != name}
        block.when(
            present,
            lambda b: self.enter_broadcast(b, at, entered, inner),
            lambda b: self.enter_broadcast(b, at, others, inner),
        )

    def operands_at(self, at: int, cursors: Cursors) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The operands that take part in level `at`: those walked, those probed, those located."""
        walked: list[str] = []
        probed: list[str] = []
        located: list[str] = []
        for name, cursor in cursors.items():
            source = self.sources[name]
            if source.at_leaf(cursor) or source.counts(cursor) != self.order[at]:
                continue
            if source.is_walked(cursor):
                walked.append(name)
            else:
                (probed if source.probes(cursor) else located).append(name)
        return tuple(walked), tuple(probed), tuple(located)

    def substituted(self, body: Expr, cursors: Cursors) -> Expr:
        """The body with the elements at the cursors."""
        values = {n: self.sources[n].value(c.position, c.batch) for n, c in cursors.items()}
        return substitute(body, values)

    def bounds(self, at: int) -> tuple[Expr, Expr]:
        return self.range if at == 0 else (self.out.low(at), self.out.high(at))

    def walkers(self, block: Block, level: MergeLevel, cursors: Cursors) -> dict[str, Walker]:
        lower, upper = self.range if level.at == 0 else (None, None)
        return {n: self.sources[n].walker(block, cursors[n], lower, upper) for n in level.walked}

    def hint(self, at: int) -> str:
        return "ijklmnop"[at] if at < 8 else f"i{at}"

    def branch(
        self,
        block: Block,
        cases: tuple[Case, ...],
        names: list[str],
        presence: Mapping[str, Expr],
        case: Callable[[Block, Case], None],
        otherwise: Callable[[Block], None] | None,
    ) -> None:
        """An if-else chain over the cases: the first one whose operands, and no others, are present."""
        if not cases:
            if otherwise is not None:
                otherwise(block)
            return
        first_case, other_cases = cases[0], cases[1:]
        test = only_present(first_case, names, presence)
        if test is None:
            case(block, first_case)
            return
        following = (
            (lambda b: self.branch(b, other_cases, names, presence, case, otherwise))
            if other_cases or otherwise
            else None
        )
        block.when(test, lambda b: case(b, first_case), following)

    def is_branch_free(self, level: MergeLevel, point: Point, cursors: Cursors) -> bool:
        """Whether the point is a union of leaves that are appended, and cheap to compute for all cases alike."""
        if not self.out.appends_leaf(level.at) or level.probed or len(point.cases) < 2 or self.regions.guarded:
            return False
        if any(not self.sources[n].unique(cursors[n]) for n in point.walked):
            return False
        return self.are_leaves(level, cursors) and is_cheap(self.regions.expr)

    def are_leaves(self, level: MergeLevel, cursors: Cursors) -> bool:
        """Whether every operand ends with the level."""
        entered = {*level.walked, *level.located, *level.probed}
        return all(c.depth + (n in entered) == self.sources[n].nlevels for n, c in cursors.items())

"""Two formats -> the plan of a conversion: a few stages, printable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ...classes import frozen
from ...errors import FormatError
from ...format import build
from ...format.cached import cached
from ...format.expression import Dim, Expression, dimensions
from ...format.format import Format, Level
from .blocks import blocks_of, transpose_blocks
from .level_runs import Kind, Run, is_unique, runs, unbatched
from .order import follows, traversal

__all__ = ["Plan", "Stage", "Strategy", "plan"]


class Strategy(Enum):
    """How one stage assembles its result."""

    COPY = "copy"
    """both dense: a strided copy"""
    SCATTER = "scatter"
    """every position is computed: one walk"""
    APPEND = "append"
    """the walk is in the target's order already: a counting walk where needed, then one that fills"""
    BUCKET = "bucket"
    """a compressed level below located ones: histogram, scan, stable scatter; buckets sorted where needed"""
    GROUP = "group"
    """a compressed level with located ones below, the walk in the order of its parents: lists of children, sorted"""
    BLOCKS = "blocks"
    """the same dense levels at the end: the levels above them are converted, and blocks of values move"""
    SORT = "sort"
    """keys of target coordinates, radix sort, then append"""


@frozen
class Stage:
    """One pass from a format to another.

    unique : the elements that come in are distinct
    keep : equal elements stay apart
    drop : elements equal to the fill value are left out
    sort : in BUCKET, the walk does not leave the buckets sorted
    hoist : the source is walked row by row of its blocks, see `walk.hoisted`
    """

    strategy: Strategy
    source: Format
    target: Format
    unique: bool
    keep: bool
    drop: bool = False
    sort: bool = False
    hoist: bool = False

    def __str__(self) -> str:
        notes = [name for name in ("drop", "sort", "hoist") if getattr(self, name)]
        if not self.unique:
            notes.append("keep duplicates" if self.keep else "sum duplicates")
        return f"{self.strategy.value}: {self.source} -> {self.target}" + (f"  ({', '.join(notes)})" if notes else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of a conversion, first to last.

    wide : the single stage to use instead where the first level has many more coordinates than there are elements
    """

    stages: tuple[Stage, ...]
    wide: Stage | None = None

    def __str__(self) -> str:
        return "\n".join(map(str, self.stages)) or "nothing to do"


@cached(4096)
def plan(source: Format, target: Format) -> Plan:
    """The stages from `source` to `target`.

    Guarantees: a pure function of the formats; batch levels count as dense, and are relabelled at the end.
    """
    goal = unbatched(target)
    if source in (target, goal):
        return Plan(())
    unique = is_unique(source)
    parts = runs(goal)
    sparse = [run for run in parts if run.kind is not Kind.LOCATED]
    stage = Stage(Strategy.SORT, source, goal, unique, keep=not target.is_unique, drop=_drops(source, goal))
    if not sparse:
        plain = _is_plain(source) and _is_plain(goal)
        return Plan((replace(stage, strategy=Strategy.COPY if plain else Strategy.SCATTER),))
    order = _needed(goal, parts, sparse[-1], unique, stage.keep)
    if (append := _append(stage, order)) is not None:
        return Plan((append,))
    if (unique or stage.keep) and (blocks := _by_blocks(stage, order)) is not None:
        return Plan(blocks, stage if len(blocks) > 1 and parts[0].kind is not Kind.LOCATED else None)
    if _is_grouped(source, goal, parts):
        return Plan((replace(stage, strategy=Strategy.GROUP),))
    if (bucket := _bucket(stage, parts)) is not None:
        return Plan((bucket,))
    located = parts[0].last + 1 if parts[0].kind is Kind.LOCATED else 0
    intermediates = [_in_order(goal, located or 1, unique)]
    if located:
        intermediates.append(_by_parents(goal, located))
    two_stages = [stages for intermediate in intermediates if (stages := _through(intermediate, stage)) is not None]
    two_stages.sort(key=lambda stages: stages[0].sort)
    if two_stages:
        return Plan(two_stages[0], None if located else stage)
    return Plan((stage,))


def _drops(source: Format, target: Format) -> bool:
    return source.is_dense and any(level.format.buffers for level in target.levels)


def _append(stage: Stage, needed: list[Expression]) -> Stage | None:
    """The stage by appending, where the walk is in the order needed."""
    for hoist in (False, True):
        if follows(traversal(stage.source, hoist), needed):
            return replace(stage, strategy=Strategy.APPEND, hoist=hoist)
    return None


def _by_blocks(stage: Stage, needed: list[Expression]) -> tuple[Stage, ...] | None:
    """One stage that moves blocks, or two: blocks transposed, then walked row by row; None where neither applies."""
    block_stage = replace(stage, strategy=Strategy.BLOCKS)
    if blocks_of(stage.source, stage.target) is not None:
        return (block_stage,)
    transposed = transpose_blocks(stage.source)
    if transposed is None or blocks_of(stage.source, transposed) is None:
        return None
    rest = _append(replace(stage, source=transposed), needed)
    return None if rest is None else (replace(block_stage, target=transposed, keep=True), rest)


def _is_plain(format: Format) -> bool:
    return format.is_dense and all(isinstance(level.expression, Dim) for level in format.levels)


def _expressions(format: Format, first: int, last: int) -> list[Expression]:
    return [level.expression for level in format.levels[first : last + 1]]


def _needed(target: Format, parts: tuple[Run, ...], last: Run, unique: bool, keep: bool) -> list[Expression]:
    """The order that elements must come in to be appended."""
    needed = _expressions(target, 0, last.first - 1)
    merges = parts[-1].kind is Kind.LOCATED or not (unique or keep)
    distinct = [at for at in last.levels if at != last.last and target.levels[at].format.unique]
    free = _first_free(target, last)
    for at in last.levels:
        if not merges and at >= free and at > min(distinct, default=-1):
            break
        needed.append(target.levels[at].expression)
    return needed


def _first_free(target: Format, run: Run) -> int:
    """The first level of a run from which on no level is ordered: an ordered one requires the order of all above it."""
    return max((at + 1 for at in run.levels if target.levels[at].format.ordered), default=run.first)


def _is_grouped(source: Format, target: Format, parts: tuple[Run, ...]) -> bool:
    """Whether the target is one compressed level with located levels below, and the walk goes parent by parent."""
    chains = [run for run in parts if run.kind is not Kind.LOCATED]
    if len(chains) != 1 or parts[-1] in chains:
        return False
    (chain,) = chains
    if chain.first != chain.last or not target.levels[chain.first].format.is_compressed:
        return False
    return follows(traversal(source), _expressions(target, 0, chain.first - 1))


def _bucket(stage: Stage, parts: tuple[Run, ...]) -> Stage | None:
    """The stage by buckets, where the target is located levels and then one compressed chain."""
    if [run.kind for run in parts] != [Kind.LOCATED, Kind.CHAIN]:
        return None
    above, chain = parts
    levels = stage.target.levels
    if not levels[chain.first].format.is_compressed or any(levels[at].format.buffers for at in above.levels):
        return None
    if any(levels[at].format.unique for at in chain.levels if at != chain.last):
        return None
    located = _expressions(stage.target, above.first, above.last)
    inner = []
    free = _first_free(stage.target, chain)
    for at in chain.levels:
        if at >= free and (stage.unique or stage.keep):
            break
        inner.append(levels[at].expression)
    sort = not follows(traversal(stage.source), inner, located)
    return replace(stage, strategy=Strategy.BUCKET, sort=sort)


def _through(intermediate: Format | None, stage: Stage) -> tuple[Stage, ...] | None:
    """A counting sort into the format `intermediate`, and the stage from there to the target; None without one."""
    if intermediate is None or intermediate == stage.source:
        return None
    first = _bucket(replace(stage, target=intermediate, keep=True), runs(intermediate))
    rest = plan(intermediate, stage.target).stages
    if first is None or [s.strategy for s in rest] not in ([Strategy.APPEND], [Strategy.GROUP]):
        return None
    return first, replace(rest[0], unique=stage.unique, keep=stage.keep)


def _in_order(target: Format, located: int, unique: bool) -> Format | None:
    """A format in the target's order that a counting sort can assemble: one compressed chain below dense levels."""
    levels = [build.dense(level.expression) for level in target.levels[:located]]
    if any(level.format.is_bitmap for level in target.levels[:located]):
        return None
    return _chain(target, levels, [level.expression for level in target.levels[located:]], unique, ordered=True)


def _by_parents(target: Format, located: int) -> Format | None:
    """A format whose elements are ordered by parent, in the source's order inside."""
    if any(level.format.buffers for level in target.levels[:located]):
        return None
    levels = [build.dense(level.expression) for level in target.levels[:located]]
    above = {d for level in levels for d in dimensions(level.expression)}
    inner: dict[Expression, None] = {}
    for level in target.levels[located:]:
        level_dims = tuple(dimensions(level.expression))
        inner |= dict.fromkeys([level.expression] if above.intersection(level_dims) else map(Dim, level_dims))
    return _chain(target, levels, list(inner), False, ordered=False)


def _chain(
    target: Format, levels: list[Level], inner: list[Expression], unique: bool, *, ordered: bool
) -> Format | None:
    """`levels`, and below them one compressed chain; None where that is no format."""
    if not inner:
        return None
    try:
        return Format(target.dims, (*levels, *build.coordinates(inner, unique=unique, ordered=ordered)))
    except FormatError:
        return None

"""A stream of elements in the target's order -> the kernel that assembles the target by appending to its levels.

For each run of levels a variable holds the position appended last; an element begins a new position where its
coordinates, or its parent, differ from the last ones. A count pass gives the number of positions of every chain,
a fill pass writes pos, crd and values::

    if p != last_p or t1 != last_t1:          fresh: level 1 grows
        q += 1
        b_crd1[q] = t1
        b_pos1[p + 1] = q + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ...classes import define
from ...format.format import Format
from ...ir.loop import Expr, Kernel, Var
from ...ir.ops import const, op
from ..build import Array, Block, Builder, Name
from ..fold import fold
from ..intervals import Interval, intervals
from ..level_functions import position_at
from ..operand import Operand
from .level_runs import Kind, Run, runs
from .ranged import bind_range_number
from .stream import Element, Stream, extents_of

__all__ = [
    "STATUS_SLOTS", "STATUS_UNIQUE", "Pass", "append_kernel", "append_whole", "by_ranges", "holds_whole", "locate",
]  # fmt: skip

STATUS_SLOTS = 100
"""+ level: more elements than slots at parent `sizes[0]`"""
STATUS_UNIQUE = 200
"""+ level: a unique level with a singleton below has two elements at coordinate `sizes[0]`"""


class Pass(Enum):
    """The purpose of one pass over the elements."""

    COUNT = "count"
    FILL = "fill"
    CLEAR = "clear"
    """as FILL, but values become 0 where elements are about to be added to a nonzero fill"""


@define
class _State:
    """The variables of one run of levels."""

    run: Run
    q: Var
    parent: Var
    slot: Var | None
    last: tuple[Var, ...]


def append_kernel(
    name: str,
    stream: Stream,
    target: Operand,
    task: Pass,
    *,
    unique: bool,
    keep: bool,
    assembled: tuple[int, ...] | None,
    ranged: bool,
) -> Kernel:
    """The kernel of one pass; `unique`: the elements are distinct, `keep`: duplicates stay apart.

    COUNT writes the number of positions of run r into sizes[r]. FILL expects pos zeroed, the slots' crd at their
    sentinel, values at the fill value (wherever not every position is written). The crd of the levels `assembled`, and
    with `assembled` the values, are already there.

    Ranged, for targets of `by_ranges`: range r begins at position starts[r] of the chain, COUNT writes into ends[r]
    where it ends, and pos of an outermost chain is not written.
    """
    assert target.format is not None
    builder = Builder(name, ranged=ranged)
    extents = extents_of(builder, len(target.format.dims))
    top = builder.top
    spans = intervals(top, "b", target.format, extents)
    _Append(builder, target, spans, task, unique, keep, assembled).emit(top, stream)
    return builder.kernel()


def holds_whole(target: Format) -> bool:
    """Whether `append_whole` assembles the format: ordered levels, located ones first, and compressed chains below."""
    parts, levels = runs(target), target.levels
    chains = [run for run in parts if run.kind is Kind.CHAIN]
    if not chains or len(parts) - len(chains) > (parts[0].kind is Kind.LOCATED):
        return False
    for run in chains:
        if not levels[run.first].format.is_compressed or any(levels[at].format.unique for at in run.levels[:-1]):
            return False
    return target.is_ordered and not target.batch_ndim and not any(x.format.is_bitmap for x in levels)


def append_whole(name: str, stream: Stream, target: Operand, *, unique: bool, keep: bool) -> Kernel:
    """The kernel that assembles a target of `holds_whole` in one launch.

    unique, keep : whether elements are distinct, or stay apart; else those of equal coordinates, one after the other,
        are added

    The buffers have room for all elements, pos is zeroed. sizes[r] is then the number of positions of run r.
    """
    assert target.format is not None
    builder = Builder(name)
    top = builder.top
    spans = intervals(top, "b", target.format, extents_of(builder, len(target.format.dims)))
    append = _Append(builder, target, spans, Pass.FILL, unique, keep, None)
    append.emit(top, stream)
    append.close(top)
    return builder.kernel()


def by_ranges(source: Format, target: Format, *, unique: bool, keep: bool, hoist: bool = False) -> bool:
    """Whether ranges of the source's outermost level can be appended in parallel: every element is a new position of
    the one chain, and those of one parent are in one range. `hoist`: dense levels are walked before the compressed."""
    *above, last = runs(target)
    if hoist and source.levels[0].format.is_compressed:
        return False
    levels = target.levels
    if last.kind is not Kind.CHAIN or not levels[last.first].format.is_compressed or not (unique or keep):
        return False
    if any(levels[at].format.unique for at in last.levels if at != last.last):
        return False
    if not above:
        return True
    first = source.levels[0].format
    distinct_parents = first.unique or any(x.format.is_singleton for x in source.levels[1:2])
    aligned = levels[0].expression == source.levels[0].expression and not levels[0].format.buffers
    return last.first == 1 and distinct_parents and aligned


def locate(
    block: Block, target: Operand, run: Run, parent: Expr, spans: Sequence[Interval], element: Element, write: bool
) -> Expr:
    """The position of the element in a located run; sets the flags of bitmaps."""
    assert target.format is not None
    for at in run.levels:
        position = position_at(parent, element.coordinates[at], spans[at].lo, spans[at].size)
        parent = block.let(f"p{at}", position)
        scalar = target.crd[at]
        if scalar is not None and write:
            block.store(block.builder.buffer(f"b_crd{at}", scalar, mutable=True), parent, const(True, "bool"))
    return parent


class _Append:
    def __init__(
        self,
        builder: Builder,
        target: Operand,
        spans: Sequence[Interval],
        task: Pass,
        unique: bool,
        keep: bool,
        assembled: tuple[int, ...] | None,
    ) -> None:
        self.assembled, self.values = assembled or (), assembled is None
        assert target.format is not None
        self.builder, self.target, self.spans, self.task = builder, target, spans, task
        self.format = target.format
        self.runs = runs(self.format)
        self.unique, self.keep = unique, keep
        sparse = [r for r in self.runs if r.kind is not Kind.LOCATED]
        self.last = sparse[-1]
        self.suffix = self.runs[-1].kind is Kind.LOCATED

    def emit(self, top: Block, stream: Stream) -> None:
        if self.builder.ranged:
            bind_range_number(self.builder)
            top.env["starts"] = self.builder.buffer("starts", "i64")
        self.sizes = self.builder.buffer("sizes", "i64", mutable=True)
        self.states = {r: self._state(top, r) for r in self.runs if r.kind is not Kind.LOCATED}
        stream.emit(top, self.format, self.spans, self._element)
        for number, run in enumerate(self.runs):
            if run.kind is not Kind.CHAIN:
                continue
            end = fold("add", self.states[run].q, const(1))
            if self.builder.ranged:
                if self.task is Pass.COUNT:
                    top.run("ends[part] = end", ends=self.builder.buffer("ends", "i64", mutable=True), end=end)
            elif self.task is Pass.COUNT:
                top.store(self.sizes, const(number), end)
            elif run.first == 0 and self._pos_at(run) is not None:
                top.store(self._pos(run), const(1), end)

    def close(self, top: Block) -> None:
        """Complete pos at parents without children, and count the positions of chains."""
        parents: Expr = const(1)
        for number, run in enumerate(self.runs):
            if run.kind is not Kind.CHAIN:
                for at in run.levels:
                    parents = fold("mul", parents, self.spans[at].size)
                continue
            q = self.states[run].q
            top.store(self.sizes, const(number), fold("add", q, const(1)))
            if number and self.runs[number - 1].kind is not Kind.CHAIN:
                top.run(
                    "end: i64 = 0\nfor p in range(0, parents):\n    end = max(end, pos[p + 1])\n    pos[p + 1] = end",
                    parents=parents, pos=self._pos(run),
                )  # fmt: skip
            parents = top.let("parents", fold("add", q, const(1)))

    def _state(self, top: Block, run: Run) -> _State:
        def mut(base: str) -> Var:
            return top.mut(base, const(-1))

        last = () if self._always_fresh(run) and not self._strict(run) else tuple(mut(f"last{at}") for at in run.levels)
        slot = mut(f"slot{run.first}") if run.kind is Kind.SLOTS else None
        first = top.mut(f"q{run.first}", top.expr("starts[part] - 1")) if self.builder.ranged else mut(f"q{run.first}")
        return _State(run, first, mut(f"parent{run.first}"), slot, last)

    def _always_fresh(self, run: Run) -> bool:
        """Whether every element is a new position of `run`."""
        return run == self.last and not self.suffix and (self.unique or self.keep)

    def _strict(self, run: Run) -> int:
        """The number of leading levels whose coordinates must differ from element to element of one parent."""
        unique = [at for at in run.levels if at != run.last and self.format.levels[at].format.unique]
        return unique[0] - run.first + 1 if unique else 0

    def _element(self, block: Block, element: Element) -> None:
        self._descend(block, element, 0, const(0))

    def _descend(self, block: Block, element: Element, number: int, parent: Expr) -> None:
        if number == len(self.runs):
            if self.suffix:
                self._value(block, element, parent, add=not self.unique)
            return
        run = self.runs[number]
        if run.kind is Kind.LOCATED:
            position = locate(block, self.target, run, parent, self.spans, element, self.task is not Pass.COUNT)
            self._descend(block, element, number + 1, position)
            return
        state = self.states[run]
        if self._always_fresh(run):
            self._fresh(block, element, state, parent)
            self._value(block, element, state.q, add=False)
            return
        test = op("ne", parent, state.parent)
        for at, last in zip(run.levels, state.last, strict=True):
            test = op("or", test, op("ne", element.coordinates[at], last))
        leaf = run == self.last and not self.suffix

        def fresh(inner: Block) -> None:
            self._fresh(inner, element, state, parent)
            if leaf:
                self._value(inner, element, state.q, add=False)

        def duplicate(inner: Block) -> None:
            if leaf:
                self._value(inner, element, state.q, add=True)

        block.when(test, fresh, duplicate)
        if not leaf:
            self._descend(block, element, number + 1, block.let(f"at{run.first}", op("add", state.q, const(0))))

    def _fresh(self, block: Block, element: Element, state: _State, parent: Expr) -> None:
        """Append a position of the run: its coordinates, and the end of its parent."""
        run = state.run
        if strict := self._strict(run):
            self._refuse_equal(block, element, state, parent, strict)
        if state.slot is not None:
            block.assign(
                state.slot, block.expr("0 if p != last else slot + 1", p=parent, last=state.parent, slot=state.slot)
            )
            names: dict[str, Name] = {"slot": state.slot, "width": run.width, "p": parent}
            status = STATUS_SLOTS + run.first
            block.run(f"if slot >= width:\n    sizes[0] = p\n    return {status}", **names)
            block.assign(state.q, block.expr("p * width + slot", **names))
        else:
            block.assign(state.q, fold("add", state.q, const(1)))
        if self.task is not Pass.COUNT:
            for at in (x for x in run.levels if x not in self.assembled):
                block.store(self._crd(at), state.q, element.coordinates[at])
            if state.slot is None and run.first > 0:
                self._edges(block, state, parent)
        if (
            not self._always_fresh(run)
            or state.slot is not None
            or self._strict(run)
            or self.format.levels[run.first].format.is_loose
        ):
            block.assign(state.parent, parent)
        for at, last in zip(run.levels, state.last, strict=False):
            block.assign(last, element.coordinates[at])

    def _edges(self, block: Block, state: _State, parent: Expr) -> None:
        pos = self._pos(state.run)
        names: dict[str, Name] = {"pos": pos, "p": parent, "q": state.q, "last": state.parent}
        if self.format.levels[state.run.first].format.is_loose:
            block.run("if p != last:\n    pos[2 * p] = q\npos[2 * p + 1] = q + 1", **names)
        else:
            block.run("pos[p + 1] = q + 1", **names)

    def _refuse_equal(self, block: Block, element: Element, state: _State, parent: Expr, strict: int) -> None:
        test = op("eq", parent, state.parent)
        for at, last in list(zip(state.run.levels, state.last, strict=True))[:strict]:
            test = op("and", test, op("eq", element.coordinates[at], last))
        at = state.run.first + strict - 1
        status = STATUS_UNIQUE + at
        block.run(f"if test:\n    sizes[0] = c\n    return {status}", test=test, c=element.coordinates[at])

    def _value(self, block: Block, element: Element, position: Expr, add: bool) -> None:
        if self.task is Pass.COUNT or not self.values:
            return
        out = self.builder.buffer("b_vals", self.target.scalar, mutable=True)
        if self.task is Pass.CLEAR:
            block.store(out, position, const(0, self.target.scalar))
            return
        names: dict[str, Name] = {"out": out, "q": position}
        if element.value is None:
            names |= {"x": self.builder.buffer("a_vals", self.target.scalar), "leaf": element.leaf}
            value = "x[leaf]"
        else:
            names["x"] = element.value
            value = "x"
        block.run(f"out[q] {'+=' if add else '='} {value}", **names)

    def _pos_at(self, run: Run) -> str | None:
        return self.target.pos[run.first]

    def _pos(self, run: Run) -> Array:
        scalar = self._pos_at(run)
        assert scalar is not None
        return self.builder.buffer(f"b_pos{run.first}", scalar, mutable=True, wide=True)

    def _crd(self, at: int) -> Array:
        scalar = self.target.crd[at]
        assert scalar is not None
        return self.builder.buffer(f"b_crd{at}", scalar, mutable=True, wide=True)

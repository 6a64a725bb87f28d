"""The result of a merge that is reduced: coordinates and values in, updates of a strided array out.

    for i in range(lower, upper):
        acc = 0.0                                    in a register, below the last loop that moves in the result
        while qA < eA and qB < eB: ...
            acc += A_vals[qA] * B_vals[qB]
        out_vals[i] += acc

The result is initialised with the operation's identity. Where the outermost loop does not move in it, every chunk has a
private accumulator, `share` elements after that of the chunk before. `meta` holds the cuts of the chunks.
"""

from __future__ import annotations

from ...classes import frozen
from ...ir.loop import Expr, Var
from ...ir.ops import cast, const, op
from ..build import Array, Block, Builder
from ..conversion.level_runs import Run
from ..fold import fold
from ..intervals import gaps
from ..single.factors import identity
from .cursor import both
from .merge import Merge
from .output import Inner, Output, Place
from .strided_operands import strided_position

__all__ = ["ReductionOutput"]


@frozen
class _Accumulator:
    """One reduced quantity: its buffer, operation and scalar type."""

    buffer: Array
    op: str
    scalar: str


class ReductionOutput(Output):
    """Emits the reduction; no level of the loops is stored."""

    def __init__(self, builder: Builder, merge: Merge) -> None:
        super().__init__(builder, merge.target)
        assert merge.reduction is not None
        self.chains = []
        self.reduction, self.moves = merge.reduction, merge.reduction.moves
        self.last_moving = max((at for at, step in enumerate(self.moves) if step), default=-1)
        self.private = not self.moves or not self.moves[0]
        if self.reduction.along is not None:
            (operand,) = (g for g in merge.inputs if g.name == self.reduction.along)
            self.last_moving = max(at for at, e in enumerate(merge.order) if e in operand.levels)
            self.private = False
        reduce = self.reduction.op
        if merge.target.scalar == "bool":
            reduce = {"add": "or", "mul": "and"}.get(reduce, reduce)
        self.sums = [_Accumulator(self.values, reduce, merge.target.scalar)]
        if self.reduction.counts:
            self.sums.append(_Accumulator(builder.buffer("out_counts", "i64", mutable=True), "add", "i64"))
        self.registers: list[Var] = []

    def chain_below(self, at: int) -> Run | None:
        return None

    def visits_all(self, at: int) -> bool:
        return False

    def appends(self, at: int) -> bool:
        return False

    @property
    def random_access(self) -> bool:
        return False

    def begin(self, block: Block, t: Expr) -> tuple[Expr, Expr]:
        bounds = super().begin(block, t)
        self.start = block.let("first", fold("mul", t, self.builder.scalar("share"))) if self.private else const(0)
        if self.last_moving < 0:
            self._open(block)
        return bounds

    def finish(self, block: Block, t: Expr) -> None:
        if self.last_moving < 0:
            self._close(block, self.start)

    def enter(self, block: Block, at: int, c: Expr, place: Place, inner: Inner) -> None:
        parent = self.start if at == 0 else place.parent
        if self.reduction.along is not None:
            parent = const(0) if place.leaf is None else place.leaf
        moves, unit = self.moves[at], self.reduction.unit
        parent = block.let(
            "r", strided_position(parent, moves, c, unit, lambda d: self.builder.scalar(f"out_stride{d}"))
        )
        child = Place(parent, (*place.pending, c), place.leaf)
        opens = at == self.last_moving and at + 1 < len(self.moves)
        if not opens:
            inner(block, child)
            return
        self._open(block)
        inner(block, child)
        in_shape = self._in_shape(child) if self.reduction.along is None else None
        if in_shape is None:
            self._close(block, parent)
        else:
            block.when(in_shape, lambda here: self._close(here, parent))

    def appends_leaf(self, at: int) -> bool:
        return at == len(self.moves) - 1 and at > self.last_moving and not self.reduction.guards

    def store_if(self, block: Block, at: int, c: Expr, place: Place, value: Expr, condition: Expr | None) -> None:
        parts = [cast(value, self.sums[0].scalar), const(1)]
        for total, acc, part in zip(self.sums, self.registers, parts, strict=False):
            neutral = identity(total.op, total.scalar)
            block.assign(acc, op(total.op, acc, part if condition is None else op("select", condition, part, neutral)))

    def write(self, block: Block, place: Place, value: Expr) -> None:
        parts = [cast(value, self.sums[0].scalar), const(1)]

        def combine(inner: Block) -> None:
            for k, total in enumerate(self.sums):
                if self.registers:
                    acc = self.registers[k]
                    inner.assign(acc, op(total.op, acc, parts[k]))
                else:
                    position = self.start if not self.moves else place.parent
                    inner.store(total.buffer, position, op(total.op, total.buffer.read(position), parts[k]))

        in_shape = self._in_shape(place)
        if in_shape is None:
            combine(block)
        else:
            block.when(in_shape, combine)

    def _in_shape(self, place: Place) -> Expr | None:
        """Whether the coordinates that are known here are inside the shape; None where they always are."""
        test: Expr | None = None
        for dim in self.reduction.guards:
            coordinate = self._sum(self.format.inverse[dim], place)
            if coordinate is not None:
                test = both(test, op("ge", coordinate, const(0)))
                test = both(test, op("lt", coordinate, self.builder.scalar(f"e{dim}")))
        for gap in gaps(self.format) if self.reduction.guards else ():
            value = self._sum(gap.form, place)
            test = test if value is None else both(test, op("lt", value, const(gap.size)))
        return test

    def _sum(self, form: tuple[tuple[int, int], ...], place: Place) -> Expr | None:
        """A sum of the loops' coordinates; None where not all of them are known yet."""
        if any(k >= len(place.pending) for k, _ in form):
            return None
        total: Expr = const(0)
        for k, factor in form:
            total = fold("add", total, fold("mul", place.pending[k], const(factor)))
        return total

    def _open(self, block: Block) -> None:
        """Registers that hold the operations' identities."""
        self.registers = [block.mut("acc", identity(s.op, s.scalar)) for s in self.sums]

    def _close(self, block: Block, at: Expr) -> None:
        for total, acc in zip(self.sums, self.registers, strict=True):
            block.store(total.buffer, at, op(total.op, total.buffer.read(at), acc))
        self.registers = []

"""A statement with one sparse operand, and its schedule -> the kernel: one loop nest that walks this operand's levels.

The nest, outside in: dense indices that are not the vector index; the driver's levels down to where the output
is bound (`output_depth`); the loop over register tiles of the vector index; the driver's remaining levels, which are
pure reduction and add into registers; the store. Blocks (trailing levels of constant extent) are written out, so
that their coordinates are constants: no division or modulo appears anywhere.

A product is factored by depth: a factor is multiplied in at the level where its indices are bound, not below
(distributivity), which gives MTTKRP its nested accumulators.
"""

from __future__ import annotations

from functools import partial

from ...ir.index import Assignment
from ...ir.loop import Expr, Kernel
from ...ir.ops import const, op
from ..build import Block
from ..operand import Operand
from ..schedule import Schedule
from .nest import Walk
from .operand_nest import OperandNest
from .packed_groups import Reads, lower_packed, reads_of
from .short_rows import lower_short_rows

__all__ = ["lower_single_operand"]


def lower_single_operand(stmt: Assignment, operands: dict[str, Operand], plan: Schedule, compute: str) -> Kernel:
    """The kernel of `stmt` by the schedule `plan`, computing in the scalar type `compute`."""
    return _SingleOperand(stmt, operands, plan, compute).lower()


class _SingleOperand(OperandNest):
    """The kernel's nest; `block` is the part of the reads below the rows that the innermost loops are at, of panels."""

    block: Reads | None = None

    def lower(self) -> Kernel:
        self.outer(self.builder.top, Walk(), self.plan.outer)
        notes = (str(self.stmt), f"{self.plan.driver} = {self.fmt}")
        return self.builder.kernel(notes, reassociate=self.stmt.reduction in ("add", "mul"))

    def panels(self, block: Block, walk: Walk) -> None:
        """Panels of the outermost rows, within each the register tiles, and within these the rows for each block of the
        reads below them, whose operands stay in the first cache: what rows sum is added to the output."""
        lo, hi = self.nest.bounds(walk)
        reads = block.let("reads", reads_of(self))

        def panel(inner: Block, first: Expr) -> None:
            last = inner.let("last", op("min", op("add", first, const(self.plan.panel)), hi))
            self.nest.span = (first, last)
            self.tiled(inner, walk, blocks)

        def blocks(inner: Block, walk: Walk) -> None:
            inner.loop("start", const(0), op("max", reads, const(1)), rows, step=self.plan.reads)

        def rows(inner: Block, start: Expr) -> None:
            self.block = Reads.of(self, inner, start, reads)
            self.rows(inner, walk)

        block.loop("panel", lo, hi, panel, step=self.plan.panel)

    def descend(self, block: Block, walk: Walk) -> None:
        """The nest below `walk`: accumulators where their place is, then loops, blocks and the leaf."""
        plan, depth, nlevels = self.plan, walk.depth, self.fmt.nlevels
        if not self.stack and not self.shared and depth == plan.output_depth and depth < nlevels:
            (self.accumulated if plan.panel else partial(self.tiled, body=self.accumulated))(block, walk)
        elif self.stack and depth in self.split_depths() and self.stack[-1].depth < depth:
            self.nested(block, walk)
        elif depth == nlevels:
            self.leaf(block, walk)
        elif depth == plan.unrolled:
            self.blocks(block, walk)
        elif plan.run_reduce and depth == plan.output_depth - 1:
            self.segments(block, walk)
        elif plan.packed and depth == nlevels - 2:
            lower_packed(self, block, walk, self.block)
        elif plan.short and depth == nlevels - 2:
            lower_short_rows(self, block, walk)
        elif self.nest.is_walked(walk) and not self.nest.levels[depth].format.is_singleton:
            lanes = plan.gather if depth == nlevels - 1 and walk.lanes == 1 and not plan.run_reduce else 1

            def element(inner: Block, point: Walk, q: Expr) -> None:
                self.nest.enter(inner, point, self.descend, q=q)

            self.positions(block, walk, self.nest.bounds(walk), element, lanes, self.nest.position_hints)
        else:
            self.nest.each(block, walk, self.descend)

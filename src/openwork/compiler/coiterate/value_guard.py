"""A loop body -> the body under a condition on the operands' values: `where` over masked tensors, one branch missing.

if C_vals[qC]:                                  where(C, A, B), at a coordinate of C and A only
    out_vals[q] = A_vals[qA]
"""

from __future__ import annotations

from collections.abc import Callable

from ..build import Block
from ..fill import guarded
from .merge_nest import Cursors, MergeNest

__all__ = ["guarded_by_values"]


def guarded_by_values(nest: MergeNest, block: Block, at: int, cursors: Cursors, inner: Callable[[Block], None]) -> None:
    """Emit `inner` under the condition that the elements at the cursors, below level `at`, have a result."""
    if at + 1 < len(nest.order) or not nest.regions.guarded:
        inner(block)
        return

    def decide(b: Block, entered: Cursors) -> None:
        body = nest.regions.body(entered)
        test = None if body is None else guarded(body)[1]
        if test is None:
            inner(b)
        else:
            b.when(nest.substituted(test, entered), inner)

    nest.enter_broadcast(block, at + 1, cursors, decide)

"""Co-iteration: loop nests that walk several sparse operands together and assemble a sparse result."""

from ...ir.loop import Kernel
from .lower import Lowering
from .many import Many
from .problem import Merge

__all__ = ["MOST", "lower_merge"]

MOST = 4
"""Operands whose cases are told apart in the code; of more, presence is a value."""


def lower_merge(name: str, merge: Merge) -> Kernel:
    """The kernel of a merge: ranged over the chunks of its outermost loop, see `merge.output`."""
    return (Lowering if len(merge.inputs) <= MOST else Many)(name, merge).lower()

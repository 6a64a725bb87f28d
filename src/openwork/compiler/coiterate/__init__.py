"""Co-iteration: loop nests that walk several sparse operands together and assemble a sparse result."""

from ...ir.loop import Kernel
from .lower import Lowering
from .predicated import PredicatedLowering
from .problem import Merge
from .size import MAX_CASE_OPERANDS, has_nest_per_case

__all__ = ["MAX_CASE_OPERANDS", "lower_merge"]


def lower_merge(name: str, merge: Merge, vectors: bool = True) -> Kernel:
    """The kernel of a merge: ranged over the chunks of its outermost loop, see `merge.output`.

    vectors: unions are merged in vectors, for a processor that puts lanes in their places by one instruction.
    """
    return (Lowering if has_nest_per_case(merge) else PredicatedLowering)(name, merge, vectors).lower()

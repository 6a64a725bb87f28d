"""A `Merge` -> its kernel: a loop nest that co-iterates several sparse operands and assembles a sparse result."""

from ...ir.loop import Kernel
from .code_size import MAX_CASE_OPERANDS, has_nest_per_case
from .lower import Lowering
from .merge import Merge
from .predicated import PredicatedLowering

__all__ = ["MAX_CASE_OPERANDS", "lower_merge"]


def lower_merge(name: str, merge: Merge, vectors: bool = True) -> Kernel:
    """The kernel of a merge: ranged over the chunks of its outermost loop, see `output`.

    vectors: unions are merged in vectors, for a processor with an instruction that expands lanes by a mask.
    """
    return (Lowering if has_nest_per_case(merge) else PredicatedLowering)(name, merge, vectors).lower()

"""The format of a conversion's target -> runs of levels that are assembled together.

located   dense, bitmap, range: the position of a coordinate is computed
chain     compressed or loose_compressed, with the singletons below it: one new position per element
slots     ell, structured, or a singleton below located levels, with the singletons below: k positions per parent
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import cache

from ...classes import frozen
from ...errors import UnsupportedError
from ...format import build
from ...format.cached import cached
from ...format.format import Format
from ...format.level import Insert

__all__ = ["Kind", "Run", "is_unique", "runs", "unbatched"]


class Kind(Enum):
    LOCATED = "located"
    CHAIN = "chain"
    SLOTS = "slots"


@frozen(eq=False)
class Run:
    """Levels first to last (inclusive) of a format; `width` is the slots per parent. Made once per format."""

    kind: Kind
    first: int
    last: int
    width: int = 0

    @property
    def levels(self) -> range:
        return range(self.first, self.last + 1)


@cache
def runs(format: Format) -> tuple[Run, ...]:
    """The runs of a format's levels, outermost first."""
    result: list[Run] = []
    for at, level in enumerate(format.levels):
        functions = level.format.functions
        above = result[-1].kind if result else Kind.LOCATED
        width = 0
        if functions.insert is Insert.LOCATE:
            kind = Kind.LOCATED
        elif functions.branchless and above is not Kind.LOCATED:
            result[-1] = replace(result[-1], last=at)
            continue
        elif functions.branchless or functions.insert is Insert.SLOT:
            kind, width = Kind.SLOTS, level.format.slots or 1
        elif level.format.is_compressed or level.format.is_loose:
            kind = Kind.CHAIN
        else:
            raise UnsupportedError(
                f"{format}: nothing can be appended to level {at} ({level.format})\n"
                "  expected: pos of parents + 1 or 2 * parents positions, slots, or positions that are located\n"
                "  help: asformat() to a format of other levels"
            )
        if kind is Kind.LOCATED and result and above is Kind.LOCATED:
            result[-1] = replace(result[-1], last=at)
        else:
            result.append(Run(kind, at, at, width))
    return tuple(result)


@cached(4096)
def unbatched(format: Format) -> Format:
    """The format with dense levels for batch levels."""
    if not format.batch_ndim:
        return format
    levels = [build.dense(x.expression) if x.format.batched else x for x in format.levels]
    return Format(format.dims, tuple(levels))


@cache
def is_unique(format: Format) -> bool:
    """Whether no element can be stored twice, wherever the duplicate would come from."""
    return all(format.levels[run.last].format.unique for run in runs(format))

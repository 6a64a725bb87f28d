"""Coordinates of an n:m level, a few bits each -> the words that hold them side by side, and the kernel that packs.

The positions of a level `structured(n, m)` below a dense one, `j // m : dense, j % m : structured(n, m)`, are cut where
the parents of the dense level end. Each parent's coordinates fill words of their own, lowest bits first::

    word w of parent p holds the coordinates at positions p * row + w * 64 // bits and following, of `bits` bits each

so that a kernel reads 2 of 4 columns in 2 bits instead of a byte, and 16 of them at once.
"""

from __future__ import annotations

from ..format.expression import Dim, Div, Mod
from ..format.format import Format

__all__ = ["PACK", "WORD", "coordinate_bits"]

WORD = 64
"""Bits of a word."""

PACK = """
def pack(parents: i64, row: i64, words: i64, crd: T[const], packed: u64[mut]):
    for p in range(0, parents):
        for w in range(0, words):
            word: u64 = 0
            first = w * PER
            for k in range(0, min(PER, row - first)):
                word |= (u64(crd[p * row + first + k]) & u64(MASK)) << u64(k * BITS)
            packed[p * words + w] = word
"""
"""The kernel that packs `row` coordinates of each parent, of BITS bits, PER a word."""


def coordinate_bits(fmt: Format, ragged: bool) -> int | None:
    """The bits of a packed coordinate of a format's last level; None where that is no n:m level, of a power of two up
    to 16, below the dense level of the same dimension's quotients by m, or where blocks stick out of the shape."""
    if fmt.nlevels < 2 or ragged or fmt.batch_ndim or not _divides(fmt):
        return None
    n, m = fmt.levels[-1].format.arguments
    return (2 if m <= 4 else 4) if m <= 16 and not m & (m - 1) and n < m else None


def _divides(fmt: Format) -> bool:
    above, last = fmt.levels[-2:]
    quotient, remainder = above.expression, last.expression
    return (
        above.format.is_dense
        and last.format.is_structured
        and isinstance(quotient, Div)
        and isinstance(quotient.base, Dim)
        and isinstance(remainder, Mod)
        and quotient.base == remainder.base
        and quotient.divisor == remainder.divisor == last.format.arguments[-1]
    )

"""Sizes of a merge's operands -> for each loop the operand that is far shorter than the others, to gallop in these.

The choice is part of a kernel's key: a kernel that searches long operands for the elements of a short one is another
than that of operands of about equal length, which costs nothing more than without the choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ... import tuning
from ...classes import frozen
from ...format.expression import Expression
from ...format.format import Format
from ...format.level import Iterate
from ..coiterate import MAX_CASE_OPERANDS
from ..coiterate.merge_formats import Dims, levels_in_order
from ..fill import Regions

__all__ = ["Drivers", "GallopChooser", "gallop_chooser_of"]

Drivers = tuple[str | None, ...]
"""For each loop the operand that is walked alone, the others being searched; empty where there is none in any loop."""

RATIO = tuning.GALLOP_RATIO
SMALL = tuning.GALLOP_SMALL


@frozen
class GallopChooser:
    """Facts of a plan that decide the choice: for each loop the operands that take part, by number, and their levels.

    names : of the operands without which nothing is computed, by number
    full : loops that visit every coordinate, from the outermost on
    """

    names: Mapping[int, str]
    loops: tuple[tuple[tuple[int, int], ...], ...]
    full: int

    def none_pays(self, total: int, shape: tuple[int, ...]) -> bool:
        """Whether one kernel serves operands of so many elements together."""
        return total <= SMALL and (not self.full or max(shape) <= SMALL)

    def drivers(self, counts: Sequence[Sequence[int]], shape: tuple[int, ...], target: Format) -> Drivers:
        """The operand to walk alone in each loop. counts: of each operand, bounds of each level's coordinates that have
        elements below"""
        extents = [hi - lo for lo, hi in target.level_intervals(shape)]
        drivers: list[str | None] = []
        for at, members in enumerate(self.loops):
            sizes = {k: counts[k][level] for k, level in members}
            shortest = min((k for k in sizes if k in self.names), key=sizes.__getitem__, default=None)
            visited = math.prod(extents[: at + 1]) if at < self.full else 0
            longest = max(visited, *sizes.values(), 0)
            gallops = shortest is not None and longest > SMALL and RATIO * sizes[shortest] < longest
            drivers.append(self.names[shortest] if gallops and shortest is not None else None)
        return tuple(drivers) if any(drivers) else ()


def gallop_chooser_of(
    regions: Regions, formats: Mapping[str, Format], dims: Mapping[str, Dims], order: Sequence[Expression],
    visited: int = 0,
) -> GallopChooser | None:  # fmt: skip
    """The chooser for operands of these formats; None where no operand can be walked alone.

    visited : the number of outermost loops that visit every coordinate, as the result stores a pos for each
    """
    if len(formats) < 2 or len(formats) > MAX_CASE_OPERANDS:
        return None
    names = {k: n for k, n in enumerate(formats) if regions.needs(n)}
    if not names:
        return None
    levels = [levels_in_order(f, dims[n], order) or () for n, f in formats.items()]
    loops = tuple(tuple((k, counted.index(e)) for k, counted in enumerate(levels) if e in counted) for e in order)
    kinds = [f.levels for f in formats.values()]
    located = [all(kinds[k][at].format.functions.iterate is Iterate.COORDINATE for k, at in loop) for loop in loops]
    full = next((at for at, is_located in enumerate(located) if not is_located), len(located))
    return GallopChooser(names, loops, max(full, visited))

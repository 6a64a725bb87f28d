"""Sizes of a merge's operands -> the ones far shorter than the others, which are part of a kernel's key.

A kernel that searches long operands for the elements of a short one is another kernel than that of operands that are
about as long, which costs nothing more than before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import tuning
from ...compiler.coiterate import MAX_CASE_OPERANDS
from ...compiler.coiterate.target import Dims, levels_in_order
from ...compiler.fill import Regions
from ...format.expression import Expression
from ...format.format import Format
from ...format.level import Iterate
from ...storage.storage import Storage

__all__ = ["Leads", "GallopChooser", "scout"]

Leads = tuple[str | None, ...]
"""For each loop the operand that leads; empty where none does anywhere."""

RATIO = tuning.GALLOP_RATIO
SMALL = tuning.GALLOP_SMALL
KEPT = 256
"""Sizes whose leaders are kept."""


@dataclass(frozen=True, slots=True)
class GallopChooser:
    """What has to be known of a plan: for each loop the operands that take part, by number, and their levels there.

    names : of the operands without which nothing is computed, by number
    full : loops that visit every coordinate, from the outermost on
    """

    names: Mapping[int, str]
    loops: tuple[tuple[tuple[int, int], ...], ...]
    full: int
    known: dict[Any, Leads] = field(default_factory=dict, compare=False, repr=False)
    """what was found for sizes of before"""

    def leads(self, storages: Sequence[Storage], shape: tuple[int, ...], target: Format) -> Leads:
        """The operand that leads each loop."""
        most = 0
        for s in storages:
            most += s.values.shape[0]
        if most <= SMALL and (not self.full or max(shape) <= SMALL):
            return ()
        counts = tuple([_counts(s) for s in storages])
        found = self.known.get((shape, counts))
        if found is None:
            if len(self.known) >= KEPT:
                self.known.clear()
            found = self.known[shape, counts] = self._leads(counts, shape, target)
        return found

    def _leads(self, counts: tuple[tuple[int, ...], ...], shape: tuple[int, ...], target: Format) -> Leads:
        extents = [hi - lo for lo, hi in target.level_intervals(shape)]
        found: list[str | None] = []
        for at, members in enumerate(self.loops):
            sizes = {k: counts[k][level] for k, level in members}
            mine = min((k for k in sizes if k in self.names), key=sizes.__getitem__, default=None)
            visited = math.prod(extents[: at + 1]) if at < self.full else 0
            longest = max(visited, *sizes.values(), 0)
            leads = mine is not None and longest > SMALL and RATIO * sizes[mine] < longest
            found.append(self.names[mine] if leads and mine is not None else None)
        return tuple(found) if any(found) else ()


def scout(
    regions: Regions, formats: Mapping[str, Format], dims: Mapping[str, Dims], order: Sequence[Expression],
    covered: int = 0,
) -> GallopChooser | None:  # fmt: skip
    """What to look at, for operands of these formats; None where nothing can lead.

    covered : the outermost loops that the result has a place for every coordinate of
    """
    if len(formats) < 2 or len(formats) > MAX_CASE_OPERANDS:
        return None
    names = {k: n for k, n in enumerate(formats) if regions.needs(n)}
    if not names:
        return None
    levels = [levels_in_order(f, dims[n], order) or () for n, f in formats.items()]
    loops = tuple(tuple((k, own.index(e)) for k, own in enumerate(levels) if e in own) for e in order)
    kinds = [f.levels for f in formats.values()]
    located = [all(kinds[k][at].format.functions.iterate is Iterate.COORDINATE for k, at in loop) for loop in loops]
    full = next((at for at, every in enumerate(located) if not every), len(located))
    return GallopChooser(names, loops, max(full, covered))


def _counts(s: Storage) -> tuple[int, ...]:
    """How many coordinates of each level have elements below them, at most."""
    found: tuple[int, ...] | None = s.plans.facts.get("counts")
    if found is None:
        counts = list(s.positions)
        for k in range(len(counts) - 2, -1, -1):
            if s.format.levels[k].format.functions.iterate is Iterate.COORDINATE:
                counts[k] = min(counts[k], counts[k + 1])
        found = s.plans.facts["counts"] = tuple(counts)
    return found

"""The storages of a merge's operands -> for each loop the operand to walk alone, see `compiler.schedule.gallop`."""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.schedule.gallop import Drivers, GallopChooser
from ...format.format import Format
from ...format.level import Iterate
from ...storage.storage import Storage

__all__ = ["drivers_of"]


def drivers_of(
    chooser: GallopChooser | None, storages: Sequence[Storage], shape: tuple[int, ...], target: Format
) -> Drivers:
    """The operand to walk alone in each loop, for storages of these sizes."""
    if chooser is None:
        return ()
    total = 0
    for s in storages:
        total += s.values.shape[0]
    return () if chooser.none_pays(total, shape) else chooser.drivers([_counts(s) for s in storages], shape, target)


def _counts(s: Storage) -> tuple[int, ...]:
    """Upper bounds of the coordinates of each level that have elements below."""
    known_counts: tuple[int, ...] | None = s.facts.get("counts")
    if known_counts is None:
        counts = list(s.positions)
        for k in range(len(counts) - 2, -1, -1):
            if s.format.levels[k].format.functions.iterate is Iterate.COORDINATE:
                counts[k] = min(counts[k], counts[k + 1])
        known_counts = s.facts["counts"] = tuple(counts)
    return known_counts

"""An expression and its operands -> the prepared call of their merge, in a slot of the first operand's structure.

Its key names the other structures by the numbers of their plans, which are never given again: it keeps none of them
alive, and never means another one. Launches serve all tensors of the types and the shape, so that new structures of
known types cost a look-up more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import tuning
from ...codegen.plan_cache import PlanCache
from ...compiler.schedule.coiterate import MergeSchedule
from ...compiler.schedule.gallop import Drivers
from ...storage.buffers import scalar_of
from ...storage.equal_coordinates import equal_coordinates
from ...storage.storage import Storage
from ...storage.structure import keep
from .. import trace
from .gallop_choice import drivers_of
from .plan import Compiled, MergePlan, compiled, kept_plan
from .single_chain import SingleChain, single_chain

__all__ = ["Launch", "PreparedMerge", "launch_of", "prepared_merge"]

BY_TYPES, BY_STRUCTURE = "for operands of these formats, types and shapes", "with the structures"
COMPARED = tuning.STRUCTURES_COMPARED


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch for operands of given signatures and a shape, complete but for addresses and sizes."""

    kernel: Compiled
    spans: tuple[tuple[int, int], ...]
    extents: dict[str, int]
    single_chain: SingleChain | None


LAUNCHES: PlanCache[Any, Launch] = PlanCache("launches of merges")
"""By plan, shape, the operands that are walked alone, and signatures where operands are converted."""


def launch_of(plan: MergeSchedule, storages: tuple[Storage, ...], shape: tuple[int, ...]) -> Launch:
    """The launch for operands that follow the order of the plan's loops."""
    drivers = drivers_of(plan.gallop_chooser, storages, shape, plan.target)
    key = (plan, shape, drivers, *([s.signature for s in storages] if plan.converts else ()))
    return LAUNCHES.get(key) or LAUNCHES.keep(key, _launch(plan, storages, shape, drivers))


def _launch(plan: MergeSchedule, storages: tuple[Storage, ...], shape: tuple[int, ...], drivers: Drivers) -> Launch:
    spans = plan.target.level_intervals(shape)
    largest = max((max(-lo, hi) for lo, hi in spans), default=0)
    kernel = compiled(plan, storages, _width(storages, largest), drivers)
    extents = {f"n{at}": hi - lo for at, (lo, hi) in enumerate(spans)}
    extents |= {f"lo{at}": lo for at, (lo, _) in enumerate(spans)}
    return Launch(kernel, spans, extents, single_chain(plan, kernel, spans, storages, shape))


def _width(storages: tuple[Storage, ...], largest: int) -> str:
    """The type of the result's indices: the widest of the operands', i64 where coordinates or positions need it."""
    widths = {scalar_of(b) for s in storages for b in (*s.pos, *s.crd) if b is not None} - {"bool"}
    if "i64" in widths or largest >= 2**31 - 1 or (not widths and storages[0].library == "torch"):
        return "i64"
    return "i32"


class PreparedMerge:
    """The prepared call of a merge of operands of given structures.

    schedule : and `warnings`, `operands_warn`: the parts of its `MergePlan`
    constants : the fill values that its kernel is passed
    one_structure : whether operands and result have one structure, on which the library computes with the values
    keeps_kind : whether the result has the first operand's library, NumPy, and its scalar type and fill value
    recalled : where an earlier call left something prepared, for `explain`; "" before the first one
    index_maps : where the elements of the result are from, once gradients have asked for it
    """

    __slots__ = (
        "_chain",
        "constants",
        "index_maps",
        "keeps_kind",
        "one_structure",
        "operands_warn",
        "recalled",
        "schedule",
        "shape",
        "warnings",
    )  # fmt: skip

    def __init__(self, plan: MergePlan, storages: tuple[Storage, ...], shape: tuple[int, ...]) -> None:
        schedule, self.warnings, self.operands_warn = plan
        self.schedule, self.shape, self.recalled = schedule, shape, ""
        self.one_structure = schedule.same_structure and _have_one_structure(storages)
        self.constants = tuple([np.array([x]) for x in schedule.constants.values()]) if schedule.constants else ()
        self._chain: SingleChain | None = None
        first = storages[0]
        self.keeps_kind = type(first.values) is np.ndarray and schedule.scalar == first.scalar
        self.keeps_kind = self.keeps_kind and repr(schedule.fill) == repr(first.fill_value)
        self.index_maps: Any = None
        if not self.one_structure and not schedule.converts:
            drivers = drivers_of(schedule.gallop_chooser, storages, shape, schedule.target)
            launch = LAUNCHES.get((schedule, shape, drivers))
            if launch is not None:
                self.recalled, self._chain = BY_TYPES, launch.single_chain

    def bind(self, launch: Launch) -> None:
        """Take this launch from now on, which is one of the operands as they are."""
        self._chain = launch.single_chain

    def run(self, storages: tuple[Storage, ...], numbers: Sequence[Any] = ()) -> tuple[Storage, bool] | None:
        """The result for values on these structures, and whether NumPy would certainly warn of nothing; None where
        more is to be done than a launch. numbers: arrays of the plan's numbers, one each"""
        if self._chain is None or trace.steps:
            return None
        return self._chain.run(storages, (*numbers, *self.constants), self.warnings)


def _have_one_structure(storages: tuple[Storage, ...]) -> bool:
    s = storages[0]
    for t in storages[1:]:
        if (s.pos is not t.pos or s.crd is not t.crd) and (len(s.values) < COMPARED or not equal_coordinates(s, t)):
            return False
    return True


def prepared_merge(
    key: tuple[Hashable, ...], storages: tuple[Storage, ...], shape: tuple[int, ...], make: Callable[[], MergePlan]
) -> PreparedMerge:
    """The prepared call of a merge; `make` gives its plan, and `key` stands for all that this follows from beside the
    operands. It is kept where all operands were met before: most results are merged once."""
    for s in storages:
        if s.is_new:
            return PreparedMerge(kept_plan(key, storages, make), storages, shape)
    slot, slot_key = storages[0].plans.merges, (*key, *[s.plans.number for s in storages[1:]])
    call: PreparedMerge | None = slot.get(slot_key)
    if call is None:
        call = PreparedMerge(kept_plan(key, storages, make), storages, shape)
        keep(slot, slot_key, call)
    return call

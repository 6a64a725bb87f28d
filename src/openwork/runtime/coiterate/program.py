"""A merge's plan and its operands' structures -> its program, in the slot of the first structure.

Its key names the other structures by their numbers, which are never given again: it keeps none of them alive, and never
means another one. What follows from types and shapes alone is the plan's (`plan.py`) and the launch's (`shaped.py`), so
that new structures of known types cost look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ... import tuning
from ...storage.equal_coordinates import equal_coordinates
from ...storage.storage import Storage
from ...storage.structure import keep
from .gallop_choice import drivers_of
from .plan import MergePlan, kept_plan
from .shaped import LAUNCHES, OneChain

__all__ = ["BY_STRUCTURE", "BY_TYPES", "Program", "program_of"]

BY_TYPES, BY_STRUCTURE = "for operands of these formats, types and shapes", "with the structures"
COMPARED = tuning.STRUCTURES_COMPARED


class Program:
    """A merge of operands of given structures.

    plan : by types
    one_structure : whether operands and result have one structure, on which the library computes with the values
    one_chain : the launch that asks the structures for no more than their sizes, once it is known; else None
    index_maps : where the elements of the result are from, once gradients have asked for it
    has_run : whether it ran before, for `explain`
    """

    __slots__ = ("has_run", "index_maps", "one_chain", "one_structure", "plan", "shape")

    def __init__(self, plan: MergePlan, storages: tuple[Storage, ...], shape: tuple[int, ...]) -> None:
        schedule = plan.schedule
        self.plan, self.shape, self.has_run = plan, shape, False
        self.one_structure = schedule.same_structure and _have_one_structure(storages)
        self.index_maps: Any = None
        self.one_chain: OneChain | None = None
        if not self.one_structure and not schedule.converts:
            chooser = schedule.gallop_chooser
            drivers = () if chooser is None else drivers_of(chooser, storages, shape, schedule.target)
            launch = LAUNCHES.get((schedule, shape, drivers))
            self.one_chain = None if launch is None else launch.one_chain


def _have_one_structure(storages: tuple[Storage, ...]) -> bool:
    s = storages[0]
    for t in storages[1:]:
        if (s.pos is not t.pos or s.crd is not t.crd) and (s.values.shape[0] < COMPARED or not equal_coordinates(s, t)):
            return False
    return True


def program_of(
    key: tuple[Hashable, ...], storages: tuple[Storage, ...], shape: tuple[int, ...], make: Callable[[], MergePlan]
) -> Program:
    """The program of a merge; `make` gives its plan, and `key` stands for all that this follows from beside the
    operands. It is kept where all operands were met before: most results are merged once."""
    by_types, numbers, is_new = list(key), [], False
    for s in storages:
        structure = s._structure or s.structure
        is_new = is_new or structure.type_parts is None
        by_types.append(s._kind or s.kind)
        numbers.append(structure.number)
    types = tuple(by_types)
    if is_new:
        return Program(kept_plan(types, make), storages, shape)
    programs = (storages[0]._structure or storages[0].structure).programs
    slot_key = (types, *numbers[1:])
    program: Program | None = programs.get(slot_key)
    if program is None:
        program = Program(kept_plan(types, make), storages, shape)
        keep(programs, slot_key, program)
    return program

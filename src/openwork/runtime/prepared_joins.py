"""Tensors joined along an axis -> the same of other values of their structures: their values, gathered.

    concat([A, B])        # the first time, by kernels; the second time, on the numbers of the values too
    concat([A, B])        # from then on, (A.values, B.values)[places] over the structure that the result had

What is kept with the structure of the first operand refers weakly to those of the others.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter

import numpy as np

from .. import tuning
from ..storage.buffers import Array, as_array, host_values, length, to_numpy
from ..storage.recorded import is_recorded
from ..storage.storage import Storage
from ..storage.structure import Structure, keep
from ..storage.watch import NOTHING, watch
from . import trace
from .prepared_moves import NEVER, ONCE, is_plain, kept_structure, numbered, suits

__all__ = ["learn_join", "recall_join"]

KEPT = tuning.MOVES_KEPT
_VALUES = attrgetter("values")


class _Join:
    """The structure of a result, and where in the joined values its own are; None where they are all, in order."""

    __slots__ = ("others", "places", "state", "structure", "watch")

    def __init__(self, others: tuple[weakref.ref[Structure], ...], state: str) -> None:
        self.others, self.state = others, state
        self.structure: Structure | None = None
        self.places: Array | None = None
        self.watch = NOTHING

    def is_of(self, storages: Sequence[Storage]) -> bool:
        """Whether it is of these operands: the same structures, values of one type and one fill value."""
        first = storages[0]
        for s, other in zip(storages[1:], self.others, strict=True):
            if other() is not s._structure or s.scalar != first.scalar or s.fill_value != first.fill_value:
                return False
            if type(s.values) is not type(first.values):
                return False
        return True


def _key(storages: Sequence[Storage], axis: Hashable) -> tuple[Hashable, ...]:
    key: tuple[Hashable, ...] = ("join", axis)
    for s in storages[1:]:
        key += (id(s._structure),)
    return key


def recall_join(storages: Sequence[Storage], axis: Hashable) -> Storage | None:
    """The operands joined by what was learnt of their structures; None where nothing was, and under `explain`."""
    first = storages[0]
    key = _key(storages, axis)
    join = (first._plans or first.plans).moves.get(key)
    if join is None or join.structure is None or trace.steps or not join.is_of(storages):
        return None
    if join.watch is not NOTHING and not join.watch.holds():  # somebody wrote to the indices of a result
        first.plans.moves.pop(key, None)
        return None
    if type(first.values) is np.ndarray:
        values = np.concatenate([*map(_VALUES, storages)])
        values = values if join.places is None else values.take(join.places)
    else:
        torch = sys.modules["torch"]
        for s in storages:
            if s.values.requires_grad:
                return None
        if torch._C._functorch.maybe_current_level() is not None or torch.autograd.forward_ad._current_level >= 0:
            return None
        values = torch.cat([*map(_VALUES, storages)])
        values = values if join.places is None else values.index_select(0, join.places)
    return Storage.over(join.structure, first.scalar, first.fill_value, values)


def learn_join(
    storages: Sequence[Storage], axis: Hashable, result: Storage, compute: Callable[[Sequence[Storage]], Storage]
) -> None:
    """Note that `compute(storages)` gave `result`; the second time, learn where the values went."""
    if trace.steps or not all(is_plain(s.values) for s in storages):
        return
    if result.library != "numpy" and any(is_recorded(s.values) for s in storages):
        return
    slot, structures = storages[0].plans.moves, [s.structure for s in storages]
    key = _key(storages, axis)
    join = slot.get(key)
    if join is None or not join.is_of(storages):
        join = _Join(tuple(map(weakref.ref, structures[1:])), ONCE if _suit(storages, result) else NEVER)
        keep(slot, key, join)
    elif join.state is ONCE:
        join.state = NEVER
        _learn(join, storages, result, compute)


def _suit(storages: Sequence[Storage], result: Storage) -> bool:
    """Whether values of all are elements of one type, each one, few, and none by its number the fill value."""
    first, count = storages[0], sum(length(s.values) for s in storages)
    if count > KEPT or any(s.scalar != first.scalar or s.library != first.library for s in storages):
        return False
    return all(suits(s, result, count) for s in storages)


def _learn(
    join: _Join, storages: Sequence[Storage], result: Storage, compute: Callable[[Sequence[Storage]], Storage]
) -> None:
    """Add the result's structure and the places of its values, where they are a gather of the operands'."""
    operands, begin = [], 1
    for s in storages:
        operands.append(numbered(s, begin))
        begin += length(s.values)
    moved = compute(operands)
    if moved.shape != result.shape or moved.format != result.format or moved.fill_value != result.fill_value:
        return
    places = host_values(moved.values).real.astype(np.int64) - 1
    if len(places) != length(result.values) or (places < 0).any():
        return
    joined = np.concatenate([to_numpy(s.values) for s in storages])
    if joined[places].tobytes() != to_numpy(result.values).tobytes():
        return
    structure = kept_structure(storages, moved)
    in_order = len(places) == len(joined) and np.array_equal(places, np.arange(len(places)))
    join.places = None if in_order else as_array(places, like=moved.values)
    join.structure, join.watch = structure, watch(structure.pos, structure.crd)

"""Merges whose operands torch records, of structures that have met -> torch's operations on the values alone.

    C = A + B        # the second time: new_full(n, 0).index_copy(0, where A's are, A) + the same of B

Where elements of the result are from depends on the structures; torch knows the derivatives of all that is left, of
any order. Moving every value to its place is `index_copy`; taking the values that the result has is `index_select`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .. import tuning
from ..compiler.fill import is_missing
from ..ir.loop import Expr
from ..runtime import trace
from ..runtime.coiterate.prepared import PreparedMerge
from ..runtime.coiterate.run import run_merge as run
from ..runtime.prepared_moves import is_plain, kept_structure
from ..storage.buffers import length, torch_dtype
from ..storage.recorded import outside
from ..storage.storage import Storage
from ..storage.watch import NOTHING, watch
from .permutation_gradient import (
    detached_storage,
    element_mask,
    gather_by_numbers,
    structure_of,
    value_numbers_at,
    without_duplicates,
)
from .pointwise import DIFFERENTIABLE, evaluate, with_gradient_of

__all__ = ["run_merge"]

KEPT = tuning.RECORDED_MERGE


_run = outside()(run)


def run_merge(call: PreparedMerge, storages: tuple[Storage, ...]) -> Storage:
    """The rule of `runtime.coiterate.run.run_merge`."""
    plan = call.schedule
    if plan.scalar not in DIFFERENTIABLE:
        return _run(call, tuple(detached_storage(s) for s in storages))
    result_storage = _run(call, tuple(structure_of(s) for s in storages))
    values, specified, places, elements = {}, {}, {}, element_mask(result_storage)
    for (name, dims), s in zip(plan.dims.items(), storages, strict=True):
        s, numbers = without_duplicates(s), value_numbers_at(without_duplicates(s), result_storage, dims)
        places[name] = numbers
        missing = is_missing(plan.regions.fills[name])
        if missing:
            specified[name] = numbers > 0
        values_taken = gather_by_numbers(s.values, numbers, [1 if missing else s.fill_value])
        values[name] = values_taken if elements is None else values_taken.masked_fill(~elements, 1)
    computed = evaluate(plan.regions.expr, values, specified).to(result_storage.values.dtype)
    if elements is None and not specified:
        _keep(call, storages, result_storage, places)
    return result_storage.with_values(
        with_gradient_of(result_storage.values, computed.expand_as(result_storage.values))
    )


class _Places:
    """Where the values of an operand stand in the result.

    taken : the positions of those that the result has; None for all
    put : their positions in the result; None where they are all of it, in order
    """

    __slots__ = ("put", "taken")

    def __init__(self, numbers: torch.Tensor, count: int) -> None:
        stored = numbers > 0
        self.put = None if bool(stored.all()) else stored.nonzero().reshape(-1)
        taken = (numbers if self.put is None else numbers[self.put]) - 1
        in_order = len(taken) == count and bool((taken == torch.arange(count)).all())
        self.taken = None if in_order else taken

    def __call__(self, values: torch.Tensor, fill: Any, count: int) -> torch.Tensor:
        """The values at the elements of the result, the fill value where there is none."""
        if self.taken is not None:
            values = values.index_select(0, self.taken)
        return values if self.put is None else values.new_full((count,), fill).index_copy(0, self.put, values)


class _RecordedMerge:
    """The merge of storages of known structures, by torch's operations."""

    __slots__ = ("count", "dtype", "expr", "fill", "places", "scalar", "silent", "structure", "watch")

    def __init__(
        self, call: PreparedMerge, storages: tuple[Storage, ...], result: Storage, places: Mapping[str, _Places]
    ) -> None:
        self.expr: Expr = call.schedule.regions.expr
        self.places, self.count = tuple(places.items()), length(result.values)
        self.structure, self.scalar, self.fill = kept_structure(storages, result), result.scalar, result.fill_value
        self.watch, self.dtype = watch(self.structure.pos, self.structure.crd), torch_dtype(result.scalar)

    def __call__(self, storages: tuple[Storage, ...]) -> Storage | None:
        """The result; None where torch records no operand, or a transform or a forward derivative takes part."""
        if not torch.is_grad_enabled() or torch.autograd.forward_ad._current_level >= 0 or trace.steps:
            return None
        if torch._C._functorch.maybe_current_level() is not None:
            return None
        for s in storages:
            if s.values.requires_grad:
                break
        else:
            return None
        if self.watch is not NOTHING and not self.watch.holds():  # somebody wrote to the indices of a result
            return None
        n = self.count
        values = {name: at(s.values, s.fill_value, n) for (name, at), s in zip(self.places, storages, strict=True)}
        computed = evaluate(self.expr, values)
        if computed.dtype is not self.dtype:
            computed = computed.to(self.dtype)
        return Storage.over(self.structure, self.scalar, self.fill, computed)


def _keep(
    call: PreparedMerge, storages: tuple[Storage, ...], result: Storage, numbers: Mapping[str, torch.Tensor]
) -> None:
    """Keep what is left of a recorded merge that was just computed, where it is a second one.

    numbers : of the value of each operand at each element of the result, from 1; other ones where it has none
    """
    call.records += 1
    if call.records < 2 or max(map(length, [result.values, *[s.values for s in storages]])) > KEPT:
        return
    if any(s.library != "torch" or not s.format.is_unique or not is_plain(s.values) for s in storages):
        return
    if result.values.device.type != "cpu" or call.schedule.format is not call.schedule.target:
        return
    places = {name: _Places(at, length(s.values)) for (name, at), s in zip(numbers.items(), storages, strict=True)}
    call.recorded = _RecordedMerge(call, storages, result, places)

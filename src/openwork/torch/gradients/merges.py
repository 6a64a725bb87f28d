"""The gradient rule of merges: the values by the kernel, their gradients by torch's operations on the values alone.

    C = A + B        # backward: the values of A and B at the elements of C, by an index map; their sum, torch derives

Where elements of the result are from depends on the structures: an index map of each operand. It is made in the first
backward, and kept with the prepared merge of these structures. Torch knows the
derivatives of all that is left, of any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ... import tuning
from ...compiler.derivative import gradients_of
from ...compiler.fill import is_missing
from ...ir.loop import Var
from ...ir.rewrite import free_variables
from ...runtime.coiterate.prepared import PreparedMerge
from ...runtime.coiterate.run import run_merge as run
from ...storage.buffers import length
from ...storage.recorded import is_dual, is_transformed, outside, structure_of
from ...storage.storage import Storage
from .permutation import detached_storage, element_mask, gather_by_numbers, value_numbers_at, without_duplicates
from .pointwise import DIFFERENTIABLE, evaluate, with_gradient_of
from .single_operand import plain_apply

__all__ = ["run_merge"]

KEPT = tuning.RECORDED_MERGE

IndexMaps = Mapping[str, torch.Tensor]
"""For each operand the number of the value that each element of the result has, from 1; 0 where it has none."""


_run = outside()(run)


def run_merge(call: PreparedMerge, storages: tuple[Storage, ...]) -> Storage:
    """The rule of `runtime.coiterate.run.run_merge`."""
    if call.schedule.scalar not in DIFFERENTIABLE:
        return _run(call, tuple([detached_storage(s) for s in storages]))
    bare = tuple([structure_of(s) for s in storages])
    result = _run(call, bare)
    merge = _Merge(call, bare, result)
    values = [s.values for s in storages]
    if any(is_transformed(x) or is_dual(x) for x in values):
        computed = merge.computed(values)
        return result.with_values(with_gradient_of(result.values, computed.expand_as(result.values)))
    return result.with_own_values(_apply(merge, (result.values,), *values))


class _Merge:
    """A merge that has run: what its gradients follow from.

    operands : storages of the operands' structures, duplicates and all
    """

    __slots__ = ("call", "operands", "result")

    def __init__(self, call: PreparedMerge, operands: tuple[Storage, ...], result: Storage) -> None:
        self.call, self.operands, self.result = call, operands, result

    def computed(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """The values of the result by torch's operations on those of the operands."""
        plan, elements = self.call.schedule, element_mask(self.result)
        operands = [s if s.values is x else s.with_values(x) for s, x in zip(self.operands, values, strict=True)]
        operands = [without_duplicates(s) for s in operands]
        maps = self._index_maps(operands)
        taken, specified = {}, {}
        for name, s in zip(plan.dims, operands, strict=True):
            missing = is_missing(plan.regions.fills[name])
            if missing:
                specified[name] = maps[name] > 0
            x = gather_by_numbers(s.values, maps[name], [1 if missing else s.fill_value])
            taken[name] = x if elements is None else x.masked_fill(~elements, 1)
        result: torch.Tensor = evaluate(plan.regions.expr, taken, specified).to(self.result.values.dtype)
        return result

    def read_by_gradients(self, wanted: Sequence[bool]) -> Sequence[bool]:
        """Of which operands the gradients of the wanted ones read the values: a sum's of none."""
        plan = self.call.schedule
        names = tuple(plan.dims)
        gradients = gradients_of(plan.regions.expr, Var("g", plan.regions.expr.type))
        if gradients is None or any(is_missing(fill) for fill in plan.regions.fills.values()):
            return [True] * len(names)
        asked = [
            gradients[name] for name, is_wanted in zip(names, wanted, strict=True) if is_wanted and name in gradients
        ]
        found = {v.name for e in asked for v in free_variables(e)}
        return [name in found for name in names]

    def _index_maps(self, operands: Sequence[Storage]) -> IndexMaps:
        """The index map of each operand, kept with the call of these structures where operands have no duplicates."""
        call = self.call
        kept: IndexMaps | None = call.index_maps
        if kept is not None:
            return kept
        named = zip(call.schedule.dims.items(), operands, strict=True)
        maps = {name: value_numbers_at(s, self.result, dims) for (name, dims), s in named}
        if all(s.format.is_unique for s in self.operands) and max(map(length, maps.values()), default=0) <= KEPT:
            call.index_maps = maps
        return maps


class _Merged(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, merge: _Merge, result: tuple[torch.Tensor], *values: torch.Tensor) -> torch.Tensor:
        read = merge.read_by_gradients(ctx.needs_input_grad[2:])
        ctx.merge, ctx.like = merge, [x.new_empty(()).expand(x.shape) for x in values]
        ctx.save_for_backward(*[x if is_read else None for x, is_read in zip(values, read, strict=True)])
        return result[0]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """torch's gradient of the same values computed by torch, which is recorded where backward is."""
        again, needed = torch.is_grad_enabled(), ctx.needs_input_grad[2:]
        values = []
        for x, like, is_needed in zip(ctx.saved_tensors, ctx.like, needed, strict=True):
            # one operand may have been computed from another: each is a tensor of its own here
            x = torch.ones_like(like) if x is None else x.view_as(x) if again else x.detach()
            values.append(x if x.requires_grad else x.requires_grad_(is_needed))
        with torch.enable_grad():
            computed = ctx.merge.computed(values).expand_as(ctx.merge.result.values)
            wanted = [x for x, is_needed in zip(values, needed, strict=True) if is_needed]
            found = iter(
                torch.autograd.grad(computed, wanted, grads[0], create_graph=again, allow_unused=True)
                if computed.requires_grad
                else [None] * len(wanted)
            )
        return None, None, *[next(found) if is_needed else None for is_needed in needed]


_apply = plain_apply(_Merged)

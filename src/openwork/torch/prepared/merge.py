"""Merges whose operands torch records, of structures that have met -> torch's operations on the values alone.

    C = A + B        # the second time: new_full(n, 0).index_copy(0, where A's are, A) + the same of B

Where elements of the result are from depends on the structures; torch knows the derivatives of all that is left, of
any order. Moving every value to its place is `index_copy`; taking the values that the result has is `index_select`.
Of few values the merge is one launch, and all of its gradients are another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from ... import tuning
from ...codegen import cache
from ...codegen.executable import Executable
from ...codegen.short_call import SHORT, bound
from ...compiler.coiterate.known_places import (
    LARGE,
    Placed,
    gradient_expressions,
    gradient_kernel,
    merge_kernel,
    numbered,
    used,
)
from ...compiler.fill import is_missing
from ...ir.loop import Expr, Kernel
from ...runtime import trace
from ...runtime.coiterate.prepared import PreparedMerge
from ...runtime.coiterate.run import run_merge as run
from ...runtime.launch import bits
from ...runtime.prepared_moves import is_plain, kept_structure
from ...runtime.prepared_results import template
from ...storage.buffers import length
from ...storage.recorded import outside, structure_of
from ...storage.storage import Storage
from ...storage.watch import NOTHING
from ..gradients.permutation import (
    detached_storage,
    element_mask,
    gather_by_numbers,
    value_numbers_at,
    without_duplicates,
)
from ..gradients.pointwise import DIFFERENTIABLE, evaluate, with_gradient_of
from ..gradients.single_operand import plain_apply

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
    at : of each element of the result the position of its value, -1 where there is none
    count : the operand's values
    """

    __slots__ = ("at", "count", "put", "taken")

    def __init__(self, numbers: torch.Tensor, count: int) -> None:
        stored = numbers > 0
        self.at, self.count = numbers.clamp(min=0) - 1, count
        self.put = None if bool(stored.all()) else stored.nonzero().reshape(-1)
        taken = (numbers if self.put is None else numbers[self.put]) - 1
        in_order = len(taken) == count and bool((taken == torch.arange(count)).all())
        self.taken = None if in_order else taken

    def __call__(self, values: torch.Tensor, fill: Any, count: int) -> torch.Tensor:
        """The values at the elements of the result, the fill value where there is none."""
        if self.taken is not None:
            values = values.index_select(0, self.taken)
        return values if self.put is None else values.new_full((count,), fill).index_copy(0, self.put, values)

    def transposed(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient of the values, of that of the values at the elements of the result."""
        if self.put is not None:
            gradient = gradient.index_select(0, self.put)
        return gradient if self.taken is None else gradient.new_zeros(self.count).index_add(0, self.taken, gradient)

    def placed(self, fill: Any) -> Placed:
        """What kernels know of the operand."""
        stored = self.at if self.put is None else self.at[self.put]
        return Placed(None if self.put is None else fill, len(stored.unique()) < len(stored))

    @property
    def covers(self) -> bool:
        """Whether the result has all of the values."""
        return self.taken is None or len(self.taken.unique()) == self.count


class _RecordedMerge:
    """The merge of storages of known structures, by torch's operations."""

    __slots__ = ("count", "expr", "is_guarded", "make", "places", "scalar", "watch")

    def __init__(
        self, call: PreparedMerge, storages: tuple[Storage, ...], result: Storage, places: Mapping[str, _Places]
    ) -> None:
        self.expr: Expr = numbered(call.schedule.regions.expr, tuple(places))
        self.places, self.count = tuple(places.values()), length(result.values)
        structure, self.scalar = kept_structure(storages, result), result.scalar
        self.make = Storage.maker(structure, result.scalar, result.fill_value)
        self.watch, self.is_guarded = structure.watch, False

    def __call__(self, storages: tuple[Storage, ...]) -> Storage | None:
        """The result; None where torch records no operand, or a transform or a forward derivative takes part."""
        if not torch.is_grad_enabled() or torch.autograd.forward_ad._current_level >= 0 or trace.steps:
            return None
        if torch._C._functorch.maybe_current_level() is not None:
            return None
        operands = [s.values for s in storages]
        for x in operands:
            if x.requires_grad:
                break
        else:
            return None
        if self.watch is not NOTHING and not self.watch.holds():  # somebody wrote to the indices of a result
            return None
        values = self.values(operands, storages)
        return None if values is None else self.make(values)

    def values(self, operands: Sequence[torch.Tensor], storages: tuple[Storage, ...]) -> torch.Tensor | None:
        """The values of the result; None where they are not those of this structure."""
        n = self.count
        values = {
            f"v{k}": at(x, s.fill_value, n)
            for k, (at, x, s) in enumerate(zip(self.places, operands, storages, strict=True))
        }
        computed: torch.Tensor = evaluate(self.expr, values)
        return computed


class _LaunchedMerge(_RecordedMerge):
    """The same of few values: a launch, and one for all gradients. Gradients of gradients are torch's operations.

    is_guarded : whether the launch does nothing where a value is not finite or very large, of which a product may have
        other elements
    """

    __slots__ = ("_executables", "_gradients", "_operands", "_start", "expressions", "likes")

    def __init__(
        self, call: PreparedMerge, storages: tuple[Storage, ...], result: Storage, places: Mapping[str, _Places]
    ) -> None:
        super().__init__(call, storages, result, places)
        self._operands = tuple([at.placed(s.fill_value) for at, s in zip(self.places, storages, strict=True)])
        self.expressions: Mapping[int, Expr] = gradient_expressions(self.expr) or {}
        self.likes = [template(x.values.detach()) for x in (*storages, result)]
        self._executables: list[Executable] = []
        self._gradients: dict[tuple[bool, ...], _Gradients] = {}
        guard = call.schedule.nonfinite_guard
        self.is_guarded = guard is not None
        sizes = [bits(min(guard * guard, LARGE), "f64"), *[p.count for p in self.places]] if guard is not None else []
        self._start = self._bound(
            ("merge", self.is_guarded), lambda: merge_kernel(self.expr, self._operands, self.is_guarded),
            [self.count, *sizes, *[p.at.data_ptr() for p in self.places]], len(self.places) + 1,
        )  # fmt: skip

    @property
    def suits(self) -> bool:
        """Whether there is a launch, and gradients of every operand."""
        return self._start is not None and len(self.expressions) == len(self.places)

    def _bound(
        self, key: tuple[Any, ...], build: Callable[[], Kernel], words: list[int], free: int
    ) -> Callable[..., int] | None:
        """A kernel with its first words -> a function of the last ones."""
        executable = cache.get(f"known places {key} {self.expr} {self._operands}", build)
        self._executables.append(executable)
        return bound(executable, [*words, *[0] * free], range(len(words), len(words) + free))

    def values(self, operands: Sequence[torch.Tensor], storages: tuple[Storage, ...]) -> torch.Tensor | None:
        out = torch.empty_like(self.likes[-1])
        if self._start is None or self._start(*[x.data_ptr() for x in operands], out.data_ptr()):
            return None
        needed = tuple([x.requires_grad for x in operands])
        gradients = self._gradients.get(needed) or self._prepare(needed)
        merged: torch.Tensor = _merge(gradients, (out,), *operands)
        return merged

    def _prepare(self, needed: tuple[bool, ...]) -> _Gradients:
        """The launch of the gradients that are needed, to be kept."""
        wanted = {k: self.expressions[k] for k, is_needed in enumerate(needed) if is_needed}
        taking = used(*wanted.values())
        begun = [
            k for k in wanted if self._operands[k].shared or not self.places[k].covers
        ]  # zero where some stay as they are
        kernel = partial(gradient_kernel, self._operands, wanted, begun, self.scalar)
        words = [self.count, *[self.places[k].count for k in begun]]
        words += [p.at.data_ptr() for k, p in enumerate(self.places) if k in taking or k in wanted]
        start = self._bound(("gradients", needed, tuple(begun)), kernel, words, 2 + len(taking) + len(wanted))
        gradients = self._gradients[needed] = _Gradients(self, start, taking, tuple(wanted))
        return gradients


class _Gradients:
    """The gradients of some operands' values, of that of the values of a merge: by a launch.

    taking : the operands whose values it takes
    wanted : those whose gradients it gives
    """

    __slots__ = ("_itemsize", "_likes", "_start", "merge", "taking", "wanted")

    def __init__(
        self, merge: _LaunchedMerge, start: Callable[..., int] | None, taking: frozenset[int], wanted: tuple[int, ...]
    ) -> None:
        self.merge, self._start, self.taking, self.wanted = merge, start, taking, wanted
        self._likes = [like if k in wanted else None for k, like in enumerate(merge.likes[:-1])]
        self._itemsize: int = merge.likes[-1].element_size()

    def launched(self, grad: torch.Tensor, values: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None] | None:
        """The gradients, None of operands that need none; None where the gradient has no plain memory."""
        try:
            at = grad.data_ptr()
        except RuntimeError:  # of a batch of them
            return None
        if not at or at % self._itemsize or grad.is_neg() or self._start is None:
            return None
        words = [grad.stride(0), at]
        for v in values:
            if v is not None:
                words.append(v.data_ptr())
        found: list[torch.Tensor | None] = []
        for like in self._likes:
            if like is None:
                found.append(None)
            else:
                out = torch.empty_like(like)
                words.append(out.data_ptr())
                found.append(out)
        self._start(*words)
        return found

    def recorded(self, grad: torch.Tensor, values: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """The gradients by torch's operations, which have gradients."""
        merge, taken = self.merge, {"g": grad}
        for k, (at, x) in enumerate(zip(merge.places, values, strict=True)):
            if x is not None:
                taken[f"v{k}"] = at(x, merge._operands[k].fill, merge.count)
        return [
            at.transposed(evaluate(merge.expressions[k], taken)) if k in self.wanted else None
            for k, at in enumerate(merge.places)
        ]


class _Merge(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, gradients: _Gradients, result: tuple[torch.Tensor], *values: torch.Tensor) -> torch.Tensor:
        ctx.gradients, taking = gradients, gradients.taking
        is_all = len(taking) == len(values)
        ctx.save_for_backward(*(values if is_all else [v if k in taking else None for k, v in enumerate(values)]))
        return result[0]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (grad,), values, gradients = grads, ctx.saved_tensors, ctx.gradients
        found = None
        if not torch.is_grad_enabled() and torch._C._functorch.maybe_current_level() is None:
            found = gradients.launched(grad, values)
        return None, None, *(gradients.recorded(grad, values) if found is None else found)


_merge = plain_apply(_Merge)


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
    call.recorded = _launched(call, storages, result, places) or _RecordedMerge(call, storages, result, places)


def _launched(
    call: PreparedMerge, storages: tuple[Storage, ...], result: Storage, places: Mapping[str, _Places]
) -> _LaunchedMerge | None:
    """The launch of few values of one floating type; None of others."""
    if result.scalar not in ("f32", "f64") or any(s.scalar != result.scalar for s in storages):
        return None
    if call.schedule.regions.expr.type.scalar != result.scalar:
        return None
    sizes = [length(result.values), *[length(s.values) for s in storages]]
    if not min(sizes) or sum(sizes) > SHORT:
        return None
    merge = _LaunchedMerge(call, storages, result, places)
    return merge if merge.suits else None

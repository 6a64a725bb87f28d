"""The gradient rule of merges: the values by the kernel; the derivative of the expression at the result's elements.

    C = A * B        # backward: dA = dC * B, at the elements of C, added up at those of A by an index map

Where elements of the result are from depends on the structures: an index map of each operand, which a merge of the
numbers of their values gives. It is made in the first backward, and kept with the program. Expressions of which the
compiler has no derivative, of missing elements, of duplicates or of several types, are computed again by torch, which
derives them; so are merges inside transforms, and those whose operands have tangents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import torch

from ... import tuning
from ...compiler.coiterate.merge_formats import Dims
from ...compiler.derivative import gradients_of
from ...compiler.fill import is_missing
from ...compiler.schedule.coiterate import MergeSchedule
from ...ir.index import Access, Apply, Expression
from ...ir.loop import Expr, Var
from ...ir.rewrite import free_variables
from ...runtime.coiterate.plan import plan_merge
from ...runtime.coiterate.program import Program, program_of
from ...runtime.coiterate.run import execute
from ...storage.recorded import in_transform, outside
from ...storage.storage import Storage, structure_of
from .function import Rule, apply_rule
from .permutation import detached_storage, element_mask, value_numbers_at, without_duplicates
from .pointwise import DIFFERENTIABLE, evaluate, with_gradient_of

__all__ = ["run_merge"]

KEPT = tuning.RECORDED_MERGE
_VALUES, _is_wrapped = attrgetter("values"), torch._C._functorch.is_functorch_wrapped_tensor


class IndexMap(NamedTuple):
    """Where the elements of a merge's result are from, in one of its operands.

    at : for each the number of the operand's value from 1, 0 where it has none
    is_total : whether it always has one
    """

    at: torch.Tensor
    is_total: bool

    def gather(self, values: torch.Tensor, fill: Any) -> torch.Tensor:
        """The operand's elements."""
        if self.is_total:
            return values.index_select(0, self.at - 1)
        return torch.cat([values.new_full((1,), fill), values]).index_select(0, self.at)

    def scatter_add(self, parts: torch.Tensor, count: int) -> torch.Tensor:
        """What belongs to each of the operand's values, added up."""
        return parts.new_zeros(count + 1).index_add(0, self.at, parts)[1:]


def run_merge(program: Program, storages: tuple[Storage, ...], numbers: Sequence[float] = ()) -> Storage:
    """The rule of `runtime.coiterate.run.run_merge`."""
    if program.plan.schedule.scalar not in DIFFERENTIABLE:
        with outside():
            return execute(program, tuple(map(detached_storage, storages)), numbers)[0]
    if in_transform() or torch.autograd.forward_ad._current_level >= 0 or any(map(_is_wrapped, map(_VALUES, storages))):
        return _computed(program, storages, numbers)
    rule = _Merge(program, storages, numbers)
    found = apply_rule(rule, *map(_VALUES, storages))
    assert rule.result is not None
    return rule.result.with_own_values(found)


def _computed(program: Program, storages: tuple[Storage, ...], numbers: Sequence[float]) -> Storage:
    """The result with its gradients, of operands inside a transform or with tangents."""
    bare = tuple([structure_of(s) for s in storages])
    with outside():
        result = execute(program, bare, numbers)[0]
    merge = _Merge(program, bare, numbers)
    merge.result = result
    computed = merge.computed([s.values for s in storages])
    return result.with_values(with_gradient_of(result.values, computed.expand_as(result.values)))


class _Derivatives(NamedTuple):
    """The gradients of a merge's operands as expressions in their elements and the result's gradient `g`."""

    of: Mapping[str, Expr]
    read: Mapping[str, frozenset[str]]
    """the names that each reads"""


@lru_cache(maxsize=1024)
def _derivatives(schedule: MergeSchedule) -> _Derivatives | None:
    """The derivatives of a merge's expression; None where the compiler has none, or elements are missing."""
    expr, fills = schedule.regions.expr, schedule.regions.fills
    if schedule.numbers or expr.type.scalar[0] == "c" or any(is_missing(fill) for fill in fills.values()):
        return None
    found = gradients_of(expr, Var("g", expr.type))
    if found is None:
        return None
    return _Derivatives(found, {name: frozenset(v.name for v in free_variables(e)) for name, e in found.items()})


def _without_memory(values: torch.Tensor) -> torch.Tensor:
    """Values of this length and dtype that are not to be read."""
    return values.new_empty(()).expand(values.shape)


class _Merge(Rule):
    """A merge, whose result is known once it has run.

    operands : storages of the operands' structures, duplicates and all
    """

    __slots__ = ("numbers", "operands", "program", "result")

    def __init__(self, program: Program, operands: tuple[Storage, ...], numbers: Sequence[float]) -> None:
        self.program, self.operands, self.numbers = program, operands, numbers
        self.result: Storage | None = None

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        self.result = execute(self.program, self.operands, self.numbers)[0]
        # the graph keeps what their structures say, and of large values what derivatives read alone
        self.operands = tuple(
            [
                s.with_own_values(v.detach() if v.shape[0] <= KEPT else _without_memory(v))
                for s, v in zip(self.operands, values, strict=True)
            ]
        )
        result: torch.Tensor = self.result.values
        return result

    def _symbolic(self) -> _Derivatives | None:
        """The derivatives as expressions, where operands have no duplicates."""
        for s in self.operands:
            if not s.format.is_unique:
                return None
        return _derivatives(self.program.plan.schedule)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        known = self._symbolic()
        if known is None:
            return tensors
        names, read = tuple(self.program.plan.schedule.dims), frozenset[str]()
        for name, is_needed in zip(names, needed, strict=True):
            if is_needed and name in known.read:
                read |= known.read[name]
        return [x if name in read else None for name, x in zip(names, tensors, strict=True)]

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        known = self._symbolic()
        if known is None:
            return self._by_torch(saved, grad, needed)
        maps = self._index_maps(self.operands)
        values = {"g": grad}
        for (name, at), x, s in zip(maps.items(), saved, self.operands, strict=True):
            if x is not None:
                values[name] = at.gather(x, s.fill_value)
        found: list[torch.Tensor | None] = []
        for (name, at), s, is_needed in zip(maps.items(), self.operands, needed, strict=True):
            if not is_needed or name not in known.of:
                found.append(None)
                continue
            parts = evaluate(known.of[name], values)
            found.append(at.scatter_add(parts.expand_as(grad), s.values.shape[0]))
        return found

    def _by_torch(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        """torch's gradients of the same values computed by torch, which are recorded where backward is."""
        again = torch.is_grad_enabled()
        values = []
        for x, is_needed in zip(saved, needed, strict=True):
            # one operand may have been computed from another: each is a tensor of its own here
            x = x.view_as(x) if again else x.detach()
            values.append(x if x.requires_grad else x.requires_grad_(is_needed))
        with torch.enable_grad():
            computed = self.computed(values).expand_as(grad)
            wanted = [x for x, is_needed in zip(values, needed, strict=True) if is_needed]
            found = iter(
                torch.autograd.grad(computed, wanted, grad, create_graph=again, allow_unused=True)
                if computed.requires_grad
                else [None] * len(wanted)
            )
        return [next(found) if is_needed else None for is_needed in needed]

    def computed(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """The values of the result by torch's operations on those of the operands."""
        assert self.result is not None
        plan, elements = self.program.plan.schedule, element_mask(self.result)
        operands = [s if s.values is x else s.with_values(x) for s, x in zip(self.operands, values, strict=True)]
        operands = [without_duplicates(s) for s in operands]
        maps = self._index_maps(operands)
        taken, specified = {}, {}
        for name, s in zip(plan.dims, operands, strict=True):
            missing = is_missing(plan.regions.fills[name])
            if missing:
                specified[name] = maps[name].at > 0
            x = maps[name].gather(s.values, 1 if missing else s.fill_value)
            taken[name] = x if elements is None else x.masked_fill(~elements, 1)
        result: torch.Tensor = evaluate(plan.regions.expr, taken, specified).to(self.result.values.dtype)
        return result

    def _index_maps(self, operands: Sequence[Storage]) -> Mapping[str, IndexMap]:
        """The index map of each operand, kept with the program where operands have no duplicates."""
        assert self.result is not None
        kept: Mapping[str, IndexMap] | None = self.program.index_maps
        if kept is not None:
            return kept
        with outside():
            bare = [structure_of(s) for s in operands]
            maps = _maps(self.program.plan.schedule.dims, bare, structure_of(self.result))
        is_small = max((at.at.shape[0] for at in maps.values()), default=0) <= KEPT
        if is_small and all(s.format.is_unique for s in self.operands):
            self.program.index_maps = maps
        return maps


def _maps(dims: Mapping[str, Dims], operands: Sequence[Storage], result: Storage) -> Mapping[str, IndexMap]:
    """The index map of each operand: by merges of the numbers of their values where the result is their union or their
    intersection, else by a search for each."""
    count, sizes = result.values.shape[0], [s.values.shape[0] for s in operands]
    plain = all(s.device == "cpu" and not s.format.is_dense for s in (*operands, result))
    found = None
    if count and plain and result.format.is_unique:
        numbers = [torch.arange(1, n + 1) for n in sizes]
        bits = 62 // len(operands)
        if max(sizes) <= count and max(sizes) < 1 << bits:
            packed = [x << bits * k for k, x in enumerate(numbers)]
            merged = _merged("add", dims, operands, packed, result)
            mask = (1 << bits) - 1
            found = merged if merged is None else [(merged >> bits * k) & mask for k in range(len(operands))]
        elif min(sizes) >= count:
            ones = [torch.ones_like(x) for x in numbers]
            each = [
                _merged("mul", dims, operands, [*ones[:k], x, *ones[k + 1 :]], result) for k, x in enumerate(numbers)
            ]
            found = None if any(x is None for x in each) else each
    if found is None:
        found = [value_numbers_at(s, result, dims[name]) for name, s in zip(dims, operands, strict=True)]
    maps = {}
    for name, x in zip(dims, found, strict=True):
        at = x.clamp(min=0)
        maps[name] = IndexMap(at, bool(at.all()))
    return maps


def _merged(
    op: str, dims: Mapping[str, Dims], operands: Sequence[Storage], values: Sequence[torch.Tensor], result: Storage
) -> Any:  # fmt: skip
    """The values of the sum or product of these integers on the operands' structures, unspecified ones being 0; None
    where it has other elements than the result."""
    storages = tuple([Storage.over(s.structure, "i64", 0, x) for s, x in zip(operands, values, strict=True)])
    e: Expression = Access(next(iter(dims)), ())
    for name in list(dims)[1:]:
        e = Apply(op, (e, Access(name, ())))

    def plan() -> Any:
        return plan_merge(e, dict(zip(dims, storages, strict=True)), dims, len(result.shape), result.format)

    program = program_of(("index maps", op, *dims.values(), result.format), storages, result.shape, plan)
    merged = execute(program, storages)[0]
    is_same = merged.values.shape == result.values.shape and merged.format == result.format
    return merged.values if is_same else None

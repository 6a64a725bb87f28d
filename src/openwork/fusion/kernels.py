"""A fusion group -> a callable that runs it as one kernel on its operands' values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from ..codegen.plan_cache import PlanCache
from ..compiler.scalar_arguments import is_number
from ..compiler.schedule.reduce import SumSchedule
from ..compiler.vanishing import linear, vanishes
from ..ir.index import Access, Apply, Assignment, Expression, Literal
from ..ir.loop import Cast, Expr, Op, Var
from ..ops.products.spgemm import spgemm
from ..ops.reductions.folds import accumulation_type, add_fill
from ..runtime.coiterate.plan import MergePlan, plan_merge
from ..runtime.coiterate.program import program_of
from ..runtime.coiterate.reduction import Summed, plan_sum, run_sum, sum_program
from ..runtime.coiterate.run import run_merge
from ..runtime.coiterate.types import typed
from ..runtime.contract import contract, sample
from ..runtime.promote import compute_scalar
from ..runtime.strided import Strided, strided
from ..storage.buffers import as_array, cast, is_torch
from ..storage.storage import Storage
from ..tensor.expression_graph import MATMUL, REDUCE, Graph
from ..tensor.lazy import FOLDS
from ..tensor.tensor import Tensor
from .group import FusionGroup
from .infer import Meta
from .replay import Replay, limit_of, one_pass_suffices, replay_of

__all__ = ["Run", "run_of"]

Run = Callable[..., Any]
"""Operands' values and numbers -> the value of the group's last operation."""


def run_of(group: FusionGroup, graph: Graph, number: int, meta: Meta) -> Run:
    """A group of a graph, which ends in operation `number` of this Meta -> a callable: the kernel, or the operations
    one by one where values demand it. Equal groups share one."""
    replay = replay_of(group, graph, number)
    operands = [(n, indices, group.metas[n]) for n, (_, indices) in group.operands.items()]
    key = (replay.key, group.kept, *group.extents.items(), *operands, *group.numbers, meta)
    run = None if replay.key is None else _RUNS.get(key)
    if run is None:
        run = _new_run(group, replay, meta)
        if replay.key is not None:
            _RUNS.keep(key, run)
    return run


_RUNS: PlanCache[Any, Run] = PlanCache("fusion groups")


def _new_run(group: FusionGroup, replay: Replay, meta: Meta) -> Run:
    classes: dict[str, Callable[[FusionGroup, Meta], Run]] = {
        "elementwise": _Elementwise, "sampled": _Sampled, "sum": _Sum,
    }  # fmt: skip
    kernel, limit, torch = classes[group.kind](group, meta), limit_of(group), meta.library == "torch"
    if limit is None and not torch:
        return kernel
    count = len(group.operands)

    def run(*values: Any) -> Any:
        fits = one_pass_suffices(values[:count], limit, torch) and (
            limit is None or all(abs(x) <= limit for x in values[count:])
        )
        return kernel(*values) if fits else replay(*values)

    return run


def _storage(x: Any) -> Storage:
    storage: Storage | None = getattr(x, "_storage", None)
    if storage is None:
        storage = Tensor._from_dense(x)._storage
    return storage


def _dims(group: FusionGroup, order: Sequence[str], stretch: bool) -> dict[str, tuple[int | None, ...]]:
    """For each operand the loops of its dimensions; for one that broadcasts None, or nothing."""
    dims_of = {}
    for name, (_, indices) in group.operands.items():
        shape = group.metas[name].shape
        dims = [None if n == 1 != group.extents[i] else order.index(i) for i, n in zip(indices, shape, strict=True)]
        dims_of[name] = tuple(d for d in dims if stretch or d is not None or group.metas[name].is_sparse)
    return dims_of | dict.fromkeys(group.numbers, ())


def _without_indices(e: Expression) -> Expression:
    """The accesses without their indices."""
    match e:
        case Access(tensor):
            return Access(tensor)
        case Apply(op, args):
            return Apply(op, tuple(map(_without_indices, args)))
    return e


class _Elementwise:
    """An elementwise group: a merge with a sparse result."""

    def __init__(self, group: FusionGroup, meta: Meta) -> None:
        assert meta.storage is not None
        self.group, self.format = group, meta.storage.format
        self.e, self.shape = _without_indices(group.expression), tuple(group.extents[i] for i in group.kept)
        self.dims = _dims(group, group.kept, True)
        self.names = tuple(group.operands)
        self.dims = {n: self.dims[n] for n in self.names}
        self.key = ("fused", str(self.e), *self.dims.items(), len(self.shape), self.format)

    def __call__(self, *values: Any) -> Any:

        count = len(self.names)
        storages = tuple(map(_storage, values[:count]))
        program = program_of(
            self.key, storages, self.shape, lambda: self._plan(dict(zip(self.names, storages, strict=True)))
        )
        numbers = dict(zip(self.group.numbers, values[count:], strict=True))
        passed = [numbers[n] for n in program.plan.schedule.numbers]
        return Tensor._from_storage(run_merge(program, storages, passed)[0])

    def _plan(self, storages: dict[str, Storage]) -> MergePlan:
        """The merge that gives the format which the operations one by one would give."""
        plan = plan_merge(self.e, storages, self.dims, len(self.shape), None)
        if plan.schedule.format == self.format:
            return plan
        return plan_merge(self.e, storages, self.dims, len(self.shape), self.format)


class _Reduction:
    """What reductions share: binding of operands, and the plans of merges that sum."""

    def __init__(self, group: FusionGroup, meta: Meta, scalar: str, compute: str) -> None:
        self.group, self.meta, self.scalar, self.compute = group, meta, scalar, compute
        self.names = tuple(group.operands)
        self.indices = (*group.kept, *group.reduced)
        self.extents = tuple(group.extents[i] for i in self.indices)
        self.key: tuple[Any, ...]
        self.plan: Callable[[dict[str, Any]], SumSchedule]

    def bind(self, values: Sequence[Any]) -> dict[str, Any]:
        """Operands by name: storages of sparse ones, strided views of dense ones without dimensions that broadcast."""
        operands: dict[str, Any] = {}
        for name, value in zip(self.names, values, strict=False):
            if self.group.metas[name].is_sparse:
                operands[name] = value._storage
                continue
            array = value.to_dense() if hasattr(value, "_storage") else value
            _, indices = self.group.operands[name]
            if any(n == 1 != self.group.extents[i] for n, i in zip(array.shape, indices, strict=True)):
                array = array.reshape(
                    [n for n, i in zip(array.shape, indices, strict=True) if n == self.group.extents[i]]
                )
            operands[name] = strided(array)
        for name, value in zip(self.group.numbers, values[len(self.names) :], strict=True):
            operands[name] = strided(np.array(value))
        return operands

    def like(self, operands: dict[str, Any]) -> Any:
        dense = next((v.owner for n, v in operands.items() if isinstance(v, Strided) and not is_number(n)), None)
        return dense if dense is not None else next(iter(operands.values())).values

    def reduce_by_merge(self, e: Expression, op: str, along: str | None) -> None:
        """Let `sums` combine `e` by `op`."""
        e, dims, library = _without_indices(e), _dims(self.group, self.indices, False), self.meta.library
        kept = tuple(range(len(self.group.kept)))
        self.key = (str(e), *dims.items(), kept, op, self.compute, library, along)
        self.plan = lambda operands: plan_sum(
            e, operands, dims, len(self.indices), kept, op, self.compute, library, along
        )

    def sums(self, operands: dict[str, Any], like: Any) -> Summed:
        """The reduction by a merge."""
        program = sum_program(self.key, operands, self.extents, lambda: self.plan(operands))
        return run_sum(program, operands, like)


def _single_operand_statement(group: FusionGroup, e: Expression, scalar: str, library: str) -> Expression | None:
    """The right side of a single-operand statement; None where several operands are sparse, or scalar types differ."""
    if len(group.sparse) != 1:
        return None
    (name,) = group.sparse
    meta = group.metas[name]
    assert meta.storage is not None
    stretched = any(
        n == 1 != group.extents[i]
        for k, (_, indices) in group.operands.items() if k in group.sparse
        for i, n in zip(indices, group.metas[k].shape, strict=True)
    )  # fmt: skip
    if stretched or meta.storage.fill_value or not vanishes(e, name):
        return None
    if not meta.storage.format.is_unique and not linear(e, name):
        return None
    if not _is_of_one_type(typed(e, {n: m.scalar for n, m in group.metas.items()}, library), scalar):
        return None
    return _without_stretched(group, e)


def _is_of_one_type(expr: Expr, scalar: str) -> bool:
    """Whether every operation is arithmetic in this scalar type, so that operands can be cast first."""
    match expr:
        case Var():
            return True
        case Cast(arg, type):
            return isinstance(arg, Var) and type.scalar == scalar
        case Op(op, args, type):
            is_arithmetic = op in ("mul", "add", "sub", "neg", "div")
            return is_arithmetic and type.scalar == scalar and all(_is_of_one_type(a, scalar) for a in args)
    return expr.type.scalar == scalar


def _without_stretched(group: FusionGroup, e: Expression) -> Expression:
    """The expression with dense operands accessed without the indices that they broadcast along."""
    match e:
        case Access(tensor, indices) if indices:
            shape = group.metas[tensor].shape
            unstretched = tuple(i for i, n in zip(indices, shape, strict=True) if n == group.extents[i])
            return Access(tensor, unstretched)
        case Apply(op, args):
            return Apply(op, tuple(_without_stretched(group, a) for a in args))
    return e


class _Sampled(_Reduction):
    """A sampled product: sums of dense factors at the elements of one sparse operand."""

    def __init__(self, group: FusionGroup, meta: Meta) -> None:
        super().__init__(group, meta, meta.scalar, compute_scalar(meta.scalar))
        summand = _single_operand_statement(group, group.expression, meta.scalar, meta.library)
        self.stmt = None if summand is None else Assignment(Access("C", group.kept), "+=", summand)
        assert meta.storage is not None
        self.fill = meta.storage.fill_value
        self.along = next(
            n for n, m in group.metas.items()
            if m.is_sparse and group.operands[n][1] == group.kept and m.storage is not None
            and m.storage.format == meta.storage.format
        )  # fmt: skip
        self.reduce_by_merge(group.expression, "add", self.along)

    def __call__(self, *values: Any) -> Any:

        operands = self.bind(values)
        if self.stmt is not None:
            result = sample(self.stmt, operands, self.scalar)
            return Tensor._from_storage(result.with_values(result.values, self.fill))
        sums = self.sums(operands, self.like(operands))
        assert sums.structure is not None
        array = sums.array if self.compute == self.scalar else cast(sums.array, self.scalar)
        return Tensor._from_storage(sums.structure.with_values(array, self.fill))


class _Sum(_Reduction):
    """A reduction of an elementwise expression, or its product with dense operands."""

    def __init__(self, group: FusionGroup, meta: Meta) -> None:
        name = "sum" if group.root.kind == MATMUL else group.root.name
        e, scalar, compute = _summand(name, group, meta)
        super().__init__(group, meta, scalar, compute)
        self.name, self.e = name, e
        self.op = FOLDS[name]
        single_operand = _single_operand_statement(group, e, compute, meta.library) if self.op == "add" else None
        self.stmt = None if single_operand is None else Assignment(Access("y", group.kept), "+=", single_operand)
        keepdims = group.root.kind != MATMUL and group.root.options[2]
        self.shape = meta.shape if keepdims else None
        self.reduce_by_merge(e, self.op, None)

    def __call__(self, *values: Any) -> Any:

        operands = self.bind(values)
        like = self.like(operands)
        stmt = self.stmt
        result = self._merged(operands, like) if stmt is None else contract(stmt, operands, self.compute, like)
        if self.name == "mean":
            count = math.prod(self.group.extents[i] for i in self.group.reduced)
            result = result / count
        if self.meta.scalar != self.compute:
            result = cast(result if is_torch(result) else np.asarray(result), self.meta.scalar)
        if self.shape is not None:
            result = result.reshape(self.shape)
        return Tensor._from_dense(result) if self.meta.is_tensor else result

    def _merged(self, operands: dict[str, Any], like: Any) -> Any:
        sums = self.sums(operands, like)
        if sums.counts is None:
            return sums.array
        counts = as_array(sums.counts, like=sums.array)
        absent = math.prod(self.group.extents[i] for i in self.group.reduced) - counts

        def of_zeros() -> Any:
            zeros = copy(self)
            zeros.reduce_by_merge(Apply("sub", (self.e, self.e)), self.op, None)  # NaN where one is not finite
            with np.errstate(invalid="ignore"):
                return zeros.sums(operands, like).array

        return add_fill(_NAMES[self.op], sums.array, absent, sums.fill, self.compute, of_zeros)


_NAMES = {"add": "sum", "mul": "prod", "min": "min", "max": "max"}


def _summand(name: str, group: FusionGroup, meta: Meta) -> tuple[Expression, str, str]:
    """A reduction -> the expression that is reduced, the result's scalar type and the accumulator's."""
    e = group.expression
    scalar = typed(e, {n: m.scalar for n, m in group.metas.items()}, meta.library).type.scalar
    if name in ("any", "all", "count_nonzero"):
        truth = e if scalar == "bool" else Apply("ne", (e, Literal(0)))
        return truth, meta.scalar, "i64" if name == "count_nonzero" else "bool"
    if name == "mean":
        return e, meta.scalar, accumulation_type(scalar)
    over_all = not group.kept and group.root.kind == REDUCE and name == "sum"
    if over_all and meta.scalar in ("f32", "f16", "bf16"):
        return e, meta.scalar, "f64"
    return e, meta.scalar, compute_scalar(meta.scalar)


def masked_product(mask: Any, a: Any, b: Any, *, product_left: bool) -> Any:
    """`mask * (a @ b)`, or `(a @ b) * mask`, of sparse matrices: the product is formed where the mask has elements."""

    product = spgemm(a, b, mask=mask)
    return product * mask if product_left else mask * product

"""A region of fused operations -> a callable that runs it as one kernel on its operands' values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from ..compiler.scalar_arguments import is_number
from ..compiler.schedule.reduce import SumSchedule
from ..compiler.vanishing import linear, vanishes
from ..ir.index import Access, Apply, Assignment, Expression, Literal
from ..ir.loop import Cast, Expr, Op, Var
from ..ops.products.spgemm import spgemm
from ..ops.reductions.folds import accumulation_type, add_fill
from ..runtime.coiterate.plan import MergePlan, plan_merge
from ..runtime.coiterate.prepared import prepared_merge
from ..runtime.coiterate.reduction import Summed, plan_sum, prepared_sum, run_sum
from ..runtime.coiterate.run import run_merge
from ..runtime.coiterate.types import typed
from ..runtime.contract import contract, sample
from ..runtime.promote import compute_scalar
from ..runtime.strided import Strided, strided
from ..storage.buffers import as_array, cast, is_torch
from ..storage.storage import Storage
from ..tensor.lazy import FOLDS
from ..tensor.tensor import Tensor
from .infer import Meta
from .partition import Region
from .replay import limit_of, one_pass_suffices, replay_of

__all__ = ["Part", "part_of"]

Part = Callable[..., Any]
"""Operands' values and numbers -> the value of the region's node."""


def part_of(region: Region, meta: Meta) -> Part:
    """A region and its node's Meta -> a callable: the kernel, or the operations one by one where values demand it."""
    classes: dict[str, Callable[[Region, Meta], Part]] = {"elementwise": _Elementwise, "sampled": _Sampled, "sum": _Sum}
    part, replay = classes[region.kind](region.without_values(), meta.without_values()), replay_of(region)
    limit, torch = limit_of(region, region.expression), meta.library == "torch"
    if limit is None and not torch:
        return part
    count = len(region.operands)

    def run(*values: Any) -> Any:
        fits = one_pass_suffices(values[:count], limit, torch) and (
            limit is None or all(abs(x) <= limit for x in values[count:])
        )
        return part(*values) if fits else replay(*values)

    return run


def _storage(x: Any) -> Storage:
    storage: Storage | None = getattr(x, "_storage", None)
    if storage is None:
        storage = Tensor._from_dense(x)._storage
    return storage


def _dims(region: Region, order: Sequence[str], stretch: bool) -> dict[str, tuple[int | None, ...]]:
    """For each operand the loops of its dimensions; for one that broadcasts None, or nothing."""
    dims_of = {}
    for name, (_, indices) in region.operands.items():
        shape = region.metas[name].shape
        dims = [None if n == 1 != region.extents[i] else order.index(i) for i, n in zip(indices, shape, strict=True)]
        dims_of[name] = tuple(d for d in dims if stretch or d is not None or region.metas[name].is_sparse)
    return dims_of | dict.fromkeys(region.numbers, ())


def _without_indices(e: Expression) -> Expression:
    """The accesses without their indices."""
    match e:
        case Access(tensor):
            return Access(tensor)
        case Apply(op, args):
            return Apply(op, tuple(map(_without_indices, args)))
    return e


class _Elementwise:
    """An elementwise region: a merge with a sparse result."""

    def __init__(self, region: Region, meta: Meta) -> None:
        assert meta.storage is not None
        self.region, self.format = region, meta.storage.format
        self.e, self.shape = _without_indices(region.expression), tuple(region.extents[i] for i in region.kept)
        self.dims = _dims(region, region.kept, True)
        self.names = tuple(region.operands)
        self.dims = {n: self.dims[n] for n in self.names}
        self.key = ("fused", str(self.e), *self.dims.items(), len(self.shape), self.format)

    def __call__(self, *values: Any) -> Any:

        count = len(self.names)
        storages = tuple(map(_storage, values[:count]))
        call = prepared_merge(
            self.key, storages, self.shape, lambda: self._plan(dict(zip(self.names, storages, strict=True)))
        )
        numbers = dict(zip(self.region.numbers, values[count:], strict=True))
        return Tensor._from_storage(run_merge(call, storages, [numbers[n] for n in call.schedule.numbers]))

    def _plan(self, storages: dict[str, Storage]) -> MergePlan:
        """The merge that gives the format which the operations one by one would give."""
        plan = plan_merge(self.e, storages, self.dims, len(self.shape), None)
        if plan.schedule.format == self.format:
            return plan
        return plan_merge(self.e, storages, self.dims, len(self.shape), self.format)


class _Reduction:
    """What reductions share: binding of operands, and the plans of merges that sum."""

    def __init__(self, region: Region, meta: Meta, scalar: str, compute: str) -> None:
        self.region, self.meta, self.scalar, self.compute = region, meta, scalar, compute
        self.names = tuple(region.operands)
        self.indices = (*region.kept, *region.reduced)
        self.extents = tuple(region.extents[i] for i in self.indices)
        self.key: tuple[Any, ...]
        self.plan: Callable[[dict[str, Any]], SumSchedule]

    def bind(self, values: Sequence[Any]) -> dict[str, Any]:
        """Operands by name: storages of sparse ones, strided views of dense ones without dimensions that broadcast."""
        operands: dict[str, Any] = {}
        for name, value in zip(self.names, values, strict=False):
            if self.region.metas[name].is_sparse:
                operands[name] = value._storage
                continue
            array = value.to_dense() if hasattr(value, "_storage") else value
            _, indices = self.region.operands[name]
            if any(n == 1 != self.region.extents[i] for n, i in zip(array.shape, indices, strict=True)):
                array = array.reshape(
                    [n for n, i in zip(array.shape, indices, strict=True) if n == self.region.extents[i]]
                )
            operands[name] = strided(array)
        for name, value in zip(self.region.numbers, values[len(self.names) :], strict=True):
            operands[name] = strided(np.array(value))
        return operands

    def like(self, operands: dict[str, Any]) -> Any:
        dense = next((v.owner for n, v in operands.items() if isinstance(v, Strided) and not is_number(n)), None)
        return dense if dense is not None else next(iter(operands.values())).values

    def reduce_by_merge(self, e: Expression, op: str, along: str | None) -> None:
        """Let `sums` combine `e` by `op`."""
        e, dims, library = _without_indices(e), _dims(self.region, self.indices, False), self.meta.library
        kept = tuple(range(len(self.region.kept)))
        self.key = (str(e), *dims.items(), kept, op, self.compute, library, along)
        self.plan = lambda operands: plan_sum(
            e, operands, dims, len(self.indices), kept, op, self.compute, library, along
        )

    def sums(self, operands: dict[str, Any], like: Any) -> Summed:
        """The reduction by a merge."""
        call = prepared_sum(self.key, operands, self.extents, lambda: self.plan(operands))
        return run_sum(call, operands, like)


def _single_operand_statement(region: Region, e: Expression, scalar: str, library: str) -> Expression | None:
    """The right side of a single-operand statement; None where several operands are sparse, or scalar types differ."""
    if len(region.sparse) != 1:
        return None
    (name,) = region.sparse
    meta = region.metas[name]
    assert meta.storage is not None
    stretched = any(
        n == 1 != region.extents[i]
        for k, (_, indices) in region.operands.items() if k in region.sparse
        for i, n in zip(indices, region.metas[k].shape, strict=True)
    )  # fmt: skip
    if stretched or meta.storage.fill_value or not vanishes(e, name):
        return None
    if not meta.storage.format.is_unique and not linear(e, name):
        return None
    if not _is_of_one_type(typed(e, {n: m.scalar for n, m in region.metas.items()}, library), scalar):
        return None
    return _without_stretched(region, e)


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


def _without_stretched(region: Region, e: Expression) -> Expression:
    """The expression with dense operands accessed without the indices that they broadcast along."""
    match e:
        case Access(tensor, indices) if indices:
            shape = region.metas[tensor].shape
            unstretched = tuple(i for i, n in zip(indices, shape, strict=True) if n == region.extents[i])
            return Access(tensor, unstretched)
        case Apply(op, args):
            return Apply(op, tuple(_without_stretched(region, a) for a in args))
    return e


class _Sampled(_Reduction):
    """A sampled product: sums of dense factors at the elements of one sparse operand."""

    def __init__(self, region: Region, meta: Meta) -> None:
        super().__init__(region, meta, meta.scalar, compute_scalar(meta.scalar))
        summand = _single_operand_statement(region, region.expression, meta.scalar, meta.library)
        self.stmt = None if summand is None else Assignment(Access("C", region.kept), "+=", summand)
        assert meta.storage is not None
        self.fill = meta.storage.fill_value
        self.along = next(
            n for n, m in region.metas.items()
            if m.is_sparse and region.operands[n][1] == region.kept and m.storage is not None
            and m.storage.format == meta.storage.format
        )  # fmt: skip
        self.reduce_by_merge(region.expression, "add", self.along)

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

    def __init__(self, region: Region, meta: Meta) -> None:
        name = "sum" if region.root.kind == "matmul" else region.root.name
        e, scalar, compute = _summand(name, region, meta)
        super().__init__(region, meta, scalar, compute)
        self.name, self.e = name, e
        self.op = FOLDS[name]
        single_operand = _single_operand_statement(region, e, compute, meta.library) if self.op == "add" else None
        self.stmt = None if single_operand is None else Assignment(Access("y", region.kept), "+=", single_operand)
        keepdims = region.root.kind != "matmul" and region.root.options[2]
        self.shape = meta.shape if keepdims else None
        self.reduce_by_merge(e, self.op, None)

    def __call__(self, *values: Any) -> Any:

        operands = self.bind(values)
        like = self.like(operands)
        stmt = self.stmt
        result = self._merged(operands, like) if stmt is None else contract(stmt, operands, self.compute, like)
        if self.name == "mean":
            count = math.prod(self.region.extents[i] for i in self.region.reduced)
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
        absent = math.prod(self.region.extents[i] for i in self.region.reduced) - counts

        def of_zeros() -> Any:
            zeros = copy(self)
            zeros.reduce_by_merge(Apply("sub", (self.e, self.e)), self.op, None)  # NaN where one is not finite
            with np.errstate(invalid="ignore"):
                return zeros.sums(operands, like).array

        return add_fill(_NAMES[self.op], sums.array, absent, sums.fill, self.compute, of_zeros)


_NAMES = {"add": "sum", "mul": "prod", "min": "min", "max": "max"}


def _summand(name: str, region: Region, meta: Meta) -> tuple[Expression, str, str]:
    """A reduction -> the expression that is reduced, the result's scalar type and the accumulator's."""
    e = region.expression
    scalar = typed(e, {n: m.scalar for n, m in region.metas.items()}, meta.library).type.scalar
    if name in ("any", "all", "count_nonzero"):
        truth = e if scalar == "bool" else Apply("ne", (e, Literal(0)))
        return truth, meta.scalar, "i64" if name == "count_nonzero" else "bool"
    if name == "mean":
        return e, meta.scalar, accumulation_type(scalar)
    over_all = not region.kept and region.root.kind == "reduce" and name == "sum"
    if over_all and meta.scalar in ("f32", "f16", "bf16"):
        return e, meta.scalar, "f64"
    return e, meta.scalar, compute_scalar(meta.scalar)


def masked_product(mask: Any, a: Any, b: Any, swapped: bool) -> Any:
    """`mask * (a @ b)`, or `(a @ b) * mask`, of sparse matrices: the product is formed where the mask has elements."""

    product = spgemm(a, b, mask=mask)
    return product * mask if swapped else mask * product

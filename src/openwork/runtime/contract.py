"""A statement with one sparse operand, and its operands -> a new dense array, or values on its structure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .. import tuning
from ..compiler.single.factors import identity
from ..ir.index import Access, Apply, Assignment, Expression
from ..ir.types import FLOATS
from ..storage.buffers import Array, address, cast, empty, itemsize
from ..storage.scalars import keeps_sums
from ..storage.storage import Storage
from . import trace
from .duplicates import with_sums
from .gradient_hook import differentiable
from .packed_coordinates import packs
from .prepared import PreparedCall, key_of, recall, remember, sparse_operand
from .promote import compute_scalar
from .single_operand import Problem, bind_operands, prepare
from .strided import Strided, contiguous_along, new_output, on_lines, strided
from .widths import cut, joined, rounded, sliced

__all__ = ["contract", "sample"]

REREAD = tuning.PACKED_REREAD


def _buffers(stmt: Assignment, values: Mapping[str, Any], *_: Any) -> list[Array]:
    """The buffers of values that a statement reads."""
    operands = values.values()
    return [v.values if isinstance(v, Storage) else v.owner for v in operands if isinstance(v, Storage | Strided)]


@differentiable(_buffers)
def contract(stmt: Assignment, values: Mapping[str, Any], out_scalar: str, like: Array) -> Array:
    """Evaluate a statement whose output is a fresh dense array of the library of `like`.

    Half precision is summed in float32 and rounded once. Duplicates are summed first where that makes a difference; in
    sums of stored floats alone a wider float makes none.
    """
    storage = sparse_operand(values)
    if not storage.format.is_unique and stmt.reduction == "add" and _is_factor(stmt.rhs, storage, values):
        widens = len(values) == 1 and storage.scalar in FLOATS and out_scalar in FLOATS
        keeps = widens or keeps_sums(storage.scalar, out_scalar)
        return with_sums(lambda v: _contract(stmt, v, out_scalar, like), values, storage, keeps)
    return _contract(stmt, values, out_scalar, like)


def _is_factor(e: Expression, s: Storage, values: Mapping[str, Any]) -> bool:
    """Whether an expression is a product of which the storage is a factor."""
    if isinstance(e, Apply):
        return e.op == "mul" and any(_is_factor(a, s, values) for a in e.args)
    return isinstance(e, Access) and values[e.tensor] is s


def _contract(stmt: Assignment, values: Mapping[str, Any], out_scalar: str, like: Array) -> Array:
    scalar = compute_scalar(out_scalar)
    storage = sparse_operand(values)
    if scalar != out_scalar and packs(storage):
        values = _widened(stmt, values, storage, scalar)
    key = key_of(stmt, scalar, values)
    prepared_call = recall(storage, key)
    if prepared_call is None and (slices := sliced(stmt, values, storage, scalar)) is not None:
        results = [contract(stmt, operands, scalar, like) for operands in slices[0]]
        return cast(joined(results, slices[1]), out_scalar)
    if prepared_call is None and (rounded_operands := rounded(stmt, values, storage, scalar)) is not None:
        operands, dim, n = rounded_operands
        return cut(contract(stmt, operands, out_scalar, like), dim, n)
    problem = prepared_call.problem if prepared_call else bind_operands(stmt, values, scalar)
    shape = tuple(problem.extents[i] for i in stmt.lhs.indices)
    is_empty = 0 in storage.shape or 0 in problem.extents.values()
    prepared = prepared_call.prepared if prepared_call else prepare(problem)
    partial = is_empty or not prepared.schedule.writes_all
    out = new_output(shape, scalar, like, problem.innermost, zero=partial)
    start = identity(stmt.reduction, scalar).value
    if start and partial:
        out[...] = start
    if not is_empty:
        _launch(prepared_call, problem, values, strided(out), storage, key)
    return out if scalar == out_scalar else cast(out, out_scalar)


@differentiable(_buffers)
def sample(stmt: Assignment, values: Mapping[str, Any], out_scalar: str) -> Storage:
    """Evaluate a statement at the stored elements of its sparse operand: a storage that shares the structure."""
    scalar = compute_scalar(out_scalar)
    storage = sparse_operand(values)
    if scalar != out_scalar and packs(storage):
        values = _widened(stmt, values, storage, scalar)
    key = key_of(stmt, f"{scalar} shared", values)
    prepared_call = recall(storage, key)
    if prepared_call is None and (rounded_operands := rounded(stmt, values, storage, f"{scalar} shared")) is not None:
        return sample(stmt, rounded_operands[0], out_scalar)
    n = storage.values.shape[0]
    out = empty(n, scalar, storage.values)
    result = storage.with_values(out, 0)
    problem = prepared_call.problem if prepared_call else bind_operands(stmt, values, scalar, shared=True)
    padded = storage.format.blocksize is not None or storage.format.is_dense or storage.nse != n
    if n and (padded or not (prepared_call.prepared if prepared_call else prepare(problem)).schedule.no_alias):
        out[:] = 0
    if n and 0 not in storage.shape:
        _launch(prepared_call, problem, values, result, storage, key)
    return result if scalar == out_scalar else storage.with_values(cast(out, out_scalar), 0)


def _widened(stmt: Assignment, values: Mapping[str, Any], storage: Storage, scalar: str) -> Mapping[str, Any]:
    """The operands of a product of an n:m format, dense ones of half precision in the scalar type that is computed in:
    rows read their elements from the first cache again and again, and would convert them each time."""
    driver = next(a for a in stmt.accesses if values[a.tensor] is storage)
    extents = dict(zip(driver.indices, storage.shape, strict=True))
    result = dict(values)
    for access in stmt.accesses:
        view = values[access.tensor]
        read = REREAD * math.prod(extents.get(i, 1) for i in access.indices)
        if isinstance(view, Strided) and compute_scalar(view.scalar) != view.scalar and storage.positions[-1] >= read:
            result[access.tensor] = strided(cast(view.owner, scalar))
    return result


def _launch(
    prepared_call: PreparedCall | None,
    problem: Problem,
    values: Mapping[str, Any],
    out: Any,
    storage: Storage,
    key: Any,
) -> None:
    """Run the prepared call, or prepare one and keep it with the structure."""
    recalled = prepared_call is not None
    if prepared_call is None:
        prepared_call = PreparedCall(problem, prepare(problem), out)
        if key is not None:
            remember(storage, key, prepared_call)
        values = problem.values
    views: list[Strided] = []
    for name, along, on_line in prepared_call.inputs:
        view = values[name] if along is None else contiguous_along(values[name], along)
        views.append(on_lines(view) if on_line else view)
    target = out.values if isinstance(out, Storage) else out.owner
    prepared_call.start(address(storage.values), [v.address for v in views], address(target))
    if trace.active():
        allocated = itemsize(problem.operands[problem.stmt.lhs.tensor].scalar) * math.prod(target.shape)
        owners = [None if name in problem.copies else values[name].owner for name, _, _ in prepared_call.inputs]
        packed = sum(view.nbytes for view, owner in zip(views, owners, strict=True) if view.owner is not owner)
        prepared_call.describe(allocated + packed, recalled)

"""Run a statement with one sparse operand whose result is a fresh dense array, or values on the operand's structure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..compiler.single.factors import identity
from ..ir.index import Assignment
from ..storage.buffers import Array, address, cast, empty, itemsize
from ..storage.storage import Storage
from . import trace
from .gradient_hook import differentiable
from .prepared import Ready, key_of, recall, remember, sparse_operand
from .promote import compute_scalar
from .single_operand import Problem, bind_operands, prepare
from .strided import Strided, contiguous_along, new_output, on_lines, strided
from .widths import cut, rounded

__all__ = ["contract", "shared"]


def _buffers(stmt: Assignment, values: Mapping[str, Any], *_: Any) -> list[Array]:
    """What a statement reads values from."""
    found = values.values()
    return [v.values if isinstance(v, Storage) else v.owner for v in found if isinstance(v, Storage | Strided)]


@differentiable(_buffers)
def contract(stmt: Assignment, values: Mapping[str, Any], out_scalar: str, like: Array) -> Array:
    """Evaluate a statement whose output is a fresh dense array of the library of `like`.

    Half precision is summed in float32 and rounded once.
    """
    scalar = compute_scalar(out_scalar)
    storage = sparse_operand(values)
    key = key_of(stmt, scalar, values)
    ready = recall(storage, key)
    if ready is None and (wide := rounded(stmt, values, storage, scalar)) is not None:
        more, dim, n = wide
        return cut(contract(stmt, more, out_scalar, like), dim, n)
    problem = ready.problem if ready else bind_operands(stmt, values, scalar)
    shape = tuple(problem.extents[i] for i in stmt.lhs.indices)
    nothing = 0 in storage.shape or 0 in problem.extents.values()
    prepared = ready.prepared if ready else prepare(problem)
    partial = nothing or not prepared.schedule.writes_all
    out = new_output(shape, scalar, like, problem.last, zero=partial)
    start = identity(stmt.reduction, scalar).value
    if start and partial:
        out[...] = start
    if not nothing:
        _launch(ready, problem, values, strided(out), storage, key)
    return out if scalar == out_scalar else cast(out, out_scalar)


@differentiable(_buffers)
def shared(stmt: Assignment, values: Mapping[str, Any], out_scalar: str) -> Storage:
    """Evaluate a statement at the stored elements of its sparse operand: a storage that shares the structure."""
    scalar = compute_scalar(out_scalar)
    storage = sparse_operand(values)
    key = key_of(stmt, f"{scalar} shared", values)
    ready = recall(storage, key)
    if ready is None and (wide := rounded(stmt, values, storage, f"{scalar} shared")) is not None:
        return shared(stmt, wide[0], out_scalar)
    n = storage.values.shape[0]
    out = empty(n, scalar, storage.values)
    result = storage.with_values(out, 0)
    problem = ready.problem if ready else bind_operands(stmt, values, scalar, shared=True)
    padded = storage.format.blocksize is not None or storage.format.is_dense or storage.nse != n
    if n and (padded or not (ready.prepared if ready else prepare(problem)).schedule.no_alias):
        out[:] = 0
    if n and 0 not in storage.shape:
        _launch(ready, problem, values, result, storage, key)
    return result if scalar == out_scalar else storage.with_values(cast(out, out_scalar), 0)


def _launch(
    ready: Ready | None, problem: Problem, values: Mapping[str, Any], out: Any, storage: Storage, key: Any
) -> None:
    """Run, by the launch that was kept or by a new one that is kept from now on."""
    again = ready is not None
    if ready is None:
        ready = Ready(problem, prepare(problem), out)
        if key is not None:
            remember(storage, key, ready)
        values = problem.values
    views: list[Strided] = []
    for name, along, lined in ready.inputs:
        view = values[name] if along is None else contiguous_along(values[name], along)
        views.append(on_lines(view) if lined else view)
    target = out.values if isinstance(out, Storage) else out.owner
    ready.start(address(storage.values), [v.address for v in views], address(target))
    if trace.active():
        allocated = itemsize(problem.operands[problem.stmt.lhs.tensor].scalar) * math.prod(target.shape)
        given = [None if name in problem.copies else values[name].owner for name, _, _ in ready.inputs]
        packed = sum(view.nbytes for view, owner in zip(views, given, strict=True) if view.owner is not owner)
        ready.describe(allocated + packed, again)

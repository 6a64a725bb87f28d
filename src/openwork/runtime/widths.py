"""A statement and its operands -> operands whose dense index is rounded up, so that many widths share a kernel.

    y[i,k] += A[i,j] * X[j,k]        X of 77 columns -> of 80, the last three 0, and y cut to 77
                                     X of 300 columns, A of an n:m format -> of 128, 128 and 44, and y joined

A kernel is compiled for the remainder of the columns after its register tiles: the loops over it are unrolled. A batch
whose size changes from call to call would compile hundreds. The first widths of a statement have exact kernels, as do
those that recur; all others share those of multiples of `STEP`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from .. import tuning
from ..classes import define
from ..codegen.plan_cache import PlanCache
from ..ir.index import Access, Apply, Assignment, Expression
from ..storage.buffers import Array, itemsize
from ..storage.storage import Storage
from .packed_coordinates import packs
from .plan import Form, extents_of
from .strided import Strided, strided

__all__ = ["cut", "joined", "rounded", "sliced"]

STEP = tuning.WIDTH_STEP
OWN = tuning.WIDTHS_OWN
SEEN = tuning.WIDTH_SEEN
WIDE = tuning.PACKED_WIDE


@define
class _Widths:
    """The widths that a statement has had: `exact`, those with kernels of their own, and `counts` of the others."""

    exact: set[int] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)

    def shared(self, n: int) -> bool:
        """Whether this width is rounded up to a multiple of STEP."""
        if n in self.exact:
            return False
        self.counts[n] = self.counts.get(n, 0) + 1
        if len(self.exact) < OWN or (self.counts[n] >= SEEN and len(self.exact) < 4 * OWN):
            self.exact.add(n)
            self.counts.pop(n, None)
            return False
        if len(self.counts) > 16 * OWN:
            self.counts.clear()
        return True


_widths: PlanCache[tuple[Assignment, int, str], _Widths] = PlanCache("widths of products", 256)


def sliced(
    stmt: Assignment, form: Form, values: Mapping[str, Any], storage: Storage, scalar: str
) -> tuple[list[dict[str, Any]], int] | None:
    """The operands of an n:m format's product by slices of the dense index, and its dimension in the result.

    Blocks of wide rows that do not lie together would not stay in a cache. None where the rows are not wide.
    """
    found = _dense_index(stmt, form, values, storage) if packs(storage) else None
    if found is None or found[0] not in stmt.lhs.indices:
        return None
    (index, n), width = found, WIDE // itemsize(scalar)
    if n <= width:
        return None
    slices = []
    for first in range(0, n, width):
        operands = dict(values)
        for access in stmt.accesses:
            if index in access.indices:
                view = values[access.tensor]
                operands[access.tensor] = _slice(view, access.indices.index(index), first, min(first + width, n))
        slices.append(operands)
    return slices, stmt.lhs.indices.index(index)


def joined(results: Sequence[Array], dim: int) -> Array:
    """The results of slices along a dimension, which is innermost in memory."""
    last = results[0].ndim - 1
    if isinstance(results[0], np.ndarray):
        return np.moveaxis(np.concatenate([np.moveaxis(y, dim, last) for y in results], last), last, dim)
    import torch

    return torch.cat([y.movedim(dim, last) for y in results], last).movedim(last, dim)


def _slice(view: Strided, dim: int, first: int, end: int) -> Strided:
    """A copy of a part of dimension `dim`, which is innermost."""
    owner, last = view.owner, len(view.shape) - 1
    part = owner[(*(slice(None),) * dim, slice(first, end))]
    if isinstance(owner, np.ndarray):
        return strided(np.moveaxis(np.ascontiguousarray(np.moveaxis(part, dim, last)), last, dim))
    return strided(part.movedim(dim, last).contiguous().movedim(last, dim))


def _dense_index(
    stmt: Assignment, form: Form, values: Mapping[str, Any], storage: Storage
) -> tuple[str, int] | None:  # fmt: skip
    """The only index that the sparse operand has not, and its extent; None where nothing is to be cut or padded."""
    if len(form.free) != 1 or not all(isinstance(values[n], Strided) for n in form.dense):
        return None
    (index,) = form.free
    extents = extents_of(stmt, form, [storage.shape, *[values[n].shape for n in form.dense]])
    if 0 in extents.values() or any(a.indices.count(index) > 1 for a in (stmt.lhs, *stmt.accesses)):
        return None
    return index, extents[index]


def _extent(values: Mapping[str, Any], form: Form, number: int, d: int) -> int:
    """The extent of a dimension of a dense operand, by its number in the form; 0 of what is no array."""
    shape = getattr(values[form.dense[number - 1]], "shape", ())
    return int(shape[d]) if d < len(shape) else 0


def rounded(
    stmt: Assignment, form: Form, values: Mapping[str, Any], storage: Storage, scalar: str
) -> tuple[dict[str, Any], int, int] | None:
    """The operands with the dense index rounded up, its dimension in the result, -1 where it is summed, and its extent.

    None where the statement is to have a kernel of its own.
    """
    if len(form.free) != 1:
        return None
    (n,) = [_extent(values, form, number, d) for i, number, d in form.sources if i == form.free[0]]
    if n <= STEP or n % STEP == 0 or (found := _dense_index(stmt, form, values, storage)) is None:
        return None
    index, n = found
    driver = next(a for a in stmt.accesses if values[a.tensor] is storage)
    if index not in stmt.lhs.indices and not _only_zeros(stmt, driver, index):
        return None
    key = (stmt, storage.signature, scalar)
    widths = _widths.get(key) or _widths.keep(key, _Widths())
    if not widths.shared(n):
        return None
    operands = dict(values)
    for access in stmt.accesses:
        if index in access.indices:
            operands[access.tensor] = _padded(values[access.tensor], access.indices.index(index), -(-n // STEP) * STEP)
    return operands, stmt.lhs.indices.index(index) if index in stmt.lhs.indices else -1, n


def _only_zeros(stmt: Assignment, driver: Access, index: str) -> bool:
    """Whether zero padding along a summed index adds 0: every dense operand has the index, and is multiplied."""
    dense = [a for a in stmt.accesses if a is not driver and a != driver]
    return stmt.op == "+=" and all(index in a.indices for a in dense) and _is_product(stmt.rhs, driver)


def _is_product(e: Expression, driver: Access) -> bool:
    """Whether an expression is a product of dense operands' elements, of the driver its pattern alone."""
    if not isinstance(e, Apply):
        return e != driver
    return e == Apply("pattern", (driver,)) or (e.op == "mul" and all(_is_product(a, driver) for a in e.args))


def _padded(view: Strided, dim: int, extent: int) -> Strided:
    """A copy whose dimension `dim` has this extent and is innermost, zero beyond the view's extent."""
    order = [d for d in range(len(view.shape)) if d != dim] + [dim]
    inverse = sorted(range(len(order)), key=order.__getitem__)
    shape = [*(view.shape[d] for d in order[:-1]), extent]
    if isinstance(view.owner, np.ndarray):
        out: Any = np.zeros(shape, view.owner.dtype)
        out[..., : view.shape[dim]] = view.owner.transpose(order)
        return strided(out.transpose(inverse))
    out = view.owner.new_zeros(shape)
    out[..., : view.shape[dim]] = view.owner.permute(order)
    return strided(out.permute(inverse))


def cut(result: Array, dim: int, n: int) -> Array:
    """The first n of a dimension of a result, without gaps in memory, its dimensions in memory as they were."""
    if dim < 0:
        return result
    first = result[(*(slice(None),) * dim, slice(0, n))]
    return first.copy(order="K") if isinstance(first, np.ndarray) else first.clone()

"""Gradients of reductions.

A sum is a statement, whose gradient is one. The gradient of a minimum or maximum goes in equal parts to the elements
that have it, unspecified ones included, as torch has it on dense tensors. A product is taken over segments that are
padded to the next power of two, which torch differentiates, zeros included.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..ops.reductions import folds as reduce
from ..ops.reductions.folds import missing, reduced_shape, statement_names
from ..storage.buffers import Array, cast, outside, torch_dtype
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .permutation_gradient import plain, present, structure, unique
from .pointwise import DIFFERENTIABLE, exactly
from .single_operand import Product, product

__all__ = ["fold", "keys_of", "segmented", "total"]


_fold, _missing = outside()(reduce.fold), outside()(missing)


def fold(op: str, t: Tensor, axes: tuple[int, ...], scalar: str) -> Array:
    """The rule of `ops.reductions.folds.fold`."""
    s = t._storage
    if scalar not in DIFFERENTIABLE:
        return _fold(op, Tensor._from_storage(plain(s)), axes, scalar)
    if op == "sum":
        return reduce.fold.__wrapped__(op, t, axes, scalar)  # type: ignore[attr-defined]
    s = unique(s)
    return _extreme(op, s, axes, scalar) if op in ("min", "max") else _prod(s, axes, scalar)


def total(values: torch.Tensor, scalar: str, bits: torch.Tensor | None = None) -> torch.Tensor:
    """The rule of `runtime.full_sum.total`."""
    values = values if bits is None else values.masked_fill(~bits, 0)
    return values.sum(dtype=torch_dtype(scalar))


def _extreme(op: str, s: Storage, axes: tuple[int, ...], scalar: str) -> torch.Tensor:
    names, kept = statement_names(len(s.shape), axes)
    structure = plain(s)
    best: torch.Tensor = _fold(op, Tensor._from_storage(structure), axes, scalar)
    at = product(Product(structure, names, (kept,), None, scalar), None, [best])
    values = structure.values
    hits = (values == at) | (values.isnan() & at.isnan())
    here = present(s)
    hits = hits if here is None else hits & here
    counts = product(Product(structure, names, (), kept, "f64"), hits.to(torch.float64), [])
    absent = _missing(structure, axes)
    if absent is not None:
        counts = counts + absent * (best == python_scalar(s.fill_value, scalar))
    shares = hits / product(Product(structure, names, (kept,), None, "f64"), None, [counts.clamp(min=1)])
    weighted = torch.where(hits, s.values, 0) * shares.to(s.values.dtype)
    computed = product(Product(structure, names, (), kept, scalar), weighted, [])
    return exactly(best, computed)


def _prod(s: Storage, axes: tuple[int, ...], scalar: str) -> torch.Tensor:
    t = Tensor._from_storage(s)
    shape = reduced_shape(t, axes)
    values = cast(s.values, scalar)
    result = segmented(values, keys_of(s, axes), math.prod(shape), lambda rows: rows.prod(1), 1).reshape(shape)
    fill = python_scalar(s.fill_value, scalar)
    absent = _missing(structure(s), axes)
    return result if fill == 1 or absent is None else reduce.add_fill("prod", result, absent, fill, scalar)


@outside()
def keys_of(s: Storage, axes: tuple[int, ...]) -> torch.Tensor:
    """For each value the row-major number of the element of a reduction over `axes` that it goes to; -1 for padding."""
    names, kept = statement_names(len(s.shape), axes)
    shape = tuple(n for d, n in enumerate(s.shape) if d not in axes)
    numbers = torch.arange(math.prod(shape)).reshape(shape)
    keys = product(Product(structure(s), names, (kept,), None, "i64"), None, [numbers])
    here = present(s)
    return keys if here is None else torch.where(here, keys, -1)


def segmented(
    values: torch.Tensor, keys: torch.Tensor, count: int, function: Callable[[torch.Tensor], torch.Tensor], pad: float
) -> torch.Tensor:
    """`function` of the values of each key below `count`, as rows padded with `pad`; an empty one has only padding."""
    order = torch.argsort(keys, stable=True)
    order = order[int((keys < 0).sum()) :]
    sizes = torch.bincount(keys[order], minlength=count)
    begins = torch.cumsum(sizes, 0) - sizes
    widths = torch.where(sizes <= 1, 1, 2 ** torch.ceil(torch.log2(sizes.clamp(min=1).double())).long())
    padded = torch.cat([values, torch.full((1,), pad, dtype=values.dtype)])
    result = torch.zeros(count, dtype=values.dtype)
    for width in torch.unique(widths).tolist():
        rows = torch.nonzero(widths == width)[:, 0]
        at = begins[rows][:, None] + torch.arange(width)
        inside = torch.arange(width) < sizes[rows][:, None]
        places = torch.where(inside, order[at.clamp(max=max(len(order) - 1, 0))] if len(order) else at, len(values))
        result = result.index_copy(0, rows, function(padded[places]))
    return result

"""Gradient rules of sums, products, minima and maxima over axes.

A sum is a statement, whose gradient is one. The gradient of a minimum or maximum goes in equal parts to the elements
that have it, unspecified ones included, as torch has it on dense tensors. A product is taken over segments that are
padded to the next power of two, which torch differentiates, zeros included.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ...ops.reductions import folds
from ...ops.reductions.folds import reduced_shape, statement_names, unspecified_counts
from ...storage.buffers import Array, cast, torch_dtype
from ...storage.recorded import outside
from ...storage.scalars import python_scalar
from ...storage.storage import Storage, structure_of
from ...tensor.tensor import Tensor
from .permutation import detached_storage, element_mask, without_duplicates
from .pointwise import DIFFERENTIABLE, with_gradient_of
from .single_operand import Product, product

__all__ = ["fold", "keys_of", "reduce_segments", "total"]


_fold, _missing = outside()(folds.fold), outside()(unspecified_counts)


def fold(op: str, t: Tensor, axes: tuple[int, ...], scalar: str) -> Array:
    """The rule of `ops.reductions.folds.fold`."""
    s = t._storage
    if scalar not in DIFFERENTIABLE:
        return _fold(op, Tensor._from_storage(detached_storage(s)), axes, scalar)
    if op == "sum":
        return folds._fold.__wrapped__(op, t, axes, scalar)  # type: ignore[attr-defined]
    s = without_duplicates(s)
    return _extreme(op, s, axes, scalar) if op in ("min", "max") else _prod(s, axes, scalar)


def total(values: torch.Tensor, scalar: str, bits: torch.Tensor | None = None) -> torch.Tensor:
    """The rule of `runtime.full_sum.total`."""
    values = values if bits is None else values.masked_fill(~bits, 0)
    return values.sum(dtype=torch_dtype(scalar))


def _extreme(op: str, s: Storage, axes: tuple[int, ...], scalar: str) -> torch.Tensor:
    names, kept_indices = statement_names(len(s.shape), axes)
    structure = detached_storage(s)
    best: torch.Tensor = _fold(op, Tensor._from_storage(structure), axes, scalar)
    extreme_at = product(Product(structure, names, (kept_indices,), None, scalar), None, [best])
    values = structure.values
    hits = (values == extreme_at) | (values.isnan() & extreme_at.isnan())
    elements = element_mask(s)
    hits = hits if elements is None else hits & elements
    counts = product(Product(structure, names, (), kept_indices, "f64"), hits.to(torch.float64), [])
    absent = _missing(structure, axes)
    if absent is not None:
        counts = counts + absent * (best == python_scalar(s.fill_value, scalar))
    shares = hits / product(Product(structure, names, (kept_indices,), None, "f64"), None, [counts.clamp(min=1)])
    weighted = torch.where(hits, s.values, 0) * shares.to(s.values.dtype)
    computed = product(Product(structure, names, (), kept_indices, scalar), weighted, [])
    return with_gradient_of(best, computed)


def _prod(s: Storage, axes: tuple[int, ...], scalar: str) -> torch.Tensor:
    t = Tensor._from_storage(s)
    shape = reduced_shape(t, axes)
    values, keys = cast(s.values, scalar), keys_of(s, axes)
    fill = python_scalar(s.fill_value, scalar)
    absent = _missing(structure_of(s), axes)
    if absent is not None and not fill:  # beside a zero the others overflow to no infinity
        values = torch.where((absent > 0).reshape(-1)[keys.clamp(min=0)], values * 0, values)
    result = reduce_segments(values, keys, math.prod(shape), lambda rows: rows.prod(1), 1).reshape(shape)
    return result if fill == 1 or absent is None else folds.add_fill("prod", result, absent, fill, scalar, None)


@outside()
def keys_of(s: Storage, axes: tuple[int, ...]) -> torch.Tensor:
    """For each value the linear index of its element in the result of a reduction over `axes`; -1 for padding."""
    names, kept_indices = statement_names(len(s.shape), axes)
    shape = tuple(n for d, n in enumerate(s.shape) if d not in axes)
    numbers = torch.arange(math.prod(shape)).reshape(shape)
    keys = product(Product(structure_of(s), names, (kept_indices,), None, "i64"), None, [numbers])
    elements = element_mask(s)
    return keys if elements is None else torch.where(elements, keys, -1)


def reduce_segments(
    values: torch.Tensor, keys: torch.Tensor, count: int, function: Callable[[torch.Tensor], torch.Tensor], pad: float
) -> torch.Tensor:
    """`function` of the values of each key below `count`, as rows padded with `pad`; an empty one has only padding."""
    order = torch.argsort(keys, stable=True)
    order = order[int((keys < 0).sum()) :]
    sizes = torch.bincount(keys[order], minlength=count)
    starts = torch.cumsum(sizes, 0) - sizes
    widths = torch.where(sizes <= 1, 1, 2 ** torch.ceil(torch.log2(sizes.clamp(min=1).double())).long())
    padded = torch.cat([values, torch.full((1,), pad, dtype=values.dtype)])
    result = padded[-1:].expand(count)  # recorded where no segment has values, too
    for width in torch.unique(widths).tolist():
        rows = torch.nonzero(widths == width)[:, 0]
        positions = starts[rows][:, None] + torch.arange(width)
        in_segment = torch.arange(width) < sizes[rows][:, None]
        padded_positions = torch.where(
            in_segment, order[positions.clamp(max=max(len(order) - 1, 0))] if len(order) else positions, len(values)
        )
        result = result.index_copy(0, rows, function(padded[padded_positions]))
    return result

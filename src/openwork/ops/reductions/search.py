"""A tensor and an axis -> the coordinates of extremes (argmin, argmax), or running sums and products."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen import cache as kernels
from ...codegen.executable import Executable
from ...codegen.plan_cache import planned
from ...errors import DTypeError, ShapeError
from ...ir.types import COMPLEX
from ...runtime.outer_ranges import outer_ranges, ranges_of
from ...runtime.overrides import answering
from ...runtime.promote import accumulator
from ...storage.buffers import (
    as_array,
    cast,
    dtype_of,
    host_dtype,
    host_values,
    is_torch,
    scalar_name,
    scalar_of,
    to_numpy,
)
from ...storage.storage import LARGEST, Storage
from ...tensor.one_library import typed_like
from ...tensor.tensor import Tensor
from ..axes import axis_of
from ..stored_fibres import in_kept_format, reduced_fibres
from .by_ranges import folds_ranges
from .folds import reduce, reduced_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["arg_reduce", "cumulative", "extremes"]

_TEXT = """
def arg_extreme(key: i64[const], at: C[const], A: T[const], best: T[mut], found: i64[mut], free: i64[mut], n: i64):
    for k in range(0, n):
        r = key[k]
        c = i64(at[k])
        v = A[k]
        if c == free[r]:
            free[r] = c + 1
        b = best[r]
        if found[r] < 0:
            best[r] = v
            found[r] = c
        elif (v BETTER b or v != v) and b == b:
            best[r] = v
            found[r] = c
"""
"""The first extreme of each key, and the first coordinate that is not stored; coordinates ascend within a key."""


@planned("kernels of extremes")
def _kernel(op: str, coordinate: str, scalar: str) -> Executable:
    text = _TEXT.replace("BETTER", "<" if op == "min" else ">")
    return kernels.of_text(text, C=coordinate, T=scalar)


@answering
def arg_reduce(op: str, t: Tensor, axis: int | None, keepdims: bool, skip_nan: bool = False) -> Tensor:
    """Where the first least ("min") or largest ("max") element is, the first NaN where there is one.

    Parameters
    ----------
    op : "min" or "max"
    t : Tensor of any format and fill value
    axis : an axis, or None for the row-major place among all elements
    keepdims : keep the reduced dimensions with extent 1
    skip_nan : count a NaN as the last that there is; of large tensors none is kept for it

    Returns
    -------
    Tensor, sparse or dense as that of `reduce`, int64

    Cost: O(nse + size of the result), and a conversion to ordered COO.
    Raises ShapeError over an extent of 0, DTypeError for complex numbers.
    """
    axes = tuple(range(t.ndim)) if axis is None else (axis_of(axis, t.ndim, f"arg{op}", boolean=False),)
    scalar = t._storage.scalar
    if scalar in COMPLEX:
        raise DTypeError(f"arg{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    n = math.prod(t.shape[a] for a in axes)
    kept_dims = [d for d in range(t.ndim) if d not in axes]
    shape = tuple(t.shape[d] for d in kept_dims)
    if not n:
        raise ShapeError(f"arg{op} over axes {axes} of extent 0 has no value\n  help: give a tensor with elements")
    if n > LARGEST:
        raise ShapeError(f"arg{op} over axes {axes} of shape {t.shape}: places beyond 64 bits\n  help: give one axis")
    if skip_nan and (ranges_of(t._storage) is None or t.format.is_dense):
        t, skip_nan = Tensor._from_storage(_without_nan(op, t._storage)), False
    if len(kept_dims) > 1 and folds_ranges(t, axes):
        return _arg_of_ranges(op, t, axes, keepdims, skip_nan)
    sparse = reduced_fibres(t, axes, keepdims, lambda rows, over: arg_reduce(op, rows, over, False, skip_nan))
    if sparse is not None:
        return sparse
    if t.format.is_dense and n:
        positions = _arg_dense(op, t, axis)
    else:
        positions = _arg_sparse(op, t, axes, kept_dims, n, skip_nan).reshape(shape)
    return reduced_tensor(_to_library(positions, t), t, axes, keepdims)


def _without_nan(op: str, s: Storage) -> Storage:
    """A storage with the last that `op` takes in place of NaN."""
    last = math.inf if op == "min" else -math.inf
    values = host_values(s.values)
    fill = last if s.fill_value != s.fill_value else s.fill_value
    return s.with_values(as_array(np.where(np.isnan(values), values.dtype.type(last), values), like=s.values), fill)


def _arg_of_ranges(op: str, t: Tensor, axes: tuple[int, ...], keepdims: bool, skip_nan: bool) -> Tensor:
    """`arg_reduce` of a large tensor over its outermost dimension, where two or more stay."""
    best: Any = None
    places: Any = None
    for _, first, s in outer_ranges(t._storage):
        part = Tensor._from_storage(_without_nan(op, s) if skip_nan else s)
        value: Any = reduce(op, part, axes, keepdims)
        place: Any = arg_reduce(op, part, axes[0], keepdims) + first
        if best is not None:
            is_better = (value < best) if op == "min" else (value > best)
            if value.dtype.kind == "f":
                is_better = np.logical_or(is_better, np.logical_and(np.isnan(value), np.logical_not(np.isnan(best))))
            value, place = np.where(is_better, value, best), np.where(is_better, place, places)
        best, places = value, place
    return in_kept_format(places, t, axes, keepdims)


def _to_library(array: np.ndarray[Any, Any], t: Tensor) -> Any:
    if not is_torch(t.values):
        return array
    import torch

    return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape)).to(t.values.device)


def _arg_dense(op: str, t: Tensor, axis: int | None) -> np.ndarray[Any, Any]:
    return np.asarray((np.argmin if op == "min" else np.argmax)(host_values(t.to_dense()), axis=axis))


def extremes(
    op: str, t: Tensor, axes: tuple[int, ...], kept_dims: list[int], skip_nan: bool = False
) -> tuple[np.ndarray[Any, Any], ...]:
    """The stored elements -> for each row of kept dimensions the extreme, its place and the first place not stored.

    The place is -1 where nothing is stored.
    """
    scalar = t._storage.scalar
    compute_scalar = {"bool": "u8", "f16": "f32", "bf16": "f32"}.get(scalar, scalar)
    rows = math.prod(t.shape[d] for d in kept_dims)
    best = np.zeros(rows, host_dtype(compute_scalar))
    first, free = np.full(rows, -1, np.int64), np.zeros(rows, np.int64)
    for dim, begin, part in _ascending_ranges(t, axes):
        coo = Tensor._from_storage(_without_nan(op, part) if skip_nan else part).coalesce()
        if coo.ndim and coo.dense_dim:
            coo = coo.asformat("coo")
        crd = [to_numpy(c) for c in coo._storage.crd if c is not None]
        if begin:
            crd[dim] = crd[dim].astype(np.int64) + begin
        values = host_values(cast(coo.values, compute_scalar))
        key = _linearize([crd[d] for d in kept_dims], [t.shape[d] for d in kept_dims], len(values))
        crd_along = crd[axes[0]] if len(axes) == 1 else _linearize(crd, list(t.shape), len(values))
        kernel = _kernel(op, scalar_of(crd_along), compute_scalar)
        arrays = [key, np.ascontiguousarray(crd_along), np.ascontiguousarray(values), best, first, free]
        kernel.run_sized(len(values), kernel.pack([*arrays, len(values)]))
    return best, first, free


def _ascending_ranges(t: Tensor, axes: tuple[int, ...]) -> Iterable[tuple[int, int, Storage]]:
    """`outer_ranges`, where coordinates along the axes ascend from range to range; all of the tensor where not."""
    found = ranges_of(t._storage)
    if found is None or (len(axes) > 1 and found[0] != 0):
        return [(0, 0, t._storage)]
    return outer_ranges(t._storage)


def _arg_by_columns(op: str, t: Tensor, skip_nan: bool) -> np.ndarray[Any, Any]:
    """The row-major place of the extreme of a large matrix that is stored by columns: that of each row first."""
    best, first, free = extremes(op, t, (1,), [0], skip_nan)
    fill = _fill(op, t, best, skip_nan)
    columns = _positions(op, fill, best, first, free, t.shape[1])
    row = int((np.argmin if op == "min" else np.argmax)(np.where((first >= 0) & (columns == first), best, fill)))
    return np.array([row * t.shape[1] + int(columns[row])])


def _arg_sparse(
    op: str, t: Tensor, axes: tuple[int, ...], kept_dims: list[int], n: int, skip_nan: bool
) -> np.ndarray[Any, Any]:
    found = ranges_of(t._storage)
    if found is not None and found[0] == 1 and len(axes) == t.ndim == 2:
        return _arg_by_columns(op, t, skip_nan)
    best, first, free = extremes(op, t, axes, kept_dims, skip_nan)
    return _positions(op, _fill(op, t, best, skip_nan), best, first, free, n)


def _fill(op: str, t: Tensor, best: np.ndarray[Any, Any], skip_nan: bool) -> np.ndarray[Any, Any]:
    """The fill value in the type of the extremes."""
    fill = np.asarray(t.fill_value).astype(best.dtype)
    return np.asarray(math.inf if op == "min" else -math.inf, best.dtype) if skip_nan and fill != fill else fill


def _positions(
    op: str,
    fill: np.ndarray[Any, Any],
    best: np.ndarray[Any, Any],
    first: np.ndarray[Any, Any],
    free: np.ndarray[Any, Any],
    n: int,
) -> np.ndarray[Any, Any]:
    """`extremes`, and the extent of the reduced axes -> where the first extreme is, unspecified elements included."""
    better = (fill < best) if op == "min" else (fill > best)
    wins = (first < 0) | (better & (best == best)) | ((fill != fill) & (best == best))
    ties = (fill == best) | ((fill != fill) & (best != best))
    positions = np.where(wins, free, np.where(ties, np.minimum(first, free), first))
    return np.where(free < n, positions, first)


def _linearize(crd: list[np.ndarray[Any, Any]], extents: list[int], nse: int) -> np.ndarray[Any, Any]:
    """Coordinates -> row-major linear indices."""
    out = np.zeros(nse, np.int64)
    for c, extent in zip(crd, extents, strict=True):
        out *= extent
        out += c
    return out


@answering
def cumulative(op: str, t: Tensor, axis: int | None, dtype: Any, initial: bool) -> Tensor:
    """The running sum or product along `axis`, which only a vector may leave out: a dense Tensor.

    Raises ShapeError where a tensor of rank 2 or more comes without an axis, or one of rank 0.
    """

    if t.ndim == 0 or (axis is None and t.ndim != 1):
        raise ShapeError(f"cumulative_{op} of a tensor of shape {t.shape} needs an axis\n  help: give axis=")
    dim = 0 if axis is None else axis_of(axis, t.ndim, f"cumulative_{op}", boolean=False)
    t = typed_like(t, dtype)
    scalar = accumulator(t._storage.scalar, t._storage.library) if dtype is None else scalar_name(dtype)
    dense = cast(t.to_dense(), scalar)
    if is_torch(dense):
        import torch

        out = (torch.cumsum if op == "sum" else torch.cumprod)(dense, dim, dtype=dense.dtype)
        initial_element: Any = torch.full(
            (*t.shape[:dim], 1, *t.shape[dim + 1 :]), float(op == "prod"), dtype=dense.dtype
        )
        return Tensor._from_dense(torch.cat([initial_element, out], dim) if initial else out)
    running = (np.cumsum if op == "sum" else np.cumprod)(dense, axis=dim, dtype=dtype_of(scalar, dense))
    initial_values = np.full((*t.shape[:dim], 1, *t.shape[dim + 1 :]), op == "prod", running.dtype)
    return Tensor._from_dense(np.concatenate([initial_values, running], dim) if initial else running)

"""Operations along an axis that need the order of its specified elements: running sums, sorting, medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import DTypeError, ShapeError, Tensor, UnsupportedError, sparse_mask
from ..codegen import cache as kernels
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from ..integers import integer
from ..ir.types import COMPLEX, FLOATS
from ..ops import mask_formats as forms
from ..ops.reductions.folds import axes_of
from ..ops.reductions.order_statistics import TopK
from ..ops.reductions.search import _linearize
from ..ops.reductions.specified import counts
from ..ops.selection import Rows, rows_of, stored_rows
from ..ops.sorting import Fibres
from ..provided import provided, provides
from ..runtime.conversion.radix_sort import distinct
from ..runtime.gradient_hook import tracked
from ..runtime.promote import accumulator
from ..runtime.values import apply
from ..storage.buffers import Array, as_array, cast, is_torch, to_numpy
from ..storage.recorded import bare
from ..storage.storage import Storage
from .construct import strided_tensor
from .elementwise import remade
from .structure import settled
from .tensor import require_masked, wrap

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = [
    "argsort", "cumulative", "cumulative_prod", "cumulative_sum", "lower_median", "mask_nan", "median", "nonzero",
    "sort", "topk", "unique",
]  # fmt: skip

running = provided("masked running", __name__)
"""Needs torch: loaded where values are recorded."""

Ints = np.ndarray[Any, np.dtype[np.int64]]

_SCAN = """
def scan(key: i64[const], A: T[const], out: T[mut], n: i64):
    last: i64 = -1
    acc: T = START
    for k in range(0, n):
        if key[k] != last:
            last = key[k]
            acc = START
        acc = acc OP A[k]
        out[k] = acc
"""
"""Running sums within equal keys, which stand together."""


@planned("kernels of masked scans")
def _scan(op: str, scalar: str) -> Executable:
    start, symbol = {"sum": ("0", "+"), "prod": ("1", "*")}[op]
    text = _SCAN.replace("START", f"{scalar}({start})").replace("OP", symbol)
    return kernels.of_text(text, T=scalar)


def _axis(operation: str, m: MaskedTensor, axis: int | None) -> int:
    require_masked(operation, m)
    if m.ndim == 0 or (axis is None and m.ndim != 1):
        raise ShapeError(f"{operation} of a masked tensor of shape {m.shape} needs an axis\n  help: give axis=")
    return axes_of(0 if axis is None else axis, m.ndim)[0]


def _fibres(m: MaskedTensor, d: int) -> tuple[Tensor, Ints, tuple[int, ...]]:
    """The specified elements in ordered COO with axis `d` last, the fibre of each, and how the dimensions stand."""
    order = (*(k for k in range(m.ndim) if k != d), d)
    t = m._tensor.transpose(order).asformat("coo")
    crd = [to_numpy(c) for c in t._storage.crd if c is not None]
    return t, _linearize(crd[:-1], list(t.shape[:-1]), len(crd[-1])), order


def _back(t: Tensor, order: tuple[int, ...], m: MaskedTensor) -> MaskedTensor:
    """A result with its dimensions where they were, in the format of `m`."""

    place = sorted(range(len(order)), key=order.__getitem__)
    return wrap(t.transpose(place).asformat(forms.fitting(m.format)))


def cumulative(op: str, m: MaskedTensor, axis: int | None) -> MaskedTensor:
    """Running sums or products along an axis, past missing elements, which stay missing.

    Cost: O(nse), and a conversion to COO where the format is not strided.
    """

    d = _axis(f"cumulative {op}", m, axis)
    s = m._tensor._storage
    scalar = accumulator(s.scalar, s.library)
    if s.format == forms.strided(m.ndim):
        start = {"sum": 0, "prod": 1}[op]
        dense = cast(m.filled(start).to_dense(), scalar)
        if is_torch(dense):
            import torch

            out = (torch.cumsum if op == "sum" else torch.cumprod)(dense, d)
        else:
            out = (np.cumsum if op == "sum" else np.cumprod)(dense, axis=d)
        return remade(s, out.reshape(-1), False)
    t, keys, order = _fibres(m, d)
    if tracked((t.values,)):
        first = np.searchsorted(keys, keys)
        values = running(op, cast(t.values, scalar), np.arange(len(keys)) - first)
        return _back(Tensor._from_storage(t._storage.with_values(values)), order, m)
    computed = {"f16": "f32", "bf16": "f32"}.get(scalar, scalar)
    values = to_numpy(cast(t.values, computed))
    added = np.empty_like(values)
    kernel = _scan(op, computed)
    arrays = [keys, np.ascontiguousarray(values), added]
    kernel.run_sized(len(values), kernel.pack([*arrays, len(values)]))
    sums = t._storage.with_values(cast(as_array(added, like=t.values), scalar))
    return _back(Tensor._from_storage(sums), order, m)


def _ordered(operation: str, m: MaskedTensor) -> None:
    if m._tensor._storage.scalar in COMPLEX:
        raise DTypeError(f"{operation} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")


def _sorted(m: MaskedTensor, d: int, descending: bool) -> tuple[Tensor, Ints, tuple[int, ...]]:
    """Fibres with their elements in order, where each element stood along the axis, and the order of dimensions."""
    _ordered("sort", m)
    fibres = Fibres(m._tensor, d)
    s = fibres.storage
    taken, place = fibres.as_rows(missing=True).order(descending)
    old = to_numpy(s.crd[-1]).astype(np.int64)[taken]
    values = s.values[as_array(taken, like=s.values)]
    crd = (*s.crd[:-1], as_array(place, like=values))
    ordered = Storage(s.shape, s.format, s.scalar, s.fill_value, s.pos, crd, values)
    return Tensor._from_storage(ordered), old, tuple(fibres.order)


@provides("masked cumulative_sum")
def cumulative_sum(
    m: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> MaskedTensor:
    """Running sums along an axis, past missing elements, which stay missing; in `dtype` where one is given."""
    return _cumulative("sum", m, axis, dtype, include_initial)


@provides("masked cumulative_prod")
def cumulative_prod(
    m: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> MaskedTensor:
    """Running products along an axis, past missing elements, which stay missing; in `dtype` where one is given."""
    return _cumulative("prod", m, axis, dtype, include_initial)


def _cumulative(op: str, m: MaskedTensor, axis: int | None, dtype: Any, include_initial: bool) -> MaskedTensor:
    if include_initial:
        raise UnsupportedError(f"cumulative_{op}: include_initial= of a masked tensor\n  help: leave it out")
    return cumulative(op, m if dtype is None else m.astype(dtype), axis)


@provides("masked sort")
def sort(m: MaskedTensor, axis: int = -1, descending: bool = False, stable: bool = True) -> MaskedTensor:
    """Sorted along an axis, missing elements last, always stable; NaN is the largest."""
    made, _, order = _sorted(m, _axis("sort", m, axis), descending)
    return _back(made, order, m)


@provides("masked argsort")
def argsort(m: MaskedTensor, axis: int = -1, descending: bool = False, stable: bool = True) -> MaskedTensor:
    """Where the elements of `sort` stand, int64; missing where these are."""
    made, old, order = _sorted(m, _axis("argsort", m, axis), descending)
    places = Tensor._from_storage(made._storage.with_values(as_array(old, like=made.values), 0))
    return _back(places, order, m)


@provides("masked topk")
def topk(m: MaskedTensor, k: int, axis: int = -1, largest: bool = True) -> TopK[MaskedTensor]:
    """The `k` largest or least elements along an axis, in order, and where they stand."""
    d = _axis("topk", m, axis)
    _ordered("topk", m)
    k = min(integer(k, "topk", "k"), m.shape[d])
    if k < 0:
        raise ShapeError(f"topk: k = {k}\n  help: k is between 0 and the extent")
    rows, order = rows_of(_sparse(m), d, True)
    places, found = rows.first(k, largest)
    chosen = stored_rows(rows, found, (*(m.shape[a] for a in order[:-1]), k))
    coordinates = as_array(places[found >= 0], like=rows.values)
    parts = (chosen, chosen.with_values(coordinates, 0))
    return TopK(*(_back(Tensor._from_storage(s), tuple(order), m) for s in parts))


@provides("masked median")
def median(m: MaskedTensor, axis: int | None = None, keepdims: bool = False) -> MaskedTensor:
    """The median of the specified elements over an axis, all without: the mean of the middle two for an even number."""
    _ordered("median", m)
    axes = axes_of(axis, m.ndim)
    number = np.asarray([m.nse]) if axis is None else to_numpy(counts(m._tensor._storage, axes)).reshape(-1)
    rows = _all_in_one_row(m) if axis is None else rows_of(_sparse(m), axes[0], True)[0]
    middle = np.stack([(number - 1) // 2, number // 2], axis=1)
    elements = rows.gathered(rows.at(np.where(number[:, None] > 0, middle, -1))[1])
    elements = elements if m._tensor._storage.scalar in FLOATS else cast(elements, "f64")
    bits = as_array((number > 0).reshape(_kept(m, axes, keepdims)), like=m.values)
    return strided_tensor(((elements[:, 0] + elements[:, 1]) / 2).reshape(bits.shape), bits)


def lower_median(m: MaskedTensor, axis: int, keepdims: bool = False) -> tuple[MaskedTensor, MaskedTensor]:
    """The lower of the two specified elements in the middle along an axis, and where it stands: torch's median."""
    _ordered("median", m)
    d = axes_of(axis, m.ndim)[0]
    number = to_numpy(counts(m._tensor._storage, (d,))).reshape(-1)
    rows, _ = rows_of(_sparse(m), d, True)
    places, found, _ = rows.at(np.where(number > 0, (number - 1) // 2, -1)[:, None])
    bits = as_array((number > 0).reshape(_kept(m, (d,), keepdims)), like=m.values)
    parts = (rows.gathered(found), as_array(np.maximum(places, 0), like=m.values))
    values, indices = (strided_tensor(x.reshape(bits.shape), bits) for x in parts)
    return values, indices


def _sparse(m: MaskedTensor) -> Tensor:
    """The specified elements in a format that stores no others."""
    return m._tensor.asformat("coo") if m._tensor.format.is_dense else m._tensor


def _all_in_one_row(m: MaskedTensor) -> Rows:
    values = m.compressed()
    ends = np.array([0, len(values)])
    return Rows(values, ends, np.arange(ends[1]), 1, len(values), 0, True)


def _kept(m: MaskedTensor, axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction over axes."""
    return tuple(1 if k in axes else n for k, n in enumerate(m.shape) if keepdims or k not in axes)


@provides("masked mask_nan")
def mask_nan(m: MaskedTensor) -> MaskedTensor:
    """The specified elements that are not NaN."""
    if m._tensor._storage.scalar not in (*FLOATS, *COMPLEX):
        return m
    if m._scalar:
        return m.reshape(1).mask_nan().reshape(())
    s = m._tensor._storage
    stays = Tensor._from_storage(
        s.with_values(apply("not", apply("isnan", bare(s.values) if is_torch(s.values) else s.values)), False)
    )
    return wrap(settled(sparse_mask(m._tensor, stays.prune()), m.format))


@provides("masked unique")
def unique(m: MaskedTensor) -> MaskedTensor:
    """The distinct specified elements in order, and one missing one behind them where any is missing."""
    held = to_numpy(m.compressed())
    values = np.unique(held) if held.dtype.kind == "c" else distinct(held)
    more = m.nse < m.size
    bits = np.ones(len(values) + more, np.bool_)
    bits[len(values) :] = False
    padded = np.concatenate([values, np.zeros(int(more), values.dtype)])
    return strided_tensor(as_array(padded, like=m.values), as_array(bits, like=m.values))


@provides("masked coordinates")
def nonzero(m: MaskedTensor) -> tuple[Array, ...]:
    """Coordinates, one array for each dimension, of the specified elements that are not zero, row-major."""
    t = m._tensor.asformat("coo")
    keep = np.flatnonzero(to_numpy(t.values) != 0)
    return tuple(as_array(to_numpy(c)[keep].astype(np.int64), like=m.values) for c in t._storage.crd if c is not None)

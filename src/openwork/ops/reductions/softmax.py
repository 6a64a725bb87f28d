"""A tensor and an axis -> softmax and its logarithm over the specified elements, logsumexp over all."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.index import Access, Apply, Assignment
from ...ir.types import FLOATS
from ...provided import provided
from ...runtime import trace
from ...runtime.contract import contract, sample
from ...runtime.conversion.remap import canonical
from ...runtime.operation import operation
from ...runtime.outer_ranges import ranges_of
from ...runtime.strided import strided
from ...runtime.values import apply
from ...storage.buffers import Array, cast, is_torch
from ...storage.recorded import bare, is_batched, outside
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..axes import as_tensor
from ..elementwise.maps import _on_values
from ..stored_fibres import reduced_fibres
from .by_ranges import by_ranges
from .folds import axes_of, check_extents, fold, reduced_tensor, statement_names, unspecified_counts
from .row_softmax import softmax_rows

__all__ = ["log_softmax", "logsumexp", "softmax"]


@operation(method=True, masked=provided("masked softmax"), shape="same", dtype="float", format="same")
def softmax(x: Any, /, axis: int = -1) -> Tensor:
    """The exponentials of the elements along `axis`, divided by their sum; only specified elements take part.

    Parameters
    ----------
    x : Tensor; integers and bool are taken as float64
    axis : the axis along which the results sum to 1

    Returns
    -------
    Tensor of the structure of `x`, fill value 0; of a dense format all elements take part. Duplicates are summed first.

    Guarantees: no overflow; an axis without specified elements stays without.
    Cost: O(nse + size of the other dimensions). Raises ShapeError for an axis that is not there.
    Source: torch.sparse.softmax's meaning of unspecified elements, as of minus infinity.

    See also: log_softmax, logsumexp, nn.attend.

    Examples
    --------
    >>> A = ow.asarray([[0, 1.0], [2.0, 2.0]], format="csr")
    >>> ow.softmax(A, axis=1).to_numpy()
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    t = as_tensor(x)
    in_rows = None if trace.steps else softmax_rows(t._storage, axis)
    if in_rows is not None:
        return Tensor._from_storage(t._storage.with_values(in_rows, 0))
    s, shifted, total = _subtract_maximum(t, axis)
    values = _on_values(s.with_values(shifted), lambda v: apply("exp", v))
    return Tensor._from_storage(s.with_values(values / _one_in_padding(s, _gather_along(s, total, axis)), 0))


@operation(method=True, masked=provided("masked log_softmax"), shape="same", dtype="float", format="same")
def log_softmax(x: Any, /, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, more accurate than of its result; unspecified elements stay unspecified.

    Cost: O(nse).
    See also: softmax, logsumexp.

    Examples
    --------
    >>> A = ow.asarray([[0, 1.0], [2.0, 2.0]], format="csr")
    >>> ow.log_softmax(A, axis=1).values.round(3)
    array([ 0.   , -0.693, -0.693])
    """
    s, shifted, total = _subtract_maximum(as_tensor(x), axis)
    log_total = apply("log", _one_in_padding(s, _gather_along(s, total, axis)))
    return Tensor._from_storage(s.with_values(shifted - log_total, 0))


@operation(
    method=True,
    torch="logsumexp(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="float",
    fill="reduced",
)
def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over `axis`, unspecified elements included, without overflow.

    Returns
    -------
    Tensor, sparse or dense as that of `sum`. Cost: O(nse + size of the result). Raises ShapeError over an extent of 0.

    See also: log_softmax, sum.

    Examples
    --------
    >>> A = ow.asarray([[0, 1.0], [2.0, 2.0]], format="csr")
    >>> ow.logsumexp(A, axis=1).to_numpy().round(3)
    array([1.313, 2.693])
    """
    t = _floating(as_tensor(x))
    axes = axes_of(axis, t.ndim, lists=is_torch(t.values))
    check_extents("logsumexp", t, axes)
    if ranges_of(t._storage) is not None:
        return by_ranges(t, axes, keepdims, np.logaddexp, lambda part: logsumexp(part, axes, keepdims=keepdims))
    sparse = reduced_fibres(t, axes, keepdims, logsumexp)
    if sparse is not None:
        return sparse
    s = (t if t.format.is_unique else t.asformat(canonical(t.format)))._storage
    largest = fold("max", Tensor._from_storage(s).detach(), axes, s.scalar)
    largest = _where_finite(largest)
    names, kept_indices = statement_names(t.ndim, axes)
    largest_of_element = _gather(s, names, kept_indices, largest)
    values = _on_values(s.with_values(s.values - largest_of_element), lambda v: apply("exp", v))
    total = contract(_sum_statement(names, kept_indices), {"A": s.with_values(values, 0)}, s.scalar, s.values)
    absent = unspecified_counts(s, axes)
    if absent is not None:
        count = cast(_array(absent), s.scalar)
        total = total + count * apply("exp", _where(count > 0, s.fill_value - largest, -math.inf))
    return reduced_tensor(_array(apply("log", total)) + largest, t, axes, keepdims)


def _floating(t: Tensor) -> Tensor:
    return t if t._storage.scalar in FLOATS else t.astype("float64")


def _array(x: Any) -> Array:
    return x if is_torch(x) else np.asarray(x)


def _where(condition: Array, x: Array, other: float) -> Array:
    """`x` where the condition holds, a number elsewhere."""
    if is_torch(x):
        import torch

        return torch.where(condition, x, other)
    return np.where(condition, x, x.dtype.type(other))


def _where_finite(x: Array) -> Array:
    """The array with 0 for what is not finite."""
    if is_torch(x):
        return x.nan_to_num(0.0, 0.0, 0.0)
    return np.nan_to_num(np.asarray(x), nan=0.0, posinf=0.0, neginf=0.0)


def _subtract_maximum(t: Tensor, axis: int) -> tuple[Storage, Array, Array]:
    """The storage without duplicates, its values less the largest along the axis, and the sums of exponentials."""
    t = _floating(t)
    axes = axes_of(axis, t.ndim, lists=False)
    t = t if t.format.is_unique else t.asformat(canonical(t.format))
    s = t._storage
    names, kept_indices = statement_names(t.ndim, axes)
    largest = _where_finite(
        _without_gradient(lambda c: contract(_max_statement(names, kept_indices), {"A": c}, s.scalar, c.values), s)
    )
    shifted = s.values - _gather(s, names, kept_indices, largest)
    values = _on_values(s.with_values(shifted, 0), lambda v: apply("exp", v))
    total = contract(_sum_statement(names, kept_indices), {"A": s.with_values(values, 0)}, s.scalar, s.values)
    return s, shifted, total


def _without_gradient(function: Callable[[Storage], Array], s: Storage) -> Array:
    """`function` of the storage, detached from torch's graph; of a batch of values, of each."""
    if not is_torch(s.values):
        return function(s)
    if is_batched(s.values):
        return function(s.with_values(s.values.detach()))
    with outside():
        return function(s.with_values(bare(s.values)))


def _gather_along(s: Storage, dense: Array, axis: int) -> Array:
    names, kept_indices = statement_names(len(s.shape), axes_of(axis, len(s.shape)))
    return _gather(s, names, kept_indices, dense)


def _gather(s: Storage, names: tuple[str, ...], kept_indices: tuple[str, ...], dense: Array) -> Array:
    """A dense array over the dimensions `kept_indices`, gathered at each stored element."""
    if not math.prod(s.shape):
        return s.values * 0
    return sample(_gather_statement(names, kept_indices), {"A": s, "D": strided(_array(dense))}, s.scalar).values


@lru_cache(maxsize=256)
def _max_statement(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """s[i] max= A[i, j]."""
    return Assignment(Access("s", kept_indices), "max=", Access("A", names))


@lru_cache(maxsize=256)
def _sum_statement(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """s[i] += A[i, j]."""
    return Assignment(Access("s", kept_indices), "+=", Access("A", names))


@lru_cache(maxsize=256)
def _gather_statement(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """C[i, j] = pattern(A[i, j]) * D[i]."""
    gathered = Apply("mul", (Apply("pattern", (Access("A", names),)), Access("D", kept_indices)))
    return Assignment(Access("C", names), "=", gathered)


def _one_in_padding(s: Storage, values: Array) -> Array:
    """The values with 1 where they are 0 in padding, so that they divide."""
    if s.nse == values.shape[0]:
        return values
    return values + (values == 0)

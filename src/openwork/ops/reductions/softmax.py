"""Exponentials that are summed along an axis: softmax over the specified elements, logsumexp over all."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.index import Access, Apply, Assignment
from ...ir.types import FLOATS
from ...runtime.contract import contract, shared
from ...runtime.operation import operation
from ...runtime.strided import strided
from ...runtime.values import apply
from ...storage.buffers import Array, bare, cast, is_batched, is_torch, outside
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..axes import as_tensor
from ..elementwise.maps import _on_values
from .folds import axes_of, finish, fold, missing, statement_names

__all__ = ["log_softmax", "logsumexp", "softmax"]


@operation(method=True, masked="method", shape="same", dtype="float")
def softmax(x: Any, /, axis: int = -1) -> Tensor:
    """Exponentials of the elements along `axis`, divided by their sum; only specified elements take part.

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
    """
    s, shifted, total = _shifted(as_tensor(x), axis)
    values = _on_values(s.with_values(shifted), lambda v: apply("exp", v))
    return Tensor._from_storage(s.with_values(values / _safe(s, _sampled(s, total, axis)), 0))


@operation(method=True, masked="method", shape="same", dtype="float")
def log_softmax(x: Any, /, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, more accurate than of its result; unspecified elements stay unspecified."""
    s, shifted, total = _shifted(as_tensor(x), axis)
    below = apply("log", _safe(s, _sampled(s, total, axis)))
    return Tensor._from_storage(s.with_values(shifted - below, 0))


@operation(
    method=True,
    torch="logsumexp(dim: axis = None, keepdim: keepdims = False)",
    masked="method",
    shape="reduced",
    dtype="float",
    fill="dense",
)
def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over `axis`, unspecified elements included, without overflow.

    Returns
    -------
    Tensor of dense format. Cost: O(nse + size of the result). Raises ShapeError over an extent of 0.
    """
    t = _floating(as_tensor(x))
    axes = axes_of(axis, t.ndim, lists=is_torch(t.values))
    s = (t if t.format.is_unique else t.coalesce())._storage
    most = fold("max", Tensor._from_storage(s).detach(), axes, s.scalar)
    most = _where_finite(most)
    names, kept = statement_names(t.ndim, axes)
    at = _take(s, names, kept, most)
    values = _on_values(s.with_values(s.values - at), lambda v: apply("exp", v))
    total = contract(_sum(names, kept), {"A": s.with_values(values, 0)}, s.scalar, s.values)
    absent = missing(s, axes)
    if absent is not None:
        below = apply("min", s.fill_value - most, 0.0)
        total = total + cast(_array(absent), s.scalar) * apply("exp", below)
    return finish(_array(apply("log", total)) + most, t, axes, keepdims)


def _floating(t: Tensor) -> Tensor:
    return t if t._storage.scalar in FLOATS else t.astype("float64")


def _array(x: Any) -> Array:
    return x if is_torch(x) else np.asarray(x)


def _where_finite(x: Array) -> Array:
    """The array with 0 for what is not finite."""
    if is_torch(x):
        return x.nan_to_num(0.0, 0.0, 0.0)
    return np.nan_to_num(np.asarray(x), nan=0.0, posinf=0.0, neginf=0.0)


def _shifted(t: Tensor, axis: int) -> tuple[Storage, Array, Array]:
    """The storage without duplicates, its values less the largest along the axis, and the sums of exponentials."""
    t = _floating(t)
    axes = axes_of(axis, t.ndim, lists=False)
    t = t if t.format.is_unique else t.coalesce()
    s = t._storage
    names, kept = statement_names(t.ndim, axes)
    most = _where_finite(_constant(lambda c: contract(_largest(names, kept), {"A": c}, s.scalar, c.values), s))
    shifted = s.values - _take(s, names, kept, most)
    values = _on_values(s.with_values(shifted, 0), lambda v: apply("exp", v))
    total = contract(_sum(names, kept), {"A": s.with_values(values, 0)}, s.scalar, s.values)
    return s, shifted, total


def _constant(function: Callable[[Storage], Array], s: Storage) -> Array:
    """`function` of the storage without gradients; of a batch of values, of each."""
    if not is_torch(s.values):
        return function(s)
    if is_batched(s.values):
        return function(s.with_values(s.values.detach()))
    with outside():
        return function(s.with_values(bare(s.values)))


def _sampled(s: Storage, dense: Array, axis: int) -> Array:
    names, kept = statement_names(len(s.shape), axes_of(axis, len(s.shape)))
    return _take(s, names, kept, dense)


def _take(s: Storage, names: tuple[str, ...], kept: tuple[str, ...], dense: Array) -> Array:
    """A dense array of the dimensions `kept`, at each stored element."""
    if not math.prod(s.shape):
        return s.values * 0
    return shared(_at_elements(names, kept), {"A": s, "D": strided(_array(dense))}, s.scalar).values


@lru_cache(maxsize=256)
def _at_elements(names: tuple[str, ...], kept: tuple[str, ...]) -> Assignment:
    """C[i, j] = pattern(A[i, j]) * D[i]; kept, as its hash is in all keys of launches."""
    at = Apply("mul", (Apply("pattern", (Access("A", names),)), Access("D", kept)))
    return Assignment(Access("C", names), "=", at)


@lru_cache(maxsize=256)
def _largest(names: tuple[str, ...], kept: tuple[str, ...]) -> Assignment:
    return Assignment(Access("s", kept), "max=", Access("A", names))


@lru_cache(maxsize=256)
def _sum(names: tuple[str, ...], kept: tuple[str, ...]) -> Assignment:
    return Assignment(Access("s", kept), "+=", Access("A", names))


def _safe(s: Storage, values: Array) -> Array:
    """The values with 1 in padding, where sums are 0."""
    if s.nse == values.shape[0]:
        return values
    return values + (values == 0)

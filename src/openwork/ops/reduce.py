"""Reductions of one tensor over any dimensions, the unspecified elements included."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError
from ..ir.index import Access, Apply, Assignment
from ..storage.buffers import Array, cast, is_torch, scalar_name, scalar_of
from ..storage.storage import Storage
from .contract import contract
from .promote import accumulator

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["reduce"]

_OPERATORS = {"sum": "+=", "prod": "*=", "min": "min=", "max": "max="}


def reduce(op: str, t: Tensor, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """Reduce over `axis`.

    Parameters
    ----------
    op : "sum", "prod", "min", "max", "mean", "any" or "all"
    t : Tensor of any format and fill value
    axis : an axis, several, or None for all
    keepdims : keep the reduced dimensions with extent 1
    dtype : of the result; without, integers and bool are summed in 64 bits and the rest in their own type

    Returns
    -------
    Tensor of dense format

    Guarantees: equal to the reduction of the dense array, up to the order of floating-point sums.
    Cost: O(nse + size of the result).
    Raises ShapeError for an axis that is not there or twice there.
    """
    from .tensor import Tensor

    axes = _axes(axis, t.ndim)
    if op == "mean":
        count = math.prod(t.shape[a] for a in axes)
        total = reduce("sum", t, axis, keepdims, dtype or _mean_dtype(t))
        return (
            Tensor._from_dense(total.to_dense() / count) if count else Tensor._from_dense(total.to_dense() / math.nan)
        )
    if op in ("any", "all"):
        truth = t if t._storage.scalar == "bool" else t != 0
        return (
            reduce("max" if op == "any" else "min", truth, axis, keepdims, None)
            if _some(truth, axes)
            else _empty(truth, axes, keepdims, op == "all")
        )
    if op not in _OPERATORS:
        raise UnsupportedError(
            f"there is no reduction {op!r}\n  supported: {', '.join((*_OPERATORS, 'mean', 'any', 'all'))}"
        )
    result = _reduce(op, t, axes, dtype)
    if keepdims:
        result = result.reshape(tuple(1 if d in axes else n for d, n in enumerate(t.shape)))
    return Tensor._from_dense(result)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    bad = [a for a in given if not -ndim <= a < ndim]
    if bad:
        raise ShapeError(f"axis {bad[0]} of a tensor of rank {ndim}\n  help: axes are {-ndim} to {ndim - 1}")
    axes = tuple(sorted(a % ndim for a in given))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {given} names a dimension twice\n  help: name each once")
    return axes


def _mean_dtype(t: Tensor) -> Any:
    from .tensor import Tensor  # noqa: F401

    return t.dtype if t._storage.scalar[0] in "fbc" and t._storage.scalar != "bool" else "float64"


def _some(t: Tensor, axes: tuple[int, ...]) -> bool:
    return all(t.shape[a] for a in axes)


def _empty(t: Tensor, axes: tuple[int, ...], keepdims: bool, value: bool) -> Tensor:
    from .tensor import Tensor

    shape = tuple(1 if d in axes else n for d, n in enumerate(t.shape) if keepdims or d not in axes)
    return Tensor._from_dense(np.full(shape, value))


@lru_cache(maxsize=256)
def _statement(op: str, ndim: int, axes: tuple[int, ...], count: bool) -> Assignment:
    names = tuple(f"i{k}" for k in range(ndim))
    kept = tuple(n for k, n in enumerate(names) if k not in axes)
    source = Access("A", names)
    return Assignment(Access("s", kept), "+=" if count else op, Apply("pattern", (source,)) if count else source)


def _reduce(op: str, t: Tensor, axes: tuple[int, ...], dtype: Any) -> Array:
    s = t._storage
    if not t.format.is_unique and (op != "sum" or s.fill_value):
        s = t.coalesce()._storage
    scalar = scalar_name(dtype) if dtype is not None else accumulator(s.scalar) if op in ("sum", "prod") else s.scalar
    n = math.prod(t.shape[a] for a in axes)
    if op in ("min", "max"):
        if s.scalar in ("c64", "c128"):
            raise DTypeError(f"{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
        if not n and all(d for k, d in enumerate(t.shape) if k not in axes):
            raise ShapeError(f"{op} over axes {axes} of extent 0 has no value\n  help: give a tensor with elements")
    flat = _flat(op, s, axes, scalar)
    if flat is not None:
        return flat
    result = contract(_statement(_OPERATORS[op], t.ndim, axes, False), {"A": s}, scalar, s.values)
    neutral = {"sum": 0, "prod": 1}.get(op)
    if s.fill_value == neutral or t.size == s.nse or not n:
        return result
    stored = contract(_statement("+=", t.ndim, axes, True), {"A": s}, "i64", s.values)
    return _add_fill(op, result, n - stored, s.fill_value, scalar)


def _flat(op: str, s: Storage, axes: tuple[int, ...], scalar: str) -> Array | None:
    """The sum over everything, straight over the values, where these hold no padding."""
    compact = s.values.shape[0] == s.nse and not s.fill_value
    if op != "sum" or len(axes) != len(s.shape) or not compact:
        return None
    total = cast(s.values, scalar).sum() if scalar_of(s.values) != scalar else s.values.sum(dtype=s.values.dtype)
    return total if is_torch(total) else np.asarray(total)


def _add_fill(op: str, result: Array, missing: Array, fill: Any, scalar: str) -> Array:
    """Take the unspecified elements in: `missing` of them, all of the value `fill`."""
    xp: Any = np
    if is_torch(result):
        import torch

        xp = torch
    if op == "sum":
        return result + xp.where(missing > 0, cast(missing, scalar) * fill, cast(missing * 0, scalar))
    filled = cast(missing * 0, scalar) + fill
    if op == "prod":
        return result * filled ** cast(missing, scalar)
    choose = xp.minimum if op == "min" else xp.maximum
    return xp.where(missing > 0, choose(result, filled), result)

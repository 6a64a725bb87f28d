"""A tensor and axes -> its reduction over them, unspecified elements included: dense, or sparse by stored fibres.

A reduction is a compiled walk of the stored elements, `s[i] += A[i, j]`, and where elements are missing a second one
that counts what is stored, `n[i] += pattern(A[i, j])`: the fill value then counts as often as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler.schedule.kept_format import kept_format
from ...errors import DTypeError, ShapeError, UnsupportedError
from ...integers import AxisError, integers
from ...interop.sources import asarray
from ...ir.index import Access, Apply, Assignment
from ...ir.types import COMPLEX, FLOATS
from ...provided import provides
from ...runtime.contract import contract
from ...runtime.duplicates import summed
from ...runtime.full_sum import LEAST, total
from ...runtime.gradient_hook import differentiable
from ...runtime.promote import accumulator
from ...storage.buffers import Array, cast, dtype_of, is_torch, numpy_dtype, scalar_name, scalar_of
from ...storage.scalars import keeps_sums, python_scalar
from ...storage.specified import may_pad
from ...storage.storage import LARGEST, Storage
from ...tensor.lazy import Lazy, defer
from ...tensor.one_library import typed_like
from ...tensor.tensor import Tensor
from ..stored_fibres import reduced_fibres
from .by_ranges import by_ranges, folds_ranges

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "accumulation_type",
    "add_fill",
    "axes_of",
    "check_extents",
    "fold",
    "reduce",
    "reduced_shape",
    "reduced_tensor",
    "statement_names",
    "unspecified_counts",
]

_OPERATORS = {"sum": "+=", "prod": "*=", "min": "min=", "max": "max="}


@provides("reduce")
def reduce(op: str, t: Tensor, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """Reduce over `axis`.

    Parameters
    ----------
    op : "sum", "prod", "min", "max", "mean", "any", "all" or "count_nonzero"
    t : Tensor of any format and fill value
    axis : an axis, several, or None for all
    keepdims : keep the reduced dimensions with extent 1
    dtype : of the result; without, integers and bool are summed in 64 bits and the rest in their own type

    Returns
    -------
    Tensor of dense format; where two dimensions or more stay that the tensor does not store as dense ones, sparse: its
    own levels of these, which store the fibres of which it stores something, and the reduction of a fibre that stores
    nothing as fill value; see `stored_fibres.kept_format`

    Guarantees: equal to the reduction of the dense array, up to the order of floating-point sums; a NaN among the
    elements is the least and the largest of them. Means are summed in float64, or complex128.
    Cost: O(nse + size of the result).
    Raises ShapeError for an axis that is not there or twice there, and for `min` and `max` of no elements.
    """
    if isinstance(t, Lazy):
        return defer(
            "reduce", op, partial(_reduce_computed, op, axis, keepdims, dtype), (t,), ("", axis, keepdims, dtype)
        )
    t = t if dtype is None else typed_like(t, dtype)
    s = t._storage
    ndim = len(s.shape)
    axes = axes_of(axis, ndim, lists=type(s.values) is not np.ndarray)
    if op not in _OPERATORS and op not in _DERIVED:
        raise UnsupportedError(f"there is no reduction {op!r}\n  supported: {', '.join((*_OPERATORS, *_DERIVED))}")
    if len(axes) < ndim - 1:
        check_extents(op, t, axes)
        if (
            folds_ranges(t, axes)
            and kept_format(t.format, tuple(d for d in range(t.ndim) if d not in axes)) is not None
        ):
            return _folded_ranges(op, t, axes, keepdims, dtype)
        fill_key = (op, dtype if dtype is None else scalar_name(dtype))
        sparse = reduced_fibres(
            t, axes, keepdims, lambda rows, over: reduce(op, rows, over, False, dtype), key=fill_key
        )
        if sparse is not None:
            return sparse
    if op in _OPERATORS:
        scalar = accumulator(s.scalar, s.library) if op in ("sum", "prod") else s.scalar
        scalar = scalar if dtype is None else scalar_name(dtype)
        return reduced_tensor(fold(op, t, axes, scalar), t, axes, keepdims)
    result = _DERIVED[op](t, axes)
    return reduced_tensor(result if dtype is None else _cast_result(result, op, scalar_name(dtype)), t, axes, keepdims)


_FOLDS = {
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "any": np.logical_or,
    "all": np.logical_and, "count_nonzero": np.add,
}  # fmt: skip


def _folded_ranges(op: str, t: Tensor, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Tensor:
    """`reduce` of a large tensor whose result is sparse and has not its outermost dimension."""
    s = t._storage
    in_double = op == "mean" or (op == "sum" and s.scalar in (*FLOATS, *COMPLEX))
    wide = numpy_dtype(accumulation_type(s.scalar)) if in_double else dtype
    base = "sum" if op == "mean" else op
    out = by_ranges(t, axes, keepdims, _FOLDS[base], lambda part: reduce(base, part, axes, keepdims, wide))
    if not in_double:
        return out
    if op == "mean":
        out = out / math.prod(t.shape[a] for a in axes)
    scalar = (_mean_scalar(s.scalar) if op == "mean" else s.scalar) if dtype is None else scalar_name(dtype)
    result: Tensor = out.astype(numpy_dtype(scalar), copy=False)
    return result


def _mean_scalar(scalar: str) -> str:
    """The scalar type of the mean of elements of one."""
    return scalar if scalar in (*FLOATS, *COMPLEX) else "f64"


def _cast_result(result: Array, op: str, scalar: str) -> Array:
    """A result cast to the scalar type of `dtype=`; DTypeError for a complex one as real."""
    if scalar_of(result) in COMPLEX and scalar not in COMPLEX:
        raise DTypeError(f"{op}: a complex result is no {dtype_of(scalar, result)}\n  help: take the real part first")
    return cast(result, scalar)


def _reduce_computed(op: str, axis: Any, keepdims: bool, dtype: Any, x: Any) -> Tensor:
    """The reduction of a computed lazy expression."""

    return reduce(op, asarray(x), axis, keepdims, dtype)


def axes_of(axis: Any, ndim: int, *, lists: bool = True) -> tuple[int, ...]:
    """The axes, one or a tuple, as sorted numbers from 0; all of them for None.

    lists : whether a list of them will do, as for torch's `dim`; NumPy takes none
    """
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    numbers = integers(axis, "reduce", "axis", boolean=False, sequences=(tuple, list) if lists else (tuple,))
    bad = [a for a in numbers if not -ndim <= a < ndim]
    if bad and ndim:
        raise AxisError(f"axis {bad[0]} of a tensor of rank {ndim}\n  help: axes are {-ndim} to {ndim - 1}")
    if bad:
        raise AxisError(f"axis {bad[0]} of a tensor of rank 0\n  help: it has no axes; leave axis out")
    axes = tuple(sorted(a % ndim for a in numbers))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {numbers} names a dimension twice\n  help: name each once")
    return axes


def check_extents(op: str, t: Tensor, axes: tuple[int, ...]) -> None:
    """Raises ShapeError for an operation that has no value of no elements, where there are none.

    As in NumPy and torch, `min` and `max` over an extent of 0 are refused where their result has no elements, too.
    """
    refused = op in ("min", "max") or (op == "logsumexp" and 0 not in reduced_shape(t, axes))
    if refused and not math.prod(t.shape[a] for a in axes):
        raise ShapeError(f"{op} over axes {axes} of extent 0 has no value\n  help: give a tensor with elements")


def reduced_shape(t: Tensor, axes: tuple[int, ...], keepdims: bool = False) -> tuple[int, ...]:
    """The shape of a reduction over `axes`."""
    return tuple(1 if d in axes else n for d, n in enumerate(t.shape) if keepdims or d not in axes)


def reduced_tensor(result: Array, t: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """A dense Tensor of a reduced array."""

    return Tensor._from_dense(result.reshape(reduced_shape(t, axes, True)) if keepdims else result)


def accumulation_type(scalar: str) -> str:
    """The scalar type that means and variances are accumulated in."""
    return "c128" if scalar in COMPLEX else "f64"


def _mean(t: Tensor, axes: tuple[int, ...]) -> Array:
    scalar = t._storage.scalar
    total = fold("sum", t, axes, accumulation_type(scalar))
    count = math.prod(t.shape[a] for a in axes)
    mean = total / (count or math.nan)
    return cast(mean if is_torch(mean) else np.asarray(mean), _mean_scalar(scalar))


def _to_bool(t: Tensor) -> Tensor:
    if t._storage.scalar == "bool":
        return t
    truth: Tensor = t != 0
    return truth


def _any_all(op: str, empty: bool) -> Callable[[Tensor, tuple[int, ...]], Array]:
    def function(t: Tensor, axes: tuple[int, ...]) -> Array:
        if all(t.shape[a] for a in axes):
            return fold(op, _to_bool(t), axes, "bool")
        neutral = np.full(reduced_shape(t, axes), empty)
        return _array_namespace(t._storage.values).asarray(neutral)

    return function


def _count_nonzero(t: Tensor, axes: tuple[int, ...]) -> Array:
    return fold("sum", _to_bool(t), axes, "i64")


_DERIVED: dict[str, Callable[[Tensor, tuple[int, ...]], Array]] = {
    "mean": _mean,
    "any": _any_all("max", False),
    "all": _any_all("min", True),
    "count_nonzero": _count_nonzero,
}


def statement_names(ndim: int, axes: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Index names of the dimensions, and those that a reduction over `axes` keeps."""
    names = tuple(f"i{k}" for k in range(ndim))
    return names, tuple(n for k, n in enumerate(names) if k not in axes)


@lru_cache(maxsize=256)
def _statement(op: str, ndim: int, axes: tuple[int, ...], count: bool) -> Assignment:
    names, kept_indices = statement_names(ndim, axes)
    source = Access("A", names)
    return Assignment(Access("s", kept_indices), op, Apply("pattern", (source,)) if count else source)


def fold(op: str, t: Tensor, axes: tuple[int, ...], scalar: str) -> Array:
    """`t` reduced over `axes` by sum, prod, min or max, in the scalar type: an array of its library."""
    s = t._raw_storage  # the guard was asked by the one who calls
    if len(axes) == len(s.shape):
        if op == "sum" and _is_all_values(s, scalar):
            return total(s.values, scalar)
        is_few = type(s.values) is np.ndarray and 0 < s.values.shape[0] == s.nse < LEAST
        if op in _EXTREMES and is_few and s.format.is_unique and s.scalar not in (*COMPLEX, "bf16"):
            return _extreme(_EXTREMES[op], s)
    return _fold(op, t, axes, scalar)


_EXTREMES = {"min": np.minimum, "max": np.maximum}


def _extreme(ufunc: np.ufunc, s: Storage) -> Array:
    """The least or largest of few elements, and of the fill value where an element is not stored."""
    found = ufunc.reduce(s.values)
    is_full = s.values.shape[0] == math.prod(s.shape)
    return np.asarray(found if is_full else ufunc(found, s.values.dtype.type(s.fill_value)))


@differentiable(lambda op, t, *_: (t._raw_storage.values,))
def _fold(op: str, t: Tensor, axes: tuple[int, ...], scalar: str) -> Array:
    """`fold` by a statement."""
    s = t._storage
    if op != "sum" or s.fill_value or s.scalar == "bool" or not keeps_sums(s.scalar, scalar):
        s = summed(s)
    if s.scalar in COMPLEX and op in ("min", "max"):
        raise DTypeError(f"{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    if s.scalar in COMPLEX and scalar not in COMPLEX:
        raise DTypeError(f"{op}: complex numbers are no {dtype_of(scalar, s.values)}\n  help: take the real part first")
    n = math.prod(map(s.shape.__getitem__, axes))
    if not n:
        check_extents(op, t, axes)
    ndim = len(s.shape)
    in_f64 = op == "sum" and len(axes) == ndim and scalar in ("f32", "f16", "bf16")
    stmt = _statement(_OPERATORS[op], ndim, axes, False)
    result = contract(stmt, {"A": s}, "f64" if in_f64 else scalar, s.values)
    fill = python_scalar(s.fill_value, scalar)
    if fill == {"sum": 0, "prod": 1}.get(op) or not n:
        return cast(result, scalar) if in_f64 else result
    result = cast(result, scalar) if in_f64 else result
    absent = unspecified_counts(s, axes)
    if absent is None:
        return result

    def of_zeros() -> Array:
        with np.errstate(invalid="ignore"):
            return contract(stmt, {"A": s.with_values(s.values * 0)}, scalar, s.values)

    return add_fill(op, result, absent, fill, scalar, of_zeros)


_COMBINED = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}


def _fill_part(op: str, absent: Array, fill: Any, scalar: str, like: Array) -> Any:
    """The reduction of `absent` elements that are `fill`."""
    filled = _array_namespace(like).full(tuple(absent.shape), fill, dtype=dtype_of(scalar, like))
    if op in ("min", "max"):
        return filled
    counts = cast(absent if is_torch(absent) else np.asarray(absent), scalar)
    with np.errstate(all="ignore"):
        return counts * filled if op == "sum" else filled**counts


def unspecified_counts(s: Storage, axes: tuple[int, ...]) -> Array | None:
    """The number of unspecified elements over `axes`, int64; None where there are none. No duplicates are allowed."""
    size = math.prod(s.shape)
    if size == s.nse:
        return None
    if len(axes) == len(s.shape):
        return _array_namespace(s.values).asarray(_countable(size - s.nse))
    stored_counts = contract(_statement("+=", len(s.shape), axes, True), {"A": s}, "i64", s.values)
    return _countable(math.prod(s.shape[a] for a in axes)) - stored_counts


def _countable(n: int) -> int | float:
    """A count that the array libraries can hold: those beyond 64 bits as floats."""
    return n if n <= LARGEST else float(n)


def _is_all_values(s: Storage, scalar: str) -> bool:
    """Whether the sum of all elements, in a scalar type, is that of all values."""
    has_padding = may_pad(s.format, s.shape) and s.values.shape[0] != s.nse
    if s.fill_value or has_padding or (s.scalar in COMPLEX and scalar not in COMPLEX):
        return False
    return s.format.is_unique or (s.scalar != "bool" and keeps_sums(s.scalar, scalar))


def _array_namespace(like: Array) -> Any:
    if is_torch(like):
        import torch

        return torch
    return np


def add_fill(
    op: str, result: Array, absent: Array, fill: Any, scalar: str, of_zeros: Callable[[], Array] | None
) -> Array:
    """A reduction of stored elements -> that of all elements, `absent` of them being `fill`.

    of_zeros : of a product, that of the stored elements times 0: zeros, and NaN where one is not finite. It is asked
        where a product beside unspecified zeros overflows, which one that begins with them does not; None where
        that has been seen to.
    """
    xp, part = _array_namespace(result), _fill_part(op, absent, fill, scalar, result)
    if of_zeros is not None and op == "prod" and not fill and scalar in (*FLOATS, *COMPLEX):
        overflows = (absent > 0) & ~xp.isfinite(result)
        result = xp.where(overflows, of_zeros(), result) if bool(overflows.any()) else result
    with np.errstate(all="ignore"):
        out = xp.where(absent > 0, getattr(xp, _COMBINED[op])(result, part), result)  # torch's 0j ** 0j is NaN
    return cast(out if is_torch(out) else np.asarray(out), scalar)

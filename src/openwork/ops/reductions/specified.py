"""A tensor -> reductions of the elements that it specifies, its fill value left out, and where there are any.

The walk is that of a reduction, less the part of the fill value. Elements are combined over axes, and counted: where
nothing was, there is no result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...compiler.single.factors import identity
from ...errors import DTypeError
from ...format import coo
from ...format.expression import Dim
from ...format.format import Format
from ...ir.types import COMPLEX, FLOATS
from ...reals import real
from ...runtime.contract import contract
from ...runtime.full_sum import extreme, total, total_and_count
from ...runtime.gradient_hook import tracked
from ...runtime.promote import accumulator
from ...runtime.strided import strided
from ...runtime.values import apply
from ...storage.buffers import Array, as_array, cast, is_torch, scalar_name, scalar_of, to_numpy
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ...storage.structure import keep
from ...tensor.tensor import Tensor
from ..mask_formats import has_bits
from ..stored_fibres import SparseReduction, sparse_reduction
from .folds import _statement, accumulation_type, axes_of, fold, statement_names
from .moments import _squared_distances
from .roots import power, presence, root
from .search import extremes
from .softmax import _gather

__all__ = ["counts", "reduce_specified"]

_OPERATORS = {"sum": "+=", "prod": "*=", "min": "min=", "max": "max="}
_PLACES = {"argmin": "min", "argmax": "max"}
"""Reductions to a place, and the extreme that is there."""


def reduce_specified(
    op: str, t: Tensor, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None,
    correction: float | None = None, ord: float | None = None,
) -> Tensor | tuple[Array, Array]:  # fmt: skip
    """Reduce the specified elements over axes.

    Parameters
    ----------
    op : "sum", "prod", "min", "max", "mean", "var", "std", "norm", "any", "all", "logsumexp", "count", "argmin" or
        "argmax", where the first least or largest specified element is
    dtype : of sums and products; without, integers and bool are summed in 64 bits
    correction : what the count of var and std is reduced by, 0 without
    ord : of norm, 2 without

    Returns
    -------
    a Tensor that stores the reductions of the fibres that specify something, where the reduction of the tensor is
    sparse; else values over the dimensions that are left, and whether each is one. var and std of no more elements
    than the correction are NaN or infinite, as of an array

    Guarantees: equal to the reduction over the specified elements, up to the order of floating-point sums.
    Cost: O(nse + size of the result).
    """
    plan = None if op == "count" or has_bits(t.format) else sparse_reduction(t, axes, keepdims)
    if plan is not None and plan.places.target.levels[-1].format.is_dense:  # it would specify what is missing
        plan = sparse_reduction(t, axes, keepdims, target=coo(plan.places.target.ndim))
    if plan is not None:
        rows = Tensor._from_storage(plan.rows)
        over = axes_of(plan.places.over, rows.ndim)
        return _by_fibres(plan, reduce_specified(op, rows, over, False, dtype, correction, ord))
    if op in _PLACES:
        return _first_places(_PLACES[op], t.detach(), axes)
    s = t._storage
    if op in ("sum", "mean") and _bits_of_all(s, axes) is not None and not tracked((s.values,)):
        return _total(op, s, dtype, axes)
    found = counts(s, axes, op not in (*_OPERATORS, "any", "all"))
    if op == "count":
        return found, found >= 0
    if op in _OPERATORS:
        return _folded(op, s, axes, _summed_in(op, s, dtype)), found > 0
    options = {k: real(x, op, k) for k, x in (("correction", correction), ("ord", ord)) if x is not None}
    return _DERIVED[op](s, axes, found, **options), found > 0


def _by_fibres(plan: SparseReduction, reduced: Any) -> Tensor:
    """Values of fibres, and which of them are there -> a Tensor that stores these."""
    like = plan.rows.values
    values, bits = (as_array(x, like=like).reshape(-1) for x in reduced)
    there = to_numpy(bits)
    return plan.result(values, python_scalar(0, scalar_of(values)), None if there.all() else there)


def _summed_in(op: str, s: Storage, dtype: Any) -> str:
    """The scalar type of a reduction that is its own accumulation."""
    if dtype is not None:
        return scalar_name(dtype)
    return accumulator(s.scalar, s.library) if op in ("sum", "prod") else s.scalar


def _bits_of_all(s: Storage, axes: tuple[int, ...]) -> Array | None:
    """The bits, one for each element, where all of them are reduced."""
    bits = s.crd[-1] if len(axes) == len(s.shape) and has_bits(s.format) else None
    return bits if bits is not None and len(bits) == math.prod(s.shape) else None


def _total(op: str, s: Storage, dtype: Any, axes: tuple[int, ...]) -> tuple[Any, Array]:
    """The sum or mean of all elements of a strided tensor: one pass over values and bits sums and counts."""
    bits = s.crd[-1]
    assert bits is not None
    scalar = accumulation_type(s.scalar) if op == "mean" else _summed_in(op, s, dtype)
    values, n = total_and_count(s.values, scalar, bits)
    if op == "mean":
        values = _rounded(values / max(n, 1), s)
    return values, as_array(np.asarray(n > 0), like=s.values)


def counts(s: Storage, axes: tuple[int, ...], exact: bool = True) -> Array:
    """How many elements are specified over the axes, int64; unless `exact` anything above 0 where there are some.

    They depend on the structure alone, which never changes, and are kept for the next time.
    """
    bits = _bits_of_all(s, axes)
    if bits is not None:
        bit_array = to_numpy(bits)
        n = int(np.count_nonzero(bit_array)) if exact else int(bit_array.any())
        return as_array(np.asarray(n, np.int64), like=s.values)
    key = ("counts", axes)
    result: Array | None = s.facts.get(key)
    if result is None:
        result = _counted(s, axes)
        if not has_bits(s.format):
            keep(s.facts, key, result)
    return result


def _counted(s: Storage, axes: tuple[int, ...]) -> Array:
    if len(axes) == len(s.shape):
        return as_array(np.asarray(s.nse, np.int64), like=s.values)
    if _are_lengths(s.format, axes):
        pos = s.pos[-1]
        assert pos is not None
        return cast(pos[1:] - pos[:-1], "i64").reshape([n for d, n in enumerate(s.shape) if d not in axes])
    like = s.values.detach() if is_torch(s.values) else s.values
    return contract(_statement("+=", len(s.shape), axes, True), {"A": s.with_values(like)}, "i64", like)


@lru_cache(maxsize=1024)
def _are_lengths(format: Format, axes: tuple[int, ...]) -> bool:
    """Whether the counts are the lengths of the rows: of a last compressed level, of `axes`, below dense ones."""
    *above, last = format.levels
    order = [*(d for d in range(format.ndim) if d not in axes), *axes]
    plainly = [x.expression for x in format.levels] == [Dim(d) for d in order]
    return plainly and last.format.is_compressed and all(x.format.is_dense for x in above)


def _folded(op: str, s: Storage, axes: tuple[int, ...], scalar: str) -> Array:
    """Sum, prod, min or max of the specified elements; the identity of the operation where there are none."""
    if s.scalar in COMPLEX and op in ("min", "max"):
        raise DTypeError(f"{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    bits = _bits_of_all(s, axes)
    if op == "sum" and bits is not None:
        return total(s.values, scalar, bits)
    if tracked((s.values,)) or op == "sum":
        name = {"sum": "add", "prod": "mul"}.get(op, op)
        start = _identity(name, s.scalar)
        started = s if s.fill_value == start else s.with_values(s.values, start)  # `s` knows launches of before
        return fold(op, Tensor._from_storage(started), axes, scalar)
    if bits is not None and op != "prod" and scalar in ("f32", "f64", "i32", "i64") and scalar == s.scalar:
        return extreme(op, s.values, bits, _identity(op, s.scalar))
    return contract(_statement(_OPERATORS[op], len(s.shape), axes, False), {"A": s}, scalar, s.values)


@cache
def _identity(op: str, scalar: str) -> Any:
    return identity(op, scalar).value


def _least(found: Array) -> Array:
    """Counts to divide by: 1 where nothing was counted."""
    return found + (found == 0)


def _rounded(values: Any, s: Storage) -> Array:
    """The values in the tensor's own floating-point type, float64 for integers."""
    return cast(
        values if is_torch(values) else np.asarray(values), s.scalar if s.scalar in (*FLOATS, *COMPLEX) else "f64"
    )


def _mean(s: Storage, axes: tuple[int, ...], found: Array) -> Array:
    return _rounded(_folded("sum", s, axes, accumulation_type(s.scalar)) / _least(found), s)


def _var(s: Storage, axes: tuple[int, ...], found: Array, correction: float = 0.0) -> Array:
    return _rounded(_variance(s, axes, found, correction), _real(s))


def _std(s: Storage, axes: tuple[int, ...], found: Array, correction: float = 0.0) -> Array:
    return _rounded(root(_variance(s, axes, found, correction)), _real(s))


def _real(s: Storage) -> Storage:
    return s if s.scalar not in COMPLEX else s.with_values(apply("abs", s.values), 0.0)


def _variance(s: Storage, axes: tuple[int, ...], found: Array, correction: float) -> Any:
    """Squared distances over `max(count - correction, 0)`: NaN or infinite where that is 0, as of an array."""
    if s.scalar in COMPLEX:
        parts = [s.with_values(apply(name, s.values), 0.0) for name in ("real", "imag")]
        return sum(_variance(p, axes, found, correction) for p in parts)
    mean = _folded("sum", s, axes, "f64") / _least(found)
    operands = {"A": s, "M": strided(mean if is_torch(mean) else np.asarray(mean))}
    squares = contract(_squared_distances(len(s.shape), axes), operands, "f64", s.values)
    left = found - correction
    with np.errstate(divide="ignore", invalid="ignore"):
        return squares / (left * (left > 0) + (found == 0))


def _norm(s: Storage, axes: tuple[int, ...], found: Array, ord: float = 2) -> Array:
    sizes = _real(s.with_values(apply("abs", s.values), 0))
    if ord in (math.inf, -math.inf):
        return _rounded(_folded("max" if ord > 0 else "min", sizes, axes, sizes.scalar), sizes)
    if ord == 0:
        return _rounded(_folded("sum", sizes.with_values(presence(sizes.values), 0.0), axes, "f64"), sizes)
    powers = sizes.with_values(power(cast(sizes.values, "f64"), ord), 0.0)
    return _rounded(root(_folded("sum", powers, axes, "f64"), ord), sizes)


def _truth(op: str) -> Callable[[Storage, tuple[int, ...], Array], Array]:
    def function(s: Storage, axes: tuple[int, ...], found: Array) -> Array:
        return _folded(op, s.with_values(s.values != 0, False), axes, "bool")

    return function


def _logsumexp(s: Storage, axes: tuple[int, ...], found: Array) -> Array:
    if s.scalar in COMPLEX:
        raise DTypeError("logsumexp of a complex tensor\n  supported: real numbers\n  help: take the real part first")
    if s.scalar not in FLOATS:
        s = s.with_values(cast(s.values, "f64"), 0.0)
    names, kept = statement_names(len(s.shape), axes)
    plainly = s.with_values(s.values.detach()) if is_torch(s.values) else s
    most = _folded("max", plainly, axes, s.scalar)
    if is_torch(most):
        most = most.nan_to_num(0.0, 0.0, 0.0)
    else:
        most = np.nan_to_num(np.asarray(most), nan=0.0, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        powers = s.with_values(apply("exp", s.values - _gather(s, names, kept, most)), 0.0)
        summed = _folded("sum", powers, axes, s.scalar)
        result: Array = apply("log", summed if is_torch(summed) else np.asarray(summed)) + most
    return result


_DERIVED: dict[str, Callable[..., Array]] = {
    "mean": _mean,
    "var": _var,
    "std": _std,
    "norm": _norm,
    "any": _truth("max"),
    "all": _truth("min"),
    "logsumexp": _logsumexp,
}


def _first_places(op: str, t: Tensor, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Where the first least ("min") or largest ("max") specified element is, int64, row-major over several axes."""
    if t._storage.scalar in COMPLEX:
        raise DTypeError(f"arg{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    kept_dims = [d for d in range(t.ndim) if d not in axes]
    _, found, _ = extremes(op, t, axes, kept_dims)
    found = found.reshape(tuple(t.shape[d] for d in kept_dims))
    return found, found >= 0

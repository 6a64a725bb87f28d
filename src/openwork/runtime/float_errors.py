"""NumPy's warnings (divide, invalid, overflow) of elementwise operations over NumPy buffers, as `np.errstate` asks.

Sums, products and quotients of floats that set no flag of the processor (`codegen.float_flags`) have nothing to
report. Flags that are set prove nothing: vectors speculate, and what they speculate on sets some. Then, and of other
operations, whether a result is finite is asked of its values once, as fast as memory is read. Where it is not, NumPy
computes the elements that are not finite once more, from those of the operands, and warns, raises or calls as it does
on dense arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import isfinite
from typing import Any

import numpy as np

from .. import tuning
from ..ir.index import PRESENCE, Access, Apply, Expression, Literal
from ..ir.operations import with_trait
from ..storage.buffers import is_array, length, numpy_dtype, to_numpy
from ..storage.specified import coordinates
from ..storage.storage import Storage
from .values import loudly
from .zero_annihilation import FINITE, bounded

__all__ = ["Told", "is_small", "report", "report_dense", "told_by"]

_SILENT = with_trait("silent")
_LARGEST = 2**62
_FEW = tuning.FLAGS_IN_PYTHON

_FLAGGED = with_trait("one-instruction")
"""Operations that are one instruction of the processor, which sets flags as IEEE 754 has it."""

Dims = tuple[int | None, ...]


class Told(Enum):
    """What tells whether there may be something to report of an expression's result."""

    NEVER = 0
    FLAGS = 1
    VALUES = 2


def told_by(e: Expression, scalar: str, fill: Any, library: str) -> Told:
    """What tells of a result of this type, fill value and library."""
    if library != "numpy" or scalar in ("bool", "bf16") or (isinstance(e, Apply) and e.op in _SILENT):
        return Told.NEVER
    if scalar in ("f32", "f64") and abs(fill) < FINITE and _is_flagged(e):
        return Told.FLAGS
    return Told.VALUES


def is_small(scalar: str, fill: Any) -> bool:
    """Whether a fill value is one of floats, and finite: there is nothing to report of it."""
    return scalar[0] in "fc" and abs(fill) < FINITE


def _is_flagged(e: Expression) -> bool:
    return not isinstance(e, Apply) or (e.op in _FLAGGED and all(map(_is_flagged, e.args)))


def report(e: Expression, dims: Mapping[str, Dims], operands: Mapping[str, Storage], result: Storage) -> None:
    """Warn of an expression's result; `dims` says where the operands' dimensions are in it.

    The fill value is an element where there are fewer specified ones than places.
    """
    if told_by(e, result.scalar, result.fill_value, result.library) is Told.NEVER:
        return
    if result.scalar[0] in "iu":
        _report_integers(e, operands, result)
        return
    finite_fill = abs(result.fill_value) < FINITE
    if (finite_fill and _is_finite(result.values)) or _ignored():
        return
    at, leaf = coordinates(result)
    if not finite_fill and len(leaf) < _size(result.shape):
        _evaluated(e, {n: np.array([s.fill_value], numpy_dtype(s.scalar)) for n, s in operands.items()})
    bad = np.flatnonzero(~np.isfinite(to_numpy(result.values)[leaf]))
    if len(bad):
        places = at[:, bad]
        _evaluated(e, {n: _values(s, dims[n], places) for n, s in operands.items()})


def report_dense(e: Expression, operands: Mapping[str, Any], result: Any) -> None:
    """The same of a dense array that came of storages and dense arrays, aligned at the last dimension."""
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "fc" or _ignored():
        return
    wrong = ~np.isfinite(result)
    if not wrong.any():
        return
    places = np.array(np.nonzero(wrong), np.int64)
    found = {}
    for name, x in operands.items():
        lead = result.ndim - len(x.shape)
        dims = tuple(None if n == 1 else lead + d for d, n in enumerate(x.shape))
        found[name] = _values(x, dims, places)
    _evaluated(e, found)


def _is_finite(values: Any) -> bool:
    """Whether all values are; may say no of large ones."""
    if len(values) <= _FEW and values.dtype.kind == "f":
        return isfinite(sum(values.tolist()))
    return bounded(values, FINITE)


def _ignored() -> bool:
    asked = np.geterr()
    return asked["divide"] == asked["over"] == asked["invalid"] == "ignore"


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _report_integers(e: Expression, operands: Mapping[str, Storage], result: Storage) -> None:
    """x // 0 and x % 0 of integers are 0, with NumPy's warning."""
    if not (isinstance(e, Apply) and e.op in ("floordiv", "mod") and isinstance(e.args[1], Access)):
        return
    divisor = operands[e.args[1].tensor]
    unspecified = not divisor.fill_value and length(divisor.values) < _size(divisor.shape)
    if unspecified or not np.all(to_numpy(divisor.values)):
        one = np.ones(1, numpy_dtype(result.scalar))
        loudly(e.op, one, one * 0)


def _values(x: Any, dims: Dims, places: np.ndarray[Any, Any]) -> Any:
    """The elements of a storage or dense array at the result's `places`."""
    count = places.shape[1]
    own = [np.zeros(count, np.int64) if d is None else places[d] for d in dims]
    if is_array(x):
        return x[tuple(own)] if own else np.broadcast_to(x, (count,))
    at, leaf = coordinates(x)
    stored = to_numpy(x.values)[leaf]
    keys, wanted = _keys(at, np.array(own, np.int64).reshape(len(own), count), x.shape)
    order = np.argsort(keys, kind="stable")
    keys, stored = keys[order], stored[order]
    first, last = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, "right")
    out = np.full(count, x.fill_value, numpy_dtype(x.scalar))
    once = np.flatnonzero(last == first + 1)
    out[once] = stored[first[once]]
    for k in np.flatnonzero(last > first + 1):
        out[k] = stored[first[k] : last[k]].sum()
    return out


def _keys(at: Any, places: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """One number for each coordinate and each place, equal where these are."""
    keys, wanted = np.zeros(at.shape[1], np.int64), np.zeros(places.shape[1], np.int64)
    for d in range(len(shape)):
        c, p = at[d], places[d]
        if _size(shape) >= _LARGEST:
            _, ranks = np.unique(np.concatenate([keys, wanted]), return_inverse=True)
            keys, wanted = ranks[: len(keys)], ranks[len(keys) :]
            own, ranks = np.unique(np.concatenate([c, p]), return_inverse=True)
            c, p, extent = ranks[: len(c)], ranks[len(c) :], len(own)
        else:
            extent = shape[d]
        keys, wanted = keys * extent + c, wanted * extent + p
    return keys, wanted


def _evaluated(e: Expression, values: Mapping[str, Any]) -> Any:
    """The expression by NumPy, which says what is to be said."""
    match e:
        case Access(tensor):
            return values[tensor]
        case Literal(value):
            return value
        case Apply("select", args):
            return np.where(*(_evaluated(a, values) for a in args))
        case Apply(op, args):
            found = [_evaluated(a, values) for a in args]
            return found[0] if op in PRESENCE else loudly(op, *found)
    return None

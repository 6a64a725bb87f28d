"""An elementwise expression, operands and result -> NumPy's warnings (divide, invalid, overflow) by `np.errstate`.

Sums, products and quotients of floats that set no flag of the processor (`codegen.float_flags`) have nothing to
report. Flags that are set prove nothing: vectors speculate, and their unused lanes set some. Then, and for other
operations, the result's values are checked for being finite once, as fast as memory is read. If they are not, NumPy
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
from .values import apply_with_warnings
from .zero_annihilation import FINITE, bounded

__all__ = ["WarningSource", "is_small", "report", "report_dense", "report_integers", "warning_source"]

_SILENT = with_trait("silent")
_LARGEST = 2**62
_FEW = tuning.FLAGS_IN_PYTHON

_FLAGGED = with_trait("one-instruction")
"""Operations that are one instruction of the processor, which sets flags as IEEE 754 has it."""

Dims = tuple[int | None, ...]


class WarningSource(Enum):
    """How it is known whether an expression's result may have something to report."""

    NEVER = 0
    FLAGS = 1
    VALUES = 2


def warning_source(e: Expression, scalar: str, fill: Any, library: str) -> WarningSource:
    """How it is known for a result of this type, fill value and library."""
    if library != "numpy" or scalar in ("bool", "bf16") or (isinstance(e, Apply) and e.op in _SILENT):
        return WarningSource.NEVER
    if scalar in ("f32", "f64") and abs(fill) < FINITE and _is_flagged(e):
        return WarningSource.FLAGS
    return WarningSource.VALUES


def is_small(scalar: str, fill: Any) -> bool:
    """Whether a fill value is a finite float or complex number, which has nothing to report."""
    return scalar[0] in "fc" and abs(fill) < FINITE


def _is_flagged(e: Expression) -> bool:
    return not isinstance(e, Apply) or (e.op in _FLAGGED and all(map(_is_flagged, e.args)))


def report(e: Expression, dims: Mapping[str, Dims], operands: Mapping[str, Storage], result: Storage) -> None:
    """Warn of an expression's result; `dims` maps the operands' dimensions to the result's.

    The fill value counts where fewer elements are specified than the shape has.
    """
    if warning_source(e, result.scalar, result.fill_value, result.library) is WarningSource.NEVER:
        return
    if result.scalar[0] in "iu":
        report_integers(e, operands, numpy_dtype(result.scalar))
        return
    finite_fill = abs(result.fill_value) < FINITE
    if (finite_fill and _is_finite(result.values)) or _are_warnings_off():
        return
    at, leaf = coordinates(result)
    if not finite_fill and len(leaf) < _size(result.shape):
        _evaluate_by_numpy(e, {n: np.array([s.fill_value], numpy_dtype(s.scalar)) for n, s in operands.items()})
    nonfinite = np.flatnonzero(~np.isfinite(to_numpy(result.values)[leaf]))
    if len(nonfinite):
        coordinates_there = at[:, nonfinite]
        _evaluate_by_numpy(e, {n: _values(s, dims[n], coordinates_there) for n, s in operands.items()})


def report_dense(e: Expression, operands: Mapping[str, Any], result: Any) -> None:
    """NumPy's warnings for a dense result of storages and dense arrays, which are aligned at the last dimension."""
    if not isinstance(result, np.ndarray) or _are_warnings_off():
        return
    if result.dtype.kind in "iu":
        report_integers(e, operands, result.dtype)
    if result.dtype.kind not in "fc":
        return
    nonfinite = ~np.isfinite(result)
    if not nonfinite.any():
        return
    places = np.array(np.nonzero(nonfinite), np.int64)
    elements = {}
    for name, x in operands.items():
        offset = result.ndim - len(x.shape)
        dims = tuple(None if n == 1 else offset + d for d, n in enumerate(x.shape))
        elements[name] = _values(x, dims, places)
    _evaluate_by_numpy(e, elements)


def _is_finite(values: Any) -> bool:
    """Whether all values are finite; may be False for large ones that are."""
    if len(values) <= _FEW and values.dtype.kind == "f":
        return isfinite(sum(values.tolist()))
    return bounded(values, FINITE)


def _are_warnings_off() -> bool:
    settings = np.geterr()
    return settings["divide"] == settings["over"] == settings["invalid"] == "ignore"


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def report_integers(e: Expression, operands: Mapping[str, Any], dtype: Any) -> None:
    """x // 0 and x % 0 of integers are 0, with NumPy's warning."""
    if not (isinstance(e, Apply) and e.op in ("floordiv", "mod") and isinstance(e.args[1], Access)):
        return
    divisor = operands[e.args[1].tensor]
    is_storage = isinstance(divisor, Storage)
    unspecified = is_storage and not divisor.fill_value and length(divisor.values) < _size(divisor.shape)
    if unspecified or not np.all(to_numpy(divisor.values if is_storage else divisor)):
        one = np.ones(1, dtype)
        apply_with_warnings(e.op, one, one * 0)


def _values(x: Any, dims: Dims, places: np.ndarray[Any, Any]) -> Any:
    """The elements of a storage or dense array at the result's `places`."""
    count = places.shape[1]
    indices = [np.zeros(count, np.int64) if d is None else places[d] for d in dims]
    if is_array(x):
        return x[tuple(indices)] if indices else np.broadcast_to(x, (count,))
    at, leaf = coordinates(x)
    stored = to_numpy(x.values)[leaf]
    keys, sought_keys = _keys(at, np.array(indices, np.int64).reshape(len(indices), count), x.shape)
    order = np.argsort(keys, kind="stable")
    keys, stored = keys[order], stored[order]
    first, last = np.searchsorted(keys, sought_keys), np.searchsorted(keys, sought_keys, "right")
    out = np.full(count, x.fill_value, numpy_dtype(x.scalar))
    matched = np.flatnonzero(last == first + 1)
    out[matched] = stored[first[matched]]
    for k in np.flatnonzero(last > first + 1):
        out[k] = stored[first[k] : last[k]].sum()
    return out


def _keys(at: Any, places: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Coordinates of elements and of places -> a linear key of each, equal where the coordinates are."""
    keys, place_keys = np.zeros(at.shape[1], np.int64), np.zeros(places.shape[1], np.int64)
    for d in range(len(shape)):
        c, p = at[d], places[d]
        if _size(shape) >= _LARGEST:
            _, ranks = np.unique(np.concatenate([keys, place_keys]), return_inverse=True)
            keys, place_keys = ranks[: len(keys)], ranks[len(keys) :]
            distinct, ranks = np.unique(np.concatenate([c, p]), return_inverse=True)
            c, p, extent = ranks[: len(c)], ranks[len(c) :], len(distinct)
        else:
            extent = shape[d]
        keys, place_keys = keys * extent + c, place_keys * extent + p
    return keys, place_keys


def _evaluate_by_numpy(e: Expression, values: Mapping[str, Any]) -> Any:
    """The expression computed by NumPy, which warns."""
    match e:
        case Access(tensor):
            return values[tensor]
        case Literal(value):
            return value
        case Apply("select", args):
            return np.where(*(_evaluate_by_numpy(a, values) for a in args))
        case Apply(op, args):
            values_of_args = [_evaluate_by_numpy(a, values) for a in args]
            return values_of_args[0] if op in PRESENCE else apply_with_warnings(op, *values_of_args)
    return None

"""A Tensor of few elements and a small NumPy array -> their sum, difference, product or quotient, by NumPy alone.

    A + X        C = 0 + X;  C[places] = values + X[places]       # places: where the elements of A are in X
    A * X        values * X[places], on the structure of A

The first call of a shape is run by kernels and keeps the places with the structure of A. Later ones ask whether all
numbers are of a size that no operation of two of them overflows or is invalid; else the kernels run again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...runtime import trace
from ...runtime.values import LIMITS, function_of
from ...runtime.zero_annihilation import FEW, vdot
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ...storage.structure import keep
from ...tensor.tensor import Tensor

__all__ = ["keep_few", "with_few"]

_FUNCTIONS = {op: function_of(op, False) for op in ("add", "sub", "mul", "div")}
_LEAST = {dtype: 1 / math.sqrt(limit) for dtype, limit in LIMITS.items()}
"""Divisors from which on a quotient of sizes within `LIMITS` does not overflow."""


def with_few(op: str, a: Any, b: Any) -> Any:
    """`a op b` of a Tensor and a NumPy array by kept places; None where there are none, or NumPy could warn."""
    left = type(a) is Tensor
    t, array = (a, b) if left else (b, a)
    if type(t) is not Tensor or type(array) is not np.ndarray or trace.steps:
        return None
    s = t._storage
    kept = (s._plans or s.plans).facts.get(("places", array.shape))
    if kept is None or s.fill_value != 0 or op not in _FUNCTIONS or (op == "div" and not left):
        return None
    values, limit = s.values, LIMITS.get(array.dtype)
    if limit is None or array.dtype is not values.dtype or not array.flags.c_contiguous:
        return None
    numbers = array.reshape(-1)
    if not (vdot(values, values) <= limit and vdot(numbers, numbers) <= limit):
        return None
    function, (sources, places) = _FUNCTIONS[op], kept
    taken = numbers.take(sources)
    if op == "div" and not np.abs(numbers).min(initial=1.0) >= _LEAST[array.dtype]:
        return None
    stored = function(values, taken) if left else function(taken, values)
    if op == "mul" or op == "div":
        return Tensor._from_storage(s.with_own_values(stored))
    out = np.empty(s.shape, array.dtype)
    function(s.fill_value, array, out) if left else function(array, s.fill_value, out)
    out.reshape(-1)[places] = stored
    return out


def keep_few(s: Storage, array: Any) -> None:
    """Keep where a storage's elements are in arrays of this shape, and in dense ones of its own, for `with_few`."""
    if type(array) is not np.ndarray or type(s.values) is not np.ndarray or s.values.dtype not in LIMITS:
        return
    if max(len(s.values), array.size, math.prod(s.shape)) > FEW or not s.format.is_unique:
        return
    index, positions = coordinates(s)
    if not np.array_equal(positions, np.arange(len(s.values))):
        return  # padding, or another order
    places = np.ravel_multi_index(tuple(index), s.shape)
    sources = np.broadcast_to(np.arange(array.size).reshape(array.shape), s.shape).reshape(-1)[places]
    keep(s.plans.facts, ("places", array.shape), (sources, places))

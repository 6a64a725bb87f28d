"""Sizes, 0 or more -> their powers and roots, whose gradients at 0 are 0, as those of torch's norms and `std`.

d std = d variance / (2 * std)      # 0 / 0 where all elements are equal
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...storage.buffers import Array, cast, is_torch, scalar_of
from ...storage.recorded import is_recorded
from ...storage.scalars import python_scalar
from ...tensor.tensor import Tensor
from ..elementwise.maps import unary

__all__ = ["power", "power_of", "presence", "presence_of", "root", "root_of"]


def power(x: Array, p: float) -> Any:
    """`x ** p` of an array of sizes; its gradient at 0 is 0."""
    if not _has_gradient(x):
        return x**p
    zero = x == 0
    return (x.masked_fill(zero, 1) ** p).masked_fill(zero, 0 if p > 0 else math.inf)


def root(x: Array, p: float = 2) -> Any:
    """The p-th root of an array of sizes; its gradient at 0 is 0."""
    if not _has_gradient(x) or p < 0:
        return x ** (1 / p)
    zero = x == 0
    sizes = x.masked_fill(zero, 1)
    return (sizes.sqrt() if p == 2 else sizes ** (1 / p)).masked_fill(zero, 0)


def presence(x: Array) -> Any:
    """1 for sizes that are not 0, NaN included; its gradient is 0, which torch's norm of order 0 has."""
    return x.masked_fill(x.isnan(), 1).sign() if _has_gradient(x) else cast(x != 0, scalar_of(x))


def presence_of(t: Tensor) -> Tensor:
    """`presence` of a Tensor's elements."""
    s = t._storage
    return Tensor._from_storage(s.with_values(presence(s.values), python_scalar(s.fill_value != 0, s.scalar)))


def power_of(t: Tensor, p: float) -> Tensor:
    """`power` of a Tensor's elements."""
    powers: Tensor = _mapped(power, t, p) if _has_gradient(t._storage.values) else t**p
    return powers


def root_of(t: Any, p: float = 2) -> Any:
    """`root` of a Tensor's elements, or of a number's."""
    if isinstance(t, Tensor) and _has_gradient(t._storage.values):
        return _mapped(root, t, p)
    return unary("sqrt", t) if p == 2 else t ** (1 / p)


def _mapped(function: Callable[[Array, float], Any], t: Tensor, p: float) -> Tensor:
    s = t._storage
    with np.errstate(all="ignore"):
        fill = function(np.asarray(s.fill_value, np.float64), p)
    return Tensor._from_storage(s.with_values(function(s.values, p), python_scalar(fill.item(), s.scalar)))


def _has_gradient(x: Array) -> bool:
    return is_torch(x) and is_recorded(x)

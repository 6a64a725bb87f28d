"""A large tensor and a reduction of its elements -> the same, range by range of the outermost dimension.

A reduction that computes something of each element first, such as a norm, has it of one range at a time in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from ...runtime.outer_ranges import outer_ranges, ranges_of
from ...tensor.tensor import Tensor
from .folds import axes_of

__all__ = ["by_ranges"]


def by_ranges(t: Tensor, axis: Any, keepdims: bool, fold: np.ufunc, reduction: Callable[[Tensor], Tensor]) -> Tensor:
    """`reduction(t)` over the axes, of which results over parts of them fold into one.

    Range by range where `t` is large and the results are dense.
    """
    found = ranges_of(t._storage) if type(t) is Tensor else None
    axes = () if found is None else axes_of(axis, t.ndim)
    if found is None or len(axes) < t.ndim - 1:
        return reduction(t)
    parts = (reduction(Tensor._from_storage(s)).to_numpy() for _, _, s in outer_ranges(t._storage))
    if found[0] in axes:
        out = reduce(lambda one, other: fold(one, other, dtype=one.dtype), parts)
    else:
        out = np.concatenate(list(parts), axis=found[0] if keepdims else 0)
    return Tensor._from_dense(np.asarray(out))

"""A tensor of any format -> its p-norms over axes: the roots of sums of powers, or the largest of the sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import COMPLEX
from ...tensor.tensor import Tensor
from ..elementwise.maps import unary
from . import statistics as st
from .by_ranges import by_ranges
from .roots import power_of, presence_of, root_of

__all__ = ["p_norm"]


def p_norm(t: Tensor, p: float, axis: Any, keepdims: bool) -> Any:
    """The p-norm of elements over axes, all without: p any number, inf, -inf, or 0, which counts; range by range."""
    over = {"axis": axis, "keepdims": keepdims}
    if p == math.inf or p == -math.inf:
        fold, extreme = (np.maximum, st.max) if p > 0 else (np.minimum, st.min)
        return by_ranges(t, axis, keepdims, fold, lambda part: extreme(unary("abs", part), **over))
    total = by_ranges(t, axis, keepdims, np.add, lambda part: st.sum(_powers(part, p), **over))
    if p in (0, 1):
        return total
    return root_of(total) if p == 2 else root_of(total, p)


def _powers(t: Tensor, p: float) -> Tensor:
    """What the norm of this order adds up."""
    if p == 2 and t._storage.scalar not in COMPLEX:
        return unary("square", t)
    sizes = unary("abs", t)
    if p == 0:
        return presence_of(sizes)
    if p == 1:
        return sizes
    return unary("square", sizes) if p == 2 else power_of(sizes, p)

"""Values and a limit -> whether all are at most that large, so that zeros annihilate and sparse products are NumPy's.

0 * x is 0 for every finite x. Values are checked in one pass without a temporary; where they are finite, as nearly
always, a product is as sparse as its operands, and NumPy's.
"""

from __future__ import annotations

import math

import numpy as np

from .. import tuning
from ..codegen import cache, pool
from ..storage.buffers import Array, address, host_values, is_unrecorded, scalar_of
from ..storage.iso import is_iso
from ..storage.recorded import bare

__all__ = ["FEW", "FINITE", "bounded", "vdot"]

FEW = tuning.DOT_IN_NUMPY
PARALLEL = tuning.DOT_PARALLEL
_F64 = np.dtype(np.float64)
FINITE = 1.3e154
"""The square root of the largest number, about."""
vdot = getattr(np.vdot, "__wrapped__", np.vdot)
"""NumPy's function of arrays: without asking for overrides it takes two thirds of the time."""
PARTS = {"f32": ("f32", 1), "f64": ("f64", 1), "c64": ("f32", 2), "c128": ("f64", 2)}

_SQUARES = """
def squares(lo: i64, hi: i64, x: T[const], n: i64, parts: i64, out: f64[mut]):  # reassociate
    for t in range(lo, hi):
        acc: T = 0.0
        for k in range(t * n // parts, (t + 1) * n // parts):
            acc += x[k] * x[k]
        out[t] = f64(acc)
"""


def bounded(values: Array, limit: float) -> bool:
    """Whether no value is NaN or larger than `limit` in size.

    values: one-dimensional, contiguous or iso; no number is small enough for a limit of 0, which stands for no limit
        known.
    Cost: O(n), as fast as memory is read.
    """
    if limit <= 0:
        return limit == 0 and not len(values)
    x = values
    if type(values) is not np.ndarray:
        plain = is_unrecorded(values) and scalar_of(values) != "bf16"
        x = values.numpy() if plain else host_values(bare(values, all_of_batch=True))
    x = x[:1] if is_iso(x) else x
    is_short = x.dtype is _F64 and len(x) <= FEW
    if is_short and math.sqrt(vdot(x, x)) <= limit:  # `dot` would warn of overflow
        return True
    if not len(x):
        return True
    part = PARTS.get(scalar_of(values))
    if part is None:
        return _by_extremes(x, limit)
    scalar, lanes = part
    if len(x) <= FEW:
        squares = float(vdot(x, x).real)
    else:
        parts = pool.get_num_threads() if len(x) >= PARALLEL else 1
        out = np.zeros(parts, np.float64)
        executable = cache.of_text(_SQUARES, T=scalar)
        pool.parallel(executable, (address(x), lanes * len(x), parts, address(out)), range(parts + 1), len(x) >> 5)
        squares = float(out.sum())
    if squares >= 0 and math.sqrt(squares) <= limit:
        return True
    with np.errstate(all="ignore"):
        return _by_extremes(np.abs(x), limit)


def _by_extremes(x: np.ndarray[tuple[int], np.dtype[np.generic]], limit: float) -> bool:
    with np.errstate(all="ignore"):
        return -limit <= float(x.min()) and float(x.max()) <= limit

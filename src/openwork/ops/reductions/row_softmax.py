"""Compressed rows of floats -> softmax along them in one kernel, and its gradient in another.

y[p] = exp(a[p] - m) / sum of these over the row, m = max a[p]
    da[p] = y[p] * (dy[p] - sum of y dy over the row)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import tuning
from ...codegen import cache as kernels
from ...codegen import pool
from ...codegen.executable import Executable
from ...codegen.plan_cache import planned
from ...format.expression import Dim
from ...format.named import coo
from ...runtime.contraction.matricize import CSR
from ...runtime.conversion.convert import convert
from ...runtime.conversion.remap import has_gaps
from ...runtime.gradient_hook import differentiable, transformed
from ...runtime.launch import even_bounds
from ...storage.buffers import Array, empty, is_torch, length, scalar_of, to_numpy
from ...storage.iso import contiguous
from ...storage.storage import Storage, structure_of

__all__ = ["gradient", "row_softmax", "softmax_rows"]

COO, SHORT = coo(2), tuning.SHORT_CALL
_FORWARD = """
def row_softmax(lo: i64, hi: i64, pos: P[const], A: T[const], Y: T[mut]):
    for i in range(lo, hi):
        high: T = -inf
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            high = max(high, A[p])
        shift = high if isfinite(high) else T(0.0)
        total: T = T(0.0)
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            z = exp(A[p] - shift)
            Y[p] = z
            total += z
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            Y[p] = Y[p] / total
"""
_BACKWARD = """
def row_softmax_gradient(lo: i64, hi: i64, pos: P[const], Y: T[const], G: T[const], D: T[mut]):
    for i in range(lo, hi):
        total: T = T(0.0)
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            total += Y[p] * G[p]
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            D[p] = Y[p] * (G[p] - total)
"""


@planned("kernels of softmax")
def _kernel(text: str, index: str, scalar: str) -> Executable:
    return kernels.of_text(text, reassociate=True, P=index, T=scalar)


def softmax_rows(s: Storage, axis: int) -> Array | None:
    """The values of the softmax along the last level of compressed rows of plain floats, or of the rows of a sorted COO
    matrix; None for all else.

    What is not finite over NumPy's arrays is left to statements, which warn.
    """
    if type(axis) is not int or s.scalar not in ("f32", "f64") or s.device != "cpu":
        return None
    if is_torch(s.values) and (transformed((s.values,)) or s.values.ndim != 1):
        return None
    if s.format == COO:
        bare = structure_of(s)
        rows = convert(bare, CSR, share=True)
        s = rows.with_values(s.values) if rows.values is bare.values else s
    levels = s.format.levels
    if not levels:
        return None
    last, others = levels[-1], levels[:-1]
    if not isinstance(last.expression, Dim) or axis not in (
        last.expression.index,
        last.expression.index - len(s.shape),
    ):
        return None
    if not (last.format.is_compressed and last.format.unique) or s.pos[-1] is None or has_gaps(s):
        return None
    if any(not isinstance(x.expression, Dim) or x.format.buffers or x.format.batched for x in others):
        return None
    result = row_softmax(s)
    return result if is_torch(result) or np.isfinite(result).all() else None


@differentiable(lambda s: (s.values,))
def row_softmax(s: Storage) -> Array:
    """The softmax of the values of each compressed row."""
    return _run(_FORWARD, s.pos[-1], contiguous(s.values))


def gradient(pos: Array, y: Array, g: Array) -> Array:
    """The gradient of the values from their softmax and its gradient."""
    return _run(_BACKWARD, pos, y, g)


def _run(text: str, pos: Array, *values: Array) -> Array:
    out, ends = empty(length(values[0]), scalar_of(values[0]), values[0]), to_numpy(pos)
    kernel = _kernel(text, scalar_of(ends), scalar_of(out))
    if length(out) <= SHORT:
        kernel.run(kernel.pack([ends, *values, out]), 0, len(ends) - 1)
        return out
    parts = 4 * pool.get_num_threads()
    cuts: Any = np.searchsorted(ends, even_bounds(0, int(ends[-1]), parts)[1:-1])
    bounds = [0, *np.minimum(cuts, len(ends) - 1).tolist(), len(ends) - 1]
    pool.parallel(kernel, kernel.pack([ends, *values, out]), bounds, length(out))
    return out

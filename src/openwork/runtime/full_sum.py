"""The sum of a whole array of values: rows are summed in lanes, side by side, and the sums of rows pairwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tuning
from ..compiler.single.row_sums import extreme_kernel, total_kernel
from ..ir.types import COMPLEX
from ..storage.buffers import (
    Array,
    as_array,
    cast,
    device_of,
    empty,
    length,
    numpy_dtype,
    scalar_of,
    to_numpy,
    torch_dtype,
)
from .conversion.assembly import full
from .conversion.conversion_kernels import call
from .conversion.ranges import Ranges, of_numbers
from .gradient_hook import differentiable
from .promote import compute_scalar

__all__ = ["LEAST", "by_library", "extreme", "total", "total_and_count"]

ROW = tuning.SUM_ROW
_BY_LIBRARY = {"bool", *COMPLEX}
LEAST = tuning.SUM_IN_LIBRARY


def total(values: Array, scalar: str, bits: Array | None = None) -> Array:
    """The sum of a flat array, of rank 0, computed and given in the scalar type; of the elements whose bit is set.

    Few values are summed by their library, which records it. Half precision is summed in float32 and rounded once.
    Rounding errors grow as those of NumPy's pairwise sums, and are the same for any number of threads.
    """
    if bits is None and by_library(values, scalar):
        return _library_sum(values, scalar)
    return _total(values, scalar, bits)


@differentiable(lambda values, *_: (values,))
def _total(values: Array, scalar: str, bits: Array | None) -> Array:
    """`total` by kernels."""
    if bits is not None:
        return total_and_count(values, scalar, bits)[0]
    source, count, wide = scalar_of(values), length(values), compute_scalar(scalar)
    rows = -(-count // ROW)
    sums = empty(rows, wide, values)
    words = {"row": ROW, "count": count, "values": values, "sums": sums}
    ranges = of_numbers(rows, count) or Ranges((0, rows))
    call(f"total {source} {wide}", lambda: total_kernel(source, wide), words, ranges)
    return cast(_library_sum(sums, wide), scalar)


def total_and_count(values: Array, scalar: str, bits: Array) -> tuple[Array, int]:
    """The sum of the elements whose bit is set, see `total`, and how many these are, in one pass over both."""
    if by_library(values, scalar):
        return _library_sum(values[bits], scalar), int(bits.sum())
    source, count = scalar_of(values), length(values)
    wide = compute_scalar(scalar)
    rows = -(-count // ROW)
    sums, counts = empty(rows, wide, values), np.empty(rows, np.int64)
    words = {"row": ROW, "count": count, "values": values, "bits": bits}
    words |= {"sums": sums, "counts": counts}
    ranges = of_numbers(rows, count) or Ranges((0, rows))
    call(f"total of bits {source} {wide}", lambda: total_kernel(source, wide, True), words, ranges)
    return cast(_library_sum(sums, wide), scalar), int(counts.sum())


def by_library(values: Array, scalar: str) -> bool:
    """Whether the array library sums these values: few, of a type that it has, or on another device."""
    few = values.shape[0] < LEAST
    return few or bool({scalar_of(values), scalar} & _BY_LIBRARY) or device_of(values) != "cpu"


def extreme(op: str, values: Array, bits: Array, start: Any) -> Array:
    """The least ("min") or largest ("max") of `start` and the elements of a flat array whose bit is set, of rank 0.

    NaN where there is one.
    """
    source, count = scalar_of(values), length(values)
    first = full(1, source, start, values)
    rows = -(-count // ROW)
    extremes = empty(rows, source, values)
    words = {"row": ROW, "count": count, "values": values, "bits": bits}
    words |= {"start": first, "found": extremes}
    if rows:
        ranges = of_numbers(rows, count) or Ranges((0, rows))
        call(f"{op} of bits {source}", lambda: extreme_kernel(op, source), words, ranges)
    candidates = np.append(to_numpy(extremes), to_numpy(first))
    return as_array(np.asarray((np.min if op == "min" else np.max)(candidates)), like=values)


def _library_sum(values: Array, scalar: str) -> Array:
    if not isinstance(values, np.ndarray):
        return values.sum(dtype=values.dtype if scalar_of(values) == scalar else torch_dtype(scalar))
    if "bf16" in (scalar_of(values), scalar):
        return np.asarray(values.astype(np.float32).sum()).astype(numpy_dtype(scalar))
    return np.asarray(np.add.reduce(values, dtype=numpy_dtype(scalar)))

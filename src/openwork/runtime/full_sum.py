"""The sum of a whole array of values: rows are summed in lanes, side by side, and the sums of rows pairwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import tuning
from ..codegen.executable import Executable
from ..codegen.plan_cache import PlanCache
from ..codegen.short_call import bound
from ..compiler.single.row_sums import extreme_kernel, pairwise_kernel, total_kernel
from ..ir.types import COMPLEX
from ..storage.buffers import (
    Array,
    address,
    as_array,
    cast,
    device_of,
    dtype_of,
    empty,
    is_torch,
    is_unrecorded,
    length,
    numpy_dtype,
    scalar_of,
    to_numpy,
)
from .conversion.assembly import full
from .conversion.conversion_kernels import call, shared_kernel
from .conversion.ranges import Ranges, of_numbers
from .gradient_hook import differentiable
from .promote import compute_scalar

__all__ = ["by_library", "extreme", "is_short", "short_launch", "total", "total_and_count"]

ROW = tuning.SUM_ROW
ShortLaunch = tuple[Executable, Callable[..., int]]
_SHORT: PlanCache[tuple[str, int], ShortLaunch] = PlanCache("sums of few values", 64)
"""by type and number of the values"""
_BY_LIBRARY = {"bool", *COMPLEX}
LEAST, MOST = tuning.SUM_IN_LIBRARY, tuning.SUM_SHORT


@differentiable(lambda values, *_: (values,))
def total(values: Array, scalar: str, bits: Array | None = None) -> Array:
    """The sum of a flat array, of rank 0, computed and given in the scalar type; of the elements whose bit is set.

    Half precision is summed in float32 and rounded once. Rounding errors grow as those of NumPy's pairwise sums, and
    are the same for any number of threads.
    """
    if bits is not None:
        return total_and_count(values, scalar, bits)[0]
    source, count = scalar_of(values), length(values)
    launch = short_launch(scalar, count) if source == scalar and is_short(values) else None
    if launch is not None:
        return _short_sum(launch, values).reshape(())
    if by_library(source, scalar, values):
        return _library_sum(values, scalar)
    wide = compute_scalar(scalar)
    rows = -(-count // ROW)
    sums = empty(rows, wide, values)
    words = {"row": ROW, "count": count, "values": address(values), "sums": address(sums)}
    ranges = of_numbers(rows, count) or Ranges((0, rows))
    call(f"total {source} {wide}", lambda: total_kernel(source, wide), words, ranges)
    return cast(_library_sum(sums, wide), scalar)


def total_and_count(values: Array, scalar: str, bits: Array) -> tuple[Array, int]:
    """The sum of the elements whose bit is set, see `total`, and how many these are, in one pass over both."""
    source, count = scalar_of(values), length(values)
    if by_library(source, scalar, values):
        return _library_sum(values[bits], scalar), int(bits.sum())
    wide = compute_scalar(scalar)
    rows = -(-count // ROW)
    sums, counts = empty(rows, wide, values), np.empty(rows, np.int64)
    words = {"row": ROW, "count": count, "values": address(values), "bits": address(bits)}
    words |= {"sums": address(sums), "counts": address(counts)}
    ranges = of_numbers(rows, count) or Ranges((0, rows))
    call(f"total of bits {source} {wide}", lambda: total_kernel(source, wide, True), words, ranges)
    return cast(_library_sum(sums, wide), scalar), int(counts.sum())


def is_short(values: Array) -> bool:
    """Whether these are floats that are not recorded, so few that one thread sums them in a short call: in less time
    than torch takes, and than NumPy from `LEAST` on."""
    if not 0 < length(values) <= MOST or scalar_of(values) not in ("f32", "f64"):
        return False
    return is_unrecorded(values) if is_torch(values) else length(values) >= LEAST


def short_launch(scalar: str, count: int) -> ShortLaunch | None:
    """The kernel of the sum of so many values, and its launch as a function of values and result; None where there are
    no short calls."""
    launch = _SHORT.get((scalar, count))
    if launch is None:
        executable = shared_kernel(f"pairwise total {scalar}", lambda: pairwise_kernel(scalar))
        start = bound(executable, [ROW, count, 0, 0], (2, 3))
        if start is None:
            return None
        launch = _SHORT.keep((scalar, count), (executable, start))
    return launch


def _short_sum(launch: ShortLaunch, values: Any) -> Any:
    """The sum of values, one element in NumPy's memory, which allocates in a third of the time of torch's."""
    out = np.empty(1, numpy_dtype(scalar_of(values)))
    if code := launch[1](values.data_ptr() if is_torch(values) else values, out):
        launch[0].fail(code)
    return as_array(out, like=values)


def by_library(source: str, scalar: str, values: Array) -> bool:
    """Whether the array library sums these values: few, of a type that it has, or on another device."""
    return length(values) < LEAST or bool({source, scalar} & _BY_LIBRARY) or device_of(values) != "cpu"


def extreme(op: str, values: Array, bits: Array, start: Any) -> Array:
    """The least ("min") or largest ("max") of `start` and the elements of a flat array whose bit is set, of rank 0.

    NaN where there is one.
    """
    source, count = scalar_of(values), length(values)
    first = full(1, source, start, values)
    rows = -(-count // ROW)
    extremes = empty(rows, source, values)
    words = {"row": ROW, "count": count, "values": address(values), "bits": address(bits)}
    words |= {"start": address(first), "found": address(extremes)}
    if rows:
        ranges = of_numbers(rows, count) or Ranges((0, rows))
        call(f"{op} of bits {source}", lambda: extreme_kernel(op, source), words, ranges)
    candidates = np.append(to_numpy(extremes), to_numpy(first))
    return as_array(np.asarray((np.min if op == "min" else np.max)(candidates)), like=values)


def _library_sum(values: Array, scalar: str) -> Array:
    if not is_torch(values) and "bf16" in (scalar_of(values), scalar):
        return np.asarray(values.astype(np.float32).sum()).astype(dtype_of(scalar, values))
    out = values.sum(dtype=dtype_of(scalar, values))
    return out if is_torch(out) else np.asarray(out)

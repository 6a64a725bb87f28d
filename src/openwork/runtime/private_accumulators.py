"""A kernel whose ranges write to the same elements -> its launches on private accumulators, combined in order.

As in `y[i] += A[i, j] * x[j]` walked by columns. Every part takes its share of the ranges, one after the other, and
adds into its private array. Sums of integers are the same for any number of threads. So are those of floating-point
numbers where the result is so small that a fixed number of parts (`PARTS`) costs nothing; else there is a part for each
thread, and sums differ by rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import tuning
from ..codegen import pool
from ..codegen.executable import Executable
from ..compiler.single.factors import identity
from ..compiler.single.row_sums import join_kernel
from ..storage.buffers import Array, address, itemsize, length, numpy_dtype, to_numpy
from ..storage.memory import LARGE, reserve
from ..storage.storage import Storage
from .conversion.conversion_kernels import call
from .conversion.ranges import Ranges, of_numbers

__all__ = ["PIECES", "PrivateAccumulators", "has_long_run", "combine", "split_threshold", "parts_for"]

COST = tuning.OVERLAP_COST
PARTS = tuning.OVERLAP_PARTS
FIXED_WORK = tuning.OVERLAP_WORK
LINES = tuning.OVERLAP_LINES
PIECES = tuning.ROW_PIECES
LONG_ROW = tuning.LONG_ROW
SHARE = tuning.ROW_SHARE
ROW = tuning.OVERLAP_BLOCK


def parts_for(work: int, size: int, threads: int) -> int:
    """The number of private accumulators that pay for a result of `size` elements."""
    if work >= max(FIXED_WORK, 100 * COST * PARTS * size):
        return PARTS
    return max(1, min(threads, work // (COST * max(1, size))))


def split_threshold(total: int, threads: int) -> int:
    """The number of elements from which on a row is split."""
    return max(PIECES, min(LONG_ROW, int(SHARE * total / threads)) if threads > 1 else LONG_ROW)


def has_long_run(s: Storage, threads: int) -> bool:
    """Whether a segment of an ordered outermost level, a row of COO, say, is so long that it is split."""
    first, crd = s.format.levels[0].format, s.crd[0]
    if crd is None or first.unique or not first.ordered or s.format.batch_ndim:
        return False
    least = split_threshold(length(crd), threads)
    places = to_numpy(crd)[:: least // 2]
    repeated = places[:-1][places[1:] == places[:-1]]
    ends = (np.searchsorted(to_numpy(crd), repeated, side=side) for side in ("right", "left"))
    return bool(len(repeated)) and bool((next(ends) - next(ends) >= least).any())


class PrivateAccumulators:
    """The launches of a kernel on ranges, for results of `size` elements combined by `op`.

    slot: the number of the kernel's argument that is the result's address.
    """

    __slots__ = ("bounds", "op", "parts", "scalar", "size", "slot", "step")

    def __init__(self, bounds: Sequence[int], parts: int, op: str, scalar: str, size: int, slot: int) -> None:
        self.bounds, self.parts, self.op, self.scalar, self.size, self.slot = bounds, parts, op, scalar, size, slot
        line = max(1, LINES // itemsize(scalar))
        self.step = -(-size // line) * line

    @property
    def nbytes(self) -> int:
        """Bytes of the accumulators besides the result, which is the first of them."""
        return (self.parts - 1) * self.step * itemsize(self.scalar)

    def run(self, executable: Executable, shared_arguments: list[int], out: int) -> None:
        """Add to the result at the address `out`, which holds the reduction's identity."""
        arrays = self._initialised()
        first, stride = address(arrays), self.step * itemsize(self.scalar)
        arguments_of_parts = [shared_arguments.copy() for _ in range(self.parts)]
        for part, arguments in enumerate(arguments_of_parts):
            arguments[self.slot] = first + (part - 1) * stride if part else out
        ends = list(zip(self.bounds, self.bounds[1:], strict=False))
        for at in range(0, len(ends), self.parts):
            wave = ends[at : at + self.parts]
            pool.parallel_private(executable, arguments_of_parts[: len(wave)], wave)
        combine(self.op, self.scalar, self.size, self.parts - 1, self.step, first, out)

    def _initialised(self) -> Array:
        """The accumulators of all parts but the first, filled with the reduction's identity."""
        count, dtype, start = (
            (self.parts - 1) * self.step,
            numpy_dtype(self.scalar),
            identity(self.op, self.scalar).value,
        )
        if not start:
            return np.zeros(count, dtype)
        arrays = reserve(count, dtype) if count * dtype.itemsize >= LARGE else np.empty(count, dtype)
        arrays[...] = start
        return arrays


def combine(op: str, scalar: str, size: int, parts: int, step: int, first: int, out: int) -> None:
    """Combine arrays of `size` elements, `step` elements apart from the address `first` on, into the one at `out`."""
    rows = -(-size // ROW)
    arguments = {"row": ROW, "size": size, "count": parts, "step": step, "parts": first, "y": out}
    ranges = of_numbers(rows, (parts + 1) * size) or Ranges((0, rows))
    call(f"join {op} {scalar}", lambda: join_kernel(op, scalar), arguments, ranges)

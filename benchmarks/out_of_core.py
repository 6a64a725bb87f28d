"""`n` elements in any order on disk -> compressed rows on disk, under a limit of memory that does not hold them.

    python benchmarks/out_of_core.py 1000000000 2GiB /path/to/folder

The limit is RLIMIT_DATA, which counts the memory that a process writes to: mapped files are not part of it. Elements
are drawn by a linear congruence, so that they are distinct and in no order; what results is compared with that.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import openwork as ow
from openwork.advice.units import bytes_of, bytes_text
from openwork.format.named import coo
from openwork.io import write_parts

BLOCK = 1 << 20


def elements(n: int, side: int) -> Iterator[tuple[tuple[Any, Any], Any]]:
    """The elements number 0 to n - 1: element k is at place `k * step` of `side * side`, a prime step apart."""
    step, places = 2_654_435_761, side * side
    for first in range(0, n, BLOCK):
        k = np.arange(first, min(first + BLOCK, n), dtype=np.uint64)
        place = (k * np.uint64(step)) & np.uint64(places - 1)
        yield ((place // np.uint64(side)).astype(np.int32), (place % np.uint64(side)).astype(np.int32)), value(place)


def value(place: Any) -> Any:
    """The value at a place."""
    return (place % np.uint64(1021)).astype(np.float32)


def main(n: int, memory: str, folder: Path) -> None:
    side = 1 << (n // 32).bit_length()
    source, result = folder / "elements.ow", folder / "rows.ow"
    resource.setrlimit(resource.RLIMIT_DATA, (bytes_of(memory, "limit", "memory"),) * 2)
    begun = time.perf_counter()
    write_parts(source, elements(n, side), (side, side), format=coo(unique=False, ordered=False), dtype="float32")
    written = time.perf_counter()
    print(f"{n:,} elements of a matrix of {side:,} rows; {bytes_text(12 * n)} as coordinates; limit {memory}")
    print(f"written in any order   {written - begun:8.0f} s")
    ow.convert(source, result, format="csr", memory=memory)
    converted = time.perf_counter()
    print(f"converted to csr       {converted - written:8.0f} s, {1e9 * (converted - written) / n:.0f} ns an element")
    t = ow.open(result)
    opened = time.perf_counter()
    print(f"opened and checked     {opened - converted:8.1f} s")
    y = t @ np.ones(side)
    multiplied = time.perf_counter()
    print(f"t @ x                  {multiplied - opened:8.1f} s")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"processor time         {used.ru_utime + used.ru_stime:8.0f} s in all")
    print(f"resident at most       {used.ru_maxrss / 1e6:8.2f} GB, with mapped pages")
    assert t.nse == n
    (rows, columns), values = next(elements(n, side))
    assert all(t[int(i), int(j)] == v for i, j, v in zip(rows[:200], columns[:200], values[:200], strict=True))
    total = sum(float(v.astype(np.float64).sum()) for _, v in elements(n, side))
    assert abs(float(y.sum()) - total) < 1e-6 * total


if __name__ == "__main__":
    main(int(float(sys.argv[1])), sys.argv[2], Path(sys.argv[3]))

"""Times A @ A with one accumulator for all rows, and with that which each row gets.

A workspace of a lowering is one for all rows of a loop nest: a dense row, a hash table, or a list that is sorted. The
kernel of `compiler/spgemm.py` has all three and chooses by row; thresholds make it use one alone. Prints milliseconds
of CPU time, the least of interleaved rounds on one thread, and below, what it costs that operands of other formats are
converted to CSR before. docs/design.md has the first table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

import openwork as ow
from openwork.runtime.contraction import spgemm
from openwork.runtime.semirings import semiring

ROUNDS = 5
MANY = 1 << 40
PLUS_TIMES = semiring("plus_times")
ALONE: dict[str, dict[str, int]] = {
    "dense": {"sort_to": 0, "dense_from": 0, "window": 0},
    "hashed": {"sort_to": 0, "dense_from": MANY, "window": 0},
    "sorted": {"sort_to": MANY, "dense_from": MANY, "window": 0},
}


def accumulators(thresholds: dict[str, int]) -> Callable[[Any], dict[str, int]]:
    """What stands for `spgemm._accumulators`: the sizes of workspaces for these thresholds."""

    def sizes(job: Any) -> dict[str, int]:
        columns, most = job.b.columns, int(job.flops.max(initial=0))
        hashed = min(most, columns) if thresholds["sort_to"] == 0 < thresholds["dense_from"] else 0
        table = 1 << max(6, (2 * hashed - 1).bit_length()) if hashed else 1
        room = max(hashed, most if thresholds["sort_to"] else 1)
        bits, digits = max(1, (columns - 1).bit_length()), (max(room, table) - 1).bit_length()
        width = columns if not thresholds["dense_from"] else 1
        return {**thresholds, "width": width, "room": room, "table": table, "bits": bits, "digits": digits}

    return sizes


def grid(*extents: int) -> Any:
    """The Laplacian of a grid."""
    lines = [sp.diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)], offsets=(-1, 0, 1)) for n in extents]
    out = lines[0]
    for line in lines[1:]:
        out = sp.kronsum(out, line)
    return sp.csr_array(out)


def matrices() -> dict[str, Any]:
    """By what they are."""

    def uniform(rows: int, each: int) -> Any:
        return ow.random((rows, rows), each / rows, format="csr", rng=1).to_scipy()

    def band(rows: int, wide: int) -> Any:
        return sp.diags_array(
            [np.ones(rows)] * wide, offsets=range(-(wide // 2), wide // 2 + 1), shape=(rows, rows)
        ).tocsr()

    return {
        "3 x 10^5 rows of 9, a band": band(300_000, 9),
        "3 x 10^5 rows of 3, a band": band(300_000, 3),
        "five-point Laplacian, 500 x 500": grid(500, 500),
        "seven-point Laplacian, 60 x 60 x 60": grid(60, 60, 60),
        "10^6 rows of 3, uniform": uniform(1_000_000, 3),
        "10^5 rows of 5, uniform": uniform(100_000, 5),
        "10^5 rows of 16, uniform": uniform(100_000, 16),
        "3 x 10^3 rows of 150, uniform": uniform(3_000, 150),
        "2 x 10^3 rows of 5, uniform": uniform(2_000, 5),
    }


def least(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Milliseconds of each call, after a first one that compiles."""
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(ROUNDS + 1):
        for name, call in calls.items():
            start = process_time()
            call()
            if turn:
                best[name] = min(best[name], (process_time() - start) * 1e3)
    return best


def alone(rows: spgemm.Rows, name: str) -> Callable[[], spgemm.Rows]:
    """The product with the accumulator `name` for all rows."""

    def product() -> spgemm.Rows:
        with patch.object(spgemm, "_accumulators", accumulators(ALONE[name])):
            return spgemm.multiply(rows, rows, PLUS_TIMES)

    return product


def show(title: str, best: dict[str, float]) -> None:
    """A row of a table: milliseconds of the first call, and the ratios of the others to it."""
    first, *others = best.values()
    print(f"| {title} | {first:.1f} |", " | ".join(f"{ms / first:.2f}" for ms in others), "|", flush=True)


def main() -> int:
    """Print both tables."""
    ow.set_num_threads(1)
    print("| matrix | by row |", " | ".join(f"{n}, ratio" for n in ALONE), "|")
    for title, matrix in matrices().items():
        a = matrix.astype(np.float64)
        rows = spgemm.Rows(a.indptr, a.indices, a.data, a.shape[1])
        calls: dict[str, Callable[[], Any]] = {}
        calls |= {"by row": partial(spgemm.multiply, rows, rows, PLUS_TIMES), **{n: alone(rows, n) for n in ALONE}}
        want = (a @ a).sum()
        for call in calls.values():
            assert np.isclose(call().values.sum(), want)
        show(title, least(calls))
    formats = ("coo", "dcsr")
    print("| matrix | csr |", " | ".join(f"{f}, ratio" for f in formats), "|")
    for title, matrix in matrices().items():
        tensors = {f: ow.asarray(matrix.astype(np.float64)).asformat(f) for f in ("csr", *formats)}
        show(title, least({f: partial(_product_of_fresh, t) for f, t in tensors.items()}))
    return 0


def _product_of_fresh(t: Any) -> Any:
    """t @ t, converted anew."""
    return _fresh(t) @ _fresh(t)


def _fresh(t: Any) -> Any:
    """The tensor with no conversion of it kept."""
    s = t._storage
    pos, crd = ({k: b for k, b in enumerate(group) if b is not None} for group in (s.pos, s.crd))
    return ow.assemble(t.format, t.shape, pos=pos, crd=crd, values=t.values, check=False)


if __name__ == "__main__":
    sys.exit(main())

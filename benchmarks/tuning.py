"""Times a call for several values of a tuned constant: python benchmarks/tuning.py GALLOP_RATIO 2 16 128.

Each value has a process of its own, in which `openwork.tuning` is changed before anything reads it; the processes have
turns, and the least time of each counts. docs/tuning.md says which constants were found so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

ROUNDS = 3
CHILD = """
import sys
import openwork.tuning as tuning
setattr(tuning, sys.argv[1], type(getattr(tuning, sys.argv[1]))(float(sys.argv[2])))
sys.path.insert(0, sys.argv[3])
from tuning import CALLS, least
print(least(*CALLS[sys.argv[1]]()))
"""


def least(*calls: Callable[[], Any]) -> str:
    """The least time of each call in microseconds, after a first one that compiles."""
    out = []
    for call in calls:
        call()
        times = []
        for _ in range(40):
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
        out.append(f"{min(times) * 1e6:.1f}")
    return " ".join(out)


def _random(rows: int, columns: int, each: float, seed: int) -> Any:
    import openwork as ow

    return ow.random((rows, columns), each / columns, format="csr", rng=seed)


def _gallop() -> tuple[Callable[[], Any], ...]:
    """A * B for a B of 2, 8, 32, 128 times fewer elements."""
    a = _random(20_000, 20_000, 20, 1)
    others = [_random(20_000, 20_000, 20 / ratio, 2) for ratio in (2, 8, 32, 128)]
    return tuple(lambda b=b: a * b for b in others)  # type: ignore[misc]


def _spgemm() -> tuple[Callable[[], Any], ...]:
    """A @ A with 9, 36 and 144 products in a row."""
    matrices = [_random(4000, 4000, each, 3) for each in (3, 6, 12)]
    return tuple(lambda a=a: a @ a for a in matrices)  # type: ignore[misc]


def _product(*each: int) -> Callable[[], tuple[Callable[[], Any], ...]]:
    """A @ x with so many elements in a row."""

    def calls() -> tuple[Callable[[], Any], ...]:
        import numpy as np

        matrices = [_random(max(40_000 // k, 100), 40_000, k, 4) for k in each]
        x = np.ones(40_000)
        return tuple(lambda a=a: a @ x for a in matrices)  # type: ignore[misc]

    return calls


CALLS: dict[str, Callable[[], tuple[Callable[[], Any], ...]]] = {
    "GALLOP_RATIO": _gallop,
    "SPGEMM_INSERTION_SORT": _spgemm,
    "SPGEMM_PREFETCH_DISTANCE": _spgemm,
    "SPGEMM_SORTED": _spgemm,
    "LONG_FIBRE": _product(4, 8, 16, 32, 128),
    "SHORT_FIBRE": _product(1, 2, 3, 5),
}


def main(name: str, values: list[str]) -> None:
    """Print a line for each value: the calls' least times."""
    folder = __file__.rpartition("/")[0] or "."
    best: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for value in values:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, name, value, folder],
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | {"OPENWORK_CACHE": "0"},
            )  # fmt: skip  (a kernel on disk does not say with which constants it was made)
            times = [float(t) for t in done.stdout.split()]
            best[value] = [min(pair) for pair in zip(times, best.get(value, times), strict=True)]
    print(f"{name}: {(CALLS[name].__doc__ or '').strip()} microseconds, least of {ROUNDS} turns of 40 calls")
    for value, times in best.items():
        print(f"{value:>8}", *(f"{t:>10.1f}" for t in times))


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in CALLS:
        sys.exit(f"usage: python benchmarks/tuning.py NAME VALUE [VALUE ...]\nnames: {', '.join(CALLS)}")
    main(sys.argv[1], sys.argv[2:])

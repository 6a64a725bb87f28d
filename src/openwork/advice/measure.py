"""Time several ways of doing one thing, taking turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median

__all__ = ["medians", "once", "samples"]

SAMPLE = 2e-4
ROUNDS = (3, 301)


def once(run: Callable[[], object], number: int) -> float:
    """Seconds per call over `number` calls in a row."""
    begun = time.perf_counter()
    for _ in range(number):
        run()
    return (time.perf_counter() - begun) / number


def medians(runs: Mapping[str, Callable[[], object]], budget: float) -> dict[str, float]:
    """The median seconds per call of each, see `samples`."""
    return {name: median(values) for name, values in samples(runs, budget).items()}


def samples(
    runs: Mapping[str, Callable[[], object]], budget: float, step: Callable[[int, int], object] | None = None
) -> dict[str, list[float]]:
    """Seconds per call of each in rounds in which each has one turn, for about `budget` seconds.

    Each is called once or more beforehand, so that compiling and first-touch costs are not counted.
    """
    number: dict[str, int] = {}
    cost = 0.0
    for name, run in runs.items():
        run()
        single = max(once(run, 1), 1e-7)
        number[name] = max(1, min(1000, round(SAMPLE / single)))
        cost += single * number[name]
    rounds = max(ROUNDS[0], min(ROUNDS[1], int(budget / cost)))
    result: dict[str, list[float]] = {name: [] for name in runs}
    enabled = gc.isenabled()
    gc.disable()
    try:
        for done in range(1, rounds + 1):
            for name, run in runs.items():
                result[name].append(once(run, number[name]))
            if step is not None:
                step(done, rounds)
    finally:
        if enabled:
            gc.enable()
    return result

"""Calls -> their least CPU times, and a row of a table of two."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Calls", "ROWS", "least", "least_of_new", "show"]

ROWS: list[str] = []
"""The rows that were shown."""

Calls = dict[str, Callable[[], object]]


def least(calls: Calls, rounds: int, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """The least time of each call in seconds, of the CPU and all threads together where nothing else is given; the
    calls take turns, once each before."""
    times = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begun = clock()
            call()
            times[name] = min(times[name], clock() - begun)
    return times


def least_of_new(calls: dict[str, tuple[Callable[[], Any], Callable[..., object]]], rounds: int) -> dict[str, float]:
    """The same of calls that take what another function makes, which is not timed."""
    times = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, (make, call) in calls.items():
            operand = make()
            begun = time.process_time()
            call(operand)
            times[name] = min(times[name], time.process_time() - begun)
    return times


def show(name: str, peer: float, ours: float, peer_name: str) -> None:
    """A row of the table."""
    ROWS.append(f"| {name} | {ours * 1e3:.2f} | {peer * 1e3:.2f} | {peer_name} | {ours / peer:.2f} |")
    print(ROWS[-1], flush=True)

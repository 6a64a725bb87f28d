"""The thread pool."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .executable import Executable

__all__ = ["get_num_threads", "parallel", "set_num_threads"]

_threads = int(os.environ.get("OPENWORK_NUM_THREADS", "0")) or os.cpu_count() or 1


def set_num_threads(n: int) -> None:
    """How many threads kernels may use."""
    global _threads
    _threads = n


def get_num_threads() -> int:
    """How many threads kernels may use."""
    return _threads


def parallel(executable: Executable, words: Sequence[int], bounds: Sequence[int]) -> None:
    """Run `executable` on [bounds[t], bounds[t + 1]) for every t."""
    for t in range(len(bounds) - 1):
        executable.run(words, bounds[t], bounds[t + 1])

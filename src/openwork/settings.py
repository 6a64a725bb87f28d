"""Environment variable -> setting: what is not understood counts as not set, so that importing never fails.

| variable | value | default |
| --- | --- | --- |
| OPENWORK_NUM_THREADS | threads of kernels, from 1 | OMP_NUM_THREADS, else the processors of this process |
| OPENWORK_KERNELS | kernels kept in memory, from 1 | 1024 |
| OPENWORK_REUSE | MiB of freed buffers kept for reuse, from 0 | an eighth of the memory, at most 512 |
| OPENWORK_CACHE | 0, off, no or false: no kernels on disk | on |
| OPENWORK_CACHE_DIR | the folder of kernels on disk | the user's cache folder |
| OPENWORK_CHECKED | 0, off or no: kernels trust their indices; anything else: they check them | off |
| OPENWORK_OPTIMIZE | 0, off, no or false: kernels compiled in linear time | all passes |
| OPENWORK_NOTICE | 0, off, no or false: nothing is said when a call compiles for long | on, at a terminal or notebook |
| OPENWORK_POOL | 0, off, no or false: no threads of our own | on |
"""

from __future__ import annotations

import os

__all__ = ["is_off", "number"]

_DIGITS = 18
"""A longer number is no setting, and Python refuses to read very long ones."""


def number(name: str, least: int) -> int | None:
    """The variable's value, a number in decimal ASCII digits that is at least `least`; None for anything else."""
    text = os.environ.get(name, "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        return None
    value = int(text)
    return value if value >= least else None


def is_off(name: str) -> bool:
    """Whether the variable says no."""
    return os.environ.get(name, "").strip().lower() in ("0", "off", "no", "false")

"""A stretch of work on a worker -> memory that is freed in it stays with the process until its end.

Dask starts workers with MALLOC_TRIM_THRESHOLD_ = 65536, so that glibc gives freed memory back at once. It also ends
glibc's own growth of the size from which a block is mapped by itself. A method of many products then maps each vector
above 128 KiB anew, page by page, which costs as much as what is computed in it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["kept_memory"]

_TRIM, _MAP = -1, -3
"""Parameters of mallopt: bytes at the end of the heap that are given back, and of a block that is mapped by itself."""
_KEPT = {_TRIM: 1 << 30, _MAP: 1 << 25}
"""glibc maps blocks above 32 MiB whatever it is told."""
_VARIABLES = {_TRIM: "MALLOC_TRIM_THRESHOLD_", _MAP: "MALLOC_MMAP_THRESHOLD_"}
_SMALLEST = 1 << 17
"""Both without a setting."""

_lock = Lock()
_stretches = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory where the process was started with a limit of it; the limit holds again after the last stretch.

    For the process, so that other tasks beside keep theirs as well meanwhile.
    """
    before = _limits()
    if not before:
        yield
        return
    _entered(1, before)
    try:
        yield
    finally:
        _entered(-1, before)


def _entered(step: int, before: dict[int, int]) -> None:
    global _stretches
    with _lock:
        _stretches += step
        if _stretches == max(step, 0):  # the first begins, or the last has ended
            for parameter, size in (_KEPT if _stretches else before).items():
                _mallopt()(parameter, size)


@cache
def _limits() -> dict[int, int]:
    """What the environment of the process set; nothing where it did not, or the C library has other means."""
    set_to = {parameter: os.environ.get(name, "") for parameter, name in _VARIABLES.items()}
    if _mallopt() is None or not set_to[_TRIM].isdecimal():
        return {}
    return {parameter: int(text) if text.isdecimal() else _SMALLEST for parameter, text in set_to.items()}


@cache
def _mallopt() -> Any:
    """glibc's function, None where there is another C library."""
    try:
        glibc = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        glibc = None
    return getattr(ctypes.CDLL(None), "mallopt", None) if glibc else None


def _after_fork() -> None:
    """A child has none of the threads that may have held the lock."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

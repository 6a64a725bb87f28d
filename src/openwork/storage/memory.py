"""A size and a dtype -> an array over pages that are reused once it is freed: new pages cost up to half of an addition.

`reserve` returns an array over a block of pages. When the last array over the block is gone, the block is idle until
the next buffer of about its size. Idle blocks take LIMIT bytes at most; the oldest are freed first. OPENWORK_REUSE sets
the limit in MiB: 0 turns reuse off, and NumPy allocates. tracemalloc sees blocks in use as it sees arrays.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np

from .. import settings, tuning
from ..faults import reach

__all__ = ["LARGE", "free_idle", "reserve", "shrink", "waiting"]

LARGE = tuning.BLOCK_BYTES
ROUND = tuning.BLOCK_ROUND
_DOMAIN = np.lib.tracemalloc_domain
_HUGE = getattr(mmap, "MADV_HUGEPAGE", None)
_FORGET = getattr(mmap, "MADV_DONTNEED", None)
_HAS_PAGES = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS") and _FORGET is not None


def _limit() -> int:
    configured = settings.number("OPENWORK_REUSE", 0)
    if configured is not None:
        return configured << 20
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        installed = 0
    return min(512 << 20, installed // 8)


class _Block:
    """Anonymous pages of this process; `address` is that of the first."""

    __slots__ = ("address", "pages", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if _HUGE is not None:
            with suppress(OSError):  # a kernel without huge pages
                self.pages.madvise(_HUGE)
        self.address = int(np.frombuffer(self.pages, np.uint8).__array_interface__["data"][0])

    def forget(self, begin: int) -> None:
        """Release the memory of the pages from byte `begin` on, the last included, until they are written to again."""
        begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        if _FORGET is not None:
            self.pages.madvise(_FORGET, begin, self.size - begin)


class _Lease:
    """The owner of an array's memory: NumPy keeps it as the array's base, and no view outlives it."""

    __slots__ = ("__array_interface__", "__weakref__", "block")

    def __init__(self, block: _Block, nbytes: int) -> None:
        self.block = block
        self.__array_interface__ = {
            "data": (block.address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip
        _trace(block.address, nbytes)

    def __del__(self) -> None:
        _trace(self.block.address, None)
        _release(self.block)


def _trace(address: int, nbytes: int | None) -> None:
    """Report memory in use to tracemalloc, if it is tracing (None: no longer in use)."""
    tracemalloc = sys.modules.get("tracemalloc")
    if tracemalloc is None or not tracemalloc.is_tracing():
        return
    import ctypes

    domain, at = ctypes.c_uint(_DOMAIN), ctypes.c_size_t(address)
    if nbytes is None:
        ctypes.pythonapi.PyTraceMalloc_Untrack(domain, at)
    else:
        ctypes.pythonapi.PyTraceMalloc_Track(domain, at, ctypes.c_size_t(nbytes))


_lock = threading.Lock()
_released: deque[_Block] = deque()
"""Released blocks; appending is atomic, so that it is safe wherever the last reference is dropped."""
_idle: list[_Block] = []
"""Idle blocks, the oldest first; changed under the lock."""
LIMIT = _limit()


def _release(block: _Block) -> None:
    """Release a block. May be called at any moment, also inside `reserve`, by the garbage collector."""
    _released.append(block)
    if _lock.acquire(blocking=False):
        try:
            _collect()
        finally:
            _lock.release()


def _collect() -> None:
    """Make released blocks idle, and free the oldest above the limit; the lock is held."""
    while _released:
        _idle.append(_released.popleft())
    total = sum(block.size for block in _idle)
    while _idle and total > LIMIT:
        total -= _idle.pop(0).size


def _acquire(size: int) -> _Block:
    """An idle block, not more than a quarter larger, or a new one."""
    with _lock:
        _collect()
        for at in reversed(range(len(_idle))):
            if size <= _idle[at].size <= size + (size >> 2):
                return _idle.pop(at)
    try:
        return _Block(size)
    except OSError:
        if not free_idle():
            raise
    return _Block(size)


def free_idle() -> bool:
    """Give idle blocks back to the system, where memory is short; whether there was one."""
    with _lock:
        _collect()
        found = bool(_idle)
        _idle.clear()
    return found


def reserve(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of n elements, uninitialised, over pages that may have been used before.

    Guarantees: no array that is alive shares memory with it.
    """
    reach("allocate")
    nbytes = n * dtype.itemsize
    if nbytes < LARGE or not LIMIT or not _HAS_PAGES:
        return np.empty(n, dtype)
    try:
        block = _acquire(-(-nbytes // ROUND) * ROUND)
    except OSError as error:
        raise MemoryError(f"no memory for {nbytes:,} bytes") from error
    return np.asarray(_Lease(block, nbytes)).view(dtype)


def shrink(buffer: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """The first n elements of an array without other references; memory after them is released where that pays."""
    size = buffer.shape[0]
    if size == n:
        return buffer
    owner: Any = buffer
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    if isinstance(owner, np.ndarray):
        if owner is not buffer:
            return buffer[:n]
        buffer.resize(n, refcheck=False)
        return buffer
    if not isinstance(owner, _Lease):
        return buffer[:n]
    used = n * buffer.itemsize
    if 8 * used < owner.block.size:
        return buffer[:n].copy()
    if used + (owner.block.size >> 2) < owner.block.size:
        owner.block.forget(used)
        _trace(owner.block.address, used)
    return buffer[:n]


def waiting() -> int:
    """Bytes of idle blocks."""
    with _lock:
        _collect()
        return sum(block.size for block in _idle)


def _forked() -> None:
    """Replace the lock in a forked child, as a thread that it does not have may hold it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

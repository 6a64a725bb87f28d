"""Memory of large buffers, used again after it is freed: fresh pages cost up to half of an addition.

`reserve` gives an array over a block of pages. When the last array that looks into the block is gone, the block waits
for the next buffer of about its size. Blocks that wait take LIMIT bytes at most; the oldest go first. OPENWORK_REUSE
says how many MiB may wait: 0 turns it off, and NumPy allocates. tracemalloc sees blocks in use as it sees arrays.
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

__all__ = ["LARGE", "reserve", "shrink", "waiting"]

LARGE = tuning.BLOCK_BYTES
ROUND = tuning.BLOCK_ROUND
_DOMAIN = np.lib.tracemalloc_domain
_HUGE = getattr(mmap, "MADV_HUGEPAGE", None)
_FORGET = getattr(mmap, "MADV_DONTNEED", None)
_HAS_PAGES = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS") and _FORGET is not None


def _limit() -> int:
    chosen = settings.number("OPENWORK_REUSE", 0)
    if chosen is not None:
        return chosen << 20
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        installed = 0
    return min(512 << 20, installed // 8)


class _Block:
    """Pages of this process's own; `address` is that of the first."""

    __slots__ = ("address", "pages", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if _HUGE is not None:
            with suppress(OSError):  # a kernel without huge pages
                self.pages.madvise(_HUGE)
        self.address = int(np.frombuffer(self.pages, np.uint8).__array_interface__["data"][0])

    def forget(self, begin: int) -> None:
        """The pages from byte `begin` on hold nothing any more, and take no memory until they are written to."""
        begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        if begin < self.size and _FORGET is not None:
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
        _give(self.block)


def _trace(address: int, nbytes: int | None) -> None:
    """Tell tracemalloc, where it is at work, of memory that is used (None: no longer)."""
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
_returned: deque[_Block] = deque()
"""Blocks that came back; appending is one step, so that it is safe wherever the last reference goes away."""
_idle: list[_Block] = []
"""Blocks that wait, the oldest first; changed under the lock."""
LIMIT = _limit()


def _give(block: _Block) -> None:
    """Take a block back. May be called at any moment, also inside `reserve`, by the garbage collector."""
    _returned.append(block)
    if _lock.acquire(blocking=False):
        try:
            _tidy()
        finally:
            _lock.release()


def _tidy() -> None:
    """Let what came back wait, and the oldest go; the lock is held."""
    while _returned:
        _idle.append(_returned.popleft())
    total = sum(block.size for block in _idle)
    while _idle and total > LIMIT:
        total -= _idle.pop(0).size


def _take(size: int) -> _Block:
    """A block that waited, not more than a quarter larger, or a new one."""
    with _lock:
        _tidy()
        for at in reversed(range(len(_idle))):
            if size <= _idle[at].size <= size + (size >> 2):
                return _idle.pop(at)
    return _Block(size)


def reserve(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of n elements, uninitialised, over pages that may have been used before.

    Guarantees: no array that is alive shares memory with it.
    """
    reach("allocate")
    nbytes = n * dtype.itemsize
    if nbytes < LARGE or not LIMIT or not _HAS_PAGES:
        return np.empty(n, dtype)
    try:
        block = _take(-(-nbytes // ROUND) * ROUND)
    except OSError as error:
        raise MemoryError(f"no memory for {nbytes:,} bytes") from error
    return np.asarray(_Lease(block, nbytes)).view(dtype)


def shrink(buffer: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """The first n elements of an array that nobody else uses; what lies behind is given back where that is worth it."""
    have = buffer.shape[0]
    if have == n:
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
    """Bytes of blocks that wait to be used again."""
    with _lock:
        _tidy()
        return sum(block.size for block in _idle)


def _forked() -> None:
    """A child may be born while another thread holds the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

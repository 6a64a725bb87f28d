"""A function that uses LLVM -> its result, by one thread at a time, safe across interrupts and forks; loaded lazily.

A call runs where no signal is delivered (`interruptible`), so that no exception comes between LLVM's objects; the main
thread waits for it, and handles signals. A fork waits for a call of another thread, the import of llvmlite included:
the child would have LLVM's data in the state of an unfinished call. After a timeout it goes ahead, with new locks; a
child of a thread that was importing llvmlite then cannot compile, as Python frees no module's lock.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from _thread import get_ident
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from .. import interruptible
from ..errors import UnsupportedError
from .after_fork import renew_locks

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["by_llvm", "is_limited", "library"]

T = TypeVar("T")
_LOCK = threading.RLock()
_no_fork = threading.Event()
_no_fork.set()
_held = False
_inside: int | None = None
"""The thread that holds the lock."""
_imports = False
"""Whether a thread imports llvmlite; in a forked child that thread is not there to end it."""
_is_without = False
"""Whether this process was forked while another thread imported llvmlite."""
_ARENA_MAX = -8
"""M_ARENA_MAX of glibc's mallopt."""
LAST = 5.0
"""Seconds that a fork, and the end of the process, wait for a call of another thread."""


@cache
def library() -> Any:
    """llvmlite's binding, ready for this machine; for functions that `by_llvm` calls.

    Raises MemoryError where the address space is too small for it, UnsupportedError where it cannot be loaded.
    """
    global _imports
    if _is_without:
        raise UnsupportedError(
            "code generation: this process was forked while another thread was loading LLVM"
            "\n  help: call something that compiles before the fork, or start processes by spawn"
        )
    _imports = True
    try:
        import llvmlite.binding as llvm
    except OSError as error:
        if "memory" in str(error.__context__) or is_limited():
            raise MemoryError(
                "code generation: no memory to load LLVM\n  help: raise the limit of the address space (ulimit -v)"
            ) from error
        raise UnsupportedError(
            f"code generation: LLVM cannot be loaded: {error}\n  help: install llvmlite again"
        ) from error
    finally:
        _imports = False
    atexit.register(_finish)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def is_limited() -> bool:
    """Whether the process may not use all addresses."""
    return resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def by_llvm(function: Callable[..., T], *args: Any) -> T:
    """`function(*args)`, one thread at a time, and where no signal can land: the main thread waits for it."""
    if is_limited():
        _one_heap()
    result: T = interruptible.call(_locked, function, *args)
    return result


@cache
def _one_heap() -> None:
    """Restrict glibc's malloc to one heap: the 64 MiB of addresses that it reserves per thread are needed by LLVM."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


def _locked(function: Callable[..., T], *args: Any) -> T:
    global _inside
    me = get_ident()
    if _inside != me:  # else a fork waits for this very thread
        _no_fork.wait(LAST)
    with _LOCK:
        before, _inside = _inside, me
        try:
            return function(*args)
        finally:
            _inside = before


def _finish() -> None:
    """Before the process ends: wait for a compile that an interrupt has abandoned, as LLVM's data are freed next."""
    if _LOCK.acquire(timeout=LAST):
        _LOCK.release()  # what other functions do at the end may compile


def _before_fork() -> None:
    """Wait for a compile of another thread: the child would have LLVM's data in the state of an unfinished one."""
    global _held
    _no_fork.clear()  # threads that compile one kernel after the other would keep the lock among them
    _held = _LOCK.acquire(timeout=LAST)


def _after_fork_in_parent() -> None:
    if _held:
        _LOCK.release()
    _no_fork.set()


def _after_fork_in_child() -> None:
    """Threads that the child does not have may hold the locks: ours, and llvmlite's."""
    global _LOCK, _no_fork, _inside, _is_without
    _is_without = _is_without or (_imports and not _held)
    _LOCK, _no_fork, _inside = threading.RLock(), threading.Event(), None
    _no_fork.set()
    ffi: Any = sys.modules.get("llvmlite.binding.ffi")
    lock: Any = getattr(getattr(ffi, "lib", None), "_lock", None)
    if hasattr(lock, "_lock"):
        lock._lock = threading.RLock()
    renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

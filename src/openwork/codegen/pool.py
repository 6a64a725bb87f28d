"""An executable, its arguments and ranges -> the kernel run on all ranges by a pool of native threads.

The threads (`pool.ll`) never hold the GIL and never touch Python. Where they are not available, or are busy with
another caller's kernel, the caller runs all ranges itself.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise

from .. import settings, tuning
from ..errors import CompilerBug
from ..integers import integer
from ..interruptible import LONG, call, here
from . import disk, engine, linker
from .executable import Executable, checked_words

__all__ = ["LONG", "parallel_private", "available", "get_num_threads", "ordered", "parallel", "set_num_threads"]

_LIMIT = 257
_WAVE = tuning.POOL_WAVE
_SPINS = tuning.POOL_SPINS
_FOREIGN, _BUSY = -1, -2
_I64 = ctypes.c_int64
_NAME = "pool with ordered jobs 3"
_START = ctypes.CFUNCTYPE(_I64, _I64, _I64)
_RUN = ctypes.CFUNCTYPE(_I64, _I64, ctypes.c_char_p, ctypes.c_char_p, _I64, _I64)
_ORDERED = ctypes.CFUNCTYPE(_I64, _I64, ctypes.c_char_p, ctypes.c_char_p, *(_I64,) * 4, ctypes.c_char_p, *(_I64,) * 5)
_APART = ctypes.CFUNCTYPE(_I64, _I64, ctypes.c_char_p, ctypes.c_char_p, *(_I64,) * 3)
_lock = threading.Lock()
_code: list[linker.Code] = []
"""The pool's code, which is never unmapped: threads are inside."""


def _cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default() -> int:
    """What the environment says, ours or that of OpenMP, which launchers of many processes set for all; else all."""
    said = settings.number("OPENWORK_NUM_THREADS", 1) or settings.number("OMP_NUM_THREADS", 1)
    return min(said or _cores(), _LIMIT)


def _said() -> bool:
    return any(settings.number(name, 1) for name in ("OPENWORK_NUM_THREADS", "OMP_NUM_THREADS"))


threads = _default()
_is_default = not _said()
"""Whether nobody has said how many threads there are to be."""
_run: Callable[..., int] | None = None


def get_num_threads() -> int:
    """How many threads a kernel may use, the caller's included.

    Returns
    -------
    int, the number of threads

    Cost: O(1).
    See also: set_num_threads.

    Examples
    --------
    >>> ow.get_num_threads() >= 1
    True
    """
    return threads


def set_num_threads(n: int) -> None:
    """Let kernels use `n` threads, the caller's included. Raises ValueError where n < 1.

    Parameters
    ----------
    n : how many threads, at least 1

    Cost: O(1); threads start with the first call that uses them.
    See also: get_num_threads.

    Examples
    --------
    >>> before = ow.get_num_threads()
    >>> ow.set_num_threads(1)
    >>> ow.get_num_threads()
    1
    >>> ow.set_num_threads(before)
    """
    global threads, _run, _is_default
    n = integer(n, "set_num_threads", "n")
    if n < 1:
        raise ValueError(f"set_num_threads: expected at least 1 thread, got {n}")
    threads, _run, _is_default = min(n, _LIMIT), None, False


def _callers() -> int:
    """How many threads of Dask's workers in this process may call kernels at a time, 1 at least."""
    worker = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    workers = [w for w in list(getattr(worker, "_instances", ())) if w.status.name == "running"]
    return max(1, sum(int(w.state.nthreads) for w in workers))


def available() -> bool:
    """Whether this system has the native pool."""
    return _native() is not None


def parallel(executable: Executable, words: Sequence[int], bounds: Sequence[int], work: int = LONG) -> int:
    """Run `executable` on [bounds[t], bounds[t + 1]) for every t, on the pool's threads and the caller's.

    Ranges are claimed in order as threads become free, so more ranges than threads balance uneven work. Of many
    ranges four for each thread run at a time, so that whoever cuts long work in short ranges can be interrupted, and
    says `work=0`; else `work` is the number of elements, and where these are many the main thread can be interrupted.
    Raises MemoryError or CompilerBug as `Executable.run` does. Cost: some 4 microseconds with two threads.
    """
    if work >= LONG:
        return call(_parallel, executable, words, bounds)
    return _parallel(executable, words, bounds)


def _parallel(executable: Executable, words: Sequence[int], bounds: Sequence[int]) -> int:
    tasks = len(bounds) - 1
    run = _run or _start()
    if tasks < 2 or threads < 2 or run is None:
        return _sequential(executable, words, bounds)
    wave = _WAVE * threads
    if tasks > wave:
        stop = here()
        for first in range(0, tasks, wave):
            stop.check()
            _parallel(executable, words, bounds[first : first + wave + 1])
        return 0
    code = run(
        executable.address, _packed(executable, words), struct.pack(f"={tasks + 1}q", *bounds), tasks, threads - 1
    )
    if code:
        if code == _FOREIGN:
            _forget()
            return _parallel(executable, words, bounds)
        if code == _BUSY:
            return _sequential(executable, words, bounds)
        executable.fail(code)
    return code


def parallel_private(executable: Executable, words: Sequence[Sequence[int]], ranges: Sequence[tuple[int, int]]) -> None:
    """Run `executable` on the ranges in parallel, each with words of its own.

    Raises MemoryError or CompilerBug as `Executable.run` does.
    """
    tasks = len(ranges)
    if len(words) != tasks:
        raise CompilerBug(f"kernel {executable.name}: {len(words)} sets of words for {tasks} ranges")
    if tasks < 2 or threads < 2 or (_run or _start()) is None:
        code = _BUSY
    else:
        native = _native()
        assert native is not None
        packed = b"".join(_packed(executable, w) for w in words)
        bounds = struct.pack(f"={2 * tasks}q", *(end for pair in ranges for end in pair))
        code = native[3](executable.address, packed, bounds, tasks, threads - 1, len(packed) // tasks)
    if code == _FOREIGN:
        _forget()
        parallel_private(executable, words, ranges)
    elif code == _BUSY:
        for words_of_range, (lo, hi) in zip(words, ranges, strict=True):
            executable.run(words_of_range, lo, hi)
    elif code:
        executable.fail(code)


def ordered(
    first: Executable, second: Executable, words: Sequence[Sequence[int]], words2: Sequence[Sequence[int]], tasks: int,
    counts: int, ends: int, chains: int,
) -> bool:  # fmt: skip
    """Run `first` on [t, t + 1) for every t below `tasks`, and `second` on t once `first` has run on all before it.

    `words` and `words2` hold the words of each thread. `first` stores counts[r * tasks + t] for each of the chains r
    (int64, at the address `counts`); before `second` runs on t, ends[r * (tasks + 1) + t] is the sum of counts before.
    Both must be zero at the start. False where the pool is not available: then nothing has been run. The main
    thread can be interrupted.
    """
    return call(_ordered, first, second, words, words2, tasks, counts, ends, chains)


def _ordered(
    first: Executable, second: Executable, words: Sequence[Sequence[int]], words2: Sequence[Sequence[int]], tasks: int,
    counts: int, ends: int, chains: int,
) -> bool:  # fmt: skip
    if (_run or _start()) is None or threads < 2:
        return False
    native = _native()
    assert native is not None
    packed, packed2 = (b"".join(_packed(e, w) for w in ws) for e, ws in ((first, words), (second, words2)))
    helpers = min(threads, len(words)) - 1
    bounds = struct.pack(f"={tasks + 1}q", *range(tasks + 1))
    code = native[2](
        first.address, packed, bounds, tasks, helpers, len(packed) // len(words), second.address, packed2,
        len(packed2) // len(words2), counts, ends, chains, 0,
    )  # fmt: skip
    if code == _FOREIGN:
        _forget()
        return _ordered(first, second, words, words2, tasks, counts, ends, chains)
    if code == _BUSY:
        return False
    if code:
        first.fail(code)
    return True


def _packed(executable: Executable, words: Sequence[int]) -> bytes:
    try:
        return executable.words(*words)
    except struct.error:
        return executable.words(*checked_words(executable, words))


def _sequential(executable: Executable, words: Sequence[int], bounds: Sequence[int]) -> int:
    stop = here()
    for lo, hi in pairwise(bounds):
        stop.check()
        executable.run(words, lo, hi)
    return 0


def _forget() -> None:
    """Reset the pool after a fork: its threads are gone, and one of them may have held the lock."""
    global _run, _lock
    _run, _lock = None, threading.Lock()


def _start() -> Callable[..., int] | None:
    """Start the threads; returns the function that runs a job on them, or None.

    Where nobody has said how many threads there are to be, each thread of Dask's workers in this process has its part
    of the processors: the pool's threads and theirs do not multiply.
    """
    global _run, threads
    if _is_default:
        threads = max(1, min(_cores() // _callers(), _LIMIT))
    native = _native() if threads > 1 else None
    if native is None:
        return None
    with _lock:
        start, run, *_ = native
        spins = _SPINS if threads <= _cores() else 0
        _run = run if start(threads - 1, spins) > 0 else None
        return _run


@cache
def _native() -> tuple[Callable[..., int], ...] | None:
    """The pool's functions: start, run, run in order, run with words for each task; None without a pool."""
    if os.name != "posix" or settings.is_off("OPENWORK_POOL"):
        return None
    try:
        code = disk.read(_NAME)
        if code is None:
            code = disk.Entry("ow_pool_run", (), engine.to_object(_text()))
            disk.write(_NAME, code)
        names = ("ow_pool_start", "ow_pool_run", "ow_pool_ordered", "ow_pool_apart")
        _code.append(engine.load(code.code, *names))
    except OSError:
        return None
    start, run, ordered, apart = _code[-1].addresses
    return _START(start), _RUN(run), _ORDERED(ordered), _APART(apart)


def _text() -> str:
    """The text of `pool.ll` for this system."""
    text = resources.files(__package__).joinpath("pool.ll").read_text(encoding="utf-8")
    machine = os.uname().machine
    arm = machine in ("arm64", "aarch64")
    pause = "call void @llvm.aarch64.hint(i32 1)" if arm else "call void @llvm.x86.sse2.pause()"
    other = "declare void @llvm.x86.sse2.pause()" if arm else "declare void @llvm.aarch64.hint(i32)"
    block, setmask = ("1", "3") if sys.platform == "darwin" else ("0", "2")
    for name, value in ((other, ""), ("{PAUSE}", pause), ("{BLOCK}", block), ("{SETMASK}", setmask)):
        text = text.replace(name, value)
    return text


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

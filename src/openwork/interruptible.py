"""A long native call -> its result, while the main thread answers signals.

Python runs signal handlers on the main thread only, and not while that is inside native code. So a call that may take
long, made on the main thread, is run by a helper thread, and the main thread waits for it on a lock, which a signal
ends: a handler that raises, as the one of Ctrl-C does, raises here at once. Other threads make such calls themselves.

    call(function, *args)            # on the main thread: on a helper, interruptible; else function(*args)

What is interrupted cannot be stopped inside a kernel. It is told to begin no further range (`stopped`), gets a short
while to end, and is then left behind: the frames of all callers are kept until it has ended, and with them every buffer
that it reads or writes. Results that are lost that way nobody has seen; only of an array that the caller gave for the
result (in place, `out=`) the ranges that had begun are still written.

An operation that is many calls of NumPy is handed over as a whole (`whole`): it must change nothing that anybody else
holds, and ends at its next kernel. It runs in the caller's context, under its `np.errstate`.

Handing over costs some 20 microseconds, which is why it is left out for work that is known to be short.
"""

from __future__ import annotations

import os
import sys
import threading
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from . import tuning

__all__ = ["LONG", "Left", "Stop", "add_at", "call", "here", "repeat", "whole"]

T = TypeVar("T")
LONG = tuning.INTERRUPTIBLE_WORK
BLOCK = tuning.LOCKED_BLOCK
GRACE = 0.2
"""Seconds that interrupted work gets to end."""
GLANCE = 0.05
"""Seconds after which the waiting main thread looks for signals by itself: one that another thread has received, or
that came just before it began to wait, does not wake it."""


class Left(BaseException):
    """Ends a job that an interrupt has left behind; nobody sees it."""


class Stop:
    """Whether a job is to begin no further ranges."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = False

    def check(self) -> None:
        """Raises Left where the job is to end."""
        if self.now:
            raise Left


class _Job:
    """A call, what came of it, and what must live until it has ended."""

    __slots__ = ("args", "done", "error", "function", "kept", "result", "stop")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = allocate_lock()
        self.done.acquire()
        self.stop = Stop()
        self.kept = _frames()


class _Helper:
    """A thread that runs one job at a time."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        start_new_thread(self._serve, ())

    def _serve(self) -> None:
        while (job := self.jobs.get()) is not None:
            _local.stop = job.stop
            try:
                job.result = job.function(*job.args)
            except BaseException as error:
                job.error = error
            _local.stop = _NEVER
            job.kept.clear()
            job.done.release()
            del job


class _Local(threading.local):
    """Of each thread: the Stop of the job that it runs."""

    stop: Stop


_NEVER = Stop()
_Local.stop = _NEVER
_local = _Local()
_main = threading.main_thread().ident
_idle: list[_Helper] = []


def here() -> Stop:
    """What tells the job that this thread runs to begin no further ranges."""
    return _local.stop


def call(function: Callable[..., T], *args: Any) -> T:
    """The result of `function(*args)`, which should be one native call or few; on the main thread a signal ends it."""
    if get_ident() != _main:
        _local.stop.check()
        return function(*args)
    helper = _helper()
    if helper is None:
        return function(*args)
    job = _Job(function, args)
    try:
        helper.jobs.put(job)
        while not job.done.acquire(timeout=GLANCE):
            pass
    except BaseException:
        _leave(job, helper)
        raise
    _idle.append(helper)
    if job.error is not None:
        try:
            raise job.error
        finally:
            del job
    result: T = job.result
    return result


def whole(function: Callable[..., T], args: tuple[Any, ...], named: Mapping[str, Any]) -> T:
    """`function(*args, **named)`, an operation without side effects; on the main thread a signal ends it."""
    if get_ident() != _main:
        _local.stop.check()
        return function(*args, **named)
    found: T = call(copy_context().run, _under, np.geterr(), np.geterrcall(), partial(function, *args, **named))
    return found


def repeat(x: Any, counts: Any) -> Any:
    """NumPy's `repeat(x, counts)` of vectors, in blocks: it holds the interpreter's lock, and signals wait for that."""
    counts = np.asarray(counts)
    ends = np.cumsum(counts)
    if not len(ends) or ends[-1] <= BLOCK:
        return np.repeat(x, counts)
    out = np.empty(ends[-1], x.dtype)
    cuts = [0, *np.unique(np.searchsorted(ends, np.arange(BLOCK, ends[-1], BLOCK))).tolist(), len(ends)]
    for first, last in pairwise(cuts):
        if first < last:
            begin = ends[first] - counts[first]
            out[begin : ends[last - 1]] = np.repeat(x[first:last], counts[first:last])
    return out


def add_at(out: Any, places: Any, values: Any) -> None:
    """NumPy's `add.at(out, places, values)` of vectors, in blocks for the same reason."""
    for first in range(0, len(places), BLOCK):
        np.add.at(out, places[first : first + BLOCK], values[first : first + BLOCK])


def _under(asked: Any, handler: Any, function: Callable[[], T]) -> T:
    """`function()` under the caller's `np.errstate`, which before NumPy 2 is the thread's and not the context's."""
    with np.errstate(call=handler, **asked):
        return function()


def _helper() -> _Helper | None:
    """A helper that nobody else has; None where no thread can be had."""
    try:
        return _idle.pop()
    except IndexError:
        pass
    try:
        return _Helper()
    except RuntimeError:
        return None


def _leave(job: _Job, helper: _Helper) -> None:
    """Stop a job that was interrupted, or leave it to its helper with all that it needs."""
    job.stop.now = True
    helper.jobs.put(None)
    job.done.acquire(timeout=GRACE)


def _frames() -> list[FrameType]:
    """Of this call and all its callers: they hold what the job works on, also once they have been left."""
    found = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _after_fork() -> None:
    """The child has one thread, which is its main one."""
    global _main, _local
    _main, _local = get_ident(), _Local()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

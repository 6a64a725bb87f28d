"""Seconds that a call spends compiling -> one line on stderr, once in a process, where somebody waits for it.

Somebody waits at a terminal or a notebook: nothing is said in tests, in workers, in programs whose errors go to a file,
and where `OPENWORK_NOTICE=0` or `set_compile_notice(None)` says so.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .. import settings
from ..classes import define
from ..reals import real
from . import disk

__all__ = ["compiled", "get_compile_notice", "set_compile_notice", "silent"]

SECONDS = 0.3
PAUSE = 0.1
"""Seconds without a compilation, after which another call has begun."""


@define
class _Wait:
    """What the present call has compiled, and whether the line was printed."""

    after: float | None = None if settings.is_off("OPENWORK_NOTICE") else SECONDS
    seconds: float = 0.0
    kernels: int = 0
    ended: float = 0.0
    said: bool = False


_wait = _Wait()


def get_compile_notice() -> float | None:
    """How many seconds a call compiles before a line says so; None for never.

    Returns
    -------
    float, the seconds, or None

    Cost: O(1).
    See also: set_compile_notice.

    Examples
    --------
    >>> ow.get_compile_notice() is None or ow.get_compile_notice() >= 0
    True
    """
    return _wait.after


def set_compile_notice(seconds: float | None) -> None:
    """Say once, on stderr, that a call is compiling, when it has for this many seconds (0.3 unless set); None: never.

    Nothing is said where stderr is neither a terminal nor a notebook's, in tests and in worker processes.
    `OPENWORK_NOTICE=0` in the environment is `set_compile_notice(None)`.

    Parameters
    ----------
    seconds : how long a call compiles before it is said; None for never

    Raises DTypeError where seconds is no number, ValueError for a negative one.

    Cost: O(1).
    See also: get_compile_notice.

    Examples
    --------
    >>> before = ow.get_compile_notice()
    >>> ow.set_compile_notice(None)
    >>> ow.set_compile_notice(before)
    """
    if seconds is not None:
        seconds = real(seconds, "set_compile_notice", "seconds", boolean=False)
        if not seconds >= 0:
            raise ValueError(f"set_compile_notice: expected 0 seconds or more, or None, got {seconds}")
    _wait.after, _wait.seconds, _wait.said = seconds, 0.0, False


def compiled(begun: float) -> None:
    """Note a compilation that began at `begun` (of `time.perf_counter`) and ends now."""
    if _wait.after is None or _wait.said:
        return
    now = time.perf_counter()
    if begun - _wait.ended > PAUSE:
        _wait.seconds, _wait.kernels = 0.0, 0
    _wait.seconds, _wait.kernels, _wait.ended = _wait.seconds + now - begun, _wait.kernels + 1, now
    if _wait.seconds <= _wait.after or not _somebody_waits():
        return
    _wait.said = True
    with suppress(OSError, ValueError):
        print(_text(_wait.kernels, _wait.seconds), file=sys.stderr, flush=True)


def _text(kernels: int, seconds: float) -> str:
    where = disk.folder()
    kept = "They are kept in memory only" if where is None else f"They are kept in {where}, and compiled once"
    return (
        f"openwork: compiled the loops of new operations ({kernels} in {seconds:.1f} s; more may follow). {kept}."
        " To silence this: ow.set_compile_notice(None), or OPENWORK_NOTICE=0."
    )


def _somebody_waits() -> bool:
    """Whether stderr is a terminal's or a notebook's, of the process that somebody started."""
    if "PYTEST_CURRENT_TEST" in os.environ:
        return False
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        return False
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False


@contextmanager
def silent() -> Iterator[None]:
    """Say nothing meanwhile: for commands that show how far they are themselves."""
    before, _wait.after = _wait.after, None
    try:
        yield
    finally:
        _wait.after = before

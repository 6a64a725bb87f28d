"""A long job -> bars on stderr by rich for `progress=True`, or calls of a function of (done, total).

    with reporting(progress, "convert") as passes:
        step = passes.begin("reading")             # None where nobody asked
        ...
            step(done, total)

Each pass has a bar of its own, and the last state of each is drawn. Where stderr is no terminal, one line for each
pass is written when the job ends. Bars are drawn when there is something new, by no thread of their own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeAlias

from .errors import DTypeError

__all__ = ["Passes", "Progress", "Step", "at_terminal", "check_progress", "ignore", "reporting"]

Progress: TypeAlias = "bool | Callable[[int, int | None], object] | Passes | None"
"""True for bars on stderr, or a function of (done, total) of each pass, total None where it is not known; or the passes
of a longer job, which stay open."""
Step: TypeAlias = Callable[..., object]
"""Called as step(done, total=None, detail=None). A detail is text, which is drawn at once, or a function that gives it,
which is called when the bar is drawn."""
Detail: TypeAlias = str | Callable[[], str] | None

PAUSE = 0.1
"""Seconds between two states that are drawn."""
SHARE = 9
"""What a detail costs, in time, is at most one part in 1 + SHARE: the next one waits so much longer."""
COUNTED = 10_000
"""Totals from here on are shown in percent."""


def ignore(done: int, total: int | None = None, detail: Detail = None) -> None:
    """The step of a pass of which nobody is told."""


class Passes:
    """The passes of a job of which nobody wants to know."""

    def begin(self, name: str, unit: str = "", at_most: bool = False) -> Step | None:
        """The function to call after each step of a pass, which ends the pass before; None where nobody is told.

        name : of the pass
        unit : what the steps are, "iterations" say
        at_most : whether the total is a limit, which the job need not reach
        """
        return None

    def close(self, is_whole: bool) -> None:
        """Show the last state; `is_whole` where the job came to its end."""


class _Told(Passes):
    """Passes that a function is told of."""

    def __init__(self, function: Callable[[int, int | None], object]) -> None:
        self.function = function

    def begin(self, name: str, unit: str = "", at_most: bool = False) -> Step | None:
        return lambda done, total=None, detail=None: self.function(done, total)


class _Bars(Passes):
    """Passes with a bar each, by rich."""

    def __init__(self, is_wiped: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        # A notebook draws by ipywidgets; without them it is shown the last states.
        plain = {} if find_spec("ipywidgets") else {"force_jupyter": False}
        console = Console(stderr=True, highlight=False, **plain)
        columns = (
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=16),
            TextColumn("{task.fields[state]}", markup=False),
        )  # fmt: skip
        self.view = Progress(*columns, console=console, auto_refresh=False, transient=is_wiped)
        self.last: _Bar | None = None

    def begin(self, name: str, unit: str = "", at_most: bool = False) -> Step | None:
        if self.last is None:
            self.view.start()
        else:
            self.last.end()
        self.last = _Bar(self.view, name, unit, at_most)
        return self.last

    def close(self, is_whole: bool) -> None:
        if self.last is not None:
            if is_whole:
                self.last.end()
            else:
                self.last.draw(None)
            self.view.stop()


class _Bar:
    """One pass: its last state, of which what is new is drawn now and then."""

    def __init__(self, view: Any, name: str, unit: str, at_most: bool) -> None:
        self.view, self.unit, self.at_most = view, unit, at_most
        self.done: int | None = None
        self.total: int | None = None
        self.detail: Detail = None
        self.begun, self.next = time.monotonic(), 0.0
        self.task = view.add_task(name, total=None, state="")
        view.refresh()

    def __call__(self, done: int, total: int | None = None, detail: Detail = None) -> None:
        self.done, self.total, self.detail = done, total, detail
        now = time.monotonic()
        if now >= self.next or isinstance(detail, str):
            self.draw(detail)
            spent = time.monotonic() - now
            self.next = now + spent + max(PAUSE, SHARE * spent)

    def draw(self, detail: Detail, is_over: bool = False) -> None:
        """Draw the state, with the time that it took, and the time that is left."""
        seconds = time.monotonic() - self.begun
        parts = [self.count(), clock(seconds)]
        if not is_over and not self.at_most:
            parts.append(time_left(seconds, self.done or 0, self.total))
        parts.append(detail() if callable(detail) else detail or "")
        total = max(self.done or 0, 1) if is_over else self.total
        done = total if is_over else self.done or 0
        state = "  ".join(part for part in parts if part)
        self.view.update(self.task, completed=done, total=total, state=state, refresh=True)

    def end(self) -> None:
        """Draw the state at the end of the pass."""
        self.draw(self.detail, is_over=True)

    def count(self) -> str:
        """The steps that are done, and how many there are."""
        if self.done is None:
            return ""
        if self.total is not None and self.total >= COUNTED and not self.at_most:
            return f"{100 * self.done // self.total}%"
        of = "" if self.total is None else f" of {'at most ' * self.at_most}{self.total:,}"
        return f"{self.done:,}{of} {self.unit}".rstrip()


def clock(seconds: float) -> str:
    """`clock(3.21) == "3.2 s"`, `clock(75) == "1:15"`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def time_left(seconds: float, done: int, total: int | None) -> str:
    """The time of the steps that are left, if each takes as long as those before; nothing before two are done."""
    if done < 2 or total is None or total <= done:
        return ""
    return f"{clock(seconds / done * (total - done))} left"


def check_progress(progress: object, operation: str) -> None:
    """Raise DTypeError for what is neither True nor False nor a function."""
    if not (progress is None or isinstance(progress, bool | Passes) or callable(progress)):
        raise DTypeError(
            f"{operation}: progress must be True or a function of (done, total); got {progress!r}"
            "\n  help: progress=True draws bars on stderr"
        )


@contextmanager
def reporting(progress: Progress, operation: str, *, is_wiped: bool = False) -> Iterator[Passes]:
    """Give what passes begin at, for a caller's `progress`; bars that are wiped leave nothing at a terminal."""
    check_progress(progress, operation)
    if isinstance(progress, Passes):
        yield progress
        return
    passes = _Bars(is_wiped) if progress is True else _Told(progress) if callable(progress) else Passes()
    is_whole = False
    try:
        yield passes
        is_whole = True
    finally:
        passes.close(is_whole)


def at_terminal() -> Any:
    """What passes of a command begin at: shown where stderr is a terminal, and wiped when the command is done."""
    return reporting(sys.stderr is not None and sys.stderr.isatty(), "openwork", is_wiped=True)

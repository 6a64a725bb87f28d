"""A solver's iterations -> calls of the caller's progress function, or a progress bar on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import DTypeError

__all__ = ["Step", "report_progress"]

Step = Callable[[int, Callable[[], float] | None], None]
"""Called with the number of iterations, and what gives the residual's norm where the method can tell it."""

REFRESH_SECONDS = 0.2
"""Seconds between two updates of a bar: a residual may take a product."""


def _ignore(done: int, residual: Callable[[], float] | None) -> None:
    """Show nothing."""


@contextmanager
def report_progress(progress: Any, label: str, limit: int) -> Iterator[Step]:
    """Give the function that is called after each iteration.

    progress : None or False; a function of (iterations, limit); or True for a bar, by rich where it is installed
    """
    if progress is None or progress is False:
        yield _ignore
    elif callable(progress):
        yield lambda done, _: progress(done, limit)
    elif progress is not True:
        raise DTypeError(
            f"{label}: progress is True or a function of (iterations, limit); got: {type(progress).__name__}"
        )
    else:
        with _bar(label, limit) as show:
            shown = 0.0

            def step(done: int, residual: Callable[[], float] | None) -> None:
                nonlocal shown
                if time.monotonic() - shown >= REFRESH_SECONDS:
                    show(done, f"{label}: residual {residual():.1e}" if residual else label)
                    shown = time.monotonic()

            yield step


@contextmanager
def _bar(label: str, limit: int) -> Iterator[Callable[[int, str], None]]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield lambda done, text: print(f"\r{text} {done}/{limit}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as view:
        task = view.add_task(label, total=limit)
        yield lambda done, text: view.update(task, description=text, completed=done, refresh=True)

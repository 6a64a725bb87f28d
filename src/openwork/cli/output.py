"""Text for the terminal: tables, bars, sizes, times, progress. rich where it is installed and helps, else plain."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from openwork.advice.units import bytes_text, time_text

__all__ = [
    "bars", "bytes_text", "count_text", "counter", "heading", "percent", "progress", "ratio_text", "table",
    "table_text", "time_left", "time_text",
]  # fmt: skip

SHOW_AFTER = 2.0


def ratio_text(ratio: float | None) -> str:
    """How many times as long the other one takes; below 1, ours is slower."""
    return "-" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def count_text(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def rich_console(stderr: bool = False) -> Any:
    """A rich Console where rich is installed and the stream is a terminal, else None."""
    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=stderr)


def heading(text: str) -> None:
    console = rich_console()
    if console is None:
        print(f"\n{text}\n{'-' * len(text)}")
    else:
        console.print(f"\n{text}", style="bold", markup=False, highlight=False)


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A table as text; the columns in `left` are flush left, the others right."""
    widths = [max(len(row[c]) for row in (columns, *rows)) for c in range(len(columns))]
    lines = [columns, ["-" * w for w in widths], *rows]
    aligned = (
        [t.ljust(w) if c in left else t.rjust(w) for c, (t, w) in enumerate(zip(r, widths, strict=True))] for r in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    console = rich_console()
    if console is None:
        print(table_text(columns, rows, left))
        return
    from rich.table import Table
    from rich.text import Text

    view = Table(box=None, pad_edge=False, header_style="bold")
    for c, name in enumerate(columns):
        view.add_column(name, justify="left" if c in left else "right", overflow="fold")
    for row in rows:
        view.add_row(*(Text(cell) for cell in row))
    console.print(view)


def bars(labels: Sequence[str], counts: Sequence[int], width: int = 40) -> str:
    """A histogram as text; any count above zero gets a mark."""
    if not counts:
        return ""
    top, wide = max(max(counts), 1), max(map(len, labels))
    lines = []
    for label, count in zip(labels, counts, strict=True):
        length = max(1, round(width * count / top)) if count else 0
        lines.append(f"{label:>{wide}} | {'#' * length:<{width}} {count_text(count)}")
    return "\n".join(lines)


Show = Callable[[int, int, str], None]
"""Called with the steps that are done, their number and what comes next."""


@contextmanager
def counter(label: str) -> Iterator[Show]:
    """Show how far a job is, and the time that is left: call the result as each step begins.

    Nothing is shown where stderr is no terminal; without rich, nothing before two seconds have gone by. What was shown
    is wiped when the job ends, however it ends.
    """
    console = rich_console(stderr=True)
    if console is None:
        try:
            yield plain_counter(label)
        finally:
            if sys.stderr.isatty():
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )  # fmt: skip
    # Drawn at each step only: a thread that redraws would disturb what is being timed.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as view:
        task = view.add_task(label, total=None, left="")
        begun = time.monotonic()

        def show(done: int, total: int, name: str) -> None:
            left = time_left(time.monotonic() - begun, done, total)
            view.update(task, description=f"{label}: {name}", completed=done, total=total, left=left, refresh=True)

        yield show


def percent(show: Show, *passes: str) -> Callable[[int, int], None]:
    """A function of (done, total) that shows how much is done, in percent, by the name of the pass; another total is
    another pass, the last name's from then on."""
    totals: list[int] = []
    shown = (0, -1)

    def told(done: int, total: int) -> None:
        nonlocal shown
        if total not in totals[-1:]:
            totals.append(total)
        now = len(totals), 100 * done // max(total, 1)
        if now != shown:
            shown = now
            show(now[1], 100, f"{passes[min(now[0], len(passes)) - 1]}, percent")

    return told


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how far a job of `total` steps is: call the result with the name of each step as it begins."""
    done = -1
    with counter(label) as show:

        def step(name: str) -> None:
            nonlocal done
            done += 1
            show(done, total, name)

        yield step


def time_left(seconds: float, done: int, total: int) -> str:
    """The time of the steps that are left, if each takes as long as those before; nothing before two are done."""
    if done < 2 or total <= done:
        return ""
    left = round(seconds / done * (total - done))
    return f"{left // 60}:{left % 60:02d} left"


def plain_counter(label: str) -> Show:
    begun = time.monotonic()

    def show(done: int, total: int, name: str) -> None:
        seconds = time.monotonic() - begun
        if sys.stderr.isatty() and seconds > SHOW_AFTER:
            text = f"{label}: {name} {done}/{total} {time_left(seconds, done, total)}".rstrip()
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    return show

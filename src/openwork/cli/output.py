"""Text for the terminal: headings, tables, bars of counts, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any

from openwork.advice.table import WIDTH, table_text
from openwork.advice.units import bytes_text, count_text, percent_text, shape_text, time_text
from openwork.progress import at_terminal, ignore

__all__ = [
    "bars", "bold", "bytes_text", "count_text", "heading", "json_text", "percent_text", "progress", "ratio_text",
    "shape_text", "table", "table_text", "time_text",
]  # fmt: skip


def ratio_text(ratio: float | None) -> str:
    """How many times as long the other one takes; below 1, ours is slower."""
    return "-" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def bold(text: str) -> str:
    """The text, in bold letters at a terminal."""
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text


def heading(text: str) -> None:
    """Print a line above what follows."""
    print(f"\n{bold(text)}" if sys.stdout.isatty() else f"\n{text}\n{'-' * len(text)}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print a table, as wide as a terminal, and as a page at most."""
    at_terminal = sys.stdout.isatty()
    width = min(WIDTH, get_terminal_size().columns) if at_terminal else WIDTH
    head, *body = table_text(columns, rows, left, width, line=not at_terminal).splitlines()
    print("\n".join([bold(head), *body]))


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


def json_text(value: Any) -> str:
    """A value as JSON, for programs that read what a command prints."""
    return json.dumps(value, indent=2, default=str)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how far a job of `total` steps is: call the result with the name of each step as it begins."""
    done = -1
    with at_terminal() as passes:
        told = passes.begin(label, "steps") or ignore

        def step(name: str) -> None:
            nonlocal done
            done += 1
            told(done, total, name)

        yield step

"""Text for the terminal: headings, tables, bars of counts, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from openwork.advice.units import bytes_text, count_text, percent_text, time_text
from openwork.progress import at_terminal, ignore

__all__ = [
    "bars", "bytes_text", "count_text", "heading", "percent_text", "progress", "ratio_text", "table", "table_text",
    "time_text",
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


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A table as text; the columns in `left` are flush left, the others right."""
    widths = [max(len(row[c]) for row in (columns, *rows)) for c in range(len(columns))]
    lines = [columns, ["-" * w for w in widths], *rows]
    aligned = (
        [t.ljust(w) if c in left else t.rjust(w) for c, (t, w) in enumerate(zip(r, widths, strict=True))] for r in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print a table."""
    head, line, *body = table_text(columns, rows, left).splitlines()
    print("\n".join([bold(head), *body] if sys.stdout.isatty() else [head, line, *body]))


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

"""Rows of short texts -> a table as text, at most as wide as a page; the last column wraps."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

__all__ = ["WIDTH", "table_text"]

WIDTH = 100
"""Columns of a table at most."""
_LEAST = 24
"""Columns that text which wraps has at least."""


def table_text(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,), width: int = WIDTH,
    line: bool = True,
) -> str:  # fmt: skip
    """A table as text.

    left : the columns that are flush left, the others are flush right; the last one, where it is among these, wraps
    width : columns of the whole
    line : whether a line stands under the head
    """
    count = len(columns)
    wide = [max(len(row[c]) for row in (columns, *rows)) for c in range(count)]
    if count - 1 in left:
        before = sum(wide[:-1]) + 2 * (count - 1)
        wide[-1] = min(wide[-1], max(width - before, _LEAST))
    lines = [columns, *([["-" * w for w in wide]] if line else []), *rows]
    out = []
    for row in lines:
        *cells, last = row
        first, *more = wrap(last, wide[-1], break_long_words=False) or [""]
        padded = enumerate(zip([*cells, first], wide, strict=True))
        parts = [text.ljust(w) if c in left else text.rjust(w) for c, (text, w) in padded]
        out.append("  ".join(parts).rstrip())
        indent = " " * (sum(wide[:-1]) + 2 * (count - 1))
        out += [indent + text for text in more]
    return "\n".join(out)

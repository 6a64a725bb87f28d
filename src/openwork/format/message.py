"""A fault in a format's text -> the error message: what is wrong, a caret, expected and got, a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from openwork.errors import FormatError

__all__ = ["Place", "Problem", "Spans", "counted", "excerpt", "refusal"]

Place: TypeAlias = tuple[str, int]
"""A part of a format's text: ("dim", d), ("expression", l), ("format", l), ("properties", l),
("nonunique", l) or ("unordered", l)."""

Spans: TypeAlias = dict[Place, int]
"""The offset in a text where each part begins."""

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a format. `detail` holds "expected ...; got ..."."""

    place: Place
    what: str
    detail: str
    help: str


def refusal(what: str, text: str, offset: int, detail: str, help: str) -> FormatError:
    """The error for an invalid text; long texts are shown around the caret only."""
    excerpt_shown, column = window(text, offset)
    return FormatError(
        f"format: {clip(what)}\n  {excerpt_shown}\n  {' ' * column}^\n  {clip(detail)}\n  help: {clip(help)}"
    )


def clip(line: str) -> str:
    """One printable line of limited length, with its end, where the message says what was got."""
    line = "".join(c if c.isprintable() else " " for c in line)
    return line if len(line) <= 2 * WIDTH else f"{line[:WIDTH]}...{line[-WIDTH:]}"


def window(text: str, offset: int) -> tuple[str, int]:
    """At most WIDTH characters of text on one line, and the caret's column in them."""
    line = "".join(c if c.isprintable() else " " for c in text[max(0, offset - WIDTH) : offset + WIDTH])
    column = min(offset, WIDTH)
    if len(text) <= WIDTH:
        return line, column
    start = max(0, column - WIDTH // 2)
    ellipsis = "..." if start or offset > WIDTH else ""
    part = line[start : start + WIDTH - 6]
    right = "..." if max(0, offset - WIDTH) + start + len(part) < len(text) else ""
    return ellipsis + part + right, column - start + len(ellipsis)


def counted(arguments: int) -> str:
    """`no arguments`, `1 argument`, `2 arguments`."""
    return f"{arguments or 'no'} argument{'s' * (arguments != 1)}"


def excerpt(value: object) -> str:
    """A short repr of anything."""
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__

"""A fault in a format's text -> the words of the refusal: what is wrong, a caret, expected and got, a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from openwork.errors import FormatError

__all__ = ["Place", "Problem", "Spans", "counted", "excerpt", "refusal"]

Place: TypeAlias = tuple[str, int]
"""A part of a format's text: ("dim", d), ("expression", l), ("format", l), ("properties", l),
("nonunique", l) or ("unordered", l)."""

Spans: TypeAlias = dict[Place, int]
"""Where in a text each part begins."""

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cannot be accepted. `detail` holds "expected ...; got ..."."""

    place: Place
    what: str
    detail: str
    help: str


def refusal(what: str, text: str, offset: int, detail: str, help: str) -> FormatError:
    """The error for a text that cannot be accepted; long texts are shown around the caret only."""
    shown, column = window(text, offset)
    return FormatError(f"format: {clip(what)}\n  {shown}\n  {' ' * column}^\n  {clip(detail)}\n  help: {clip(help)}")


def clip(line: str) -> str:
    """One printable line that is not too long, its end kept: what was got stands there."""
    line = "".join(c if c.isprintable() else " " for c in line)
    return line if len(line) <= 2 * WIDTH else f"{line[:WIDTH]}...{line[-WIDTH:]}"


def window(text: str, offset: int) -> tuple[str, int]:
    """At most WIDTH characters of text on one line, and the caret's column in them."""
    line = "".join(c if c.isprintable() else " " for c in text[max(0, offset - WIDTH) : offset + WIDTH])
    column = min(offset, WIDTH)
    if len(text) <= WIDTH:
        return line, column
    start = max(0, column - WIDTH // 2)
    left = "..." if start or offset > WIDTH else ""
    shown = line[start : start + WIDTH - 6]
    right = "..." if max(0, offset - WIDTH) + start + len(shown) < len(text) else ""
    return left + shown + right, column - start + len(left)


def counted(arguments: int) -> str:
    """`no arguments`, `1 argument`, `2 arguments`."""
    return f"{arguments or 'no'} argument{'s' * (arguments != 1)}"


def excerpt(value: object) -> str:
    """A short repr of anything."""
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__

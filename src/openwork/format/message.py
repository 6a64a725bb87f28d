"""A fault in a format's text -> the error message: what is wrong, a caret, expected and got, a remedy."""

from __future__ import annotations

from typing import TypeAlias

from openwork.errors import FormatError, clip, marked

from ..classes import frozen

__all__ = ["Place", "Problem", "Spans", "counted", "excerpt", "refusal"]

Place: TypeAlias = tuple[str, int]
"""A part of a format's text: ("dim", d), ("expression", l), ("format", l), ("properties", l),
("nonunique", l) or ("unordered", l)."""

Spans: TypeAlias = dict[Place, int]
"""The offset in a text where each part begins."""


@frozen
class Problem:
    """A fault of a format. `detail` holds "expected ...; got ..."."""

    place: Place
    what: str
    detail: str
    help: str


def refusal(what: str, text: str, offset: int, detail: str, help: str) -> FormatError:
    """The error for an invalid text; long texts are shown around the caret only."""
    return FormatError(f"format: {clip(what)}\n{marked(text, offset)}\n  {clip(detail)}\n  help: {clip(help)}")


def counted(arguments: int) -> str:
    """`no arguments`, `1 argument`, `2 arguments`."""
    return f"{arguments or 'no'} argument{'s' * (arguments != 1)}"


def excerpt(value: object) -> str:
    """A short repr of anything."""
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__

"""A format as text, in the language that it is parsed from, and where in the text each part stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openwork.format.expression import dimensions, render
from openwork.format.message import Spans

if TYPE_CHECKING:
    from openwork.format.format import Level

__all__ = ["show", "show_with_spans"]


def show(dims: Sequence[str], levels: Sequence[Level]) -> str:
    """`(dims) -> (levels)`, the normal form of a format's text."""
    right = ", ".join(f"{render(level.expression, dims)} : {level.format}" for level in levels)
    return f"({', '.join(dims)}) -> ({right})"


def show_with_spans(dims: Sequence[str], levels: Sequence[Level]) -> tuple[str, Spans]:
    """The same text, and where each dimension, level expression, level format and property list begins."""
    used = max((d for level in levels for d in dimensions(level.expression)), default=-1)
    names = [*map(str, dims), *(f"<dimension {d}>" for d in range(len(dims), used + 1))]
    spans: Spans = {}
    text = "("
    for d, name in enumerate(dims):
        text += ", " if d else ""
        spans["dim", d] = len(text)
        text += str(name)
    text += ") -> "
    text += "("
    for at, level in enumerate(levels):
        text += ", " if at else ""
        spans["expression", at] = len(text)
        text += render(level.expression, names) + " : "
        spans["format", at] = len(text)
        kind = str(level.format)
        spans["properties", at] = len(text) + kind.find("(") + 1
        for given in ("nonunique", "unordered"):
            spans[given, at] = len(text) + max(0, kind.find(given))
        text += kind
    return text + ")", spans

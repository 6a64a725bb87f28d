"""A format -> its text, in the language that it is parsed from, and the offset of each part in it."""

from __future__ import annotations

from collections.abc import Sequence

from openwork.format.expression import dimensions, render
from openwork.format.level import Level, LevelFormat
from openwork.format.message import Spans

__all__ = ["encoded", "repeats", "show", "show_with_spans"]


def show(dims: Sequence[str], levels: Sequence[Level]) -> str:
    """`(dims) -> (levels)`, the normal form of a format's text."""
    kinds = _kinds(levels)
    right = ", ".join(f"{render(level.expression, dims)} : {kind}" for level, kind in zip(levels, kinds, strict=True))
    return f"({', '.join(dims)}) -> ({right})"


def encoded(map: str, explicit: bool | float | complex) -> str:
    """The encoding of MLIR's of a format whose stored elements all are one value."""
    number = str(explicit).lower() if isinstance(explicit, bool) else repr(explicit)
    if isinstance(explicit, complex):
        number = f"({explicit.real!r}, {explicit.imag!r})"
    return f"#sparse_tensor.encoding<{{ map = {map}, explicitVal = {number} }}>"


def repeats(levels: Sequence[Level], at: int) -> bool:
    """Whether the text `singleton` alone means a nonunique one: between a nonunique level and another singleton."""
    if not 0 < at < len(levels) - 1 or levels[at - 1].format.unique:
        return False
    return levels[at].format.is_singleton and levels[at + 1].format.is_singleton


def _kinds(levels: Sequence[Level]) -> list[str]:
    """The text of each level format, with `unique` where the bare name would mean nonunique."""
    texts = [str(level.format) for level in levels]
    for at, level in enumerate(levels):
        kind = level.format
        if all(isinstance(x.format, LevelFormat) for x in levels) and kind.unique and repeats(levels, at):
            texts[at] = f"{kind.name}({', '.join([*map(str, kind.arguments), 'unique', *kind.properties])})"
    return texts


def show_with_spans(dims: Sequence[str], levels: Sequence[Level]) -> tuple[str, Spans]:
    """The same text, and the offset of each dimension, level expression, level format and property list."""
    used = max((d for level in levels for d in dimensions(level.expression)), default=-1)
    names = [*map(str, dims), *(f"<dimension {d}>" for d in range(len(dims), used + 1))]
    spans: Spans = {}
    text, kinds = "(", _kinds(levels)
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
        kind = kinds[at]
        spans["properties", at] = len(text) + kind.find("(") + 1
        for property_name in ("nonunique", "unordered"):
            spans[property_name, at] = len(text) + max(0, kind.find(property_name))
        text += kind
    return text + ")", spans

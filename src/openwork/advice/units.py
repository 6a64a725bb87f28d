"""Counts, shares, bytes and seconds -> short text for people: `4,054`, `0.31%`, `2.5 MB`, `32.0 us`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from ..integers import integer

__all__ = ["Size", "bytes_of", "bytes_text", "count_text", "percent_text", "shape_text", "time_text"]

Size: TypeAlias = int | str
"""A number of bytes: 2 << 30, or "2GiB"."""
_POWERS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}


def count_text(count: int) -> str:
    """`count_text(4054) == "4,054"`."""
    return f"{count:,}"


def shape_text(shape: Iterable[int]) -> str:
    """`shape_text((1138, 20)) == "1,138 x 20"`."""
    return " x ".join(map(count_text, shape)) or "a scalar"


def percent_text(share: float) -> str:
    """`percent_text(0.00313) == "0.31%"`: two digits, more of what is whole."""
    percent = 100 * share
    return f"{percent:.0f}%" if percent >= 10 or percent == 0 else f"{percent:.2g}%"


def bytes_text(count: float) -> str:
    """`bytes_text(2_500_000) == "2.5 MB"`: powers of 1000, two or three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def bytes_of(size: object, operation: str, name: str) -> int:
    """`bytes_of("2GiB", "convert", "memory") == 2 << 30`: an integer, or text with a unit of 1000 (GB) or 1024 (GiB).

    Raises ValueError for what is no number of bytes from 1 up.
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)(i?)b?\s*", size.lower(), re.ASCII)
        count = 0
        if match is not None and (match[2] or not match[3]):
            unit = 1024 ** "kmgt".find(match[2]) * 1024 if match[3] else _POWERS[match[2]]
            count = int(float(match[1]) * unit)
    else:
        count = integer(size, operation, name, boolean=False)
    if count < 1:
        raise ValueError(f'{operation}: {name} is a number of bytes; got: {size!r}\n  help: write "2GiB" or 2 << 30')
    return count


def time_text(seconds: float | None) -> str:
    """`time_text(3.2e-5) == "32.0 us"`: three digits."""
    if seconds is None:
        return "-"
    factor, unit = (1e6, "us") if seconds < 1e-3 else (1e3, "ms") if seconds < 1 else (1, "s")
    number = factor * seconds
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f} {unit}"

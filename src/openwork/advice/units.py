"""Counts of bytes and seconds -> short text for people: `2.5 MB`, `32.0 us`."""

from __future__ import annotations

__all__ = ["bytes_text", "time_text"]


def bytes_text(count: float) -> str:
    """`bytes_text(2_500_000) == "2.5 MB"`: powers of 1000, two or three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def time_text(seconds: float | None) -> str:
    """`time_text(3.2e-5) == "32.0 us"`."""
    if seconds is None:
        return "-"
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.1f} {unit}"
    return f"{seconds:.2f} s"

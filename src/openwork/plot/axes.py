"""Axes or None -> axes of matplotlib to draw on."""

from __future__ import annotations

from typing import Any

from .. import UnsupportedError

__all__ = ["axes_of", "whole_numbers"]


def axes_of(name: str, ax: Any, size: tuple[float, float] | None = None) -> Any:
    """`ax`, or the axes of a new figure of pyplot, of a size in inches.

    Raises UnsupportedError where matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise UnsupportedError(f"plot.{name}: matplotlib is not installed\n  help: pip install matplotlib") from None
    return pyplot.subplots(figsize=size, layout="constrained" if size is None else None)[1]


def whole_numbers(axis: Any) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))

"""A matrix -> a picture of where its elements are, or of how many stand in each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, Tensor, asarray
from ..integers import integer
from ..storage.specified import Ints, coordinates
from .axes import axes_of, whole_numbers

__all__ = ["rows", "spy"]

MARKED = 100_000
"""Elements that are drawn one by one; more are counted in cells."""
CELLS = 500
"""Cells along the longer side of a picture of counts."""


def spy(t: Any, /, *, ax: Any = None, color: str = "tab:blue") -> Any:
    """Draw where the elements of a matrix are.

    Up to 100,000 stored elements are squares of one element's size; more are counted in at most 500 x 500 cells, whose
    color says how many there are, on a logarithmic scale. Explicit zeros are elements; a dense format shows what is
    not its fill value.

    Parameters
    ----------
    t : Tensor of two dimensions, or what `asarray` takes
    ax : axes of matplotlib; default those of a new figure
    color : of the squares

    Returns
    -------
    matplotlib.axes.Axes; the first dimension goes down, the second to the right

    Raises ShapeError for another number of dimensions, UnsupportedError where matplotlib is not installed.

    Cost: O(nse).
    See also: rows, levels.

    Examples
    --------
    >>> ow.plot.spy(ow.eye(10)).figure.savefig("spy.png")
    """
    t = _matrix("spy", t)
    ax = axes_of("spy", ax)
    i, j = _elements(t)
    m, n = t.shape
    if len(i) > MARKED:
        _draw_counts(ax, i, j, (m, n))
    else:
        points = min(ax.get_window_extent().width / max(n, 1), ax.get_window_extent().height / max(m, 1))
        size = max(1.0, points * 72 / ax.figure.dpi * 0.9)
        ax.plot(j, i, linestyle="none", marker="s", markersize=size, markeredgewidth=0, color=color)
    ax.set_xlim(-0.5, max(n, 1) - 0.5)
    ax.set_ylim(max(m, 1) - 0.5, -0.5)
    ax.set_aspect("equal" if 0.2 < (m + 1) / (n + 1) < 5 else "auto")
    ax.set_title(f"{_name(t)}, {m:,} x {n:,}, {len(i):,} elements")
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    whole_numbers(ax.xaxis)
    whole_numbers(ax.yaxis)
    return ax


def rows(t: Any, /, *, axis: int = 0, ax: Any = None, color: str = "tab:blue") -> Any:
    """Draw how many rows have how many elements: bars at 0, 1, 2-3, 4-7, ... up to the longest.

    Parameters
    ----------
    t : Tensor of two dimensions, or what `asarray` takes
    axis : 0 for rows, 1 for columns
    ax : axes of matplotlib; default those of a new figure
    color : of the bars

    Returns
    -------
    matplotlib.axes.Axes, those that were drawn on

    Raises ShapeError for another number of dimensions or another axis, UnsupportedError where matplotlib is not
    installed.

    Cost: O(nse).
    See also: spy, levels.

    Examples
    --------
    >>> axes = ow.plot.rows(ow.eye(3))
    >>> axes.get_xlabel() != ""
    True
    """
    t = _matrix("rows", t)
    axis = integer(axis, "plot.rows", "axis", boolean=False)
    if axis not in (-2, -1, 0, 1):
        raise ShapeError(f"plot.rows: axis {axis} of a matrix\n  expected: 0 for rows, 1 for columns")
    ax = axes_of("rows", ax)
    lengths = np.bincount(_elements(t)[axis], minlength=t.shape[axis])
    labels, counts = length_histogram(lengths)
    bars = ax.bar(range(len(labels)), counts, color=color, tick_label=labels)
    ax.bar_label(bars, [f"{c:,}" if c else "" for c in counts], fontsize="small")
    what = ("rows", "columns")[axis]
    ax.set_ylabel(what)
    whole_numbers(ax.yaxis)
    ax.set_xlabel("elements")
    mean = float(lengths.mean()) if len(lengths) else 0.0
    ax.set_title(f"{_name(t)}: {what} by their length, mean {mean:.1f}, longest {int(lengths.max(initial=0)):,}")
    ax.tick_params(axis="x", rotation=45 if len(labels) > 8 else 0)
    return ax


def length_histogram(lengths: Ints) -> tuple[list[str], list[int]]:
    """Lengths -> bins 0, 1, 2-3, 4-7, ... up to the longest, and how many lengths each has."""
    top = int(lengths.max(initial=0))
    edges = [0, 1, *(1 << k for k in range(1, top.bit_length()))]
    edges = [edge for edge in edges if edge <= top]
    counts = np.bincount(np.searchsorted(edges, lengths, side="right") - 1, minlength=len(edges))
    return [str(a) if a < 2 else f"{a}-{2 * a - 1}" for a in edges], [int(count) for count in counts]


def _matrix(name: str, obj: Any) -> Tensor:
    t: Tensor = asarray(obj)
    if t.ndim != 2:
        raise ShapeError(
            f"plot.{name}: a tensor of {t.ndim} dimensions, shape {t.shape}"
            "\n  expected: a matrix\n  help: take a slice, A[0], or reshape it"
        )
    return t


def _elements(t: Tensor) -> Ints:
    """Coordinates (2, n) of what is drawn: the stored elements, of dense formats what differs from the fill value."""
    found = coordinates(t._storage)[0]
    if t.format.is_dense:
        values = np.asarray(t.to_numpy()).reshape(-1)
        found = np.stack(np.unravel_index(np.flatnonzero(values != t.fill_value), t.shape)) if values.size else found
    return found


def _draw_counts(ax: Any, i: Ints, j: Ints, shape: tuple[int, int]) -> None:
    from matplotlib.colors import LogNorm

    m, n = shape
    scale = CELLS / max(m, n)
    height, width = (max(1, min(k, round(k * scale))) for k in (m, n))
    cells = np.bincount(i * height // m * width + j * width // n, minlength=height * width).reshape(height, width)
    image = ax.imshow(
        np.ma.masked_equal(cells, 0), extent=(-0.5, n - 0.5, m - 0.5, -0.5), aspect="auto", interpolation="nearest",
        cmap="viridis", norm=LogNorm(1, max(2, int(cells.max(initial=1)))),
    )  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label="elements in a cell")


def _name(t: Tensor) -> str:
    return t.format.name or str(t.format)

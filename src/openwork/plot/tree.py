"""A small tensor -> the tree of its levels: a row of nodes for each level, a node for each position, values below."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, asarray
from ..storage.buffers import to_numpy
from ..storage.specified import Ints, children, root
from .axes import axes_of

__all__ = ["levels"]

MOST = 400
"""Nodes that a picture can have and still be read."""


def levels(t: Any, /, *, ax: Any = None, color: str = "tab:blue") -> Any:
    """Draw the levels of a small tensor as a tree.

    Each level of the format is a row of nodes, one for each position that it stores, with the coordinate there; lines
    go from a position to its children in the next level, and the elements' values stand below. A dense level has a
    node for each coordinate, whether something is stored under it or not: what has no value below is a position
    without elements.

    Parameters
    ----------
    t : Tensor of at most 400 positions over all levels, or what `asarray` takes
    ax : axes of matplotlib; default those of a new figure
    color : of the nodes

    Returns
    -------
    matplotlib.axes.Axes, those that were drawn on

    Raises ShapeError for more positions, UnsupportedError where matplotlib is not installed.

    Cost: O(nse); for small tensors.
    See also: spy, rows.

    Examples
    --------
    >>> axes = ow.plot.levels(ow.asarray([[0, 1.5], [2.5, 0]], format="csr"))
    >>> axes.figure.savefig("levels.svg")
    """
    t = asarray(t)
    storage = t._storage
    nodes, parents, value_at = _tree(storage)
    x = _places(nodes, parents)
    depth, width = len(nodes), max(float(p.max(initial=0)) for p in x)
    ax = axes_of("levels", ax, (3.5 + 0.42 * (width + 1), 1.0 + 0.75 * depth))
    for level in range(1, depth):
        above = x[level - 1][parents[level]]
        ax.plot(np.stack([above, x[level]]), [[depth - level + 1], [depth - level]], color="0.6", linewidth=1, zorder=1)
    titles = ["", *_titles(storage.format)]
    for level, names in enumerate(nodes):
        y = depth - level
        ax.scatter(x[level], np.full(len(names), y), s=230, color="white", edgecolors=color, zorder=2)
        for at, name in zip(x[level], names, strict=True):
            ax.annotate(str(name), (at, y), ha="center", va="center", fontsize=9, color="black", zorder=3)
        ax.annotate(titles[level], (-0.9, y), ha="right", va="center", fontsize=9, annotation_clip=False)
    values = to_numpy(storage.values, detach=True)
    ax.annotate("values", (-0.9, 0.4), ha="right", va="center", fontsize=9, color=color, annotation_clip=False)
    for at, place in zip(x[-1], value_at, strict=True):
        text = f"{values[place]:.3g}" if values.dtype.kind in "fc" else str(values[place])
        ax.annotate(text, (at, 0.4), ha="center", va="center", fontsize=8, color=color)
    if ax.get_subplotspec() is not None and ax.figure.get_layout_engine() is None:
        ax.figure.subplots_adjust(left=2.6 / ax.figure.get_figwidth(), right=0.97, bottom=0.04, top=0.86)
    ax.set_xlim(-0.7, width + 0.7)
    ax.set_ylim(0, depth + 0.5)
    ax.set_axis_off()
    ax.set_title(f"{storage.format.name or 'a tensor'} of shape {t.shape}, {t.nse} elements", fontsize=10)
    return ax


def _titles(format: Any) -> list[str]:
    """What each row of nodes is: the level's expression and format as in the format's text; of batches their names."""
    text = str(format)
    levels = _split(text[text.index("-> (") + 4 : -1])
    batch = format.batch_ndim
    return [", ".join(levels[:batch]), *levels[batch:]] if batch else levels


def _split(text: str) -> list[str]:
    """Parts between commas that are not inside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _tree(storage: Any) -> tuple[list[list[Any]], list[Ints], Ints]:
    """The names of the nodes of each level, the root first, the rows of their parents, and the places of values."""
    state = root(storage)
    first = len(state.position)
    names: list[list[Any]] = [[""] * 1]
    parents = [np.zeros(1, np.int64)]
    batch = storage.format.batch_ndim
    if batch:
        names.append([", ".join(map(str, c)) for c in zip(*state.coordinates, strict=True)])
        parents.append(np.zeros(first, np.int64))
    raw = np.zeros(first, np.int64)
    for at in range(batch, len(storage.format.levels)):
        state, row, raw = children(state, storage, at)
        names.append(state.coordinates[-1].tolist())
        parents.append(row)
        if sum(map(len, names)) > MOST:
            raise ShapeError(
                f"plot.levels: more than {MOST} positions, shape {storage.shape}"
                "\n  help: take a slice, A[:8, :8], or plot.spy"
            )
    slices = max(storage.batches, 1)
    return (
        names,
        parents,
        state.slice * (len(storage.values) // slices) + state.position if storage.format.levels else raw,
    )


def _places(nodes: list[list[Any]], parents: list[Ints]) -> list[np.ndarray[Any, Any]]:
    """Horizontal places: nodes without children side by side in the tree's order, others above their children."""
    below: list[list[list[int]]] = []
    for level in range(len(nodes)):
        lists: list[list[int]] = [[] for _ in nodes[level]]
        if level + 1 < len(nodes):
            for child, parent in enumerate(parents[level + 1].tolist()):
                lists[parent].append(child)
        below.append(lists)
    places = [np.zeros(len(names)) for names in nodes]
    free = 0.0

    def visit(level: int, node: int) -> float:
        nonlocal free
        at = [visit(level + 1, child) for child in below[level][node]]
        if not at:
            at, free = [free], free + 1
        places[level][node] = sum(at) / len(at)
        return float(places[level][node])

    visit(0, 0)
    return places

"""The layout of factors in memory: columns of each supernode, its rows, its panel, and the pivots' order.

It is what substitution, determinants and the selected inverse read. Without pivots it is that of the symbolic phase;
with them rows and columns have other places, and delayed columns belong to the supernode that eliminated them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...classes import frozen
from ..compiled import run
from .supernodes import places
from .symbolic import Symbolic, entry_places

__all__ = ["Layout", "pivoted", "static"]

Array = np.ndarray[Any, Any]

_LAYOUT = """
def layout(names_at: i64[const], width: i64[const], late: i64[const], name: I[const], first: I[const],
           row_pos: i64[const], rows: I[const], new_pos: i64[const], order: I[mut], rank: I[mut], out: I[mut],
           count: i64):
    for s in range(0, count):
        for t in range(0, width[s]):
            order[i64(first[s]) + t] = name[names_at[s] + t]
            rank[name[names_at[s] + t]] = i64(first[s]) + t
    for s in range(0, count):
        to = new_pos[s]
        for t in range(0, late[s]):
            out[to + t] = rank[name[names_at[s] + width[s] + t]]
        for t in range(0, row_pos[s + 1] - row_pos[s]):
            out[to + late[s] + t] = rank[rows[row_pos[s] + t]]
"""


@frozen(slots=False)
class Layout:
    """The panels of factors.

    first, row_pos : where columns and rows of each supernode begin; rows, cols : the rows of L and the columns of U
    panel_at, side_at : where panels are, and what is below their triangles, which `side_of` has by rows
    row_order, col_order : rows and columns in the pivots' order, in terms of the symbolic phase's; None: the same
    """

    symbolic: Symbolic
    first: Array
    row_pos: Array
    rows: Array
    cols: Array
    panel_at: Array
    side_at: Array
    row_order: Array | None
    col_order: Array | None

    @property
    def n(self) -> int:
        """Rows and columns."""
        return self.symbolic.n

    @cached_property
    def width(self) -> Array:
        """Columns of each supernode."""
        return np.diff(self.first).astype(np.int64)

    @cached_property
    def below(self) -> Array:
        """Rows below them."""
        return np.diff(self.row_pos)

    @property
    def owner(self) -> Array:
        """The supernode of each column."""
        return np.repeat(np.arange(len(self.width), dtype=self.first.dtype), self.width)

    def diagonal_at(self) -> Array:
        """Where the diagonal of each column is."""
        owner = self.owner
        column = np.arange(self.n) - self.first[owner]
        found: Array = self.panel_at[owner] + column * ((self.width + self.below)[owner] + 1)
        return found

    def beside_at(self) -> tuple[Array, Array]:
        """Columns that have a next one in their supernode, and where the element above that one's diagonal is."""
        owner = self.owner
        (column,) = np.nonzero(np.append(owner[1:] == owner[:-1], False)[: self.n])
        return column, self.diagonal_at()[column] + (self.width + self.below)[owner[column]]

    @cached_property
    def parent_places(self) -> Array:
        """For each row of a supernode its place in its parent's panel."""
        nodes = self.symbolic.nodes
        return places(self.first, nodes.up, nodes.head, nodes.next, self.row_pos, self.rows, self.n)[0]

    def places_of(self, row: Array, col: Array) -> tuple[Array, Array]:
        """Where elements of a symmetric factor's structure are, and which of them are mirrored.

        row, col : in terms of the symbolic phase's order
        """
        rank = np.arange(self.n, dtype=self.first.dtype)
        if self.row_order is not None:
            rank[self.row_order] = np.arange(self.n, dtype=rank.dtype)
        by_row = np.lexsort((self.rows, np.repeat(np.arange(len(self.width)), self.below)))
        return entry_places(rank[row], rank[col], self, self.rows[by_row], by_row)


def static(symbolic: Symbolic, panel_at: Array) -> Layout:
    """The layout of factors without pivots."""
    s = symbolic
    side_at = panel_at + np.diff(s.nodes.first)
    return Layout(s, s.nodes.first, s.row_pos, s.rows, s.rows, panel_at, side_at, None, None)


def pivoted(
    symbolic: Symbolic, panel_at: Array, width: Array, late: Array, names_at: Array, row_name: Array,
    col_name: Array | None,
) -> Layout:  # fmt: skip
    """The layout after pivots.

    width, late : columns that each supernode has eliminated, and delayed; row_name, col_name : at names_at, which they
    are, the rows and the columns where these differ
    """
    kind, count = symbolic.order.dtype, len(width)
    first = np.concatenate([np.zeros(1, kind), np.cumsum(width, dtype=kind)]).astype(kind)
    below = late + np.diff(symbolic.row_pos)
    row_pos = np.concatenate([np.zeros(1, np.int64), np.cumsum(below)])
    found = []
    for name in (row_name, col_name):
        if name is not None:
            order, rank = np.empty(symbolic.n, kind), np.empty(symbolic.n, kind)
            rows = np.empty(row_pos[-1], kind)
            words = [names_at, width, late, name, first, symbolic.row_pos, symbolic.rows, row_pos, order, rank, rows]
            run(_LAYOUT, len(rows), [*words, count], I=first)
            found.append((order, rows))
    (row_order, rows), (col_order, cols) = found[0], found[-1]
    height = width + below
    side_at = panel_at + width if col_name is None else panel_at + width * height
    return Layout(symbolic, first, row_pos, rows, cols, panel_at, side_at, row_order, col_order)

"""A structure and an order -> what the numeric phase needs beside values: supernodes, rows, places, memory.

It is made once for a structure and serves all values, of any scalar type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...classes import define, frozen
from ..compiled import run
from .elimination_tree import column_counts, elimination_tree, permuted, postorder
from .graph import Graph, grouped
from .supernodes import Supernodes, places_in_parents, row_structure, supernodes

__all__ = ["Entries", "Plan", "Symbolic", "analyse", "entry_places"]

Array = np.ndarray[Any, Any]

WIDE = 5e6
"""Operations of a front at which all threads work."""

_DEPTHS = """
def depths(up: I[const], depth: I[mut], size: I[mut], work: f64[mut], count: i64):
    for s in range(0, count):
        size[s] = 1
    for s in range(0, count):
        if up[s] >= 0:
            size[up[s]] = size[up[s]] + size[s]
            work[up[s]] = work[up[s]] + work[s]
    for t in range(0, count):
        s = count - 1 - t
        depth[s] = 0
        if up[s] >= 0:
            depth[s] = depth[up[s]] + 1
"""

_STACKS = """
def stacks(head: I[const], next: I[const], row_pos: i64[const], depth: I[const], region: I[const], update_at: i64[mut],
           top: i64[mut], most: i64[mut], count: i64):
    # a region has two stacks, for even and for odd depths: children are on the other one than their parent
    for s in range(0, count):
        own = 2 * i64(region[s])
        mine = own + (i64(depth[s]) & 1)
        other = own + 1 - (i64(depth[s]) & 1)
        r = row_pos[s + 1] - row_pos[s]
        update_at[s] = top[mine]
        top[mine] = top[mine] + r * r
        most[mine] = max(most[mine], top[mine])
        c: i64 = i64(head[s])
        while c >= 0:
            if region[c] == region[s]:
                top[other] = min(top[other], update_at[c])
            c = i64(next[c])
"""

_ENTRIES = """
def entries(row: I[const], col: I[const], rank: I[const], owner: I[const], first: I[const], row_pos: i64[const],
            rows: I[const], home: I[mut], target: i64[mut], turned: bool[mut], count: i64, panels: i64):
    # the panel and the place in it of each element: of the lower triangle alone for one panel, of both for two, where
    # what is above a panel's columns is behind the panel, by rows; for 0 of both, the upper one mirrored
    for e in range(0, count):
        x = i64(rank[row[e]])
        y = i64(rank[col[e]])
        i = max(x, y)
        j = min(x, y)
        s = i64(owner[j])
        home[e] = s
        start = i64(first[s])
        k = i64(first[s + 1]) - start
        m = k + row_pos[s + 1] - row_pos[s]
        turned[e] = x < y
        if panels == 1 and row[e] < col[e]:
            home[e] = -1
        elif i < start + k:
            target[e] = i - start + (j - start) * m
            if panels == 2:
                target[e] = x - start + (y - start) * m
        else:
            a: i64 = row_pos[s]
            b: i64 = row_pos[s + 1]
            while a < b:
                mid = (a + b) >> 1
                if i64(rows[mid]) < i:
                    a = mid + 1
                else:
                    b = mid
            below = a - row_pos[s]
            target[e] = k + below + (j - start) * m
            if x < y and panels == 2:
                target[e] = m * k + below + (j - start) * (m - k)
        if panels == 2:
            turned[e] = False
"""


@frozen(slots=False)
class Entries:
    """Where elements of a matrix go, by supernode: element source[e] to target[e] of the panel.

    turned : whether it comes from the other triangle in the order of elimination
    """

    pos: Array
    source: Array
    target: Array
    turned: Array


@dataclass(frozen=True)
class Plan:
    """What runs in parallel: ranges of subtrees, each a region with memory of its own, then all other supernodes.

    rest : ranges of these, and whether they are large enough for all threads to work at one, in region 0
    region, depth : of each supernode; stacks : the most that a region's two stacks of updates hold
    """

    subtrees: tuple[tuple[int, int], ...]
    rest: tuple[tuple[int, int, bool], ...]
    region: Array
    depth: Array
    stacks: Array

    @property
    def work(self) -> int:
        """Elements of all stacks."""
        return int(self.stacks.sum())


@define(slots=False)
class Symbolic:
    """The symbolic phase of a factorisation, which all matrices of one structure share.

    order : the rows and columns in the order of elimination
    nse : elements of the factor of a triangle; stored : with the zeros of its panels
    flops : multiplications and additions of Cholesky's factorisation
    """

    n: int
    method: str
    order: Array
    nodes: Supernodes
    row_pos: Array
    rows: Array
    place: Array
    inside: Array
    nse: int
    flops: float
    _plans: dict[int, Plan] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Symbolic of {self.n} rows by {self.method}: {len(self.nodes.up)} supernodes, {self.nse} elements, "
            f"{self.flops:.3g} operations>"
        )

    @cached_property
    def rank(self) -> Array:
        """The place of each row in the order."""
        out = np.empty_like(self.order)
        out[self.order] = np.arange(self.n, dtype=self.order.dtype)
        return out

    @cached_property
    def owner(self) -> Array:
        """The supernode of each column."""
        return self.nodes.owner

    def memory(self, dtype: Any = np.float64, threads: int = 1, panels: int = 1) -> dict[str, int]:
        """The bytes of the factor's values, of the updates while it is computed, and of the structure.

        panels : 2 of LU. Columns that pivoting delays take more.
        """
        size = np.dtype(dtype).itemsize
        plan = self.plan(threads)
        held = [self.order, self.nodes.first, self.nodes.up, self.rows, self.row_pos, self.place, self.inside]
        return {
            "factor": int(self.sizes(panels).sum()) * size,
            "work": plan.work * size,
            "structure": sum(x.nbytes for x in held),
        }

    def sizes(self, panels: int = 1) -> Array:
        """Elements of each supernode's panel, and of the second one of LU."""
        width, below = np.diff(self.nodes.first).astype(np.int64), np.diff(self.row_pos)
        out: Array = width * (width + panels * below)
        return out

    def plan(self, threads: int) -> Plan:
        """Ranges for so many threads."""
        if threads not in self._plans:
            self._plans[threads] = _plan(self, threads)
        return self._plans[threads]

    def entries(self, row: Array, col: Array, panels: int = 1) -> Entries:
        """Where elements at these coordinates go: those of the lower triangle with one panel, all with two."""
        kind, count = self.order.dtype, len(row)
        home, target, turned = np.empty(count, kind), np.zeros(count, np.int64), np.zeros(count, bool)
        words = [
            np.asarray(row, kind), np.asarray(col, kind), self.rank, self.owner, self.nodes.first, self.row_pos,
            self.rows, home, target, turned, count, panels,
        ]  # fmt: skip
        run(_ENTRIES, count * 8, words, I=home)
        pos, source = grouped(home, len(self.nodes.up))
        return Entries(pos, source, target[source], turned[source])


def entry_places(x: Array, y: Array, layout: Any, rows: Array, slot: Array) -> tuple[Array, Array]:
    """Where elements are in the panels of a `Layout`, the upper triangle's at their mirror images, and which these are.

    x, y : places of their rows and columns among the pivots; rows : each supernode's, sorted; slot : where they were
    """
    kind, count = layout.first.dtype, len(x)
    home, target, turned = np.empty(count, kind), np.zeros(count, np.int64), np.zeros(count, bool)
    same, owner = np.arange(layout.n, dtype=kind), layout.owner
    words = [x, y, same, owner, layout.first, layout.row_pos, rows, home, target, turned, count, 0]
    run(_ENTRIES, count * 8, words, I=home)
    width, height = layout.width[home], (layout.width + layout.below)[home]
    low = target % np.maximum(height, 1) - width
    (lower,) = np.nonzero(low >= 0)
    begin = layout.row_pos[home[lower]]
    target[lower] += slot[begin + low[lower]] - begin - low[lower]
    return layout.panel_at[home] + target, turned


def analyse(graph: Graph, order: Array, method: str, relaxed: bool = True) -> Symbolic:
    """The symbolic phase of a graph that is eliminated in this order, or one with the same fill."""
    kind = graph.crd.dtype
    order = np.asarray(order, kind)
    parent = elimination_tree(permuted(graph, order))
    after = postorder(parent)
    order = order[after]
    ordered = permuted(graph, order)
    parent = elimination_tree(ordered)
    count = column_counts(ordered, parent)
    nodes = supernodes(parent, count, relaxed)
    order = order[nodes.order]
    row_pos, rows = row_structure(permuted(graph, order), nodes)
    place, inside = places_in_parents(nodes, row_pos, rows)
    columns = count.astype(np.float64)
    return Symbolic(
        graph.n, method, order, nodes, row_pos, rows, place, inside, int(columns.sum()), float(columns @ columns)
    )


def _plan(symbolic: Symbolic, threads: int) -> Plan:
    nodes, kind = symbolic.nodes, symbolic.order.dtype
    count = len(nodes.up)
    width = np.diff(nodes.first).astype(np.float64)
    height = width + np.diff(symbolic.row_pos)
    work = 1000.0 + width * height * height
    total = work.sum()
    depth, size = np.empty(count, kind), np.empty(count, kind)
    run(_DEPTHS, count, [nodes.up, depth, size, work, count], I=size)
    limit = total / (4 * threads) if threads > 1 else np.inf
    below = work <= limit
    above = np.append(below, False)[nodes.up]
    roots = np.flatnonzero(below & ~above)
    ranges = _grouped(roots, size[roots], work[roots], limit / 2)
    ranges.sort(key=lambda pair: -work[pair[0] : pair[1]].max())
    region = np.zeros(count, kind)
    for number, (lo, hi) in enumerate(ranges):
        region[lo:hi] = number + 1
    update_at = np.zeros(count, np.int64)
    top, most = np.zeros((2, 2 * len(ranges) + 2), np.int64)
    words = [nodes.head, nodes.next, symbolic.row_pos, depth, region, update_at, top, most, count]
    run(_STACKS, count, words, I=size)
    ends = [0, *(end for pair in sorted(ranges) for end in pair), count]
    rest: list[tuple[int, int, bool]] = []
    for lo, hi in zip(ends[::2], ends[1::2], strict=True):
        wide = width[lo:hi] * height[lo:hi] ** 2 > WIDE
        cuts = [lo, *(lo + 1 + np.flatnonzero(wide[1:] != wide[:-1])).tolist(), hi] if hi > lo else []
        rest += [(a, b, bool(wide[a - lo])) for a, b in pairwise(cuts)]
    return Plan(tuple(ranges), tuple(rest), region, depth, most)


def _grouped(roots: Array, size: Array, work: Array, limit: float) -> list[tuple[int, int]]:
    """The ranges of subtrees, those side by side taken together while they are small."""
    out: list[tuple[int, int]] = []
    load = 0.0
    for root, many, cost in zip(roots.tolist(), size.tolist(), work.tolist(), strict=True):
        lo, hi = root + 1 - many, root + 1
        if out and out[-1][1] == lo and load + cost <= limit:
            out[-1] = (out[-1][0], hi)
            load += cost
        else:
            out.append((lo, hi))
            load = cost
    return out

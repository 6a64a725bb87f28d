"""A graph -> its order by nested dissection: halves first, then what separates them; small parts by minimum degree.

Vertices that have the same neighbours, the unknowns of a node of a mesh, are one vertex of the graph that is dissected.
Separators are found by a multilevel method: the graph is coarsened by matching heavy edges; on the coarsest one a half
is grown from several vertices; the separator is refined at each level on the way back by moves of its vertices to
either side, undone beyond the best state.

Source: A. George, "Nested dissection of a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973); C. Ashcraft,
"Compressed graphs and the minimum degree algorithm", SIAM J. Sci. Comput. 16 (1995). Separators: B. Hendrickson,
E. Rothberg, "Improving the run time and quality of nested dissection ordering", SIAM J. Sci. Comput. 20 (1998);
C. Ashcraft, J. W. H. Liu, "A partition improvement algorithm for generalized nested dissection" (1994); moves as of
C. M. Fiduccia, R. M. Mattheyses (1982); G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiled import compiled, parallel_private, run
from .graph import Graph
from .minimum_degree import minimum_degree
from .separator_phases import PHASES

__all__ = ["nested_dissection", "separated", "split"]

Array = np.ndarray[Any, Any]

COARSEST = 40
"""Vertices of a graph that is not coarsened further."""
TRIALS = 6
"""Vertices from which halves are grown."""
ROOM = 5
"""Memory of all levels, in sizes of the graph."""

_SEPARATE = """
def separate(pos: I[const], crd: I[const], part: I[mut], n: i64, room: i64, edges: i64, coarsest: i64, trials: i64):
    gpos: I[room + 64] = empty
    gcrd: I[edges] = empty
    gedge: I[edges] = empty
    weight: I[room] = empty
    coarse: I[room] = empty
    level_v: i64[64] = zeros
    level_e: i64[64] = zeros
    level_n: i64[64] = zeros
    mate: I[n] = empty
    walk: I[n] = empty
    slot: I[n] = zeros
    best: I[n] = empty
    cost: I[2 * n] = empty
    sep: I[n] = empty
    at: I[n] = empty
    locked: I[n] = zeros
    pulled: I[3 * n + 8] = empty
    move_end: I[n + 1] = empty
    moved: I[n] = empty
    load: i64[2] = zeros
    for v in range(0, n + 1):
        gpos[v] = pos[v]
    for p in range(0, i64(pos[n])):
        gcrd[p] = crd[p]
        gedge[p] = 1
    for v in range(0, n):
        weight[v] = 1
    seed: i64 = 12345
    level: i64 = 0
    vo: i64 = 0
    eo: i64 = 0
    m: i64 = n + 0
    heaviest = 1 + (3 * n) // (2 * coarsest)
    more: i64 = 1
    while more == 1:
        level_v[level] = vo
        level_e[level] = eo
        level_n[level] = m
        more = 0
        if m > coarsest and level < 60:
            MATCH
            po = vo + level
            ends = i64(gpos[po + m])
            if 20 * count < 17 * m and vo + m + count <= room and eo + 2 * ends <= edges:
                more = 1
                COARSEN
                vo += m
                eo += ends
                level += 1
                m = count + 0
    tag: i64 = 0
    apart: i64 = 0
    score: i64 = -1
    last = trials + level
    for step in range(0, last + 1):
        if step < trials:
            GROW
        elif step < last:
            PROJECT
        else:
            LEVELS
        REFINE
        if step == last - 1 and step >= trials:
            score = -1
        if step < trials or step >= last - 1:
            KEEP
"""

_SPLIT = """
def split(pos: I[const], crd: I[const], names: I[const], part: I[const], local: I[mut], left_pos: I[mut], left: I[mut],
          left_names: I[mut], right_pos: I[mut], right: I[mut], right_names: I[mut], counts: i64[mut], n: i64):
    a: i64 = 0
    b: i64 = 0
    for v in range(0, n):
        if part[v] == 0:
            local[v] = a
            left_names[a] = names[v]
            a += 1
        elif part[v] == 1:
            local[v] = b
            right_names[b] = names[v]
            b += 1
    c: i64 = 0
    d: i64 = 0
    left_pos[0] = 0
    right_pos[0] = 0
    for v in range(0, n):
        if part[v] == 0:
            for p in range(pos[v], pos[v + 1]):
                if part[crd[p]] == 0:
                    left[c] = local[crd[p]]
                    c += 1
            left_pos[local[v] + 1] = c
        elif part[v] == 1:
            for p in range(pos[v], pos[v + 1]):
                if part[crd[p]] == 1:
                    right[d] = local[crd[p]]
                    d += 1
            right_pos[local[v] + 1] = d
    counts[0] = a
    counts[1] = b
    counts[2] = c
    counts[3] = d
"""


def separated(graphs: Sequence[Graph]) -> list[Array]:
    """For each graph 0 or 1 for vertices of two halves between which there is no edge, 2 for those of the separator.

    Graphs are separated side by side, on all threads.
    """
    if not graphs:
        return []
    parts = [np.empty(graph.n, graph.crd.dtype) for graph in graphs]
    executable = compiled(_SEPARATE, PHASES, I=parts[0])
    words = [
        executable.pack([g.pos, g.crd, part, g.n, ROOM * g.n + 64, ROOM * len(g.crd) + 64, COARSEST, TRIALS])
        for g, part in zip(graphs, parts, strict=True)
    ]
    if len(words) == 1:
        executable.run_sized(len(graphs[0].crd) * 8, words[0])
    else:
        parallel_private(executable, words, [(0, 1)] * len(words))
    return parts


def split(graph: Graph, names: Array, part: Array) -> tuple[tuple[Graph, Array], tuple[Graph, Array]]:
    """The two halves as graphs of their own, each with the names of its vertices."""
    kind, n, edges = graph.crd.dtype, graph.n, len(graph.crd)
    local = np.empty(n, kind)
    buffers = [np.empty(k, kind) for k in (n + 1, edges, n, n + 1, edges, n)]
    counts = np.zeros(4, np.int64)
    words = [graph.pos, graph.crd, names, part, local, *buffers, counts, n]
    run(_SPLIT, edges, words, I=local)
    a, b, c, d = counts.tolist()
    left = Graph(buffers[0][: a + 1], buffers[1][:c]), buffers[2][:a]
    return left, (Graph(buffers[3][: b + 1], buffers[4][:d]), buffers[5][:b])


LEAF = 200
"""Vertices of a part that minimum degree orders."""
MERGED = 0.6
"""Share of vertices that are left from which on vertices with the same neighbours are not merged."""


def nested_dissection(graph: Graph) -> Array:
    """The vertices in the order in which they are to be eliminated.

    Parts that are not dissected are ordered together, by degrees that count the separators around them.
    """
    kind = graph.crd.dtype
    small, group = quotient(graph)
    if small.n < MERGED * graph.n:
        rank = np.empty(small.n, kind)
        rank[nested_dissection(small)] = np.arange(small.n, dtype=kind)
        return np.argsort(rank[group], kind="stable").astype(kind)
    parts = [(graph, np.arange(graph.n, dtype=kind))]
    separators: list[Array] = []
    while parts:
        parts = [(part, names) for part, names in parts if part.n > LEAF and len(part.crd)]
        halves: list[tuple[Graph, Array]] = []
        for (part, names), sides in zip(parts, separated([part for part, _ in parts]), strict=True):
            separator = names[sides == 2]
            if 2 * len(separator) <= part.n:
                separators.append(separator)
                halves.extend(split(part, names, sides))
        parts = halves
    late = np.concatenate([np.zeros(0, kind), *separators[::-1]])
    halo = np.zeros(graph.n, kind)
    halo[late] = 1
    return np.concatenate([minimum_degree(graph, halo), late])


def quotient(graph: Graph) -> tuple[Graph, Array]:
    """The graph whose vertices are those of the graph with the same neighbours and themselves, and the one of each.

    Neighbours are compared by a sum of random numbers of 64 bits.
    """
    n, pos, crd = graph.n, graph.pos, graph.crd
    name = np.random.default_rng(0).integers(0, 2**64, n, np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(name[crd])])
    _, first, group = np.unique(sums[pos[1:]] - sums[pos[:-1]] + name, return_index=True, return_inverse=True)
    place = np.full(n, -1, crd.dtype)
    place[np.sort(first)] = np.arange(len(first), dtype=crd.dtype)
    row, col = np.repeat(place, np.diff(pos)), place[crd]
    kept = (row >= 0) & (col >= 0)
    ends = np.searchsorted(row[kept], np.arange(len(first) + 1)).astype(pos.dtype)
    return Graph(ends, col[kept]), place[first[group]]

"""A graph -> a small set of vertices that separates two halves of it, by a multilevel method.

The graph is coarsened by matching heavy edges; on the coarsest one a half is grown from several vertices; the separator
is refined at each level on the way back by moves of its vertices to either side, undone beyond the best state.

Source: B. Hendrickson, E. Rothberg, "Improving the run time and quality of nested dissection ordering", SIAM J. Sci.
Comput. 20 (1998); C. Ashcraft, J. W. H. Liu, "A partition improvement algorithm for generalized nested dissection"
(1994); moves as of C. M. Fiduccia, R. M. Mattheyses (1982); G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiled import compiled, parallel_private, run
from .graph import Graph
from .separator_phases import PHASES

__all__ = ["separated", "split"]

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

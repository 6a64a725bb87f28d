"""The structure of a sparse matrix -> the graphs that orderings and elimination work on.

adjacency      of A + A.T without its diagonal: compressed neighbours, each row without duplicates
transposed     of a structure, rows sorted, with the place of each element in the original
grouped        of numbers of groups: the members of each
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiled import run

__all__ = ["Graph", "adjacency", "grouped", "transposed"]

Array = np.ndarray[Any, Any]

_TRANSPOSE = """
def transpose(pos: I[const], crd: I[const], tpos: I[mut], tcrd: I[mut], place: I[mut], n: i64, m: i64):
    for p in range(0, i64(pos[n])):
        tpos[crd[p] + 1] = tpos[crd[p] + 1] + 1
    for j in range(0, m):
        tpos[j + 1] = tpos[j + 1] + tpos[j]
    for i in range(0, n):
        for p in range(pos[i], pos[i + 1]):
            j = i64(crd[p])
            q = i64(tpos[j])
            tcrd[q] = i
            place[q] = p
            tpos[j] = q + 1
    for s in range(0, m):
        j = m - s
        tpos[j] = tpos[j - 1]
    tpos[0] = 0
"""

_ADJACENCY = """
def adjacency(pos: I[const], crd: I[const], tpos: I[const], tcrd: I[const], out_pos: I[mut], out: I[mut], n: i64):
    seen: i64[n] = zeros
    k: i64 = 0
    for i in range(0, n):
        seen[i] = i + 1
        for p in range(pos[i], pos[i + 1]):
            j = i64(crd[p])
            if seen[j] != i + 1:
                seen[j] = i + 1
                out[k] = j
                k += 1
        for p in range(tpos[i], tpos[i + 1]):
            j = i64(tcrd[p])
            if seen[j] != i + 1:
                seen[j] = i + 1
                out[k] = j
                k += 1
        out_pos[i + 1] = k
"""

_GROUP = """
def group(home: I[const], pos: i64[mut], member: i64[mut], count: i64, groups: i64):
    for e in range(0, count):
        if home[e] >= 0:
            pos[home[e] + 1] = pos[home[e] + 1] + 1
    for s in range(0, groups):
        pos[s + 1] = pos[s + 1] + pos[s]
    for e in range(0, count):
        if home[e] >= 0:
            member[pos[home[e]]] = e
            pos[home[e]] = pos[home[e]] + 1
    for t in range(0, groups):
        s = groups - t
        pos[s] = pos[s - 1]
    pos[0] = 0
"""


class Graph(NamedTuple):
    """Compressed neighbours of the vertices of an undirected graph; both directions are stored."""

    pos: Array
    crd: Array

    @property
    def n(self) -> int:
        """Vertices."""
        return len(self.pos) - 1


def transposed(pos: Array, crd: Array, columns: int) -> tuple[Array, Array, Array]:
    """The compressed columns of compressed rows, or the reverse, and the place of each element in the original."""
    tpos = np.zeros(columns + 1, crd.dtype)
    tcrd, place = np.empty_like(crd), np.empty_like(crd)
    run(_TRANSPOSE, len(crd), [pos, crd, tpos, tcrd, place, len(pos) - 1, columns], I=crd)
    return tpos, tcrd, place


def adjacency(pos: Array, crd: Array) -> Graph:
    """The graph of A + A.T of a square structure by rows or by columns."""
    n = len(pos) - 1
    tpos, tcrd, _ = transposed(pos, crd, n)
    out_pos, out = np.zeros(n + 1, crd.dtype), np.empty(2 * len(crd), crd.dtype)
    run(_ADJACENCY, len(crd), [pos, crd, tpos, tcrd, out_pos, out, n], I=crd)
    return Graph(out_pos, out[: out_pos[-1]])


def grouped(home: Array, groups: int) -> tuple[Array, Array]:
    """Where the members of each group begin, and the members: e is one of group home[e], of none where that is -1."""
    pos, member = np.zeros(groups + 1, np.int64), np.empty(len(home), np.int64)
    run(_GROUP, len(home) * 2, [home, pos, member, len(home), groups], I=home)
    return pos, member[: pos[-1]]

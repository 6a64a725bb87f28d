"""The pattern of a Jacobian or a Hessian -> colours of its columns and rows: those of one colour share an evaluation.

Columns that have no row in common may be added up and told apart again. For a symmetric matrix a star colouring needs
fewer colours, as either of two elements may be read: no path of four vertices has two colours. A row that is dense
would make all columns differ: it is evaluated by itself, from the other side.

Source: A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian?", SIAM Review 47 (2005); A. H.
Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, "New acyclic and star coloring algorithms", SIAM J. Sci. Comput. 29
(2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .compiled import compiled, run
from .direct_solver.graph import Graph, adjacency, transposed

__all__ = ["Colours", "colours", "star_colours", "symmetric_colours"]

Array = np.ndarray[Any, Any]

SMALL = 1e7
"""Pairs of elements in a row below which a star colouring takes no time."""
MOST_WORDS = 4
"""Words of 64 bits for each element up to which the colours that rows have are kept as bits."""

_COLUMNS = """
def colour_columns(tpos: I[const], tcrd: I[const], pos: I[const], crd: I[const], order: I[const], skip: I[const],
                   colour: I[mut], used: i64[mut], count: i64, n: i64):
    # columns in an order, each the least colour of no column that shares a row; rows of `skip` do not count
    forbidden: I[n + 1] = empty
    most: i64 = 0
    for j in range(0, n + 1):
        forbidden[j] = -1
    for s in range(0, count):
        j = i64(order[s])
        rows: i64 = 0
        for p in range(tpos[j], tpos[j + 1]):
            i = i64(tcrd[p])
            if skip[i] == 0:
                rows += 1
                for q in range(pos[i], pos[i + 1]):
                    taken = i64(colour[crd[q]])
                    if taken >= 0:
                        forbidden[taken] = j
        if rows > 0:
            k: i64 = 0
            while forbidden[k] == j:
                k += 1
            colour[j] = k
            most = max(most, k + 1)
    used[0] = most
"""

_COLUMNS_BY_BITS = """
def colour_columns_by_bits(tpos: I[const], tcrd: I[const], order: I[const], skip: I[const], taken: i64[mut],
                           colour: I[mut], used: i64[mut], count: i64, words: i64):
    # the same colours; bit k of a row's words is set where it has a column of colour k. used: -1 where words are few
    most: i64 = 0
    s: i64 = 0
    while s < count:
        j = i64(order[s])
        k: i64 = -1
        w: i64 = 0
        while k < 0 and w < words:
            full: i64 = 0
            for p in range(tpos[j], tpos[j + 1]):
                full = full | taken[i64(tcrd[p]) * words + w]
            if full != -1:
                k = (w << 6) + i64(ctz(~full))
            w += 1
        s += 1
        if k < 0:
            most = -1
            s = count + 0
        else:
            rows: i64 = 0
            bit = i64(1) << (k & 63)
            at = k >> 6
            for p in range(tpos[j], tpos[j + 1]):
                i = i64(tcrd[p])
                if skip[i] == 0:
                    rows += 1
                    taken[i * words + at] = taken[i * words + at] | bit
            if rows > 0:
                colour[j] = k
                most = max(most, k + 1)
    used[0] = most
"""

_STAR = """
def colour_stars(pos: I[const], crd: I[const], edge: I[const], order: I[const], colour: I[mut], used: i64[mut],
                 count: i64, n: i64, m: i64):
    # a star is a set of edges of two colours around its hub; -1: either end of one edge may become its hub
    forbidden: I[n + 1] = empty
    first: I[n + 1] = empty
    near: I[n + 1] = empty
    through: I[n + 1] = empty
    treated: I[n + 1] = empty
    star: I[m + 1] = zeros
    hub: I[m + 1] = zeros
    stars: i64 = 0
    most: i64 = 0
    for v in range(0, n + 1):
        forbidden[v] = -1
        first[v] = -1
        treated[v] = -1
    for s in range(0, count):
        v = i64(order[s])
        for p in range(pos[v], pos[v + 1]):
            w = i64(crd[p])
            of_w = i64(colour[w])
            if of_w >= 0:
                forbidden[of_w] = v
                if first[of_w] == v:
                    q = i64(near[of_w])
                    if treated[q] != v:
                        for r in range(pos[q], pos[q + 1]):
                            of_x = i64(colour[crd[r]])
                            if of_x >= 0:
                                forbidden[of_x] = v
                        treated[q] = v
                    for r in range(pos[w], pos[w + 1]):
                        of_x = i64(colour[crd[r]])
                        if of_x >= 0:
                            forbidden[of_x] = v
                    treated[w] = v
                else:
                    first[of_w] = v
                    near[of_w] = w
                    through[of_w] = edge[p]
                    for r in range(pos[w], pos[w + 1]):
                        x = i64(crd[r])
                        of_x = i64(colour[x])
                        if x != v and of_x >= 0:
                            if hub[star[edge[r]]] == x:
                                forbidden[of_x] = v
        k: i64 = 0
        while forbidden[k] == v:
            k += 1
        colour[v] = k
        most = max(most, k + 1)
        for p in range(pos[v], pos[v + 1]):
            w = i64(crd[p])
            of_w = i64(colour[w])
            if of_w >= 0:
                found: i64 = 0
                r: i64 = i64(pos[w])
                while found == 0 and r < i64(pos[w + 1]):
                    x = i64(crd[r])
                    if x != v and colour[x] == k:
                        joined = i64(star[edge[r]])
                        hub[joined] = w
                        star[edge[p]] = joined
                        found = 1
                    r += 1
                if found == 0:
                    if first[of_w] == v and near[of_w] != w:
                        joined = i64(star[through[of_w]])
                        hub[joined] = v
                        star[edge[p]] = joined
                    else:
                        star[edge[p]] = stars
                        hub[stars] = -1
                        stars += 1
    used[0] = most
"""


class Colours(NamedTuple):
    """Colours of columns and of rows, -1 where a column or row is in no evaluation of its kind, and their numbers.

    An element whose row and column both have one is read by its row where `by_row`, else by its column.
    """

    columns: Array
    rows: Array
    forward: int
    reverse: int
    by_row: bool = True

    @property
    def evaluations(self) -> int:
        """Products with the matrix and with its transpose."""
        return self.forward + self.reverse


def colours(pattern: Graph, columns: int, mode: str = "auto") -> Colours:
    """The colours that need the fewest evaluations, of columns ("forward"), rows ("reverse"), or both."""
    tpos, tcrd, _ = transposed(pattern.pos, pattern.crd, columns)
    turned = Graph(tpos, tcrd)
    best: Colours | None = None
    for least, dense_rows, dense_columns in sorted(_candidates(pattern, turned, mode), key=lambda c: c[0]):
        if best is None or least < best.evaluations:
            found = _coloured(pattern, turned, dense_rows, dense_columns)
            best = found if best is None or found.evaluations < best.evaluations else best
    assert best is not None
    return best


def _candidates(rows: Graph, columns: Graph, mode: str) -> Iterator[tuple[int, Array | None, Array | None]]:
    """(evaluations at least, rows that go by reverse, columns that go forward); None: the colours of all others."""
    by_row, by_column = np.diff(rows.pos), np.diff(columns.pos)
    if mode in ("auto", "forward"):
        yield int(by_row.max(initial=0)), np.empty(0, np.int64), None
    if mode in ("auto", "reverse"):
        yield int(by_column.max(initial=0)), None, np.empty(0, np.int64)
    if mode not in ("auto", "both"):
        return
    for degrees, forward in ((by_row, True), (by_column, False)):
        limit = 2.0 * max(degrees.mean() if len(degrees) else 0, 1)
        while limit < degrees.max(initial=0):
            dense = np.flatnonzero(degrees > limit)
            least = int(degrees[degrees <= limit].max(initial=0)) + 1
            yield (least, dense, None) if forward else (least, None, dense)
            limit *= 4
    if mode == "both":
        yield int(by_row.max(initial=0)), np.empty(0, np.int64), None


def _coloured(rows: Graph, columns: Graph, dense_rows: Array | None, dense_columns: Array | None) -> Colours:
    if dense_columns is not None:
        other = _coloured(columns, rows, dense_columns, None)
        return Colours(other.rows, other.columns, other.reverse, other.forward, False)
    assert dense_rows is not None
    skip = np.zeros(rows.n, rows.crd.dtype)
    skip[dense_rows] = 1
    every = np.arange(columns.n)
    forward, used = _columns(columns, rows, every, skip)
    if used > np.diff(rows.pos)[skip == 0].max(initial=0):
        largest = np.argsort(-np.diff(columns.pos), kind="stable")
        again, fewer = _columns(columns, rows, largest, skip)
        forward, used = (again, fewer) if fewer < used else (forward, used)
    reverse, more = _columns(rows, columns, dense_rows, np.zeros(columns.n, rows.crd.dtype))
    return Colours(forward, reverse, used, more)


def _columns(columns: Graph, rows: Graph, order: Array, skip: Array) -> tuple[Array, int]:
    """The colours of these columns by rows that are not skipped, and how many they are."""
    kind = rows.crd.dtype
    colour, used = np.full(columns.n, -1, kind), np.zeros(1, np.int64)
    if not len(order):
        return colour, 0
    order = order.astype(kind)
    words = int(np.diff(rows.pos)[skip == 0].max(initial=0)) // 64 + 1
    executable = compiled(_COLUMNS_BY_BITS, I=colour)
    while rows.n * words <= MOST_WORDS * len(rows.crd):
        taken = np.zeros(rows.n * words, np.int64)
        packed = executable.pack([*columns, order, skip, taken, colour, used, len(order), words])
        executable.run_sized(len(rows.crd) * words, packed)
        if used[0] >= 0:
            return colour, int(used[0])
        words *= 2
        colour[:] = -1
    run(_COLUMNS, len(rows.crd) * 4, [*columns, *rows, order, skip, colour, used, len(order), columns.n], I=colour)
    return colour, int(used[0])


def symmetric_colours(rows: Graph) -> tuple[Array, int]:
    """Colours of a symmetric pattern with which each element, or its mirror image, can be read; how many they are.

    Those of the columns will do, and are found faster than a star colouring. Where no row is much longer than others,
    as in meshes, and no two columns of one row differ without need, a star colouring is sought of small patterns alone.
    """
    degrees = np.diff(rows.pos)
    most = int(degrees.max(initial=0))
    plain = None
    if 2 * most <= 3 * (degrees.mean() if rows.n else 0):
        plain = _columns(rows, rows, np.arange(rows.n), np.zeros(rows.n, rows.crd.dtype))
        if plain[1] == most and most * len(rows.crd) > SMALL:
            return plain
    star = star_colours(adjacency(rows.pos, rows.crd))
    return star if plain is None or star[1] < plain[1] else plain


def star_colours(graph: Graph) -> tuple[Array, int]:
    """A star colouring of a symmetric pattern without its diagonal, and its number of colours.

    Vertices of very many neighbours have colours of their own, if that makes fewer.
    """
    degrees = np.diff(graph.pos)
    most = int(degrees.max(initial=0))
    limit = 2.0 * max(degrees.mean() if graph.n else 0, 1)
    found = [] if most > 64 * limit else [_star(graph, np.zeros(graph.n, bool))]
    while limit < most and (not found or found[-1][1] > 4 + degrees[degrees <= limit].max(initial=0)):
        found.append(_star(graph, degrees > limit))
        limit *= 4
    return min(found, key=lambda f: f[1])


def _star(graph: Graph, alone: Array) -> tuple[Array, int]:
    """The colouring where some vertices have colours of their own, which no path needs to count."""
    kind, n = graph.crd.dtype, graph.n
    pos, crd = graph
    if alone.any():
        row = np.repeat(np.arange(n), np.diff(pos))
        kept = ~(alone[row] | alone[crd])
        pos = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=n))]).astype(kind)
        crd = np.ascontiguousarray(crd[kept])
    pos, crd, _ = transposed(pos, crd, n)  # of a symmetric pattern: the same, in order
    _, _, twin = transposed(pos, crd, n)
    edge = np.minimum(np.arange(len(crd), dtype=kind), twin)
    colour, used = np.full(n, -1, kind), np.zeros(1, np.int64)
    order = np.flatnonzero(~alone).astype(kind)
    words = [pos, crd, edge, order, colour, used, len(order), n, len(crd)]
    run(_STAR, len(crd) * 8, words, I=colour)
    colour[alone] = used[0] + np.arange(np.count_nonzero(alone))
    return colour, int(used[0]) + int(np.count_nonzero(alone))

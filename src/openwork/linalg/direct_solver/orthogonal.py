"""The structure and the values of a matrix with no fewer rows than columns -> its QR factorisation, and solutions.

    analysed(rows, columns, ordering)     the symbolic phase: supernodes of A^H A, and which rows begin in which
    Orthogonal.factor(values)             Q and R, the rank
    Orthogonal.solve(b, "N")              x that minimises |A x - b|, 0 for columns that depend on others
    Orthogonal.solve(c, "H")              the least x with A^H x = c

In any order of columns elimination has the structure of the graph in which the first column of each row is beside the
others of the row: A^H A, whose graph has all of them beside each other, is not made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import openwork as ow

from ...classes import frozen
from ..compiled import numpy_dtype, parallel_private, run, scalar_of
from .blas import one_thread
from .graph import Graph, adjacency, transposed
from .minimum_degree import column_minimum_degree
from .ordering import METHODS
from .row_fronts import BLOCK, HEIGHTS, PLACES, front_kernel, room, solution_kernel
from .symbolic import Symbolic, analyse

__all__ = ["Orthogonal", "RowPlan", "analysed"]

Array = np.ndarray[Any, Any]


@frozen(slots=False)
class RowPlan:
    """Where rows of a matrix go: those of supernode s are row_order[own[s] : own[s + 1]], its elements `source`, to row
    and col of its front; symbolic : the symbolic phase of A^H A."""

    symbolic: Symbolic
    own: Array
    row_order: Array
    pos: Array
    source: Array
    row: Array
    col: Array

    def heights(self, loose: bool) -> Array:
        """Rows of each front; loose: at most, where columns depend on others."""
        s = self.symbolic
        height = np.diff(self.own)
        words = [s.nodes.up, s.nodes.first, s.row_pos, height, len(height), int(loose)]
        run(HEIGHTS, len(height), words, I=s.order)
        return height

    @property
    def widths(self) -> Array:
        """Columns of each front."""
        s = self.symbolic
        out: Array = np.diff(s.nodes.first).astype(np.int64) + np.diff(s.row_pos)
        return out

    def memory(self, dtype: Any = np.float64) -> dict[str, int]:
        """The bytes of R and Q where no column depends on others, and of the structure."""
        size = np.dtype(dtype).itemsize
        s = self.symbolic
        held = [s.order, s.nodes.first, s.rows, s.row_pos, s.place, self.own, self.row_order, self.pos, self.source]
        widths = self.widths
        return {
            "factor": int((self.heights(False) * widths).sum() + widths.sum()) * size,
            "structure": sum(x.nbytes for x in [*held, self.row, self.col]),
        }


def analysed(rows: Graph, columns: int, ordering: Any) -> RowPlan:
    """The symbolic phase of compressed rows.

    ordering : "auto", "colamd", the name of one of METHODS, or an order of the columns
    """
    pos, crd = rows
    order, method = _order(rows, columns, ordering)
    rank = np.empty(columns, crd.dtype)
    rank[order] = np.arange(columns, dtype=crd.dtype)
    symbolic = analyse(_stars(rows, columns, rank), order, method)
    (used,) = np.nonzero(np.diff(pos))
    rank = symbolic.rank
    leftmost = np.minimum.reduceat(rank[crd], pos[used]) if len(used) else np.empty(0, crd.dtype)
    chosen = np.lexsort((leftmost, symbolic.owner[leftmost])) if len(used) else np.empty(0, np.int64)
    row_order = used[chosen].astype(crd.dtype)
    home = symbolic.owner[leftmost[chosen]]
    own = np.searchsorted(home, np.arange(len(symbolic.nodes.up) + 1)).astype(np.int64)
    many = np.diff(pos)[row_order]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(many, dtype=np.int64)])
    source = np.arange(starts[-1]) + np.repeat(pos[row_order] - starts[:-1], many)
    local = np.repeat((np.arange(len(row_order)) - own[home]).astype(crd.dtype), many)
    home = np.repeat(home, many)
    target = np.empty(len(source), crd.dtype)
    words = [home, rank[crd[source]], symbolic.nodes.first, symbolic.row_pos, symbolic.rows, target, len(source)]
    run(PLACES, len(source) * 8, words, I=crd)
    return RowPlan(symbolic, own, row_order, starts[own], source, local, target)


def _order(rows: Graph, columns: int, ordering: Any) -> tuple[Array, str]:
    if not isinstance(ordering, str):
        return np.asarray(ordering, rows.crd.dtype), "given"
    if ordering in ("auto", "colamd"):
        tpos, tcrd, _ = transposed(rows.pos, rows.crd, columns)
        return column_minimum_degree(rows, Graph(tpos, tcrd)), "colamd"
    from scipy.sparse import csr_array

    pattern = csr_array((np.ones(len(rows.crd), np.float32), rows.crd, rows.pos), (rows.n, columns))
    normal = csr_array(pattern.T @ pattern)
    kind = rows.crd.dtype
    return METHODS[ordering](adjacency(normal.indptr.astype(kind), normal.indices.astype(kind))), ordering


def _stars(rows: Graph, columns: int, rank: Array) -> Graph:
    """The graph in which the first column of each row, by rank, is beside the others."""
    from scipy.sparse import coo_array

    (used,) = np.nonzero(np.diff(rows.pos))
    if not len(used):
        return Graph(np.zeros(columns + 1, rows.crd.dtype), rows.crd[:0])
    order = np.argsort(rank)
    first = order[np.minimum.reduceat(rank[rows.crd], rows.pos[used])]
    center = np.repeat(first, np.diff(rows.pos)[used])
    star = coo_array((np.ones(len(center), np.int8), (center, rows.crd)), (columns, columns)).tocsr()
    return adjacency(star.indptr.astype(rows.crd.dtype), star.indices.astype(rows.crd.dtype))


class Orthogonal:
    """The QR factorisation of a matrix, rows by columns; `factor` computes it, again for each values."""

    def __init__(self, plan: RowPlan, rows: int, scalar: str) -> None:
        self.plan, self.rows, self.scalar = plan, rows, scalar
        self.dtype = numpy_dtype(scalar)
        s, count = plan.symbolic, len(plan.own) - 1
        self.height, self.live, self.passed, self.panel_at = (np.zeros(count, np.int64) for _ in range(4))
        self.name = np.empty(s.n, s.order.dtype)
        self.tau = np.zeros(s.n + len(s.rows), self.dtype)
        self.values = np.empty(0, self.dtype)

    def factor(self, values: Array, tolerance: float) -> None:
        """The numeric phase; columns whose remainder is not above the tolerance depend on others."""
        if not self._factored(values, tolerance, False):
            self._factored(values, tolerance, True)

    def _factored(self, values: Array, tolerance: float, loose: bool) -> bool:
        """Whether fronts had room."""
        p, s, nodes = self.plan, self.plan.symbolic, self.plan.symbolic.nodes
        bound, widths = p.heights(loose), p.widths
        sizes = bound * widths
        self.panel_at = np.cumsum(sizes) - sizes
        if len(self.values) != sizes.sum():
            self.values = np.empty(sizes.sum(), self.dtype)
        full = np.zeros(1, np.int64)
        kernel, routines = front_kernel(scalar_of(s.order), self.scalar, scalar_of(values))
        work = BLOCK * int(widths.max(initial=1))
        words = kernel.pack([
            nodes.first, s.row_pos, s.place, nodes.head, nodes.next, p.own, p.pos, p.source, p.row, p.col, values,
            self.panel_at, bound, self.height, self.live, self.passed, self.name, self.tau, self.values, full,
            tolerance, work, BLOCK, *routines,
        ])  # fmt: skip
        plan = s.plan(ow.get_num_threads())
        with one_thread():
            parallel_private(kernel, [words] * len(plan.subtrees), plan.subtrees)
        for lo, hi, _ in plan.rest:
            if not full[0]:
                kernel.run_sized(self.values.size * 8, words, lo, hi)
        return not full[0]

    @property
    def rank(self) -> int:
        """Columns that do not depend on others."""
        return int(self.live.sum())

    @property
    def nse(self) -> int:
        """Elements of R and of the reflections that are Q."""
        m, e, w = self.height, self.live, self.plan.widths
        rest = self.passed
        return int((e * w + (m - e) * e + (m - e) * rest - rest * (rest - 1) // 2).sum())

    def solve(self, right: Array, trans: str) -> Array:
        """Least-squares solutions of right sides (rows, c), or, for "H", least solutions with the adjoint of (n, c)."""
        s, c = self.plan.symbolic, right.shape[1]
        b = np.zeros((self.rows, c), self.dtype, order="F")
        x, z = (np.zeros((s.n, c), self.dtype, order="F") for _ in range(2))
        steps = ("reflected", "upper") if trans == "N" else ("lower", "reflected_back")
        if trans == "N":
            b[:] = right
        else:
            x[:] = right[s.order]
        side_at = np.cumsum(self.height) - self.height
        y = np.empty(int(self.height.sum()) * c, self.dtype)
        for step in steps:
            self._run(step, side_at, y, b, x, z, c)
        if trans == "H":
            return b
        out = np.empty_like(x)
        out[s.order] = x
        return out

    def _run(self, step: str, side_at: Array, y: Array, b: Array, x: Array, z: Array, c: int) -> None:
        p, s, nodes = self.plan, self.plan.symbolic, self.plan.symbolic.nodes
        kernel, routines = solution_kernel(step, scalar_of(s.order), self.scalar, c)
        words = [
            nodes.first, s.row_pos, s.rows, nodes.head, nodes.next, p.own, p.row_order, self.panel_at, self.height,
            self.live, self.passed, self.name, self.tau, self.values, side_at, y,
            *(v.reshape(-1, order="F") for v in (b, x, z)), self.rows, s.n, c, len(self.height),
            room(c, int(p.widths.max(initial=0))), *routines,
        ]  # fmt: skip
        with one_thread():
            kernel.run_sized(self.values.size * c, kernel.pack(words))

"""The symbolic phase and the values of a matrix -> its factors: numeric phase, solutions, determinant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import openwork as ow

from ...progress import Step
from ..compiled import numpy_dtype, parallel, parallel_private, scalar_of
from .blas import one_thread
from .fronts import STRIP, FrontKernels, front_kernels
from .layout import Layout, pivoted, static
from .substitution import substitution_kernel
from .symbolic import Entries, Plan, Symbolic

__all__ = ["Factors", "factor_side_by_side"]

Array = np.ndarray[Any, Any]

_SUBSTITUTIONS: dict[tuple[str, str], tuple[tuple[str, bool, str, str, str, str], ...]] = {
    ("cholesky", "N"): (("forward", False, "L", "N", "N", "N"), ("backward", False, "L", "H", "N", "H")),
    ("ldl", "N"): (
        ("forward", False, "L", "N", "U", "N"), ("blocks", False, "", "", "", ""),
        ("backward", False, "L", "H", "U", "H"),
    ),
    ("lu", "N"): (("forward", False, "L", "N", "U", "N"), ("backward", True, "U", "N", "N", "T")),
    ("lu", "T"): (("forward", True, "U", "T", "N", "N"), ("backward", False, "L", "T", "U", "T")),
}  # fmt: skip
"""Steps: the kernel, whether the rows below are in the second panel, uplo, trans, diag of the triangle, trans below."""
PIVOTS = {"cholesky": (2**40, 96), "ldl": (48, 48), "lu": (32, 48)}
"""Pivots of a block, where a front is done by one thread and where by all."""
MORE = 1.6
"""Memory for delayed columns, where there are more than there was room for."""
STACKS = 2**26
"""Bytes of updates of the matrices that are factored side by side."""


class Factors:
    """Factors of a matrix whose rows and columns are ordered alike; `factor` computes them, again for each values.

    entries : where the matrix's values go
    """

    layout: Layout

    def __init__(self, symbolic: Symbolic, kind: str, scalar: str, entries: Entries) -> None:
        self.symbolic, self.kind, self.scalar, self.entries = symbolic, kind, scalar, entries
        self.dtype = numpy_dtype(scalar)
        self.panels = 2 if kind == "lu" else 1
        self.room = 1.0
        self.values = np.empty(0, self.dtype)
        count = len(symbolic.nodes.up)
        self.info = np.zeros(count, np.int32)
        self.panel_at, self.update_at, self.names_at = (np.zeros(count, np.int64) for _ in range(3))
        self.late = np.zeros(count, np.int64)
        self.width = np.diff(symbolic.nodes.first).astype(np.int64)

    def factor(self, values: Array, tiny: float = 0.0, step: Step | None = None) -> None:
        """The numeric phase; `tiny` is the size of pivots that are none. `step` is told of operations."""
        plan = self.symbolic.plan(ow.get_num_threads())
        kernels = front_kernels(self.kind, scalar_of(self.symbolic.order), self.scalar, scalar_of(values))
        while not self._factored(values, tiny, plan, kernels, step):
            self.room *= MORE

    def _factored(
        self, values: Array, tiny: float, plan: Plan, kernels: FrontKernels, step: Step | None
    ) -> bool:  # fmt: skip
        """Whether the columns that were delayed had room."""
        words, full, names = self._arguments(values, tiny, plan)
        few, many = PIVOTS[self.kind]
        whole = kernels.phases["whole"]
        packed = whole.pack([*words, few, *kernels.routines])
        with one_thread():
            parallel_private(whole, [packed] * len(plan.subtrees), plan.subtrees)
            told = self._told(plan, step)
            w, state = np.empty(words[-1], self.dtype), np.zeros(8, np.int64)
            shared: list[int] = []
            for lo, hi, wide in plan.rest:
                if full.any():
                    break
                if not wide:
                    whole.run_sized(self.values.size * 8, packed, lo, hi)
                    told(lo, hi)
                    continue
                shared = shared or kernels.phases["begin"].pack([*words, many, state, w, *kernels.routines])
                for front in range(lo, hi):
                    if not full.any():
                        self._front(front, state, shared, kernels.phases, full)
                        told(front, front + 1)
        return self._placed(full, names)

    def _placed(self, full: Array, names: list[Array]) -> bool:
        """Keep the layout of what the kernels computed; False where some region was full."""
        if full.any():
            return False
        if names:
            row_name, col_name = names[0], names[1] if self.kind == "lu" else None
            self.layout = pivoted(
                self.symbolic, self.panel_at, self.width, self.late, self.names_at, row_name, col_name
            )
        else:
            self.layout = static(self.symbolic, self.panel_at)
        return True

    def _told(self, plan: Plan, step: Step | None) -> Callable[[int, int], None]:
        """The function to call when a range of the fronts that are left is done, which tells of operations."""
        if step is None:
            return lambda lo, hi: None
        heights = self.width + np.diff(self.symbolic.row_pos)
        costs = self.width.astype(np.float64) * heights * heights
        total = int(costs.sum())
        done = total - int(sum(costs[lo:hi].sum() for lo, hi, _ in plan.rest))
        step(done, total)

        def told(lo: int, hi: int) -> None:
            nonlocal done
            done += int(costs[lo:hi].sum())
            step(min(done, total), total)

        return told

    def _arguments(self, values: Array, tiny: float, plan: Plan) -> tuple[list[Any], Array, list[Array]]:
        """Arguments of kernels, which of the regions are full, and the names of rows and columns."""
        s, e, nodes = self.symbolic, self.entries, self.symbolic.nodes
        base, limit, scratch = self._memory(plan)
        if len(self.values) != limit[-4]:
            self.values = np.empty(limit[-4], self.dtype)
        work = np.empty(limit[-2], self.dtype)
        names = [np.empty(limit[-1], s.order.dtype) for _ in range(2)] if self.kind != "cholesky" else []
        full = np.zeros(len(plan.subtrees) + 1, np.int64)
        self.info[:] = 0
        words: list[Any] = [
            nodes.first, nodes.up, s.row_pos, s.place, s.inside, nodes.head, nodes.next, plan.depth, plan.region,
            e.pos, e.source, e.target, e.turned, values, limit, base, full, self.late, self.width, self.names_at,
            self.panel_at, self.update_at, *(names or [np.empty(0, s.order.dtype)] * 2), self.info, self.values, work,
            tiny, scratch,
        ]  # fmt: skip
        return words, full, names

    def _memory(self, plan: Plan) -> tuple[Array, Array, int]:
        """Where the memory of each region begins and ends, four of each: panels, two stacks of updates, names."""
        s, regions = self.symbolic, len(plan.subtrees) + 1
        columns = np.diff(s.nodes.first).astype(np.int64)
        height = columns + np.diff(s.row_pos)
        sizes = np.zeros((regions, 4), np.int64)
        sizes[:, 0] = np.bincount(plan.region, s.sizes(self.panels), regions)
        sizes[:, 1:3] = plan.stacks.reshape(regions, 2)
        sizes[:, 3] = np.bincount(plan.region, columns, regions)
        widest = int((columns * height).max(initial=1))
        if self.room > 1:
            more = int(height.max(initial=0)) + 8
            sizes = (self.room * sizes).astype(np.int64) + more * np.array([more, more, more, 1])
            widest = int(self.room * widest) + more * more
        ends = np.concatenate([np.zeros((1, 4), np.int64), np.cumsum(sizes, axis=0)])
        ends[:, 2] += ends[-1, 1]
        return ends[:-1].reshape(-1).copy(), ends[1:].reshape(-1).copy(), 1 if self.kind == "cholesky" else widest

    def _front(self, front: int, state: Array, words: list[int], phases: dict[str, Any], full: Array) -> None:
        """One front on all threads."""
        state[0] = front
        rows = int(np.diff(self.symbolic.row_pos[front : front + 2])[0])
        phases["begin"].run(words)
        if full[0]:
            return
        more = 1
        while more:
            phases["block"].run(words)
            k, m, j, more = (int(state[i]) for i in (1, 2, 6, 7))
            if self.kind == "cholesky":
                _strips(phases["below"], words, m - j)
            _strips(phases["trailing"], words, k - j)
        phases["finish"].run(words)
        if not full[0]:
            _strips(phases["update"], words, rows)
            phases["close"].run(words)

    @property
    def failed(self) -> int | None:
        """The first column, in the order of elimination, whose pivot Cholesky's factorisation found not positive."""
        (bad,) = np.nonzero(self.info)
        if self.kind != "cholesky" or not bad.size:
            return None
        return int(self.symbolic.nodes.first[bad[0]] + self.info[bad[0]] - 1)

    @property
    def replaced(self) -> int:
        """How many pivots were too small, and replaced."""
        return 0 if self.kind == "cholesky" else int(self.info.sum())

    @property
    def delayed(self) -> int:
        """How often a column was handed to a parent."""
        return int(self.late.sum())

    def solve(self, right: Array, trans: str = "N") -> Array:
        """Solutions of right sides (n,) or, by columns, (n, c), in the pivots' order; in place."""
        symmetric = self.kind != "lu"
        conjugated = self.dtype.kind == "c" and trans == ("T" if symmetric else "H")
        if conjugated:
            np.conjugate(right, out=right)
        for step in _SUBSTITUTIONS[self.kind, "N" if symmetric or trans == "N" else "T"]:
            self._substitute(right, *step)
        return np.conjugate(right, out=right) if conjugated else right

    def _substitute(
        self, x: Array, step: str, second: bool, uplo: str, op: str, diag: str, below: str
    ) -> None:  # fmt: skip
        s = self.layout
        n, c, count = s.n, 1 if x.ndim == 1 else x.shape[1], len(s.width)
        executable, routines = substitution_kernel(step, scalar_of(s.first), self.scalar, c == 1)
        if step == "blocks":
            words = [s.first, s.panel_at, s.row_pos, self.values, x.reshape(-1, order="F"), n, c, count]
        else:
            adjoint = {"H": "C" if self.dtype.kind == "c" else "T"}
            letters = [ord(adjoint.get(w, w)) for w in (uplo, op, diag, below)]
            side_at = s.side_at if second else s.panel_at + s.width
            words = [
                s.first, s.row_pos, s.cols if second else s.rows, s.panel_at, side_at, self.values,
                x.reshape(-1, order="F"), n, c, count, int(s.below.max(initial=0)), int(second), *letters, *routines,
            ]  # fmt: skip
        with one_thread():
            executable.run_sized(self.values.size * c, executable.pack(words))

    def diagonal(self, panels: Array | None = None) -> Array:
        """The diagonal of the triangular factor that has one other than ones, or of D, in the pivots' order.

        panels : others of the same structure
        """
        out: Array = (self.values if panels is None else panels)[self.layout.diagonal_at()]
        return out

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinant of the ordered matrix, its rows in pivots' order.

        That of LU is without the sign of its exchanges.
        """
        d = self.diagonal()
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "cholesky":
                return self.dtype.type(1), 2 * np.log(d.real).sum()
            if self.kind == "ldl":
                column, at = self.layout.beside_at()
                beside = self.values[at]
                paired, beside = column[beside != 0], beside[beside != 0]
                d[paired] = d[paired] * d[paired + 1] - np.abs(beside) ** 2
                d[paired + 1] = 1
            size = np.abs(d)
            return self.dtype.type(np.prod(d / size)), np.log(size).sum()


def factor_side_by_side(many: Sequence[Factors], values: Sequence[Array], tiny: Sequence[float]) -> None:
    """The numeric phases of matrices of one structure and kind, each by one thread, those of all threads at once."""
    symbolic, kind = many[0].symbolic, many[0].kind
    plan, threads = symbolic.plan(1), ow.get_num_threads()
    kernels = front_kernels(kind, scalar_of(symbolic.order), many[0].scalar, scalar_of(values[0]))
    whole, (few, _) = kernels.phases["whole"], PIVOTS[kind]
    at_once = max(threads, STACKS // max(plan.work * many[0].dtype.itemsize, 1))
    left = list(range(len(many)))
    while left:
        now, left = left[:at_once], left[at_once:]
        begun = [many[k]._arguments(values[k], tiny[k], plan) for k in now]
        packed = [whole.pack([*words, few, *kernels.routines]) for words, _, _ in begun]
        with one_thread():
            for lo, hi in plan.subtrees:
                parallel_private(whole, packed, [(lo, hi)] * len(now))
        for k, (_, full, names) in zip(now, begun, strict=True):
            if not many[k]._placed(full, names):
                many[k].room *= MORE
                left.append(k)


def _strips(executable: Any, words: list[int], extent: int) -> None:
    if extent > 0:
        parallel(executable, words, range((extent + STRIP - 1) // STRIP + 1))

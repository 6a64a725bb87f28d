"""The symbolic phase and the values of a matrix -> its factors: numeric phase, solutions, determinant."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from ...codegen import pool
from ...storage.buffers import numpy_dtype, scalar_of
from .blas import one_thread
from .fronts import REALS, factor_kernel
from .substitution import substitution_kernel
from .symbolic import Entries, Symbolic

__all__ = ["Factors"]

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


class Factors:
    """Factors of a matrix whose rows and columns are ordered alike; `factor` computes them, again for each values.

    entries : where the matrix's values go
    """

    def __init__(self, symbolic: Symbolic, kind: str, scalar: str, entries: Entries) -> None:
        self.symbolic, self.kind, self.scalar, self.entries = symbolic, kind, scalar, entries
        self.dtype = numpy_dtype(scalar)
        panels = 2 if kind == "lu" else 1
        self.values = np.empty(panels * symbolic.stored, self.dtype)
        count = len(symbolic.nodes.up)
        self.info = np.zeros(count, np.int32)
        with_pivots = kind != "cholesky"
        self.pivots = np.zeros(symbolic.n if with_pivots else 1, np.int32)
        self.sub = np.zeros(symbolic.n if kind == "ldl" else 1, self.dtype)

    def factor(self, values: Array, tiny: float = 0.0) -> None:
        """The numeric phase; `tiny` is what smaller pivots are replaced by."""
        s, e = self.symbolic, self.entries
        threads = pool.get_num_threads()
        plan = s.plan(threads)
        executable, routines = factor_kernel(self.kind, scalar_of(s.order), self.scalar, scalar_of(values))
        work = np.empty(plan.work, self.dtype)
        nodes = s.nodes
        words: list[Any] = [
            nodes.first, s.row_pos, s.place, s.inside, nodes.head, nodes.next, s.panel_at, plan.update_at, e.pos,
            e.source, e.target, e.turned, values, self.values, work, self.info,
        ]  # fmt: skip
        width, below = np.diff(nodes.first).astype(np.int64), nodes.below.astype(np.int64)
        if self.kind == "ldl":
            widest, largest = int(width.max(initial=1)), int((width * below).max(initial=1))
            words += [self.pivots, self.sub, tiny, widest, largest]
        elif self.kind == "lu":
            words += [self.pivots, tiny, s.stored]
        packed = executable.pack([*words, *routines])
        with one_thread():
            pool.parallel_private(executable, [packed] * len(plan.subtrees), plan.subtrees)
        for lo, hi, wide in plan.rest:
            with nullcontext() if wide else one_thread():
                executable.run_sized(s.stored * 8, packed, lo, hi)

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

    def solve(self, right: Array, trans: str = "N") -> Array:
        """Solutions of right sides (n,) or, by columns, (n, c), in the order of elimination; in place."""
        symmetric = self.kind != "lu"
        conjugated = self.scalar in REALS and trans == ("T" if symmetric else "H")
        if conjugated:
            np.conjugate(right, out=right)
        for step in _SUBSTITUTIONS[self.kind, "N" if symmetric or trans == "N" else "T"]:
            self._substitute(right, *step)
        return np.conjugate(right, out=right) if conjugated else right

    def _substitute(
        self, x: Array, step: str, second: bool, uplo: str, op: str, diag: str, below: str
    ) -> None:  # fmt: skip
        s = self.symbolic
        n, c, count = s.n, 1 if x.ndim == 1 else x.shape[1], len(s.nodes.up)
        executable, routines = substitution_kernel(step, scalar_of(s.order), self.scalar, c == 1)
        if step == "blocks":
            words = [s.nodes.first, s.panel_at, s.row_pos, self.values, self.sub, x.reshape(-1, order="F"), n, c, count]
        else:
            adjoint = {"H": "C" if self.scalar in REALS else "T"}
            letters = [ord(adjoint.get(w, w)) for w in (uplo, op, diag, below)]
            words = [
                s.nodes.first, s.row_pos, s.rows, s.panel_at, self.values, self.pivots, x.reshape(-1, order="F"), n, c,
                count, int(s.nodes.below.max(initial=0)), int(self.kind != "cholesky" and uplo == "L"),
                s.stored if second else 0, *letters, *routines,
            ]  # fmt: skip
        with one_thread():
            executable.run_sized(s.stored * c, executable.pack(words))

    def diagonal(self, panels: Array | None = None) -> Array:
        """The diagonal of the triangular factor that has one other than ones, or of D, in the order of elimination.

        panels : others of the same structure
        """
        s = self.symbolic
        owner = s.owner
        column = np.arange(s.n) - s.nodes.first[owner]
        height = (np.diff(s.nodes.first) + s.nodes.below).astype(np.int64)
        out: Array = (self.values if panels is None else panels)[s.panel_at[owner] + column * (height[owner] + 1)]
        return out

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinant of the ordered matrix."""
        d = self.diagonal()
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "cholesky":
                return self.dtype.type(1), 2 * np.log(d.real).sum()
            (paired,) = np.nonzero(self.sub) if self.kind == "ldl" else (np.zeros(0, int),)
            if paired.size:
                d[paired] = d[paired] * d[paired + 1] - np.abs(self.sub[paired]) ** 2
                d[paired + 1] = 1
            size = np.abs(d)
            sign = np.prod(d / size)
            if self.kind == "lu":
                column = np.arange(self.symbolic.n) - self.symbolic.nodes.first[self.symbolic.owner]
                sign = sign * (-1) ** (np.count_nonzero(self.pivots - 1 != column) % 2)
            return self.dtype.type(sign), np.log(size).sum()

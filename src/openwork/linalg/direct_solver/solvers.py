"""Compressed rows -> a factorisation of one kind, with its order and scales: numeric phase, solutions, determinant."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import openwork as ow

from ...progress import Passes
from ...storage.buffers import numpy_dtype
from .factors import Factors, factor_side_by_side
from .graph import adjacency
from .ordering import METHODS, order_of
from .selected_inverse import selected_inverse
from .symbolic import Symbolic, analyse
from .systems import Rows, coordinates, equilibrated, transversal

__all__ = ["Multifrontal", "factor_all", "symbolic_phase"]

Array = np.ndarray[Any, Any]

DISSECT_FROM = 4e4
"""Operations for each row from which nested dissection is tried beside minimum degree: what it takes is regained."""


class Scales(NamedTuple):
    """Scales of rows and columns, and the row that each column has on the diagonal."""

    row: Array
    col: Array
    match: Array | None


def symbolic_phase(rows: Rows, match: Array | None, ordering: Any) -> Symbolic:
    """The symbolic phase of the structure of A + A.T, the rows exchanged first.

    ordering : a name of `METHODS`, "auto", or the order itself
    """
    pos, crd = rows.pos, rows.crd
    if match is not None:
        many = np.diff(pos)[match]
        start = np.concatenate([np.zeros(1, pos.dtype), np.cumsum(many, dtype=pos.dtype)])
        place = np.arange(start[-1]) + np.repeat(pos[:-1][match] - start[:-1], many)
        pos, crd = start, crd[place]
    graph = adjacency(pos, crd)
    if not isinstance(ordering, str):
        return analyse(graph, np.asarray(ordering), "given")
    if ordering == "colamd":
        return analyse(graph, order_of(rows.graph, rows.n, "colamd"), ordering)
    if ordering != "auto":
        return analyse(graph, METHODS[ordering](graph), ordering)
    first = analyse(graph, METHODS["amd"](graph), "amd")
    if first.flops < DISSECT_FROM * rows.n:
        return first
    second = analyse(graph, METHODS["nd"](graph), "nd")
    return second if second.flops < first.flops else first


class Multifrontal:
    """Factors by supernodes of one kind, "cholesky", "ldl" or "lu": `factor` computes them, for any values."""

    def __init__(
        self, rows: Rows, kind: str, scalar: str, symbolic: Callable[[Array | None], Symbolic],
        passes: Passes | None = None,
    ) -> None:  # fmt: skip
        passes = passes or Passes()
        passes.begin(f"{kind}: symbolic phase")
        self._equilibrated: Array | None = None
        """The values whose scales `scales` has, until they are factored."""
        self.kind, self.scalar, self.n = kind, scalar, rows.n
        self.scales = None if kind == "cholesky" else self._scales(rows)
        match = self.scales.match if self.scales is not None else None
        self.symbolic = symbolic(match)
        row, col = coordinates(rows)
        self.row, self.col = row, col
        if match is not None:
            place = np.empty_like(match)
            place[match] = np.arange(self.n, dtype=match.dtype)
            row = place[row]
        self.factors = Factors(self.symbolic, kind, scalar, self.symbolic.entries(row, col, 2 if kind == "lu" else 1))

    def _scales(self, rows: Rows) -> Scales:
        r, c = equilibrated(rows, self.kind == "ldl")
        self._equilibrated = rows.values
        return Scales(r, c, transversal(rows, r, c) if self.kind == "lu" else None)

    @property
    def nse(self) -> int:
        """Elements of the factors."""
        count = self.symbolic.nse
        if self.factors.delayed:
            layout = self.factors.layout
            count = int((layout.width * (layout.width + 1) // 2 + layout.width * layout.below).sum())
        return count * (2 if self.kind == "lu" else 1)

    def factor(self, rows: Rows, passes: Passes | None = None) -> None:
        """The numeric phase. Raises LinAlgError, with the row, where Cholesky's finds the matrix not definite."""
        values, tiny = self._scaled(rows)
        self.factors.factor(values, tiny, (passes or Passes()).begin(f"{self.kind}: numeric phase"))
        self.check()

    def another(self) -> Multifrontal:
        """One for other values of the structure, which shares all but its factors, and has none yet."""
        out = copy.copy(self)
        held = self.factors
        out.factors = Factors(held.symbolic, held.kind, held.scalar, held.entries)
        return out

    def _scaled(self, rows: Rows) -> tuple[Array, float]:
        """The values that are factored, and the size of pivots that are none."""
        values = rows.values
        tiny = 0.0
        if self.scales is not None:
            match = self.scales.match
            if match is None and values is not self._equilibrated:
                r, c = equilibrated(rows, self.kind == "ldl")
                self.scales = Scales(r, c, None)
            self._equilibrated = None
            values = values * (self.scales.row[self.row] * self.scales.col[self.col]).astype(values.real.dtype)
            tiny = float(np.finfo(numpy_dtype(self.scalar)).eps) * float(np.abs(values).max(initial=0.0))
        return values, tiny

    def check(self) -> None:
        """Raise LinAlgError, with the row, where Cholesky's factorisation found the matrix not definite."""
        failed = self.factors.failed
        if failed is not None:
            row = int(self.symbolic.order[failed])
            raise np.linalg.LinAlgError(
                f"the matrix is not positive definite: the pivot of row {row} is not positive"
                "\n  help: kind='ldl' takes indefinite matrices, kind='auto' finds out"
            )

    @property
    def replaced(self) -> int:
        """How many pivots were too small, and replaced."""
        return self.factors.replaced

    def suspect(self) -> int:
        """The row of the first pivot that was replaced, else of the smallest."""
        layout, d = self.factors.layout, np.abs(self.factors.diagonal())
        if self.kind == "ldl":  # the diagonal of a block of two rows may be 0
            column, at = layout.beside_at()
            paired = column[self.factors.values[at] != 0]
            d[paired] = d[paired + 1] = np.inf
        (bad,) = np.nonzero(self.factors.info)
        lo, hi = 0, self.n
        if bad.size:
            hi = int(layout.first[bad[0] + 1])
            lo = hi - int(layout.width[bad[0]])
        return int(self._places()[0][lo + np.argmin(d[lo:hi])])

    def _places(self) -> tuple[Array, Array]:
        """The row and the column of each pivot."""
        layout, order = self.factors.layout, self.symbolic.order
        row = order if layout.row_order is None else order[layout.row_order]
        col = order if layout.col_order is None else order[layout.col_order]
        match = self.scales.match if self.scales is not None else None
        return row if match is None else match[row], col

    def solve(self, right: Array, trans: str) -> Array:
        """Solutions of right sides (n, c) with the rows, their transpose or adjoint; a new array."""
        enter, leave = self._places()
        before: Array | None = None
        after: Array | None = None
        if self.scales is not None:
            before, after, _ = self.scales
        if trans != "N":
            before, after, enter, leave = after, before, leave, enter
        real = self.factors.dtype.type(0).real.dtype
        x = right if before is None else right * before[:, None].astype(real)
        x = np.asfortranarray(x[enter], self.factors.dtype)
        x = self.factors.solve(x[:, 0].copy() if x.shape[1] == 1 else x, trans).reshape(right.shape, order="F")
        out = np.empty(right.shape, x.dtype)
        out[leave] = x
        if after is not None:
            out *= after[:, None].astype(real)
        return out

    def inverse(self) -> tuple[Array, Array]:
        """The diagonal of the inverse, and its elements where the rows have some. Of "cholesky" and "ldl"."""
        found = selected_inverse(self.factors)
        diagonal, elements = found.diagonal(), found.at(self.row, self.col)
        if self.scales is not None:
            scale = self.scales.row
            diagonal = diagonal * (scale * scale)
            elements = elements * (scale[self.row] * scale[self.col])
        return diagonal.astype(self.factors.dtype), elements.astype(self.factors.dtype)

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinant."""
        sign, size = self.factors.slogdet()
        if self.scales is not None:
            size = size - np.log(self.scales.row).sum() - np.log(self.scales.col).sum()
        if self.kind == "lu":
            row, col = self._places()
            permutation = np.empty_like(row)
            permutation[col] = row
            sign = sign * parity(permutation)
        return sign, size


def factor_all(solvers: Sequence[Multifrontal], rows: Sequence[Rows]) -> None:
    """The numeric phases of matrices of one structure, side by side where there are as many as threads.

    What fails is found by `check` of each.
    """
    scaled = [solver._scaled(r) for solver, r in zip(solvers, rows, strict=True)]
    if len(solvers) < ow.get_num_threads():
        for solver, (values, tiny) in zip(solvers, scaled, strict=True):
            solver.factors.factor(values, tiny)
    elif solvers:
        factor_side_by_side([s.factors for s in solvers], *zip(*scaled, strict=True))


def parity(permutation: Array) -> int:
    """1 for an even permutation, -1 for an odd one."""
    unvisited, sign = np.ones(len(permutation), bool), 1
    order = permutation.tolist()
    for start in range(len(order)):
        k, length = start, 0
        while unvisited[k]:
            unvisited[k] = False
            k, length = order[k], length + 1
        sign = -sign if length and length % 2 == 0 else sign
    return sign

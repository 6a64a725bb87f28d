"""Cholesky's factors of A and a vector w -> those of A + alpha w w^H, in place, along one path of the elimination tree.

Source: T. A. Davis, W. W. Hager, "Modifying a sparse Cholesky factorization", SIAM J. Matrix Anal. Appl. 20 (1999).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, UnsupportedError
from ..storage.buffers import as_array
from ..storage.recorded import refuse_recorded
from ..storage.specified import coordinates
from .compiled import run
from .direct_solver.factors import Factors
from .direct_solver.solvers import Multifrontal
from .direct_solver.systems import coordinates as places
from .operands import dense

__all__ = ["add_outer"]

Array = np.ndarray[Any, Any]

_RANK_ONE = """
def rank_one(first: I[const], up: I[const], row_pos: i64[const], rows: I[const], panel_at: i64[const], factor: T[mut],
             w: T[mut], sign: R, start: i64):
    s: i64 = start + 0
    while s >= 0:
        f = i64(first[s])
        k = i64(first[s + 1]) - f
        q = row_pos[s]
        r = row_pos[s + 1] - q
        for j in range(0, k):
            x = w[f + j]
            at = panel_at[s] + j * (k + r)
            if x != T(0.0):
                d = REAL(factor[at + j])
                new = sqrt(d * d + sign * abs(x) * abs(x))
                c = T(new / d)
                ratio = x / T(d)
                factor[at + j] = T(new)
                for i in range(j + 1, k):
                    old = factor[at + i]
                    factor[at + i] = (old + T(sign) * CONJ(ratio) * w[f + i]) / c
                    w[f + i] = (w[f + i] - ratio * old) / c
                for i in range(0, r): # novector
                    below = factor[at + k + i]
                    factor[at + k + i] = (below + T(sign) * CONJ(ratio) * w[rows[q + i]]) / c
                    w[rows[q + i]] = (w[rows[q + i]] - ratio * below) / c
        s = i64(up[s])
"""


def _added(factors: Factors, w: Array, sign: float) -> int | None:
    """Factors of the matrix plus sign w w^H; the first column, in the order of elimination, where it is not definite.

    w : in that order; its elements are beside each other in the structure
    Where a column is returned nothing is changed.
    """
    s, nodes = factors.symbolic, factors.symbolic.nodes
    (used,) = np.nonzero(w)
    if not len(used):
        return None
    w = w.astype(factors.dtype)
    if sign < 0:
        p = w.copy()
        factors._substitute(p, "forward", False, "L", "N", "N", "N")
        (beyond,) = np.nonzero(np.cumsum(np.abs(p.astype(np.complex128)) ** 2) >= 1 - 8 * np.finfo(w.dtype).eps)
        if len(beyond):
            return int(beyond[0])
    start = int(s.owner[used[0]])
    words = [nodes.first, nodes.up, s.row_pos, s.rows, factors.panel_at, factors.values, w, sign, start]
    run(_RANK_ONE, factors.values.size, words, I=s.order, T=factors.scalar)
    return None


def add_outer(factorization: Any, w: Any, alpha: float) -> None:
    """`Factorization.add_outer`."""
    solver, t, n = factorization._factors, factorization._tensor, factorization.shape[0]
    if not isinstance(solver, Multifrontal) or solver.kind != "cholesky" or solver.scalar != factorization.scalar:
        raise UnsupportedError("add_outer: the factors are not Cholesky's\n  help: factorized(A, 'cholesky')")
    refuse_recorded(t.values)
    vector = dense(w)
    if vector.shape != (n,) or (np.iscomplexobj(vector) and factorization.scalar[0] != "c"):
        raise ShapeError(f"add_outer: expected a vector ({n},) of {factorization.dtype}; got {vector.shape}")
    vector = vector.astype(factorization.dtype)
    used = vector != 0
    row, col = places(factorization._rows)
    if np.count_nonzero(used[row] & used[col]) < np.count_nonzero(used) ** 2:
        raise ShapeError(
            "add_outer: the matrix does not store all elements of w w^H\n  help: store them, zeros, or update(values)"
        )
    scaled = vector * np.sqrt(abs(alpha))
    ordered = scaled[solver.symbolic.order]
    ordered = np.conj(ordered) if factorization._rows.turned else ordered
    failed = _added(solver.factors, ordered, 1.0 if alpha >= 0 else -1.0)
    if failed is not None:
        raise np.linalg.LinAlgError(
            f"add_outer: the sum is not positive definite: the pivot of row {int(solver.symbolic.order[failed])} is not"
            " positive\n  help: the factors are as before"
        )
    crd, positions = coordinates(t._storage)
    values = np.array(as_array(t.values, like=vector), dtype=np.result_type(t.values, vector))
    np.add.at(values.reshape(-1), positions, alpha * vector[crd[0]] * np.conj(vector[crd[1]]))
    factorization._take(t.with_values(as_array(values, like=t.values)))

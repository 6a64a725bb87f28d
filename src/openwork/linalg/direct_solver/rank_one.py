"""Cholesky's factors of A and a vector w -> those of A + sign w w^H, in place, along one path of the elimination tree.

Source: T. A. Davis, W. W. Hager, "Modifying a sparse Cholesky factorization", SIAM J. Matrix Anal. Appl. 20 (1999).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import run
from .factors import Factors

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


def add_outer(factors: Factors, w: Array, sign: float) -> int | None:
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

"""Factors L D L^H -> the elements of the inverse in the structure of the factor, without the rest of it.

Supernodes are visited from the roots to the leaves. With the inverse at the rows below, Z_RR, which is part of what the
parent has, and X = L21 L11^-1:

    Z21 = -Z_RR X        Z11 = L11^-H D^-1 L11^-1 - X^H Z21

Source: K. Takahashi, J. Fagan, M. Chin, "Formation of a sparse bus impedance matrix" (1973); L. Lin et al., "SelInv",
ACM TOMS 37 (2011).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import run
from .blas import blas_kernel, one_thread
from .factors import Factors
from .layout import Layout

__all__ = ["SelectedInverse", "selected_inverse"]

Array = np.ndarray[Any, Any]

_CHAIN = """
def chain(up: I[const], first: I[const], row_pos: i64[const], at: i64[mut], count: i64):
    # the fronts from a root to a supernode, one after the other: at[count] is the room for the longest
    at[count] = 0
    for t in range(0, count):
        s = count - 1 - t
        m = i64(first[s + 1]) - i64(first[s]) + row_pos[s + 1] - row_pos[s]
        at[s] = 0
        if up[s] >= 0:
            p = i64(up[s])
            mp = i64(first[p + 1]) - i64(first[p]) + row_pos[p + 1] - row_pos[p]
            at[s] = at[p] + mp * mp
        at[count] = max(at[count], at[s] + m * m)
"""

_TEXT = """
def selected_inverse(first: I[const], up: I[const], row_pos: i64[const], place: I[const], panel_at: i64[const],
                     factor: T[const], at: i64[const], z: T[mut], out: T[mut],
                     count: i64, widest: i64, largest: i64, trsm: i64, gemm: i64):
    b: T[widest * widest] = empty
    y: T[widest * widest] = empty
    x: T[largest] = empty
    for t in range(0, count):
        s = count - 1 - t
        f = i64(first[s])
        k = i64(first[s + 1]) - f
        q = row_pos[s]
        r = row_pos[s + 1] - q
        m = k + r
        edge = max(k, 1)
        panel = panel_at[s]
        front = at[s]
        if r > 0:
            p = i64(up[s])
            mp = i64(first[p + 1]) - i64(first[p]) + row_pos[p + 1] - row_pos[p]
            for j in range(0, r):
                above = at[p] + i64(place[q + j]) * mp
                for i in range(0, r): # novector
                    z[front + (k + j) * m + k + i] = z[above + place[q + i]]
        for e in range(0, k * k):
            b[e] = T(0.0)
        for j in range(0, k):
            b[j * k + j] = T(1.0)
        call(trsm, LEFT, LOWER, PLAIN, DIAGONAL, i32(k), i32(k), T(1.0), factor[panel], i32(m), b[0], i32(edge))
        for e in range(0, k * k):
            y[e] = b[e]
        DIVIDE
        call(gemm, ADJOINT, PLAIN, i32(k), i32(k), i32(k), T(1.0), b[0], i32(edge), y[0], i32(edge), T(0.0), z[front],
             i32(m))
        if r > 0:
            call(gemm, PLAIN, PLAIN, i32(r), i32(k), i32(k), T(1.0), factor[panel + k], i32(m), b[0], i32(edge), T(0.0),
                 x[0], i32(r))
            call(gemm, PLAIN, PLAIN, i32(r), i32(k), i32(r), T(-1.0), z[front + k * m + k], i32(m), x[0], i32(r),
                 T(0.0), z[front + k], i32(m))
            call(gemm, ADJOINT, PLAIN, i32(k), i32(k), i32(r), T(-1.0), x[0], i32(r), z[front + k], i32(m), T(1.0),
                 z[front], i32(m))
        for j in range(0, k):
            for i in range(0, r):
                z[front + (k + i) * m + j] = CONJ(z[front + j * m + k + i])
            for i in range(0, m):
                out[panel + j * m + i] = z[front + j * m + i]
"""

_DIVIDE = """
o: i64 = 0
while o < k:
    d = factor[panel + o * m + o]
    e: T = T(0.0)
    if o + 1 < k:
        e = factor[panel + (o + 1) * m + o]
    if e == T(0.0):
        for c in range(0, k):
            y[c * k + o] = y[c * k + o] / d
        o += 1
    else:
        u = d / CONJ(e)
        v = factor[panel + (o + 1) * m + o + 1] / e
        w = u * v - T(1.0)
        for c in range(0, k):
            g = y[c * k + o] / CONJ(e)
            h = y[c * k + o + 1] / e
            y[c * k + o] = (v * g - h) / w
            y[c * k + o + 1] = (u * h - g) / w
        o += 2
"""


class SelectedInverse:
    """The inverse of an ordered matrix in the panels of its factor."""

    def __init__(self, factors: Factors, values: Array) -> None:
        self.factors, self.values = factors, values

    def diagonal(self) -> Array:
        """Its diagonal, in the order of the matrix."""
        layout = self.factors.layout
        out = np.empty(layout.n, self.values.dtype)
        out[_order(layout)] = self.factors.diagonal(self.values)
        return out

    def at(self, row: Array, col: Array) -> Array:
        """Its elements at coordinates that the matrix stores."""
        layout = self.factors.layout
        place, turned = layout.places_of(layout.symbolic.rank[row], layout.symbolic.rank[col])
        found = self.values[place]
        return np.where(turned, np.conj(found), found)


def _order(layout: Layout) -> Array:
    order: Array = layout.symbolic.order
    return order if layout.row_order is None else order[layout.row_order]


def selected_inverse(factors: Factors) -> SelectedInverse:
    """The selected inverse of factors of kind "cholesky" or "ldl"."""
    s, scalar = factors.layout, factors.scalar
    count, up = len(s.width), s.symbolic.nodes.up
    at = np.zeros(count + 1, np.int64)
    run(_CHAIN, count, [up, s.first, s.row_pos, at, count], I=s.first)
    indefinite = factors.kind == "ldl"
    parts = {"DIVIDE": _DIVIDE if indefinite else "pass"}
    words = {"DIAGONAL": "UNIT" if indefinite else "NONUNIT"}
    executable, routines = blas_kernel(_TEXT, parts, words, ("trsm", "gemm"), scalar, I=s.first)
    out = np.empty(factors.values.size, factors.dtype)
    args = [
        s.first, up, s.row_pos, s.parent_places, s.panel_at, factors.values, at, np.empty(at[-1], factors.dtype), out,
        count, int(s.width.max(initial=1)), int((s.width * s.below).max(initial=1)), *routines,
    ]  # fmt: skip
    with one_thread():
        executable.run_sized(factors.values.size * 16, executable.pack(args))
    return SelectedInverse(factors, out)

"""Kernels that solve with the panels of a factor: forward over the supernodes, backward, and with blocks of D.

Right sides are columns, n x c, in the pivots' order. `side_at` says where the rows below are: in the panel, or, where
`second`, in that of U; letters (as BLAS's uplo, trans, diag) say which triangle and whether it is transposed.
"""

from __future__ import annotations

from typing import Any

from .blas import blas_kernel

__all__ = ["substitution_kernel"]

_HEAD = """
f = i64(first[s])
k = i64(first[s + 1]) - f
q = row_pos[s]
r = row_pos[s + 1] - q
m = k + r
panel = panel_at[s]
side = side_at[s]
height = m - second * k
"""

_PARAMETERS = """first: I[const], row_pos: i64[const], rows: I[const], panel_at: i64[const], side_at: i64[const],
        factor: T[const], x: T[mut], n: i64, c: i64, count: i64, tallest: i64, second: i64, uplo: i8, op: i8, diag: i8,
        below: i8, triangle: i64, rectangle: i64"""

_FORWARD = """
def forward(PARAMETERS):
    # supernodes whose right sides are zero are passed by: of sparse ones nearly all
    w: T[tallest * c] = empty
    for s in range(0, count):
        HEAD
        some: i64 = 0
        for b in range(0, c):
            for j in range(0, k):
                if x[b * n + f + j] != T(0.0):
                    some = 1
        if some == 1:
            TRIANGLE
        if some == 1 and r > 0:
            BELOW
            for b in range(0, c):
                for i in range(0, r): # novector
                    x[b * n + rows[q + i]] = x[b * n + rows[q + i]] - w[b * r + i]
"""

_BACKWARD = """
def backward(PARAMETERS):
    w: T[tallest * c] = empty
    for t in range(0, count):
        s = count - 1 - t
        HEAD
        if r > 0 and k > 0:
            for b in range(0, c):
                for i in range(0, r): # novector
                    w[b * r + i] = x[b * n + rows[q + i]]
            BELOW
        TRIANGLE
"""

_BLOCKS = """
def blocks(first: I[const], panel_at: i64[const], row_pos: i64[const], factor: T[const], x: T[mut], n: i64, c: i64,
           count: i64):
    for s in range(0, count):
        f = i64(first[s])
        k = i64(first[s + 1]) - f
        m = k + row_pos[s + 1] - row_pos[s]
        j: i64 = 0
        while j < k:
            d = factor[panel_at[s] + j * m + j]
            e: T = T(0.0)
            if j + 1 < k:
                e = factor[panel_at[s] + (j + 1) * m + j]
            if e == T(0.0):
                for b in range(0, c):
                    x[b * n + f + j] = x[b * n + f + j] / d
                j += 1
            else:
                u = d / CONJ(e)
                v = factor[panel_at[s] + (j + 1) * m + j + 1] / e
                t = u * v - T(1.0)
                for b in range(0, c):
                    y = x[b * n + f + j] / CONJ(e)
                    z = x[b * n + f + j + 1] / e
                    x[b * n + f + j] = (v * y - z) / t
                    x[b * n + f + j + 1] = (u * z - y) / t
                j += 2
"""
"""Blocks of two rows divided by their other element first, as LAPACK's sytrs does."""

_ONE = {
    "TRIANGLE": "call(triangle, uplo, op, diag, i32(k), factor[panel], i32(m), x[f], i32(1))",
    "forward": "call(rectangle, PLAIN, i32(r), i32(k), T(1.0), factor[side], i32(height), x[f], i32(1), T(0.0), "
    "w[0], i32(1))",
    "backward": "call(rectangle, below, i32(r), i32(k), T(-1.0), factor[side], i32(height), w[0], i32(1), "
    "T(1.0), x[f], i32(1))",
}
_MANY = {
    "TRIANGLE": "call(triangle, LEFT, uplo, op, diag, i32(k), i32(c), T(1.0), factor[panel], i32(m), x[f], i32(n))",
    "forward": "call(rectangle, PLAIN, PLAIN, i32(r), i32(c), i32(k), T(1.0), factor[side], "
    "i32(height), x[f], i32(n), T(0.0), w[0], i32(r))",
    "backward": "call(rectangle, below, PLAIN, i32(k), i32(c), i32(r), T(-1.0), factor[side], "
    "i32(height), w[0], i32(r), T(1.0), x[f], i32(n))",
}


def substitution_kernel(step: str, index: str, scalar: str, one: bool) -> tuple[Any, list[int]]:
    """The kernel "forward", "backward" or "blocks", of one right side or many, and addresses of its routines."""
    if step == "blocks":
        return blas_kernel(_BLOCKS, {}, {}, (), scalar, I=index)
    calls = _ONE if one else _MANY
    parts = {"HEAD": _HEAD, "TRIANGLE": calls["TRIANGLE"], "BELOW": calls[step]}
    text = _FORWARD if step == "forward" else _BACKWARD
    routines = ("trsv", "gemv") if one else ("trsm", "gemm")
    return blas_kernel(text, parts, {"PARAMETERS": _PARAMETERS}, routines, scalar, I=index)

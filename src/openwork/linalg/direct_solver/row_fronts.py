"""Kernels of the multifrontal QR factorisation: fronts of rows by Householder's reflections, and what solves with them.

The front of supernode s is m x (k + r) at factor[panel_at[s]], by columns: its own rows, those of the matrix whose
first column, in the order of elimination, is in s, and the rows that its children pass on. Reflections of its k
columns leave e <= k rows of R; those of the others make the rest upper trapezoidal, of which l rows go to the parent:

    columns 0 .. e        R11 above, the reflections' vectors below their diagonal
    columns e .. k        columns whose remainder is not above `tolerance`, zero below row e: they depend on the others
    columns k .. k + r    R12 above; below row e the rows that go to the parent, and vectors below their diagonal

A dependent column goes to the end of the k; `name` says which column of the supernode each is. The front stays where it
is: it is R and Q, and the parent reads the rows from it.

Source: T. A. Davis, "Algorithm 915, SuiteSparseQR: multifrontal multithreaded rank-revealing sparse QR factorization",
ACM TOMS 38 (2011); M. T. Heath, "Some extensions of an algorithm for sparse linear least squares problems", SIAM J.
Sci. Stat. Comput. 3 (1982).
"""

from __future__ import annotations

from typing import Any

from .blas import blas_kernel

__all__ = ["BLOCK", "HEIGHTS", "PLACES", "front_kernel", "room", "solution_kernel"]

BLOCK = 32
"""Reflections that are applied together."""
FEW = 4
"""Right sides to which reflections are applied one by one."""

HEIGHTS = """
def heights(up: I[const], first: I[const], row_pos: i64[const], height: i64[mut], count: i64, loose: i64):
    # height: of each its own rows -> the rows of its front; loose: as many as there can be with dependent columns
    for s in range(0, count):
        m = height[s]
        e: i64 = min(m, i64(first[s + 1]) - i64(first[s]))
        if loose > 0:
            e = 0
        if up[s] >= 0:
            height[up[s]] = height[up[s]] + min(m - e, row_pos[s + 1] - row_pos[s])
"""

PLACES = """
def places(home: I[const], col: I[const], first: I[const], row_pos: i64[const], rows: I[const], target: I[mut],
           count: i64):
    # the column of a front in which each element is
    for p in range(0, count):
        s = i64(home[p])
        f = i64(first[s])
        k = i64(first[s + 1]) - f
        if i64(col[p]) < f + k:
            target[p] = i64(col[p]) - f
        else:
            a: i64 = row_pos[s]
            b: i64 = row_pos[s + 1]
            while a < b:
                mid = (a + b) >> 1
                if rows[mid] < col[p]:
                    a = mid + 1
                else:
                    b = mid
            target[p] = k + a - row_pos[s]
"""

_HEAD = """
f = i64(first[s])
k = i64(first[s + 1]) - f
q0 = row_pos[s]
r = row_pos[s + 1] - q0
panel = panel_at[s]
at = f + q0
mine = own[s + 1] - own[s]
"""

_OPEN = """
m: i64 = mine + 0
born: i64 = i64(head[s])
while born >= 0:
    m += passed[born]
    born = i64(next[born])
if m > bound[s]:
    full[0] = 1
    return 0
height[s] = m
for z in range(0, m * (k + r)):
    factor[panel + z] = T(0.0)
for z in range(entry_pos[s], entry_pos[s + 1]):
    factor[panel + i64(entry_row[z]) + i64(entry_col[z]) * m] = T(values[source[z]])
off: i64 = mine + 0
c: i64 = i64(head[s])
while c >= 0:
    kc = i64(first[c + 1]) - i64(first[c])
    for t in range(0, row_pos[c + 1] - row_pos[c]):
        to = panel + off + i64(place[row_pos[c] + t]) * m
        from_ = panel_at[c] + live[c] + (kc + t) * height[c]
        for i in range(0, min(t + 1, passed[c])):
            factor[to + i] = factor[from_ + i]
    off += passed[c]
    c = i64(next[c])
for z in range(0, k):
    name[f + z] = z
"""

_COLUMNS = """
e: i64 = 0
end: i64 = k + 0
while e < end and e < m:
    b = e + 0
    last = min(b + nb, end)
    stop: i64 = last + 0
    while e < stop and e < m:
        top = panel + e * m + e
        call(larfg, i32(m - e), factor[top], factor[panel + e * m + min(e + 1, m - 1)], i32(1), tau[at + e])
        if abs(factor[top]) <= tolerance:
            for i in range(e, m):
                factor[panel + e * m + i] = T(0.0)
            stop = stop - 1
            this = e + 0
            other = stop + 0
            EXCHANGE
        else:
            if e + 1 < stop:
                beta = factor[top]
                factor[top] = T(1.0)
                call(larf, LEFT, i32(m - e), i32(stop - e - 1), factor[top], i32(1), CONJ(tau[at + e]),
                     factor[top + m], i32(m), w[0])
                factor[top] = beta
            e += 1
    if e > b and last < k + r:
        call(larft, FORWARD, COLUMNWISE, i32(m - b), i32(e - b), factor[panel + b * m + b], i32(m), tau[at + b],
             triangle[0], i32(nb))
        call(larfb, LEFT, ADJOINT, FORWARD, COLUMNWISE, i32(m - b), i32(k + r - last), i32(e - b),
             factor[panel + b * m + b], i32(m), triangle[0], i32(nb), factor[panel + last * m + b], i32(m), w[0],
             i32(k + r - last))
    for z in range(0, last - stop):
        end = end - 1
        this = last - 1 - z
        other = end + 0
        EXCHANGE
"""

_EXCHANGE = """
if this != other:
    for i in range(0, m):
        element = factor[panel + this * m + i]
        factor[panel + this * m + i] = factor[panel + other * m + i]
        factor[panel + other * m + i] = element
    title = name[f + this]
    name[f + this] = name[f + other]
    name[f + other] = title
"""

_FACTOR = """
def rows_by_reflections(lo: i64, hi: i64, first: I[const], row_pos: i64[const], place: I[const], head: I[const],
        next: I[const], own: i64[const], entry_pos: i64[const], source: i64[const], entry_row: I[const],
        entry_col: I[const], values: S[const], panel_at: i64[const], bound: i64[const], height: i64[mut],
        live: i64[mut], passed: i64[mut], name: I[mut], tau: T[mut], factor: T[mut], full: i64[mut], tolerance: R,
        work: i64, nb: i64, ADDRESSES):
    w: T[work] = empty
    triangle: T[nb * nb] = empty
    status: i32[1] = empty
    for s in range(lo, hi):
        HEAD
        OPEN
        COLUMNS
        l: i64 = 0
        if m > e and r > 0:
            l = min(m - e, r)
            call(geqrf, i32(m - e), i32(r), factor[panel + k * m + e], i32(m), tau[at + k], w[0], i32(work), status[0])
        live[s] = e
        passed[s] = l
"""

_PARAMETERS = """first: I[const], row_pos: i64[const], rows: I[const], head: I[const], next: I[const], own: i64[const],
        row_order: I[const], panel_at: i64[const], height: i64[const], live: i64[const], passed: i64[const],
        name: I[const], tau: T[const], factor: T[const], side_at: i64[const], y: T[mut], b: T[mut], x: T[mut],
        z: T[mut], many: i64, n: i64, c: i64, count: i64, work: i64, ADDRESSES"""

_REFLECTED = """
def reflected(PARAMETERS):
    # b, many x c -> z: the first rows of Q^H b, in the order of elimination
    w: T[work] = empty
    status: i32[1] = empty
    for s in range(0, count):
        HEAD
        m = height[s]
        e = live[s]
        side = side_at[s] * c
        for v in range(0, c):
            for i in range(0, mine): # novector
                y[side + v * m + i] = b[v * many + row_order[own[s] + i]]
        off: i64 = mine + 0
        g: i64 = i64(head[s])
        while g >= 0:
            for v in range(0, c):
                for i in range(0, passed[g]):
                    y[side + v * m + off + i] = y[side_at[g] * c + v * height[g] + live[g] + i]
            off += passed[g]
            g = i64(next[g])
        if e > 0:
            FIRST
        if passed[s] > 0:
            SECOND
        for v in range(0, c):
            for i in range(0, e):
                z[v * n + f + i] = y[side + v * m + i]
"""

_BACK = """
def reflected_back(PARAMETERS):
    # z -> b: Q z, many x c
    w: T[work] = empty
    status: i32[1] = empty
    for d in range(0, count):
        s = count - 1 - d
        HEAD
        m = height[s]
        e = live[s]
        side = side_at[s] * c
        for v in range(0, c):
            for i in range(0, e):
                y[side + v * m + i] = z[v * n + f + i]
            for i in range(e + passed[s], m):
                y[side + v * m + i] = T(0.0)
        if passed[s] > 0:
            SECOND
        if e > 0:
            FIRST
        for v in range(0, c):
            for i in range(0, mine): # novector
                b[v * many + row_order[own[s] + i]] = y[side + v * m + i]
        off: i64 = mine + 0
        g: i64 = i64(head[s])
        while g >= 0:
            for v in range(0, c):
                for i in range(0, passed[g]):
                    y[side_at[g] * c + v * height[g] + live[g] + i] = y[side + v * m + off + i]
            off += passed[g]
            g = i64(next[g])
"""

_UPPER = """
def upper(PARAMETERS):
    # z -> x: R x = z, 0 for dependent columns
    w: T[work] = empty
    for d in range(0, count):
        s = count - 1 - d
        HEAD
        m = height[s]
        e = live[s]
        if e > 0:
            if r > 0:
                for v in range(0, c):
                    for i in range(0, r): # novector
                        w[v * r + i] = x[v * n + rows[q0 + i]]
                call(gemm, PLAIN, PLAIN, i32(e), i32(c), i32(r), T(-1.0), factor[panel + k * m], i32(m), w[0], i32(r),
                     T(1.0), z[f], i32(n))
            call(trsm, LEFT, UPPER, PLAIN, NONUNIT, i32(e), i32(c), T(1.0), factor[panel], i32(m), z[f], i32(n))
        for v in range(0, c):
            for i in range(0, e): # novector
                x[v * n + f + name[f + i]] = z[v * n + f + i]
            for i in range(e, k): # novector
                x[v * n + f + name[f + i]] = T(0.0)
"""

_LOWER = """
def lower(PARAMETERS):
    # x -> z: R^H z = x
    w: T[work] = empty
    for s in range(0, count):
        HEAD
        m = height[s]
        e = live[s]
        for v in range(0, c):
            for i in range(0, e): # novector
                z[v * n + f + i] = x[v * n + f + name[f + i]]
        if e > 0:
            call(trsm, LEFT, UPPER, ADJOINT, NONUNIT, i32(e), i32(c), T(1.0), factor[panel], i32(m), z[f], i32(n))
            if r > 0:
                call(gemm, ADJOINT, PLAIN, i32(r), i32(c), i32(e), T(1.0), factor[panel + k * m], i32(m), z[f], i32(n),
                     T(0.0), w[0], i32(r))
                for v in range(0, c):
                    for i in range(0, r): # novector
                        x[v * n + rows[q0 + i]] = x[v * n + rows[q0 + i]] - w[v * r + i]
"""

_STEPS = {"reflected": _REFLECTED, "reflected_back": _BACK, "upper": _UPPER, "lower": _LOWER}
_ROUTINES = ("larfg", "larf", "larft", "larfb", "geqrf")


def room(c: int, tallest: int) -> int:
    """Elements of the workspace of a solution with c right sides, over fronts of so many columns."""
    return c * max(64, tallest) + 65 * 64


def front_kernel(index: str, scalar: str, stored: str) -> tuple[Any, list[int]]:
    """The kernel of the numeric phase, and the addresses of the routines that are its last parameters."""
    parts = {"HEAD": _HEAD, "OPEN": _OPEN, "COLUMNS": _COLUMNS, "EXCHANGE": _EXCHANGE}
    return blas_kernel(_FACTOR, parts, {}, _ROUTINES, scalar, I=index, S=stored)


def solution_kernel(step: str, index: str, scalar: str, c: int) -> tuple[Any, list[int]]:
    """The kernel "reflected", "reflected_back", "upper" or "lower" for c right sides, and addresses of its routines."""
    routines: tuple[str, ...] = ("gemm", "trsm")
    parts = {"HEAD": _HEAD}
    if step.startswith("reflected"):
        routines = ("unm2r",) if c <= FEW else ("unmqr",)
        length = "" if c <= FEW else "i32(work), "
        letter = "ADJOINT" if step == "reflected" else "PLAIN"
        for name, rows, many, from_, scale, to in (
            ("FIRST", "m", "e", "panel", "at", "side"),
            ("SECOND", "m - e", "passed[s]", "panel + k * m + e", "at + k", "side + e"),
        ):
            parts[name] = (
                f"call({routines[0]}, LEFT, {letter}, i32({rows}), i32(c), i32({many}), factor[{from_}], i32(m), "
                f"tau[{scale}], y[{to}], i32(m), w[0], {length}status[0])"
            )
    return blas_kernel(_STEPS[step], parts, {"PARAMETERS": _PARAMETERS}, routines, scalar, I=index)

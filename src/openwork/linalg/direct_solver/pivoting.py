"""A panel of a front -> its factors, for each kind: blocks of pivots, subtracted from other columns and rows.

Columns are taken in turn, brought up to date by the block's pivots, and eliminated where a pivot among the fully summed
rows is not below `THRESHOLD` of the largest element of its column, so that no element of L is above its inverse; ldl
takes a column with the one of its largest element, as a block of two rows, where that bound holds for both. A column
that has none waits; where all that are left wait, they are delayed to the parent. Among fully summed rows ldl asks for
`NEAR` of the largest first, which costs no delay, and less where there is none. Where a column is not above `tiny`,
or a root no pivot, that is replaced by `tiny`, and counted in `info`.

    b, j       the block's first pivot, and the next one
    x          a row of the block;  w of ldl: the columns of L D;  w of lu: a column

Source: I. S. Duff, J. K. Reid, "MA27" (1982); I. S. Duff, "MA57", ACM TOMS 30 (2004); J. D. Hogg, J. A. Scott,
"Pivoting strategies for tough sparse indefinite systems", ACM TOMS 40 (2013).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PIVOTING", "ROUTINES", "THRESHOLD"]

THRESHOLD, NEAR = 0.01, 0.5

_CHOLESKY = {
    "block": """
stop = min(b + nb, k)
call(potrf, LOWER, i32(stop - b), factor[panel + b * m + b], i32(m), status[0])
if status[0] != 0 and info[s] == 0:
    info[s] = status[0] + i32(b)
j = stop + 0
if j >= k:
    more = 0
""",
    "below": """
call(trsm, RIGHT, LOWER, ADJOINT, NONUNIT, i32(c1 - c0), i32(j - b), T(1.0), factor[panel + b * m + b], i32(m),
     factor[panel + b * m + j + c0], i32(m))
""",
    "trailing": """
call(gemm, PLAIN, ADJOINT, i32(m - j - c0), i32(c1 - c0), i32(j - b), T(-1.0), factor[panel + b * m + j + c0], i32(m),
     factor[panel + b * m + j + c0], i32(m), T(1.0), factor[panel + (j + c0) * m + j + c0], i32(m))
""",
    "update": """
call(herk, LOWER, PLAIN, i32(c1 - c0), i32(e), R(-1.0), factor[panel + k + c0], i32(m), R(0.0),
     work[update + c0 * mu + c0], i32(mu))
if c1 < r:
    call(gemm, PLAIN, ADJOINT, i32(r - c1), i32(c1 - c0), i32(e), T(-1.0), factor[panel + k + c1], i32(m),
         factor[panel + k + c0], i32(m), T(0.0), work[update + c0 * mu + c1], i32(mu))
""",
}

_COLUMN = """
for i in range(j, WHICH): # novector
    w[SLOT * m + i] = CONJ(factor[panel + i * m + WHICH])
for i in range(WHICH, m):
    w[SLOT * m + i] = factor[panel + WHICH * m + i]
if j > b:
    for v in range(b, j): # novector
        x[v - b] = CONJ(factor[panel + v * m + WHICH])
    call(gemv, PLAIN, i32(m - j), i32(j - b), T(-1.0), w[b * m + j], i32(m), x[0], i32(1), T(1.0), w[SLOT * m + j],
         i32(1))
"""

_EXCHANGE = """
if ONE != TWO:
    for v in range(0, ONE): # novector
        a1 = factor[panel + v * m + ONE]
        factor[panel + v * m + ONE] = factor[panel + v * m + TWO]
        factor[panel + v * m + TWO] = a1
    for v in range(b, j + done): # novector
        a2 = w[v * m + ONE]
        w[v * m + ONE] = w[v * m + TWO]
        w[v * m + TWO] = a2
    a3 = factor[panel + ONE * m + ONE]
    factor[panel + ONE * m + ONE] = factor[panel + TWO * m + TWO]
    factor[panel + TWO * m + TWO] = a3
    for v in range(ONE + 1, TWO): # novector
        a4 = factor[panel + ONE * m + v]
        factor[panel + ONE * m + v] = CONJ(factor[panel + v * m + TWO])
        factor[panel + v * m + TWO] = CONJ(a4)
    factor[panel + ONE * m + TWO] = CONJ(factor[panel + ONE * m + TWO])
    for v in range(TWO + 1, m):
        a5 = factor[panel + ONE * m + v]
        factor[panel + ONE * m + v] = factor[panel + TWO * m + v]
        factor[panel + TWO * m + v] = a5
    name = row_name[names + ONE]
    row_name[names + ONE] = row_name[names + TWO]
    row_name[names + TWO] = name
"""

_LDL = {
    "block": """
stop = min(b + nb, k)
q: i64 = max(j, delayed)
if q >= k:
    q = j + 0
fails: i64 = 0
near: R = R(NEAR)
while j < stop and fails < k - j:
    COLUMN_Q
    most: R = R(0.0)
    big: R = R(0.0)
    p: i64 = -1
    for i in range(j, k):
        if i != q and abs(w[j * m + i]) > most:
            most = abs(w[j * m + i])
            p = i + 0
    big = most + R(0.0)
    for i in range(k, m):
        big = max(big, abs(w[j * m + i]))
    d: R = REAL(w[j * m + q])
    done: i64 = 0
    if abs(d) > tiny and abs(d) >= R(LIMIT) * big and abs(d) >= near * most:
        done = 1
    elif most > tiny:
        COLUMN_P
        small: R = R(0.0)
        other: R = R(0.0)
        for i in range(j, k):
            if i != q and i != p:
                small = max(small, abs(w[j * m + i]))
                other = max(other, abs(w[(j + 1) * m + i]))
        low: R = R(0.0)
        far: R = R(0.0)
        for i in range(k, m):
            low = max(low, abs(w[j * m + i]))
            far = max(far, abs(w[(j + 1) * m + i]))
        g = REAL(w[(j + 1) * m + p])
        det = abs(d * (g / most) - most)
        inside_ = max(abs(g) / most * small + other, abs(d) / most * other + small)
        beyond = max(abs(g) / most * low + far, abs(d) / most * far + low)
        if det > R(0.001) * most and near * inside_ <= det and R(LIMIT) * beyond <= det:
            done = 2
    if done == 0:
        fails += 1
        if fails == k - j and near > R(LIMIT) and max(abs(d), big) > tiny:
            near = R(LIMIT)
            fails = 0
        elif max(abs(d), big) <= tiny or (fails == k - j and up[s] < 0):
            done = 1
            info[s] = info[s] + i32(1)
            if d < R(0.0):
                d = R(0.0) - tiny
            else:
                d = tiny + R(0.0)
            w[j * m + q] = T(d)
    if done > 0:
        EXCHANGE_Q
        if j > 0:
            factor[panel + j * m + j - 1] = T(0.0)
        fails = 0
    if done == 1:
        factor[panel + j * m + j] = T(d)
        for i in range(j + 1, m):
            factor[panel + j * m + i] = w[j * m + i] / T(d)
    if done == 2:
        partner: i64 = p + 0
        if p == j:
            partner = q + 0
        after = j + 1
        EXCHANGE_P
        e2 = w[j * m + j + 1]
        d1 = w[j * m + j]
        d2 = w[(j + 1) * m + j + 1]
        y2 = d1 / CONJ(e2)
        v2 = d2 / e2
        t2 = y2 * v2 - T(1.0)
        factor[panel + j * m + j] = T(REAL(d1))
        factor[panel + j * m + j + 1] = T(0.0)
        factor[panel + (j + 1) * m + j] = e2
        factor[panel + (j + 1) * m + j + 1] = T(REAL(d2))
        for i in range(j + 2, m):
            a6 = w[j * m + i]
            a7 = w[(j + 1) * m + i]
            factor[panel + j * m + i] = (a6 / CONJ(e2) * v2 - a7 / CONJ(e2)) / t2
            factor[panel + (j + 1) * m + i] = (a7 / e2 * y2 - a6 / e2) / t2
    j += done
    q = max(q + 1, j)
    if q >= k:
        q = j + 0
if j >= k or j < stop:
    more = 0
""",
    "parts": {
        "COLUMN_Q": _COLUMN.replace("WHICH", "q").replace("SLOT", "j"),
        "COLUMN_P": _COLUMN.replace("WHICH", "p").replace("SLOT", "(j + 1)"),
        "EXCHANGE_Q": _EXCHANGE.replace("ONE", "j").replace("TWO", "q"),
        "EXCHANGE_P": _EXCHANGE.replace("ONE", "after").replace("TWO", "partner"),
    },
    "below": "pass",
    "trailing": """
call(gemm, PLAIN, ADJOINT, i32(m - j - c0), i32(c1 - c0), i32(j - b), T(-1.0), factor[panel + b * m + j + c0], i32(m),
     w[b * m + j + c0], i32(m), T(1.0), factor[panel + (j + c0) * m + j + c0], i32(m))
""",
    "update": """
call(gemm, PLAIN, ADJOINT, i32(r - c0), i32(c1 - c0), i32(e), T(-1.0), factor[panel + k + c0], i32(m), w[k + c0],
     i32(m), T(0.0), work[update + (l + c0) * mu + l + c0], i32(mu))
""",
}

_LU = {
    "block": """
stop = min(b + nb, k)
q: i64 = max(j, delayed)
if q >= k:
    q = j + 0
fails: i64 = 0
while j < stop and fails < k - j:
    for i in range(b, m):
        w[i] = factor[panel + q * m + i]
    if j > b:
        call(trsv, LOWER, PLAIN, UNIT, i32(j - b), factor[panel + b * m + b], i32(m), w[b], i32(1))
        call(gemv, PLAIN, i32(m - j), i32(j - b), T(-1.0), factor[panel + b * m + j], i32(m), w[b], i32(1), T(1.0),
             w[j], i32(1))
    p: i64 = j + 0
    most: R = R(0.0)
    big: R = R(0.0)
    for i in range(j, k):
        if abs(w[i]) > most:
            most = abs(w[i])
            p = i + 0
    big = most + R(0.0)
    for i in range(k, m):
        big = max(big, abs(w[i]))
    done: i64 = 0
    if most > tiny and most >= R(LIMIT) * big:
        done = 1
    else:
        fails += 1
        if big <= tiny or (fails == k - j and up[s] < 0):
            done = 1
            info[s] = info[s] + i32(1)
            w[p] = T(tiny)
    if done == 1:
        if q != j:
            for i in range(0, b):
                a1 = factor[panel + q * m + i]
                factor[panel + q * m + i] = factor[panel + j * m + i]
                factor[panel + j * m + i] = a1
            for i in range(b, m):
                factor[panel + q * m + i] = factor[panel + j * m + i]
            name = col_name[names + q]
            col_name[names + q] = col_name[names + j]
            col_name[names + j] = name
        for i in range(b, m):
            factor[panel + j * m + i] = w[i]
        if p != j:
            for v in range(0, k): # novector
                a2 = factor[panel + v * m + p]
                factor[panel + v * m + p] = factor[panel + v * m + j]
                factor[panel + v * m + j] = a2
            for v in range(0, r):
                a3 = factor[panel + m * k + p * r + v]
                factor[panel + m * k + p * r + v] = factor[panel + m * k + j * r + v]
                factor[panel + m * k + j * r + v] = a3
            title = row_name[names + p]
            row_name[names + p] = row_name[names + j]
            row_name[names + j] = title
        pivot = factor[panel + j * m + j]
        for i in range(j + 1, m):
            factor[panel + j * m + i] = factor[panel + j * m + i] / pivot
        fails = 0
    j += done
    q = max(q + 1, j)
    if q >= k:
        q = j + 0
if j >= k or j < stop:
    more = 0
""",
    "parts": {},
    "below": "pass",
    "trailing": """
call(trsm, LEFT, LOWER, PLAIN, UNIT, i32(j - b), i32(c1 - c0), T(1.0), factor[panel + b * m + b], i32(m),
     factor[panel + (j + c0) * m + b], i32(m))
call(gemm, PLAIN, PLAIN, i32(m - j), i32(c1 - c0), i32(j - b), T(-1.0), factor[panel + b * m + j], i32(m),
     factor[panel + (j + c0) * m + b], i32(m), T(1.0), factor[panel + (j + c0) * m + j], i32(m))
""",
    "update": """
call(trsm, RIGHT, LOWER, TRANSPOSED, UNIT, i32(c1 - c0), i32(e), T(1.0), factor[panel], i32(m),
     factor[panel + m * k + c0], i32(r))
if l > 0:
    call(gemm, PLAIN, TRANSPOSED, i32(c1 - c0), i32(l), i32(e), T(-1.0), factor[panel + m * k + c0], i32(r),
         factor[panel + e], i32(m), T(1.0), factor[panel + m * k + e * r + c0], i32(r))
    for z in range(c0, c1):
        for t in range(0, l): # novector
            work[update + (l + z) * mu + t] = factor[panel + m * k + (e + t) * r + z]
call(gemm, PLAIN, TRANSPOSED, i32(r), i32(c1 - c0), i32(e), T(-1.0), factor[panel + k], i32(m),
     factor[panel + m * k + c0], i32(r), T(0.0), work[update + (l + c0) * mu + l], i32(mu))
""",
}


def _limited(kind: Mapping[str, object]) -> dict[str, object]:
    return {**kind, "block": str(kind["block"]).replace("LIMIT", repr(THRESHOLD)).replace("NEAR", repr(NEAR))}


PIVOTING: dict[str, dict[str, Any]] = {
    "cholesky": {**_CHOLESKY, "parts": {}},
    "ldl": _limited(_LDL),
    "lu": _limited(_LU),
}
"""The texts of each kind: of the block of pivots and its parts, of strips of rows below, of columns, of the update."""

ROUTINES = {
    "cholesky": ("potrf", "trsm", "herk", "gemm"),
    "ldl": ("gemv", "gemm"),
    "lu": ("trsv", "gemv", "trsm", "gemm"),
}

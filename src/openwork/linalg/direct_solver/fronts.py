"""Kernels of the numeric phase: supernodes in postorder, each a dense front, by BLAS and LAPACK.

The front of supernode s has its columns and the rows below them. Its first columns, the panel, are factored where the
factor is stored; what they subtract from the rest, the update, goes to a stack, from which the parent takes it:

    panel    m x k, by columns, at factor[panel_at[s]]: the matrix's elements and children's updates of these columns
    update   r x r, r = m - k, at work[update_at[s]]: - L21 D L21^H or - L21 U12, and the rest of children's updates

    cholesky   L L^H                                                       potrf
    ldl        P L D L^H P^T, D of blocks of one and two rows              sytrf or hetrf, pivots within the columns
    lu         P L U, U12 transposed in a second panel, `half` later       getrf, pivots within the columns

Pivots that are smaller than `tiny` are replaced by it, with their sign, and counted. A kernel runs over a range of
supernodes that holds all children that are not done, so that subtrees run in parallel.

Source: I. S. Duff, J. K. Reid, "The multifrontal solution of indefinite sparse symmetric linear equations", ACM TOMS 9
(1983); J. W. H. Liu, "The multifrontal method for sparse matrix solution", SIAM Review 34 (1992); static pivots: X. S.
Li, J. W. Demmel, "SuperLU_DIST", ACM TOMS 29 (2003); O. Schenk, K. Gaertner, "On fast factorization pivoting methods
for sparse symmetric indefinite systems", ETNA 23 (2006).
"""

from __future__ import annotations

from typing import Any

from ...ir.text import inlined
from .blas import address, char
from .graph import compiled

__all__ = ["CHARACTERS", "REALS", "factor_kernel"]

REALS = {"c64": "f32", "c128": "f64"}

_HEAD = """
f = i64(first[s])
k = i64(first[s + 1]) - f
r = row_pos[s + 1] - row_pos[s]
m = k + r
panel = panel_at[s]
"""

_ASSEMBLE = """
for e in range(0, m * k):
    factor[panel + e] = T(0.0)
for e in range(entry_pos[s], entry_pos[s + 1]):
    a = T(values[source[e]])
    if turned[e]:
        factor[panel + target[e]] = factor[panel + target[e]] + CONJ(a)
    else:
        factor[panel + target[e]] = factor[panel + target[e]] + a
"""

_FROM_CHILDREN = """
c: i64 = i64(head[s])
while c >= 0:
    q = row_pos[c]
    rc = row_pos[c + 1] - q
    from_ = update_at[c]
    for t in range(0, i64(inside[c])):
        to = panel + i64(place[q + t]) * m
        for i in range(FIRST, rc): # novector
            factor[to + place[q + i]] = factor[to + place[q + i]] + work[from_ + t * rc + i]
    ABOVE
    c = i64(next[c])
"""

_ABOVE = """
for t in range(i64(inside[c]), rc):
    to = half + panel + i64(place[q + t])
    for i in range(0, i64(inside[c])): # novector
        factor[to + i64(place[q + i]) * m] = factor[to + i64(place[q + i]) * m] + work[from_ + t * rc + i]
"""

_TO_UPDATE = """
d: i64 = i64(head[s])
while d >= 0:
    q = row_pos[d]
    rc = row_pos[d + 1] - q
    from_ = update_at[d]
    for t in range(i64(inside[d]), rc):
        to = update + (i64(place[q + t]) - k) * r - k
        for i in range(BEGIN, rc): # novector
            work[to + place[q + i]] = work[to + place[q + i]] + work[from_ + t * rc + i]
    d = i64(next[d])
"""

_STRUCTURE = """first: I[const], row_pos: i64[const], place: I[const], inside: I[const], head: I[const],
        next: I[const], panel_at: i64[const], update_at: i64[const], entry_pos: i64[const], source: i64[const],
        target: i64[const], turned: bool[const], values: S[const]"""

_CHOLESKY = """
def cholesky(lo: i64, hi: i64, STRUCTURE, factor: T[mut], work: T[mut], info: i32[mut], potrf: i64, trsm: i64,
             herk: i64):
    for s in range(lo, hi):
        HEAD
        ASSEMBLE
        FROM_CHILDREN
        call(potrf, LOWER, i32(k), factor[panel], i32(m), info[s])
        if r > 0:
            update = update_at[s]
            call(trsm, RIGHT, LOWER, ADJOINT, NONUNIT, i32(r), i32(k), T(1.0), factor[panel], i32(m),
                 factor[panel + k], i32(m))
            call(herk, LOWER, PLAIN, i32(r), i32(k), R(-1.0), factor[panel + k], i32(m), R(0.0), work[update], i32(r))
            TO_UPDATE
"""

_LDL = """
def ldl(lo: i64, hi: i64, STRUCTURE, factor: T[mut], work: T[mut], info: i32[mut], pivots: i32[mut], sub: T[mut],
        tiny: R, widest: i64, largest: i64, hetrf: i64, syconv: i64, trsm: i64, gemm: i64):
    buffer: T[64 * widest] = empty
    scaled: T[largest] = empty
    status: i32[1] = empty
    for s in range(lo, hi):
        HEAD
        ASSEMBLE
        FROM_CHILDREN
        call(hetrf, LOWER, i32(k), factor[panel], i32(m), pivots[f], buffer[0], i32(64 * widest), status[0])
        call(syconv, LOWER, CONVERT, i32(k), factor[panel], i32(m), pivots[f], sub[f], status[0])
        replaced: i64 = 0
        u: i64 = 0
        while u < k:
            if pivots[f + u] > 0:
                sub[f + u] = T(0.0)
                d = REAL(factor[panel + u * m + u])
                SMALL
                u += 1
            else:
                pivots[f + u + 1] = 0 - pivots[f + u]
                pivots[f + u] = u + 1
                sub[f + u + 1] = T(0.0)
                u += 2
        info[s] = replaced
        if r > 0:
            update = update_at[s]
            SWAP
            call(trsm, RIGHT, LOWER, ADJOINT, UNIT, i32(r), i32(k), T(1.0), factor[panel], i32(m), factor[panel + k],
                 i32(m))
            DIVIDE
            for b in range(0, r, 96):
                call(gemm, PLAIN, ADJOINT, i32(r - b), i32(min(96, r - b)), i32(k), T(-1.0), scaled[b], i32(r),
                     factor[panel + k + b], i32(m), T(0.0), work[update + b * r + b], i32(r))
            TO_UPDATE
"""

_SMALL = """
if not (abs(d) >= tiny):
    factor[panel + u * m + u] = T(tiny)
    if d < R(0.0):
        factor[panel + u * m + u] = T(R(0.0) - tiny)
    replaced += 1
"""

_SWAP = """
for j in range(0, k):
    p = i64(pivots[f + j]) - 1
    if p != j:
        for i in range(0, r):
            a = factor[SIDE + panel + k + j * m + i]
            factor[SIDE + panel + k + j * m + i] = factor[SIDE + panel + k + p * m + i]
            factor[SIDE + panel + k + p * m + i] = a
"""

_DIVIDE = """
for j in range(0, k):
    for i in range(0, r):
        scaled[j * r + i] = factor[panel + k + j * m + i]
j: i64 = 0
while j < k:
    x = panel + k + j * m
    d = factor[panel + j * m + j]
    e = sub[f + j]
    if e == T(0.0):
        for i in range(0, r):
            factor[x + i] = factor[x + i] / d
        j += 1
    else:
        g = factor[panel + (j + 1) * m + j + 1]
        # divided by e first, as LAPACK's sytrs does: the determinant of a block is that of numbers of one size
        y = d / CONJ(e)
        v = g / e
        t = y * v - T(1.0)
        for i in range(0, r):
            a = factor[x + i]
            b = factor[x + m + i]
            factor[x + i] = (a / CONJ(e) * v - b / CONJ(e)) / t
            factor[x + m + i] = (b / e * y - a / e) / t
        j += 2
"""

_LU = """
def lu(lo: i64, hi: i64, STRUCTURE, factor: T[mut], work: T[mut], info: i32[mut], pivots: i32[mut], tiny: R, half: i64,
       getrf: i64, trsm: i64, gemm: i64):
    status: i32[1] = empty
    for s in range(lo, hi):
        HEAD
        ASSEMBLE
        for j in range(0, k):
            for i in range(k, m):
                factor[half + panel + j * m + i] = T(0.0)
        ENTRIES
        FROM_CHILDREN
        call(getrf, i32(k), i32(k), factor[panel], i32(m), pivots[f], status[0])
        replaced: i64 = 0
        for j in range(0, k):
            d = abs(factor[panel + j * m + j])
            if not (d >= tiny):
                if d > R(0.0):
                    factor[panel + j * m + j] = factor[panel + j * m + j] * T(tiny / d)
                else:
                    factor[panel + j * m + j] = T(tiny)
                replaced += 1
        info[s] = replaced
        if r > 0:
            update = update_at[s]
            call(trsm, RIGHT, UPPER, PLAIN, NONUNIT, i32(r), i32(k), T(1.0), factor[panel], i32(m), factor[panel + k],
                 i32(m))
            SWAP
            call(trsm, RIGHT, LOWER, TRANSPOSED, UNIT, i32(r), i32(k), T(1.0), factor[panel], i32(m),
                 factor[half + panel + k], i32(m))
            call(gemm, PLAIN, TRANSPOSED, i32(r), i32(r), i32(k), T(-1.0), factor[panel + k], i32(m),
                 factor[half + panel + k], i32(m), T(0.0), work[update], i32(r))
            TO_UPDATE
"""

CHARACTERS = {
    "LOWER": char("L"), "UPPER": char("U"), "RIGHT": char("R"), "LEFT": char("L"), "PLAIN": char("N"),
    "NONUNIT": char("N"), "UNIT": char("U"), "TRANSPOSED": char("T"), "CONVERT": char("C"),
}  # fmt: skip
_SYMMETRIC = {
    "HEAD": _HEAD, "ASSEMBLE": _ASSEMBLE, "FROM_CHILDREN": _FROM_CHILDREN, "TO_UPDATE": _TO_UPDATE, "SMALL": _SMALL,
    "SWAP": _SWAP.replace("SIDE", "0"), "DIVIDE": _DIVIDE, "ABOVE": "pass",
}  # fmt: skip
_ZERO, _ADD = _ASSEMBLE.split("for e in range(entry_pos", 1)
_UNSYMMETRIC = {
    **_SYMMETRIC, "ASSEMBLE": _ZERO, "ENTRIES": "for e in range(entry_pos" + _ADD.replace("CONJ(a)", "a"),
    "SWAP": _SWAP.replace("SIDE", "half"), "ABOVE": _ABOVE,
}  # fmt: skip
_TEXTS = {
    "cholesky": (_CHOLESKY, ("potrf", "trsm", "herk")),
    "ldl": (_LDL, ("hetrf", "syconv", "trsm", "gemm")),
    "lu": (_LU, ("getrf", "trsm", "gemm")),
}


def factor_kernel(kind: str, index: str, scalar: str, stored: str) -> tuple[Any, list[int]]:
    """The kernel of a kind of factors, and the addresses of the routines that are its last parameters.

    scalar : the type of the factors; stored : that of the matrix's values
    """
    text, routines = _TEXTS[kind]
    text = inlined(text, _UNSYMMETRIC if kind == "lu" else _SYMMETRIC).replace("STRUCTURE", _STRUCTURE)
    is_complex = scalar in REALS
    words = {
        **CHARACTERS, "ADJOINT": char("C" if is_complex else "T"), "CONJ": "conj" if is_complex else "",
        "REAL": "real" if is_complex else "", "FIRST": "0" if kind == "lu" else "t",
        "BEGIN": "i64(inside[d])" if kind == "lu" else "t",
    }  # fmt: skip
    for word, new in words.items():
        text = text.replace(word, new)
    types = (("I", index), ("T", scalar), ("S", stored), ("R", REALS.get(scalar, scalar)))
    return compiled(text, *types), [address(name, scalar) for name in routines]

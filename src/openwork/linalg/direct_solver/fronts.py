"""Kernels of the numeric phase: supernodes in postorder, each a dense front, by BLAS and LAPACK.

The front of supernode s has its columns, those that its children could not eliminate, and the rows below: m x k is its
panel, by columns, k of them fully summed. What the e <= k pivots of the panel subtract from the rest goes to a stack,
from which the parent takes it:

    panel    m x k at factor[panel_at[s]]: the matrix's elements and children's updates of these columns; m x e is kept
    update   (m - e) x (m - e) at work[update_at[s]]: - L21 D L21^H or - L21 U12, and the rest of children's updates

    cholesky   L L^H
    ldl        L D L^H, D of blocks of one and two rows, whose other element is above the diagonal, beside its rows
    lu         L U, U12 transposed behind the panel

How pivots are found is in `pivoting`. Columns without one that is large enough, k - e of them, are delayed: they come
first in the parent's front. A front is done by one kernel, "whole", which runs over a range of supernodes that holds
all children that are not done, so that subtrees run in parallel; or, where it is large, by "begin", "block", "below",
"trailing", "finish" and "update", of which all threads run strips of "below", "trailing" and "update".

Source: I. S. Duff, J. K. Reid, "The multifrontal solution of indefinite sparse symmetric linear equations", ACM TOMS 9
(1983); J. W. H. Liu, "The multifrontal method for sparse matrix solution", SIAM Review 34 (1992).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .blas import blas_kernel
from .pivoting import PIVOTING, ROUTINES

__all__ = ["PHASES", "STRIP", "FrontKernels", "front_kernels"]

STRIP = 96
"""Columns, or rows, that a thread takes at a time."""
PHASES = ("whole", "begin", "block", "below", "trailing", "finish", "update", "close")

_BEGIN = """
f = i64(first[s])
k0 = i64(first[s + 1]) - f
r = row_pos[s + 1] - row_pos[s]
m0 = k0 + r
zone = 4 * i64(region[s])
delayed: i64 = 0
born: i64 = i64(head[s])
while born >= 0:
    delayed += late[born]
    born = i64(next[born])
k = k0 + delayed
m = k + r
panel = top[zone]
names = top[zone + 3]
if panel + ROOM > limit[zone] or names + k > limit[zone + 3] or m * k > scratch:
    full[region[s]] = 1
    return 0
panel_at[s] = panel
names_at[s] = names
NAMES
for e in range(0, ROOM):
    factor[panel + e] = T(0.0)
for e in range(entry_pos[s], entry_pos[s + 1]):
    to: i64 = target[e]
    if delayed > 0:
        MOVED
    a = T(values[source[e]])
    if turned[e]:
        factor[panel + to] = factor[panel + to] + CONJ(a)
    else:
        factor[panel + to] = factor[panel + to] + a
off: i64 = 0
c: i64 = i64(head[s])
while c >= 0:
    d = late[c]
    q = row_pos[c] - d
    mc = d + row_pos[c + 1] - row_pos[c]
    from_ = update_at[c]
    for t in range(0, d + i64(inside[c])):
        column: i64 = off + t
        if t >= d:
            column = delayed + i64(place[q + t])
        to = panel + column * m
        for i in range(LEAST, d):
            factor[to + off + i] = factor[to + off + i] + work[from_ + t * mc + i]
        for i in range(max(LEAST, d), mc): # novector
            factor[to + delayed + place[q + i]] = factor[to + delayed + place[q + i]] + work[from_ + t * mc + i]
    ABOVE
    off += d
    c = i64(next[c])
"""

_MOVED = """
j0 = to // m0
to = to + delayed + delayed * m + j0 * delayed
"""

_MOVED_LU = """
if to < m0 * k0:
    j0 = to // m0
    to = to + delayed + delayed * m + j0 * delayed
else:
    to = to - m0 * k0 + m * k + delayed * r
"""

_ABOVE = """
for t in range(d + i64(inside[c]), mc):
    to = panel + m * k + i64(place[q + t]) - k0
    for i in range(0, d):
        factor[to + (off + i) * r] = factor[to + (off + i) * r] + work[from_ + t * mc + i]
    for i in range(d, d + i64(inside[c])): # novector
        at = to + (delayed + i64(place[q + i])) * r
        factor[at] = factor[at] + work[from_ + t * mc + i]
"""

_NAMES = """
for t in range(0, k0):
    NAME[names + delayed + t] = f + t
shift: i64 = 0
older: i64 = i64(head[s])
while older >= 0:
    for t in range(0, late[older]):
        NAME[names + shift + t] = NAME[names_at[older] + width[older] + t]
    shift += late[older]
    older = i64(next[older])
"""

_FINISH = """
own = zone + 1 + (i64(depth[s]) & 1)
update = top[own]
e = j + 0
l = k - e
mu = l + r
if update + mu * mu > limit[own]:
    full[region[s]] = 1
    return 0
width[s] = e
late[s] = l
update_at[s] = update
top[own] = update + mu * mu
for t in range(0, l):
    for i in range(FIRST, mu):
        work[update + t * mu + i] = factor[panel + (e + t) * m + e + i]
"""

_CHILDREN = """
g: i64 = i64(head[s])
while g >= 0:
    d = late[g]
    q = row_pos[g] - d
    mc = d + row_pos[g + 1] - row_pos[g]
    from_ = update_at[g]
    for t in range(d + i64(inside[g]), mc):
        y = i64(place[q + t]) - k0
        if y >= c0 and y < c1:
            to = update + (l + y) * mu + l - k0
            for i in range(BEGIN, mc): # novector
                work[to + place[q + i]] = work[to + place[q + i]] + work[from_ + t * mc + i]
    g = i64(next[g])
"""

_CLOSE = """
top[zone] = panel + e * (m + U_ROWS)
top[zone + 3] = names + k
COMPACT
other = zone + 2 - (i64(depth[s]) & 1)
gone: i64 = i64(head[s])
while gone >= 0:
    if region[gone] == region[s]:
        top[other] = min(top[other], update_at[gone])
    gone = i64(next[gone])
"""

_COMPACT = """
if l > 0:
    for i in range(0, e):
        for t in range(0, l):
            w[i * mu + t] = factor[panel + (e + t) * m + i]
        for t in range(0, r):
            w[i * mu + l + t] = factor[panel + m * k + i * r + t]
    for i in range(0, e * mu):
        factor[panel + m * e + i] = w[i]
"""

_PARAMETERS = """lo: i64, hi: i64, first: I[const], up: I[const], row_pos: i64[const], place: I[const],
        inside: I[const], head: I[const], next: I[const], depth: I[const], region: I[const], entry_pos: i64[const],
        source: i64[const], target: i64[const], turned: bool[const], values: S[const], limit: i64[const],
        top: i64[mut], full: i64[mut], late: i64[mut], width: i64[mut], names_at: i64[mut], panel_at: i64[mut],
        update_at: i64[mut], row_name: I[mut], col_name: I[mut], info: i32[mut], factor: T[mut], work: T[mut],
        tiny: R, scratch: i64, nb: i64"""

_WHOLE = """
def whole(PARAMETERS, ADDRESSES):
    w: T[scratch] = empty
    x: T[64] = empty
    status: i32[1] = empty
    for s in range(lo, hi):
        OPEN
        b: i64 = 0
        j: i64 = 0
        more: i64 = 1
        while more == 1:
            PIVOTS
            if m > j:
                c0 = 0 * m
                c1 = m - j
                BELOW
            for c0 in range(0, k - j, STRIP):
                c1 = min(c0 + STRIP, k - j)
                TRAILING
            b = j + 0
        FINISH
        for c0 in range(0, r, STRIP):
            c1 = min(c0 + STRIP, r)
            UPDATE
            CHILDREN
        CLOSE
"""

_STATE = """
s = state[0]
k = state[1]
m = state[2]
panel = state[3]
delayed = state[4]
r = row_pos[s + 1] - row_pos[s]
k0 = i64(first[s + 1]) - i64(first[s])
zone = 4 * i64(region[s])
names = names_at[s]
"""

_PARTS = {
    "begin": """
def begin(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    s = state[0]
    OPEN
    state[1] = k
    state[2] = m
    state[3] = panel
    state[4] = delayed
    state[5] = 0
    state[6] = 0
""",
    "block": """
def block(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    x: T[64] = empty
    status: i32[1] = empty
    STATE
    b: i64 = state[6]
    j: i64 = state[6]
    more: i64 = 1
    PIVOTS
    state[5] = b
    state[6] = j
    state[7] = more
""",
    "below": """
def below(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    STATE
    b = state[5]
    j = state[6]
    for strip in range(lo, hi):
        c0 = strip * STRIP
        c1 = min(c0 + STRIP, m - j)
        BELOW
""",
    "trailing": """
def trailing(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    STATE
    b = state[5]
    j = state[6]
    for strip in range(lo, hi):
        c0 = strip * STRIP
        c1 = min(c0 + STRIP, k - j)
        TRAILING
""",
    "finish": """
def finish(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    STATE
    j = state[6]
    FINISH
""",
    "update": """
def update(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    STATE
    e = width[s]
    l = late[s]
    mu = l + r
    update = update_at[s]
    for strip in range(lo, hi):
        c0 = strip * STRIP
        c1 = min(c0 + STRIP, r)
        UPDATE
        CHILDREN
""",
    "close": """
def close(PARAMETERS, state: i64[mut], w: T[mut], ADDRESSES):
    STATE
    e = width[s]
    l = late[s]
    mu = l + r
    CLOSE
""",
    "whole": _WHOLE,
}


class FrontKernels(NamedTuple):
    """The kernels of a kind of factors by phase, and the addresses of the routines that are their last parameters."""

    phases: dict[str, Any]
    routines: list[int]


def front_kernels(kind: str, index: str, scalar: str, stored: str) -> FrontKernels:
    """The kernels of a kind of factors.

    scalar : the type of the factors; stored : that of the matrix's values
    """
    two = kind == "lu"
    names = {"cholesky": "pass", "ldl": _NAMES.replace("NAME[", "row_name["),
             "lu": _NAMES.replace("NAME[", "row_name[") + _NAMES.replace("NAME[", "col_name[")
             .replace("shift", "aside").replace("older", "former")}  # fmt: skip
    pieces = {
        "STATE": _STATE, "OPEN": _BEGIN, "PIVOTS": PIVOTING[kind]["block"], "BELOW": PIVOTING[kind]["below"],
        "TRAILING": PIVOTING[kind]["trailing"], "FINISH": _FINISH, "UPDATE": PIVOTING[kind]["update"],
        "CHILDREN": _CHILDREN, "CLOSE": _CLOSE, "NAMES": names[kind], "MOVED": _MOVED_LU if two else _MOVED,
        "ABOVE": _ABOVE if two else "pass", "COMPACT": _COMPACT if two else "pass", **PIVOTING[kind]["parts"],
    }  # fmt: skip
    words = {
        "PARAMETERS": _PARAMETERS, "LEAST": "0" if two else "t", "FIRST": "0" if two else "t",
        "BEGIN": "d + i64(inside[g])" if two else "t", "ROOM": "(m * k + r * k)" if two else "m * k",
        "U_ROWS": "mu" if two else "0", "STRIP": str(STRIP),
        **({"m * k > scratch": "scratch < 0"} if kind == "cholesky" else {}),
    }  # fmt: skip
    found = {
        phase: blas_kernel(_PARTS[phase], pieces, words, ROUTINES[kind], scalar, I=index, S=stored) for phase in PHASES
    }
    return FrontKernels({phase: kernel for phase, (kernel, _) in found.items()}, found["whole"][1])

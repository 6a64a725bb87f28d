"""Types -> kernels that take coordinates of the last level of compressed rows, in a new order: how many each row has
of them, then the elements, sorted by their new coordinates.

    B[i, s] = A[i, c] where places[c] == s      each coordinate taken once at most: places[c] is -1 where it is not
    B[i, s] = A[i, c] where s is one of places[first[c]], ..., places[first[c + 1] - 1]

Of a few elements each goes to its rank, which is how many are less: no branch asks how these lie.
"""

from __future__ import annotations

from .. import tuning
from ..ir.loop import Kernel
from ..ir.text import inlined, parse
from .incremental_sort import NARROW, SELECT
from .selection import STACK

__all__ = ["count_kernel", "take_kernel"]

_COUNT = """
def take_count(lo: i64, hi: i64, pos: P[const], crd: C[const], first: i64[const], places: S[const], counts: i64[mut]):
    for i in range(lo, hi):
        n: i64 = 0
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            c = i64(crd[p])
            COUNTED
        counts[i] = n
"""

_TAKE = """
def take_inner(lo: i64, hi: i64, pos: P[const], crd: C[const], A: T[const], first: i64[const], places: S[const],
               starts: Q[const], new_crd: D[mut], B: T[mut], ordered: i64, room: i64):
    SPACE
    ends: i64[STACK] = empty
    for i in range(lo, hi):
        seed: u64 = u64(88172645463325252)
        p0 = i64(pos[i])
        f: i64 = 0
        for p in range(p0, i64(pos[i + 1])):
            c = i64(crd[p])
            TAKEN
        q = i64(starts[i])
        if ordered == 0 and f <= RANKED:
            for e in range(f, RANKED):
                w[e] = 9223372036854775807
            for r in range(0, f):
                x = w[r]
                to: i64 = q + 0
                for e in range(0, RANKED):
                    to += i64(w[e] < x)
                new_crd[to] = x >> 32
                B[to] = A[p0 + (x & 4294967295)]
        else:
            begin: i64 = 0
            done: i64 = 0
            top: i64 = 0
            ends[0] = f
            if ordered == 0:
                for r in range(0, f):
                    SELECT
            for r in range(0, f):
                new_crd[q + r] = w[r] >> 32
                B[q + r] = A[p0 + (w[r] & 4294967295)]
"""

_ONCE = {
    "COUNTED": "n += i64(places[c] >= S(0))",
    "TAKEN": "s = i64(places[c])\nw[f] = (s << 32) | (p - p0)\nf += i64(s >= 0)",
}
_SEVERAL = {
    "COUNTED": "n += first[c + 1] - first[c]",
    "TAKEN": "for x in range(first[c], first[c + 1]):\n    w[f] = (i64(places[x]) << 32) | (p - p0)\n    f += 1",
}


def count_kernel(pos: str, crd: str, places: str, once: bool) -> Kernel:
    """counts[i] = the elements of row i that are taken."""
    return parse(inlined(_COUNT, _ONCE if once else _SEVERAL), P=pos, C=crd, S=places)


def take_kernel(pos: str, crd: str, places: str, index: str, scalar: str, once: bool) -> Kernel:
    """new_crd and B from starts[i] on = row i's coordinates and elements that are taken, sorted.

    index : the type of starts and new_crd
    """
    parts = {**(_ONCE if once else _SEVERAL), "SELECT": SELECT, **NARROW}
    text = inlined(_TAKE, parts).replace("STACK", str(STACK)).replace("SORTED", str(tuning.SELECTION_SORTED))
    text = text.replace("RANKED", str(tuning.TAKE_RANKED)).replace("[room]", f"[room + {tuning.TAKE_RANKED}]")
    return parse(text, P=pos, C=crd, S=places, Q=index, D=index, T=scalar)

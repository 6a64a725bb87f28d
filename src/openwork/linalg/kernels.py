"""Kernels over compressed rows as loop IR: incomplete factors, sweeps, aggregates and the levels of substitution.

Types are named as `compiled` says. Rows are sorted and have no duplicates; `diag[i]` the position of element
(i, i). A status of i + 2 says that row i has no pivot to divide by.
"""

from __future__ import annotations

from functools import cache

__all__ = [
    "AGGREGATE", "FILL_LEVELS", "IC0", "IC_SOLVE", "ILU0", "LEVELS_OF_ROWS", "LU_SOLVE", "LU_SOLVE_TRANSPOSED", "ROW",
    "SSOR_SWEEPS", "SUBSTITUTE", "SWEEP", "THRESHOLD_LU", "of_triangle",
]  # fmt: skip

ILU0 = """
def ilu0(pos: I[const], crd: I[const], A: T[mut], diag: I[const], place: i64[mut], n: i64):
    for i in range(0, n):
        d = i64(diag[i])
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            place[i64(crd[p])] = p + 1
        for p in range(i64(pos[i]), d):
            k = i64(crd[p])
            f = A[p] / A[i64(diag[k])]
            A[p] = f
            for q in range(i64(diag[k]) + 1, i64(pos[k + 1])):
                r = place[i64(crd[q])]
                if r > 0:
                    A[r - 1] = A[r - 1] - f * A[q]
        if A[d] == T(0.0):
            return i + 2
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            place[i64(crd[p])] = 0
"""

LU_SOLVE = """
def lu_solve(pos: I[const], crd: I[const], A: T[const], diag: I[const], x: T[mut], n: i64, m: i64):
    for i in range(0, n):
        for p in range(i64(pos[i]), i64(diag[i])):
            j = i64(crd[p])
            a = A[p]
            for c in range(0, m):
                x[i * m + c] = x[i * m + c] - a * x[j * m + c]
    for s in range(0, n):
        i = n - 1 - s
        d = i64(diag[i])
        for p in range(d + 1, i64(pos[i + 1])):
            j = i64(crd[p])
            a = A[p]
            for c in range(0, m):
                x[i * m + c] = x[i * m + c] - a * x[j * m + c]
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] / A[d]
"""

LU_SOLVE_TRANSPOSED = """
def lu_solve_transposed(pos: I[const], crd: I[const], A: T[const], diag: I[const], x: T[mut], n: i64, m: i64):
    for i in range(0, n):
        d = i64(diag[i])
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] / A[d]
        for p in range(d + 1, i64(pos[i + 1])):
            j = i64(crd[p])
            a = A[p]
            for c in range(0, m):
                x[j * m + c] = x[j * m + c] - a * x[i * m + c]
    for s in range(0, n):
        i = n - 1 - s
        for p in range(i64(pos[i]), i64(diag[i])):
            j = i64(crd[p])
            a = A[p]
            for c in range(0, m):
                x[j * m + c] = x[j * m + c] - a * x[i * m + c]
"""

FILL_LEVELS = """
def fill_levels(pos: I[const], crd: I[const], fpos: i64[mut], fcrd: I[mut], flevel: I[mut], diag: I[mut],
                most: i64, room: i64, n: i64):
    # the columns of a row are a list in order, which begins and ends at n
    next: i64[n + 1] = empty
    level: i64[n + 1] = empty
    stored: i64 = 0
    for j in range(0, n):
        level[j] = -1
    for i in range(0, n):
        fpos[i] = stored
        last: i64 = n
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            j = i64(crd[p])
            if j > i and level[i] < 0:
                next[last] = i
                level[i] = 0
                last = i
            next[last] = j
            level[j] = 0
            last = j
        if level[i] < 0:
            next[last] = i
            level[i] = 0
            last = i
        next[last] = n
        k: i64 = next[n]
        while k < i:
            if level[k] < most:
                before: i64 = k
                for q in range(i64(diag[k]) + 1, fpos[k + 1]):
                    j = i64(fcrd[q])
                    new = level[k] + i64(flevel[q]) + 1
                    if new <= most:
                        if level[j] < 0:
                            while next[before] < j:
                                before = next[before]
                            next[j] = next[before]
                            next[before] = j
                            level[j] = new
                            before = j
                        else:
                            level[j] = min(level[j], new)
            k = next[k]
        k = next[n]
        while k < n:
            if stored >= room:
                return 1
            if k == i:
                diag[i] = stored
            fcrd[stored] = k
            flevel[stored] = level[k]
            level[k] = -1
            stored += 1
            k = next[k]
        fpos[i + 1] = stored
"""

THRESHOLD_LU = """
def threshold_lu(pos: I[const], crd: I[const], A: T[const], fpos: i64[mut], fcrd: I[mut], F: T[mut], diag: I[mut],
                 tolerance: R, fill: i64, room: i64, n: i64):
    next: i64[n + 1] = empty
    inside: i64[n + 1] = zeros
    w: T[n + 1] = empty
    size: R[n + 1] = empty
    stored: i64 = 0
    for i in range(0, n):
        fpos[i] = stored
        last: i64 = n
        norm: R = R(0.0)
        lower: i64 = 0
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            j = i64(crd[p])
            if j > i and inside[i] == 0:
                next[last] = i
                inside[i] = 1
                w[i] = T(0.0)
                last = i
            if j < i:
                lower += 1
            next[last] = j
            inside[j] = 1
            w[j] = A[p]
            norm = norm + SQUARE(A[p])
            last = j
        upper = i64(pos[i + 1]) - i64(pos[i]) - lower
        if inside[i] == 0:
            next[last] = i
            inside[i] = 1
            w[i] = T(0.0)
            last = i
        next[last] = n
        limit = tolerance * tolerance * norm
        k: i64 = next[n]
        while k < i:
            f = w[k] / F[i64(diag[k])]
            if SQUARE(f) <= limit:
                w[k] = T(0.0)
            else:
                w[k] = f
                before: i64 = k
                for q in range(i64(diag[k]) + 1, fpos[k + 1]):
                    j = i64(fcrd[q])
                    if inside[j] == 0:
                        while next[before] < j:
                            before = next[before]
                        next[j] = next[before]
                        next[before] = j
                        inside[j] = 1
                        w[j] = T(0.0) - f * F[q]
                        before = j
                    else:
                        w[j] = w[j] - f * F[q]
            k = next[k]
        for part in range(0, 2):
            # the least square that is kept of the lower part, then of the upper: the wanted-th largest, by quickselect
            wanted: i64 = lower + fill
            if part == 1:
                wanted = upper + fill
            count: i64 = 0
            k = next[n]
            while k < n:
                if (part == 0 and k < i) or (part == 1 and k > i):
                    square = SQUARE(w[k])
                    if square > limit:
                        size[count] = square
                        count += 1
                k = next[k]
            least: R = limit
            if count > wanted:
                lo: i64 = 0
                hi: i64 = count - 1
                while lo < hi:
                    pivot = size[(lo + hi) // 2]
                    a: i64 = lo
                    b: i64 = hi
                    while a <= b:
                        while size[a] > pivot:
                            a += 1
                        while size[b] < pivot:
                            b = b - 1
                        if a <= b:
                            swapped = size[a]
                            size[a] = size[b]
                            size[b] = swapped
                            a += 1
                            b = b - 1
                    if wanted <= b:
                        hi = b
                    else:
                        if wanted >= a:
                            lo = a
                        else:
                            lo = wanted
                            hi = wanted
                least = size[wanted]
            k = next[n]
            while k < n:
                if (part == 0 and k < i) or (part == 1 and k >= i):
                    if k == i or SQUARE(w[k]) > least:
                        if stored >= room:
                            return 1
                        if k == i:
                            if w[i] == T(0.0):
                                return i + 2
                            diag[i] = stored
                        fcrd[stored] = k
                        F[stored] = w[k]
                        stored += 1
                k = next[k]
        k = next[n]
        while k < n:
            inside[k] = 0
            k = next[k]
        fpos[i + 1] = stored
"""

IC0 = """
def ic0(pos: I[const], crd: I[const], L: T[mut], n: i64):
    for i in range(0, n):
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            j = i64(crd[p])
            s: T = L[p]
            a: i64 = i64(pos[i])
            b: i64 = i64(pos[j])
            end = i64(pos[j + 1]) - 1
            while a < p and b < end:
                if crd[a] == crd[b]:
                    s = s - L[a] * CONJ(L[b])
                    a += 1
                    b += 1
                else:
                    if crd[a] < crd[b]:
                        a += 1
                    else:
                        b += 1
            if j < i:
                L[p] = s / L[end]
            else:
                r = REAL(s)
                if r > R(0.0):
                    L[p] = T(sqrt(r))
                else:
                    return i + 2
"""

IC_SOLVE = """
def ic_solve(pos: I[const], crd: I[const], L: T[const], x: T[mut], n: i64, m: i64):
    for i in range(0, n):
        d = i64(pos[i + 1]) - 1
        for p in range(i64(pos[i]), d):
            j = i64(crd[p])
            a = L[p]
            for c in range(0, m):
                x[i * m + c] = x[i * m + c] - a * x[j * m + c]
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] / L[d]
    for s in range(0, n):
        i = n - 1 - s
        d = i64(pos[i + 1]) - 1
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] / L[d]
        for p in range(i64(pos[i]), d):
            j = i64(crd[p])
            a = CONJ(L[p])
            for c in range(0, m):
                x[j * m + c] = x[j * m + c] - a * x[i * m + c]
"""

SSOR_SWEEPS = """
def ssor(pos: I[const], crd: I[const], A: T[const], diag: I[const], x: T[mut], omega: R, n: i64, m: i64):
    w = T(omega)
    v = T(R(2.0) - omega)
    for i in range(0, n):
        d = i64(diag[i])
        for p in range(i64(pos[i]), d):
            j = i64(crd[p])
            a = A[p]
            for c in range(0, m):
                x[i * m + c] = x[i * m + c] - a * x[j * m + c]
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] * w / A[d]
    for s in range(0, n):
        i = n - 1 - s
        d = i64(diag[i])
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] * A[d] * v / w
        for p in range(d + 1, i64(pos[i + 1])):
            j = i64(crd[p])
            a = A[p]
            for c in range(0, m):
                x[i * m + c] = x[i * m + c] - a * x[j * m + c]
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] * w / A[d]
"""

SWEEP = """
def sweep(pos: I[const], crd: I[const], A: T[const], inverse: T[const], b: T[const], x: T[mut], n: i64, m: i64):
    for s in range(0, n):
        i = ROW
        for c in range(0, m):
            r: T = b[i * m + c]
            for p in range(i64(pos[i]), i64(pos[i + 1])):
                r = r - A[p] * x[i64(crd[p]) * m + c]
            x[i * m + c] = x[i * m + c] + r * inverse[i]
"""

AGGREGATE = """
def aggregate(pos: I[const], crd: I[const], group: I[mut], joined: I[mut], count: i64[mut], n: i64):
    made: i64 = 0
    for i in range(0, n):
        free: i64 = 0
        if group[i] < I(0) and pos[i] < pos[i + 1]:
            free = 1
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            if group[i64(crd[p])] >= I(0):
                free = 0
        if free == 1:
            group[i] = I(made)
            for p in range(i64(pos[i]), i64(pos[i + 1])):
                group[i64(crd[p])] = I(made)
            made += 1
    for i in range(0, n):
        joined[i] = group[i]
        if group[i] < I(0):
            for p in range(i64(pos[i]), i64(pos[i + 1])):
                if joined[i] < I(0):
                    joined[i] = group[i64(crd[p])]
    for i in range(0, n):
        if joined[i] < I(0) and pos[i] < pos[i + 1]:
            joined[i] = I(made)
            for p in range(i64(pos[i]), i64(pos[i + 1])):
                if joined[i64(crd[p])] < I(0):
                    joined[i64(crd[p])] = I(made)
            made += 1
    count[0] = made
"""

LEVELS_OF_ROWS = """
def levels_of_rows(pos: I[const], crd: I[const], level: i64[mut], n: i64):
    for s in range(0, n):
        i = ROW
        top: i64 = 0
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            j = i64(crd[p])
            if j BEFORE i:
                top = max(top, level[j] + 1)
        level[i] = top
"""

ROW = """
        d: T = START
        for p in range(i64(pos[i]), i64(pos[i + 1])):
            j = i64(crd[p])
            if j BEFORE i:
                a = T(A[p])
                for c in range(0, m):
                    x[i * m + c] = x[i * m + c] - a * x[j * m + c]
            DIAGONAL
        if d == T(0.0):
            SINGULAR
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] / d
"""
"""Substitution into row i of a triangular matrix, of m right sides."""

SUBSTITUTE = f"""
def substitute(lo: i64, hi: i64, order: i64[const], pos: I[const], crd: I[const], A: S[const], x: T[mut],
               bad: i64[mut], m: i64):
    for s in range(lo, hi):
        i = order[s]{ROW.replace("SINGULAR", "bad[0] = i + 1")}"""


@cache
def of_triangle(text: str, lower: bool, unit: bool = False) -> str:
    """A text for a lower or upper triangle, whose diagonal is taken as ones where `unit`."""
    words = {
        "ROW": "s" if lower else "n - 1 - s", "BEFORE": "<" if lower else ">", "START": "1.0" if unit else "0.0",
        "DIAGONAL": "pass" if unit else "if j == i:\n                d += T(A[p])",
    }  # fmt: skip
    for word, new in words.items():
        text = text.replace(word, new)
    return text

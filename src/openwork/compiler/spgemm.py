"""Types and a semiring -> the kernels of Gustavson's product, C[i,:] = sum over k of A[i,k] * B[k,:], as loop IR.

Both operands have compressed rows, sorted and without duplicates, and so has the result. A row's products are
accumulated in one of four ways, chosen by their number:

    copied     one row of B: scaled, nothing to add
    sorted     few products: written one after the other, sorted by column, equal columns added
    hashed     more, and too many columns for the cache: a hash table, whose entries are sorted
    dense      all else: one value per column, and a bitmap of two levels that gives the occupied ones in order;
               rows whose columns lie near each other, as a band's, have a window of columns that begins at their first

A kernel runs over a range of rows and writes them one after the other from slots[lo]; pos[i + 1] is what row i got.
The order of additions is that of k, whatever the accumulator.
"""

from __future__ import annotations

from .. import tuning
from ..classes import frozen
from ..ir.loop import Kernel
from ..ir.text import inlined, parse
from .semiring import Semiring

__all__ = ["FEW", "ProductTypes", "bound_kernel", "count_kernel", "masked_kernel", "product_kernel"]

INSERTION = tuning.SPGEMM_INSERTION_SORT
AHEAD = tuning.SPGEMM_PREFETCH_DISTANCE
FEW = tuning.SPGEMM_WINDOW_PRODUCTS


@frozen
class ProductTypes:
    """The scalar types of the buffers: pos, crd and values of A and B, pos and crd of the result and of the mask.

    iso : whether all values of A, and of B, are one, which is all that the kernel is given
    """

    a: tuple[str, str, str]
    b: tuple[str, str, str]
    out: tuple[str, str]
    result: str
    mask: tuple[str, str] = ("i32", "i32")
    iso: tuple[bool, bool] = (False, False)

    def substitutions(self) -> dict[str, str]:
        """For the kernels' texts."""
        names = ("PA", "CA", "TA", "PB", "CB", "TB", "PO", "CO", "PM", "CM", "T")
        return dict(zip(names, (*self.a, *self.b, *self.out, *self.mask, self.result), strict=True))


_BOUND = """
def spgemm_bound(lo: i64, hi: i64, apos: PA[const], acrd: CA[const], bpos: PB[const], flops: i64[mut]):
    for i in range(lo, hi):
        n: i64 = 0
        for p in range(apos[i], apos[i + 1]):
            k = i64(acrd[p])
            n += i64(bpos[k + 1]) - i64(bpos[k])
        flops[i] = n
"""

_PRODUCT = """
def NAME(lo: i64, hi: i64, apos: PA[const], acrd: CA[const], a: TA[const], bpos: PB[const], bcrd: CB[const],
         b: TB[const], mpos: PM[const], mcrd: CM[const], flops: i64[const], slots: i64[const], pos: PO[mut],
         crd: CO[mut], v: T[mut], columns: i64, width: i64, room: i64, table: i64, bits: i64, digits: i64,
         sort_to: i64, dense_from: i64, window: i64, last: i64):
    w: T[width] = zeros
    touched: u64[(width >> 6) + 1] = zeros
    top: u64[(width >> 12) + 1] = zeros
    keys: i64[2 * room] = empty
    values: T[max(room, table)] = empty
    owner: i64[table] = empty
    ends: i64[2048] = zeros
    BEGIN
    for h in range(0, table):
        owner[h] = -1
    low = (1 << (digits & 63)) - 1
    n: i64 = slots[lo]
    for i in range(lo, hi):
        begin = n + 0
        p0 = i64(apos[i])
        p1 = i64(apos[i + 1])
        u = flops[i]
        ENTER
        SPANNED
        if p1 - p0 == 1:
            COPIED
        elif u < dense_from and span > window:
            f: i64 = 0
            if u <= sort_to:
                EXPANDED
            else:
                HASHED
            SORTED
            EMITTED
            if u > sort_to:
                for e in range(0, f):
                    owner[keys[source + e] & low] = -1
        else:
            DENSE
        LEAVE
        pos[i + 1] = n - begin
"""

_COPIED = """
k = i64(acrd[p0])
for q in range(bpos[k], bpos[k + 1]):
    c = i64(bcrd[q])
    ALLOWED
        crd[n] = c
        v[n] = TIMES
        n += 1
"""

_SPANNED = f"""
base: i64 = 0
span: i64 = columns
if u > {FEW} and window > 0:
    first: i64 = columns
    end: i64 = 0
    s: i64 = p0
    while s < p1:
        k = i64(acrd[s])
        b0 = i64(bpos[k])
        b1 = i64(bpos[k + 1])
        if b1 > b0:
            first = min(first, i64(bcrd[b0]))
            end = max(end, i64(bcrd[b1 - 1]) + 1)
        s += 1
        if end - first > window:
            s = p1
    if end - first <= window:
        base = first & (0 - 64)
        span = end - base
"""
"""The columns that a row of the result may have, from `base`; all of them where these are more than the window."""

_WALK = """
for p in range(p0, p1):
    k = i64(acrd[p])
    after = i64(acrd[min(p + AHEAD, last)])
    prefetch(bcrd, bpos[after])
    prefetch(b, bpos[after])
    for q in range(bpos[k], bpos[k + 1]): # novector
        c = i64(bcrd[q])
        ALLOWED
            PUT
"""

_WALK_RUNS = """
for p in range(p0, p1):
    k = i64(acrd[p])
    after = i64(acrd[min(p + AHEAD, last)])
    prefetch(bcrd, bpos[after])
    prefetch(b, bpos[after])
    at: i64 = bpos[k]
    stop = i64(bpos[k + 1])
    near: i64 = 0
    if stop - at >= 2 * RUN:
        near = i64(i64(bcrd[at + RUN - 1]) - i64(bcrd[at]) == RUN - 1)
    if near == 0:
        for q in range(at, stop): # novector
            c = i64(bcrd[q])
            PUT
    else:
        while at < stop:
            c = i64(bcrd[at])
            x0 = c - base
            run: i64 = 0
            if at + RUN <= stop and (x0 & 63) <= 64 - RUN:
                run = i64(i64(bcrd[at + RUN - 1]) - c == RUN - 1)
            if run == 0:
                q = at + 0
                PUT
                at += 1
            else:
                d0 = x0 >> 6
                if d0 != here:
                    NOTED
                    here = d0
                    found = u64(0)
                found = found | (u64(OF_RUN) << u64(x0 & 63))
                for e in range(0, RUN):
                    x = x0 + e
                    q = at + e
                    w[x] = PLUS_DENSE
                at += RUN
"""
"""Of a row of B that begins with columns that follow one another, as those of blocks do, several such at once."""

_PUT_KEY = """
keys[f] = (c << digits) | f
values[f] = TIMES
f += 1
"""

_PUT_HASH = """
h: i64 = i64((u64(c) * u64(11400714819323198485)) >> u64(32)) & (size - 1)
while owner[h] != c and owner[h] != -1:
    h = (h + 1) & (size - 1)
if owner[h] == c:
    values[h] = PLUS_VALUES
else:
    owner[h] = c
    values[h] = TIMES
    keys[f] = (c << digits) | h
    f += 1
"""

_PUT_DENSE = """
x = c - base
w[x] = PLUS_DENSE
d = x >> 6
if d != here:
    NOTED
    here = d
    found = u64(0)
found = found | (u64(1) << u64(x & 63))
"""

_NOTED = """
touched[here] = touched[here] | found
top[here >> 6] = top[here >> 6] | (u64(1) << u64(here & 63))
"""
"""A word of the bitmap stays in a register while columns fall into it."""

_HASHED = """
size: i64 = 64
while size < 2 * min(u, columns):
    size = size * 2
WALK
"""

_SORTED = f"""
source: i64 = 0
if f <= {INSERTION}:
    for e in range(1, f):
        key = keys[e]
        g: i64 = e
        while g > 0 and keys[g - 1] > key:
            keys[g] = keys[g - 1]
            g = g - 1
        keys[g] = key
else:
    digit: i64 = 5
    while (2 << digit) < f and digit < 11:
        digit += 1
    passes = (bits + digit - 1) // digit
    each = (bits + passes - 1) // passes
    mask = (1 << (each & 15)) - 1
    for s in range(0, passes):
        shift = (digits + s * each) & 63
        target = room - source
        for e in range(0, f): # novector
            x = (keys[source + e] >> shift) & mask
            ends[x] = ends[x] + 1
        total: i64 = target
        for x in range(0, mask + 1): # novector
            count = ends[x]
            ends[x] = total
            total += count
        for e in range(0, f): # novector
            key = keys[source + e]
            x = (key >> shift) & mask
            to = ends[x]
            ends[x] = to + 1
            keys[to] = key
        for x in range(0, mask + 1):
            ends[x] = 0
        source = target
"""

_EMITTED = """
before: i64 = -1
for e in range(0, f): # novector
    key = keys[source + e]
    c = key >> (digits & 63)
    if c == before:
        v[n - 1] = PLUS_LAST
    else:
        crd[n] = c
        v[n] = values[key & low]
        n += 1
        before = c
"""

_DENSE = """
here: i64 = 0
found: u64 = u64(0)
WALK
NOTED
for t in range(0, (span + 4095) >> 12): # novector
    s: u64 = top[t]
    if s != u64(0):
        top[t] = u64(0)
        while s != u64(0):
            d = (t << 6) + i64(ctz(s))
            s = s & (s - u64(1))
            r: u64 = touched[d]
            touched[d] = u64(0)
            SCANNED
"""

_SCANNED = """
while r != u64(0):
    x = (d << 6) + i64(ctz(r))
    r = r & (r - u64(1))
    crd[n] = x + base
    v[n] = w[x]
    w[x] = ZERO
    n += 1
"""

_FORBID = "for q in range(mpos[i], mpos[i + 1]):\n    veto[i64(mcrd[q])] = {}"

_MASKED = """
def spgemm_masked(lo: i64, hi: i64, apos: PA[const], acrd: CA[const], a: TA[const], bpos: PB[const],
                  bcrd: CB[const], b: TB[const], mpos: PM[const], mcrd: CM[const], slots: i64[const], pos: PO[mut],
                  crd: CO[mut], v: T[mut], columns: i64, room: i64, last: i64):
    place: i64[columns] = zeros
    values: T[room] = empty
    seen: bool[room] = zeros
    n: i64 = slots[lo]
    for i in range(lo, hi):
        begin = n + 0
        m0 = i64(mpos[i])
        m1 = i64(mpos[i + 1])
        if m1 > m0 and apos[i + 1] > apos[i]:
            for q in range(m0, m1):
                place[i64(mcrd[q])] = q - m0 + 1
            for p in range(apos[i], apos[i + 1]):
                k = i64(acrd[p])
                after = i64(acrd[min(p + AHEAD, last)])
                prefetch(bcrd, bpos[after])
                for q in range(bpos[k], bpos[k + 1]): # novector
                    h = place[i64(bcrd[q])] - 1
                    if h >= 0:
                        if seen[h]:
                            values[h] = PLUS_VALUES
                        else:
                            values[h] = TIMES
                            seen[h] = True
            for q in range(m0, m1):
                c = i64(mcrd[q])
                place[c] = 0
                if seen[q - m0]:
                    seen[q - m0] = False
                    crd[n] = c
                    v[n] = values[q - m0]
                    n += 1
        pos[i + 1] = n - begin
"""


def bound_kernel(types: ProductTypes) -> Kernel:
    """flops[i] = the number of products in row i of the result, an upper bound of its elements."""
    return parse(_BOUND, reassociate=False, **types.substitutions())


def masked_kernel(types: ProductTypes, semiring: Semiring) -> Kernel:
    """The product at the elements of a mask; a row needs as many slots as the mask has elements there."""
    return parse(_with_semiring(_MASKED, semiring, types.result), reassociate=False, **types.substitutions())


def product_kernel(types: ProductTypes, semiring: Semiring, complement: bool) -> Kernel:
    """The product; complement: except at the elements of a mask."""
    text = _assemble(complement, {})
    return parse(
        _with_semiring(text, semiring, types.result).replace("NAME", "spgemm"),
        reassociate=False,
        **types.substitutions(),
    )


def count_kernel(types: ProductTypes, complement: bool) -> Kernel:
    """The number of elements of each row of the product, in pos[i + 1]."""
    text = _assemble(complement, _COUNTING)
    for statement in ("values[f] = TIMES", "values[h] = TIMES", "w: T[width] = zeros"):
        text = text.replace(statement, "pass")
    for old, new in _UNUSED:
        text = text.replace(old, new)
    return parse(
        text.replace("NAME", "spgemm_count").replace("AHEAD", str(AHEAD)), reassociate=False, **types.substitutions()
    )


_COUNTING = {
    "COPIED": _COPIED.replace("crd[n] = c", "pass").replace("v[n] = TIMES", "pass"),
    "PUT_HASH": _PUT_HASH.replace("if owner[h] == c:", "if owner[h] != c:").replace(
        "    values[h] = PLUS_VALUES\nelse:\n", ""
    ),
    "PUT_DENSE": _PUT_DENSE.replace("w[x] = PLUS_DENSE", "pass"),
    "EMITTED": """
before: i64 = -1
for e in range(0, f): # novector
    c = keys[source + e] >> (digits & 63)
    n += i64(c != before)
    before = c
""",
    "SCANNED": "n += i64(popcount(r))",
}
_UNUSED = (
    ("crd: CO[mut], v: T[mut], ", ""),
    ("a: TA[const], ", ""),
    ("b: TB[const], ", ""),
    ("prefetch(b, bpos[after])", "pass"),
    ("values: T[max(room, table)] = empty", "pass"),
    ("n: i64 = slots[lo]", "n: i64 = 0"),
)


def _assemble(complement: bool, overrides: dict[str, str]) -> str:
    """The product's text with its parts substituted; those of `overrides` replace the usual ones."""
    parts = {
        "SPANNED": _SPANNED,
        "COPIED": _COPIED,
        "EXPANDED": _WALK.replace("PUT", "PUT_KEY"),
        "HASHED": _HASHED.replace("WALK", "WALK_HASH"),
        "SORTED": _SORTED,
        "EMITTED": _EMITTED,
        "DENSE": _DENSE.replace("WALK", "WALK_DENSE"),
        "WALK_HASH": _WALK.replace("PUT", "PUT_HASH"),
        "WALK_DENSE": (_WALK if complement or overrides else _WALK_RUNS).replace("PUT", "PUT_DENSE"),
        "PUT_KEY": _PUT_KEY,
        "PUT_HASH": _PUT_HASH,
        "PUT_DENSE": _PUT_DENSE,
        "NOTED": _NOTED,
        "SCANNED": _SCANNED,
        "BEGIN": "veto: bool[columns] = zeros" if complement else "pass",
        "ENTER": _FORBID.format("True") if complement else "pass",
        "LEAVE": _FORBID.format("False") if complement else "pass",
    } | overrides
    text = inlined(_PRODUCT, parts)
    return text.replace("ALLOWED", "if not veto[c]:" if complement else "if True:")


def _with_semiring(text: str, semiring: Semiring, scalar: str) -> str:
    """The text with the semiring's operations."""
    times = semiring.times("T(a[p])", "T(b[q])")
    single = semiring.times("T(a[p0])", "T(b[q])")
    zero = semiring.add.identity_of(scalar)
    text = text.replace("v[n] = TIMES", f"v[n] = T{single}")
    clear = f"for c in range(0, width):\n        w[c] = {zero!r}" if zero else "pass"
    names = (
        ("PLUS_VALUES", semiring.plus("values[h]", f"T{times}")),
        ("PLUS_DENSE", semiring.plus("w[x]", f"T{times}")),
        ("PLUS_LAST", semiring.plus("v[n - 1]", "values[key & low]")),
        ("TIMES", f"T{times}"),
        ("ZERO", repr(zero)),
        ("AHEAD", str(AHEAD)),
        ("OF_RUN", str((1 << tuning.SPGEMM_RUN) - 1)),
        ("RUN", str(tuning.SPGEMM_RUN)),
        ("    low = (1", f"    {clear}\n    low = (1"),
    )
    for name, new in names:
        text = text.replace(name, new)
    return text

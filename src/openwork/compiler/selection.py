"""A type of elements -> kernels that select in rows: the first k elements in order, or those at given ranks.

A row stores the elements pos[i] to pos[i + 1] of A, in the order of their coordinates crd; the others of its n are the
fill value. Elements become integer keys that order as they do, NaN last, -0 like 0; `flip` = -1 turns the order around.
Equal elements are in the order of their coordinates. Only as many elements of a row are put in order as are asked for:

    partition   keys on either side of a pivot, without branches; the right ends of what is not in order are kept on a
                stack, so that ranks in ascending order cost O(elements + ranks log ranks) together
    bits        64 elements at a time are compared with the ends of a range, and those inside are the bits that are set;
                the places of the first four of them are written without a branch
    sample      of long rows only what lies between two elements of a sample, on either side of a rank, is put in order;
                where the rank is not there, what lies between two further apart. Elements are compared with these ends
                as they are first read, with the fill value at the same time
    counts      rows of 64 elements or fewer: each goes to the place that the number of those before it gives
    limit       of the first k only candidates are kept, 2 k + 32 at a time; none above the k-th of those seen before,
                nor at first above one of a sample, where at least k elements are below that

The unspecified elements are nowhere written down: `less` stored elements come before the fill value, then all that are
equal to it in the order of their coordinates, stored or not, then the other stored ones.

Source: Paredes and Navarro, Optimal incremental sorting, 2006; Martinez, Partial quicksort, 2004; Floyd and Rivest,
Expected time bounds for selection, 1975.
"""

from __future__ import annotations

from .. import tuning
from ..ir.loop import Kernel
from ..ir.text import inlined, parse
from ..ir.types import FLOATS, itemsize
from ..ir.values import int_range
from .incremental_sort import NARROW, SELECT, WIDE

__all__ = ["MORE", "STACK", "TAKEN", "first_kernel", "key_type", "order_kernel", "place_kernel", "rank_kernel"]

MORE = tuning.SELECTION_CANDIDATES
"""Candidates that are kept besides twice those asked for: all of a row of LANES elements."""
LANES = tuning.SELECTION_LANES
TAKEN = tuning.SELECTION_TAKEN
"""Places that are written at once; the room has as many more than a row has elements."""
STACK = 128
"""Ends that are kept; where there are more, what lies between the last two is put in order again."""

_FIRST = """
def select_first(lo: i64, hi: i64, pos: P[const], crd: C[const], A: K[const], B: T[const], fill: K[const],
                 filled: T[const], places: i64[mut], found: i64[mut], k: i64, n: i64, flip: i64, room: i64):
    SPACE
    sample: T[SAMPLE] = empty
    near: T[SAMPLE] = empty
    ends: i64[STACK] = empty
    WRITTEN_TWICE
    FILL_KEY
    for i in range(lo, hi):
        seed: u64 = u64(88172645463325252)
        p0 = START
        p1 = STOP
        free = FREE
        start: i64 = 9223372036854775807
        if free >= k:
            start = max(of_fill, LEAST + 1) - 1
        bounded: i64 = i64(free >= k and fill_value == fill_value)
        limit: i64 = start
        last: T = fill_value
        sampled: i64 = 0
        if p1 - p0 > LONG:
            drawn = const(SAMPLE, i64)
            SAMPLED
            t = 2 * k * SAMPLE // (p1 - p0) + 1
            if t < SAMPLE:
                near_t = near[t] if flip == 0 else near[SAMPLE - 1 - t]
                closer = near_t < fill_value if flip == 0 else near_t > fill_value
                if bounded == 0 or closer:
                    last = near_t
                    bounded = 1
                    sampled = 1
        f: i64 = 0
        begin: i64 = 0
        done: i64 = 0
        top: i64 = 0
        again: i64 = 1
        counts = p1 - p0 <= LANES and k >= FEW
        if counts:
            again = 0
            for p in range(p0, p1):  # novector
                KEYED
                PUT
                f += i64(key <= limit)
            RANKED
        while again == 1:
            f = 0
            c0: i64 = p1 if free >= k and of_fill == LEAST else p0
            while c0 < p1:
                hits: i64 = 0 - 1
                if bounded == 1:
                    hits = 0
                    if c0 + LANES <= p1:
                        LANES_BEFORE
                    else:
                        c: i64 = c0
                        while c + 8 <= p1:
                            EIGHT_BEFORE
                            c += 8
                        for p in range(c, p1):  # novector
                            x = B[p]
                            before = x < last if flip == 0 else not (x <= last)
                            hits = hits | (i64(before) << (p - c0))
                elif c0 + LANES > p1:
                    hits = (const(1, i64) << (p1 - c0)) - 1
                while hits != 0:
                    p = c0 + ctz(hits)
                    hits = hits & (hits - 1)
                    KEYED
                    if key <= limit:
                        PUT
                        full: i64 = 0
                        r = k - 1
                        if k <= INSERT:
                            MOVED
                            f += i64(f < k)
                            full = i64(f == k)
                        else:
                            f += 1
                            if f + 1 == room:
                                ends[0] = f
                                begin = 0
                                done = 0
                                top = 0
                                SELECT
                                f = k
                                full = 1
                        if full == 1:
                            limit = max(KEY_AT_RANK, LEAST + 1) - 1
                            last = B[p0 + PLACE_AT_RANK]
                            bounded = i64(last == last)
                c0 += LANES
            again = sampled * i64(f < k)
            sampled = 0
            last = fill_value
            bounded = i64(free >= k and fill_value == fill_value)
        begin = 0
        done = f if counts or k <= INSERT else 0
        top = 0
        ends[0] = f
        less: i64 = min(f, k)
        equal: i64 = 0
        if free > 0:
            equal = free + 0
            if free < k:
                less = 0
                for p in range(p0, p1):
                    KEYED
                    less += i64(key < of_fill)
                    equal += i64(key == of_fill)
        for r in range(0, min(less, k)):
            SELECT
            out = i * k + r
            at = p0 + PLACE_AT_RANK
            found[out] = at
            places[out] = COORDINATE
        t: i64 = less
        until = min(k, less + equal)
        c: i64 = 0
        q: i64 = p0
        while t < until:
            stored: i64 = 0
            if q < p1:
                if AT_Q == c:
                    stored = 1
            if stored == 1:
                p = q + 0
                KEYED
                if key == of_fill:
                    places[i * k + t] = c
                    found[i * k + t] = p
                    t += 1
                q += 1
            else:
                places[i * k + t] = c
                found[i * k + t] = -1
                t += 1
            c += 1
        for x in range(less + equal, k):
            out = i * k + x
            r = x - free
            if r < f:
                SELECT
                at = p0 + PLACE_AT_RANK
                found[out] = at
                places[out] = COORDINATE
            else:
                found[out] = -1
                places[out] = -1
"""

_RANKS = """
def select_ranks(lo: i64, hi: i64, pos: P[const], crd: C[const], A: K[const], B: T[const], fill: K[const],
                 filled: T[const], ranks: i64[const],
                 places: i64[mut], found: i64[mut], nans: i64[mut], m: i64, step: i64, n: i64, flip: i64, room: i64):
    SPACE
    ends: i64[STACK] = empty
    sample: T[LARGE] = empty
    near: T[LARGE] = empty
    sample_keys: i64[SAMPLE] = empty
    near_keys: i64[SAMPLE] = empty
    FILL_KEY
    for i in range(lo, hi):
        seed: u64 = u64(88172645463325252)
        p0 = START
        p1 = STOP
        free = FREE
        stored = p1 - p0
        less: i64 = 0
        equal: i64 = 0
        nan: i64 = 0
        counted: i64 = COMPLETE * i64(free == 0)
        sampled: i64 = 0
        fresh: i64 = 1
        f: i64 = 0
        base: i64 = 0
        begin: i64 = 0
        done: i64 = 0
        top: i64 = 0
        for x in range(0 - 1, m):
            rank: i64 = -1
            if m > 0:
                rank = ranks[i * step + max(x, 0)]
                if x < 0 and rank >= stored and rank < free:
                    rank = ranks[i * step + m - 1]
            out = i * m + x
            outside = i64(rank < 0 or rank >= stored + free)
            if x >= 0 and outside == 1:
                found[out] = -1
                places[out] = -1
            elif x >= 0 and rank >= less and rank < less + equal + free:
                low: i64 = p0
                high: i64 = p1
                target = rank - less
                skipped: i64 = 0
                position: i64 = -1
                if equal == 0:
                    while low < high:
                        q = (low + high) >> 1
                        if AT_Q - (q - p0) <= target:
                            low = q + 1
                        else:
                            high = q + 0
                    skipped = low - p0
                while low < high:
                    p = low + 0
                    q = low + 0
                    KEYED
                    before = AT_Q - skipped
                    if before > target:
                        high = low + 0
                    elif key == of_fill:
                        if before == target:
                            position = low + 0
                            high = low + 0
                    else:
                        skipped += 1
                    low += 1
                found[out] = position
                places[out] = target + skipped
            else:
                wanted: i64 = rank if rank < less else rank - free
                sampling: i64 = i64(stored > LONG)
                drawn: i64 = LARGE if stored > 4 * LONG else SAMPLE
                if x < 0:
                    sampling = sampling * i64(outside == 0 and not (rank >= stored and rank < free))
                if sampling > sampled:
                    SAMPLED
                    sampled = 1
                if x < 0 and free > 0:
                    t0: i64 = 0
                    if sampling == 1:
                        for s in range(0, drawn):
                            t0 += i64(near[s] < fill_value)
                    wanted = rank if rank * drawn < t0 * stored else rank - free
                    sampling = sampling * i64(wanted >= 0 and wanted < stored)
                if x < 0 or fresh == 1 or wanted < base or wanted >= base + f:
                    narrowed: i64 = 0
                    t: i64 = wanted * drawn // max(stored, 1)
                    reach: i64 = ASIDE_OF_T
                    going: i64 = i64(sampling == 1 or counted == 0)
                    while going == 1:
                        smallest = near[t - reach] if sampling == 1 and t >= reach else T(T_LEAST)
                        largest = near[t + reach] if sampling == 1 and t + reach < drawn else T(T_MOST)
                        below: i64 = 0
                        f = 0
                        block: i64 = p0
                        while block < p1:
                            stop = min(block + BLOCK, p1)
                            if counted == 0:
                                for p in range(block, stop):
                                    y = B[p]
                                    less += i64(y < fill_value)
                                    equal += i64(y <= fill_value)
                                    nan += IS_NAN
                                    below += i64(y < smallest)
                            else:
                                for p in range(block, stop):
                                    below += i64(B[p] < smallest)
                            c0: i64 = block if sampling == 1 else stop
                            while c0 < stop:
                                hits: i64 = 0
                                if c0 + LANES <= p1:
                                    LANES_INSIDE
                                else:
                                    c: i64 = c0
                                    while c + 8 <= p1:
                                        EIGHT_INSIDE
                                        c += 8
                                    for p in range(c, p1):  # novector
                                        hits = hits | (i64(B[p] >= smallest and B[p] <= largest) << (p - c0))
                                inside: i64 = popcount(hits)
                                at: i64 = f + 0
                                again: i64 = 1
                                while again == 1:
                                    TAKEN
                                    at += TAKEN_AT_ONCE
                                    again = i64(hits != 0)
                                f += inside
                                c0 += LANES
                            block = stop
                        base = below
                        going = 0
                        if counted == 0:
                            counted = 1
                            if fill_value != fill_value:
                                less = stored - nan
                                equal = stored + 0
                            equal -= less
                        if sampling == 1:
                            narrowed = i64(wanted >= base and wanted < base + f)
                            if wanted >= stored - nan:
                                sampling = 0
                            if x < 0:
                                right = rank < less or rank >= less + equal + free
                                narrowed = narrowed * i64(right and wanted == (rank if rank < less else rank - free))
                            else:
                                going = sampling * (1 - narrowed)
                                reach *= 2
                    fresh = 1 - narrowed
                    if narrowed == 1:
                        for x1 in range(0, f):
                            p = p0 + PLACE_TAKEN
                            KEYED
                            KEYS_OF_TAKEN
                    elif x >= 0:
                        f = stored + 0
                        base = 0
                        fresh = 0
                        for p in range(p0, p1):
                            KEYED
                            WRITTEN
                        PLACES
                    more: i64 = narrowed * i64(f > AGAIN and f < stored)
                    while more == 1:
                        drawn = SAMPLE
                        for s in range(0, drawn):
                            sample_keys[s] = w[s * f // drawn]
                        for s in range(0, drawn):
                            y = sample_keys[s]
                            g: i64 = 0
                            for s1 in range(0, s):
                                g += i64(sample_keys[s1] <= y)
                            for s1 in range(s + 1, drawn):
                                g += i64(sample_keys[s1] < y)
                            near_keys[g] = y
                        t = (wanted - base) * drawn // f
                        aside = ASIDE_OF_T
                        smallest: i64 = LEAST
                        largest: i64 = 9223372036854775807
                        if t >= aside:
                            smallest = near_keys[t - aside]
                        if t + aside < drawn:
                            largest = near_keys[t + aside]
                        below: i64 = 0
                        inside: i64 = 0
                        for x1 in range(0, f):
                            y1 = w[x1]
                            below += i64(y1 < smallest)
                            inside += i64(y1 <= largest)
                        inside -= below
                        if wanted < base + below or wanted >= base + below + inside or inside == f:
                            more = 0
                        else:
                            kept: i64 = 0
                            span = u64(largest - smallest)
                            for x1 in range(0, f):
                                y1 = w[x1]
                                KEPT
                                kept += i64(u64(y1 - smallest) <= span)
                            base += below
                            f = inside + 0
                            more = i64(f > AGAIN)
                    begin = 0
                    done = 0
                    top = 0
                    ends[0] = f
                if x >= 0:
                    r = wanted - base
                    SELECT
                    at = p0 + PLACE_AT_RANK
                    found[out] = at
                    places[out] = COORDINATE
        nans[i] = nan
"""

_ORDER = """
def select_order(lo: i64, hi: i64, pos: P[const], crd: C[const], A: K[const], B: T[const], fill: K[const],
                 filled: T[const], ranks: i64[const], pivots: i64[const],
                 order: i64[mut], moved: C[mut], m: i64, n: i64, flip: i64, room: i64):
    SPACE
    ends: i64[STACK] = empty
    FILL_KEY
    for i in range(lo, hi):
        seed: u64 = u64(88172645463325252)
        p0 = START
        p1 = STOP
        free = FREE
        stored = p1 - p0
        f: i64 = 0
        less: i64 = 0
        equal: i64 = 0
        if free == 0:
            less = stored + 0
        else:
            for p in range(p0, p1):
                KEYED
                less += i64(key < of_fill)
                equal += i64(key == of_fill)
        begin: i64 = 0
        if m == 0:
            for p in range(p0, p1):
                KEYED
                PUT
                f += 1
            done: i64 = 0
            top: i64 = 0
            ends[0] = f
            for r in range(0, f):
                SELECT
            for r in range(0, f):
                order[p0 + r] = p0 + PLACE_AT_RANK
        else:
            before_fill: i64 = 0
            for x in range(0, m):
                before_fill += i64(ranks[x] < less)
            for p in range(p0, p1):
                order[p] = p + 0
            for x in range(0, m + 2):
                splits: i64 = 0
                pivot: i64 = of_fill
                at: i64 = -1
                place: i64 = -1
                if x == before_fill or x == before_fill + 1:
                    end = less if x == before_fill else less + equal
                    splits = i64(free > 0 and end > begin and end < stored)
                    if x > before_fill:
                        at = 9223372036854775807
                else:
                    x1 = x if x < before_fill else x - 2
                    rank = ranks[x1]
                    place = rank if rank < less else rank - free
                    if rank < less or rank >= less + equal + free:
                        splits = i64(place >= begin and place < stored)
                        if splits == 1:
                            at = pivots[i * m + x1]
                            p = at + 0
                            KEYED
                            pivot = key
                if splits == 1:
                    front: i64 = p0 + begin
                    behind: i64 = 0
                    for e in range(p0 + begin, p1):  # novector
                        p = order[e]
                        KEYED
                        order[front] = p
                        w[behind] = p
                        before = i64(key < pivot or (key == pivot and p < at))
                        front += before
                        behind += 1 - before - i64(p == at)
                    if place >= 0:
                        order[front] = at
                        front += 1
                    for e in range(0, behind):
                        order[front + e] = w[e]
                    begin = front - p0
        for r in range(0, stored):
            moved[p0 + r] = CRD(r + (free if r >= less + equal else 0))
"""

_PLACES = """
def select_places(lo: i64, hi: i64, pos: P[const], crd: C[const], A: K[const], B: T[const], fill: K[const],
                  filled: T[const], order: i64[const], places: i64[mut], n: i64, flip: i64):
    FILL_KEY
    for i in range(lo, hi):
        p0 = START
        p1 = STOP
        free = FREE
        less: i64 = 0
        if free == 0:
            less = p1 - p0
        else:
            for p in range(p0, p1):
                KEYED
                less += i64(key < of_fill)
        for r in range(0, less):
            places[i * n + r] = i64(crd[order[p0 + r]])
        if free > 0:
            at: i64 = i * n + less
            behind: i64 = p0 + less
            c: i64 = 0
            for p in range(p0, p1):
                KEYED
                same = i64(key == of_fill)
                here = i64(crd[p])
                before = at - c
                for e in range(c, here + same):
                    places[before + e] = e
                at = before + here + same
                behind += same
                c = here + 1
            for e in range(c, n):
                places[at - c + e] = e
            at += n - c
            for q in range(behind, p1):
                places[at - behind + q] = i64(crd[order[q]])
"""

_FLOAT_KEY = """
bits = i64(A[p])
size = bits & MAX
key = (INF + 1 if size > INF else (0 if size == 0 else bits ^ ((bits >> 63) & MAX))) ^ flip
"""
_SAMPLED = """
for s in range(0, drawn):
    sample[s] = SAMPLE_S
    near[s] = T(T_LEAST)
for s in range(0, drawn):
    y = sample[s]
    g: i64 = 0
    for s1 in range(0, drawn):
        g += i64(sample[s1] < y)
    near[g] = y
for s in range(1, drawn):
    near[s] = max(near[s], near[s - 1])
"""
"""near = a sample of a row's elements in ascending order, NaN as infinity: each to its rank, without branches."""
_INSIDE = """
prefetch(B, AHEAD)
hereN = vload(B, C, 8)
hits = hits | (bits(hereN >= broadcast(smallest, 8) and hereN <= broadcast(largest, 8)) << SHIFT)
"""
"""hits = a bit for each of eight elements between two ends; NaN is not. The next block comes from memory meanwhile."""
_BEFORE = """
hereN = vload(B, C, 8)
if flip == 0:
    hits = hits | (bits(hereN < broadcast(last, 8)) << SHIFT)
else:
    hits = hits | (bits(not (hereN <= broadcast(last, 8))) << SHIFT)
"""
"""hits = a bit for each of eight elements before another in order; NaN is the largest."""
_RANKED = {
    True: """
for e in range(0, f):
    twice[e] = w[e]
    places_twice[e] = v[e]
    v[e] = -1
padded = (f + 15) & (0 - 16)
for e in range(f, padded):
    twice[e] = 9223372036854775807
for e in range(0, f):
    y = twice[e]
    g: i64 = 0
    for e1 in range(0, padded):
        g += i64(twice[e1] < y)
    while v[g] >= 0:
        g += 1
    w[g] = y
    v[g] = places_twice[e]
""",
    False: """
for e in range(0, f):
    twice[e] = w[e]
padded = (f + 15) & (0 - 16)
for e in range(f, padded):
    twice[e] = 9223372036854775807
for e in range(0, f):
    y = twice[e]
    g: i64 = 0
    for e1 in range(0, padded):
        g += i64(twice[e1] < y)
    w[g] = y
""",
}
"""w = few elements in order, each put where it belongs by how many are less: no branch depends on them."""
_TAKEN = "\n".join(
    f"PLACES_TAKEN[at + {k}] = c0 + ctz(hits) - p0\nhits = hits & (hits - 1)" for k in range(tuning.SELECTION_TAKEN)
)
"""The places of the next elements whose bits are set; behind the last, numbers that are written over."""
_FILL = "fill_value = filled[0]\n"
_ASIDE = "1 + i64(sqrt(f64(t * (drawn - t)) / f64(drawn)) * ASIDE)"
"""How far from place t of a sample a rank is looked for: less at the ends, where it is known better."""
_EXPONENT = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}


def key_type(scalar: str) -> str:
    """The type as which a kernel reads the elements: floats as the integers of their bits."""
    return f"i{8 * itemsize(scalar)}" if scalar in FLOATS else "u8" if scalar == "bool" else scalar


def first_kernel(scalar: str, index: str, crd: str, dense: bool, missing: bool, long: bool) -> Kernel:
    """places[i, t], found[i, t] = coordinate and position of the t-th element of row i, t < k; position -1 where none
    is stored.

    index, crd : the types of pos and crd
    dense : rows store all n elements, one after the other; pos and crd play no part
    missing : unspecified elements are no elements: places and found are -1 behind the stored ones
    long : rows may have 2**32 elements or more
    """
    return _kernel(_FIRST, scalar, index, crd, dense, missing, long)


def rank_kernel(scalar: str, index: str, crd: str, dense: bool, missing: bool, long: bool) -> Kernel:
    """places[i, x], found[i, x] = coordinate and position of the element of rank ranks[i * step + x], x < m, where
    these ascend; -1 and -1 where a rank is negative or beyond the row."""
    return _kernel(_RANKS, scalar, index, crd, dense, missing, long)


def order_kernel(scalar: str, index: str, crd: str, dense: bool, missing: bool, long: bool) -> Kernel:
    """order[p], moved[p] = the position of the element that comes to p, and its coordinate there: all of a row in
    order; or where ranks ascend from 0 on, whose elements are at pivots[i * m + x], those before and behind these, and
    before and behind the fill value, on their sides and in the order of their positions."""
    return _kernel(_ORDER, scalar, index, crd, dense, missing, long)


def place_kernel(scalar: str, index: str, crd: str, dense: bool, missing: bool, long: bool) -> Kernel:
    """places[i * n + r] = the coordinate of the element of rank r in row i, by the positions that an order kernel
    gives; those of the fill value ascend."""
    return _kernel(_PLACES, scalar, index, crd, dense, missing, long)


def _kernel(text: str, scalar: str, index: str, crd: str, dense: bool, missing: bool, long: bool) -> Kernel:
    wide = long or itemsize(scalar) == 8
    of_floats = scalar in FLOATS
    element = "B[p0 + (s >> 2) * ((p1 - p0) * 4 // drawn) + (s & 3)]"
    text = inlined(text, {"SELECT": SELECT, **(WIDE if wide else NARROW), "SAMPLED": _SAMPLED})
    lanes = range(0, LANES, 8)
    parts = {"TAKEN": _TAKEN, "RANKED": _RANKED[wide], "WRITTEN_TWICE": "twice: i64[LANES] = empty"}
    if wide:
        parts["WRITTEN_TWICE"] += "\nplaces_twice: i64[LANES] = empty"
    for name, part in (("INSIDE", _INSIDE), ("BEFORE", _BEFORE)):
        parts[f"LANES_{name}"] = "\n".join(_eight(part, k, f"c0 + {k}", str(k)) for k in lanes)
        parts[f"EIGHT_{name}"] = _eight(part, "", "c", "(c - c0)")
    text = inlined(text, parts)
    text = inlined(
        text, {"FILL_KEY": _FILL + _key(scalar, "fill[0]", "of_fill", "fill_"), "KEYED": _key(scalar, "A[p]")}
    )
    names = {
        "ASIDE_OF_T": _ASIDE,
        "PLACES_TAKEN": "v" if wide else "w",
        "PLACE_TAKEN": "v[x1]" if wide else "w[x1]",
        "KEYS_OF_TAKEN": "w[x1] = key" if wide else "w[x1] = (key << 32) | w[x1]",
        "TAKEN_AT_ONCE": str(tuning.SELECTION_TAKEN),
        "SAMPLE_S": f"({element} if {element} == {element} else T(inf))" if of_floats else element,
        "T_LEAST": "(0.0 - inf)" if of_floats else _literal(int_range(key_type(scalar))[0]),
        "T_MOST": "inf" if of_floats else _literal(int_range(key_type(scalar))[1]),
        "IS_NAN": "i64(y != y)" if of_floats else "0",
        "COMPLETE": "0" if of_floats else "1",
        "KEY_AT_RANK": "w[r]" if wide else "(w[r] >> 32)",
        "PLACE_AT_RANK": "v[r]" if wide else "(w[r] & 4294967295)",
        "CRD": crd,
        "COORDINATE": "at - p0" if dense else "i64(crd[at])",
        "AT_Q": "(q - p0)" if dense else "i64(crd[q])",
        "START": "i * n" if dense else "i64(pos[i])",
        "STOP": "p0 + n" if dense else "i64(pos[i + 1])",
        "FREE": "n * 0" if dense or missing else "n - (p1 - p0)",
        "LEAST": "(0 - 9223372036854775807 - 1)",
        "STACK": str(STACK),
        "BLOCK": str(tuning.SELECTION_BLOCK),
        "LANES": str(LANES),
        "SORTED": str(tuning.SELECTION_SORTED),
        "FEW": str(tuning.SELECTION_FEW),
        "INSERT": str(tuning.SELECTION_INSERTED),
        "SAMPLE": str(tuning.SELECTION_SAMPLE),
        "LARGE": str(tuning.SELECTION_LARGE_SAMPLE),
        "ASIDE": str(tuning.SELECTION_ASIDE),
        "LONG": str(tuning.SELECTION_SAMPLED),
        "AGAIN": str(tuning.SELECTION_SAMPLED // 4),
    }
    for name, new in names.items():
        text = text.replace(name, new)
    return parse(text, K=key_type(scalar), P=index, C=crd, T=scalar if of_floats else key_type(scalar))


def _eight(part: str, number: object, first: str, shift: str) -> str:
    """A part of a text for the eight elements from `first` on, whose bits are shifted."""
    return (
        part.strip("\n")
        .replace("hereN", f"here{number}")
        .replace("C, 8", f"{first}, 8")
        .replace("SHIFT", shift)
        .replace("AHEAD", f"{first} + BLOCK")
    )


def _literal(value: int) -> str:
    """An integer as text: the least i64 is no literal."""
    return f"({value})" if value > -(1 << 63) else "(0 - 9223372036854775807 - 1)"


def _key(scalar: str, element: str, key: str = "key", prefix: str = "") -> str:
    """The statements that make the key of an element."""
    if scalar not in FLOATS:
        signed = {"u64": " ^ (0 - 9223372036854775807 - 1)", "u32": " - 2147483648"}.get(scalar, "")
        return f"{key} = (i64({element}){signed}) ^ flip"
    width = 8 * itemsize(scalar)
    largest = (1 << (width - 1)) - 1
    infinity = ((1 << _EXPONENT[scalar]) - 1) << (width - 1 - _EXPONENT[scalar])
    text = _FLOAT_KEY.replace("INF + 1", str(infinity + 1)).replace("INF", str(infinity)).replace("MAX", str(largest))
    for name in ("bits", "size"):
        text = text.replace(name, prefix + name)
    return text.replace("A[p]", element).replace("key =", f"{key} =")

"""Texts that put the elements of w in their places from the front, as far as these are asked for: partial quicksort.

Source: Paredes and Navarro, Optimal incremental sorting, 2006; Martinez, Partial quicksort, 2004.
"""

from __future__ import annotations

__all__ = ["NARROW", "SELECT", "WIDE"]

SELECT = """
if r >= done:
    begin = max(begin, done)
    while ends[top] <= r:
        begin = ends[top]
        top -= 1
    going: i64 = 1
    while going == 1:
        end = ends[top]
        if end - begin <= SORTED:
            INSERTED
            done = end
            going = 0
        else:
            span = u64(end - begin)
            seed = seed * u64(6364136223846793005) + u64(1442695040888963407)
            i0 = begin + i64(((seed >> u64(33)) * span) >> u64(31))
            seed = seed * u64(6364136223846793005) + u64(1442695040888963407)
            i1 = begin + i64(((seed >> u64(33)) * span) >> u64(31))
            seed = seed * u64(6364136223846793005) + u64(1442695040888963407)
            i2 = begin + i64(((seed >> u64(33)) * span) >> u64(31))
            x0 = w[i0]
            x1 = w[i1]
            x2 = w[i2]
            middle: i64 = i1 if (x0 < x1) == (x1 < x2) else (i0 if (x1 < x0) == (x0 < x2) else i2)
            if (r - begin) * 4 < end - begin:
                middle = (i0 if x0 <= x2 else i2) if x0 <= x1 else (i1 if x1 <= x2 else i2)
            if (end - r) * 4 < end - begin:
                middle = (i0 if x0 >= x2 else i2) if x0 >= x1 else (i1 if x1 >= x2 else i2)
            PARTITIONED
            if r < j:
                if top + 1 < STACK:
                    top += 1
                ends[top] = j
            elif r == j:
                begin = j
                done = j + 1
                going = 0
            else:
                begin = j + 1
"""
"""Puts w[r] in its place, for ascending r: SPACE, PARTITIONED, INSERTED, SORTED and STACK are to be put in."""


NARROW = {
    "SPACE": "w: i64[room] = empty",
    "PUT": "w[f] = (key << 32) | (p - p0)",
    "WRITTEN": "w[p - p0] = (key << 32) | (p - p0)",
    "KEPT": "w[kept] = y1",
    "PLACES": "begin = 0",
    "MOVED": """
y = w[f]
g: i64 = f
while g > 0 and w[g - 1] > y:
    w[g] = w[g - 1]
    g -= 1
w[g] = y
""",
    "INSERTED": """
for e in range(begin + 1, end):  # novector
    y = w[e]
    g: i64 = e
    while g > begin and w[g - 1] > y:
        w[g] = w[g - 1]
        g -= 1
    w[g] = y
""",
    "PARTITIONED": """
pivot = w[middle]
w[middle] = w[begin]
w[begin] = pivot
j: i64 = begin + 1
for e in range(begin + 1, end):  # novector
    y = w[e]
    w[e] = w[j]
    w[j] = y
    j += i64(y < pivot)
j -= 1
w[begin] = w[j]
w[j] = pivot
""",
}
"""Keys of 32 bits and the places of elements in their rows, in one integer."""

WIDE = {
    "SPACE": "w: i64[room] = empty\nv: i64[room] = empty",
    "PUT": "w[f] = key\nv[f] = p - p0",
    "WRITTEN": "w[p - p0] = key",
    "KEPT": "w[kept] = y1\nv[kept] = v[x1]",
    "PLACES": "for x1 in range(0, f):\n    v[x1] = x1",
    "MOVED": """
y = w[f]
z = v[f]
g: i64 = f
while g > 0 and w[g - 1] > y:
    w[g] = w[g - 1]
    v[g] = v[g - 1]
    g -= 1
w[g] = y
v[g] = z
""",
    "INSERTED": """
for e in range(begin + 1, end):  # novector
    y = w[e]
    z = v[e]
    g: i64 = e
    while g > begin and (w[g - 1] > y or (w[g - 1] == y and v[g - 1] > z)):
        w[g] = w[g - 1]
        v[g] = v[g - 1]
        g -= 1
    w[g] = y
    v[g] = z
""",
    "PARTITIONED": """
pivot = w[middle]
chosen = v[middle]
w[middle] = w[begin]
v[middle] = v[begin]
w[begin] = pivot
v[begin] = chosen
j: i64 = begin + 1
if pivot < 9223372036854775807:
    for e in range(begin + 1, end):  # novector
        y = w[e]
        z = v[e]
        w[e] = w[j]
        v[e] = v[j]
        w[j] = y
        v[j] = z
        j += i64(y < pivot + i64(z < chosen))
else:
    for e in range(begin + 1, end):
        y = w[e]
        z = v[e]
        w[e] = w[j]
        v[e] = v[j]
        w[j] = y
        v[j] = z
        j += i64(y < pivot or z < chosen)
j -= 1
w[begin] = w[j]
v[begin] = v[j]
w[j] = pivot
v[j] = chosen
""",
}
"""Keys of 64 bits, and the places beside them."""

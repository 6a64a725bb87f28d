"""Two lists of elements -> their products at equal coordinates: counted, scanned, expanded, sorted and summed.

C[i, k] = A[i, j] * B[j, k]      for every element (i, j) of A, the elements of B with that j: a range, once B is
                                 sorted by j; products are numbered by a scan of the ranges' lengths, each item
                                 finds its pair by bisection, and products of one (i, k) are summed after a sort
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..compiler.semiring import Semiring
from ..errors import UnsupportedError
from ..runtime.promote import compute_scalar
from .adapter import Memory
from .conversion import ordered, starts_of
from .coordinates import Elements
from .kernels import each
from .vector import cast, chosen, fill, gather, order_of, scan

__all__ = ["Labelled", "bisected", "combined", "key_of", "pairs", "summed_runs", "within"]

KEY = 62


@dataclass(slots=True, eq=False)
class Labelled:
    """Elements whose dimensions have letters."""

    letters: str
    elements: Elements

    @property
    def extents(self) -> dict[str, int]:
        """The extent of each letter."""
        return dict(zip(self.letters, self.elements.shape, strict=True))


_BISECT = """
low: i64 = 0
high: i64 = length
while low < high:
    middle = (low + high) // 2
    if x[middle] {} v[t]:
        low = middle + 1
    else:
        high = middle
y[t] = low
""".strip("\n")


def bisected(x: Memory, values: Memory, right: bool = False) -> Memory:
    """For each value the number of elements of ordered x that are less, or that are not greater."""
    out = x.device.memory(values.length, "i64")
    body = _BISECT.format("<=" if right else "<")
    each(x.device, values.length, body, {"y": out}, x=x, v=values, length=x.length)
    return out


def key_of(coordinates: Sequence[Memory], extents: Sequence[int], length: int, like: Memory, what: str) -> Memory:
    """Coordinates as one number. Raises UnsupportedError where it has more than 62 bits."""
    if math.prod(extents).bit_length() > KEY:
        raise UnsupportedError(
            f"{what} on {like.device.name}: coordinates of extents {tuple(extents)} together have more than {KEY} bits"
            "\n  help: to('cpu') first"
        )
    key = fill(like.device, length, 0, "i64")
    for c, n in zip(coordinates, extents, strict=True):
        each(like.device, length, "y[t] = y[t] * extent + c[t]", {"y": key}, c=c, extent=n)
    return key


def pairs(left: Memory, right: Memory, bound: int) -> tuple[Memory, Memory]:
    """The places of all pairs of equal keys: of the first list in order, of the second in its own order for each.

    bound : a number that all keys are less than
    """
    device = left.device
    order = order_of([(right, bound)])
    keys = gather(right, order)
    first, last = bisected(keys, left), bisected(keys, left, right=True)
    counts = device.memory(left.length, "i64")
    each(device, left.length, "y[t] = last[t] - first[t]", {"y": counts}, first=first, last=last)
    starts, total = scan(counts)
    a, b = device.memory(total, "i64"), device.memory(total, "i64")
    body = """
low: i64 = 0
high: i64 = length
while low < high:
    middle = (low + high) // 2
    if starts[middle] <= t:
        low = middle + 1
    else:
        high = middle
a[t] = low - 1
b[t] = order[first[low - 1] + t - starts[low - 1]]
""".strip("\n")
    each(device, total, body, {"a": a, "b": b}, starts=starts, first=first, order=order, length=left.length)
    return a, b


def within(keys: Memory, allowed: Memory, complement: bool = False) -> Memory:
    """1 for each key that is among others, or for each that is not, in i64. allowed : ordered"""
    at, out = bisected(allowed, keys), keys.device.memory(keys.length, "i64")
    body = "there: i64 = 0\nif at[t] < n_allowed:\n    there = i64(x[at[t]] == k[t])\ny[t] = there"
    if complement:
        body = body.replace("y[t] = there", "y[t] = 1 - there")
    each(keys.device, keys.length, body, {"y": out}, at=at, x=allowed, k=keys, n_allowed=allowed.length)
    return out


def combined(
    a: Labelled, b: Labelled, output: str, ring: Semiring, scalar: str, mask: tuple[Memory, bool] | None, what: str
) -> Elements:  # fmt: skip
    """The products of two tensors' elements over a semiring, without duplicates: elements with the letters `output`.

    mask : the ordered keys of what is computed, and whether these are left out instead
    """
    extents = a.extents | b.extents
    shared = [c for c in a.letters if c in b.letters]
    keys = []
    for x in (a, b):
        found = [x.elements.coordinates[x.letters.index(c)] for c in shared]
        n = x.elements.values.length
        keys.append(key_of(found, [extents[c] for c in shared], n, x.elements.values, what))
    at_a, at_b = pairs(keys[0], keys[1], math.prod(extents[c] for c in shared))
    coordinates = _chosen_coordinates(a, b, at_a, at_b, output)
    if mask is not None:
        key = key_of(coordinates, [extents[c] for c in output], at_a.length, at_a, what)
        kept = chosen(within(key, *mask))
        at_a, at_b = gather(at_a, kept), gather(at_b, kept)
        coordinates = [gather(c, kept) for c in coordinates]
    compute = compute_scalar(scalar)
    values = at_a.device.memory(at_a.length, compute)
    text = ring.times("T_y(x[i[t]])", "T_y(v[j[t]])")
    reads = {"x": a.elements.values, "v": b.elements.values, "i": at_a, "j": at_b}
    used = {k: m for k, m in reads.items() if f"{k}[" in text or (k in "ij" and f"[{k}[" in text)}
    each(at_a.device, at_a.length, f"y[t] = T_y({text})", {"y": values}, **used)
    shape = tuple(extents[c] for c in output)
    e, _, marks = ordered(Elements(shape, coordinates, values), coordinates, list(shape))
    _, starts, count = starts_of(marks)
    if count == e.values.length:
        return Elements(shape, e.coordinates, cast(e.values, scalar))
    firsts = Memory(e.values.device, "i64", count, starts.handle)
    sums = summed_runs(e.values, starts, ring)
    return Elements(shape, [gather(c, firsts) for c in e.coordinates], cast(sums, scalar))


def _chosen_coordinates(a: Labelled, b: Labelled, at_a: Memory, at_b: Memory, output: str) -> list[Memory]:
    out = []
    for c in output:
        x, at = (a, at_a) if c in a.letters else (b, at_b)
        out.append(gather(x.elements.coordinates[x.letters.index(c)], at))
    return out


def summed_runs(values: Memory, starts: Memory, ring: Semiring) -> Memory:
    """The sum of each run of values by a semiring's addition, in order. starts : of runs, and the end of the last"""
    device, n, scalar = values.device, starts.length - 1, values.scalar
    out = device.memory(n, scalar)
    body = f"""
v: T_y = x[starts[t]]
for q in range(starts[t] + 1, starts[t + 1]):
    v = T_y({ring.plus("v", "x[q]")})
y[t] = v
""".strip("\n")
    each(device, n, body, {"y": out}, x=values, starts=starts)
    return out

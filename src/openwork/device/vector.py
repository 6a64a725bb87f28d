"""Vectors in a device's memory: filled, gathered, scanned, sorted, searched. The host reads no result but counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from ..storage.buffers import torch_module
from .adapter import Adapter, Memory
from .kernels import Number, each, groups_for, whole

__all__ = [
    "cast", "chosen", "fill", "gather", "heads", "index_type", "iota", "joined", "lower_bound", "order_of",
    "scan", "strided", "uniform",
]  # fmt: skip


def fill(device: Adapter, n: int, value: complex, scalar: str) -> Memory:
    """n elements of one value."""
    out = device.memory(n, scalar)
    each(device, n, "y[t] = v", {"y": out}, v=Number(value, scalar))
    return out


def iota(device: Adapter, n: int) -> Memory:
    """0, ..., n - 1."""
    out = device.memory(n, "i64")
    each(device, n, "y[t] = t", {"y": out})
    return out


_DRAWN = """
z: u64 = seed + u64(t + 1) * step
z = (z ^ (z >> u64(30))) * first
z = (z ^ (z >> u64(27))) * second
z = z ^ (z >> u64(31))
y[t] = T_y(f64(i64(z >> u64(11))) * unit)
""".strip("\n")


def uniform(device: Adapter, n: int, scalar: str) -> Memory:
    """n random numbers from 0 to 1, 1 not included but by rounding: of the device's library, or SplitMix64's of the
    numbers from 1 on, by a seed from torch's generator."""
    out = device.uniform(n, scalar)
    if out is not None:
        return out
    out, seed = device.memory(n, scalar), int(torch_module().randint(1 << 62, ()))
    numbers = {"seed": seed, "step": 0x9E3779B97F4A7C15, "first": 0xBF58476D1CE4E5B9, "second": 0x94D049BB133111EB}
    words = {name: Number(value, "u64") for name, value in numbers.items()}
    each(device, n, _DRAWN, {"y": out}, unit=Number(2.0**-53, "f64"), **words)
    return out


def gather(x: Memory, at: Memory) -> Memory:
    """x[at]."""
    out = x.device.memory(at.length, x.scalar)
    each(x.device, at.length, "y[t] = x[at[t]]", {"y": out}, x=x, at=at)
    return out


def strided(x: Memory, shape: Sequence[int], strides: Sequence[int], first: int = 0) -> Memory:
    """The elements of a view with strides, from an element on, row-major."""
    out = x.device.memory(math.prod(shape), x.scalar)
    terms, step, numbers = ["first"], 1, {"first": first}
    for k in reversed(range(len(shape))):
        terms.append(f"t // below{k} % n{k} * by{k}")
        numbers |= {f"below{k}": step, f"n{k}": shape[k], f"by{k}": strides[k]}
        step *= shape[k]
    each(x.device, out.length, f"y[t] = x[{' + '.join(terms)}]", {"y": out}, x=x, **numbers)
    return out


def cast(x: Memory, scalar: str) -> Memory:
    """The elements in another type; itself where they are of it."""
    if x.scalar == scalar:
        return x
    out = x.device.memory(x.length, scalar)
    each(x.device, x.length, "y[t] = T_y(x[t])", {"y": out}, x=x)
    return out


def joined(parts: Sequence[Memory]) -> Memory:
    """Vectors of one type, one behind the other."""
    first, at = parts[0], 0
    out = first.device.memory(sum(p.length for p in parts), first.scalar)
    for p in parts:
        each(first.device, p.length, "y[first + t] = x[t]", {"y": out}, x=p, first=at)
        at += p.length
    return out


_SCAN = """
s: i64[ITEMS] = local
at = group * ITEMS + item
v: i64 = 0
if at < n:
    v = i64(x[at])
s[item] = v
barrier()
step: i64 = 1
while step < ITEMS:
    before: i64 = 0
    if item >= step:
        before = s[item - step]
    barrier()
    s[item] += before
    barrier()
    step = step * 2
if at < n:
    y[at] = s[item] - v
if item == ITEMS - 1:
    sums[group] = s[item]
"""
"""Sums of what stands before each element of a group, by steps of doubled length, and the sum of the group."""


def scan(x: Memory) -> tuple[Memory, int]:
    """The sums of the elements before each, and that of all, which the host reads."""
    out, last = _scan(x)
    return out, int(last.at(0)) if x.length else 0


def _scan(x: Memory) -> tuple[Memory, Memory]:
    """The sums, and a vector whose first element is that of all."""
    device, n = x.device, x.length
    out, groups = device.memory(n, "i64"), groups_for(n, device.grid)
    sums = device.memory(groups, "i64")
    whole(device, n, _SCAN, {"y": out, "sums": sums}, x=x)
    if groups <= 1:
        return out, sums
    before, total = _scan(sums)
    each(device, n, "y[t] += before[t // ITEMS]", {"y": out}, before=before)
    return out, total


def chosen(flags: Memory) -> Memory:
    """The places of 1 among flags of 0 and 1, in order."""
    place, count = scan(flags)
    out = flags.device.memory(count, "i64")
    each(flags.device, flags.length, "if i64(f[t]) != 0:\n    y[place[t]] = t", {"y": out}, f=flags, place=place)
    return out


_COUNT = """
s: i64[RADIX] = local
at = group * ITEMS + item
if item < RADIX:
    s[item] = 0
barrier()
if at < n:
    atomic('add', s[(key[order[at]] >> shift) & (RADIX - 1)], 1)
barrier()
if item < RADIX:
    counts[item * blocks + group] = s[item]
"""
_PLACE = """
s: i64[ITEMS] = local
at = group * ITEMS + item
digit: i64 = RADIX
if at < n:
    digit = (key[order[at]] >> shift) & (RADIX - 1)
s[item] = digit
barrier()
if at < n:
    rank: i64 = 0
    for k in range(0, item):
        rank += i64(s[k] == digit)
    y[starts[digit * blocks + group] + rank] = order[at]
"""
"""A pass of a radix sort: digits counted by group, and elements behind those of lesser digits, earlier groups, and
earlier items, so that equal ones keep their order."""


def order_of(keys: Sequence[tuple[Memory, int]]) -> Memory:
    """The places of elements by ascending keys, the first key first; equal ones keep their order.

    keys : integers from 0, and a number that all are less than
    """
    first = keys[0][0]
    order = iota(first.device, first.length)
    if len(keys) == 1 and not scan(_falls(first))[1]:
        return order
    for key, bound in reversed(keys):
        order = _by_key(key, max(0, bound - 1).bit_length(), order)
    return order


def _falls(key: Memory) -> Memory:
    """1 where a key is less than the one before, in i64."""
    out = key.device.memory(key.length, "i64")
    body = "y[t] = 0\nif t > 0:\n    y[t] = i64(x[t] < x[t - 1])"
    each(key.device, key.length, body, {"y": out}, x=key)
    return out


def _by_key(key: Memory, bits: int, order: Memory) -> Memory:
    device, n = key.device, key.length
    blocks = groups_for(n, device.grid)
    digits = min(4, device.grid.items.bit_length() - 1)
    radix = str(1 << digits)
    for shift in range(0, bits if n > 1 else 0, digits):
        counts = device.memory(blocks << digits, "i64")
        numbers = {"shift": shift, "blocks": blocks}
        whole(device, n, _COUNT.replace("RADIX", radix), {"counts": counts}, key=key, order=order, **numbers)
        starts, _ = _scan(counts)
        out = device.memory(n, "i64")
        whole(device, n, _PLACE.replace("RADIX", radix), {"y": out}, key=key, order=order, starts=starts, **numbers)
        order = out
    return order


def heads(keys: Sequence[Memory]) -> Memory:
    """1 where an element of ordered keys differs from that before, in i64; the first does."""
    device, n = keys[0].device, keys[0].length
    out = fill(device, n, 0, "i64")
    for key in keys:
        body = "if t == 0:\n    y[t] = 1\nelse:\n    y[t] = y[t] | i64(x[t] != x[t - 1])"
        each(device, n, body, {"y": out}, x=key)
    return out


def lower_bound(x: Memory, first: int, n: int) -> Memory:
    """For q = first, ..., first + n - 1 the number of elements of ordered x that are less."""
    out = x.device.memory(n, "i64")
    body = """
low: i64 = 0
high: i64 = length
while low < high:
    middle = (low + high) // 2
    if x[middle] < first + t:
        low = middle + 1
    else:
        high = middle
y[t] = low
"""
    each(x.device, n, body.strip("\n"), {"y": out}, x=x, first=first, length=x.length)
    return out


def index_type(*bounds: int) -> str:
    """The type of indices that are less than or equal to these numbers."""
    return "i32" if reduce(max, bounds, 0) < 2**31 else "i64"

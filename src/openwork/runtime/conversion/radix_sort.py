"""A storage and any stage -> the result: target coordinates as keys, a radix sort, sorted elements appended."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.conversion import Stage
from ...compiler.conversion.level_runs import Kind
from ...compiler.conversion.sort import DIGIT, count_kernel, extract_kernel, gather_kernel, radix_kernel
from ...compiler.conversion.stream import Sorted
from ...storage.buffers import address, length
from ...storage.storage import Storage
from .append import append
from .assembly import Assembly
from .conversion_kernels import Spans, call

__all__ = ["by_levels", "distinct", "radix", "sort"]


def sort(storage: Storage, stage: Stage) -> Storage:
    """Convert by sorting; keys of one word where the coordinates' bits fit, else one sort per level."""
    out = Assembly.begin(storage, stage)
    kernels, arguments = out.kernels, out.words
    bits = [max(hi - lo - 1, 0).bit_length() for lo, hi in out.spans]
    packed = sum(bits) <= 62
    if stage.drop or kernels.padded:
        kernels.run("count elements", lambda: count_kernel("count", kernels.stream, stage.target), arguments)
        count = out.total(0)
    else:
        count = length(storage.values)
    shifts = [sum(bits[at + 1 :]) for at in range(len(bits))]
    if packed:
        for at, n in enumerate(bits):
            arguments[f"shift{at}"], arguments[f"mask{at}"] = shifts[at], (1 << n) - 1
    leaves = np.empty(count, np.int64)
    keys = [np.empty(count, np.uint64 if packed else np.int64) for _ in range(1 if packed else len(bits))]
    arguments |= {"key" if packed else f"key{at}": address(key) for at, key in enumerate(keys)}
    arguments["order" if packed else "leaves"] = address(leaves)
    kind = "packed" if packed else "levels"
    kernels.run(
        f"extract {kind}", lambda: extract_kernel("extract", kernels.stream, kernels.target, packed=packed), arguments
    )
    last = [run for run in out.runs if run.kind is not Kind.LOCATED][-1].last
    if packed:
        key, order = radix(keys[0], leaves, shifts[last], sum(bits))
        arguments["key"], arguments["order"] = address(key), address(order)
    else:
        order = by_levels(keys[: last + 1], out.spans, bits)
        arguments["order"], arguments["leaves"] = address(order), address(leaves)
    arguments["count"] = count
    return append(out, Sorted(len(bits), packed), count, f"append sorted {kind}")


def radix(key: Any, order: Any, low: int, high: int) -> tuple[Any, Any]:
    """`key` and `order` sorted stably by the bits low to high of the keys."""
    if low < high and len(key) > 1:
        key_out, order_out = np.empty_like(key), np.empty_like(order)
        for shift in range(low, high, DIGIT):
            arguments = {"count": len(key), "shift": shift, "key": address(key), "order": address(order)}
            arguments |= {"key_out": address(key_out), "order_out": address(order_out)}
            call("radix_pass", radix_kernel, arguments)
            key, key_out, order, order_out = key_out, key, order_out, order
    return key, order


def by_levels(keys: list[Any], spans: Spans, bits: list[int]) -> Any:
    """The permutation that sorts by several keys, the first the most significant."""
    order = np.arange(len(keys[0]), dtype=np.int64)
    for at in reversed(range(len(keys))):
        key = np.empty(len(order), np.uint64)
        arguments = {"count": len(order), "low": spans[at][0]}
        arguments |= {"raw": address(keys[at]), "order": address(order), "key": address(key)}
        call("gather_keys", gather_kernel, arguments)
        _, order = radix(key, order, 0, bits[at])
    return order


def distinct(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The distinct elements of a real vector in order, NaN once: `np.unique`, which hashes them under Python's lock."""
    ordered = np.sort(x)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    if len(ordered) and ordered[-1] != ordered[-1]:
        is_first[np.searchsorted(ordered, ordered[-1]) + 1 :] = False
    return ordered[is_first]

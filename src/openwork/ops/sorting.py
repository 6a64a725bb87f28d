"""The general conversion: target coordinates as keys, a radix sort, and the target appended from sorted elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.conversion import Stage
from ..compiler.conversion.sort import DIGIT, count_kernel, extract_kernel, gather_kernel, radix_kernel
from ..compiler.conversion.stream import Sorted, Walked
from ..compiler.conversion.target import Kind
from ..storage.storage import Storage
from .assembly import Assembly, operand_of, run_kernel, source_arguments

__all__ = ["sort"]


def sort(storage: Storage, stage: Stage) -> Storage:
    """Convert by sorting; keys of one word where the coordinates' bits fit, else one sort per level."""
    from .appending import append

    out = Assembly.begin(storage, stage)
    source = operand_of(storage)
    stream = Walked(source, stage.drop)
    names: dict[str, Any] = source_arguments(storage) | out.arguments()
    bits = [max(hi - lo - 1, 0).bit_length() for lo, hi in out.spans]
    packed = sum(bits) <= 64
    total = np.zeros(1, np.int64)
    run_kernel(
        out.key("count elements", source), lambda: count_kernel("count", stream, stage.target), names | {"sizes": total}
    )
    count = int(total[0])
    shifts = [sum(bits[at + 1 :]) for at in range(len(bits))]
    for at, n in enumerate(bits):
        names[f"shift{at}"], names[f"mask{at}"] = min(shifts[at], 63), (1 << n) - 1
    leaves = np.empty(count, np.int64)
    keys = (
        {"key": np.empty(count, np.uint64)}
        if packed
        else {f"key{at}": np.empty(count, np.int64) for at in range(len(bits))}
    )
    names |= keys | {"order" if packed else "leaves": leaves, "sizes": total}
    kind = "packed" if packed else "levels"
    build = lambda: extract_kernel("extract", stream, out.operand, packed=packed)  # noqa: E731
    run_kernel(out.key(f"extract {kind}", source), build, names)
    last = [run for run in out.runs if run.kind is not Kind.LOCATED][-1].last
    if packed:
        names["key"], names["order"] = radix(keys["key"], leaves, shifts[last], sum(bits))
    else:
        names["order"] = by_levels([keys[f"key{at}"] for at in range(last + 1)], out.spans, bits)
        names["leaves"] = leaves
    names["count"] = count
    return append(out, Sorted(len(bits), packed), names, out.key(f"append sorted {kind}"), count)


def radix(key: Any, order: Any, low: int, high: int) -> tuple[Any, Any]:
    """`key` and `order` sorted stably by the bits low to high of the keys."""
    if low < high and len(key) > 1:
        key_out, order_out = np.empty_like(key), np.empty_like(order)
        for shift in range(low, high, DIGIT):
            names = {
                "count": len(key),
                "shift": shift,
                "key": key,
                "order": order,
                "key_out": key_out,
                "order_out": order_out,
            }
            run_kernel("radix_pass", radix_kernel, names)
            key, key_out, order, order_out = key_out, key, order_out, order
    return key, order


def by_levels(keys: list[Any], spans: tuple[tuple[int, int], ...], bits: list[int]) -> Any:
    """The permutation that sorts by several keys, the first the most significant."""
    order = np.arange(len(keys[0]), dtype=np.int64)
    for at in reversed(range(len(keys))):
        key = np.empty(len(order), np.uint64)
        names = {"count": len(order), "low": spans[at][0], "raw": keys[at], "order": order, "key": key}
        run_kernel("gather_keys", gather_kernel, names)
        _, order = radix(key, order, 0, bits[at])
    return order

"""Conversion by buckets: histogram, scan, scatter, and the buckets put in order where needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.conversion import Stage
from ..compiler.conversion.bucket import histogram_kernel, scan_kernel, scatter_kernel
from ..compiler.conversion.stream import Walked
from ..compiler.conversion.within import KEY_BITS, order_kernel
from ..storage.buffers import empty, zeros
from ..storage.storage import Storage
from .assembly import Assembly, operand_of, run_kernel, source_arguments
from .sorting import sort

__all__ = ["bucket"]


def bucket(storage: Storage, stage: Stage) -> Storage:
    """Convert to located levels with one compressed chain below."""
    out = Assembly.begin(storage, stage)
    chain = out.runs[-1]
    merge = not (stage.unique or stage.keep)
    bits = [max(out.spans[at][1] - out.spans[at][0] - 1, 0).bit_length() for at in chain.levels]
    ordered = stage.sort or merge
    if ordered and sum(bits) > KEY_BITS:
        return sort(storage, stage)
    source = operand_of(storage)
    stream = Walked(source, stage.drop)
    parents = out.levels_above(chain, {})
    pos = out.pos[chain.first] = zeros(parents + 1, out.index, out.like)
    totals = np.zeros(2, np.int64)
    names: dict[str, Any] = source_arguments(storage)
    names |= {f"b_pos{chain.first}": pos, "pos": pos, "sizes": totals, "parents": parents}
    if stage.drop:
        names |= out.arguments()
    run_kernel(out.key("histogram", source), lambda: histogram_kernel("histogram", stream, out.operand), names)
    run_kernel(f"scan {out.index}", lambda: scan_kernel(out.index), names)
    count = int(totals[0])
    for at in chain.levels:
        names[f"b_crd{at}"] = out.crd[at] = empty(count, out.index, out.like)
    names["b_vals"] = out.values = empty(count, storage.scalar, out.like)
    run_kernel(out.key("bucket", source), lambda: scatter_kernel("bucket", stream, out.operand), names)
    if ordered:
        longest = int(totals[1])
        names |= {"room": max(longest, 64), "bits": sum(bits)}
        for number, at in enumerate(chain.levels):
            names |= {
                f"lo{at}": out.spans[at][0],
                f"shift{at}": sum(bits[number + 1 :]),
                f"mask{at}": (1 << bits[number]) - 1,
            }
        run_kernel(out.key("order", None), lambda: order_kernel("order_buckets", out.operand, merge=merge), names)
        if merge and totals[0] < count:
            count = int(totals[0])
            out.values = out.values[:count]
            for at in chain.levels:
                crd = out.crd[at]
                assert crd is not None
                out.crd[at] = crd[:count]
    return out.storage()

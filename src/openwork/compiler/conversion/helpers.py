"""Index and value types -> small kernels that finish a level once its elements are stored."""

from __future__ import annotations

from ...ir.loop import Kernel
from ..build import Builder

__all__ = ["close_kernel", "complete_kernel", "copy_kernel", "vacant_kernel"]


def copy_kernel(scalar: str) -> Kernel:
    """`out[lo:hi] = x[lo:hi]`."""
    builder = Builder("copy", ranged=True)
    builder.buffer("x", scalar)
    builder.buffer("out", scalar, mutable=True)
    builder.top.run("for e in range(lo, hi):\n    out[e] = x[e]")
    return builder.kernel()


def close_kernel(scalar: str) -> Kernel:
    """Parents without children: pos becomes its running maximum."""
    builder = Builder("close_edges")
    builder.scalar("parents")
    builder.buffer("pos", scalar, mutable=True, wide=True)
    builder.top.run(
        """
        end: i64 = 0
        for p in range(0, parents):
            end = max(end, pos[p + 1])
            pos[p + 1] = end
        """
    )
    return builder.kernel()


def complete_kernel(crd: str, values: str) -> Kernel:
    """Fill up the slots of a structured level: parents with fewer than `width` elements get the smallest coordinates
    that they do not have, with the fill value, in order. `block` values stand below each slot."""
    builder = Builder("complete_slots")
    for name in ("parents", "width", "block", "vacant"):
        builder.scalar(name)
    builder.buffer("fill", values)
    builder.buffer("crd", crd, mutable=True, wide=True)
    builder.buffer("out", values, mutable=True)
    builder.top.run(
        """
        v = fill[0]
        for p in range(0, parents):
            base = p * width
            have: i64 = 0
            while have < width and crd[base + min(have, width - 1)] != vacant:
                have += 1
            while have < width:
                s: i64 = 0
                while s < have and crd[base + s] == s:
                    s += 1
                t: i64 = have
                while t > s:
                    crd[base + t] = crd[base + t - 1]
                    for e in range(0, block):
                        out[(base + t) * block + e] = out[(base + t - 1) * block + e]
                    t -= 1
                crd[base + s] = s
                for e in range(0, block):
                    out[(base + s) * block + e] = v
                have += 1
        """
    )
    return builder.kernel()


def vacant_kernel(crd: str) -> Kernel:
    """The first parent with a vacant slot, into sizes[0], or -1."""
    builder = Builder("find_vacant")
    for name in ("count", "vacant"):
        builder.scalar(name)
    builder.buffer("crd", crd, wide=True)
    builder.buffer("sizes", "i64", mutable=True)
    builder.top.run(
        """
        sizes[0] = -1
        for e in range(0, count):
            if crd[e] == vacant:
                sizes[0] = e
                return 0
        """
    )
    return builder.kernel()

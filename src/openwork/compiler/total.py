"""The kernel that sums an array of values row by row, each row in lanes."""

from __future__ import annotations

from ..ir.loop import Kernel
from ..ir.text import parse

__all__ = ["total_kernel"]


def total_kernel(source: str, scalar: str) -> Kernel:
    """`sums[r]` is the sum of the `row` values from `r * row` on, of fewer at the end; summed in `scalar`."""
    zero = "0.0" if scalar.startswith("f") else "0"
    return parse(
        f"""
        def total(lo: i64, hi: i64, row: i64, count: i64, values: {source}[const], sums: {scalar}[mut]):  # reassociate
            for r in range(lo, hi):
                acc: {scalar} = {zero}
                for e in range(r * row, min(r * row + row, count)):
                    acc += {scalar}(values[e])
                sums[r] = acc
        """
    )

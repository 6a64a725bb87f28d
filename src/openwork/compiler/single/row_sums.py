"""The kernels that reduce an array of values row by row, each row in lanes, and rows with each other."""

from __future__ import annotations

from ...ir.loop import Kernel
from ...ir.text import parse

__all__ = ["extreme_kernel", "join_kernel", "total_kernel"]


def total_kernel(source: str, scalar: str, bitmap: bool = False) -> Kernel:
    """`sums[r]` is the sum of the `row` values from `r * row` on, of fewer at the end; summed in `scalar`.

    bits: of those values whose bit is set only; `counts[r]` is how many these are.
    """
    zero = "0.0" if scalar.startswith("f") else "0"
    if bitmap:
        return _bitmap_total(source, scalar, zero)
    params = f"values: {source}[const]"
    value = f"{scalar}(values[e])"
    return parse(
        f"""
        def total(lo: i64, hi: i64, row: i64, count: i64, {params}, sums: {scalar}[mut]):  # reassociate
            for r in range(lo, hi):
                acc: {scalar} = {zero}
                for e in range(r * row, min(r * row + row, count)):
                    acc += {value}
                sums[r] = acc
        """
    )


def _bitmap_total(source: str, scalar: str, zero: str) -> Kernel:
    params = f"values: {source}[const], bits: bool[const], sums: {scalar}[mut], counts: i64[mut]"
    return parse(
        f"""
        def total(lo: i64, hi: i64, row: i64, count: i64, {params}):  # reassociate
            for r in range(lo, hi):
                acc: {scalar} = {zero}
                n: i64 = 0
                for e in range(r * row, min(r * row + row, count)):
                    acc += {scalar}(values[e]) if bits[e] else {scalar}({zero})
                    n += i64(bits[e])
                sums[r] = acc
                counts[r] = n
        """
    )


def extreme_kernel(op: str, scalar: str) -> Kernel:
    """`found[r]` is the least ("min") or largest ("max") of `start[0]` and the values of a row whose bit is set."""
    params = f"values: {scalar}[const], bits: bool[const], start: {scalar}[const], found: {scalar}[mut]"
    return parse(
        f"""
        def extreme(lo: i64, hi: i64, row: i64, count: i64, {params}):  # reassociate
            for r in range(lo, hi):
                first = start[0]
                acc: {scalar} = first
                for e in range(r * row, min(r * row + row, count)):
                    acc = {op}(acc, values[e] if bits[e] else first)
                found[r] = acc
        """
    )


def join_kernel(op: str, scalar: str) -> Kernel:
    """`y[e]` becomes y[e] op parts[e] op parts[step + e] ..., in this order; `row` elements at a time."""
    return parse(
        """
        def join(lo: i64, hi: i64, row: i64, size: i64, count: i64, step: i64, parts: T[const], y: T[mut]):
            for r in range(lo, hi):
                end = min(r * row + row, size)
                for p in range(count):
                    for e in range(r * row, end):
                        y[e] = OP(y[e], parts[p * step + e])
        """,
        T=scalar,
        OP={"add": "or", "mul": "and"}.get(op, op) if scalar == "bool" else op,
    )

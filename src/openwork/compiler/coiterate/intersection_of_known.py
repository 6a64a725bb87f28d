"""The kernel of a product whose elements' places in both operands are known."""

from __future__ import annotations

from ...ir.loop import Kernel
from ...ir.text import parse

__all__ = ["LARGE", "product_kernel"]

LARGE = 1e300
"""The sum of all squares from which on the kernel does nothing: an infinity or NaN may meet a zero."""


def product_kernel(scalar: str) -> Kernel:
    """`out[k] = a[p[k]] * b[q[k]]` of `m` and `n` values; status 2 where their squares' sum is not below `LARGE`."""
    return parse(
        f"""
        def product(
            m: i64, n: i64, count: i64, p: i64[const], q: i64[const], a: {scalar}[const], b: {scalar}[const],
            out: {scalar}[mut],
        ):  # reassociate
            squares: f64 = 0.0
            for k in range(m):
                squares += f64(a[k]) * f64(a[k])
            for k in range(n):
                squares += f64(b[k]) * f64(b[k])
            if squares < {LARGE}:
                for k in range(count):
                    out[k] = a[p[k]] * b[q[k]]
            else:
                return 2
        """
    )

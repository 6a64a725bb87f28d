"""The kernel that multiplies values by a number in place, where NumPy warns of nothing."""

from __future__ import annotations

from ...ir.loop import Kernel
from ...ir.text import parse

__all__ = ["scale_kernel"]

_LIMITS = {"f64": (1e300, 1e-307), "f32": (1e76, 1e-37)}
"""The largest sum of squares of products, and the least product but 0, of which nothing is said."""


def scale_kernel(scalar: str) -> Kernel:
    """`x[k] *= number` of `count` values; status 2, and no value written, where a product may overflow or underflow, or
    a value is NaN."""
    largest, least = _LIMITS[scalar]
    return parse(
        f"""
        def scale(count: i64, x: {scalar}[mut], number: f64):  # reassociate
            squares: f64 = 0.0
            small: i64 = 0
            for k in range(count):
                product = f64(x[k]) * number
                squares += product * product
                small += i64(product != 0.0 and abs(product) < {least})
            if squares < {largest} and small == 0:
                for k in range(count):
                    x[k] = x[k] * {scalar}(number)
            else:
                return 2
        """
    )

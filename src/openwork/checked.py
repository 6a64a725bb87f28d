"""Checked mode: addresses that know how much memory lies behind them.

With `OPENWORK_CHECKED=1` every address that a kernel is given is an `Address`: an integer, and the ends of the array
that it points into. Sums keep the ends, so that whatever route an address takes to a kernel, the length comes with
it, and the kernel's code compares every index with it (`codegen.checked`). The address of an array also keeps its
strides, which are those that a kernel must be given for it. Without the variable nothing of this runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["CHECKED", "Address", "bounded", "bounded_address"]

CHECKED = os.environ.get("OPENWORK_CHECKED", "").lower() not in ("", "0", "off", "no")
"""Whether kernels check their indices; fixed when the package is imported."""


class Address(int):
    """The address of an element; the memory that belongs to its array is [low, high).

    `steps` are the array's strides, in elements, where it is the address of its first, None along dimensions of one.
    """

    low: int
    high: int
    steps: tuple[float | None, ...] | None

    def __new__(cls, where: int, low: int, high: int, steps: tuple[float | None, ...] | None = None) -> Address:
        made = super().__new__(cls, where)
        made.low, made.high, made.steps = low, high, steps
        return made

    def __add__(self, other: int, /) -> Address:
        return Address(int(self) + int(other), self.low, self.high)

    __radd__ = __add__

    def __sub__(self, other: int, /) -> Address:
        return Address(int(self) - int(other), self.low, self.high)

    def bounds(self, itemsize: int) -> tuple[int, int]:
        """The indices that elements of this size may have: first and last + 1."""
        return -((int(self) - self.low) // itemsize), (self.high - int(self)) // itemsize


def bounded_address(x: Any, where: int) -> Address:
    """The address of the first element of a strided array of NumPy or torch, with the ends of its memory."""
    steps = x.strides if hasattr(x, "__array_interface__") else [s * x.element_size() for s in x.stride()]
    low = high = int(where)
    if all(x.shape):
        reach = [(n - 1) * step for n, step in zip(x.shape, steps, strict=True)]
        low += sum(r for r in reach if r < 0)
        high += sum(r for r in reach if r > 0) + x.itemsize
    strides = tuple(step / x.itemsize if n > 1 else None for n, step in zip(x.shape, steps, strict=True))
    return Address(where, low, high, strides)


def bounded(address: Callable[[Any], int]) -> Callable[[Any], int]:
    """The function itself; in checked mode one that gives its results as `Address`."""
    if not CHECKED:
        return address
    return lambda x: bounded_address(x, address(x))

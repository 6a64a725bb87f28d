"""A dense array of any library -> a strided view for kernels: address, shape, strides in elements, scalar type."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..storage.buffers import (
    PLAIN_TENSORS,
    Array,
    address,
    dtype_of,
    is_torch,
    itemsize,
    numpy_dtype,
    scalar_by_dtype,
    scalar_of,
    strided_address,
)
from ..storage.memory import LARGE, reserve
from ..storage.recorded import with_memory

__all__ = ["LINE", "Strided", "contiguous_along", "fresh", "is_on_line", "new_output", "on_lines", "strided", "unit_of"]

LINE = 64
"""Bytes of a cache line."""


class Strided(NamedTuple):
    """A view of an array's memory; `owner` keeps it alive."""

    owner: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    scalar: str

    @property
    def address(self) -> int:
        return strided_address(self.owner)

    @property
    def unit(self) -> int | None:
        """The last dimension of stride one; a dimension of extent 1 counts only if no other does."""
        return unit_of(self.shape, self.strides)

    @property
    def nbytes(self) -> int:
        n = itemsize(self.scalar)
        for extent in self.shape:
            n *= extent
        return n

    @property
    def packed(self) -> bool:
        """Whether the elements lie side by side in memory from the address on, in some order of the dimensions."""
        step = 1
        for s, n in sorted(zip(self.strides, self.shape, strict=True)):
            if n > 1 and s != step:
                return False
            step *= n
        return True


_new = tuple.__new__
"""`Strided(*parts)` of a tuple of them, in half the time."""


@lru_cache(maxsize=4096)
def unit_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The last dimension of stride one; a dimension of extent 1 counts only if no other does."""
    units = [d for d, s in enumerate(strides) if s == 1]
    extended = [d for d in units if shape[d] > 1]
    return next(iter((extended or units)[::-1]), None)


@lru_cache(maxsize=4096)
def _in_elements(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...] | None:
    """Strides in bytes as strides in elements; None where one is no multiple."""
    if any(s % itemsize for s in strides):
        return None
    return tuple(s // itemsize for s in strides)


def strided(x: Array) -> Strided:
    """The strided view of a NumPy array or a torch tensor; copies only what is misaligned or not native."""
    if type(x) is np.ndarray and x.flags.aligned and x.dtype.isnative:
        steps = _in_elements(x.strides, x.itemsize)
        if steps is not None:
            return _new(Strided, (x, x.shape, steps, scalar_by_dtype[x.dtype]))
    if type(x) in PLAIN_TENSORS or is_torch(x):
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        x = with_memory(x) if x._is_zerotensor() else x
        return _new(Strided, (x, tuple(x.shape), x.stride(), scalar_by_dtype[x.dtype]))
    if not x.flags.aligned or not x.dtype.isnative:
        x = np.array(x, dtype=x.dtype.newbyteorder("="), order="K")
    n = x.dtype.itemsize
    if any(s % n for s in x.strides):
        x = x.copy()
    return Strided(x, x.shape, tuple(s // n for s in x.strides), scalar_of(x))


def contiguous_along(view: Strided, dim: int) -> Strided:
    """The same array with dimension `dim` contiguous: itself, or a copy."""
    if view.strides[dim] == 1 or (view.shape[dim] <= 1 and view.unit is None):
        return view
    order = [d for d in range(len(view.shape)) if d != dim] + [dim]
    inverse = sorted(range(len(order)), key=order.__getitem__)
    if is_torch(view.owner):
        copy = view.owner.permute(order).contiguous().permute(inverse)
    else:
        permuted = view.owner.transpose(order)
        copy = fresh(permuted.shape, permuted.dtype)
        np.copyto(copy, permuted)
        copy = copy.transpose(inverse)
    return strided(copy)


def is_on_line(view: Strided) -> bool:
    """Whether a view begins at a cache line."""
    return view.address % LINE == 0


def on_lines(view: Strided) -> Strided:
    """A packed array, aligned to a cache line: itself, or a copy of the same strides.

    Vectors of a line's length then touch one line.
    """
    if is_on_line(view) or is_torch(view.owner):
        return view
    source = view.owner
    if source.nbytes < LARGE:
        buffer = np.empty(source.nbytes + LINE, np.uint8)
        begin = -address(buffer) % LINE
        flat = buffer[begin : begin + source.nbytes].view(source.dtype)
    else:
        flat = reserve(source.size, source.dtype)
    copy = np.lib.stride_tricks.as_strided(flat, source.shape, source.strides)
    np.copyto(copy, source)
    return Strided(copy, view.shape, view.strides, view.scalar)


def new_output(shape: tuple[int, ...], scalar: str, like: Array, last: int | None, zero: bool) -> Array:
    """A fresh array, row-major but for dimension `last`, which is innermost."""
    if last is not None and last != len(shape) - 1:
        order = [*(d for d in range(len(shape)) if d != last), last]
        stored = new_output(tuple(shape[d] for d in order), scalar, like, None, zero)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return stored.permute(inverse) if is_torch(stored) else stored.transpose(inverse)
    if isinstance(like, np.ndarray):
        return (np.zeros if zero else fresh)(shape, numpy_dtype(scalar))
    return (like.new_zeros if zero else like.new_empty)(shape, dtype=dtype_of(scalar, like))


def fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """`np.empty`, over used memory where it is large."""
    n = math.prod(shape)
    return reserve(n, dtype).reshape(shape) if n * dtype.itemsize >= LARGE else np.empty(shape, dtype)

"""One element and a length -> an array whose elements all are that one, at one place in memory: its stride is 0.

    repeated(np.ones(1), 10_000_000)     # 8 bytes

The values of an iso tensor are such an array. Kernels that are compiled for it (`Operand.iso`) read its first element
and are given no more (`element`). Any other kernel would read behind it: launches and `buffers.address` refuse memory
that is not contiguous, and `contiguous` gives an array of as many elements.
NumPy's are read-only. Users get views of another place (`lent`): torch writes to read-only arrays too
(`torch.from_numpy`), and what is written there reaches no tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CompilerBug
from ..faults import reach
from .buffers import Array, copied, length, torch_dtype

__all__ = ["ONE_PLACE", "contiguous", "element", "has_one_value", "is_iso", "lent", "repeated", "spread"]

ONE_PLACE = (0,)
"""The strides of iso arrays."""
CHUNK = 1 << 16
"""Elements of an array that are compared at a time."""


def repeated(x: Array, n: int) -> Array:
    """The first element of an array n times; read-only where it is NumPy's. Nothing is shared with the array.

    Raises MemoryError where no array has as many elements.
    """
    reach("allocate")
    own = copied(x[:1])
    if not n:
        return own[:0]
    if not isinstance(own, np.ndarray):
        return own.as_strided((n,), ONE_PLACE)
    own.flags.writeable = False
    try:
        return np.ndarray((n,), own.dtype, own, strides=ONE_PLACE)
    except ValueError as error:
        raise MemoryError(f"no array has {n:,} elements of {own.dtype}") from error


def is_iso(x: Array) -> bool:
    """Whether an array of rank 1 has elements, and all of them at one place in memory."""
    steps = x.strides if isinstance(x, np.ndarray) else x.stride()
    return steps == ONE_PLACE and bool(x.shape[0])


def element(x: Array) -> Array:
    """The one element of an iso array, for a kernel that reads no other. Raises CompilerBug for any other array."""
    if (x.strides if type(x) is np.ndarray else x.stride()) != ONE_PLACE:
        raise CompilerBug("a kernel of one value is given an array of several")
    return x[:1]


def contiguous(x: Array) -> Array:
    """The elements of an iso array side by side in memory; any other array itself."""
    return copied(x) if is_iso(x) else x


def lent(x: Array) -> Array:
    """An iso array of NumPy over a place of its own, for users; any other array itself."""
    return repeated(x, len(x)) if isinstance(x, np.ndarray) and is_iso(x) else x


def spread(x: Array, n: int) -> Array:
    """The one element of an array n times; the array itself where it has as many as that, or none at all."""
    return x if length(x) in (n, 0) else repeated(x, n)


def has_one_value(x: Array) -> bool:
    """Whether all elements of an array have the same bits as the first; True of none."""
    if is_iso(x):
        return True
    first: Any = x[:1]
    parts = (x[begin : begin + CHUNK] for begin in range(0, length(x), CHUNK))
    if isinstance(x, np.ndarray):
        bits = f"V{x.dtype.itemsize}"
        return all(bool((part.view(bits) == first.view(bits)).all()) for part in parts)
    word = _bytes_of(first)
    return all(bool((_bytes_of(part) == word).all()) for part in parts)


def _bytes_of(x: Array) -> Any:
    """The bytes of each element of a torch tensor of rank 1, in a row."""
    plain = x.detach().resolve_conj().resolve_neg().contiguous()
    return plain.view(torch_dtype("u8")).reshape(length(x), x.element_size())

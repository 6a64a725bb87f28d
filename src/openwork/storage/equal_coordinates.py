"""Two storages -> whether their index buffers hold the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import tuning
from .buffers import Array, is_unrecorded, length, to_numpy

if TYPE_CHECKING:
    from .storage import Storage

__all__ = ["equal_coordinates", "same_structure"]

BLOCK = tuning.STRUCTURES_COMPARED_BLOCK
PROBES = np.linspace(0, 1, 16)


def equal_coordinates(s: Storage, t: Storage) -> bool:
    """Whether the index buffers of two storages hold the same numbers, so that their values may be paired.

    They are compared at a few places first, where most that differ do, and then block by block.
    """
    if s.format != t.format or s.shape != t.shape:
        return False
    pairs = list(zip((*s.pos, *s.crd), (*t.pos, *t.crd), strict=True))
    return all(_may_agree(x, y) for x, y in pairs) and all(_agree(x, y) for x, y in pairs)


def _may_agree(x: Array | None, y: Array | None) -> bool:
    """Whether two buffers have one length and type, and the same numbers at a few places."""
    if x is y or x is None or y is None:
        return x is y
    if x.dtype != y.dtype or length(x) != length(y) or not (_is_readable(x) and _is_readable(y)):
        return False
    if not length(x):
        return True
    at = (PROBES * (length(x) - 1)).astype(np.intp)
    return bool((to_numpy(x)[at] == to_numpy(y)[at]).all())


def _is_readable(x: Array) -> bool:
    return isinstance(x, np.ndarray) or (is_unrecorded(x) and x.device.type == "cpu")


def same_structure(s: Storage, t: Storage) -> bool:
    """Whether two storages have their elements in the same places, as far as their buffers tell; of any library, and
    with indices of any width."""
    if s.shape != t.shape or s.format != t.format or length(s.values) != length(t.values):
        return False
    return all(_agree(x, y) for x, y in zip((*s.pos, *s.crd), (*t.pos, *t.crd), strict=True))


def _agree(x: Array | None, y: Array | None) -> bool:
    """Whether two buffers hold the same numbers, in pieces that stay in cache; one that is both is not read."""
    if x is y or x is None or y is None:
        return x is y
    a: Any = to_numpy(x)
    b: Any = to_numpy(y)
    if len(a) != len(b):
        return False
    if a.dtype == b.dtype and a.flags.c_contiguous and b.flags.c_contiguous:  # by words, of many bits each
        whole = len(a) - len(a) % (8 // a.itemsize)
        if not np.array_equal(a[whole:], b[whole:]):
            return False
        a, b = a[:whole].view(np.uint64), b[:whole].view(np.uint64)
    return all(np.array_equal(a[at : at + BLOCK], b[at : at + BLOCK]) for at in range(0, len(a), BLOCK))

"""A number and a length -> an array of equal elements over a few pages of memory that are mapped again and again.

    repeated(1.0, "f64", 10_000_000, like)     # 80 MB of addresses, 0.6 MB of memory, which stay in the cache

It is an array as any other, so that every kernel reads it as it is: no position needs another rule, no access another
stride. NumPy's are read-only, and all of one number are views of the longest. torch has no read-only tensors: pages
that are written to become memory of their own (copy on write), and those values are iso no longer.
Where the system cannot map a file twice (Windows), the array is an ordinary one.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..faults import reach
from .buffers import Array, as_array, length, numpy_dtype, scalar_of, to_numpy
from .recorded import bare, is_recorded

__all__ = ["alive", "has_one_value", "is_iso", "repeated", "spread"]

SMALLEST = 1 << 16
"""Bytes of memory at least, and of addresses: shorter arrays are views of it."""
CHUNK = 1 << 16
"""Elements of a torch tensor that are compared at a time."""
_SHARED_READ = getattr(mmap, "MAP_SHARED", 0), getattr(mmap, "PROT_READ", 0)
_COPIED = getattr(mmap, "MAP_PRIVATE", 0), _SHARED_READ[1] | getattr(mmap, "PROT_WRITE", 0)
_FIXED = 0x10
"""MAP_FIXED, of Linux, macOS and the BSDs, which Python's mmap does not name."""
_MOST_ADDRESSES = 1 << 46


alive: set[int] = set()
"""The addresses of all pages: where there are none, nobody need ask whether an array is iso."""


class _Pages:
    """The owner of an iso array: addresses that are given back when the last view of them is gone."""

    __slots__ = ("__array_interface__", "__weakref__", "address", "nbytes", "unmap")

    def __init__(self, address: int, nbytes: int, unmap: Callable[..., Any], is_read_only: bool) -> None:
        self.address, self.nbytes, self.unmap = address, nbytes, unmap
        alive.add(address)
        self.__array_interface__ = {
            "data": (address, is_read_only), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        alive.discard(self.address)
        self.unmap(self.address, self.nbytes)


_longest: WeakValueDictionary[tuple[str, bytes], _Pages] = WeakValueDictionary()
"""NumPy's pages by type and number, the longest of each."""
_of_torch: WeakValueDictionary[int, _Pages] = WeakValueDictionary()
"""torch's pages by their address."""


def repeated(number: Any, scalar: str, n: int, like: Array) -> Array:
    """An array of n elements that all are `number`, of the library and device of `like`.

    Read-only where it is NumPy's. Raises MemoryError where there are not as many addresses.
    """
    reach("allocate")
    element = np.asarray(number, numpy_dtype(scalar)).reshape(1)
    if n * element.itemsize > _MOST_ADDRESSES:
        raise MemoryError(f"no addresses for {n:,} equal elements of {element.dtype}")
    if isinstance(like, np.ndarray):
        key = scalar, element.tobytes()
        pages = _longest.get(key)
        if pages is None or pages.nbytes < n * element.itemsize:
            pages = _mapped(element, n, *_SHARED_READ)
            if pages is None:
                return _full(element, n)
            _longest[key] = pages
        return _view(pages, n, element.dtype)
    pages = _mapped(element, n, *_COPIED) if like.is_cpu else None
    if pages is None:
        return as_array(element, like=like).repeat(n)
    _of_torch[pages.address] = pages
    return as_array(_view(pages, n, element.dtype), like=like)


def is_iso(x: Array) -> bool:
    """Whether an array is one that `repeated` made, or a part of one: its elements are equal, and take no memory."""
    if isinstance(x, np.ndarray):
        owner: Any = x.base
        while isinstance(owner, np.ndarray):
            owner = owner.base
        return type(owner) is _Pages
    if not _of_torch or not x.is_cpu or is_recorded(x) or x.requires_grad:
        return False
    x = bare(x)
    return x.untyped_storage().data_ptr() in _of_torch and has_one_value(x)


def spread(x: Array, n: int) -> Array:
    """The one element of an array n times; the array itself where it has as many as that, or none at all."""
    return x if length(x) in (n, 0) else repeated(to_numpy(x)[0], scalar_of(x), n, x)


def has_one_value(x: Array) -> bool:
    """Whether all elements of an array have the same bits as the first; True of none."""
    first: Any = x[:1]
    parts = (x[begin : begin + CHUNK] for begin in range(0, length(x), CHUNK))
    if isinstance(x, np.ndarray):
        bits = f"V{x.dtype.itemsize}"
        return all(bool((part.view(bits) == first.view(bits)).all()) for part in parts)
    return all(bool(((part == first) | ((part != part) & (first != first))).all()) for part in parts)


def _view(pages: _Pages, n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The first n elements of pages."""
    return np.asarray(pages)[: n * dtype.itemsize].view(dtype)


def _full(element: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """An ordinary array of equal elements."""
    return np.repeat(element, n)


def _mapped(element: np.ndarray[Any, Any], n: int, flags: int, protection: int) -> _Pages | None:
    """Addresses of n elements, all of them of one file's pages; None where the system cannot.

    The file holds the geometric mean of a page and the array, so that pages and mappings are both few.
    """
    libc = _libc()
    nbytes = max(n * element.itemsize, SMALLEST)
    if libc is None:
        return None
    page = mmap.ALLOCATIONGRANULARITY
    size = min(nbytes, max(SMALLEST, math.isqrt(nbytes * page)))
    size, total = (-(-x // page) * page for x in (size, nbytes))
    try:
        with _memory_file() as file:
            file.truncate(size)
            with mmap.mmap(file.fileno(), size) as pages:
                np.frombuffer(pages, element.dtype)[:] = element
            return _mapped_file(libc, file.fileno(), size, total, flags, protection)
    except OSError:
        return None


def _mapped_file(libc: Any, fd: int, size: int, total: int, flags: int, protection: int) -> _Pages:
    """`total` bytes of addresses, of a file's `size` bytes over and over. Raises OSError."""
    reserved = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = libc.mmap(None, total, 0, reserved, -1, 0)
    if begin in (None, _FAILED):
        raise OSError("mmap")
    for at in range(0, total, size):
        if libc.mmap(begin + at, min(size, total - at), protection, flags | _FIXED, fd, 0) != begin + at:
            libc.munmap(begin, total)
            raise OSError("mmap")
    return _Pages(begin, total, libc.munmap, not protection & mmap.PROT_WRITE)


_FAILED = ctypes.c_void_p(-1).value


def _libc() -> Any:
    """The C library's mmap and munmap, or None where there are none."""
    if os.name != "posix":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    word, number = ctypes.c_size_t, ctypes.c_int
    libc.mmap.argtypes = [ctypes.c_void_p, word, number, number, number, ctypes.c_ssize_t]
    libc.munmap.argtypes = [ctypes.c_void_p, word]
    return libc


def _memory_file() -> Any:
    """A file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("openwork-iso", os.MFD_CLOEXEC), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)

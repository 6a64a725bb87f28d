"""A number and a length -> an array of equal elements over a few pages of memory that are mapped again and again.

    repeated(1.0, "f64", 10_000_000, like)     # 80 MB of addresses, 0.6 MB of memory, which stay in the cache

It is an array as any other, so that every kernel reads it as it is: no position needs another rule, no access another
stride. NumPy's are read-only, and all of one number are views of the longest. torch has no read-only tensors: pages
that are written to become memory of their own (copy on write), and those values are iso no longer. Since torch writes
to NumPy's read-only arrays too (`torch.from_numpy`), users get such pages of theirs (`lent`): what is written there
reaches no tensor.
Where the system cannot map a file twice (Windows), or there are many such arrays, the array is an ordinary one.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
import threading
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

from ..faults import reach
from .buffers import Array, as_array, length, numpy_dtype, scalar_of, to_numpy, torch_dtype, torch_module
from .recorded import bare, is_recorded

__all__ = ["alive", "has_one_value", "is_iso", "lent", "repeated", "spread"]

SMALLEST = 1 << 16
"""Bytes of memory at least of long arrays, and of NumPy's addresses: its shorter arrays are views of these."""
CHUNK = 1 << 16
"""Elements of a torch tensor that are compared at a time."""
_SHARED_READ = getattr(mmap, "MAP_SHARED", 0), getattr(mmap, "PROT_READ", 0)
_COPIED = getattr(mmap, "MAP_PRIVATE", 0), _SHARED_READ[1] | getattr(mmap, "PROT_WRITE", 0)
_FIXED = 0x10
"""MAP_FIXED, of Linux, macOS and the BSDs, which Python's mmap does not name."""
_MOST_ADDRESSES = 1 << 46
_MOST_MAPPINGS = 1 << 14
"""Mappings of all iso arrays at a time: systems allow a process about 65,000, threads and large arrays among them."""


alive: dict[int, int] = {}
"""The mappings of all pages by address: where there are none, nobody need ask whether an array is iso."""


class _Mappings:
    """How many mappings the arrays have together."""

    def __init__(self) -> None:
        self.count, self.lock = 0, threading.RLock()

    def add(self, n: int) -> bool:
        """Count n more, or fewer; False, and nothing counted, where these would be too many."""
        with self.lock:
            if n > 0 and self.count + n > _MOST_MAPPINGS:
                return False
            self.count += n
            return True


_mappings = _Mappings()


class _Pages:
    """The owner of an iso array: addresses that are given back when the last view of them is gone.

    They are given back after the weak references to it are dead: `__del__` runs before, and another thread could still
    take the owner from `_longest` then.
    """

    __slots__ = ("__array_interface__", "__weakref__", "address", "is_lent", "nbytes")

    def __init__(self, address: int, nbytes: int, mappings: int, libc: Any, is_read_only: bool) -> None:
        self.address, self.nbytes = address, nbytes
        self.is_lent = False
        """whether a user has them, who may have written to them by way of torch"""
        alive[address] = mappings
        finalize(self, _give_back, libc, address, nbytes).atexit = False  # arrays may live until the process ends
        self.__array_interface__ = {
            "data": (address, is_read_only), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def _give_back(libc: Any, address: int, nbytes: int) -> None:
    _mappings.add(-alive.pop(address))
    libc.munmap(address, nbytes)


_longest: WeakValueDictionary[tuple[str, bytes], _Pages] = WeakValueDictionary()
"""NumPy's pages by type and number, the longest of each."""
_of_torch: WeakValueDictionary[int, _Pages] = WeakValueDictionary()
"""torch's pages by their address."""


def repeated(number: Any, scalar: str, n: int, like: Array) -> Array:
    """An array of n elements that all are `number`, of the library and device of `like`.

    Read-only where it is NumPy's. Raises MemoryError where there are not as many addresses.
    """
    reach("allocate")
    if scalar == "bf16" and not isinstance(like, np.ndarray):
        element = to_numpy(torch_module().full((1,), number, dtype=torch_dtype(scalar)))
    else:
        element = np.asarray(number, numpy_dtype(scalar)).reshape(1)
    if n * element.itemsize > _MOST_ADDRESSES:
        raise MemoryError(f"no addresses for {n:,} equal elements of {element.dtype}")
    if isinstance(like, np.ndarray):
        key = scalar, element.tobytes()
        pages = _longest.get(key)
        if pages is None or pages.nbytes < n * element.itemsize:
            pages = _mapped(element, n, *_SHARED_READ, True, SMALLEST)
            if pages is None:
                return _full(element, n)
            _longest[key] = pages
        return _view(pages, n, element.dtype)
    pages = _mapped(element, n, *_COPIED, False, 1) if like.is_cpu else None
    if pages is None:
        return as_array(element, like=like).repeat(n)
    _of_torch[pages.address] = pages
    return as_array(_view(pages, n, element.dtype), like=like)


def lent(x: Array) -> Array:
    """An iso NumPy array over pages that no tensor reads, for users: read-only, and copied where that is overridden.

    Any other array itself. Other pages at each call: what was written to those of before is in none.
    """
    if not isinstance(x, np.ndarray) or not length(x):
        return x
    owner = _owner(x)
    if type(owner) is not _Pages or owner.is_lent:
        return x
    pages = _mapped(x[:1], len(x), *_COPIED, True, 1)
    if pages is None:
        out = _full(x[:1], len(x))
        out.flags.writeable = False
        return out
    pages.is_lent = True
    return _view(pages, len(x), x.dtype)


def _owner(x: np.ndarray[Any, Any]) -> Any:
    owner: Any = x.base
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner


def is_iso(x: Array) -> bool:
    """Whether an array is one that `repeated` made, or a part of one: its elements are equal, and take no memory."""
    if isinstance(x, np.ndarray):
        owner = _owner(x)
        return type(owner) is _Pages and (not owner.is_lent or has_one_value(x))
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
    word = _bytes_of(first)
    return all(bool((_bytes_of(part) == word).all()) for part in parts)


def _bytes_of(x: Array) -> Any:
    """The bytes of each element of a torch tensor of rank 1, in a row."""
    plain = x.detach().resolve_conj().resolve_neg().contiguous()
    return plain.view(torch_dtype("u8")).reshape(length(x), x.element_size())


def _view(pages: _Pages, n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The first n elements of pages."""
    return np.asarray(pages)[: n * dtype.itemsize].view(dtype)


def _full(element: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """An ordinary array of equal elements."""
    return np.repeat(element, n)


def _mapped(
    element: np.ndarray[Any, Any], n: int, flags: int, protection: int, is_read_only: bool, least: int
) -> _Pages | None:
    """Addresses of n elements, `least` bytes or more, all of them of one file's pages; None where the system cannot.

    The file holds the geometric mean of a page and the array, so that pages and mappings are both few.
    """
    libc = _libc()
    nbytes = max(n * element.itemsize, least)
    if libc is None:
        return None
    page = mmap.ALLOCATIONGRANULARITY
    size = min(nbytes, max(SMALLEST, math.isqrt(nbytes * page)))
    size, total = (-(-x // page) * page for x in (size, nbytes))
    mappings = -(-total // size)
    if not _mappings.add(mappings):
        return None
    try:
        with _memory_file() as file:
            file.truncate(size)
            with mmap.mmap(file.fileno(), size) as pages:
                np.frombuffer(pages, element.dtype)[:] = element
            begin = _mapped_file(libc, file.fileno(), size, total, flags, protection)
    except OSError:
        _mappings.add(-mappings)
        return None
    return _Pages(begin, total, mappings, libc, is_read_only)


def _mapped_file(libc: Any, fd: int, size: int, total: int, flags: int, protection: int) -> int:
    """The address of `total` bytes, of a file's `size` bytes over and over. Raises OSError."""
    reserved = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = libc.mmap(None, total, 0, reserved, -1, 0)
    if begin in (None, _FAILED):
        raise OSError("mmap")
    for at in range(0, total, size):
        if libc.mmap(begin + at, min(size, total - at), protection, flags | _FIXED, fd, 0) != begin + at:
            libc.munmap(begin, total)
            raise OSError("mmap")
    return int(begin)


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

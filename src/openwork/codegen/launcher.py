"""A kernel, its words, and arrays or addresses for some of them -> the kernel run, by one call from Python.

    launch(record, objects, lo, hi)       # record: bytes, see `record`; objects: arrays of NumPy, or integers

The native function (`launcher.ll`) takes memory by the buffer protocol and calls CPython's public functions alone.
Where it is not available, and in checked mode, `Executable.run` does the same with addresses.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from ..checked import CHECKED
from ..errors import UnsupportedError
from ..storage import buffers
from . import disk, engine, linker
from .executable import Executable

__all__ = ["Launch", "bound", "launcher", "record"]

_NAME = "launcher 2"
_FUNCTIONS = ("ow_launcher_begin", "ow_launch", "ow_address")
_PUBLIC = (
    "PyObject_CheckBuffer", "PyObject_GetBuffer", "PyBuffer_Release", "PyTuple_GetItem", "PyLong_AsLongLong",
    "PyErr_Occurred", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
"""CPython's functions that `launcher.ll` calls, in the order in which it is given them."""
_BEGIN = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * len(_PUBLIC))
_LAUNCH = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.py_object, ctypes.c_int64, ctypes.c_int64)
_ADDRESS = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_int32)
_code: list[linker.Code] = []
"""The launcher's code, which is never unmapped."""

Launch = Callable[[bytes, tuple[Any, ...], int, int], int]
"""A record, the objects of its slots and a range -> the kernel's status."""


def record(
    address: int, words: Sequence[int], slots: Sequence[int], releases: bool, packed: int | None = None
) -> bytes:  # fmt: skip
    """A launch of the kernel at an address with these words, of which those in `slots` are addresses of objects.

    releases : whether other threads of Python may run meanwhile
    packed : how many objects, from the first on, have to have memory without gaps; all of them without
    """
    count, held = len(words), len(slots)
    packed = held if packed is None else packed
    return struct.pack(f"={5 + held + count}q", address, count, held, releases, packed, *slots, *words)


def bound(
    executable: Executable, words: Sequence[int], slots: Sequence[int], lo: int = 0, hi: int = 0
) -> Callable[..., int] | None:
    """A launch of short work as a function of the objects whose addresses go to `slots`; the other words are fixed.

    Keep the executable together with it. None where there is no launcher.
    """
    start = launcher()
    if start is None:
        return None
    prepared = record(executable.address, words, slots, False)
    return lambda *objects: start(prepared, objects, lo, hi)


@cache
def launcher() -> Launch | None:
    """The native function that launches, compiled or from disk; None where there is none."""
    if CHECKED or sys.implementation.name != "cpython":
        return None
    try:
        entry = disk.read(_NAME)
        if entry is None:
            text = resources.files(__package__).joinpath("launcher.ll").read_text(encoding="utf-8")
            entry = disk.Entry(_FUNCTIONS[0], (), engine.to_object(text))
            disk.write(_NAME, entry)
        code = engine.load(entry.code, *_FUNCTIONS)
    except (OSError, UnsupportedError):
        return None
    _code.append(code)
    begin, launch, address_of = code.addresses
    _BEGIN(begin)(*[ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in _PUBLIC])
    buffers.array_address = _ADDRESS(address_of)
    return _LAUNCH(launch)

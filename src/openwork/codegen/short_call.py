"""A kernel with most of its words -> a function of the others, by CPython's own calling convention.

    start = bound(executable, words, slots)     # once
    start(values, x, y)                         # 0.2 microseconds, where `Executable.run` takes more than 1

The functions (`short_call.ll`) keep the GIL, so that they are for short work. Where they are not available, on another
interpreter than CPython or in checked mode, callers have `Executable.run`. With them come the functions that copy
objects (`storage.slot_copies`).
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from .. import settings, tuning
from ..checked import CHECKED
from ..errors import UnsupportedError
from ..storage import slot_copies
from ..storage.buffers import DATA, HAS_POINTER
from . import disk, engine
from .executable import Executable, checked_words

__all__ = ["SHORT", "bound", "ready"]

SHORT = tuning.SHORT_CALL
_VECTOR, _ONE = 0x80, 0x8
"""CPython's flags of a method: its positional arguments are a vector; it has one."""
_NAMES = ("ow_short_start", "ow_short_launch", "ow_short_same", "ow_short_copy", "ow_short_copy_of")
_START = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_kept: list[Any] = []
"""The code and the method definitions, which are never freed: functions point to them."""


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


def bound(
    executable: Any, words: Sequence[int], slots: Sequence[int], lo: int = 0, hi: int = 0
) -> Callable[..., int] | None:
    """A kernel's launch as a function of the words in `slots`, each an integer, a float for a word of type f64, or an
    array of NumPy, whose address is taken; the others are fixed. Keep the executable together with it. None where there
    are no short calls.
    """
    method = _method()
    if method is None or type(executable) is not Executable or min(slots, default=0) < 0:
        return None
    head, size = (executable.address, lo, hi, len(words), *slots), 4 + len(slots) + len(words)
    if len(words) != len(executable.params):
        words = checked_words(executable, words)  # an error
    try:
        record = struct.pack(f"={size}q", *head, *words)
    except struct.error:
        record = struct.pack(f"={size}q", *head, *checked_words(executable, words))
    return _function(method, record)


def ready() -> bool:
    """Whether there are short calls, which are made ready where they are not."""
    return _method() is not None


@cache
def _method() -> int | None:
    """The address of the definition of a launch, compiled or from disk; None where it is not available.

    The functions that copy objects go to `storage`, which asks them from now on.
    """
    if CHECKED or not HAS_POINTER or sys.implementation.name != "cpython" or settings.is_off("OPENWORK_SHORT_CALLS"):
        return None
    text = _text()
    try:
        entry = disk.read(text)
        if entry is None:
            entry = disk.Entry(_NAMES[0], (), engine.to_object(text))
            disk.write(text, entry)
        code = engine.load(entry.code, *_NAMES)
    except (OSError, UnsupportedError):
        return None
    start, *addresses = code.addresses
    python = ctypes.pythonapi
    _START(start)(_address(python.PyLong_AsLongLong), _address(python.PyLong_FromLongLong), id(int))
    flags = (_VECTOR, _ONE, _ONE, _VECTOR)
    methods = [_Method(n.encode(), at, f, None) for n, at, f in zip(_NAMES[1:], addresses, flags, strict=True)]
    _kept.extend((code, *methods))
    launch, _, copy, copy_of = map(ctypes.addressof, methods)
    slot_copies.begin(_Copies(copy, copy_of))
    return launch


class _Copies:
    """The native functions that copy objects, see `storage.slot_copies.Native`."""

    def __init__(self, copy: int, copy_of: int) -> None:
        self._copy, self._copy_of = copy, copy_of

    def copier(self, template: object, slot: str) -> Callable[[Any], Any] | None:
        record = _record_of_slots(template, slot, ())
        return None if record is None else _function(self._copy, (record, template))

    def copier_of_any(self, template: object, slot: str, cleared: tuple[str, ...]) -> Callable[[Any, Any], Any] | None:
        record = _record_of_slots(template, slot, cleared)
        return None if record is None else _function(self._copy_of, record)


def _record_of_slots(template: object, slot: str, cleared: tuple[str, ...]) -> bytes | None:
    """What copying objects of a type takes: its functions, slots, the one of the value, None, and the `cleared` ones.

    None for a type that has more than slots. Where they are is found by what stands there.
    """
    kind = type(template)
    begin, end = object.__basicsize__, kind.__basicsize__
    if kind.__dictoffset__ or kind.__itemsize__ or end - begin > 8 * 64:
        return None
    numbers = [_number_of_slot(template, name, begin, end) for name in (slot, *cleared)]
    if None in numbers:
        return None
    at, *bits = [n for n in numbers if n is not None]
    python = ctypes.pythonapi
    own = _address(python.PyType_GenericAlloc), _address(python.Py_IncRef)
    return struct.pack("=7Q", *own, begin, end, begin + 8 * at, id(None), sum(1 << n for n in bits))


def _number_of_slot(template: object, name: str, begin: int, end: int) -> int | None:
    """Which of an object's words the slot of this name is."""
    held, marker = getattr(template, name, None), object()
    setattr(template, name, marker)
    words = list((ctypes.c_int64 * ((end - begin) // 8)).from_address(id(template) + begin))
    setattr(template, name, held)
    return words.index(id(marker)) if words.count(id(marker)) == 1 else None


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def _function(method: int, of: object) -> Callable[..., Any]:
    """The method of an object as a function."""
    function: Callable[..., Any] = _new()(method, of, __name__)
    return function


@cache
def _new() -> Callable[..., Any]:
    """CPython's constructor of functions."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


def _text() -> str:
    """The text of `short_call.ll` for this interpreter."""
    text = resources.files(__package__).joinpath("short_call.ll").read_text(encoding="utf-8")
    header = object.__basicsize__
    offsets = {"TYPE": header - 8, "COUNT": header, "BYTES": bytes.__basicsize__ - 1, "DATA": DATA}
    offsets["ITEMS"] = tuple.__basicsize__
    for name, offset in offsets.items():
        text = text.replace(f"{{{name}}}", str(offset))
    return text

"""A relocatable ELF object for x86-64 -> its functions linked into this process, without LLVM.

It supports what kernels need: sections into one mapping (code, then constants, then variables), the handful of
relocations that position-independent code has, and calls of functions that the process has already (libc, libm,
pthreads) through stubs. Anything else is `Unlinkable`, and LLVM's own linker does it.

It exists because a process that finds all its kernels on disk then never loads LLVM, which takes 50 ms.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from platform import machine

from ..classes import define

__all__ = ["Code", "Unlinkable", "link"]

_PAGE = mmap.PAGESIZE
_is_finalizing = sys.is_finalizing
_ALLOC, _WRITE, _EXEC = 2, 1, 4
_NOBITS, _SYMTAB, _RELA = 8, 2, 4
_ABS64, _PC32, _PLT32, _PC64 = 1, 2, 4, 24
_GOT = (9, 41, 42)
_STUB = 16
_JUMP = b"\xff\x25\x00\x00\x00\x00"
"""jmp [rip]: to the address in the eight bytes that follow."""


class Unlinkable(Exception):
    """The object or the system is not one that this linker knows."""


class Code:
    """Machine code in this process: the addresses of its functions, and its memory, which is freed with this object.

    free: unmaps the memory. It must not be called while a thread may be inside: callers of the code hold this object.
    """

    __slots__ = ("_free", "addresses", "nbytes")

    def __init__(self, addresses: list[int], nbytes: int, free: Callable[[], object]) -> None:
        self.addresses, self.nbytes, self._free = addresses, nbytes, free

    def __del__(self) -> None:
        if not _is_finalizing():  # at the end a thread may still be inside, and all memory goes anyway
            self._free()


@define
class Section:
    """A section header, and the address that its contents were given (0: not loaded)."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    address: int = 0


def link(code: bytes, names: Sequence[str]) -> Code:
    """The functions `names` of an object file, in memory that is unmapped when the result is gone."""
    if sys.platform != "linux" or machine() != "x86_64" or code[:6] != b"\x7fELF\x02\x01":
        raise Unlinkable("expected an x86-64 ELF object on Linux")
    try:
        return _Object(code).load(names)
    except (struct.error, IndexError, UnicodeDecodeError, OSError) as error:
        raise Unlinkable(str(error)) from error


class _Object:
    def __init__(self, code: bytes) -> None:
        self.code = code
        (kind, arch), (start,), (count, index) = (
            struct.unpack_from(f, code, at) for f, at in (("<HH", 16), ("<Q", 40), ("<HH", 60))
        )
        if (kind, arch) != (1, 62):
            raise Unlinkable("not a relocatable x86-64 object")
        heads = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * i) for i in range(count)]
        strings = heads[index][4]
        self.sections = [
            Section(self.text(strings, n), t, f, o, s, li, i, max(al, 1)) for n, t, f, _, o, s, li, i, al, _ in heads
        ]
        self.symbols = self._symbols()
        self.stubs: dict[str, int] = {}

    def text(self, table: int, offset: int) -> str:
        start = table + offset
        return self.code[start : self.code.index(b"\0", start)].decode()

    def _symbols(self) -> list[tuple[str, int, int]]:
        """(name, section index, value) of every symbol."""
        table = next((s for s in self.sections if s.kind == _SYMTAB), None)
        if table is None:
            raise Unlinkable("no symbol table")
        strings = self.sections[table.link].offset
        entries = struct.iter_unpack("<IBBHQQ", self.code[table.offset : table.offset + table.size])
        return [(self.text(strings, name), section, value) for name, _, _, section, value, _ in entries]

    def relocations(self) -> Iterator[tuple[Section, int, int, int, int]]:
        """(section, offset, type, symbol index, addend) of every relocation."""
        for table in self.sections:
            target = self.sections[table.info] if table.kind == _RELA else None
            if target is not None and _loaded(target):
                raw = self.code[table.offset : table.offset + table.size]
                for offset, info, addend in struct.iter_unpack("<QQq", raw):
                    yield target, offset, info & 0xFFFFFFFF, info >> 32, addend

    def load(self, names: Sequence[str]) -> Code:
        relocations = list(self.relocations())
        externals = sorted({n for *_, i, _ in relocations for n, section, _ in (self.symbols[i],) if section == 0})
        groups: list[list[Section]] = [[], [], []]
        for s in self.sections:
            if _loaded(s):
                groups[2 if s.flags & _WRITE else 0 if s.flags & _EXEC else 1].append(s)
        edges, size = [0], _STUB * len(externals)
        for group in groups:
            for s in group:
                size = -(-size // s.align) * s.align
                s.address = size
                size += s.size
            size = -(-size // _PAGE) * _PAGE
            edges.append(size)
        base = _map(size)
        try:
            addresses = self.place(base, edges, groups, externals, relocations, names)
        except BaseException:
            _unmap(base, size)
            raise
        return Code(addresses, size, partial(_unmap, base, size))

    def place(
        self, base: int, edges: list[int], groups: list[list[Section]], externals: list[str],
        relocations: list[tuple[Section, int, int, int, int]], names: Sequence[str],
    ) -> list[int]:  # fmt: skip
        """Fill the pages from `base` on; returns the addresses of the functions `names`."""
        for k, name in enumerate(externals):
            self.stubs[name] = base + _STUB * k
            ctypes.memmove(base + _STUB * k, _JUMP + struct.pack("<Q", _address(name)), 14)
        for s in (s for group in groups for s in group):
            s.address += base
            if s.kind != _NOBITS:
                ctypes.memmove(s.address, self.code[s.offset : s.offset + s.size], s.size)
        for section, offset, kind, symbol, addend in relocations:
            self.patch(section.address + offset, kind, self.symbols[symbol], addend)
        for lo, hi, protection in ((edges[0], edges[1], mmap.PROT_EXEC), (edges[1], edges[2], 0)):
            if hi > lo:
                _protect(base + lo, hi - lo, mmap.PROT_READ | protection)
        addresses = {name: self.sections[i].address + value for name, i, value in self.symbols if 0 < i < 0xFF00}
        if missing := [n for n in names if n not in addresses]:
            raise Unlinkable(f"no {', '.join(missing)} in the object")
        return [addresses[n] for n in names]

    def patch(self, place: int, kind: int, symbol: tuple[str, int, int], addend: int) -> None:
        name, section, value = symbol
        if section >= 0xFF00:
            raise Unlinkable(f"symbol {name} in the special section {section:#x}")
        if kind in _GOT and section:
            raise Unlinkable(f"relocation {kind} against a symbol of the object")
        if section:
            target = self.sections[section].address + value
        else:
            target = self.stubs[name] + (len(_JUMP) if kind in _GOT else 0)
        if kind == _ABS64:
            number, form = (target if section else _address(name)) + addend, "<Q"
        elif kind == _PC64:
            number, form = target + addend - place, "<q"
        elif kind in (_PC32, _PLT32, *_GOT):
            number, form = target + addend - place, "<i"
        else:
            raise Unlinkable(f"relocation of type {kind}")
        packed = struct.pack(form, number)
        ctypes.memmove(place, packed, len(packed))


def _loaded(s: Section) -> bool:
    return bool(s.flags & _ALLOC) and s.size > 0 and s.name != ".eh_frame"


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    return ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libm.so.6")


@cache
def _address(name: str) -> int:
    """The address of a function of this process."""
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    raise Unlinkable(f"no function {name} in this process")


def _map(size: int) -> int:
    """Fresh pages that can be read and written."""
    function = _libraries()[0].mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = function(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "no memory for code")
    return int(address)


def _unmap(address: int, size: int) -> None:
    function = _libraries()[0].munmap
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    function(address, size)


def _protect(address: int, size: int, protection: int) -> None:
    function = _libraries()[0].mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if function(address, size, protection):
        raise OSError(ctypes.get_errno(), "code may not be made executable")

"""A kernel's machine code and parameters -> a callable: arguments are packed into 64-bit words."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from .. import interruptible
from ..errors import CompilerBug
from ..ir.loop import Buffer, Kernel, Param
from ..ir.printer import show
from ..storage.buffers import address
from .emit import emit
from .emit_builder import bits_of
from .engine import assembly
from .linker import Code

__all__ = ["Executable", "run"]

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
_MASK = (1 << 64) - 1


class Executable:
    """A compiled kernel. Its code is in memory for as long as this object is: keep it together with its address.

    `run` takes one 64-bit word per parameter, as `pack` makes them; it releases the GIL, and several threads
    may run one Executable at a time. Cost of a call: about a microsecond.
    """

    def __init__(self, name: str, params: tuple[Param, ...], code: Code, build: Callable[[], Kernel]) -> None:
        self.name = name
        self.params = params
        self.code = code
        self.address = address = code.addresses[0]
        self._build = build
        self.call: Callable[[bytes, int, int], int] = _PROTOTYPE(address)
        self.words: Callable[..., bytes] = struct.Struct(f"={len(params)}q").pack
        self._to_word = tuple(_to_word(p) for p in params)

    def __repr__(self) -> str:
        return f"<Executable {self.name}({', '.join(p.name for p in self.params)})>"

    @cached_property
    def kernel(self) -> Kernel:
        """The loop IR of the code."""
        return self._build()

    @cached_property
    def loops(self) -> str:
        """The kernel as text."""

        return show(self.kernel)

    @cached_property
    def llvm(self) -> str:
        """LLVM IR text before optimisation."""

        return emit(self.kernel)

    @cached_property
    def asm(self) -> str:
        """Assembly of the host."""

        return assembly(self.llvm)

    def run(self, words: Sequence[int], lo: int = 0, hi: int = 0, status: bool = False) -> int:
        """Run the code on packed words; returns its status, which is 0 unless `status` allows others.

        Raises MemoryError when a workspace could not be had, CompilerBug for any other status.
        """
        try:
            code = self.call(self.words(*words), lo, hi)
        except struct.error:
            code = self.call(self.words(*checked_words(self, words)), lo, hi)
        if code and not status:
            self.fail(code)
        return code

    def run_sized(self, work: int, words: Sequence[int], lo: int = 0, hi: int = 0, status: bool = False) -> int:
        """`run`, for work of about so many elements: where that may take long, the main thread can be interrupted."""
        if work >= interruptible.LONG:
            return interruptible.call(self.run, words, lo, hi, status)
        return self.run(words, lo, hi, status)

    def fail(self, code: int) -> None:
        """Raise the error of a status other than 0."""
        if code == 1:
            raise MemoryError(f"kernel {self.name}: no memory for a workspace")
        raise CompilerBug(f"kernel {self.name} returned status {code}")

    def pack(self, args: Sequence[Any]) -> list[int]:
        """Words from numbers and arrays, one for each parameter in order."""
        if len(args) != len(self.params):
            expected = ", ".join(p.name for p in self.params)
            raise CompilerBug(f"kernel {self.name} takes ({expected}), got {len(args)} arguments")
        return [to_word(a) for to_word, a in zip(self._to_word, args, strict=True)]


def run(executable: Executable, args: Mapping[str, Any] | Sequence[Any], lo: int = 0, hi: int = 0) -> int:
    """Run on arrays and numbers, by name or in order of the parameters; returns the status (never raises for it)."""
    if isinstance(args, Mapping):
        args = [args[p.name] for p in executable.params]
    return executable.run(executable.pack(args), lo, hi, status=True)


def checked_words(executable: Executable, words: Sequence[int]) -> list[int]:
    """Words of any integers reduced to signed 64 bits; their number must be that of the parameters."""
    if len(words) != len(executable.params):
        raise CompilerBug(f"kernel {executable.name} takes {len(executable.params)} words, got {len(words)}")
    return [_signed(int(w)) for w in words]


def _signed(word: int) -> int:
    word &= _MASK
    return word - (1 << 64) if word >> 63 else word


def _to_word(param: Param) -> Callable[[Any], int]:
    """The function that makes the word of a parameter from a number or an array."""
    if isinstance(param, Buffer):
        return _of_buffer
    is_integer = param.scalar != "bool" and param.scalar[0] in "iu"
    return _of_integer if is_integer else partial(_of_scalar, param.scalar)


def _of_buffer(value: Any) -> int:
    return value if isinstance(value, int) else address(value)


def _of_integer(value: Any) -> int:
    return value if type(value) is int else _signed(int(value))


def _of_scalar(scalar: str, value: Any) -> int:
    if scalar == "bool":
        return int(bool(value))
    if scalar == "c64":
        z = complex(value)
        return _signed(bits_of(z.real, "f32") | bits_of(z.imag, "f32") << 32)
    return _signed(bits_of(float(value), scalar))

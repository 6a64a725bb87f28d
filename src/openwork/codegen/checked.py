"""A kernel -> an executable with bounds checks: the ends of each buffer are passed too, a violation is raised."""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from ..checked import Address, bounded_address
from ..errors import CompilerBug
from ..ir.loop import Buffer, Kernel, Param
from ..ir.types import itemsize
from ..storage.buffers import address
from . import engine
from .emit_checked import VIOLATION, Site, emit_checked, sites
from .executable import Executable, checked_words
from .linker import Code

__all__ = ["CheckedExecutable", "compile_checked"]

_NUMBERS = itertools.count(1)
_RECORD = (ctypes.c_int64 * 5)()
"""The number of the kernel that stopped (0: none), of its check, the index, and the bounds that it violates."""
_KERNELS: WeakValueDictionary[int, CheckedExecutable] = WeakValueDictionary()
_LOCK = threading.Lock()


class CheckedExecutable(Executable):
    """A compiled kernel with its checks; a violation is raised as CompilerBug in the caller."""

    def __init__(self, name: str, params: tuple[Param, ...], code: Code, build: Callable[[], Kernel], key: str) -> None:
        super().__init__(name, params, code, build)
        self.key, self.number = key, next(_NUMBERS)
        self.words = self._words
        native = self.call

        def call(words: bytes, lo: int, hi: int) -> int:
            code = native(words, lo, hi)
            if code == VIOLATION:
                self.fail(code)
            return code

        self.call = call
        _KERNELS[self.number] = self

    def _words(self, *words: int) -> bytes:
        numbers = checked_words(self, words)
        for param, word in zip(self.params, words, strict=True):
            if isinstance(param, Buffer):
                numbers += self._ends(param, word)
        self._check_strides(words)
        numbers += [ctypes.addressof(_RECORD), self.number]
        return struct.pack(f"={len(numbers)}q", *numbers)

    def _ends(self, param: Buffer, word: int) -> tuple[int, int]:
        if isinstance(word, Address):
            return word.bounds(itemsize(param.scalar))
        if word:
            raise CompilerBug(
                f"checked kernel {self.name}: the length of buffer {param.name} is not known\n  key: {self.key}"
            )
        return 0, 0

    def _check_strides(self, words: Sequence[int]) -> None:
        """Raise CompilerBug for a stride that is not that of the array whose elements it counts.

        Where all dimensions of an array but one have strides, those of that one are 1.
        """
        for at, buffer in self._read:
            steps = getattr(words[at], "steps", None)
            if steps is None or len(self._strides[buffer.name]) < len(steps) - 1:
                continue
            for dim, step in enumerate(steps):
                place = self._strides[buffer.name].get(dim)
                stride = 1 if place is None else words[place]
                if step not in (None, stride):
                    raise CompilerBug(
                        f"checked kernel {self.name}: stride {stride} of dimension {dim} of {buffer.name}, whose"
                        f" elements lie {step:g} apart\n  key: {self.key}"
                    )

    @cached_property
    def _read(self) -> list[tuple[int, Buffer]]:
        """The buffers that are only read, with the numbers of their parameters."""
        return [(k, p) for k, p in enumerate(self.params) if isinstance(p, Buffer) and not p.mutable]

    @cached_property
    def _strides(self) -> dict[str, dict[int, int]]:
        """The number of the parameter that is a dimension's stride, by the dimension, by the name of the buffer."""
        found: dict[str, dict[int, int]] = {p.name: {} for _, p in self._read}
        for k, p in enumerate(self.params):
            name, _, dim = p.name.rpartition("_stride")
            if name in found:
                found[name][int(dim)] = k
        return found

    def pack(self, args: Sequence[Any]) -> list[int]:
        bounded = [
            bounded_address(a, address(a)) if isinstance(p, Buffer) and not isinstance(a, int) else a
            for p, a in zip(self.params, args, strict=False)
        ]
        return super().pack(bounded + list(args[len(bounded) :]))

    @cached_property
    def sites(self) -> list[Site]:
        """The checks, by number."""
        return sites(self.kernel)

    def fail(self, code: int) -> None:
        if code != VIOLATION:
            super().fail(code)
        with _LOCK:
            number, site, index, low, high = _RECORD
            _RECORD[0] = 0
        kernel = _KERNELS.get(number)
        if kernel is None:
            raise CompilerBug(f"checked kernel {self.name}: a check failed, and another thread has told of one before")
        check = kernel.sites[site]
        raise CompilerBug(
            f"checked kernel {kernel.name}: {check.describe(index, low, high)}\n"
            f"  line {check.line}: {check.text}\n  key: {kernel.key}"
        )


def _after_fork() -> None:
    """A thread that the child does not have may have held the lock."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def compile_checked(kernel: Kernel, key: str | None = None) -> CheckedExecutable:
    """A kernel with its checks, in no cache and in any mode."""
    code = engine.load(engine.to_object(emit_checked(kernel), quickly=True), kernel.name)
    return CheckedExecutable(kernel.name, kernel.params, code, lambda: kernel, key or f"kernel {kernel!r}")

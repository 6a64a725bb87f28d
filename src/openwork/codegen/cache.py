"""Executables by key: in memory, then on disk, else compiled.

On disk a kernel is one file, named by the digest of its key, the package's version and sources, the CPU and the
LLVM version. It is written to a temporary name and moved into place, so processes may share the folder; a file
that is cut short, altered or not ours is ignored. `OPENWORK_CACHE_DIR` says where, `OPENWORK_CACHE=0` turns it off.
`OPENWORK_OPTIMIZE=0` compiles in a tenth of the time code that runs slower; such code has keys of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ..checked import CHECKED
from ..ir.loop import Kernel
from . import disk, engine
from .checked import CheckedExecutable
from .emit import emit
from .emit_checked import emit_checked
from .executable import Executable

__all__ = ["clear_memory", "compile_kernel", "get"]

_MEMORY: dict[str, Executable] = {}
_LOCK = threading.Lock()


def _after_fork() -> None:
    """A thread that the child does not have may have held the lock."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def get(key: str, build: Callable[[], Kernel]) -> Executable:
    """The executable of `key`; `build` makes its kernel, and is called only when no cache has it.

    Two keys must differ where their kernels do. Cost: a dictionary look-up when warm, a few milliseconds from disk,
    tens of milliseconds to compile.
    """
    if engine.quick():
        key = f"compiled quickly: {key}"
    if CHECKED:
        key = f"checked | {key}"
    found = _MEMORY.get(key)
    if found is None:
        with _LOCK:
            found = _MEMORY.get(key)
            if found is None:
                found = _MEMORY[key] = _from_disk(key, build) or _compiled(key, build)
    return found


def compile_kernel(kernel: Kernel) -> Executable:
    """The executable of a kernel that was written by hand; the kernel itself is the key (hold on to the result)."""
    return get(f"kernel {kernel!r}", lambda: kernel)


def clear_memory() -> None:
    """Forget the executables in memory (their code stays where it is, as somebody may hold one)."""
    _MEMORY.clear()


def _from_disk(key: str, build: Callable[[], Kernel]) -> Executable | None:
    entry = disk.read(key)
    if entry is None:
        return None
    return _executable(key, entry, build)


def _compiled(key: str, build: Callable[[], Kernel]) -> Executable:
    kernel = build()
    code = engine.to_object(emit_checked(kernel) if CHECKED else emit(kernel), CHECKED or engine.quick())
    entry = disk.Entry(kernel.name, kernel.params, code)
    disk.write(key, entry)
    return _executable(key, entry, lambda: kernel)


def _executable(key: str, entry: disk.Entry, build: Callable[[], Kernel]) -> Executable:
    where = engine.load(entry.code, entry.name)
    if CHECKED:
        return CheckedExecutable(entry.name, entry.params, where, build, key)
    return Executable(entry.name, entry.params, where, build)

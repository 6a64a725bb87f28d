"""A kernel's key, and a function that builds it -> its executable: from memory, from disk, else compiled.

In memory the least recently used are evicted above the limit of `set_kernel_limit`. Plans that hold executables are
kept in tables of one kind (`plan_cache`): they are emptied at an eviction, so that the memory of a kernel without other
references is unmapped at once. A structure keeps the calls that were prepared for it, and their kernels, for as long as
a tensor has it.

On disk a kernel is one file, named by the digest of its key, the package's version and sources, the CPU and the
LLVM version. It is written to a temporary name and moved into place, so processes may share the folder; a file
that is truncated, altered or of another owner is ignored. `OPENWORK_CACHE_DIR` sets the folder, `OPENWORK_CACHE=0`
turns it off.
`OPENWORK_OPTIMIZE=0` compiles in a tenth of the time code that runs slower; such code has keys of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict

from .. import settings, tuning
from ..checked import CHECKED
from ..classes import define
from ..errors import UnsupportedError
from ..integers import integer
from ..ir.loop import Kernel
from ..ir.text import parse
from . import disk, engine, notice
from .checked import CheckedExecutable
from .emit import emit
from .emit_checked import emit_checked
from .executable import Executable
from .plan_cache import forget_plans, plan_counts

__all__ = [
    "cache_info",
    "clear_caches",
    "clear_memory",
    "compile_kernel",
    "get",
    "get_kernel_limit",
    "set_kernel_limit",
]

_MEMORY: OrderedDict[str, Executable] = OrderedDict()
_LOCK = threading.RLock()
_limit = settings.number("OPENWORK_KERNELS", 1) or 1024
SHARE = tuning.KERNELS_EVICTED


@define
class _Counts:
    hits: int = 0
    misses: int = 0
    from_disk: int = 0
    compiled: int = 0
    evicted: int = 0


_counts = _Counts()


def _after_fork() -> None:
    """A thread that the child does not have may have held the lock."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def get(key: str, build: Callable[[], Kernel]) -> Executable:
    """The executable of `key`; `build` makes its kernel, and is called only when no cache has it.

    Two keys must differ where their kernels do. Cost: a dictionary look-up when warm, a few milliseconds from disk,
    tens of milliseconds to compile.
    """
    key = _whole(key)
    executable = _MEMORY.get(key)
    if executable is None:
        with _LOCK:
            executable = _MEMORY.get(key)
            if executable is None:
                return _keep(key, _from_disk(key, build) or _compile(key, build))
    with _LOCK:
        _counts.hits += 1
        if key in _MEMORY:
            _MEMORY.move_to_end(key)
    return executable


def _keep(key: str, executable: Executable) -> Executable:
    _MEMORY[key] = executable
    _counts.misses += 1
    if len(_MEMORY) > _limit:
        _evict()
    return executable


def at_hand(key: str, build: Callable[[], Kernel]) -> Executable | None:
    """`get` of a kernel that is in memory or on disk; None where it had to be compiled."""
    key = _whole(key)
    with _LOCK:
        found = _MEMORY.get(key)
        if found is None and (found := _from_disk(key, build)) is not None:
            _keep(key, found)
        return found


def _whole(key: str) -> str:
    """A key with how kernels are compiled."""
    key = f"compiled quickly: {key}" if engine.is_unoptimised() else key
    return f"checked | {key}" if CHECKED else key


def of_text(text: str, *, reassociate: bool = False, **types: str) -> Executable:
    """The executable of a kernel that is written as text, with these types for its names.

    The text is the key, so that a kernel of another version of the package is not taken from disk.
    """
    key = f"{'reassociated ' if reassociate else ''}{types}\n{text}"
    return get(key, lambda: parse(text, reassociate=reassociate, **types))


def compile_kernel(kernel: Kernel) -> Executable:
    """The executable of a kernel that was written by hand; the kernel itself is the key (hold on to the result)."""
    return get(f"kernel {kernel!r}", lambda: kernel)


def get_kernel_limit() -> int:
    """How many kernels are kept in memory at most.

    Returns
    -------
    int, the number of kernels

    Cost: O(1).
    See also: set_kernel_limit, cache_info.

    Examples
    --------
    >>> ow.get_kernel_limit() > 0
    True
    """
    return _limit


def set_kernel_limit(n: int) -> None:
    """Keep at most `n` kernels in memory (1024 where `OPENWORK_KERNELS` says nothing else).

    Those asked for least recently go first. A kernel takes some 80 KiB; one that has gone is read from disk again in a
    few milliseconds. Kernels that a tensor has prepared calls with stay as long as the tensor.

    Parameters
    ----------
    n : how many kernels, at least 1

    Raises DTypeError where n is no integer, ValueError where n < 1.

    Cost: O(kernels that go).
    See also: get_kernel_limit, cache_info.

    Examples
    --------
    >>> before = ow.get_kernel_limit()
    >>> ow.set_kernel_limit(2 * before)
    >>> ow.get_kernel_limit() == 2 * before
    True
    >>> ow.set_kernel_limit(before)
    """
    global _limit
    n = integer(n, "set_kernel_limit", "n", boolean=False)
    if n < 1:
        raise ValueError(f"set_kernel_limit: expected at least 1 kernel, got {n}")
    with _LOCK:
        _limit = n
        if len(_MEMORY) > _limit:
            _evict()


def clear_memory() -> None:
    """Forget the executables in memory, and the plans; the code of those without other references is unmapped."""
    with _LOCK:
        _MEMORY.clear()
        forget_plans()


def clear_caches(*, disk: bool = False) -> None:
    """Forget all compiled kernels in memory and the plans that hold them, and with `disk=True` also those on disk.

    Nothing changes but that the next calls take longer. Tensors keep the calls that they have prepared.

    Parameters
    ----------
    disk : whether kernels on disk are removed too

    Cost: O(kernels); later calls compile or read theirs again.
    See also: cache_info, set_kernel_limit.

    Examples
    --------
    >>> ow.clear_caches()
    """
    clear_memory()
    if disk:
        _clear_disk()


def cache_info() -> dict[str, int | str | None]:
    """The sizes of the kernel cache in memory and on disk, and this process's hits and compilations.

    Returns
    -------
    dict : in memory `kernels`, `limit`, `bytes` (of code), `plans` that hold some; what this process did, `hits` and
        `misses` in memory, `from_disk`, `compiled`, `evicted`; on disk `folder`, `files`, `file_bytes`, and `ignored`:
        why the folder is not used, or None

    Cost: lists the folder of kernels.
    See also: clear_caches, set_kernel_limit.

    Examples
    --------
    >>> sorted(ow.cache_info())[:4]
    ['bytes', 'compiled', 'evicted', 'file_bytes']
    """
    with _LOCK:
        code = sum(e.code.nbytes for e in _MEMORY.values())
        info: dict[str, int | str | None] = {"kernels": len(_MEMORY), "limit": _limit, "bytes": code}
        info |= asdict(_counts)
    info["plans"] = sum(count for count, _, _ in plan_counts().values())
    path = disk.folder()
    files, size = disk.usage()
    return info | {
        "folder": None if path is None else str(path), "files": files, "file_bytes": size, "ignored": disk.why_not(),
    }  # fmt: skip


def _clear_disk() -> None:
    disk.clear()


def _evict() -> None:
    """Evict the least recently used kernels, a share of the limit at a time; the lock is held."""
    keep = max(1, _limit - _limit // SHARE)
    while len(_MEMORY) > keep:
        _MEMORY.popitem(last=False)
        _counts.evicted += 1
    forget_plans()


def _from_disk(key: str, build: Callable[[], Kernel]) -> Executable | None:
    entry = disk.read(key)
    if entry is None:
        return None
    executable = _executable(key, entry, build)
    _counts.from_disk += 1
    return executable


def _compile(key: str, build: Callable[[], Kernel]) -> Executable:
    begun = time.perf_counter()
    try:
        kernel = build()
    except RecursionError:
        raise UnsupportedError(
            "a kernel of so many dimensions, or of an expression so deep, is not compiled"
            "\n  help: reshape to fewer dimensions, or compute a part of the expression before"
        ) from None
    code = engine.to_object(emit_checked(kernel) if CHECKED else emit(kernel), CHECKED or engine.is_unoptimised())
    entry = disk.Entry(kernel.name, kernel.params, code)
    disk.write(key, entry)
    _counts.compiled += 1
    notice.compiled(begun)
    return _executable(key, entry, lambda: kernel)


def _executable(key: str, entry: disk.Entry, build: Callable[[], Kernel]) -> Executable:
    code = engine.load(entry.code, entry.name)
    if CHECKED:
        return CheckedExecutable(entry.name, entry.params, code, build, key)
    return Executable(entry.name, entry.params, code, build)

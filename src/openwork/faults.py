"""Fault points: where an allocation, a write, an fsync, a rename or a compile may fail, and a hook to make it fail.

    with injected(nth("write", 3)):      # the third write of this block raises OSError(ENOSPC)
        ow.write("a.mtx", A)

Every such place calls `reach(kind)` just before it acts. Without a hook that is one comparison. The hook sees the calls
of all threads; it is for tests, which run an operation once for each n and look at what is left behind.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

__all__ = ["KINDS", "Kind", "Nth", "injected", "nth", "reach"]

Kind = Literal["allocate", "write", "fsync", "rename", "compile"]
KINDS: tuple[Kind, ...] = ("allocate", "write", "fsync", "rename", "compile")

_hook: Callable[[Kind], None] | None = None


def reach(kind: Kind) -> None:
    """Called where something of this kind is about to happen; raises what the hook raises."""
    if _hook is not None:
        _hook(kind)


@contextmanager
def injected(hook: Callable[[Kind], None]) -> Iterator[None]:
    """Have every fault point call `hook(kind)` inside the block."""
    global _hook
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before


def nth(kind: Kind, n: int) -> Nth:
    """A hook that fails at the nth call (from 1) of this kind: MemoryError for "allocate" and "compile", ENOSPC else.

    `hook.calls` counts the calls of the kind, so that a test knows when n lies past the last one.
    """
    if kind not in KINDS:
        raise ValueError(f"no fault point {kind!r}\n  expected one of: {', '.join(KINDS)}")
    return Nth(kind, n)


class Nth:
    """What `nth` makes."""

    def __init__(self, kind: Kind, n: int) -> None:
        self.kind, self.n, self.calls = kind, n, 0

    def __call__(self, kind: Kind) -> None:
        if kind != self.kind:
            return
        self.calls += 1
        if self.calls != self.n:
            return
        if kind in ("allocate", "compile"):
            raise MemoryError(f"injected: {kind} number {self.n}")
        raise OSError(errno.ENOSPC, f"injected: {kind} number {self.n}")

"""Calls that a tensor has seen before: what is left of them is a fresh array and a launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..codegen import pool
from ..codegen.executable import Executable
from ..storage.buffers import address
from ..storage.memory import LARGE
from .ready import Ready
from .strided import fresh

__all__ = ["Bound", "Reduction"]

_Make = Callable[..., np.ndarray[Any, Any]]


class Reduction:
    """A launch whose one dense operand is its result, an array of known shape and dtype."""

    __slots__ = ("dtype", "make", "ready", "shape")

    def __init__(self, ready: Ready, like: np.ndarray[Any, Any]) -> None:
        self.ready, self.shape, self.dtype = ready, like.shape, like.dtype
        self.make = _maker(like.shape, like.dtype, zero=not ready.prepared.schedule.covers)

    @property
    def valid(self) -> bool:
        """Whether the launch still holds."""
        return self.ready.valid

    def __call__(self) -> np.ndarray[Any, Any]:
        out = self.make(self.shape, self.dtype)
        self.ready.start((), address(out))
        return out


class Bound:
    """A kernel that fills zeros, on one thread, bound to everything but the address of the result."""

    __slots__ = ("dtype", "executable", "size", "slot", "threads", "words")

    def __init__(self, executable: Executable, words: Sequence[int], out: str, size: int, dtype: np.dtype[Any]) -> None:
        self.executable, self.words, self.size, self.dtype = executable, list(words), size, dtype
        self.slot = [p.name for p in executable.params].index(out)
        self.threads = pool.get_num_threads()

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.threads == pool.get_num_threads()

    def __call__(self) -> np.ndarray[Any, Any]:
        out = np.zeros(self.size, self.dtype)
        words = self.words.copy()
        words[self.slot] = address(out)
        self.executable.run(words)
        return out


def _maker(shape: tuple[int, ...], dtype: np.dtype[Any], *, zero: bool) -> _Make:
    if zero:
        return np.zeros
    return fresh if math.prod(shape) * dtype.itemsize >= LARGE else np.empty

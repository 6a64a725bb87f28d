"""A conversion that a tensor has seen before -> its result: fresh arrays and launches are all that is left of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import tuning
from ..codegen import pool
from ..codegen.executable import Executable
from ..codegen.launcher import bound
from ..format.format import Format
from ..interruptible import LONG
from ..storage.buffers import address
from ..storage.memory import reserve
from ..storage.storage import Storage
from .conversion.conversion_kernels import WORK

__all__ = ["Conversion", "Part", "template"]

SHORT = tuning.SHORT_CALL


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer of a result: pos or crd of level `at`, or the values; `names` are its parameters, `like` is torch's
    template of it."""

    part: str
    at: int
    names: tuple[str, ...]
    size: int
    dtype: Any
    zero: bool = False
    like: Any = None

    @property
    def maker(self) -> Callable[[], Any]:
        """Makes the buffer, zero or uninitialised."""
        if self.like is not None:
            torch = sys.modules["torch"]
            return partial(torch.zeros_like if self.zero else torch.empty_like, self.like)
        return partial(np.zeros if self.zero else reserve, self.size, self.dtype)


def template(x: Any) -> Any:
    """A tensor of torch's as large as this one, over one element, for `empty_like`, which takes a third of the time of
    `empty`; None for NumPy's arrays."""
    return None if isinstance(x, np.ndarray) else x.new_empty(()).expand(x.shape)


class Conversion:
    """Kernels that made a result, on one thread, bound to everything but the addresses of its buffers.

    A structure never changes, so that sizes and ways are those of the first time; the values are those of the call.
    """

    __slots__ = ("format", "launches", "makers", "parts", "scratch", "short", "threads", "work")

    def __init__(
        self, format: Format, kernels: Iterable[Executable], words: Mapping[str, int], parts: Sequence[Part]
    ) -> None:
        self.format, self.parts, self.threads = format, tuple(parts), pool.get_num_threads()
        self.work = max([words.get(WORK, 0), *(part.size for part in self.parts)])
        owner = {name: k for k, part in enumerate(parts) for name in part.names}
        self.scratch: Any = None
        """what the words point to beside the tensor and the result"""
        self.makers = tuple([part.maker for part in self.parts])
        self.launches = []
        for kernel in kernels:
            names = [p.name for p in kernel.params]
            owner["a_vals"] = len(parts)
            slots = tuple((slot, owner[name]) for slot, name in enumerate(names) if name in owner)
            self.launches.append((kernel, [words[name] for name in names], slots))
        self.short = self._short() if self.work <= SHORT else None

    def _short(self) -> tuple[tuple[Callable[..., int], tuple[int, ...]], ...] | None:
        """The launches as functions of parts of the result, and last the values, by their numbers; see
        `codegen.launcher`."""
        starts = []
        for kernel, fixed, slots in self.launches:
            start = bound(kernel, fixed, [slot for slot, _ in slots])
            if start is None:
                return None
            starts.append((start, tuple(k for _, k in slots)))
        return tuple(starts)

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.threads == pool.threads

    def buffers(self, storage: Storage) -> list[Any]:
        """The parts, filled from a storage."""
        if self.short is not None:
            return self._filled(self.short, storage.values)
        buffers: list[Any] = []
        addresses = []
        for make in self.makers:
            buffer = make()
            buffers.append(buffer)
            addresses.append(address(buffer))
        addresses.append(address(storage.values))
        for kernel, fixed, slots in self.launches:
            words = fixed.copy()
            for slot, k in slots:
                words[slot] = addresses[k]
            if self.work < LONG:
                kernel.run(words)
            else:
                kernel.run_sized(self.work, words)
        return buffers

    def _filled(self, short: tuple[tuple[Callable[..., int], tuple[int, ...]], ...], values: Any) -> list[Any]:
        """The parts, filled by short calls."""
        buffers = [make() for make in self.makers]
        operands = [*buffers, values]
        if type(values) is not np.ndarray:
            operands = [address(x) for x in operands]
        for number, (start, places) in enumerate(short):
            if code := start(*[operands[k] for k in places]):
                self.launches[number][0].fail(code)
        return buffers

    def __call__(self, storage: Storage, format: Format) -> Storage:
        """The storage converted again; `format` is equal to the one that it is kept for."""
        pos: list[Any] = [None] * format.nlevels
        crd: list[Any] = [None] * format.nlevels
        *indices, values = self.buffers(storage)
        for part, buffer in zip(self.parts, indices, strict=False):
            (pos if part.part == "pos" else crd)[part.at] = buffer
        return Storage(storage.shape, format, storage.scalar, storage.fill_value, tuple(pos), tuple(crd), values)

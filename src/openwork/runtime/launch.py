"""Kernel parameters and operands -> arguments, 64-bit words, and the ranges that a parallel launch is cut into."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..codegen import pool
from ..codegen.executable import Executable
from ..codegen.launcher import launcher, record
from ..compiler.operand import ParamRef
from ..errors import CompilerBug
from ..format.level import Iterate
from ..storage.buffers import address, length, to_numpy
from ..storage.iso import element
from ..storage.storage import Storage
from .packed_coordinates import packed_coordinates
from .strided import Strided

__all__ = [
    "OneLaunch", "bits", "even_bounds", "kernel_argument", "launch", "outer_range", "storage_argument", "work_bounds",
]  # fmt: skip


class OneLaunch:
    """A kernel with fixed words -> a function that runs it on one thread, given its other words: arrays, or integers.

    words : of parameters by name, those that no call gives
    given : the parameters that each call gives, in order; those that the kernel has not are passed over
    """

    __slots__ = ("_at", "_record", "_slots", "_start", "_words", "executable")

    def __init__(self, executable: Executable, words: Mapping[str, int], given: Sequence[str]) -> None:
        self.executable = executable
        self._at = {p.name: at for at, p in enumerate(executable.params)}
        self._slots = [self._at.get(name, -1) for name in given]
        self._start = launcher()
        self._set(words)

    def _set(self, words: Mapping[str, int]) -> None:
        self._words = [0] * len(self._at)
        for name, word in words.items():
            at = self._at.get(name)
            if at is not None:
                self._words[at] = word
        self._record = b"" if self._start is None else record(self.executable.address, self._words, self._slots, False)

    def with_words(self, words: Mapping[str, int]) -> OneLaunch:
        """The same launch with other fixed words."""
        other = object.__new__(OneLaunch)
        other.executable, other._at, other._slots, other._start = self.executable, self._at, self._slots, self._start
        other._set(words)
        return other

    def __call__(self, memory: Sequence[Any], lo: int = 0, hi: int = 0) -> None:
        if self._start is not None:
            if code := self._start(self._record, tuple(memory), lo, hi):
                self.executable.fail(code)
            return
        words = self._words.copy()
        for slot, x in zip(self._slots, memory, strict=True):
            if slot >= 0:
                words[slot] = x if isinstance(x, int) else address(x)
        self.executable.run(words, lo, hi)


def bits(value: Any, scalar: str) -> int:
    """A scalar argument as the 64-bit word that a kernel takes."""
    if scalar == "f64":
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    if scalar in ("f32", "f16", "bf16"):
        return int(struct.unpack("<i", struct.pack("<f", value))[0])
    return int(value)


def storage_argument(ref: ParamRef, s: Storage) -> int:
    """The 64-bit argument for a parameter that belongs to a sparse operand."""
    match ref.kind:
        case "pos" | "crd":
            return address((s.pos if ref.kind == "pos" else s.crd)[ref.level])
        case "packed":
            return address(packed_coordinates(s))
        case "vals":
            return address(element(s.values) if s.is_iso else s.values)
        case "size" | "lower":
            lo, hi = s.structure.intervals[ref.level]
            return lo if ref.kind == "lower" else hi - lo
        case "last":
            return max(0, s.positions[ref.level] - 1)
        case "slice":
            buffer = s.values if ref.part == "vals" else (s.pos if ref.part == "pos" else s.crd)[ref.level]
            return length(buffer) // max(1, s.batches)
    raise CompilerBug(f"{ref} does not belong to a sparse operand")


def kernel_argument(ref: ParamRef, values: Mapping[str, Storage | Strided], extents: Mapping[str, int]) -> int:
    """The 64-bit argument of a parameter; `values` are storages and strided views by operand name."""
    if ref.kind == "extent":
        return extents[ref.tensor]
    value = values[ref.tensor]
    if isinstance(value, Storage):
        return storage_argument(ref, value)
    return value.strides[ref.level] if ref.kind == "stride" else value.address


def outer_range(s: Storage) -> tuple[int, int]:
    """First and last + 1 of what the outermost loop counts: coordinates, or positions where it walks those."""
    if s.format.levels[0].format.functions.iterate is Iterate.COORDINATE:
        structure = s._structure or s.structure
        return (structure.interval_ends or structure.intervals)[0]
    if s.pos[0] is not None:
        first, last = to_numpy(s.pos[0])[:2].tolist()
        return first, last
    return 0, s.positions[0]


def work_bounds(s: Storage, parts: int, whole_runs: bool = True) -> tuple[int, ...]:
    """Cut the range of the outermost loop into pieces of about equal numbers of stored elements.

    whole_runs: a run of equal coordinates of an ordered outermost level is not cut.
    """
    lo, hi = outer_range(s)
    below = s.pos[1] if len(s.format.levels) > 1 else None
    if below is not None and length(below) == hi - lo + 1 and not s.format.batch_ndim:
        pos = to_numpy(below)
        cuts = np.searchsorted(pos, np.linspace(0, int(pos[-1]), parts + 1)[1:-1]).tolist()
        return (lo, *sorted(min(hi, lo + int(c)) for c in cuts), hi)
    even = even_bounds(lo, hi, parts)
    first, crd = s.format.levels[0].format, s.crd[0]
    if whole_runs and crd is not None and first.ordered and not first.unique and hi > lo:
        run = to_numpy(crd)[lo:hi]
        return (lo, *(lo + int(np.searchsorted(run, run[cut - lo])) for cut in even[1:-1] if cut < hi), hi)
    return even


def even_bounds(lo: int, hi: int, parts: int) -> tuple[int, ...]:
    """The ends of `parts` ranges of about equal length."""
    return tuple(lo + (hi - lo) * k // parts for k in range(parts + 1))


def launch(executable: Executable, words: Sequence[int], bounds: Sequence[int], parallel: bool = True) -> None:
    """Run over the ranges between the bounds, side by side when there are several and they may.

    More ranges than there are threads mean long work: the main thread can be interrupted.
    """
    if parallel and len(bounds) > 2:
        pool.parallel(executable, words, bounds, pool.LONG if len(bounds) > pool.get_num_threads() + 1 else 0)
    else:
        for lo, hi in pairwise(bounds):
            executable.run(words, lo, hi)

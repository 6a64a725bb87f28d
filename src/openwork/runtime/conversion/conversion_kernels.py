"""A conversion stage and a storage's signature -> its operands, parameter names and compiled kernels, cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

from ...codegen import cache, pool
from ...codegen.executable import Executable
from ...codegen.plan_cache import PlanCache
from ...compiler.conversion.level_runs import Kind, runs
from ...compiler.conversion.plan import Stage
from ...compiler.conversion.stream import Walked
from ...compiler.operand import Operand, reading_one
from ...errors import UnsupportedError
from ...ir.loop import Kernel, Scalar
from ...ir.rewrite import with_one_element
from ...storage.buffers import Array, address, is_array, length, scalar_of
from ...storage.iso import element, is_iso
from ...storage.storage import Storage
from .ranges import Ranges

__all__ = [
    "Prepared",
    "StageKernels",
    "Spans",
    "Words",
    "call",
    "of_arrays",
    "prepared",
    "stage_kernels",
    "shared_kernel",
]

Words: TypeAlias = dict[str, int]
"""A kernel's arguments by parameter name: addresses and integers."""
Spans: TypeAlias = tuple[tuple[int, int], ...]

Prepared: TypeAlias = tuple[Executable, Callable[[Mapping[str, int]], Sequence[int]], tuple[str, ...]]
"""A kernel, the function that picks its arguments by name, and the names of its integers."""
WORK = "elements of the source"
"""An entry among the arguments that no kernel takes: the elements, by which a kernel's running time is estimated."""
_SHARED: PlanCache[str, Prepared] = PlanCache("kernels of conversions")


def call(key: str, build: Callable[[], Kernel], words: Mapping[str, Any], ranges: Ranges | None = None) -> int:
    """Run the kernel of `key`, in parallel on the ranges; returns its status, above 1. Raises MemoryError.

    words : the arguments by parameter, integers or arrays; of an iso one the kernel reads the element
    """
    return _run(*of_arrays(key, build, words), ranges)


def of_arrays(key: str, build: Callable[[], Kernel], words: Mapping[str, Any]) -> tuple[Prepared, dict[str, int]]:
    """The kernel of `key` for these arguments, integers or arrays, and the arguments as words."""
    found = dict(words)
    ones = []
    for name, x in words.items():
        if is_array(x):
            one = is_iso(x)
            found[name] = address(element(x) if one else x)
            if one:
                ones.append(name)
    if not ones:
        return prepared(key, build), found
    return prepared(f"{key} | one of {ones}", lambda: with_one_element(build(), ones)), found


def prepared(key: str, build: Callable[[], Kernel]) -> Prepared:
    """The kernel of `key`, the function that picks its arguments by name, and the names of its integers."""
    kernel = _SHARED.get(key)
    if kernel is None:
        kernel = _SHARED.keep(key, _prepare(key, build))
    return kernel


def shared_kernel(key: str, build: Callable[[], Kernel]) -> Executable:
    """The kernel of `key`."""
    kernel = _SHARED.get(key)
    return cache.get(key, build) if kernel is None else kernel[0]


def _prepare(key: str, build: Callable[[], Kernel]) -> Prepared:
    executable = cache.get(key, build)
    names = [p.name for p in executable.params]
    numbers = tuple(p.name for p in executable.params if isinstance(p, Scalar) and p.scalar[0] in "iu")
    if len(names) == 1:
        (name,) = names
        return executable, lambda words: (words[name],), numbers
    return executable, itemgetter(*names), numbers


def _run(kernel: Prepared, arguments: Mapping[str, int], ranges: Ranges | None) -> int:
    executable, pick, numbers = kernel
    work = max([arguments.get(WORK, 0), *[arguments[n] for n in numbers]])
    if ranges is not None:
        return pool.parallel(executable, pick(arguments), ranges.bounds, max(work, ranges.bounds[-1]))
    status = executable.run_sized(work, pick(arguments), 0, 0, status=True)
    if status == 1:
        raise MemoryError(f"conversion: no memory for a workspace of {executable.name}")
    return status


class StageKernels:
    """A stage for operands of known scalar types, with the kernels that it has compiled so far."""

    def __init__(self, stage: Stage, source: Operand, index: str) -> None:
        target = stage.target
        self.stage, self.source, self.index = stage, source, index
        self.runs = runs(target)
        self.stream = Walked(source, stage.drop, hoist=stage.hoist)
        formats = [level.format for level in target.levels]
        pos = tuple(index if "pos" in f.buffers else None for f in formats)
        crd = tuple(("bool" if f.is_bitmap else index) if "crd" in f.buffers else None for f in formats)
        self.target = Operand(source.scalar, target.ndim, target, pos, crd)
        assert source.format is not None
        about = f"{source.format.identity} {source.pos} {source.crd} {source.ragged}"
        flags = f"{stage.unique} {stage.keep} {stage.drop} {stage.hoist}"
        self.text = f"{about} | {target.identity} {index} | {source.scalar}{' iso' * source.iso} | {flags}"
        self.needs_fill = stage.drop or any(f.is_structured for f in formats)
        self._kernels: dict[str, Prepared] = {}
        self._names = buffer_names(source)

    def words(self, storage: Storage) -> Words:
        """The arguments that describe the source: addresses, extents, strides of batches."""
        arguments = dict(zip(self._names, storage.addresses, strict=True))
        arguments[WORK] = length(storage.values)
        for d, n in enumerate(storage.shape):
            arguments[f"n{d}"] = n
        return arguments | slice_lengths(storage, self._names) if storage.format.batch_ndim else arguments

    def run(
        self, kind: str, build: Callable[[], Kernel], arguments: Mapping[str, int], ranges: Ranges | None = None
    ) -> int:
        """Run the kernel `kind` of the stage, in parallel on the ranges; returns its status, above 1."""
        if ranges is not None:
            kind = f"{kind} ranged"
        kernel = self._kernels.get(kind)
        if kernel is None:
            kernel = self._kernels[kind] = _prepare(
                f"convert {kind} | {self.text}", lambda: reading_one(build(), {"a": self.source})
            )
        return _run(kernel, arguments, ranges)

    def executable(self, kind: str) -> Executable:
        """The kernel `kind`, which has run before."""
        return self._kernels[kind][0]

    @cached_property
    def shared_levels(self) -> dict[int, int] | None:
        """Where elements keep their positions: each level of the target whose crd is that of a level of the source, and
        that level; None where they do not."""
        assert self.source.format is not None
        last_run, stage = runs(self.source.format)[-1:], self.stage
        if not last_run or self.padded or stage.drop or not (stage.unique or stage.keep):
            return None
        if any(run.kind is not Kind.CHAIN for run in (*last_run, self.runs[-1])):
            return None
        source_level = {self.source.format.levels[level].expression: level for level in last_run[0].levels}
        levels = stage.target.levels
        return {
            x: source_level[levels[x].expression] for x in self.runs[-1].levels if levels[x].expression in source_level
        }

    @property
    def padded(self) -> bool:
        """Whether some of the source's values belong to no element."""
        format = self.source.format
        assert format is not None
        return self.source.ragged or any(level.format.functions.padded for level in format.levels)


def buffer_names(source: Operand | Storage) -> tuple[str, ...]:
    """The parameters for the buffers of the walked tensor `a`: pos and crd level by level, the values."""
    parts = {"pos": source.pos, "crd": source.crd}
    levels = range(len(source.pos))
    return (*[f"a_{part}{at}" for at in levels for part, x in parts.items() if x[at] is not None], "a_vals")


def slice_lengths(storage: Storage, names: Sequence[str]) -> Words:
    """Below batch levels: the elements of one slice of each buffer."""
    last, slices = max(storage.format.nlevels - 1, 0), storage.batches
    return {
        f"{name}{last if name == 'a_vals' else ''}_slice": length(buffer) // slices if slices else 0
        for name, buffer in zip(names, storage.buffers, strict=True)
    }


class _KernelsByWidth:
    """The kernels of a stage for storages of one signature: by index width."""

    def __init__(self, storage: Storage, stage: Stage) -> None:
        if storage.device != "cpu":
            raise UnsupportedError(
                f"conversion to {stage.target} of a tensor on {storage.device}\n"
                f"  help: move it with .to('cpu') first; conversion runs on the CPU"
            )
        self.stage = stage
        self.source = _operand(storage)
        widths = {s for s in (*self.source.pos, *self.source.crd) if s not in (None, "bool")}
        self.wide = "i64" in widths or (not widths and storage.library == "torch")
        self.by_width: dict[str, StageKernels] = {}
        self.spans: tuple[tuple[int, ...], Spans, int] = ((-1,), (), 0)

    def for_shape(self, storage: Storage) -> tuple[StageKernels, Spans]:
        shape, spans, largest = self.spans
        if shape != storage.shape:
            spans = self.stage.target.level_intervals(storage.shape)
            largest = max((max(-lo, hi) for lo, hi in spans), default=0)
            self.spans = storage.shape, spans, largest
        index = "i64" if self.wide or max(largest, length(storage.values)) >= 2**31 else "i32"
        if index not in self.by_width:
            self.by_width[index] = StageKernels(self.stage, self.source, index)
        return self.by_width[index], spans


_KERNELS: PlanCache[tuple[int, int], _KernelsByWidth] = PlanCache("stages of conversions")


def stage_kernels(storage: Storage, stage: Stage) -> tuple[StageKernels, Spans]:
    """The kernels of a stage for a storage, and the intervals of the target's levels.

    The index width is the source's, or i64 where coordinates or positions need that.
    """
    key = storage.signature, id(stage)
    kernels = _KERNELS.get(key)
    if kernels is None:
        kernels = _KERNELS.keep(key, _KernelsByWidth(storage, stage))
    return kernels.for_shape(storage)


def _operand(storage: Storage) -> Operand:
    """The type of a storage, as kernels see it."""

    def scalars(buffers: Sequence[Array | None]) -> tuple[str | None, ...]:
        return tuple(None if b is None else scalar_of(b) for b in buffers)

    format = storage.format
    ragged = format.ragged(storage.shape)
    return Operand(
        storage.scalar, format.ndim, format, scalars(storage.pos), scalars(storage.crd), ragged, iso=storage.is_iso
    )  # fmt: skip

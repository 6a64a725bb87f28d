"""The buffers of a conversion's result: their sizes, allocation, and what is done once the elements are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import cache
from ..compiler.conversion import helpers
from ..compiler.conversion.append import STATUS_SLOTS, STATUS_UNIQUE
from ..compiler.conversion.plan import Stage
from ..compiler.conversion.target import Kind, Run, runs
from ..compiler.operand import Operand
from ..errors import CompilerBug, FormatError
from ..format.format import Format
from ..ir.loop import Kernel
from ..storage.buffers import Array, empty, length, scalar_of, to_numpy, zeros
from ..storage.storage import Storage

__all__ = ["Assembly", "SlotsFull", "full", "operand_of", "run_kernel", "source_arguments"]

VACANT = -(2**31)
"""What an unwritten coordinate of a structured level or of a singleton is, while a result is assembled."""
EMPTY_SLOT = -1
"""The sentinel of `ell`."""


class SlotsFull(Exception):
    """A parent has more elements than its level has slots."""

    def __init__(self, level: int, parent: int) -> None:
        super().__init__(level, parent)
        self.level, self.parent = level, parent


def run_kernel(key: str, build: Callable[[], Kernel], arguments: Mapping[str, Any], lo: int = 0, hi: int = 0) -> int:
    """Run the kernel of `key` on arguments by parameter name; returns its status, above 1."""
    executable = cache.get(key, build)
    words = executable.pack([arguments[p.name] for p in executable.params])
    status = executable.run(words, lo, hi, status=True)
    if status == 1:
        raise MemoryError("conversion: no memory for a workspace")
    return status


def operand_of(storage: Storage) -> Operand:
    """What a kernel knows of a storage."""

    def scalars(buffers: Sequence[Array | None]) -> tuple[str | None, ...]:
        return tuple(None if b is None else scalar_of(b) for b in buffers)

    format = storage.format
    ragged = format.ragged(storage.shape)
    return Operand(storage.scalar, format.ndim, format, scalars(storage.pos), scalars(storage.crd), ragged)


def source_arguments(storage: Storage) -> dict[str, Any]:
    """The parameters that say where the tensor `a` is."""
    found: dict[str, Any] = {f"n{d}": n for d, n in enumerate(storage.shape)}
    slices = storage.batches
    for part, buffers in (("pos", storage.pos), ("crd", storage.crd)):
        for at, buffer in enumerate(buffers):
            if buffer is not None:
                found[f"a_{part}{at}"] = buffer
                found[f"a_{part}{at}_slice"] = length(buffer) // slices if slices else 0
    found["a_vals"] = storage.values
    found["a_vals_slice"] = length(storage.values) // slices if slices else 0
    return found


def full(n: int, scalar: str, value: Any, like: Array) -> Array:
    """A fresh buffer of n times `value`."""
    if is_zero(value):
        return zeros(n, scalar, like)
    out = empty(n, scalar, like)
    if isinstance(out, np.ndarray):
        out.fill(value)
    else:
        out.fill_(value)
    return out


def is_zero(value: Any) -> bool:
    """Whether all bits of the value are zero: 0, 0.0, False, 0j, but not -0.0."""
    z = complex(value)
    return z == 0 and not any(np.signbit([z.real, z.imag]))


def index_scalar(storage: Storage, target: Format) -> str:
    """The index width of a result: the source's, or i64 where its coordinates or positions need that."""
    widths = {scalar_of(b) for b in (*storage.pos, *storage.crd) if b is not None} - {"bool"}
    if "i64" in widths or (not widths and storage.library == "torch"):
        return "i64"
    spans = target.level_intervals(storage.shape)
    largest = max([length(storage.values), *(max(-lo, hi) for lo, hi in spans)])
    return "i32" if largest < 2**31 else "i64"


@dataclass(slots=True)
class Assembly:
    """A result while it is being made."""

    stage: Stage
    operand: Operand
    shape: tuple[int, ...]
    fill_value: Any
    like: Array
    index: str
    spans: tuple[tuple[int, int], ...]
    pos: list[Array | None]
    crd: list[Array | None]
    values: Array | None = None
    positions: tuple[int, ...] = ()

    @classmethod
    def begin(cls, storage: Storage, stage: Stage) -> Assembly:
        """An empty result of the stage's target format."""
        target = stage.target
        index = index_scalar(storage, target)
        formats = [level.format for level in target.levels]
        pos = tuple(index if "pos" in f.buffers else None for f in formats)
        crd = tuple(("bool" if f.name == "bitmap" else index) if "crd" in f.buffers else None for f in formats)
        operand = Operand(storage.scalar, target.ndim, target, pos, crd)
        spans = target.level_intervals(storage.shape)
        none: list[Array | None] = [None] * target.nlevels
        return cls(stage, operand, storage.shape, storage.fill_value, storage.like, index, spans, none, none.copy())

    @property
    def runs(self) -> tuple[Run, ...]:
        return runs(self.stage.target)

    def key(self, kind: str, source: Operand | None = None) -> str:
        """A kernel's key: formats, scalar types, and what the stage says."""
        stage = self.stage
        flags = f"{stage.unique} {stage.keep} {stage.drop}"
        about = (
            ""
            if source is None or source.format is None
            else f"{source.format.canonical} {source.pos} {source.crd} {source.ragged}"
        )
        return f"convert {kind} | {about} | {stage.target.canonical} {self.index} | {self.operand.scalar} | {flags}"

    def levels_above(self, run: Run, sizes: Mapping[Run, int]) -> int:
        """Positions of the level above `run`."""
        parents = 1
        for other in self.runs:
            if other.first >= run.first:
                break
            parents = self._positions(other, parents, sizes)
        return parents

    def _positions(self, run: Run, parents: int, sizes: Mapping[Run, int]) -> int:
        if run.kind is Kind.CHAIN:
            return sizes[run]
        if run.kind is Kind.SLOTS:
            return parents * run.width
        for at in run.levels:
            parents *= self.spans[at][1] - self.spans[at][0]
        return parents

    def allocate(self, sizes: Mapping[Run, int]) -> None:
        """Allocate every buffer, given the positions of each chain."""
        parents = 1
        exact = True
        for run in self.runs:
            if run.kind is Kind.CHAIN:
                count = parents + 1 if self.stage.target.levels[run.first].format.name == "compressed" else 2 * parents
                self.pos[run.first] = zeros(count, self.index, self.like)
            self._allocate_crd(run, parents, sizes)
            exact = run.kind is Kind.CHAIN
            parents = self._positions(run, parents, sizes)
        scalar = self.operand.scalar
        if exact:
            self.values = empty(parents, scalar, self.like)
        else:
            self.values = full(parents, scalar, self.fill_value, self.like)

    def _allocate_crd(self, run: Run, parents: int, sizes: Mapping[Run, int]) -> None:
        total = self._positions(run, parents, sizes)
        for at in run.levels:
            level = self.stage.target.levels[at].format
            if "crd" not in level.buffers:
                parents *= self.spans[at][1] - self.spans[at][0]
            elif run.kind is Kind.CHAIN:
                self.crd[at] = empty(total, self.index, self.like)
            elif run.kind is Kind.SLOTS:
                sentinel = EMPTY_SLOT if level.name == "ell" else VACANT
                self.crd[at] = full(total, self.index, sentinel, self.like)
            else:
                parents *= self.spans[at][1] - self.spans[at][0]
                self.crd[at] = zeros(parents, "bool", self.like)

    def arguments(self) -> dict[str, Any]:
        """The parameters that say where the tensor `b` is."""
        found: dict[str, Any] = {"fill": full(1, self.operand.scalar, self.fill_value, self.like)}
        found.update((f"b_pos{at}", b) for at, b in enumerate(self.pos) if b is not None)
        found.update((f"b_crd{at}", b) for at, b in enumerate(self.crd) if b is not None)
        if self.values is not None:
            found["b_vals"] = self.values
        return found

    def finish(self, sizes: Mapping[Run, int]) -> Storage:
        """Close the edges of parents without children, fill structured slots, and give the storage."""
        parents = 1
        for number, run in enumerate(self.runs):
            level = self.stage.target.levels[run.first].format
            if level.name == "compressed" and number > 0 and self.runs[number - 1].kind is not Kind.CHAIN:
                names = {"parents": parents, "pos": self.pos[run.first]}
                run_kernel(f"close_edges {self.index}", lambda: helpers.close_kernel(self.index), names)
            if level.name == "structured":
                self._complete(run, parents, number, sizes)
            elif run.kind is Kind.SLOTS and level.name == "singleton":
                self._expect_all(run, parents)
            parents = self._positions(run, parents, sizes)
        return self.storage()

    def storage(self) -> Storage:
        """The storage of the buffers as they are."""
        assert self.values is not None
        target, scalar = self.stage.target, self.operand.scalar
        return Storage(self.shape, target, scalar, self.fill_value, tuple(self.pos), tuple(self.crd), self.values)

    def _complete(self, run: Run, parents: int, number: int, sizes: Mapping[Run, int]) -> None:
        block = 1
        for other in self.runs[number + 1 :]:
            block = self._positions(other, block, sizes)
        scalar, index = self.operand.scalar, self.index
        names = {"parents": parents, "width": run.width, "block": block, "vacant": VACANT}
        names |= {"crd": self.crd[run.first], "out": self.values, "fill": self.arguments()["fill"]}
        run_kernel(f"complete_slots {index} {scalar}", lambda: helpers.complete_kernel(index, scalar), names)

    def _expect_all(self, run: Run, parents: int) -> None:
        """A singleton that stands below located levels needs an element for each of their positions."""
        sizes = np.zeros(1, np.int64)
        names = {"count": parents, "vacant": VACANT, "crd": self.crd[run.first], "sizes": sizes}
        run_kernel(f"find_vacant {self.index}", lambda: helpers.vacant_kernel(self.index), names)
        if sizes[0] >= 0:
            raise FormatError(
                f"conversion to {self.stage.target}: {self.place(run, int(sizes[0]))} has no element\n"
                f"  expected: exactly one, as level {run.first} is a singleton\n"
                f"  help: use compressed, or ell(1), for level {run.first}"
            )

    def check(self, status: int, sizes: Array) -> None:
        """Raise what a kernel's status says."""
        where = int(to_numpy(sizes)[0])
        if status == 0:
            return
        levels = self.stage.target.nlevels
        if STATUS_SLOTS <= status < STATUS_SLOTS + levels:
            raise SlotsFull(status - STATUS_SLOTS, where)
        if STATUS_UNIQUE <= status < STATUS_UNIQUE + levels:
            at = status - STATUS_UNIQUE
            raise FormatError(
                f"conversion to {self.stage.target}: level {at} is unique, but several elements have its coordinate {where}\n"
                f"  expected: one, as level {at + 1} is a singleton\n"
                f"  help: use compressed for level {at + 1}, or nonunique for level {at}"
            )
        raise CompilerBug(f"conversion to {self.stage.target}: a kernel returned status {status}")

    def place(self, run: Run, parent: int) -> str:
        """The parent position in the words of the format: `i = 3`, where the levels above tell it."""
        above = [r for r in self.runs if r.first < run.first]
        if any(r.kind is not Kind.LOCATED for r in above):
            return f"position {parent} above level {run.first}"
        from ..format.expression import render

        said = []
        for at in reversed(range(run.first)):
            lo, hi = self.spans[at]
            parent, c = divmod(parent, hi - lo)
            said.append(f"{render(self.stage.target.levels[at].expression, self.stage.target.dims)} = {c + lo}")
        return ", ".join(reversed(said)) or "the tensor"

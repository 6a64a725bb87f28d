"""A conversion stage and counts of positions -> the result's buffers: allocated, closed and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from math import copysign
from typing import Any

import numpy as np

from ...classes import define
from ...compiler.conversion import helpers
from ...compiler.conversion.append import STATUS_SLOTS, STATUS_UNIQUE
from ...compiler.conversion.level_runs import Kind, Run
from ...compiler.conversion.plan import Stage
from ...errors import CompilerBug, FormatError
from ...format.expression import render
from ...storage.buffers import Array, address, cast, empty, length, scalar_of, zeros
from ...storage.storage import Storage
from .conversion_kernels import Spans, StageKernels, Words, call, stage_kernels
from .ranges import of_numbers

__all__ = ["Assembly", "SlotsFull", "copy", "full", "is_zero"]

VACANT = -(2**31)
"""The unwritten coordinate of a structured level or of a singleton, while a result is assembled."""
_CLOSE = {"i32": "close_edges i32", "i64": "close_edges i64"}
EMPTY_SLOT = -1
"""The sentinel of `ell`."""


class SlotsFull(Exception):
    """A parent has more elements than its level has slots."""

    def __init__(self, level: int, parent: int) -> None:
        super().__init__(level, parent)
        self.level, self.parent = level, parent


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


def copy(x: Array) -> Array:
    """A copy of a buffer, by several threads where that pays."""
    ranges = of_numbers(length(x), length(x))
    if ranges is not None:
        scalar = scalar_of(x)
        out = empty(length(x), scalar, x)
        arguments = {"x": address(x), "out": address(out)}
        call(f"copy {scalar}", lambda: helpers.copy_kernel(scalar), arguments, ranges)
        return out
    return x.copy() if isinstance(x, np.ndarray) else x.detach().clone()


def is_zero(value: Any) -> bool:
    """Whether all bits of the value are zero: 0, 0.0, False, 0j, but not -0.0."""
    z = complex(value)
    return z == 0 and copysign(1, z.real) + copysign(1, z.imag) == 2


@define
class Assembly:
    """A result under construction; `words` are the arguments of its kernels by name."""

    kernels: StageKernels
    stage: Stage
    runs: tuple[Run, ...]
    index: str
    scalar: str
    shape: tuple[int, ...]
    fill_value: Any
    like: Array
    spans: Spans
    words: Words
    pos: list[Array | None]
    crd: list[Array | None]
    values: Array | None = None
    totals: Array | None = None

    @classmethod
    def begin(cls, storage: Storage, stage: Stage) -> Assembly:
        """An empty result of the stage's target format."""
        kernels, spans = stage_kernels(storage, stage)
        none: list[Array | None] = [None] * len(spans)
        arguments = kernels.words(storage)
        out = cls(
            kernels, stage, kernels.runs, kernels.index, storage.scalar,
            storage.shape, storage.fill_value, storage.values, spans, arguments, none, none.copy(),
        )  # fmt: skip
        out.totals = np.zeros(max(len(kernels.runs), 4), np.int64)
        arguments["sizes"] = address(out.totals)
        if kernels.needs_fill:
            out.fill = full(1, storage.scalar, storage.fill_value, storage.like)
            arguments["fill"] = address(out.fill)
        return out

    fill: Array | None = None

    def put(self, part: str, at: int, buffer: Array) -> None:
        """Take `buffer` as pos or crd of level `at`."""
        (self.pos if part == "pos" else self.crd)[at] = buffer
        self.words[f"b_{part}{at}"] = address(buffer)

    def put_values(self, buffer: Array) -> None:
        """Take `buffer` as the values."""
        self.values = buffer
        self.words["b_vals"] = address(buffer)

    def total(self, number: int) -> int:
        """The count that a kernel has stored in sizes[number]."""
        assert self.totals is not None
        return int(self.totals[number])

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

    def allocate(
        self, sizes: Mapping[Run, int], source: Storage | None = None, owned: bool = False, assembled: Run | None = None
    ) -> None:
        """Allocate every buffer, given the positions of each chain; those that the result shares with `source` are
        copied, or reused where they are `owned`. Those of the run `assembled` exist already."""
        parents = 1
        exact = True
        for run in self.runs:
            if run is assembled:
                parents, exact = sizes[run], True
                continue
            if run.kind is Kind.CHAIN:
                count = parents + 1 if self.stage.target.levels[run.first].format.is_compressed else 2 * parents
                self.put("pos", run.first, zeros(count, self.index, self.like))
            self._allocate_crd(run, parents, sizes, () if source is None else self.kernels.shared_levels or ())
            exact = run.kind is Kind.CHAIN
            parents = self._positions(run, parents, sizes)
        if source is not None:
            self.put_values(source.values if owned else copy(source.values))
            for at, level in (self.kernels.shared_levels or {}).items():
                buffer = cast(source.crd[level], self.index)
                self.put("crd", at, copy(buffer) if buffer is source.crd[level] and not owned else buffer)
        elif exact:
            self.put_values(empty(parents, self.scalar, self.like))
        else:
            self.put_values(full(parents, self.scalar, self.fill_value, self.like))

    def _allocate_crd(self, run: Run, parents: int, sizes: Mapping[Run, int], shared: Collection[int]) -> None:
        total = self._positions(run, parents, sizes)
        for at in run.levels:
            level = self.stage.target.levels[at].format
            if "crd" not in level.buffers:
                parents *= self.spans[at][1] - self.spans[at][0]
            elif run.kind is Kind.CHAIN and at in shared:
                continue
            elif run.kind is Kind.CHAIN:
                self.put("crd", at, empty(total, self.index, self.like))
            elif run.kind is Kind.SLOTS:
                sentinel = EMPTY_SLOT if level.has_sentinel else VACANT
                self.put("crd", at, full(total, self.index, sentinel, self.like))
            else:
                parents *= self.spans[at][1] - self.spans[at][0]
                self.put("crd", at, zeros(parents, "bool", self.like))

    def finish(self, sizes: Mapping[Run, int]) -> Storage:
        """Complete pos of parents without children, fill structured slots, and return the storage."""
        parents = 1
        for number, run in enumerate(self.runs):
            level = self.stage.target.levels[run.first].format
            if level.is_compressed and number > 0 and self.runs[number - 1].kind is not Kind.CHAIN:
                self.close(run, parents)
            if level.is_structured:
                self._complete(run, parents, number, sizes)
            elif run.kind is Kind.SLOTS and level.is_singleton:
                self._expect_all(run, parents)
            parents = self._positions(run, parents, sizes)
        return self.storage()

    def close(self, run: Run, parents: int) -> None:
        """Complete pos at parents without children."""
        words = {"parents": parents, "pos": self.words[f"b_pos{run.first}"]}
        call(_CLOSE[self.index], partial(helpers.close_kernel, self.index), words)

    def storage(self) -> Storage:
        """The storage of the buffers as they are."""
        assert self.values is not None
        target = self.stage.target
        return Storage(self.shape, target, self.scalar, self.fill_value, tuple(self.pos), tuple(self.crd), self.values)

    def _complete(self, run: Run, parents: int, number: int, sizes: Mapping[Run, int]) -> None:
        block = 1
        for other in self.runs[number + 1 :]:
            block = self._positions(other, block, sizes)
        scalar, index = self.scalar, self.index
        words = {"parents": parents, "width": run.width, "block": block, "vacant": VACANT, "fill": self.words["fill"]}
        words |= {"crd": self.words[f"b_crd{run.first}"], "out": self.words["b_vals"]}
        call(f"complete_slots {index} {scalar}", lambda: helpers.complete_kernel(index, scalar), words)

    def _expect_all(self, run: Run, parents: int) -> None:
        """Check that a singleton below located levels has an element for each of their positions."""
        words = {
            "count": parents,
            "vacant": VACANT,
            "crd": self.words[f"b_crd{run.first}"],
            "sizes": self.words["sizes"],
        }
        call(f"find_vacant {self.index}", partial(helpers.vacant_kernel, self.index), words)
        if self.total(0) >= 0:
            raise FormatError(
                f"conversion to {self.stage.target}: {self.place(run, self.total(0))} has no element\n"
                f"  expected: exactly one, as level {run.first} is a singleton\n"
                f"  help: use compressed, or ell(1), for level {run.first}"
            )

    def check(self, status: int) -> None:
        """Raise the error of a kernel's status, if it is one."""
        if status == 0:
            return
        where = self.total(0)
        levels = self.stage.target.nlevels
        if STATUS_SLOTS <= status < STATUS_SLOTS + levels:
            raise SlotsFull(status - STATUS_SLOTS, where)
        if STATUS_UNIQUE <= status < STATUS_UNIQUE + levels:
            at = status - STATUS_UNIQUE
            raise FormatError(
                f"conversion to {self.stage.target}: level {at} is unique, but several elements "
                f"have its coordinate {where}\n"
                f"  expected: one, as level {at + 1} is a singleton\n"
                f"  help: use compressed for level {at + 1}, or nonunique for level {at}"
            )
        raise CompilerBug(f"conversion to {self.stage.target}: a kernel returned status {status}")

    def place(self, run: Run, parent: int) -> str:
        """The parent position as coordinates of the format, `i = 3`, where these follow from it."""
        above = [r for r in self.runs if r.first < run.first]
        if any(r.kind is not Kind.LOCATED for r in above):
            return f"position {parent} above level {run.first}"

        coordinates = []
        for at in reversed(range(run.first)):
            lo, hi = self.spans[at]
            parent, c = divmod(parent, hi - lo)
            coordinates.append(f"{render(self.stage.target.levels[at].expression, self.stage.target.dims)} = {c + lo}")
        return ", ".join(reversed(coordinates)) or "the tensor"

"""A merge's plan, its operands' types and a shape -> its launch, complete but for addresses and sizes.

A result with one chain at its last level (CSR, CSC, COO, CSF of one level, DCSR's last level alone), of operands that
are not converted, is launched by `OneChain`: of the structures no more is asked than how many elements there are. Over
torch buffers it serves small results: their memory is NumPy's, which allocates in less time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ... import tuning
from ...checked import CHECKED
from ...classes import frozen
from ...codegen import pool
from ...codegen.float_flags import raised
from ...codegen.launcher import launcher, record
from ...codegen.plan_cache import PlanCache
from ...compiler.coiterate.code_size import SLACK
from ...compiler.conversion.level_runs import Kind
from ...compiler.schedule.coiterate import MergeSchedule
from ...compiler.schedule.gallop import Drivers
from ...interruptible import LONG
from ...storage.buffers import address, numpy_dtype, scalar_of
from ...storage.iso import element
from ...storage.memory import reserve, shrink
from ...storage.storage import Storage
from ...storage.structure import Structure
from ..float_errors import WarningSource
from .gallop_choice import drivers_of
from .partition import MINIMUM
from .plan import Compiled, compiled

__all__ = ["LAUNCHES", "Launch", "OneChain", "launch_of"]

SMALL = 0 if CHECKED else tuning.RESULT_ALLOCATION


@frozen
class Launch:
    """A launch for operands of given signatures and a shape, complete but for addresses and sizes."""

    kernel: Compiled
    spans: tuple[tuple[int, int], ...]
    extents: dict[str, int]
    one_chain: OneChain | None


LAUNCHES: PlanCache[Any, Launch] = PlanCache("launches of merges")
"""By plan, shape, the operands that are walked alone, and signatures where operands are converted."""


def launch_of(plan: MergeSchedule, storages: tuple[Storage, ...], shape: tuple[int, ...]) -> Launch:
    """The launch for operands that follow the order of the plan's loops."""
    drivers = drivers_of(plan.gallop_chooser, storages, shape, plan.target)
    key = (plan, shape, drivers, *([s.signature for s in storages] if plan.converts else ()))
    return LAUNCHES.get(key) or LAUNCHES.keep(key, _launch(plan, storages, shape, drivers))


def _launch(plan: MergeSchedule, storages: tuple[Storage, ...], shape: tuple[int, ...], drivers: Drivers) -> Launch:
    spans = plan.target.level_intervals(shape)
    largest = max((max(-lo, hi) for lo, hi in spans), default=0)
    kernel = compiled(plan, storages, _width(storages, largest), drivers)
    extents = {f"n{at}": hi - lo for at, (lo, hi) in enumerate(spans)}
    extents |= {f"lo{at}": lo for at, (lo, _) in enumerate(spans)}
    recipe = _RECIPES.get((plan, kernel))
    if recipe is None:
        found: MergeRecipe | Literal[False] = _has_one_chain(plan, kernel, storages) and MergeRecipe(
            plan, kernel, storages
        )
        recipe = _RECIPES.keep((plan, kernel), found)
    one_chain = OneChain(recipe, spans, extents, shape) if isinstance(recipe, MergeRecipe) else None
    return Launch(kernel, spans, extents, one_chain)


def _width(storages: tuple[Storage, ...], largest: int) -> str:
    """The type of the result's indices: the widest of the operands', i64 where coordinates or positions need it."""
    widths = {scalar_of(b) for s in storages for b in (*s.pos, *s.crd) if b is not None} - {"bool"}
    if "i64" in widths or largest >= 2**31 - 1 or (not widths and storages[0].library == "torch"):
        return "i64"
    return "i32"


class MergeRecipe:
    """What the launches of one compiled merge for all shapes have in common, where its result has one chain."""

    __slots__ = (
        "before", "behind", "buffers", "fields", "index", "kernel", "last", "limit", "objects", "plan",
        "points", "size", "start", "tail", "torch",
    )  # fmt: skip

    def __init__(self, plan: MergeSchedule, kernel: Compiled, storages: tuple[Storage, ...]) -> None:
        self.plan, self.kernel = plan, kernel
        run = plan.runs[-1]
        self.index = numpy_dtype(kernel.index)
        self.fields = [self.index] * len(run.levels) + [numpy_dtype(plan.scalar)]
        """of crd of the chain's levels, and of the values, the dtype"""
        self.size = sum(dtype.itemsize for dtype in self.fields)
        """bytes of an element of the result"""
        self.tail = kernel.names[kernel.names.index("chunks") + 1 :]
        self.buffers = _buffers_of(storages)
        numbers = {name: k for k, name in enumerate(plan.dims)}
        refs = [ref for name in kernel.names if (ref := kernel.refs.get(name)) is not None]
        self.last = [(numbers[ref.tensor], ref.level) for ref in refs]
        self.limit = 2**31 - 1 if kernel.index == "i32" else 2**62
        self.before = (None,) * run.first
        self.behind = (None,) * (plan.target.nlevels - run.first - 1)
        self.start = launcher()
        self.objects = kernel.prefix + len(plan.parameters) + len(refs) + len(self.fields) + 2
        self.torch = sys.modules["torch"] if storages[0].library == "torch" else None
        """where buffers are its tensors, else None"""
        self.points = any(type(b) is not np.ndarray for s in storages for b in s.buffers)
        """whether some buffers are given by address: torch's, of an index beside NumPy's values say"""


_RECIPES: PlanCache[Any, MergeRecipe | Literal[False]] = PlanCache("recipes of merges")


class OneChain:
    """The launch of one compiled merge for one shape, whose result has one chain at its last level."""

    __slots__ = ("_capacity", "_meta", "_pos", "_recipe", "_record", "_shape", "_sums", "_tail")

    def __init__(
        self, recipe: MergeRecipe, spans: tuple[tuple[int, int], ...], extents: dict[str, int], shape: tuple[int, ...]
    ) -> None:
        self._recipe, self._shape = recipe, shape
        kernel = recipe.kernel
        (bound,) = kernel.bounds
        sizes = [hi - lo for lo, hi in spans]
        self._capacity = math.prod(sizes)
        self._sums = [[(k, math.prod([sizes[at] for at in lacks])) for k, _, lacks in terms] for terms in bound.sums]
        self._pos = math.prod(sizes[: len(recipe.before)]) + 1
        self._meta = np.array([*spans[0], 0, 0], np.int64)
        self._tail = (1, *map(extents.__getitem__, recipe.tail))
        words = (*(0,) * recipe.objects, *self._tail)
        self._record = record(kernel.executable.address, words, range(recipe.objects), False)
        """the launch, without addresses and last positions"""

    def run(
        self, storages: tuple[Storage, ...], passed: Sequence[Any], how: WarningSource
    ) -> tuple[Storage, bool] | None:
        """The result for operands of the types and the shape, and arrays of one number each; whether NumPy would
        certainly warn of nothing. None where several threads pay, or the index type may be too narrow.
        """
        elements = self._capacity
        for terms in self._sums:
            total = 0
            for k, factor in terms:
                total += storages[k].values.shape[0] * factor
            if total < elements:
                elements = total
        recipe = self._recipe
        if elements >= MINIMUM and (elements + SLACK >= recipe.limit or pool.threads > 1):
            return None
        elements += SLACK
        nbytes, torch = elements * recipe.size, recipe.torch
        if torch is not None and (nbytes > SMALL or torch.is_inference_mode_enabled()):
            return None
        meta = self._meta.copy()
        make = np.empty if nbytes <= SMALL else reserve
        parts = [make(self._pos, recipe.index)]
        for dtype in recipe.fields:
            parts.append(make(elements, dtype))
        used = self._launch(storages, passed, parts, meta, elements)
        silent = how is WarningSource.NEVER or (elements < LONG and how is WarningSource.FLAGS and not raised())
        for k in range(1, len(parts)):
            parts[k] = parts[k][:used] if make is np.empty else shrink(parts[k], used)
        return self._result(storages, parts, used), silent

    def _launch(
        self, storages: tuple[Storage, ...], passed: Sequence[Any], parts: list[Any], meta: Any, elements: int
    ) -> int:
        """Run the kernel, which fills the parts of the result and counts in `meta`; the elements that it found."""
        memory: list[Any] = []
        recipe = self._recipe
        for k, is_pos, level in recipe.buffers:
            s = storages[k]
            if level >= 0:
                memory.append((s.pos if is_pos else s.crd)[level])
            else:
                memory.append(element(s.values) if is_pos else s.values)
        if recipe.points:
            memory = _pointers(memory)
        memory += passed
        for k, level in recipe.last:
            s = storages[k]
            count = s.values.shape[0] if level == len(s.pos) - 1 else s.positions[level]
            memory.append(max(0, count - 1))
        memory += parts
        memory.append(meta)
        executable = recipe.kernel.executable
        if recipe.start is None or elements >= LONG:
            words = [x if type(x) is int else address(x) for x in memory]
            executable.run_sized(elements, (*words, *self._tail), 0, 1)
        elif code := recipe.start(self._record, tuple(memory), 0, 1):
            executable.fail(code)
        return int(meta[3])

    def _result(self, storages: tuple[Storage, ...], parts: list[Any], used: int) -> Storage:
        recipe = self._recipe
        plan, torch = recipe.plan, recipe.torch
        for k in plan.shares:
            if storages[k].values.shape[0] == used:
                s = storages[k]
                values = parts[-1] if torch is None else torch.from_numpy(parts[-1])
                return Storage.over(s._structure or s.structure, plan.scalar, plan.fill, values)
        if torch is not None:
            parts = list(map(torch.from_numpy, parts))
        pos, *crd, values = parts
        before, behind = recipe.before, recipe.behind
        structure = Structure(self._shape, plan.target, (*before, pos, *behind), (*before, *crd))
        return Storage.over(structure, plan.scalar, plan.fill, values)


def _buffers_of(storages: tuple[Storage, ...]) -> list[tuple[int, bool, int]]:
    """The buffers of operands in the order of the kernel's parameters: operand, whether pos, level; for values whether
    the kernel reads one, -1."""
    found = []
    for k, s in enumerate(storages):
        for level, (pos, crd) in enumerate(zip(s.pos, s.crd, strict=True)):
            found += [(k, True, level)] if pos is not None else []
            found += [(k, False, level)] if crd is not None else []
        found.append((k, s.is_iso, -1))
    return found


def _pointers(buffers: list[Any]) -> list[Any]:
    """Torch's buffers by address; those inside a transform are of the memory of the tensors that they wrap."""
    try:
        return [b if type(b) is np.ndarray else b.data_ptr() if b.is_contiguous() else address(b) for b in buffers]
    except (AttributeError, RuntimeError):
        return [address(b) for b in buffers]


def _has_one_chain(plan: MergeSchedule, kernel: Compiled, storages: tuple[Storage, ...]) -> bool:
    """Whether a plan converts nothing, and its result has one chain at its last level, whose bound needs no more than
    the numbers of values."""
    chains = [run for run in plan.runs if run.kind is Kind.CHAIN]
    levels = plan.target.levels
    if len(chains) != 1 or chains[0] is not plan.runs[-1] or any(level.format.is_bitmap for level in levels):
        return False
    if plan.converts or plan.format is not plan.target or len({s.library for s in storages}) > 1:
        return False
    if any(s.device != "cpu" for s in storages) or (storages[0].library == "torch" and plan.scalar == "bf16"):
        return False
    (bound,) = kernel.bounds
    leaf_terms = all(level == len(s.pos) - 1 for terms in bound.sums for k, level, _ in terms for s in (storages[k],))
    refs_known = all(ref.kind == "last" for ref in kernel.refs.values())
    if not refs_known or "fill" in kernel.names or not leaf_terms or not bound.sums:
        return False
    order = [name for name in kernel.names if name.startswith("out_")]
    expected = [f"out_pos{chains[0].first}", *(f"out_crd{at}" for at in chains[0].levels), "out_vals"]
    first = len(kernel.refs) + len(plan.parameters)
    return order == expected and kernel.names[first + len(order) : first + len(order) + 2] == ("meta", "chunks")

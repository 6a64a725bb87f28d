"""Tensors of little data, and a map of their coordinates -> the moved elements in a format, by one launch.

    A[:, 3:9], ow.tril(A), A.asformat("csc"), ow.vstack([A, B])

The statement is B[f(i)] = A[i], its map an `IndexMap`. Its `Move` is a plan by types: one kernel walks operands, tests
and moves each element, sorts what does not come in order, and appends it to the levels of the result. `ShapedMove` adds
what shapes say, so that a tensor that was never met needs a look-up and a launch. More data goes in stages, which use
all threads and allocate what they have counted: `conversion.remap`, `conversion.convert`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from .. import tuning
from ..classes import frozen
from ..codegen import cache
from ..codegen.executable import Executable
from ..codegen.plan_cache import PlanCache
from ..compiler.conversion.append import append_whole, holds_whole
from ..compiler.conversion.level_runs import Kind, is_unique, runs
from ..compiler.conversion.order import follows
from ..compiler.conversion.stream import Ordered, Remapped
from ..compiler.operand import Operand
from ..compiler.remap import Remap
from ..format.expression import Dim
from ..format.format import Format
from ..storage.buffers import PLAIN_TENSORS, numpy_dtype
from ..storage.recorded import is_plain
from ..storage.storage import LARGEST, Storage
from ..storage.structure import Structure
from . import trace
from .conversion.conversion_kernels import buffer_names
from .conversion.remap import IndexMap, index_scalar, order_of
from .gradient_hook import tracked
from .launch import OneLaunch
from .operand_type import operand_of
from .program import memory_of
from .promote import HALF

__all__ = ["LITTLE", "Moved", "identity", "is_untracked", "key_of", "moved", "tested"]

LITTLE, LISTED = tuning.MOVES_LITTLE, tuning.MOVES_LISTED
DIGIT = tuning.MOVES_DIGIT


class Moved(NamedTuple):
    """What a statement says beside its operands: the map of each one's coordinates, and what comes out."""

    index_maps: Sequence[IndexMap]
    shape: tuple[int, ...]
    format: Format


@lru_cache
def identity(ndim: int) -> IndexMap:
    """The map that leaves coordinates as they are: of a conversion. It is shared, and not to be added to."""
    return _identity(ndim)


def tested(ndim: int, text: str) -> IndexMap:
    """The map that leaves coordinates as they are, of elements of which `text` holds."""
    index_map = _identity(ndim)
    index_map.test(text)
    return index_map


def _identity(ndim: int) -> IndexMap:
    index_map = IndexMap(natural=True)
    for d in range(ndim):
        index_map.keep(d)
    return index_map


def moved(
    storages: Sequence[Storage], statement: Hashable, make: Callable[[], Moved | None], arrays: Sequence[Any] = ()
) -> Storage | None:  # fmt: skip
    """The elements of storages of one scalar type and fill value, moved by one launch; None where that is not the way.

    statement : what is asked for, with all that `make` follows from beside the operands' types and shapes
    make : gives the maps and the result's shape and format; None where there are none
    arrays : those that the maps read; those of `make` without

    It is not the way for much data, operands that torch records or that are iso, formats with slots, bitmaps or blocks,
    dense ones unless the map tests their elements,
    and under `explain`, which tells of stages.
    """
    if trace.steps:
        return None
    key: list[Hashable] = [statement]
    for s in storages:
        values = s.values
        if values.shape[0] > LITTLE or (type(values) is not np.ndarray and not is_untracked(values)):
            return None
        signature = s._signature or s.signature
        if signature < 0:  # iso
            return None
        key += (signature, s.shape)
    found = _shaped.get(tuple(key))
    if found is None:
        found = _shaped.keep(tuple(key), _shape(storages, make()))
    return found.run(storages, arrays) if isinstance(found, ShapedMove) else None


def is_untracked(values: Any) -> bool:
    """Whether a torch tensor is plain memory of this machine, of which torch records nothing."""
    return type(values) in PLAIN_TENSORS and values.is_cpu and is_plain(values) and not tracked((values,))


_shaped: PlanCache[Any, ShapedMove | bool] = PlanCache("moves for shapes", 1 << 12)
_plans: PlanCache[Any, Move | Literal[False]] = PlanCache("moves")


@frozen(eq=False)
class Move:
    """A compiled move, by types alone.

    launch : of the kernel, with no words but the memory that each call gives
    index : the width of the result's indices
    sorted_by : the first levels, by whose coordinates elements are sorted; the walk keeps the order of the others
    distinct : whether no two elements have the same coordinates
    runs : the levels of each run of the result's, and whether it is a chain
    buffers : operand, whether it is pos, and level of each index buffer that the kernel takes
    """

    launch: OneLaunch
    index: np.dtype[Any]
    sorted_by: int
    distinct: bool
    runs: tuple[tuple[tuple[int, ...], bool], ...]
    buffers: tuple[tuple[int, bool, int], ...]


def _shape(storages: Sequence[Storage], statement: Moved | None) -> ShapedMove | bool:
    """The move for operands of these types and shapes; False where one launch is not the way."""
    if statement is None:
        return False
    index_maps, shape, target = statement
    for s in storages:
        if 0 in s.shape:
            return False
    if 0 in shape or max((0, *shape)) > LARGEST:
        return False
    spans = target.level_intervals(shape)
    widest = max([0, *[hi if hi > -lo else -lo for lo, hi in spans]])
    index = index_scalar(storages, (*shape, widest), LITTLE)
    kinds = [(s._signature or s.signature, p.kind, p.most is None) for s, p in zip(storages, index_maps, strict=True)]
    key = (target.number, index, *kinds)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.keep(key, _plan(storages, statement, index))
    if plan is False or sum(_bits(spans[: plan.sorted_by])) > KEY_BITS:
        return False
    return ShapedMove(plan, storages, statement, spans)


def _plan(storages: Sequence[Storage], statement: Moved, index: str) -> Move | Literal[False]:
    """The plan for operands of these types; False where one launch is not the way."""
    index_maps, _, target = statement
    first = storages[0]
    if not holds_whole(target) or any(s.format.batch_ndim or s.device != "cpu" for s in storages):
        return False
    if any(
        p.most is None or (s.format.is_dense and not p.reads_values) for s, p in zip(storages, index_maps, strict=True)
    ):
        return False
    if first.library == "torch" and first.scalar == "bf16":
        return False
    injective = all(p.injective for p in index_maps)
    distinct = injective and all(is_unique(s.format) for s in storages)
    adds = target.is_unique and not distinct
    if adds and (not injective or len(storages) > 1 or first.scalar in _NOT_ADDED):
        return False
    sorted_by = _sorted_levels(storages, index_maps, target)
    executable = _executable(storages, index_maps, target, index, sorted_by, adds)
    parts = tuple([(tuple(run.levels), run.kind is Kind.CHAIN) for run in runs(target)])
    buffers = [
        (k, part == "pos", level)
        for k, s in enumerate(storages)
        for level, pair in enumerate(zip(s.pos, s.crd, strict=True))
        for part, b in zip(("pos", "crd"), pair, strict=True)
        if b is not None
    ]
    names = [f"a{k}{name[1:]}" for k, s in enumerate(storages) for name in buffer_names(s)[:-1]]
    names += [f"a{k}_vals" for k in range(len(storages))]
    names += [f"a{k}_{name}" for k, p in enumerate(index_maps) for name, _ in p.buffers]
    chains = [levels for levels, is_chain in parts if is_chain]
    names += [f"b_pos{levels[0]}" for levels in chains]
    names += [*(f"b_crd{at}" for levels in chains for at in levels), "b_vals", "sizes", "room"]
    return Move(OneLaunch(executable, {}, names), numpy_dtype(index), sorted_by, distinct, parts, tuple(buffers))


_NOT_ADDED = ("bool", *HALF)
"""Types whose duplicates are not added one by one as they are."""


KEY_BITS = 62


def _bits(spans: Sequence[tuple[int, int]]) -> list[int]:
    return [max(hi - lo - 1, 0).bit_length() for lo, hi in spans]


def _sorted_levels(storages: Sequence[Storage], index_maps: Sequence[IndexMap], target: Format) -> int:
    """The number of levels to sort by: none where the walk is in the target's order."""
    needed = [level.expression for level in target.levels]
    if len(storages) > 1:
        return len(needed)
    order = [Dim(r) for r in order_of(storages[0].format, index_maps[0])]
    return next(k for k in range(len(needed) + 1) if follows(order, needed[k:], needed[:k]))


def _executable(
    storages: Sequence[Storage], index_maps: Sequence[IndexMap], target: Format, index: str, sorted_by: int, adds: bool
) -> Executable:  # fmt: skip
    """The kernel, from disk or new. adds : whether elements of equal coordinates are added"""
    sources = [operand_of(s) for s in storages]
    maps = [p.remap for p in index_maps]
    about = " | ".join(
        f"{a.format.identity} {a.pos} {a.crd} {a.ragged} {a.scalar} {m} {m.buffers}"  # type: ignore[union-attr]
        for a, m in zip(sources, maps, strict=True)
    )
    text = f"move {about} | {target.identity} {index} {target.is_unique} {sorted_by} {adds}"
    return cache.get(text, lambda: _kernel(sources, maps, target, index, sorted_by, adds))


def key_of(key: Any) -> Hashable:
    """A selection as a part of a statement, which tells True from 1; None where it is by long arrays, or by others."""
    kind = type(key)
    if kind is int or key is Ellipsis:
        return key  # type: ignore[no-any-return]
    if kind is slice:
        ends = (key.start, key.stop, key.step)
        for e in ends:
            if e is not None and type(e) is not int:
                return None
        return "slice", ends
    if kind is tuple:
        parts = []
        for k in key:
            part = key_of(k)
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)
    if kind is list and len(key) <= LISTED and all(type(k) is int for k in key):
        return ("list", *key)
    if kind is np.ndarray and key.size <= LISTED and key.dtype.kind in "iu":
        return "array", key.dtype, key.shape, key.tobytes()
    return "new" if key is None else None


def _shrunk(buffer: Any, used: int) -> Any:
    """The first elements of a buffer: a view where little memory is unused, else a copy."""
    room = buffer.shape[0]
    if used == room:
        return buffer
    return buffer[:used] if 2 * used >= room else buffer[:used].copy()


def _kernel(
    sources: Sequence[Operand], maps: Sequence[Remap], target: Format, index: str, sorted_by: int, adds: bool
) -> Any:  # fmt: skip
    stream = Remapped(tuple(zip(sources, maps, strict=True)))
    formats = [level.format for level in target.levels]
    pos = tuple(index if "pos" in f.buffers else None for f in formats)
    crd = tuple(index if "crd" in f.buffers else None for f in formats)
    operand = Operand(sources[0].scalar, target.ndim, target, pos, crd)
    ordered = Ordered(stream, sorted_by) if sorted_by else stream
    keep = not target.is_unique
    return append_whole("move", ordered, operand, unique=not keep and not adds, keep=keep)


def _words(
    plan: Move, storages: Sequence[Storage], statement: Moved, spans: Sequence[tuple[int, int]]
) -> dict[str, int]:
    """The kernel's parameters that follow from shapes and from the numbers of the maps."""
    words: dict[str, int] = {f"n{d}": n for d, n in enumerate(statement.shape)}
    for k, (s, p) in enumerate(zip(storages, statement.index_maps, strict=True)):
        for d, n in enumerate(s.shape):
            words[f"a{k}_m{d}"] = n
        for name in p.scalars:
            words[f"a{k}_{name}"] = p.words[name]
    if plan.sorted_by:
        bits = _bits(spans[: plan.sorted_by])
        words["bits"] = total = sum(bits)
        words["digit"] = max(-(-total // max(-(-total // DIGIT), 1)), 1)
        for level in range(plan.sorted_by):
            words[f"shift{level}"] = sum(bits[level + 1 :])
    return words


class ShapedMove:
    """A move for operands of known types and shapes: the launch, complete but for addresses and sizes."""

    __slots__ = (
        "_buffers", "_fields", "_fixed", "_format", "_largest", "_launch", "_layout", "_most", "_nlevels", "_pos",
        "_scalar", "_shape", "_sizes", "_torch",
    )  # fmt: skip

    def __init__(
        self, plan: Move, storages: Sequence[Storage], statement: Moved, spans: Sequence[tuple[int, int]]
    ) -> None:
        index_maps, shape, self._format = statement
        first, index = storages[0], plan.index
        self._shape = shape
        self._largest = largest = math.prod(shape) if plan.distinct else LITTLE
        self._scalar = first.scalar
        self._most = [p.most or 1 for p in index_maps]
        self._fixed = [array for p in index_maps for array in p.arrays]
        self._sizes, self._nlevels = len(plan.runs), len(spans)
        self._layout: list[tuple[int, tuple[int, ...], bool]] = []
        """of each chain: its run, its levels, whether it is below located levels or the first"""
        self._pos: list[tuple[int, Any]] = []
        """of each chain the greatest number of parents, and the dtype"""
        self._fields: list[tuple[int, Any]] = []
        """of crd of each chain's levels, and of the values, the greatest length and the dtype"""
        parents = 1
        for number, (levels, is_chain) in enumerate(plan.runs):
            if is_chain:
                self._pos.append((parents, index))
                self._layout.append((number, levels, len(self._pos) == 1))
            for at in levels:
                parents *= spans[at][1] - spans[at][0]
            if is_chain:
                self._fields += [(largest if number + 1 == self._sizes else parents, index)] * len(levels)
        values = first.values.dtype if type(first.values) is np.ndarray else numpy_dtype(first.scalar)
        self._fields.append((largest, values))
        self._buffers = plan.buffers
        self._torch = first.library == "torch"
        self._launch = plan.launch.with_words(_words(plan, storages, statement, spans))

    def run(self, storages: Sequence[Storage], arrays: Sequence[Any]) -> Storage | None:
        """The moved elements of storages of the types and shapes; None where they are many."""
        memory: list[Any] = []
        room = 0
        for k, is_pos, level in self._buffers:
            s = storages[k]
            memory.append((s.pos if is_pos else s.crd)[level])
        for s, most in zip(storages, self._most, strict=True):
            memory.append(s.values)
            room += s.values.shape[0] * most
        if room > LITTLE:
            return None
        room = min(room, self._largest)
        memory += arrays or self._fixed
        if self._torch:
            memory = memory_of(memory)
        parts: list[Any] = []
        for count, dtype in self._pos:
            parts.append(np.zeros(1 + (min(room, count) if parts else count), dtype))
        for count, dtype in self._fields:
            parts.append(np.empty(min(room, count), dtype))
        sizes = np.zeros(self._sizes, np.int64)
        memory += parts
        memory.append(sizes)
        memory.append(room)
        self._launch(memory)
        return self._result(storages[0], parts, sizes.tolist())

    def _result(self, s: Storage, parts: list[Any], sizes: list[int]) -> Storage:
        """The storage of what the launch has filled."""
        format = self._format
        pos: list[Any] = [None] * self._nlevels
        crd: list[Any] = [None] * self._nlevels
        at = len(self._layout)
        parents = 0
        for k, (number, levels, is_known) in enumerate(self._layout):
            edges, used = parts[k], sizes[number]
            pos[levels[0]] = edges if is_known else _shrunk(edges, parents + 1)
            for level in levels:
                crd[level] = _shrunk(parts[at], used)
                at += 1
            parents = used
        values = _shrunk(parts[-1], parents)
        if self._torch:
            from_numpy = sys.modules["torch"].from_numpy
            pos = [None if b is None else from_numpy(b) for b in pos]
            crd = [None if b is None else from_numpy(b) for b in crd]
            values = from_numpy(values)
        structure = Structure(self._shape, format, tuple(pos), tuple(crd))
        if self._torch:
            structure.watch  # noqa: B018  begins now
        return Storage.over(structure, self._scalar, s.fill_value, values)

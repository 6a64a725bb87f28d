"""Storages and maps of their coordinates -> a storage of the remapped elements in coordinate format."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...classes import define
from ...compiler.conversion.level_runs import is_unique
from ...compiler.conversion.order import traversal
from ...compiler.operand import reading_one
from ...compiler.remap import Remap, remap_kernel
from ...errors import UnsupportedError
from ...format import build
from ...format.cached import cached
from ...format.expression import Dim
from ...format.format import Format, Level
from ...storage.buffers import (
    Array,
    address,
    as_array,
    copied,
    empty,
    length,
    numpy_dtype,
    scalar_by_dtype,
    scalar_of,
)
from ...storage.specified import may_pad
from ...storage.storage import Storage
from .. import trace
from ..operand_type import operand_of
from .conversion_kernels import Words, buffer_names, call, slice_lengths
from .iso import marks_of, shared_value

__all__ = ["IndexMap", "coordinates_format", "remap", "source_words"]

ROOM = 1 << 26
"""The largest number of elements that is allocated without counting: untouched pages take no memory."""
NAMES = tuple(f"d{r}" for r in range(64))


@define
class IndexMap:
    """A map of coordinates under construction, with the values of its parameters and what is known of its order.

    rises : source dimension -> result dimension that increases strictly with it
    rises_last : the same, where one coordinate may give several increasing ones
    fixed : source dimensions restricted to one coordinate
    free : result dimensions that have one coordinate
    loops : result dimensions that are looped over, outermost first
    copies : the number of elements that each stored one gives, None where that depends on the element
    most : an upper bound of it, None where none is known
    natural : elements in row-major order stay in row-major order
    """

    steps: list[str] = field(default_factory=list)
    coordinates: list[str] = field(default_factory=list)
    rises: dict[int, int] = field(default_factory=dict)
    rises_last: dict[int, int] = field(default_factory=dict)
    fixed: set[int] = field(default_factory=set)
    free: list[int] = field(default_factory=list)
    loops: list[int] = field(default_factory=list)
    copies: int | None = 1
    most: int | None = 1
    natural: bool = False
    injective: bool = True
    words: Words = field(default_factory=dict)
    arrays: list[Array] = field(default_factory=list)
    buffers: list[tuple[str, str]] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    _kind: Hashable = field(default=None, init=False, repr=False, compare=False)

    def number(self, value: int) -> str:
        """The name of an integer parameter."""
        name = f"k{len(self.scalars)}"
        self.scalars.append(name)
        self.words[name] = int(value)
        return name

    def array(self, values: Array) -> str:
        """The name of a buffer parameter."""
        name = f"v{len(self.buffers)}"
        self.buffers.append((name, scalar_of(values)))
        self.arrays.append(values)
        self.words[name] = address(values)
        return name

    def bind(self, text: str, stem: str = "t") -> str:
        """The name of a bound value."""
        name = f"{stem}{len(self.steps)}"
        self.steps.append(f"{name} = {text}")
        return name

    def test(self, text: str) -> None:
        """Keep only elements of which `text` holds."""
        self.steps.append(f"if {text}:")
        self.copies = None

    def loop(self, first: str, last: str) -> str:
        """The name of a loop's variable."""
        name = f"s{len(self.steps)}"
        self.steps.append(f"for {name} in range({first}, {last}):")
        return name

    def keep(self, dim: int) -> None:
        """The next result dimension is source dimension `dim`, unchanged."""
        self.rises[dim] = len(self.coordinates)
        self.coordinates.append(f"x{dim}")

    @property
    def kind(self) -> Hashable:
        """All but the values of parameters, of a map that is whole: what a kernel and the order of its elements follow
        from."""
        if self._kind is None:
            self._kind = (
                self.remap, tuple(self.rises.items()), tuple(self.rises_last.items()), frozenset(self.fixed),
                tuple(self.free), tuple(self.loops), self.natural, self.injective,
            )  # fmt: skip
        return self._kind

    @property
    def reads_values(self) -> bool:
        """Whether a step reads the element's value."""
        return any("a_vals" in step for step in self.steps)

    @property
    def remap(self) -> Remap:
        return Remap(tuple(self.steps), tuple(self.coordinates), tuple(self.scalars), tuple(self.buffers))


@lru_cache(maxsize=4096)
def coordinates_format(order: tuple[int, ...], ordered: bool, unique: bool) -> Format:
    """Coordinates whose level l holds dimension order[l]."""
    return Format(NAMES[: len(order)], build.coordinates(map(Dim, order), unique=unique, ordered=ordered))


def order_of(source: Format, index_map: IndexMap) -> list[int]:
    """The result dimensions in whose order remapped elements come, outermost first; not all where it is not known.

    Where one element gives several, a duplicate of it gives the same ones again: they are in no order.
    """
    is_source_unique = is_unique(source)
    rank = len(index_map.coordinates)
    order = list(index_map.free)
    walk_order = traversal(source)
    if index_map.natural and walk_order == tuple(Dim(d) for d in range(source.ndim)):
        return list(range(rank))
    for e in walk_order:
        if not isinstance(e, Dim):
            break
        if e.index in index_map.fixed:
            continue
        if e.index in index_map.rises:
            order.append(index_map.rises[e.index])
            continue
        if is_source_unique and e.index in index_map.rises_last:
            order.append(index_map.rises_last[e.index])
        break
    loops = index_map.loops if is_source_unique else []
    return [*order, *loops] if len(order) + len(loops) == rank else order


def source_words(storage: Storage) -> Words:
    """The arguments that describe the walked tensor `a`: addresses, extents, strides of batches."""
    names = buffer_names(storage)
    arguments = dict(zip(names, storage.addresses, strict=True))
    for d, n in enumerate(storage.shape):
        arguments[f"m{d}"] = n
    return arguments | slice_lengths(storage, names) if storage.format.batch_ndim else arguments


def on_host(storage: Storage, operation: str) -> None:
    """Raises UnsupportedError for buffers that kernels of the CPU cannot reach."""
    if storage.device != "cpu":
        raise UnsupportedError(
            f"{operation} of a tensor on {storage.device}\n  help: move it with .to('cpu') first; this runs on the CPU"
        )


def index_scalar(storages: Iterable[Storage], shape: Sequence[int], count: int) -> str:
    """The width of a result's indices: that of the operands', or i64 where coordinates or positions need it."""
    if max([*shape, count]) >= 2**31:
        return "i64"
    for s in storages:
        scalars = [scalar_by_dtype[b.dtype] for b in (*s.pos, *s.crd) if b is not None]
        if "i64" in scalars or (scalars.count("bool") == len(scalars) and s.library == "torch"):
            return "i64"
    return "i32"


def has_gaps(storage: Storage) -> bool:
    """Whether some of the values may belong to no specified element; it follows from format and shape."""
    return storage.format.has_bitmap or may_pad(storage.format, storage.shape)


def remap(parts: Sequence[tuple[Storage, IndexMap]], shape: tuple[int, ...], operation: str) -> Storage:
    """The elements of all parts, remapped, as coordinates of rank `len(shape)`, 1 or more.

    The parts have one scalar type and one fill value. Elements of different parts must not meet, or are summed.
    """
    first = parts[0][0]
    for storage, _ in parts:
        on_host(storage, operation)
    one = shared_value([s for s, _ in parts])
    if one is not None:
        moved = remap([(marks_of(s), p) for s, p in parts], shape, operation)
        return moved.with_one_value(one, first.fill_value)
    sizes = np.zeros(1, np.int64)
    bound = sum(length(s.values) * (1 if p.copies is None else p.copies) for s, p in parts)
    bound_index = index_scalar([s for s, _ in parts], shape, bound)
    empty_result = 0 in shape
    counts = [0 if empty_result else _count(s, p, sizes, bound_index) for s, p in parts]
    capacity = sum(counts)
    index = index_scalar([s for s, _ in parts], shape, capacity) if bound_index == "i64" else bound_index
    crd = [empty(capacity, index, first.like) for _ in shape]
    values = empty(capacity, first.scalar, first.like)
    total = 0
    for (storage, index_map), count in zip(parts, counts, strict=True):
        if count:
            arguments = {"begin": total, "filling": 1, "b_vals": address(values)}
            arguments |= {f"crd{r}": address(buffer) for r, buffer in enumerate(crd)}
            _run(storage, index_map, arguments, sizes, index)
            total = int(sizes[0])
    if total < capacity:
        crd, values = [_shrunk(b, total) for b in crd], _shrunk(values, total)
    order = order_of(first.format, parts[0][1]) if len(parts) == 1 else []
    is_ordered = len(order) == len(shape)
    order = order if is_ordered else list(range(len(shape)))
    unique = all(p.injective and is_unique(s.format) for s, p in parts)
    format = coordinates_format(tuple(order), is_ordered, unique)
    pos = as_array(np.array([0, total], numpy_dtype(index)), like=first.like)
    none: tuple[Array | None, ...] = (None,) * (len(shape) - 1)
    level_crd = tuple(crd[r] for r in order)
    result = Storage(shape, format, first.scalar, first.fill_value, (pos, *none), level_crd, values)
    if trace.active():
        trace.moved(operation, (s for s, _ in parts), result)
    return result


def _shrunk(buffer: Array, total: int) -> Array:
    """The first `total` elements: a view where little memory is unused, else a copy."""
    part = buffer[:total]
    return part if 2 * total >= length(buffer) else copied(part)


def _count(storage: Storage, index_map: IndexMap, sizes: Any, index: str) -> int:
    """The number of elements that a part gives, or a bound of it that costs no walk and little memory."""
    stored = length(storage.values)
    if not stored or 0 in storage.shape:
        return 0
    if index_map.copies is not None and not may_pad(storage.format, storage.shape):
        return stored * index_map.copies
    if index_map.most is not None and stored * index_map.most <= ROOM:
        return stored * index_map.most
    arguments = {"begin": 0, "filling": 0, "b_vals": 0}
    _run(storage, index_map, arguments | {f"crd{r}": 0 for r in range(len(index_map.coordinates))}, sizes, index)
    return int(sizes[0])


def _run(storage: Storage, index_map: IndexMap, arguments: Words, sizes: Any, index: str) -> None:
    source = operand_of(storage)
    remap = index_map.remap
    assert source.format is not None
    about = f"{source.format.identity} {source.pos} {source.crd} {source.ragged} {source.scalar} {index}"
    key = f"remap {about} | {remap} | {remap.buffers}{' | iso' * source.iso}"
    call(
        key,
        lambda: reading_one(remap_kernel(source, remap, index), {"a": source}),
        source_words(storage) | index_map.words | arguments | _at(sizes),
    )


def _at(sizes: Any) -> Words:
    return {"sizes": address(sizes)}


@cached(4096)
def canonical(format: Format) -> Format:
    """The format with every level ordered and its last sparse one unique, so that no element is stored twice."""
    levels = list(format.levels)
    stored = [at for at, level in enumerate(levels) if "nonunique" in level.format.may_be]
    for at in stored:
        level = levels[at]
        below = at + 1 < len(levels) and levels[at + 1].format.is_singleton
        levels[at] = Level(level.expression, replace(level.format, ordered=True, unique=not below))
    return Format(format.dims, tuple(levels))

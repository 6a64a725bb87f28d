"""Run remaps: from stored elements to coordinates, and from these to the format of the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...compiler.conversion.order import traversal
from ...compiler.conversion.target import is_unique
from ...compiler.remap import Remap, remap_kernel
from ...errors import UnsupportedError
from ...format import build
from ...format.cached import cached
from ...format.expression import Dim
from ...format.format import Format, Level
from ...storage.buffers import Array, address, as_array, copied, empty, length, numpy_dtype, scalar_of
from ...storage.storage import Storage
from .. import trace
from ..single_operand import operand_of
from .conversion_kernels import Words, call

__all__ = ["Program", "coordinates_format", "remap", "source_words"]

ROOM = 1 << 26
"""Elements for which room is made without counting: what is not written takes no memory."""
NAMES = tuple(f"d{r}" for r in range(64))


@dataclass(slots=True)
class Program:
    """A remap while it is being written, with the values of its parameters and what is known of its order.

    rises : source dimension -> result dimension that grows strictly with it
    rises_last : the same, where one coordinate may give several growing ones
    fixed : source dimensions of which one coordinate is left
    free : result dimensions that have one coordinate
    loops : result dimensions that are looped over, outermost first
    copies : how many elements each stored one gives, None where that depends on the element
    most : the most that it gives, None where that is not known
    natural : elements that come row-major leave row-major
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
        """The name of a value of its own."""
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
        """The next result dimension is source dimension `dim`, as it is."""
        self.rises[dim] = len(self.coordinates)
        self.coordinates.append(f"x{dim}")

    @property
    def remap(self) -> Remap:
        return Remap(tuple(self.steps), tuple(self.coordinates), tuple(self.scalars), tuple(self.buffers))


@lru_cache(maxsize=4096)
def coordinates_format(order: tuple[int, ...], ordered: bool, unique: bool) -> Format:
    """Coordinates whose level l holds dimension order[l]."""
    return Format(NAMES[: len(order)], build.coordinates(map(Dim, order), unique=unique, ordered=ordered))


def order_of(source: Format, program: Program) -> list[int]:
    """The result dimensions in whose order elements leave, outermost first; fewer than all where it is not known.

    Where one element gives several, another one at its place gives the same again: they are in no order.
    """
    alone = is_unique(source)
    rank = len(program.coordinates)
    found = list(program.free)
    walked = traversal(source)
    if program.natural and walked == tuple(Dim(d) for d in range(source.ndim)):
        return list(range(rank))
    for e in walked:
        if not isinstance(e, Dim):
            break
        if e.index in program.fixed:
            continue
        if e.index in program.rises:
            found.append(program.rises[e.index])
            continue
        if alone and e.index in program.rises_last:
            found.append(program.rises_last[e.index])
        break
    loops = program.loops if alone else []
    return [*found, *loops] if len(found) + len(loops) == rank else found


def source_words(storage: Storage) -> Words:
    """The parameters that say where the walked tensor `a` is."""
    names = [
        f"a_{part}{at}"
        for at in range(len(storage.pos))
        for part, group in (("pos", storage.pos), ("crd", storage.crd))
        if group[at] is not None
    ]
    names.append("a_vals")
    words = dict(zip(names, storage.addresses, strict=True))
    for d, n in enumerate(storage.shape):
        words[f"m{d}"] = n
    if storage.format.batch_ndim:
        slices = storage.batches
        for name, buffer in zip(names, storage.buffers, strict=True):
            words[f"{name}_slice"] = length(buffer) // slices if slices else 0
    return words


def on_host(storage: Storage, operation: str) -> None:
    """Raises UnsupportedError for buffers that kernels of the CPU cannot reach."""
    if storage.device != "cpu":
        raise UnsupportedError(
            f"{operation} of a tensor on {storage.device}\n  help: move it with .to('cpu') first; this runs on the CPU"
        )


def index_scalar(storages: Iterable[Storage], shape: Sequence[int], count: int) -> str:
    """The width of a result's indices: that of the operands', or i64 where coordinates or positions need it."""
    widths = set()
    for s in storages:
        found = {scalar_of(b) for b in (*s.pos, *s.crd) if b is not None} - {"bool"}
        widths |= found or ({"i64"} if s.library == "torch" else set())
    return "i64" if "i64" in widths or max([*shape, count], default=0) >= 2**31 else "i32"


def is_padded(storage: Storage) -> bool:
    """Whether some of the values belong to no element."""
    format = storage.format
    return format.ragged(storage.shape) or any(level.format.functions.padded for level in format.levels)


def has_gaps(storage: Storage) -> bool:
    """Whether some of the values belong to no specified element."""
    facts = (storage._plans or storage.plans).facts
    found: bool | None = facts.get("gaps")
    if found is None:
        found = is_padded(storage) or any(level.format.is_bitmap for level in storage.format.levels)
        facts["gaps"] = found
    return found


def remap(parts: Sequence[tuple[Storage, Program]], shape: tuple[int, ...], operation: str) -> Storage:
    """The elements of all parts, remapped, as coordinates of rank `len(shape)`, 1 or more.

    The parts have one scalar type and one fill value. Elements of different parts must not meet, or are summed.
    """
    first = parts[0][0]
    for storage, _ in parts:
        on_host(storage, operation)
    sizes = np.zeros(1, np.int64)
    bound = sum(length(s.values) * (1 if p.copies is None else p.copies) for s, p in parts)
    guess = index_scalar([s for s, _ in parts], shape, bound)
    empty_result = 0 in shape
    counts = [0 if empty_result else _count(s, p, sizes, guess) for s, p in parts]
    room = sum(counts)
    index = index_scalar([s for s, _ in parts], shape, room) if guess == "i64" else guess
    crd = [empty(room, index, first.like) for _ in shape]
    values = empty(room, first.scalar, first.like)
    total = 0
    for (storage, program), count in zip(parts, counts, strict=True):
        if count:
            words = {"begin": total, "filling": 1, "b_vals": address(values)}
            words |= {f"crd{r}": address(buffer) for r, buffer in enumerate(crd)}
            _run(storage, program, words, sizes, index)
            total = int(sizes[0])
    if total < room:
        crd, values = [_shrunk(b, total) for b in crd], _shrunk(values, total)
    order = order_of(first.format, parts[0][1]) if len(parts) == 1 else []
    known = len(order) == len(shape)
    order = order if known else list(range(len(shape)))
    unique = all(p.injective and is_unique(s.format) for s, p in parts)
    format = coordinates_format(tuple(order), known, unique)
    pos = as_array(np.array([0, total], numpy_dtype(index)), like=first.like)
    none: tuple[Array | None, ...] = (None,) * (len(shape) - 1)
    leveled = tuple(crd[r] for r in order)
    found = Storage(shape, format, first.scalar, first.fill_value, (pos, *none), leveled, values)
    if trace.active():
        trace.moved(operation, (s for s, _ in parts), found)
    return found


def _shrunk(buffer: Array, total: int) -> Array:
    """The first `total` elements: a view where little room is left over."""
    part = buffer[:total]
    return part if 2 * total >= length(buffer) else copied(part)


def _count(storage: Storage, program: Program, sizes: Any, index: str) -> int:
    """How many elements a part gives, or a bound that costs no walk and not much room."""
    stored = length(storage.values)
    if not stored or 0 in storage.shape:
        return 0
    if program.copies is not None and not is_padded(storage):
        return stored * program.copies
    if program.most is not None and stored * program.most <= ROOM:
        return stored * program.most
    words = {"begin": 0, "filling": 0, "b_vals": 0}
    _run(storage, program, words | {f"crd{r}": 0 for r in range(len(program.coordinates))}, sizes, index)
    return int(sizes[0])


def _run(storage: Storage, program: Program, words: Words, sizes: Any, index: str) -> None:
    source = operand_of(storage)
    made = program.remap
    assert source.format is not None
    about = f"{source.format.canonical} {source.pos} {source.crd} {source.ragged} {source.scalar} {index}"
    key = f"remap {about} | {made} | {made.buffers}"
    call(key, lambda: remap_kernel(source, made, index), source_words(storage) | program.words | words | _at(sizes))


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

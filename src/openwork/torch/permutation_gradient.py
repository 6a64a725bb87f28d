"""Gradients of whatever only moves values: the operation is run on the places of the values, not on the values.

Conversion, indexing, reshape, transposes, concatenation and the like put each stored value somewhere, whatever it is.
So the values are replaced by their numbers from 1, the operation is run as it is, and what comes out says where each
value of the result is from. The values are then taken by torch, which knows the gradient of that, of any order.
An unspecified element has number 0 where the fill value is 0, and -1 - k where it is another one, of operand k: a 0
that the operation itself wrote stays apart from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..format.format import Format
from ..ops import result_format
from ..ops.axes import as_tensor
from ..ops.indexing import index as indexing
from ..ops.indexing import taking
from ..ops.manipulation import blocks, joining
from ..runtime.conversion.convert import convert as convert_storage
from ..runtime.conversion.remap import canonical
from ..runtime.promote import promote
from ..storage.buffers import as_array, bare, cast, dtype_of, length, outside
from ..storage.scalars import python_scalar
from ..storage.specified import coordinates
from ..storage.storage import Storage
from ..storage.structure import keep
from ..tensor.tensor import Tensor

__all__ = [
    "by_places",
    "convert",
    "gathered",
    "located",
    "numbered",
    "on_values",
    "plain",
    "present",
    "structure",
    "unique",
]


def plain(s: Storage) -> Storage:
    """The storage without a graph, which shares what was made ready for the structure."""
    return s if s.library == "numpy" else s.with_values(bare(s.values))


def structure(s: Storage) -> Storage:
    """A storage of this structure without a graph, where the values play no part: of a batch it has any."""
    return s if s.library == "numpy" else s.with_values(bare(s.values, any_of_batch=True))


def unique(s: Storage) -> Storage:
    """The storage with duplicates summed."""
    return s if s.format.is_unique else convert_storage(s, canonical(s.format))


@outside()
def numbered(s: Storage, first: int = 0, operand: int = 0) -> Storage:
    """The structure over the numbers of its values from `first` + 1."""
    count = length(s.values)
    device = "cpu" if s.library == "numpy" else s.values.device
    numbers = torch.arange(first + 1, first + count + 1, device=device)
    none = s.fill_value == 0 or s.format.is_dense
    return structure(s).mapped(lambda b: as_array(b, like=numbers)).with_values(numbers, 0 if none else -1 - operand)


@outside()
def located(s: Storage, mask: Storage, dims: Sequence[int | None] | None = None) -> torch.Tensor:
    """The number of the value of `s` at each stored place of `mask`, -1 where it stores none; see `found_at`."""
    if s.pos is mask.pos and s.crd is mask.crd and s.format == mask.format and dims in (None, _own(s)):
        return numbered(s).values
    at = numbered(s)
    at = at.with_values(at.values, -1)
    places: torch.Tensor = taking.values_at(Tensor._from_storage(at), structure(mask), dims)
    return places


def _own(s: Storage) -> tuple[int, ...]:
    return tuple(range(len(s.shape)))


def gathered(values: Any, numbers: torch.Tensor, fills: Sequence[Any] = ()) -> torch.Tensor:
    """The values of these numbers: 0 is zero, -1 - k is `fills[k]`."""
    given: torch.Tensor = as_array(values, like=numbers)
    stored = numbers > 0
    if bool(stored.all()):
        return given.index_select(0, numbers - 1)
    edge = given.new_zeros(1 + len(fills))
    for k, fill in enumerate(fills):
        edge[-1 - k] = fill
    every = torch.cat([edge[:1], given, edge[1:]])
    return every.index_select(0, torch.where(numbers < 0, numbers + len(every), numbers))


@outside()
def present(s: Storage) -> torch.Tensor | None:
    """Which values belong to elements; None where all do."""
    s = structure(s)
    count = length(s.values)
    if s.nse == count:
        return None
    result: torch.Tensor | None = s.plans.facts.get("present")
    if result is None:
        result = torch.zeros(count, dtype=torch.bool)
        result[torch.from_numpy(coordinates(s)[1])] = True
        keep(s.plans.facts, "present", result)
    return result


def on_values(s: Storage, function: Callable[[Any], Any]) -> Any:
    """The rule of a function of the stored values: padding takes no part, and stays what it is."""
    here = present(s)
    if here is None:
        return function(s.values)
    return function(s.values.masked_fill(~here, 1)).masked_fill(~here, 0)


def by_places(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """`function` of these tensors, which only moves their elements, with the graph of their values."""
    storages = [unique(t._storage) for t in tensors]
    parts, first = [], 0
    for k, s in enumerate(storages):
        parts.append(Tensor._from_storage(numbered(s, first, k)))
        first += length(s.values)
    with outside():
        moved = function(*parts)._storage
    fills = [s.fill_value for s in storages]
    like = next(s.values for s in storages if s.library == "torch")
    buffers = [as_array(s.values, like=like) for s in storages]
    scalar = storages[0].scalar
    values = gathered(
        buffers[0] if len(buffers) == 1 else torch.cat([cast(v, scalar) for v in buffers]), moved.values, fills
    )
    fill = fills[-1 - moved.fill_value] if moved.fill_value < 0 else 0
    return Tensor._from_storage(moved.with_values(values, python_scalar(fill, scalar)))


def convert(storage: Storage, format: Format, *, share: bool = False) -> Storage:
    """The rule of `runtime.conversion.convert.convert`: duplicates are summed, dense elements chosen by value."""
    s = storage
    if s.format.is_dense and not format.is_dense:
        made = _converted(plain(s), format)
        return made.with_values(gathered(s.values, located(s, made), [s.fill_value]))
    if not s.format.is_unique and format.is_unique:
        made = _converted(structure(s), format)
        at = located(made, s).clamp(min=0)
        start = made.values.new_zeros(1 + length(made.values))
        values = start.index_add(0, at, s.values)[1:]
        held = torch.zeros(len(start), dtype=torch.bool, device=at.device).index_fill(0, at, True)[1:]
        return made.with_values(torch.where(held, values, made.fill_value))
    made = _converted(numbered(s), format, share=share)
    return made.with_values(gathered(s.values, made.values, [s.fill_value]), s.fill_value)


_converted = outside()(convert_storage)


def remap_one(t: Tensor, *args: Any, **options: Any) -> Tensor:
    """The rule of `ops.result_format.remap_one`."""
    return by_places(lambda p: result_format.remap_one(p, *args, **options), t)


def index(t: Tensor, key: Any) -> Tensor:
    """The rule of `ops.indexing.index.index`."""
    return by_places(lambda p: indexing.index(p, key), t)


def index_selection(t: Tensor, selection: Any) -> Tensor:
    """The rule of `ops.indexing.index.index_selection`."""
    return by_places(lambda p: indexing.index_selection(p, selection), t)


def concat(tensors: list[Tensor], *args: Any) -> Tensor:
    """The rule of `ops.manipulation.joining.concat`, for operands whose shapes are known to agree."""
    scalar = promote(tuple(t._storage.scalar for t in tensors), "torch")
    same = [t.astype(dtype_of(scalar, t.values), copy=False) for t in tensors]
    return by_places(lambda *parts: joining._concat(list(parts), *args), *same)


def place_blocks(tensors: list[Tensor], *args: Any) -> Tensor:
    """The rule of `ops.manipulation.blocks`: blocks that do not overlap."""
    scalar = promote(tuple(t._storage.scalar for t in tensors), "torch")
    same = [t.astype(dtype_of(scalar, t.values), copy=False) for t in tensors]
    return by_places(lambda *parts: blocks._place_blocks(list(parts), *args), *same)


def prune(x: Any, threshold: Any = 0) -> Tensor:
    """The rule of `ops.indexing.taking.prune`: which elements stay is constant."""
    s = unique(as_tensor(x)._storage)
    with outside():
        made = taking.prune(Tensor._from_storage(plain(s)), threshold)._storage
    return Tensor._from_storage(made.with_values(gathered(s.values, located(s, made), [s.fill_value])))


def sparse_mask(x: Any, mask: Any) -> Tensor:
    """The rule of `ops.indexing.taking.sparse_mask`."""
    s = unique(as_tensor(x)._storage)
    m = structure(as_tensor(mask)._storage)
    with outside():
        made = taking.sparse_mask(Tensor._from_storage(numbered(s)), Tensor._from_storage(m))._storage
    values = gathered(s.values, made.values, [s.fill_value])
    return Tensor._from_storage(made.with_values(values, s.fill_value))

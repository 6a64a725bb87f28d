"""Gradient rules of operations that only move values: they are run on the values' numbers, which then gather values.

Conversion, indexing, reshape, transposes, concatenation and the like put each stored value somewhere, whatever it is.
So the values are replaced by their numbers from 1, the operation is run as it is, and what comes out says where each
value of the result is from. The values are then taken by torch, which knows the gradient of that, of any order.
An unspecified element has number 0 where the fill value is 0, and -1 - k where it is another one, of operand k: a 0
that the operation itself wrote stays apart from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from ...errors import UnsupportedError
from ...format.format import Format
from ...format.functions import Insert
from ...ops import result_format
from ...ops.axes import as_tensor
from ...ops.indexing import index as indexing
from ...ops.indexing import taking
from ...ops.manipulation import blocks, joining
from ...runtime.conversion.assembly import is_zero
from ...runtime.conversion.convert import convert as convert_storage
from ...runtime.conversion.remap import canonical
from ...runtime.promote import promote
from ...storage.buffers import as_array, cast, dtype_of, length
from ...storage.recorded import bare, outside
from ...storage.scalars import python_scalar
from ...storage.specified import coordinates
from ...storage.storage import Storage, structure_of
from ...storage.structure import keep
from ...tensor.tensor import Tensor

__all__ = [
    "apply_move",
    "convert",
    "detached_storage",
    "element_mask",
    "every_element_stored",
    "gather_by_numbers",
    "on_values",
    "value_numbers_at",
    "with_value_numbers",
    "without_duplicates",
]


def detached_storage(s: Storage) -> Storage:
    """The storage with values detached from the graph, which shares the structure's prepared calls."""
    return s if s.library == "numpy" else s.with_values(bare(s.values))


def without_duplicates(s: Storage) -> Storage:
    """The storage with duplicates summed."""
    return s if s.format.is_unique else convert_storage(s, canonical(s.format))


@outside()
def with_value_numbers(s: Storage, first: int = 0, operand: int = 0) -> Storage:
    """The structure with the numbers of its values, from `first` + 1, as values."""
    count = length(s.values)
    device = "cpu" if s.library == "numpy" else s.values.device
    numbers = torch.arange(first + 1, first + count + 1, device=device)
    zero_fill = is_zero(s.fill_value) or s.format.is_dense
    return (
        structure_of(s)
        .mapped(lambda b: as_array(b, like=numbers))
        .with_values(numbers, 0 if zero_fill else -1 - operand)
    )


@outside()
def value_numbers_at(s: Storage, mask: Storage, dims: Sequence[int | None] | None = None) -> torch.Tensor:
    """The number of the value of `s` at each stored element of `mask`, -1 where it stores none; see `values_at`."""
    if s.pos is mask.pos and s.crd is mask.crd and s.format == mask.format and dims in (None, _all_dims(s)):
        return with_value_numbers(s).values
    numbers_of = with_value_numbers(s)
    numbers_of = numbers_of.with_values(numbers_of.values, -1)
    numbers: torch.Tensor = taking.values_at(Tensor._from_storage(numbers_of), structure_of(mask), dims)
    return numbers


def _all_dims(s: Storage) -> tuple[int, ...]:
    return tuple(range(len(s.shape)))


def gather_by_numbers(values: Any, numbers: torch.Tensor, fills: Sequence[Any] = ()) -> torch.Tensor:
    """Gather values by number: k is `values[k - 1]`, 0 is zero, -1 - k is `fills[k]`."""
    stored_values: torch.Tensor = as_array(values, like=numbers)
    stored = numbers > 0
    if bool(stored.all()):
        return stored_values.index_select(0, numbers - 1)
    fill_values = stored_values.new_zeros(1 + len(fills))
    for k, fill in enumerate(fills):
        fill_values[-1 - k] = fill
    all_values = torch.cat([fill_values[:1], stored_values, fill_values[1:]])
    return all_values.index_select(0, torch.where(numbers < 0, numbers + len(all_values), numbers))


@outside()
def element_mask(s: Storage) -> torch.Tensor | None:
    """A mask of the values that are elements, not padding; None where all are."""
    s = structure_of(s)
    count = length(s.values)
    if s.nse == count:
        return None
    result: torch.Tensor | None = s.facts.get("present")
    if result is None:
        result = torch.zeros(count, dtype=torch.bool)
        result[torch.from_numpy(coordinates(s)[1])] = True
        keep(s.facts, "present", result)
    return result


def on_values(s: Storage, function: Callable[[Any], Any]) -> Any:
    """The rule of a function of the stored values: padding is left out, and is 0 in the result."""
    elements = element_mask(s)
    if elements is None:
        return function(s.values)
    return function(s.values.masked_fill(~elements, 1)).masked_fill(~elements, 0)


def _are_equal(fill: Any, other: Any) -> bool:
    return bool(fill == other or (fill != fill and other != other))


def apply_move(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """A `function` that only moves elements, of these tensors, recorded on the graph of their values."""
    storages = [without_duplicates(t._storage) for t in tensors]
    fills = [s.fill_value for s in storages]
    parts, offset = [], 0
    for s in storages:
        first = next(k for k, fill in enumerate(fills) if _are_equal(fill, s.fill_value))
        parts.append(Tensor._from_storage(with_value_numbers(s.with_values(s.values, fills[first]), offset, first)))
        offset += length(s.values)
    with outside():
        try:
            moved_storage = function(*parts)._storage
        except UnsupportedError:
            function(*[Tensor._from_storage(structure_of(s)) for s in storages])  # says it of their own fill values
            raise
    like = next(s.values for s in storages if s.library == "torch")
    buffers = [as_array(s.values, like=like) for s in storages]
    scalar = storages[0].scalar
    values = gather_by_numbers(
        buffers[0] if len(buffers) == 1 else torch.cat([cast(v, scalar) for v in buffers]), moved_storage.values, fills
    )
    fill = fills[-1 - moved_storage.fill_value] if moved_storage.fill_value < 0 else 0
    return Tensor._from_storage(moved_storage.with_values(values, python_scalar(fill, scalar)))


_every_element_stored: ContextVar[bool] = ContextVar("every_element_stored", default=False)


@contextmanager
def every_element_stored() -> Iterator[None]:
    """A context in which conversions of recorded dense tensors store all elements, so that all have gradients."""
    token = _every_element_stored.set(True)
    try:
        yield
    finally:
        _every_element_stored.reset(token)


def _holds_all(format: Format) -> bool:
    """Whether a format stores as many elements of a fibre as there are."""
    return not any(level.format.functions.insert is Insert.SLOT for level in format.levels)


def convert(storage: Storage, format: Format, *, share: bool = False) -> Storage:
    """The rule of `runtime.conversion.convert.convert`: duplicates are summed, dense elements chosen by value.

    Within `every_element_stored` all of them are.
    """
    s = storage
    if s.format.is_dense and not format.is_dense:
        chosen = with_value_numbers(s) if _every_element_stored.get() and _holds_all(format) else detached_storage(s)
        converted = _convert_storage(chosen, format)
        return converted.with_values(gather_by_numbers(s.values, value_numbers_at(s, converted), [s.fill_value]))
    if not s.format.is_unique and format.is_unique:
        converted = _convert_storage(structure_of(s), format)
        positions = value_numbers_at(converted, s).clamp(min=0)
        sums = converted.values.new_zeros(1 + length(converted.values))
        values = sums.index_add(0, positions, s.values)[1:]
        is_stored = torch.zeros(len(sums), dtype=torch.bool, device=positions.device).index_fill(0, positions, True)[1:]
        return converted.with_values(torch.where(is_stored, values, converted.fill_value))
    converted = _convert_storage(with_value_numbers(s), format, share=share)
    return converted.with_values(gather_by_numbers(s.values, converted.values, [s.fill_value]), s.fill_value)


_convert_storage = outside()(convert_storage)


def remap_one(t: Tensor, *args: Any, **options: Any) -> Tensor:
    """The rule of `ops.result_format.remap_one`."""
    return apply_move(lambda p: result_format.remap_one(p, *args, **options), t)


def index(t: Tensor, key: Any) -> Tensor:
    """The rule of `ops.indexing.index.index`."""
    return apply_move(lambda p: indexing.index(p, key), t)


def index_selection(t: Tensor, selection: Any) -> Tensor:
    """The rule of `ops.indexing.index.index_selection`."""
    return apply_move(lambda p: indexing.index_selection(p, selection), t)


def concat(tensors: list[Tensor], *args: Any) -> Tensor:
    """The rule of `ops.manipulation.joining.concat`, for operands whose shapes are known to agree."""
    scalar = promote(tuple(t._storage.scalar for t in tensors), "torch")
    promoted = [t.astype(dtype_of(scalar, t.values), copy=False) for t in tensors]
    return apply_move(lambda *parts: joining._concat(list(parts), *args), *promoted)


def place_blocks(tensors: list[Tensor], *args: Any) -> Tensor:
    """The rule of `ops.manipulation.blocks`: blocks that do not overlap."""
    scalar = promote(tuple(t._storage.scalar for t in tensors), "torch")
    promoted = [t.astype(dtype_of(scalar, t.values), copy=False) for t in tensors]
    return apply_move(lambda *parts: blocks._place_blocks(list(parts), *args), *promoted)


def prune(x: Any, threshold: Any = 0) -> Tensor:
    """The rule of `ops.indexing.taking.prune`: which elements stay is constant."""
    s = without_duplicates(as_tensor(x)._storage)
    with outside():
        pruned = taking.prune(Tensor._from_storage(detached_storage(s)), threshold)._storage
    return Tensor._from_storage(
        pruned.with_values(gather_by_numbers(s.values, value_numbers_at(s, pruned), [s.fill_value]))
    )


def sparse_mask(x: Any, mask: Any) -> Tensor:
    """The rule of `ops.indexing.taking.sparse_mask`."""
    s = without_duplicates(as_tensor(x)._storage)
    m = structure_of(as_tensor(mask)._storage)
    with outside():
        masked = taking.sparse_mask(Tensor._from_storage(with_value_numbers(s)), Tensor._from_storage(m))._storage
    values = gather_by_numbers(s.values, masked.values, [s.fill_value])
    return Tensor._from_storage(masked.with_values(values, s.fill_value))

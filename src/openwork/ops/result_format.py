"""Chooses a result's format: the operand's where it suits the shape and nse, else one of a named family, else COO."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .. import tuning
from ..compiler.conversion.level_runs import unbatched
from ..errors import FormatError, ShapeError
from ..format import format as parse
from ..format.expression import Dim
from ..format.format import Format
from ..runtime.conversion.convert import convert
from ..runtime.conversion.remap import IndexMap, canonical, on_host, remap
from ..runtime.formats import promises_less, resolve_format
from ..runtime.gradient_hook import differentiable
from ..runtime.moves import Moved, moved
from ..storage.buffers import as_array, flat, scalar_of, to_numpy
from ..storage.storage import Storage
from ..tensor.tensor import Tensor

__all__ = [
    "ROOM",
    "candidates",
    "dense_array",
    "fits",
    "from_dense_array",
    "little_format",
    "named_family",
    "remap_one",
    "sum_at_origin",
    "to_result_format",
]

ROOM = tuning.RESULT_ROOM


def to_result_format(s: Storage, like: Format, format: Any = None) -> Tensor:
    """A storage -> a Tensor in `format`, or without one in that of `like` where it suits the shape and nse; canonical.

    Guarantees: no element twice, coordinates in order.
    """
    if format is not None:
        return Tensor._from_storage(_to_format(s, resolve_format(format, len(s.shape), like)))
    for target in candidates(like, s.shape, s.positions[-1] if s.positions else 1):
        try:
            return Tensor._from_storage(_to_format(s, target))
        except (FormatError, ShapeError):
            continue
    return Tensor._from_storage(_to_format(s, parse("coo", len(s.shape))))


def _to_format(s: Storage, target: Format) -> Storage:
    if s.format == target or promises_less(target, s.format):
        return s.with_format(target)
    return convert(s, target)


def little_format(like: Format, shape: tuple[int, ...], format: Any = None) -> Format | None:
    """The format that `to_result_format` gives, where it is one whatever the number of elements; else None."""
    if format is not None:
        return resolve_format(format, len(shape), like)
    target = canonical(like) if like.ndim == len(shape) else named_family(like, len(shape))
    return target if fits(target, shape, 0) else None


def candidates(like: Format, shape: tuple[int, ...], nse: int) -> Iterator[Format]:
    if like.ndim == len(shape):
        for candidate in dict.fromkeys((canonical(like), canonical(unbatched(like)))):
            if fits(candidate, shape, nse):
                yield candidate
    relative = named_family(like, len(shape))
    if fits(relative, shape, nse):
        yield relative


@lru_cache(maxsize=256)
def named_family(like: Format, ndim: int) -> Format:
    """The named format of another rank that is most like this one."""
    kinds = [level.format for level in like.levels]
    if like.is_dense:
        return parse("dense", ndim)
    some_bitmap, all_random_access = (
        any(k.is_bitmap for k in kinds),
        all(k.is_bitmap or k.functions.full for k in kinds),
    )
    if some_bitmap and all_random_access:
        return parse("bitmap", ndim)
    if (
        kinds
        and all(k.is_compressed for k in kinds)
        and all(isinstance(level.expression, Dim) for level in like.levels)
    ):
        return parse("csf", ndim)
    if ndim == 2 and not any(k.is_singleton for k in kinds) and like.ndim >= 2:
        return parse("csr", 2)
    return parse("coo", ndim)


def fits(format: Format, shape: tuple[int, ...], nse: int) -> bool:
    """Whether no level has many more positions than there are elements."""
    intervals = format.level_intervals(shape)
    positions, limit = 1, 8 * nse + ROOM
    if format.is_dense:
        return math.prod(shape) <= limit
    for level, (lo, hi) in zip(format.levels, intervals, strict=True):
        if "pos" in level.format.buffers:
            positions = nse
        elif level.format.is_located:
            positions *= hi - lo
        else:
            positions *= level.format.slots or 1
        if positions > limit:
            return False
    return True


def sum_at_origin(s: Storage) -> Tensor:
    """A storage of shape (1,), duplicates included -> the rank-0 tensor of its sum."""
    dense = convert(s, parse("dense", 1))
    return Tensor._from_storage(Storage((), parse("() -> ()"), dense.scalar, dense.fill_value, (), (), dense.values))


def from_dense_array(array: Any, like: Tensor, format: Format | None = None) -> Tensor:
    """A dense array as a tensor of the library, fill value and, where the rank is the same, dense format of `like`."""
    values = flat(as_array(np.asarray(array), like=like.values))
    shape = tuple(int(n) for n in np.shape(array))
    no_buffers = (None,) * len(shape)
    dense = Storage(
        shape, parse("dense", len(shape)), scalar_of(values), like.fill_value, no_buffers, no_buffers, values
    )
    target = format or (unbatched(like.format) if like.ndim == len(shape) else dense.format)
    if target == dense.format:
        return Tensor._from_storage(dense)
    return Tensor._from_storage(convert(dense, target))


def dense_array(t: Tensor) -> np.ndarray[Any, Any]:
    """The elements of a tensor of dense format as a NumPy array: a view where the format is row-major."""
    on_host(t._storage, "this operation")
    storage = t._storage if t.format == parse("dense", t.ndim) else convert(t._storage, parse("dense", t.ndim))
    host: np.ndarray[Any, Any] = to_numpy(storage.values).reshape(t.shape)
    return host


def remap_one(
    t: Tensor,
    shape: Sequence[int],
    operation: str,
    write: Callable[[IndexMap], None],
    host: Callable[[np.ndarray[Any, Any]], Any],
    format: Any = None,
) -> Tensor:
    """A Tensor -> one of another shape, by the index map that `write` fills in, or `host` for a dense format."""
    extents, s = tuple(int(n) for n in shape), t._storage
    if t.format.is_dense or type(t) is not Tensor or not extents:
        return _remap_one(t, extents, operation, write, host, format)
    index_map = IndexMap()
    write(index_map)
    if not (index_map.arrays or index_map.reads_values):
        statement = (operation, extents, format, index_map.remap, *index_map.words.values())
        little = moved((s,), statement, lambda: _moved(s, index_map, extents, format))
        if little is not None:
            return Tensor._from_storage(little)
    return _remap_one(t, extents, operation, write, host, format)


def _moved(s: Storage, index_map: IndexMap, shape: tuple[int, ...], format: Any) -> Moved | None:
    """A remap as a move."""
    target = little_format(s.format, shape, format)
    return None if target is None else Moved((index_map,), shape, target)


@differentiable(lambda t, *_: (t.values,))
def _remap_one(
    t: Tensor,
    extents: tuple[int, ...],
    operation: str,
    write: Callable[[IndexMap], None],
    host: Callable[[np.ndarray[Any, Any]], Any],
    format: Any,
) -> Tensor:
    if t.format.is_dense:
        out = from_dense_array(host(dense_array(t)), t)
        return out if format is None else out.asformat(format)
    index_map = IndexMap()
    write(index_map)
    if not extents:
        index_map.coordinates = ["0"]
        return sum_at_origin(remap([(t._storage, index_map)], (1,), operation))
    return to_result_format(remap([(t._storage, index_map)], extents, operation), t.format, format)

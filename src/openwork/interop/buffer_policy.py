"""Buffers of other libraries -> Tensors, copied as `copy=` says, in the strictest format that the buffers satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..format import format as parse
from ..format.cached import cached
from ..format.format import Format, Level
from ..runtime.check import check, holds, passes
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.invariants import check_layout
from ..storage.recorded import of_recording
from ..storage.scalars import given_number
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, resolve_format

__all__ = ["BufferPolicy", "dense_tensor", "loosen", "to_strictest_format"]


_INDICES = frozenset(np.dtype(name).char for name in ("int32", "int64"))


def _is_flat(x: Any) -> bool:
    """Whether a torch tensor is a contiguous vector without pending conjugation or negation."""
    materialized = not (x.is_conj() or x.is_neg() or x._is_zerotensor())
    return materialized and x.ndim == 1 and bool(x.is_contiguous())


class BufferPolicy:
    """The meaning of `copy=` for foreign buffers: True always copies, False raises where one is needed, None copies."""

    def __init__(self, copy: bool | None) -> None:
        self.copy = copy

    def flat(self, x: Any, scalar: str | None = None) -> Array:
        """`x` as a 1-D contiguous buffer."""
        if type(x) is np.ndarray and x.ndim == 1 and not self.copy:
            flags, scalar_of_x = x.flags, buffers.scalar_name(x.dtype)
            if flags.c_contiguous and flags.aligned and x.dtype.isnative and scalar in (None, scalar_of_x):
                return x
        elif buffers.is_torch(x) and not self.copy and scalar in (None, buffers.scalar_of(x)) and _is_flat(x):
            return of_recording(x)
        array = buffers.as_array(x)
        out = buffers.flat(buffers.as_array(array, scalar))
        is_copy = not buffers.is_array(x) or not buffers.same_memory(out, x)
        return self.copied_if_asked(out, is_copy and buffers.length(out) > 0)

    def copied_if_asked(self, out: Array, is_copy: bool) -> Array:
        """`out`, copied where the policy copies always and `out` is none; ValueError for a copy that it forbids."""
        if is_copy and self.copy is False:
            raise ValueError(
                "asarray: copy=False, but this cannot be taken over without a copy\n  help: leave copy out"
            )
        return out if is_copy or not self.copy else buffers.copied(out)

    def index(self, x: Array) -> Array:
        """`x` as an index buffer: int32 and int64 as they are, any other integer as int64."""
        if type(x) is np.ndarray and x.dtype.char in _INDICES and x.ndim == 1 and not self.copy:
            flags = x.flags
            if flags.c_contiguous and flags.aligned and x.dtype.isnative:
                return x
        scalar = buffers.scalar_of(x)
        return self.flat(x, scalar if scalar in ("i32", "i64") else "i64")


def dense_tensor(x: Array, policy: BufferPolicy, fill: Any, source: object, format: object = None) -> Tensor:
    """A dense array -> a dense Tensor, row-major, or column-major where `format` asks for it."""
    array = buffers.as_array(x)
    target, shape = parse("dense", array.ndim), tuple(int(n) for n in array.shape)
    if format is not None and resolve_format(format, array.ndim, explicit=True) == parse("dense_f", array.ndim):
        target, array = parse("dense_f", array.ndim), array.T if array.ndim != 1 else array
    out = buffers.flat(array)
    is_copy = (isinstance(source, np.ndarray) or buffers.is_torch(source)) and not buffers.same_memory(out, x)
    scalar = buffers.scalar_of(out)
    values = policy.copied_if_asked(out, is_copy and buffers.length(out) > 0)
    no_buffers = (None,) * len(target.levels)
    number = given_number(fill, scalar, "asarray: fill_value", "give one number that the dtype holds")
    storage = Storage(shape, target, scalar, number, no_buffers, no_buffers, values)
    storage.adopt()
    return Tensor._from_storage(storage)


@cached(256)
def loosen(format: Format, *, ordered: bool) -> Format:
    """The format with duplicates allowed on its last stored level, and on all levels any order if not `ordered`."""
    levels = list(format.levels)
    last = max(k for k, level in enumerate(levels) if "nonunique" in level.format.may_be)
    for k, level in enumerate(levels):
        if "nonunique" in level.format.may_be:
            unique = level.format.unique and k != last
            levels[k] = Level(level.expression, replace(level.format, unique=unique and ordered, ordered=ordered))
    return Format(format.dims, tuple(levels))


def to_strictest_format(storage: Storage, looser: Sequence[Format] | None = None) -> Tensor:
    """A Tensor over a storage's buffers in the strictest format that they satisfy.

    Tries the format itself, then `looser` in turn: without it, duplicates in order, then duplicates in any order.
    Raises InvariantError where none holds.
    """
    storage.adopt()
    if passes(storage):
        return Tensor._from_storage(storage)
    check_layout(storage)
    if holds(storage):
        return Tensor._from_storage(storage)
    if looser is None:
        looser = [loosen(storage.format, ordered=ordered) for ordered in (True, False)]
    *first, loosest = looser
    for format in first:
        storage = storage.with_format(format)
        if holds(storage):
            return Tensor._from_storage(storage)
    storage = storage.with_format(loosest)
    check(storage)
    return Tensor._from_storage(storage)

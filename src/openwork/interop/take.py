"""Buffers of other libraries to Tensors, without a copy where that can be, in the strictest format that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..format import format as parse
from ..format.format import Format, Level
from ..runtime.check import check, holds, passes
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.invariants import check_layout
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, python_scalar, resolve_format

__all__ = ["Take", "dense", "loosened", "settle"]


_INDICES = frozenset(np.dtype(name).char for name in ("int32", "int64"))


def _is_flat(x: Any) -> bool:
    """Whether a torch tensor has one dimension, and its elements in memory one after the other."""
    plain = not (x.is_conj() or x.is_neg() or x._is_zerotensor())
    return plain and x.ndim == 1 and bool(x.is_contiguous())


class Take:
    """Takes buffers over as `copy=` says: True always copies, False never, None where it has to."""

    def __init__(self, copy: bool | None) -> None:
        self.copy = copy

    def flat(self, x: Any, scalar: str | None = None) -> Array:
        """`x` as a 1-D contiguous buffer."""
        if type(x) is np.ndarray and x.ndim == 1 and not self.copy:
            flags, known = x.flags, buffers.scalar_name(x.dtype)
            if flags.c_contiguous and flags.aligned and x.dtype.isnative and scalar in (None, known):
                return x
        elif buffers.is_torch(x) and not self.copy and scalar in (None, buffers.scalar_of(x)) and _is_flat(x):
            return x
        given = buffers.as_array(x)
        out = buffers.flat(buffers.as_array(given, scalar))
        moved = not buffers.is_array(x) or not buffers.same_memory(out, x)
        return self.settle(out, moved and buffers.length(out) > 0)

    def settle(self, out: Array, moved: bool) -> Array:
        """`out` when it may be a copy already (`moved`)."""
        if moved and self.copy is False:
            raise ValueError(
                "asarray: copy=False, but this cannot be taken over without a copy\n  help: leave copy out"
            )
        return out if moved or not self.copy else buffers.copied(out)

    def index(self, x: Array) -> Array:
        """`x` as an index buffer: int32 and int64 as they are, any other integer as int64."""
        if type(x) is np.ndarray and x.dtype.char in _INDICES and x.ndim == 1 and not self.copy:
            flags = x.flags
            if flags.c_contiguous and flags.aligned and x.dtype.isnative:
                return x
        scalar = buffers.scalar_of(x)
        return self.flat(x, scalar if scalar in ("i32", "i64") else "i64")


def dense(x: Array, take: Take, fill: Any, source: object, format: object = None) -> Tensor:
    """A dense array; row-major, or column-major where that is asked for and there."""
    given = buffers.as_array(x)
    made, shape = parse("dense", given.ndim), tuple(int(n) for n in given.shape)
    if format is not None and resolve_format(format, given.ndim) == parse("dense_f", given.ndim):
        made, given = parse("dense_f", given.ndim), given.T if given.ndim != 1 else given
    out = buffers.flat(given)
    moved = (isinstance(source, np.ndarray) or buffers.is_torch(source)) and not buffers.same_memory(out, x)
    scalar = buffers.scalar_of(out)
    values = take.settle(out, moved and buffers.length(out) > 0)
    nothing = (None,) * len(made.levels)
    storage = Storage(shape, made, scalar, python_scalar(fill, scalar), nothing, nothing, values)
    return Tensor._from_storage(storage.adopted())


def loosened(format: Format, *, ordered: bool) -> Format:
    """The format with duplicates allowed on its last stored level, and on all levels any order if not `ordered`."""
    levels = list(format.levels)
    last = max(at for at, level in enumerate(levels) if "nonunique" in level.format.may_be)
    for at, level in enumerate(levels):
        if "nonunique" in level.format.may_be:
            unique = level.format.unique and at != last
            levels[at] = Level(level.expression, replace(level.format, unique=unique and ordered, ordered=ordered))
    return Format(format.dims, tuple(levels))


def settle(storage: Storage, looser: Sequence[Format] | None = None) -> Tensor:
    """A tensor over these buffers in the strictest format that holds of them.

    Tries the format itself, then `looser` in turn: without it, duplicates in order, then duplicates in any order.
    Raises InvariantError where none holds.
    """

    if passes(storage):
        return Tensor._from_storage(storage.adopted())
    check_layout(storage)
    if holds(storage):
        return Tensor._from_storage(storage.adopted())
    if looser is None:
        looser = [loosened(storage.format, ordered=ordered) for ordered in (True, False)]
    for format in looser:
        storage = storage.with_format(format)
        if holds(storage):
            return Tensor._from_storage(storage.adopted())
    check(storage)
    return Tensor._from_storage(storage.adopted())

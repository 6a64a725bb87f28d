"""Shape, format, pos and crd -> a tensor's structure, with what was found out of it.

Tensors that differ in their values alone share one `Structure`, as `A` and `A * 2` do, so that the symbolic phase of a
factorization, or the ranges of a large product, of one of them serve all.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable
from typing import Any

from ..format.cached import cached
from ..format.format import Format
from . import sizes
from .buffers import Array
from .watch import Watch, unkept, watch

__all__ = ["Structure", "keep"]

LIMIT = 64
"""The most entries of a slot; the oldest is dropped first."""
KINDS = 8
"""The number of kinds of values (type, fill value) for which a structure keeps facts at a time."""

_numbers = itertools.count()


def keep(slot: dict[Any, Any], key: Hashable, value: Any, limit: int = LIMIT) -> None:
    """Store an entry in a slot; where the slot is full, the oldest entry is dropped."""
    if len(slot) >= limit and key not in slot:
        for oldest in list(slot)[:1]:
            slot.pop(oldest, None)
    slot[key] = value


@cached(1024)
def _permuted(format: Format, axes: tuple[int, ...]) -> Format:
    return format.permute(axes)


class Structure:
    """Shape, format and index buffers, and what follows from them: positions, nse, transposes, plans."""

    __slots__ = (
        "__weakref__",
        "_facts",
        "_origin",
        "_transposes",
        "_watch",
        "crd",
        "format",
        "interval_ends",
        "nse",
        "number",
        "packed",
        "pos",
        "position_counts",
        "programs",
        "shape",
        "type_parts",
        "types",
    )

    def __init__(
        self, shape: tuple[int, ...], format: Format, pos: tuple[Array | None, ...], crd: tuple[Array | None, ...]
    ) -> None:
        self.shape, self.format, self.pos, self.crd = shape, format, pos, crd
        self.nse: int | None = None
        """the number of specified elements, once counted"""
        self.position_counts: tuple[int, ...] | None = None
        self.interval_ends: tuple[tuple[int, int], ...] | None = None
        self.types: dict[Any, Any] = {}
        """the type of an operand of this structure, by the dtype of its values, see `runtime.operand_type`"""
        self.programs: dict[Hashable, Any] = {}
        """what was inspected for this structure, by statement and the shapes of the other operands"""
        self.packed: dict[int, Array] = {}
        """the last level's coordinates as words, by its number, shared with transposes"""
        self._facts: dict[Any, dict[Hashable, Any]] = {}
        """what follows from it with values of a kind, see `facts`"""
        self.type_parts: tuple[Hashable, ...] | None = None
        """format, dtypes of buffers and whether the shape is ragged, once a type was asked for"""
        self.number = next(_numbers)
        """is never given again, so that a key of another structure's slot is this one's for ever"""
        self._transposes: dict[tuple[int, ...], Structure] = {}
        self._origin: tuple[tuple[int, ...], weakref.ref[Structure]] | None = None
        self._watch: Watch | None = None

    @property
    def watch(self) -> Watch:
        """The watch of index buffers, from the first question on: nobody else has those of a result before."""
        if self._watch is None:
            self._watch = watch(self.pos, self.crd)
        return self._watch

    @property
    def intervals(self) -> tuple[tuple[int, int], ...]:
        """The half-open coordinate range of each level."""
        if self.interval_ends is None:
            self.interval_ends = self.format.level_intervals(self.shape)
        return self.interval_ends

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of each level over all batch slices."""
        if self.position_counts is None:
            self.position_counts = sizes.positions(self.format, self.shape, self.crd)
        return self.position_counts

    def facts(self, kind: Any) -> dict[Hashable, Any]:
        """Counts, places and other things that follow from the structure with values of one kind, by name.

        kind : see `Storage.kind`
        """
        found = self._facts.get(kind)
        if found is None:
            found = {}
            keep(self._facts, kind, found, KINDS)
        return found

    def typed(self) -> tuple[Hashable, ...]:
        """What the structure adds to the type of an operand: format, dtypes of buffers, whether the shape is ragged."""
        if self.type_parts is None:
            format = self.format
            parts: list[Hashable] = [format.number, bool(format.guarded) and format.ragged(self.shape)]
            for b in self.pos:
                parts.append(b if b is None else b.dtype)
            for b in self.crd:
                parts.append(b if b is None else b.dtype)
            self.type_parts = tuple(parts)
        return self.type_parts

    def unkept(self) -> Structure:
        """The structure over copies of buffers that are kept for later results, see `storage.watch.kept`."""
        return Structure(self.shape, self.format, tuple(unkept(self.pos)), tuple(unkept(self.crd)))

    def permute(self, axes: tuple[int, ...]) -> Structure:
        """The structure whose dimension k is dimension `axes[k]` of this one, over the same buffers.

        The same object each time, and this one for the inverse, so that prepared calls are found again.
        """
        out = self._transposes.get(axes)
        if out is not None:
            return out
        if self._origin is not None and self._origin[0] == axes:
            origin = self._origin[1]()
            if origin is not None:
                return origin
        shape = tuple([self.shape[a] for a in axes])
        out = Structure(shape, _permuted(self.format, axes), self.pos, self.crd)
        out.nse, out.position_counts, out.packed = self.nse, self.position_counts, self.packed
        out._watch = self._watch
        inverse = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        out._origin = inverse, weakref.ref(self)
        keep(self._transposes, axes, out)
        return out

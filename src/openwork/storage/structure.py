"""A tensor's structure: shape, format, pos and crd, and the calls that were prepared for tensors that have it.

Tensors whose values alone differ share one `Structure`, as `A` and `A * 2` do, so that what was worked out for one of
them, such as the launches of its products, serves all.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable
from typing import Any

from ..format.cached import cached
from ..format.format import Format
from . import sizes
from .buffers import Array, scalar_of
from .watch import Watch, unkept, watch

__all__ = ["Plans", "Structure", "keep"]

LIMIT = 64
"""Entries of a slot: the oldest goes first."""
KINDS = 8
"""Types and fill values of values for which a structure keeps plans at a time."""

_signatures: dict[object, int] = {}
_numbers = itertools.count()


class Plans:
    """Prepared calls for storages of one structure, scalar type, library and fill value; a slot for each kind of call.

    products : launches of statements with dense operands, by statement, shapes, strides and types
    reductions : launches whose one dense operand is their result, by operator, axes and type
    conversions : by target format or stage
    indexing : by kind of selection
    moves : gathers of selections and conversions, by these, see `runtime.prepared_moves`
    facts : what was counted, by name
    """

    __slots__ = ("conversions", "facts", "indexing", "moves", "products", "reductions")

    def __init__(self) -> None:
        self.products: dict[Hashable, Any] = {}
        self.reductions: dict[Hashable, Any] = {}
        self.conversions: dict[Hashable, Any] = {}
        self.indexing: dict[Hashable, Any] = {}
        self.moves: dict[Hashable, Any] = {}
        self.facts: dict[Hashable, Any] = {}


def keep(slot: dict[Any, Any], key: Hashable, value: Any, limit: int = LIMIT) -> None:
    """Keep an entry of a slot; where the slot is full, the oldest entry goes."""
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
        "_origin",
        "_plans",
        "_signatures",
        "_transposes",
        "_watch",
        "counted",
        "crd",
        "format",
        "nse",
        "pos",
        "shape",
    )

    def __init__(
        self, shape: tuple[int, ...], format: Format, pos: tuple[Array | None, ...], crd: tuple[Array | None, ...]
    ) -> None:
        self.shape, self.format, self.pos, self.crd = shape, format, pos, crd
        self.nse: int | None = None
        """specified elements, once they were counted"""
        self.counted: tuple[int, ...] | None = None
        self._plans: dict[Any, Plans] = {}
        self._signatures: dict[tuple[str, str, str], int] = {}
        self._transposes: dict[tuple[int, ...], Structure] = {}
        self._origin: tuple[tuple[int, ...], weakref.ref[Structure]] | None = None
        self._watch: Watch | None = None

    @property
    def watch(self) -> Watch:
        """What is to hold of index buffers of NumPy's, whatever the values are."""
        if self._watch is None:
            self._watch = watch(self.pos, self.crd)
        return self._watch

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of each level over all batch slices."""
        if self.counted is None:
            self.counted = sizes.positions(self.format, self.shape, self.crd)
        return self.counted

    def plans(self, kind: Any) -> Plans:
        """The prepared calls for values of one kind, see `Storage.kind`."""
        found = self._plans.get(kind)
        if found is None:
            found = Plans()
            keep(self._plans, kind, found, KINDS)
        return found

    def signature(self, scalar: str, library: str, device: str) -> int:
        """A small number for the structure's kind with values of a scalar type, see `Storage.signature`."""
        found = self._signatures.get((scalar, library, device))
        if found is None:
            widths = tuple(None if b is None else scalar_of(b) for b in (*self.pos, *self.crd))
            key = (self.format, scalar, widths, library, device, self.format.ragged(self.shape))
            found = self._signatures[scalar, library, device] = _signatures.setdefault(key, next(_numbers))
        return found

    def unkept(self) -> Structure:
        """The structure over copies of buffers that are kept for later results, see `storage.watch.kept`."""
        return Structure(self.shape, self.format, tuple(unkept(self.pos)), tuple(unkept(self.crd)))

    def permute(self, axes: tuple[int, ...]) -> Structure:
        """The structure whose dimension k is dimension `axes[k]` of this one, over the same buffers.

        The same object each time, and turned back the first one, so that what was prepared for it is there again.
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
        out.nse, out.counted = self.nse, self.counted
        back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        out._origin = back, weakref.ref(self)
        keep(self._transposes, axes, out)
        return out

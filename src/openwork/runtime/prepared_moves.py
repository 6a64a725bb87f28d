"""Selections and conversions of a tensor -> the same of other values of its structure: a gather.

    A[:, 2:9]        # the first time, by kernels; the second time, on the numbers of the values too
    A[:, 2:9]        # from then on, values[places] over the structure that the result had

Where elements go depends on the structure alone, as long as none are summed. What is kept is small: the structure of
the result and the places; of larger tensors the kernels themselves take the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from .. import tuning
from ..storage.buffers import Array, as_array, cast, host_values, is_contiguous, length, to_numpy
from ..storage.recorded import bare, is_dual, is_transformed
from ..storage.storage import Storage
from ..storage.structure import Structure, keep
from ..storage.watch import NOTHING, kept
from . import trace
from .conversion.remap import has_gaps

__all__ = [
    "NEVER", "ONCE", "Gather", "is_plain", "kept_structure", "key_part", "learn", "numbered", "recall", "suits",
]  # fmt: skip

KEPT = tuning.MOVES_KEPT
ONCE: Final = "once"
NEVER: Final = "never"
_EXACT = {"f64": 2**53, "f32": 2**24, "f16": 2**11, "bf16": 2**8, "c64": 2**24, "c128": 2**53, "bool": 1} | {
    f"{kind}{8 * n}": 2 ** (8 * n - (kind == "i")) - 1 for kind in "iu" for n in (1, 2, 4, 8)
}
"""The numbers up to which all are values of the type."""


class Gather:
    """Values of given positions on a structure of their own: what is left of a move that depends on the structure
    alone.

    structure : of the results, which share it; its arrays of NumPy are `kept` ones
    places : the positions; a range where the result shares the memory of the values, None where they are all of it
    holes : the places that no value goes to, which hold the fill value; None where there are none
    """

    __slots__ = ("_make", "holes", "places", "structure", "watch")

    def __init__(self, structure: Structure, places: Array | slice | None, holes: Array | None = None) -> None:
        self.structure, self.places, self.holes = structure, places, holes
        self.watch = structure.watch
        self._make: Callable[[Any], Storage] | None = None

    def __call__(self, s: Storage) -> Storage:
        """The move, of the values of a storage; all are of one kind."""
        all_values, places = s.values, self.places
        make = self._make
        if make is None:
            make = self._make = Storage.maker(self.structure, s.scalar, s.fill_value)
        if places is None:
            return make(all_values)
        if type(places) is slice:
            values = all_values[places]
        else:
            values = all_values.take(places) if type(all_values) is np.ndarray else all_values.index_select(0, places)
        if self.holes is not None:
            values[self.holes] = s.fill_value
        return make(values)


def recall(s: Storage, key: Hashable) -> Gather | None:
    """What is left of the move of this key, where it was learnt; None under `explain`, which tells of kernels."""
    slot = (s._plans or s.plans).moves
    gather = slot.get(key)
    if type(gather) is not Gather or trace.steps:
        return None
    if gather.watch is not NOTHING and not gather.watch.holds():  # somebody wrote to the indices of a result
        slot.pop(key, None)
        return None
    return gather


def learn(s: Storage, key: Hashable, result: Storage, compute: Callable[[Storage], Storage]) -> None:
    """Note that `compute(s)`, which only moves elements, gave `result`; the second time, learn where they went."""
    slot = (s._plans or s.plans).moves
    state = slot.get(key)
    if state is NEVER or not is_plain(s.values):
        return
    if state is None:
        if length(s.values) <= KEPT and not trace.steps:
            keep(slot, key, ONCE if suits(s, result) else NEVER)
    elif state is ONCE and not trace.steps:
        slot[key] = NEVER
        slot[key] = _learnt(s, result, compute)


def suits(s: Storage, result: Storage, count: int | None = None) -> bool:
    """Whether values of the structure are elements, each one, none by its number the fill value, and the result is
    small; `count` : the largest number, where it is not that of the values."""
    if s.fill_value != 0:
        return False
    if s.device != "cpu" or s.format.is_dense or not s.format.is_unique or has_gaps(s) or result.scalar != s.scalar:
        return False
    if (length(s.values) if count is None else count) > _EXACT[s.scalar] or any(
        length(b) > KEPT for b in result.buffers
    ):
        return False
    return result.library == s.library and is_contiguous(result.values)


def _shared(x: Array, y: Array) -> bool:
    """Whether two buffers may be of one memory."""
    if isinstance(x, np.ndarray):
        return np.may_share_memory(x, y)
    return bool(_plain(x).untyped_storage().data_ptr() == _plain(y).untyped_storage().data_ptr())


def _plain(x: Array) -> Array:
    """The buffer without a graph."""
    return x if isinstance(x, np.ndarray) else bare(x)


def is_plain(x: Array) -> bool:
    """Whether a buffer is one of memory, and what is made of it now may be kept: not in a transform of torch's."""
    if isinstance(x, np.ndarray):
        return True
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled() or is_transformed(x) or is_dual(x):
        return False
    return torch._C._functorch.maybe_current_level() is None


def numbered(s: Storage, begin: int = 1) -> Storage:
    """The storage with the numbers of its values in their place."""
    numbers = np.arange(begin, begin + length(s.values))
    return s.with_values(cast(as_array(numbers, like=_plain(s.values)), s.scalar), s.fill_value)


def _learnt(s: Storage, result: Storage, compute: Callable[[Storage], Storage]) -> Gather | str:
    """The move as a gather, checked against a result; `NEVER` where it is none."""
    moved = compute(numbered(s))
    same = moved.shape == result.shape and moved.format == result.format and moved.fill_value == result.fill_value
    if not same or result.fill_value != s.fill_value or length(moved.values) != length(result.values):
        return NEVER
    numbers_moved = host_values(moved.values)
    places = numbers_moved.real.astype(np.int64) - 1
    holes = np.flatnonzero(places < 0)
    if len(holes) and not length(s.values):
        return NEVER
    structure = kept_structure((s,), moved)
    if len(places) and _shared(s.values, result.values):
        first, behind = int(places[0]), int(places[0]) + len(places)
        if len(holes) or not np.array_equal(places, np.arange(first, behind)):
            return NEVER
        gather = Gather(structure, slice(first, behind) if len(places) < length(s.values) else None)
    else:
        index = as_array(np.maximum(places, 0), like=moved.values)
        gather = Gather(structure, index, as_array(holes, like=moved.values) if len(holes) else None)
    gathered, expected = (to_numpy(_plain(x)) for x in (gather(s).values, result.values))
    return gather if gathered.tobytes() == expected.tobytes() else NEVER


def kept_structure(operands: Sequence[Storage], moved: Storage) -> Structure:
    """The structure of a result that nobody else has, over buffers to be kept but for those of operands."""
    mine = [b for s in operands for b in (*s.pos, *s.crd) if b is not None]

    def buffer(b: Array | None) -> Array | None:
        return b if b is None or any(_shared(b, x) for x in mine) else kept(b)

    return Structure(moved.shape, moved.format, tuple(map(buffer, moved.pos)), tuple(map(buffer, moved.crd)))


FEW = tuning.MOVES_LISTED


def key_part(key: Any) -> Hashable:
    """A selection as a key of a slot, which tells True from 1; None where it is none, or holds many numbers."""
    kind = type(key)
    if kind is tuple:
        parts = tuple([key_part(k) for k in key])
        return None if None in parts else parts
    if kind is int or key is Ellipsis:
        return key  # type: ignore[no-any-return]
    if kind is slice:
        ends = (key.start, key.stop, key.step)
        return ("slice", *ends) if all(e is None or type(e) is int for e in ends) else None
    if key is None:
        return "new"
    if kind is list and len(key) <= FEW and all(type(k) is int for k in key):
        return ("list", *key)
    if kind is np.ndarray and key.size <= FEW and key.dtype.kind in "iu":
        return "array", key.dtype, key.shape, key.tobytes()
    return None

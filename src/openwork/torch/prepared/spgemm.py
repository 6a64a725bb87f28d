"""Recorded products of two small sparse matrices whose structures have met -> torch's operations on the values alone.

    C[ic] += A[ia] * B[ib]          # for every product, where the structures say which these are

What a product of matrices multiplies and where it adds depends on the structures; torch knows the derivatives of the
rest, of any order. It is learnt at the second product of two structures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ... import tuning
from ...runtime import trace
from ...runtime.conversion.remap import has_gaps
from ...storage.buffers import length
from ...storage.recorded import bare, is_plain, outside, structure_of
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ...storage.structure import Structure, keep
from ...storage.watch import NOTHING, kept, watch

__all__ = ["keep_spgemm", "prepared_spgemm"]

KEPT, PAIRS = tuning.MOVES_KEPT, 8
ONCE, NEVER = "once", "never"
"""Products of two structures that are kept, and structures with which one keeps them."""


class _Products:
    """The products of two structures: positions of both factors and of the sums."""

    __slots__ = ("at", "count", "of_first", "of_second", "scalar", "structure", "watch")

    def __init__(self, s: Storage, t: Storage, result: Storage, places: tuple[torch.Tensor, ...]) -> None:
        self.of_first, self.of_second, self.at = places
        self.structure, self.scalar, self.count = _kept_structure((s, t), result), result.scalar, length(result.values)
        self.watch = watch(self.structure.pos, self.structure.crd)

    def values(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The values of the product."""
        products = x.index_select(0, self.of_first) * y.index_select(0, self.of_second)
        return products.new_zeros(self.count).index_add(0, self.at, products)


def _kept_structure(operands: tuple[Storage, ...], result: Storage) -> Structure:
    """The structure of a result that nobody else has, over buffers to be kept but for those of operands."""
    mine = {bare(b).untyped_storage().data_ptr() for s in operands for b in (*s.pos, *s.crd) if b is not None}

    def buffer(b: Any) -> Any:
        return b if b is None or bare(b).untyped_storage().data_ptr() in mine else kept(b)

    return Structure(result.shape, result.format, tuple(map(buffer, result.pos)), tuple(map(buffer, result.crd)))


def prepared_spgemm(s: Storage, t: Storage) -> Storage | None:
    """The product of two matrices of torch's, of which it records one, by what is kept of their structures; None where
    that is nothing, or a transform or a tangent takes part."""
    known = (s._plans or s.plans).contractions.get(("spgemm", (t._plans or t.plans).number))
    if type(known) is not _Products or trace.steps or torch.autograd.forward_ad._current_level >= 0:
        return None
    if torch._C._functorch.maybe_current_level() is not None or torch.is_inference_mode_enabled():
        return None
    if known.watch is not NOTHING and not known.watch.holds():
        return None
    return Storage.over(known.structure, known.scalar, 0, known.values(s.values, t.values))


def keep_spgemm(s: Storage, t: Storage, result: Storage) -> None:
    """Note the product of two matrices of torch's, which has just been computed; learn it the second time."""
    if s.is_new or t.is_new or trace.steps or not _suit(s, t, result):
        return
    slot, key = s.plans.contractions, ("spgemm", t.plans.number)
    state = slot.get(key)
    if state is None:
        keep(slot, key, ONCE, PAIRS)
    elif state is ONCE:
        slot[key] = NEVER
        places = _places(*(structure_of(x) for x in (s, t, result)))
        if places is not None:
            slot[key] = _Products(s, t, result, places)


def _suit(*storages: Storage) -> bool:
    """Whether operands and result are small matrices of one floating type, zero where they store nothing."""
    scalar = storages[0].scalar
    return scalar in ("f32", "f64") and all(
        s.scalar == scalar and s.library == "torch" and s.device == "cpu" and len(s.shape) == 2
        and 0 < length(s.values) <= KEPT and str(s.fill_value) in ("0", "0.0") and s.format.is_unique
        and not s.format.is_dense and is_plain(s.values) and not has_gaps(s)
        for s in storages
    )  # fmt: skip


@outside()
def _places(s: Storage, t: Storage, result: Storage) -> tuple[torch.Tensor, ...] | None:
    """The positions of both factors and of the sum of every product, row by row; None where they are many."""
    (rows, inner), of_first = _by_rows(s)
    (shared, columns), of_second = _by_rows(t)
    begin, end = np.searchsorted(shared, inner, "left"), np.searchsorted(shared, inner, "right")
    counts = end - begin
    total = int(counts.sum())
    if total > KEPT or s.shape[0] * t.shape[1] >= 2**62:
        return None
    first = np.repeat(np.arange(len(inner)), counts)
    second = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(begin, counts)
    (i, k), positions = _by_rows(result)
    keys = i * np.int64(t.shape[1]) + k
    wanted = rows[first] * np.int64(t.shape[1]) + columns[second]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    if not np.array_equal(keys[at], wanted):
        return None
    return tuple(torch.from_numpy(x.astype(np.int64)) for x in (of_first[first], of_second[second], positions[at]))


def _by_rows(s: Storage) -> tuple[Any, Any]:
    """The coordinates of the elements of a matrix, sorted by rows, and the positions of their values."""
    (i, j), positions = coordinates(s)
    order = np.lexsort((j, i))
    return (np.asarray(i)[order].astype(np.int64), np.asarray(j)[order].astype(np.int64)), np.asarray(positions)[order]

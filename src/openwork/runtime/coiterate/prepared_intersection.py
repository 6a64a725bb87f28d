"""A product of two tensors whose structures have met -> its values: one launch over what both have stored.

    C[k] = A[p[k]] * B[q[k]]        # for every k, where the sum of all squares is below a limit; else status 2

Where elements of a product are follows from the structures alone, as long as all values are finite. It is learnt at
the second product of two small tensors over torch buffers; others have a merge, which takes as long as they do.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from ... import tuning
from ...codegen import cache
from ...codegen.short_call import bound
from ...compiler.coiterate.known_places import LARGE, Placed, merge_kernel
from ...ir.loop import Kernel, Var
from ...ir.ops import op
from ...ir.types import Type
from ...storage.buffers import address, is_unrecorded, length, scalar_of, to_numpy
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ...storage.watch import NOTHING
from ..conversion.remap import has_gaps
from ..launch import bits
from ..prepared_moves import is_plain, kept_structure
from ..prepared_results import template

__all__ = ["Intersection", "intersection"]

KEPT = tuning.MOVES_KEPT


class Intersection:
    """The structure of a product, and the launch that computes its values; of operands of two known structures."""

    __slots__ = ("_kept", "like", "make", "start", "watch")

    def __init__(self, s: Storage, t: Storage, result: Storage, places: tuple[Any, Any]) -> None:
        executable = cache.get(f"product of known places {s.scalar}", lambda: _product_kernel(s.scalar))
        sizes = length(s.values), length(t.values)
        words = [len(places[0]), bits(LARGE, "f64"), *sizes, *map(address, places), 0, 0, 0]
        self.start = bound(executable, words, (6, 7, 8))
        self._kept = executable, places
        structure = kept_structure((s, t), result)
        self.make, self.watch = Storage.maker(structure, result.scalar, result.fill_value), structure.watch
        self.like = template(result.values)

    def __call__(self, s: Storage, t: Storage) -> Storage | None:
        """The product; None where torch records or transforms an operand, or a value is not finite or very large."""
        torch, x, y = sys.modules["torch"], s.values, t.values
        if self.start is None or x.requires_grad or y.requires_grad or torch.autograd.forward_ad._current_level >= 0:
            return None
        if torch._C._functorch.maybe_current_level() is not None or torch.is_inference_mode_enabled():
            return None
        if self.watch is not NOTHING and not self.watch.holds():  # somebody wrote to the indices of a result
            self.start = None
            return None
        out = torch.empty_like(self.like)
        if self.start(x.data_ptr(), y.data_ptr(), out.data_ptr()):
            return None
        return self.make(out)


def intersection(s: Storage, t: Storage, result: Storage) -> Intersection | None:
    """What is left of the product of two storages, which gave `result`; None where it is no such product."""
    parts = s, t, result
    if any(type(x.values) is np.ndarray or x.scalar != s.scalar for x in parts) or s.scalar not in ("f32", "f64"):
        return None
    if any(not x.format.is_unique or str(x.fill_value) != "0.0" or length(x.values) > KEPT for x in parts):
        return None
    if not all(is_plain(x.values) and is_unrecorded(x.values) for x in parts) or any(map(has_gaps, parts)):
        return None
    if math.prod(s.shape) >= 2**63:
        return None
    of_s, of_t, of_result = (_keys(x) for x in parts)
    places = _places(of_s, of_result), _places(of_t, of_result)
    if places[0] is None or places[1] is None:
        return None
    x, y, z = (to_numpy(v.values) for v in parts)
    with np.errstate(all="ignore"):
        same = (x[places[0]] * y[places[1]]).tobytes() == z.tobytes()
    if not same or float(x @ x) + float(y @ y) >= LARGE or scalar_of(x) != s.scalar:
        return None
    prepared = Intersection(s, t, result, (places[0], places[1]))
    return prepared if prepared.start is not None else None


def _product_kernel(scalar: str) -> Kernel:
    """The product of two operands that have a value at every element of it."""
    x, y = (Var(f"v{k}", Type(scalar)) for k in range(2))
    return merge_kernel(op("mul", x, y), (Placed(), Placed()), guarded=True)


def _keys(s: Storage) -> np.ndarray[Any, Any]:
    """The number of each stored element in row-major order; of a storage without gaps."""
    at, positions = coordinates(s)
    keys = np.empty(length(s.values), np.int64)
    keys[positions] = np.ravel_multi_index(tuple(at), s.shape) if len(at) else 0
    return keys


def _places(keys: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The position of each wanted key; None where one is not there."""
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys, wanted, sorter=order)
    if len(wanted) and (not len(keys) or at.max() >= len(keys)):
        return None
    places = order[at].astype(np.int64)
    return places if np.array_equal(keys[places], wanted) else None

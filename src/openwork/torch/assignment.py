"""Gradients of `t[key] = values`: those of the elements that stay to `t`, those of the elements set to `values`.

What is combined with elements (`add`, `mul`, ...) is taken out, reduced by torch with what it meets, and set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..ops.creation import zeros
from ..ops.elementwise.maps import elementwise
from ..ops.indexing import assign as assigning
from ..ops.indexing.index import index_selection
from ..ops.indexing.key_join import keys_of
from ..ops.indexing.keys import Axis, Group, Selection, select
from ..ops.manipulation.shaping import broadcast_to
from ..runtime.conversion.remap import remap
from ..storage.buffers import as_array
from ..tensor.tensor import Tensor
from .permutation_gradient import by_places

__all__ = ["assign", "combine"]

_REDUCTIONS = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


def _pair(t: Tensor, values: Any, selection: Selection) -> tuple[Tensor, Tensor]:
    """The tensor and what is set, both over torch buffers and of one dtype."""
    like = next(x for x in (t.values, getattr(values, "values", values)) if isinstance(x, torch.Tensor))
    if not isinstance(t.values, torch.Tensor):
        t = Tensor._from_storage(t._storage.mapped(lambda b: as_array(b, like=like.detach())))
    return t, assigning._broadcastable_values(values, t, selection)


def assign(t: Tensor, key: Any, values: Any) -> Tensor:
    """The rule of `ops.indexing.assign.assign`: every element that is set is stored."""
    t, source = _pair(t, values, select(key, t.shape))
    return by_places(lambda a, v: assigning.assign(a, key, v), t, source)


def combine(t: Tensor, key: Any, values: Any, op: str) -> Tensor:
    """The rule of `ops.indexing.assign.combine`."""
    selection = select(key, t.shape)
    t, source = _pair(t, values, selection)
    if 0 in selection.shape:
        return t
    if op == "add" and not t.fill_value and not source.fill_value:
        found: Tensor = elementwise("add", t, by_places(lambda v: _placed(t.shape, selection, v), source))
        return found if t.format.is_dense else found.asformat(t.format)
    places = assigning._selected_coordinates(selection, t.shape)
    distinct, group = np.unique(keys_of(places, t.shape), return_inverse=True)
    at = dict(enumerate(np.unravel_index(distinct, t.shape)))
    picked = Selection(broadcast=(len(distinct),), has_arrays=True, axes=[Axis(array=0)], shape=(len(distinct),))
    picked.groups = [Group(at, (0,), (len(distinct),))]
    taken = t.to_dense()[tuple(torch.as_tensor(c) for c in at.values())] if t.format.is_dense else _dense(t, picked)
    spread = broadcast_to(source, selection.shape).to_dense().reshape(-1)
    places_of = torch.as_tensor(group.reshape(-1))
    new = taken.scatter_reduce(0, places_of, spread, _REDUCTIONS[op], include_self=True)
    return assign(t, tuple(at.values()), new)


def _dense(t: Tensor, selection: Selection) -> torch.Tensor:
    result: torch.Tensor = index_selection(t, selection).to_dense()
    return result


def _placed(shape: tuple[int, ...], selection: Selection, v: Tensor) -> Tensor:
    """The elements of `v` at their places, as often as they are named."""

    nothing = zeros(shape, format="coo", dtype="int64")
    parts = assigning._put_parts(nothing, selection, v, False)
    parts[-1][1].injective = False
    return Tensor._from_storage(assigning._with_duplicates(remap(parts, shape, "adding to elements")))

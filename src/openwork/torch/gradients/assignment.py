"""Gradient rules of `t[key] = values` and `t.at[key].add(values)`: kept elements' to `t`, the others' to `values`.

Elements that are updated (`add`, `mul`, ...) are gathered, reduced with the values by torch, and set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...errors import UnsupportedError
from ...ops.creation import zeros
from ...ops.elementwise.maps import elementwise
from ...ops.indexing import assign as assigning
from ...ops.indexing.index import index_selection
from ...ops.indexing.key_join import keys_of
from ...ops.indexing.keys import Axis, Group, Selection, select
from ...ops.manipulation.repetition import broadcast_to
from ...runtime.conversion.remap import remap
from ...storage.buffers import as_array, buffer_of
from ...tensor.tensor import Tensor
from .permutation import apply_move

__all__ = ["assign", "combine"]

_REDUCTIONS = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


def _common_operands(t: Tensor, values: Any, selection: Selection) -> tuple[Tensor, Tensor]:
    """The tensor and the values to set, both over torch buffers and of one dtype."""
    like = next(x for x in (t.values, buffer_of(values)) if isinstance(x, torch.Tensor))
    if not isinstance(t.values, torch.Tensor):
        t = Tensor._from_storage(t._storage.mapped(lambda b: as_array(b, like=like.detach())))
    return t, assigning._broadcastable_values(values, t, selection)


def assign(t: Tensor, key: Any, values: Any) -> Tensor:
    """The rule of `ops.indexing.assign.assign`: every element that is set is stored."""
    t, source = _common_operands(t, values, select(key, t.shape))
    return apply_move(lambda a, v: assigning.assign(a, key, v), t, source)


def combine(t: Tensor, key: Any, values: Any, op: str | np.ufunc) -> Tensor:
    """The rule of `ops.indexing.assign.combine`. Raises UnsupportedError for ufuncs that torch does not reduce by."""
    op = op if isinstance(op, str) else next((name for name, f in assigning.UFUNCS.items() if f is op), op.__name__)
    if op not in _REDUCTIONS:
        raise UnsupportedError(
            f"{op}.at has no gradient\n  supported: {', '.join(_REDUCTIONS)}\n  help: detach() the operands"
        )
    selection = select(key, t.shape)
    t, source = _common_operands(t, values, selection)
    if 0 in selection.shape:
        return t
    if op == "add" and not t.fill_value and not source.fill_value:
        result: Tensor = elementwise("add", t, apply_move(lambda v: _from_elements(t.shape, selection, v), source))
        return result if t.format.is_dense else result.asformat(t.format)
    selected = assigning._selected_coordinates(selection, t.shape)
    distinct, group = np.unique(keys_of(selected, t.shape), return_inverse=True)
    crd = dict(enumerate(np.unravel_index(distinct, t.shape)))
    selection_of_distinct = Selection(
        broadcast=(len(distinct),), has_arrays=True, axes=[Axis(array=0)], shape=(len(distinct),)
    )
    selection_of_distinct.groups = [Group(crd, (0,), (len(distinct),))]
    current = (
        t.to_dense()[tuple(torch.as_tensor(c) for c in crd.values())]
        if t.format.is_dense
        else _gather(t, selection_of_distinct)
    )
    operand_values = broadcast_to(source, selection.shape).to_dense().reshape(-1)
    places_of = torch.as_tensor(group.reshape(-1))
    new = current.scatter_reduce(0, places_of, operand_values, _REDUCTIONS[op], include_self=True)
    return assign(t, tuple(crd.values()), new)


def _gather(t: Tensor, selection: Selection) -> torch.Tensor:
    result: torch.Tensor = index_selection(t, selection).to_dense()
    return result


def _from_elements(shape: tuple[int, ...], selection: Selection, v: Tensor) -> Tensor:
    """The elements of `v` at the selection's coordinates, duplicates where a place is named several times."""

    empty = zeros(shape, format="coo", dtype="int64")
    parts = assigning._put_parts(empty, selection, v, False)
    parts[-1][1].injective = False
    return Tensor._from_storage(assigning._with_duplicates(remap(parts, shape, "adding to elements")))

"""A sparse matrix of SciPy's or torch's, of a kind seen before -> a Tensor over its buffers, which one kernel checks.

    asarray(s)      # the first time: what format is it, what are its buffers, do they hold every invariant
    asarray(s)      # from then on, for class or layout, shape and types: its buffers, the kernel that asks all of them

What is kept is no word about buffers: another matrix of the kind, or the same after changes, is checked as the first.
Where a check fails, or a buffer is not as they were, the general road says what is wrong, or takes a looser format.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checked import CHECKED
from ..codegen.plan_cache import PlanCache
from ..format import format as parse
from ..format.format import Format
from ..runtime.check import PreparedCheck, prepared_check
from ..storage.buffers import dtype_of
from ..storage.storage import Storage
from ..storage.watch import seen
from ..tensor.tensor import Tensor
from .from_torch import unviewed

__all__ = ["keep_source", "recall_scipy", "recall_torch"]

_SOURCES: PlanCache[Any, _Source] = PlanCache("sources", 256)
"""by class or layout, shape and type of the values"""
_SCIPY: set[type] = set()
"""SciPy's classes of which a kind is kept."""
_COMPRESSED = (parse("csr"), parse("csc"))


class _Source:
    """A kind of matrix: the format that its buffers have and the kernel that checks them."""

    __slots__ = ("behind", "behind_pos", "check", "dtype", "fill", "first", "format", "index", "scalar", "shape")

    def __init__(self, s: Storage, check: PreparedCheck) -> None:
        self.shape, self.format, self.scalar, self.fill, self.check = s.shape, s.format, s.scalar, s.fill_value, check
        self.index = next(b for b in s.crd if b is not None).dtype
        self.dtype = dtype_of(s.scalar, s.values)
        levels = [k for k, b in enumerate(s.crd) if b is not None]
        self.first = (None,) * levels[0]
        self.behind, self.behind_pos = ((None,) * (len(s.crd) - 1 - k) for k in (levels[-1], levels[0]))

    def groups(self, pos: Any, crd: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """pos and crd of all levels; those that have any are one chain."""
        return (*self.first, pos, *self.behind_pos), (*self.first, *crd, *self.behind)


def keep_source(obj: Any, t: Tensor) -> None:
    """Keep the kind of a matrix that was just taken over as a Tensor, where one kernel checks such matrices."""
    s = t._storage
    format: Format = s.format
    check = None if CHECKED or not (format.is_unique and format.is_ordered) else prepared_check(s)
    if check is None or check.factor != 1 or format.dense_ndim or format.batch_ndim or s.device != "cpu":
        return
    indices = [b for b in (*s.pos, *s.crd) if b is not None]
    if len({b.dtype for b in indices}) != 1 or s.scalar in ("c64", "c128"):
        return
    if type(s.values) is np.ndarray:
        if format in _COMPRESSED and obj.format in ("csr", "csc"):
            _SCIPY.add(type(obj))
            _SOURCES.keep((type(obj), obj.shape, obj.data.dtype), _Source(s, check))
    else:
        _SOURCES.keep((obj.layout, obj.shape, obj.dtype), _Source(s, check))


def recall_scipy(obj: Any) -> Tensor | None:
    """The Tensor over the buffers of a compressed matrix of a kind that is kept; None where the general road is."""
    if type(obj) not in _SCIPY:
        return None
    pos, crd, values = obj.indptr, obj.indices, obj.data
    source = _SOURCES.get((type(obj), obj.shape, values.dtype))
    if source is None or pos.dtype is not source.index or crd.dtype is not source.index:
        return None
    n = len(crd)
    for x, size in ((pos, source.check.parents + 1), (crd, n), (values, n)):
        if type(x) is not np.ndarray or x.shape != (size,) or not x.flags.carray:
            return None
    if not source.check.pass_at(pos, (crd,), n):
        return None
    every_pos, every_crd = source.groups(pos.view(), [crd.view()])
    return Tensor._from_storage(
        Storage(source.shape, source.format, source.scalar, source.fill, every_pos, every_crd, values.view())
    )


def recall_torch(obj: Any) -> Tensor | None:
    """The Tensor over the buffers of a sparse tensor of torch's of a kind that is kept; None where the general road is.

    Index buffers are aliases that nobody else has, whose version counts writes through any other.
    """
    source = _SOURCES.get((obj.layout, obj.shape, obj.dtype))
    if source is None or obj.requires_grad or not obj.is_cpu:
        return None
    torch = sys.modules["torch"]
    if torch._C._functorch.maybe_current_level() is not None or torch.autograd.forward_ad._current_level >= 0:
        return None
    if torch.is_inference_mode_enabled() or obj.is_inference():  # tensors of it have no version
        return None
    if obj.layout is torch.sparse_csr:
        pos, crd, values = obj.crow_indices(), (obj.col_indices(),), unviewed(obj.values())
    elif obj.layout is torch.sparse_coo and obj.is_coalesced() and obj.sparse_dim() == len(source.shape):
        crd, values = obj.indices().unbind(0), obj._values()
        pos = torch.from_numpy(np.array((0, values.numel()), np.int64))
    else:
        return None
    n, index = values.numel(), source.index
    if not values.is_contiguous() or pos.dtype is not index or pos.numel() != source.check.parents + 1:
        return None
    for x in crd:
        if x.dtype is not index or x.numel() != n or not x.is_contiguous():
            return None
    if not pos.is_contiguous():
        return None
    every_pos, every_crd = source.groups(pos, crd)
    out = Storage(source.shape, source.format, source.scalar, source.fill, every_pos, every_crd, values)
    if not source.check.pass_at(pos.data_ptr(), [x.data_ptr() for x in crd], n):
        return None
    out._seen = seen(values)
    return Tensor._from_storage(out)
